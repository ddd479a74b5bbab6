//! What the commands about backups share: a path, a passphrase, and work that the person can stop.

use std::env;
use std::path::{Path, PathBuf};

use tokio::signal::unix::{SignalKind, signal};

use crate::args::PassphraseFrom;
use crate::ask;
use crate::backup::stop;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

const VARIABLE: &str = "GSV_BACKUP_PASSPHRASE";
const MIN_CHARS: usize = 8;
const WHAT: &str = "Passphrase of the backup";

pub fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).or_fail(format_args!("find {}", path.display()), "Give an absolute path.")
}

/// Work that ends at its next step when the user stops it, and cleans up.
pub async fn interruptible<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
    let next = "Run the command again.";
    let mut int = signal(SignalKind::interrupt()).or_fail("listen for signals", next)?;
    let mut term = signal(SignalKind::terminate()).or_fail("listen for signals", next)?;
    let mut task = tokio::task::spawn_blocking(work);
    let done = tokio::select! {
        done = &mut task => done,
        _ = int.recv() => { stop(); task.await }
        _ = term.recv() => { stop(); task.await }
    };
    done.unwrap_or_else(|_| Err(Failure::new(Exit::Bug, "The work ended without a result.", next)))
}

/// The passphrase of a backup that exists.
pub fn passphrase(out: Output, from: &PassphraseFrom) -> Outcome<String> {
    let given = if from.passphrase_stdin {
        ask::secret(out, WHAT, "")?
    } else if let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        ask::check(value.into_encoded_bytes(), VARIABLE)?
    } else if ask::is_possible(out) {
        ask::secret(out, WHAT, "")?
    } else {
        return Err(Failure::usage(
            "There is no passphrase for the backup.",
            "Give it on stdin with --passphrase-stdin, or set GSV_BACKUP_PASSPHRASE.",
        ));
    };
    if given.is_empty() {
        return Err(Failure::usage(
            "The passphrase is empty.",
            "Give the passphrase of the backup.",
        ));
    }
    Ok(given)
}

/// The passphrase of a new backup: long enough, and typed twice.
pub fn new_passphrase(out: Output, from: &PassphraseFrom) -> Outcome<String> {
    let is_typed = ask::is_possible(out) && env::var_os(VARIABLE).is_none_or(|value| value.is_empty());
    let given = passphrase(out, from)?;
    if given.chars().count() < MIN_CHARS {
        return Err(Failure::usage(
            format!("The passphrase has fewer than {MIN_CHARS} characters, so it could be guessed."),
            "Choose a longer one, such as five words.",
        ));
    }
    if is_typed && ask::secret(out, "The same passphrase again", "")? != given {
        return Err(Failure::usage("The two passphrases differ.", "Run the command again."));
    }
    Ok(given)
}
