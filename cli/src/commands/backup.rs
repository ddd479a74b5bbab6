//! `gsv backup` and `gsv restore`: asks for the passphrase, runs the work so that Ctrl-C leaves nothing half done, and reports.

use std::path::{Component, Path};

use serde_json::json;

use super::backup_input::{absolute, interruptible, new_passphrase, passphrase, refuse_elsewhere, use_zone_of_gateway};
use super::backup_schedule;
use super::context::Context;
use crate::args::{Backup, BackupCommand, BackupVerify, Restore};
use crate::backup::archive::file_of;
use crate::backup::make::{self, Made};
use crate::backup::manifest::Manifest;
use crate::backup::restore::{self, Restored};
use crate::backup::verify;
use crate::clean::clean;
use crate::embedded::layout::Layout;
use crate::embedded::up::last_port;
use crate::embedded::{DEFAULT_PORT, ports, sealing_key};
use crate::exit::{Failure, Outcome};
use crate::new_file;
use crate::output::Output;
use crate::paths::{shell, state_dir};
use crate::suggest::nearest;
use crate::units::{self, bytes, duration, millis, time};

pub async fn run(context: &Context, args: Backup) -> Outcome {
    let file = match (&args.command, &args.file) {
        (Some(BackupCommand::Verify(args)), _) => return check(context, args).await,
        (Some(BackupCommand::Schedule(args)), _) => return backup_schedule::run(context, args).await,
        (None, Some(file)) => {
            refuse_word(file)?;
            absolute(file)?
        }
        (None, None) => {
            return Err(Failure::usage(
                "FILE is missing.",
                "Name the file to write: `gsv backup FILE`.",
            ));
        }
    };
    // Before the passphrase is asked for.
    let layout = Layout::find()?;
    refuse_elsewhere(context, &layout, "nothing was saved", &args.typed(&file))?;
    new_file::check(&file, args.force)?;
    let passphrase = new_passphrase(context.out, &args.passphrase)?;
    let (with_secrets, force) = (args.with_secrets, args.force);
    let to = file.clone();
    let made = interruptible(move || {
        let request = make::Request {
            file: &to,
            passphrase: &passphrase,
            with_secrets,
            force,
            unattended: None,
        };
        make::make(&layout, &request)
    });
    report_made(context.out, &file, &made.await?)
}

/// Commands and other words that a person may type in place of a file.
const COMMANDS: [&str; 3] = ["verify", "schedule", "restore"];
const WORDS: [&str; 12] = [
    "now", "list", "ls", "show", "status", "make", "create", "run", "start", "check", "info", "help",
];

/// A word that was meant as a command must not become the name of a file.
fn refuse_word(file: &Path) -> Outcome {
    let Some(word) = file.to_str() else { return Ok(()) };
    let is_bare = file.components().eq([Component::Normal(file.as_os_str())]) && !word.contains('.');
    let meant = nearest(word, COMMANDS);
    if !is_bare || (meant.is_none() && !WORDS.contains(&word)) {
        return Ok(());
    }
    let instead = match meant {
        Some("restore") => "To restore one: `gsv restore FILE`.".to_owned(),
        Some(command) => format!("Did you mean `gsv backup {command}`?"),
        None => "To save the state now: `gsv backup FILE`. For scheduled backups: `gsv backup schedule`.".to_owned(),
    };
    Err(Failure::usage(
        format!("`{word}` is no command of `gsv backup`, and looks like one."),
        format!("{instead} To back up into a file of this name: `gsv backup ./{word}`."),
    ))
}

async fn check(context: &Context, args: &BackupVerify) -> Outcome {
    let file = absolute(&args.file)?;
    file_of(&file)?;
    let passphrase = passphrase(context.out, &args.passphrase)?;
    let path = file.clone();
    let manifest = interruptible(move || verify::verify(&path, &passphrase)).await?;
    let out = context.out;
    use_zone_of_gateway(context).await;
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
    file_of(&file)?;
    let passphrase = passphrase(context.out, &args.passphrase)?;
    let (path, replace) = (file.clone(), args.replace);
    let is_copy = !is_same(&home, &target);
    let restored = interruptible(move || {
        let request = restore::Request {
            file: &path,
            passphrase: &passphrase,
            target: &target,
            replace,
            is_copy,
        };
        restore::restore(&request)
    });
    let restored = restored.await?;
    use_zone_of_gateway(context).await;
    report_restored(context.out, &home, &restored)
}

/// However their paths are written, and whether they exist.
fn is_same(home: &Path, target: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(home) == real(target)
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
        "{} with {}, among them {}",
        units::counted(manifest.files.len() as u64, "file", "files"),
        bytes(manifest.bytes()),
        units::counted(manifest.databases() as u64, "database", "databases")
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
    out.aside(&format!("Check it with: `gsv backup verify {}`", shell(file)));
    Ok(())
}

/// What a restore into a fresh home says (rule BK26). A replaced state was this machine's own, and a copy starts stopped.
fn acts_at_once(restored: &Restored) -> Option<String> {
    let Restored {
        manifest,
        before,
        starts_stopped,
        ..
    } = restored;
    if *starts_stopped || before.is_some() {
        return None;
    }
    Some(format!(
        "the restored gateway acts as soon as it starts. If the gateway of {} on {} still runs, first stop it there for good: `gsv down`, and `gsv service uninstall` where it is a service. Else both answer the same people and run the same jobs",
        clean(&manifest.home),
        clean(&manifest.host)
    ))
}

fn report_restored(out: Output, home: &Path, restored: &Restored) -> Outcome {
    let Restored {
        manifest,
        target,
        before,
        installed,
        opens_secrets,
        healed,
        starts_stopped,
        listen,
    } = restored;
    let document = json!({
        "home": target, "before": before, "madeAt": manifest.made_at, "hasSecrets": manifest.has_secrets,
        "files": manifest.files.len(), "opensSecrets": opens_secrets, "keysAdded": installed.keys, "tokenStored": installed.token,
        "startsStopped": starts_stopped,
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
    if let Some(listen) = listen {
        out.note(&format!(
            "It listens for other machines on {}, as before.",
            listen.address
        ));
    }
    let prefix = if is_same(home, target) {
        String::new()
    } else {
        format!("GSV_HOME={} ", shell(target))
    };
    let layout = Layout { home: target.clone() };
    let port = last_port(&layout).unwrap_or(DEFAULT_PORT);
    let port = if ports::is_free(port) {
        String::new()
    } else {
        format!(" --port {}", ports::free_beside(port))
    };
    out.note(&format!("Start the gateway with: `{prefix}gsv up{port}`"));
    if let Some(warning) = acts_at_once(restored) {
        out.warn(&warning);
    }
    if *starts_stopped {
        out.note(&format!(
            "It starts stopped, so that nothing is done twice: nothing runs by itself and no channel connects. To let it act, run `{prefix}gsv resume` after its start."
        ));
    }
    Ok(())
}
