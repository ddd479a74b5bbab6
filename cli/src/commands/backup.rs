//! `gsv backup` and `gsv restore`: asks for the passphrase, runs the work so that Ctrl-C leaves nothing half done, and reports.

use std::env;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use crate::args::{Backup, BackupCommand, BackupVerify, PassphraseFrom, Restore};
use crate::ask;
use crate::backup::make::{self, Made};
use crate::backup::manifest::Manifest;
use crate::backup::restore::{self, Restored};
use crate::backup::{stop, verify};
use crate::clean::clean;
use crate::embedded::layout::Layout;
use crate::embedded::sealing_key;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::new_file;
use crate::output::Output;
use crate::paths::{shell, state_dir};
use crate::units::{bytes, duration, millis, time};

const VARIABLE: &str = "GSV_BACKUP_PASSPHRASE";
const MIN_CHARS: usize = 8;
const WHAT: &str = "Passphrase of the backup";

pub async fn run(context: &Context, args: Backup) -> Outcome {
    let file = match (args.command, args.file) {
        (Some(BackupCommand::Verify(args)), _) => return check(context, args).await,
        (None, Some(file)) => absolute(&file)?,
        (None, None) => {
            return Err(Failure::usage(
                "FILE is missing.",
                "Name the file to write: `gsv backup FILE`.",
            ));
        }
    };
    // Before the passphrase is asked for.
    new_file::check(&file, args.force)?;
    let layout = Layout::find()?;
    let passphrase = new_passphrase(context.out, &args.passphrase)?;
    let (with_secrets, force) = (args.with_secrets, args.force);
    let to = file.clone();
    let made = interruptible(move || {
        let request = make::Request {
            file: &to,
            passphrase: &passphrase,
            with_secrets,
            force,
        };
        make::make(&layout, &request)
    });
    report_made(context.out, &file, &made.await?)
}

async fn check(context: &Context, args: BackupVerify) -> Outcome {
    let file = absolute(&args.file)?;
    let passphrase = passphrase(context.out, &args.passphrase)?;
    let path = file.clone();
    let manifest = interruptible(move || verify::verify(&path, &passphrase)).await?;
    let out = context.out;
    let size = verify::size(&file);
    out.show(summary(&file, size, &manifest), |_| {
        out.line(&format!("{} is sound: {}.", file.display(), counted(&manifest)));
        out.line(&of(&manifest));
    });
    Ok(())
}

pub async fn restore(context: &Context, args: Restore) -> Outcome {
    let file = absolute(&args.file)?;
    let home = state_dir()?;
    let target = args.into.as_deref().map_or_else(|| Ok(home.clone()), absolute)?;
    let passphrase = passphrase(context.out, &args.passphrase)?;
    let (path, replace) = (file.clone(), args.replace);
    let restored = interruptible(move || {
        let request = restore::Request {
            file: &path,
            passphrase: &passphrase,
            target: &target,
            replace,
        };
        restore::restore(&request)
    });
    report_restored(context.out, &home, &restored.await?)
}

pub(super) fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).or_fail(format_args!("find {}", path.display()), "Give an absolute path.")
}

/// Work that ends at its next step when the user stops it, and cleans up.
pub(super) async fn interruptible<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
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
pub(super) fn passphrase(out: Output, from: &PassphraseFrom) -> Outcome<String> {
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
pub(super) fn new_passphrase(out: Output, from: &PassphraseFrom) -> Outcome<String> {
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

fn summary(file: &Path, size: u64, manifest: &Manifest) -> serde_json::Value {
    json!({
        "file": file, "bytes": size, "madeAt": manifest.made_at, "host": manifest.host, "home": manifest.home,
        "program": manifest.program, "gateway": manifest.gateway, "hasSecrets": manifest.has_secrets,
        "files": manifest.files.len(), "databases": manifest.databases(), "contentBytes": manifest.bytes(),
    })
}

fn counted(manifest: &Manifest) -> String {
    format!(
        "{} files with {}, {} of them databases",
        manifest.files.len(),
        bytes(manifest.bytes()),
        manifest.databases()
    )
}

fn of(manifest: &Manifest) -> String {
    let secrets = if manifest.has_secrets { "with" } else { "without" };
    let (host, home) = (clean(&manifest.host), clean(&manifest.home));
    format!(
        "Made on {} of {home} on {host}, {secrets} secrets.",
        time(manifest.made_at)
    )
}

fn report_made(out: Output, file: &Path, made: &Made) -> Outcome {
    let mut document = summary(file, made.bytes, &made.manifest);
    document["heldMs"] = millis(made.held).into();
    document["leftOut"] = json!(made.left_out);
    out.show(document, |_| out.line(&file.display().to_string()));
    for path in &made.left_out {
        out.warn(&format!(
            "{} is not in the backup: only regular files whose names are UTF-8 are saved",
            clean(path)
        ));
    }
    out.note(&format!(
        "The backup is complete: {}, {} encrypted. The gateway was paused for at most {}.",
        counted(&made.manifest),
        bytes(made.bytes),
        duration(millis(made.held))
    ));
    if !made.manifest.has_secrets {
        out.note(&format!(
            "Stored secrets are sealed in it, and their key is not: keep a copy of {} apart from it, or add --with-secrets.",
            sealing_key::path()?.display()
        ));
    }
    for name in &made.manifest.channels_without_variables {
        out.note(&format!(
            "The backup does not have the variables of the channel {} either.",
            clean(name)
        ));
    }
    out.aside(&format!("Check it with: gsv backup verify {}", shell(file)));
    Ok(())
}

fn report_restored(out: Output, home: &Path, restored: &Restored) -> Outcome {
    let Restored {
        manifest,
        target,
        before,
        installed,
        opens_secrets,
        healed,
    } = restored;
    let document = json!({
        "home": target, "before": before, "madeAt": manifest.made_at, "hasSecrets": manifest.has_secrets,
        "files": manifest.files.len(), "opensSecrets": opens_secrets, "keysAdded": installed.keys, "tokenStored": installed.token,
    });
    out.show(document, |_| out.line(&target.display().to_string()));
    for old in healed {
        out.note(&format!(
            "A restore was interrupted before; the state from before it is in {}.",
            old.display()
        ));
    }
    out.note(&format!("Restored: {}. {}", counted(manifest), of(manifest)));
    if let Some(before) = before {
        out.note(&format!("The state that was there is in {}.", before.display()));
    }
    if installed.keys > 0 {
        out.note(&format!(
            "The backup's key of stored secrets is added to {}.",
            sealing_key::path()?.display()
        ));
    }
    if !opens_secrets {
        out.warn(&format!(
            "the key of the stored secrets is neither in the backup nor in {}. Put a copy of it there; or enter the secrets again after the start: `gsv doctor` names them",
            sealing_key::path()?.display()
        ));
    }
    if !manifest.has_secrets {
        out.note("The first token is not in the backup: `gsv up` makes a new one. Tokens made with `gsv token create` stay valid.");
    }
    for name in &manifest.channels_without_variables {
        out.warn(&format!(
            "the variables of the channel {} are not in the backup; enter them again",
            clean(name)
        ));
    }
    let same = std::fs::canonicalize(home).is_ok_and(|home| home == *target) || home == target;
    let command = if same {
        "gsv up".to_owned()
    } else {
        format!("GSV_HOME={} gsv up", shell(target))
    };
    out.note(&format!("Start the gateway with: {command}"));
    Ok(())
}
