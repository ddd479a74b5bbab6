//! What the commands about backups share: a path, a passphrase, and work that the person can stop.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gsv_protocol::errors;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::context::Context;
use super::local::Local;
use super::own_gateway::is_own;
use crate::args::PassphraseFrom;
use crate::ask;
use crate::backup::stop;
use crate::client::{find_url, without_login};
use crate::config::Config;
use crate::embedded::layout::Layout;
use crate::embedded::up::last_port;
use crate::embedded::{DEFAULT_PORT, url};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::Output;

const VARIABLE: &str = "GSV_BACKUP_PASSPHRASE";
const MIN_CHARS: usize = 8;
const WHAT: &str = "Passphrase of the backup";
/// For the gateway's time zone.
const ZONE_PATIENCE: Duration = Duration::from_millis(500);

pub fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).or_fail(format_args!("find {}", path.display()), "Give an absolute path.")
}

/// Backups are of the state in this machine's folder, and the local config may be for another gateway (rule BK21). `not_done`: what is not
/// done, the end of a sentence. `command`: what does it all the same, after `gsv --url ADDRESS`.
pub fn refuse_elsewhere(context: &Context, layout: &Layout, not_done: &str, command: &str) -> Outcome {
    let config = Config::load()?;
    let named = find_url(&context.global, &config)?;
    let local = Local::look(layout);
    if is_own(&local, layout, &named, Some(&config)) {
        return Ok(());
    }
    let (named, home) = (without_login(&named), layout.home.display());
    let mut next = "Run the command on that gateway's machine. In a Cloudflare account: `gsv stop --all`, then `gsv deploy export FILE`.".to_owned();
    let found = if layout.durable().is_dir() {
        let port = local.state().map(|state| state.port).or_else(|| last_port(layout));
        let own = url(port.unwrap_or(DEFAULT_PORT));
        next = format!("{next} For the state in {home} all the same: `gsv --url {own} {command}`.");
        format!("The state in {home} belongs to another gateway than the one at {named}, so {not_done}.")
    } else {
        format!("The gateway at {named} does not run on this machine with the state in {home}, so {not_done}.")
    };
    Err(Failure {
        next,
        ..Failure::from_reason(errors::BACKUP_NOT_HERE.reason, &found, false)
    })
}

/// Times are shown in the time zone of the gateway's settings, if the gateway answers at once.
pub async fn use_zone_of_gateway(context: &Context) {
    let Ok(account) = context.account() else { return };
    // Connecting is enough.
    if let Ok(Ok(client)) = timeout(ZONE_PATIENCE, account.connect()).await {
        client.close().await;
    }
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
