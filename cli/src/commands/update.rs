//! `gsv update`: takes a newer release, or goes back to the previous one, and restarts what runs (rules UP8 to UP14).

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use semver::Version;
use serde_json::{Value, json};

use super::context::Context;
use super::node_service;
use crate::args::Update;
use crate::config::{Config, Key};
use crate::embedded::down;
use crate::embedded::layout::Layout;
use crate::embedded::lock::{self, Lock};
use crate::embedded::runtime::Runtime;
use crate::embedded::state::{Found, PATIENCE, State};
use crate::embedded::upgrade::{self, MOST_ROLLED_BACK};
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;
use crate::service::Phase;
use crate::units::bytes;
use crate::update::address::{self, Address};
use crate::update::install::{Folder, Installation};
use crate::update::manifest::{Channel, Manifest, platform};
use crate::update::signature::Keys;
use crate::update::{fetch, seen, unpack};

const MAX_MANIFEST_BYTES: usize = 256 * 1024;
const MAX_SIGNATURE_BYTES: usize = 4 * 1024;

pub async fn run(context: &Context, args: Update) -> Outcome {
    if args.rollback {
        return rollback(context.out, args.with_state);
    }
    let config = Config::load()?;
    let channel = args
        .channel
        .or_else(|| Channel::parse(config.get(Key::UpdateChannel)?))
        .unwrap_or_default();
    let place = address::choose(args.from.as_deref(), config.get(Key::UpdateUrl))?;
    let address = Address::parse(&place).map_err(|problem| {
        Failure::usage(
            format!("The address of the releases is not valid: {problem}."),
            "Correct `--from`, `GSV_RELEASE_URL` or `gsv local-config set update.url ADDRESS`: an absolute folder or an https address.",
        )
    })?;
    let keys = Keys::find(config.get(Key::UpdateSigner))?;
    let manifest = latest(&address, channel, &keys).await?;
    manifest.check_fresh(&seen::find(channel, &place)?)?;
    let installation = Installation::find()?;
    if args.check {
        let installed = match &installation {
            Installation::Archive(folder) => installed(folder),
            _ => version(),
        };
        check(context.out, &manifest, channel, &installed, &installation);
        return Ok(());
    }
    let folder = installation.folder()?;
    let _lock = folder.lock()?;
    let installed = installed(&folder);
    let is_newer = manifest.is_newer_than(&installed)?;
    seen::note(channel, &place, &manifest)?;
    if !is_newer {
        // A killed update may have left an older gateway running.
        let restarted = restart(context.out, &folder)?;
        context.out.show(result(&installed, &installed, &restarted), |_| {
            context.out.note(&format!(
                "This is the newest version of the channel `{}`: {installed}.",
                channel.as_str()
            ));
        });
        return Ok(());
    }
    take(context.out, &address, &manifest, &folder).await?;
    let restarted = restart_or_return(context.out, &folder, &installed, &manifest.version)?;
    context
        .out
        .show(result(&installed, &manifest.version, &restarted), |_| {
            context.out.note(&format!(
                "GSV is updated from version {installed} to {}.",
                manifest.version
            ));
            context.out.aside(&format!(
                "The previous version is kept in {}: `gsv update --rollback` brings it back.",
                folder.previous().display()
            ));
        });
    Ok(())
}

/// The version of this program.
fn version() -> Version {
    Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or_else(|_| Version::new(0, 0, 0))
}

/// In the folder: another update may have ended since this program began.
fn installed(folder: &Folder) -> Version {
    folder.release().map_or_else(version, |release| release.version)
}

fn result(from: &Version, to: &Version, restarted: &Value) -> Value {
    json!({ "from": from.to_string(), "to": to.to_string(), "changed": from != to, "restarted": restarted })
}

/// The channel's manifest. Its signature is verified before anything of it is read.
async fn latest(address: &Address, channel: Channel, keys: &Keys) -> Outcome<Manifest> {
    let name = channel.file();
    let content = fetch::small(&address.file(&name), MAX_MANIFEST_BYTES).await?;
    let signature = fetch::small(&address.file(&format!("{name}.minisig")), MAX_SIGNATURE_BYTES).await?;
    keys.verify(&name, &content, &signature)?;
    Manifest::parse(channel, &content)
}

fn check(out: Output, manifest: &Manifest, channel: Channel, installed: &Version, installation: &Installation) {
    let is_newer = manifest.version > *installed;
    let document = json!({
        "installed": installed.to_string(), "available": manifest.version.to_string(), "isNewer": is_newer,
        "channel": channel.as_str(), "installedBy": installation.name(),
    });
    out.show(document, |_| {
        if is_newer {
            out.line(&format!(
                "Version {} is available; this is {installed}. Take it with `gsv update`.",
                manifest.version
            ));
        } else {
            out.line(&format!(
                "This is version {installed}; the channel `{}` has {}.",
                channel.as_str(),
                manifest.version
            ));
        }
    });
}

/// Fetches, checks and unpacks the release beside the current one, and puts it in its place.
async fn take(out: Output, address: &Address, manifest: &Manifest, folder: &Folder) -> Outcome {
    folder.check_alone()?;
    let file = manifest.file(&platform())?;
    let work = folder.make_work()?;
    out.note(&format!(
        "Reading version {} ({}).",
        manifest.version,
        bytes(file.size_bytes)
    ));
    fetch::verified(&address.file(&file.name), file, &work.archive()).await?;
    unpack::unpack(&work.archive(), &work.new_release())?;
    work.check(&manifest.version)?;
    folder.replace(&work)
}

fn rollback(out: Output, with_state: bool) -> Outcome {
    let folder = Installation::find()?.folder()?;
    let _lock = folder.lock()?;
    let installed = installed(&folder);
    let earlier = folder.earlier(&installed)?;
    let layout = Layout::find()?;
    let runs = lock::is_held(&layout.supervisor_lock());
    let kept = if with_state { restore_state(&layout)? } else { None };
    folder.exchange()?;
    let restarted = if with_state && runs {
        gateway(&folder, &["up"]).map(|()| json!({ "gateway": true, "nodes": restart_nodes(out, &folder) }))
    } else {
        restart_or_return(out, &folder, &installed, &earlier)
    };
    let restarted = restarted.map_err(|failure| hint_at_state(&layout, with_state, failure))?;
    out.show(result(&installed, &earlier, &restarted), |_| {
        out.note(&format!("GSV is back from version {installed} to {earlier}."));
        if let Some(kept) = kept {
            out.aside(&format!(
                "What came since the update is kept in {}. GSV never removes it, and keeps at most {MOST_ROLLED_BACK} such states.",
                kept.display()
            ));
        }
    });
    Ok(())
}

fn hint_at_state(layout: &Layout, with_state: bool, failure: Failure) -> Failure {
    if with_state || upgrade::copied(layout).is_none() {
        return failure;
    }
    let next = "To go back with the state from before the update, run `gsv update --rollback --with-state`.";
    Failure {
        next: format!("{next} {}", failure.next),
        ..failure
    }
}

/// Stops the gateway, and puts back the copy of the state that the first start of this version made. Returns where the other state is.
fn restore_state(layout: &Layout) -> Outcome<Option<PathBuf>> {
    if upgrade::copied(layout).is_none() {
        return Err(Failure::failed(
            "There is no copy of the state from before the update, so nothing was changed: it is kept until the second start of a version.",
            "Run `gsv update --rollback` to go back with the state as it is, or `gsv restore` for a backup.",
        ));
    }
    upgrade::check_undo(layout)?;
    down::stop(layout)?;
    let _command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    if lock::is_held(&layout.supervisor_lock()) {
        return Err(Failure::later(
            "The gateway was started again meanwhile.",
            "Run the command again.",
        ));
    }
    upgrade::undo(layout)
}

/// Restarts what runs. When the gateway does not start with the release `new`, `old` comes back.
fn restart_or_return(out: Output, folder: &Folder, old: &Version, new: &Version) -> Outcome<Value> {
    let failure = match restart(out, folder) {
        Ok(restarted) => return Ok(restarted),
        Err(failure) => failure,
    };
    let back = folder.exchange().and_then(|()| gateway(folder, &["up"]));
    let then = match &back {
        Ok(()) => format!("Version {old} is back and runs."),
        Err(again) => format!("Version {old} is back, and does not start either: {}", again.message),
    };
    Err(Failure::failed(
        format!("The gateway does not start with version {new}. {then}"),
        "Report what the lines above say to those who publish the releases.",
    )
    .with_lines(std::iter::once(failure.message).chain(failure.lines).collect()))
}

/// Restarts a gateway of this machine that runs another version than the one of the folder, and the nodes that run as services.
fn restart(out: Output, folder: &Folder) -> Outcome<Value> {
    let layout = Layout::find()?;
    let wanted = Runtime::open(&folder.runtime())?.manifest.version;
    let running = match State::read(&layout.state()) {
        Found::State(state) if lock::is_held(&layout.supervisor_lock()) => Some(state.version),
        _ => None,
    };
    let is_other = running.is_some_and(|running| running != wanted);
    if is_other {
        out.note("Restarting the gateway.");
        gateway(folder, &["down"])?;
        gateway(folder, &["up"])?;
    }
    // A machine that has joined another gateway has a node alone.
    let nodes = restart_nodes(out, folder);
    Ok(json!({ "gateway": is_other, "nodes": nodes }))
}

/// The nodes that were restarted. A node that does not start is said: it is a service, which tries again.
fn restart_nodes(out: Output, folder: &Folder) -> Vec<String> {
    let ids = node_service::installed().unwrap_or_default();
    ids.into_iter()
        .filter(|id| {
            let found = node_service::service(id).and_then(|service| service.find());
            found.is_ok_and(|found| found.state.phase == Phase::Running)
        })
        .filter(|id| {
            let restarted = gateway(folder, &["node", "stop", "--id", id])
                .and_then(|()| gateway(folder, &["node", "start", "--id", id]));
            restarted
                .as_ref()
                .err()
                .into_iter()
                .for_each(|failure| out.warn(&failure.message));
            restarted.is_ok()
        })
        .collect()
}

/// Runs a command of the program in the folder, with the environment of this one.
fn gateway(folder: &Folder, args: &[impl AsRef<OsStr>]) -> Outcome {
    let shown: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
    let shown = format!("gsv {}", shown.join(" "));
    let ran = Command::new(folder.program())
        .args(args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .or_fail(format_args!("run `{shown}`"), "Run it by hand.")?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let lines: Vec<String> = said.lines().map(crate::clean::clean).collect();
    Err(Failure::failed(format!("`{shown}` failed."), format!("Run `{shown}` by hand.")).with_lines(lines))
}
