//! `gsv cp -r`: after the listing, each file as a transfer of its own, some at once. What can't be copied is told at the end. The ids
//! follow from the command and the file, so that the same command again continues.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use gsv_node::Ends;
use gsv_protocol::errors;
use gsv_protocol::types::{AgentId, Transfer};
use serde::Serialize;
use tokio::task::JoinSet;

use super::context::Context;
use super::copy_folder_here::make_folders;
use super::copy_listing::{Listing, list_local, list_workspace, workspace_folder};
use super::copy_progress::{Progress, line};
use super::copy_request::{CopyRequest, Endpoint};
use super::copy_run::{Copied, Session, Unconfirmed, lock, stopped};
use super::copy_screen::{is_shown, show};
use super::node::workspace_of;
use crate::args::Copy;
use crate::clean::{one_line, visible};
use crate::config::{Config, Key, check_node_id};
use crate::exit::{Exit, Failure, Outcome};
use crate::paths::{shell, state_dir};
use crate::stop_signal::stop_signal;
use crate::units::{bytes, counted, duration, millis};

/// Files at once. The gateway runs four transfers, and one is left to others.
const AT_ONCE: usize = 3;
/// Problems that are shown.
const SHOWN: usize = 50;
const LOOK: Duration = Duration::from_millis(200);
/// While others use all transfers of the gateway, or this command has sent as many requests as it may in a minute: longer each time.
const BUSY: Duration = Duration::from_millis(500);
const BUSY_MOST: Duration = Duration::from_secs(10);
const RETRYABLE: [&str; 2] = ["transfer.busy", "limit.rate"];
/// Reasons that end the command, because every other file would fail for the same one. `transfer.bad_endpoint` is that of one file, in
/// whose way another one is: what is wrong with the ends themselves was refused before (`check_ends`).
const FATAL: [&str; 5] = [
    "node.offline",
    "node.unknown",
    "gateway.stopped",
    "transfer.unsupported",
    "agent.unknown",
];

#[derive(Default)]
struct Totals {
    /// Of all files, as they move, for the line that shows how far the copy is.
    moved_bytes: AtomicU64,
    /// Of these, what an earlier run had moved.
    resumed_bytes: AtomicU64,
    /// Of the files that are copied.
    copied_bytes: AtomicU64,
    copied: AtomicUsize,
    already: AtomicUsize,
}

/// What `--json` prints, in the names of its first version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    copied: usize,
    /// Copied by an earlier run of the same command, and still there.
    #[serde(rename = "before")]
    already: usize,
    bytes: u64,
    #[serde(rename = "left")]
    failed: Vec<FailedFile>,
    /// Links and things that are not plain files.
    skipped: Vec<String>,
    /// What unfinished copies have left in the source.
    unfinished: Vec<String>,
}
#[derive(Serialize)]
struct FailedFile {
    path: String,
    problem: String,
}

pub async fn run(context: &Context, args: Copy, source: Endpoint, destination: Endpoint) -> Outcome {
    check_ends(&source, &destination)?;
    let config = Config::load()?;
    let own_node = config.get(Key::NodeId).map(OwnNode::find);
    let (source, listed) = listed_workspace(context, source, args.agent.as_ref()).await?;
    let (root, source, destination) = rooted(source, destination, own_node.as_ref())?;
    let account = context.account()?;
    let session = Session::open(&account, |link| {
        Ends::of_program(link, Path::new(&root), true).map_err(|error| {
            Failure::failed(
                format!("{} can't be opened: {error}.", one_line(&root, 200)),
                "Check the permissions of the folder.",
            )
        })
    })
    .await?;
    let session = Arc::new(session);
    let mut listing = match listed {
        Some(listing) => listing,
        None => list_local(Path::new(&root))?,
    };
    if let Endpoint::Local(path) = &destination {
        make_folders(&session, Path::new(path), &mut listing).await;
    }
    let done = copy_all(context, &session, &listing, &args, (&source, &destination)).await;
    if is_shown(context) {
        show(context.out, "");
    }
    session.close().await;
    finished(context, listing, done?, (&source, &destination))
}

/// Refuses two ends between which no file can be copied, before anything is listed.
fn check_ends(source: &Endpoint, destination: &Endpoint) -> Outcome {
    let name = |end: &Endpoint| match end {
        Endpoint::Local(_) => None,
        Endpoint::Remote(place) => Some(place.split(':').next().unwrap_or_default().to_owned()),
    };
    let names = [name(source), name(destination)];
    let is_workspace = |name: &Option<String>| name.as_deref() == Some("gsv");
    let (message, next) = if names.iter().all(is_workspace) {
        (
            "Both ends are in the workspace, and a transfer copies between machines and the workspace.".to_owned(),
            "`gsv cp --help` shows what can be copied.",
        )
    } else if let Some(wrong) = names
        .iter()
        .flatten()
        .find(|name| *name != "gsv" && check_node_id(name).is_err())
    {
        (
            format!("`{}` names no machine and not the workspace.", one_line(wrong, 200)),
            "List the machines: `gsv nodes list`.",
        )
    } else {
        return Ok(());
    };
    Err(Failure {
        next: next.to_owned(),
        ..Failure::from_reason(errors::TRANSFER_BAD_ENDPOINT.reason, &message, false)
    })
}

/// The folder of the workspace with its plain name, and what it has: on a connection of its own, because the folder on this machine is made
/// only when there is something to copy. `None`: the source is not in the workspace.
async fn listed_workspace(
    context: &Context,
    source: Endpoint,
    agent: Option<&AgentId>,
) -> Outcome<(Endpoint, Option<Listing>)> {
    let Endpoint::Remote(place) = &source else {
        return Ok((source, None));
    };
    if !place.starts_with("gsv:") {
        return Ok((source, None));
    }
    let folder = workspace_folder(place);
    let client = context.connect().await?;
    let listing = list_workspace(&client, &folder, agent, context.out).await?;
    client.close().await;
    Ok((Endpoint::Remote(format!("gsv:{folder}")), Some(listing)))
}

/// This machine as a node.
struct OwnNode {
    id: String,
    /// The folder that the agent works in, if it is known.
    workspace: Option<PathBuf>,
}

impl OwnNode {
    fn find(id: &str) -> Self {
        let home = state_dir().ok();
        Self {
            id: id.to_owned(),
            workspace: home.and_then(|home| workspace_of(&home.join("node").join(id))),
        }
    }

    /// A path of a node begins in its workspace, and a path of this machine in the current folder: the same text names another folder.
    fn refuse(&self, source: &Endpoint, destination: &Endpoint) -> Failure {
        let path = source.shown().split_once(':').map_or("", |(_, path)| path);
        let from = self.workspace.as_ref().map(|workspace| workspace.join(path));
        let to = shell(Path::new(destination.shown()));
        let next = match (from, destination) {
            (None, _) => {
                "Write where the folder is on this machine, as in `gsv cp -r ~/gsv/tree gsv:other`.".to_owned()
            }
            // The content, as `gsv cp -r` copies it.
            (Some(from), Endpoint::Local(_)) => format!("Use `cp -r {} {to}`.", shell(&from.join("."))),
            (Some(from), Endpoint::Remote(_)) => format!(
                "Write where the folder is on this machine: `gsv cp -r {} {to}`.",
                shell(&from)
            ),
        };
        Failure::usage(format!("{} is on this machine.", one_line(source.shown(), 200)), next)
    }
}

/// The folder that this program may touch, and both ends with its real name.
fn rooted(
    source: Endpoint,
    destination: Endpoint,
    own_node: Option<&OwnNode>,
) -> Outcome<(String, Endpoint, Endpoint)> {
    if let Some(own) = own_node.filter(|own| source.shown().split(':').next() == Some(own.id.as_str())) {
        return Err(own.refuse(&source, &destination));
    }
    let real = |path: &str| -> Outcome<String> {
        let found = std::fs::canonicalize(path);
        let found = found.map_err(|error| {
            Failure::failed(
                format!("{} can't be read: {error}.", one_line(path, 200)),
                "Name a folder that exists.",
            )
        })?;
        found.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::failed(
                format!(
                    "{} has a name that is not UTF-8, and can't be copied.",
                    one_line(&found.to_string_lossy(), 200)
                ),
                "Rename it.",
            )
        })
    };
    match (source, destination) {
        (Endpoint::Local(path), destination) => {
            let root = real(&path)?;
            if !Path::new(&root).is_dir() {
                return Err(Failure::usage(
                    format!("{} is no folder.", one_line(&path, 200)),
                    "Leave out `-r`.",
                ));
            }
            Ok((root.clone(), Endpoint::Local(root), destination))
        }
        (Endpoint::Remote(place), Endpoint::Local(path)) if place.starts_with("gsv:") => {
            make_folder(Path::new(&path))?;
            let root = real(&path)?;
            Ok((root.clone(), Endpoint::Remote(place), Endpoint::Local(root)))
        }
        (source @ Endpoint::Remote(_), destination) if source.shown().starts_with("gsv:") => {
            Ok(("/".into(), source, destination))
        }
        (source, _) => Err(Failure {
            next: "Run `gsv cp -r FOLDER DESTINATION` on that machine. If it is only a node, invite it as a client first: `gsv invite client` on this machine, and the line that it prints on that one. Or pack the folder into one file there and copy the file.".into(),
            ..Failure::from_reason(
                "transfer.bad_endpoint",
                &format!(
                    "{} is a folder of another machine, whose files the gateway does not list.",
                    one_line(source.shown(), 200)
                ),
                false,
            )
        }),
    }
}

fn make_folder(path: &Path) -> Outcome {
    std::fs::create_dir_all(path).map_err(|error| {
        Failure::failed(
            format!(
                "The folder {} can't be made: {error}.",
                one_line(&path.to_string_lossy(), 200)
            ),
            "Check the path and the permissions of the folder above it.",
        )
    })
}

struct Done {
    totals: Arc<Totals>,
    /// Why each of these files was not copied.
    failed: BTreeMap<String, Failure>,
    took: Duration,
}

async fn copy_all(
    context: &Context,
    session: &Arc<Session>,
    listing: &Listing,
    args: &Copy,
    ends: (&Endpoint, &Endpoint),
) -> Outcome<Done> {
    let begun = Instant::now();
    let totals = Arc::new(Totals::default());
    let out = context.out;
    // Once: the copy may wait for minutes, and silence looks like a hang.
    let told_busy = Arc::new(Once::new());
    let size: u64 = listing.files.iter().map(|file| file.size).sum();
    let shown = is_shown(context);
    let running: Arc<Mutex<BTreeMap<String, CopyRequest>>> = Arc::default();
    let mut failed = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut waiting = listing.files.iter();
    let mut looks = tokio::time::interval(LOOK);
    let mut asked_to_stop = std::pin::pin!(stop_signal());
    loop {
        while tasks.len() < AT_ONCE {
            let Some(file) = waiting.next() else { break };
            let wanted = CopyRequest {
                source: joined(ends.0, &file.name),
                destination: joined(ends.1, &file.name),
                agent: args.agent.clone(),
                force: args.force,
                version: file.version.clone(),
            };
            lock(&running).insert(file.name.clone(), wanted.clone());
            let (session, totals, running, name) = (
                Arc::clone(session),
                Arc::clone(&totals),
                Arc::clone(&running),
                file.name.clone(),
            );
            let told_busy = Arc::clone(&told_busy);
            let on_busy = move || {
                told_busy.call_once(|| {
                    if shown {
                        show(out, "");
                    }
                    out.aside("The gateway runs as many copies as it may, so this one waits for others to end.");
                });
            };
            tasks.spawn(async move {
                let copied = copy_file(&session, &wanted, &totals, on_busy).await;
                lock(&running).remove(&name);
                (name, copied)
            });
        }
        tokio::select! {
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Err(_)) => return Err(Failure::new(Exit::Bug, "A copy ended inside GSV.", "Run the same command again.")),
                Some(Ok((_, Ok(())))) => {}
                Some(Ok((name, Err(failure)))) => {
                    if ends_the_command(&failure) {
                        return Err(failure);
                    }
                    failed.insert(name, failure);
                }
            },
            _ = looks.tick() => {
                if shown {
                    show(out, &progress(&totals, listing.files.len(), size, begun.elapsed(), out.size().0));
                }
            }
            () = &mut asked_to_stop => {
                tasks.shutdown().await;
                let open: Vec<CopyRequest> = lock(&running).values().cloned().collect();
                let mut cancels = JoinSet::new();
                for wanted in open {
                    let session = Arc::clone(session);
                    cancels.spawn(async move { session.cancel(&wanted).await });
                }
                let all = async { cancels.join_all().await.into_iter().all(|is_ended| is_ended) };
                return Err(stopped(all, Unconfirmed::EndsByItself).await);
            }
        }
    }
    Ok(Done {
        totals,
        failed,
        took: begun.elapsed(),
    })
}

/// Whether each other file would fail, too. What ends one transfer, such as a file that changes while it is copied, does not.
fn ends_the_command(failure: &Failure) -> bool {
    let reason = failure.reason.as_deref().unwrap_or_default();
    match failure.exit {
        // A protected file does not affect the others.
        Exit::Auth => !failure.is(&errors::WORKSPACE_PROTECTED),
        Exit::TryLater if !reason.starts_with("transfer.") => true,
        _ => FATAL.contains(&reason),
    }
}

async fn copy_file(session: &Session, wanted: &CopyRequest, totals: &Totals, on_busy: impl Fn()) -> Outcome {
    let counted = AtomicU64::new(0);
    let is_first = AtomicBool::new(true);
    let moved = |seen: &Transfer| {
        let before = counted.fetch_max(seen.done_bytes, Ordering::Relaxed);
        let more = seen.done_bytes.saturating_sub(before);
        totals.moved_bytes.fetch_add(more, Ordering::Relaxed);
        if is_first.swap(false, Ordering::Relaxed) {
            totals.resumed_bytes.fetch_add(more, Ordering::Relaxed);
        }
    };
    let mut pause = BUSY;
    loop {
        match session.copy(wanted, true, &moved).await {
            Ok(Copied::Now(transfer)) => {
                totals.copied.fetch_add(1, Ordering::Relaxed);
                let size = transfer.size_bytes.unwrap_or(0);
                totals.copied_bytes.fetch_add(size, Ordering::Relaxed);
                return Ok(());
            }
            Ok(Copied::Already) => {
                totals.already.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Err(failure)
                if failure
                    .reason
                    .as_deref()
                    .is_some_and(|reason| RETRYABLE.contains(&reason)) =>
            {
                if failure.is(&errors::TRANSFER_BUSY) {
                    on_busy();
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(BUSY_MOST);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn joined(end: &Endpoint, name: &str) -> Endpoint {
    let join = |base: &str| match base {
        base if base.ends_with(':') => format!("{base}{name}"),
        base => format!("{}/{name}", base.trim_end_matches('/')),
    };
    match end {
        Endpoint::Local(base) => Endpoint::Local(join(base)),
        Endpoint::Remote(base) => Endpoint::Remote(join(base)),
    }
}

fn progress(totals: &Totals, files: usize, size: u64, took: Duration, columns: usize) -> String {
    let ended = totals.copied.load(Ordering::Relaxed) + totals.already.load(Ordering::Relaxed);
    let count = format!("{ended} of {files} files");
    if size == 0 {
        return count;
    }
    let how_far = Progress {
        done: totals.moved_bytes.load(Ordering::Relaxed).min(size),
        size,
        from: totals.resumed_bytes.load(Ordering::Relaxed),
        took,
    };
    format!("{count}  {}", line(how_far, columns.saturating_sub(count.len() + 2)))
}

fn finished(context: &Context, listing: Listing, done: Done, (source, destination): (&Endpoint, &Endpoint)) -> Outcome {
    let Listing {
        mut failed,
        skipped,
        unfinished,
        ..
    } = listing;
    let next = next_of(failed.is_empty(), &done.failed);
    failed.extend(done.failed.into_iter().map(|(name, failure)| (name, failure.message)));
    let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let report = Report {
        copied: load(&done.totals.copied),
        already: load(&done.totals.already),
        bytes: done.totals.copied_bytes.load(Ordering::Relaxed),
        failed: failed
            .iter()
            .map(|(path, problem)| FailedFile {
                path: path.clone(),
                problem: problem.clone(),
            })
            .collect(),
        skipped,
        unfinished,
    };
    let earlier = match report.already {
        0 => String::new(),
        1 => ", 1 was copied by an earlier run".to_owned(),
        some => format!(", {some} were copied by an earlier run"),
    };
    let words = format!(
        "{} copied to {}: {}, {} in {}{earlier}",
        one_line(source.shown(), 200),
        one_line(destination.shown(), 200),
        counted(report.copied as u64, "file", "files"),
        bytes(report.bytes),
        duration(millis(done.took)),
    );
    context.out.done(&report, &words);
    for (why, names) in [
        ("because only plain files and folders are", &report.skipped),
        ("because unfinished copies have left them", &report.unfinished),
    ] {
        let Some(first) = names.first() else { continue };
        let more = match names.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        context
            .out
            .aside(&format!("Not copied, {why}: {}{more}.", one_line(first, 200)));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let count = failed.len();
    let mut lines: Vec<String> = failed
        .iter()
        .take(SHOWN)
        .map(|(path, why)| format!("{}: {}", visible(path), one_line(why, 300)))
        .collect();
    if count > SHOWN {
        lines.push(format!("and {} more; `--json` lists all", count - SHOWN));
    }
    let what = if count == 1 {
        "1 file was".to_owned()
    } else {
        format!("{count} files were")
    };
    Err(Failure::failed(format!("{what} not copied."), next).with_lines(lines))
}

/// What to do about the files that were not copied: what their errors say, when that is one thing for all.
fn next_of(are_all: bool, failed: &BTreeMap<String, Failure>) -> String {
    let mut steps = failed.values().map(|failure| failure.next.as_str());
    match steps.next() {
        Some(first) if are_all && !first.is_empty() && steps.all(|step| step == first) => {
            format!("{first} Then run the same command again: it continues.")
        }
        _ => "Solve what is listed, then run the same command again: it continues.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf14_a_file_keeps_its_place_below_the_destination() {
        let to = |end: Endpoint| joined(&end, "a/x").shown().to_owned();
        assert_eq!(to(Endpoint::Remote("gsv:in".into())), "gsv:in/a/x");
        assert_eq!(to(Endpoint::Remote("laptop:".into())), "laptop:a/x");
        assert_eq!(to(Endpoint::Local("/home/me/in/".into())), "/home/me/in/a/x");
    }

    #[test]
    fn tf14_a_file_that_changes_while_it_is_copied_ends_no_other_copy() {
        let ends = |reason: &str| ends_the_command(&Failure::from_reason(reason, "", true));
        for reason in [
            "transfer.source_changed",
            "transfer.checksum",
            "transfer.interrupted",
            "file.exists",
            "transfer.bad_endpoint",
            "workspace.protected",
            "workspace.conflict",
        ] {
            assert!(!ends(reason), "{reason}");
        }
        for reason in [
            "node.offline",
            "gateway.stopped",
            "link.unreachable",
            "auth.required",
            "auth.forbidden",
            "transfer.unsupported",
        ] {
            assert!(ends(reason), "{reason}");
        }
    }

    #[test]
    fn tf14_what_to_do_about_all_files_is_what_their_one_error_says() {
        let failed = |next: &str| Failure::failed("It is protected.", next);
        let says = |are_all: bool, steps: [&str; 2]| {
            let failed = ["a", "b"].map(str::to_owned).into_iter().zip(steps.map(failed));
            next_of(are_all, &failed.collect())
        };
        let skill = "Install a skill: `gsv skills install FOLDER`.";
        assert_eq!(
            says(true, [skill, skill]),
            "Install a skill: `gsv skills install FOLDER`. Then run the same command again: it continues."
        );
        for (are_all, steps) in [(false, [skill, skill]), (true, [skill, "Rename it."]), (true, ["", ""])] {
            assert!(says(are_all, steps).starts_with("Solve what is listed"), "{steps:?}");
        }
    }

    #[test]
    fn tf14_ends_that_fit_no_file_are_refused_before_anything_moves() {
        let checked = |source: &str, destination: &str| {
            check_ends(&Endpoint::Remote(source.into()), &Endpoint::Remote(destination.into()))
        };
        for (source, destination, why) in [
            ("gsv:a", "gsv:b", "Both ends are in the workspace"),
            ("gsv:a", "my laptop:b", "`my laptop` names no machine"),
            ("-x:a", "gsv:b", "`-x` names no machine"),
        ] {
            let refused = checked(source, destination).unwrap_err();
            assert!(refused.message.contains(why), "{refused:?}");
            assert_eq!(
                (refused.exit, refused.reason.as_deref()),
                (Exit::Usage, Some("transfer.bad_endpoint"))
            );
        }
        assert_eq!(checked("gsv:a", "laptop:b"), Ok(()));
        assert_eq!(
            check_ends(&Endpoint::Local("/a".into()), &Endpoint::Remote("gsv:b".into())),
            Ok(())
        );
    }

    fn own_node(workspace: Option<&str>) -> OwnNode {
        OwnNode {
            id: "desk".into(),
            workspace: workspace.map(PathBuf::from),
        }
    }

    #[test]
    fn tf14_a_folder_of_another_machine_is_refused_before_anything_moves() {
        let refused = rooted(
            Endpoint::Remote("laptop:photos".into()),
            Endpoint::Remote("gsv:photos".into()),
            Some(&own_node(None)),
        );
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.exit, refused.reason.as_deref()),
            (Exit::Usage, Some("transfer.bad_endpoint"))
        );
        assert!(refused.next.contains("on that machine"), "{}", refused.next);
    }

    #[test]
    fn tf14_the_own_machine_s_name_is_answered_with_the_folder_that_it_means() {
        let refused = |workspace: Option<&str>, source: &str, destination: Endpoint| {
            let refused = rooted(Endpoint::Remote(source.into()), destination, Some(&own_node(workspace)));
            let refused = refused.unwrap_err();
            assert_eq!(refused.message, format!("{source} is on this machine."));
            refused.next
        };
        let far = || Endpoint::Remote("gsv:other".into());
        assert_eq!(
            refused(Some("/home/me/my work"), "desk:tree", far()),
            "Write where the folder is on this machine: `gsv cp -r '/home/me/my work/tree' gsv:other`."
        );
        assert_eq!(
            refused(Some("/w"), "desk:/srv/tree", Endpoint::Local("/to".into())),
            "Use `cp -r /srv/tree/. /to`."
        );
        let unknown = refused(None, "desk:tree", far());
        assert!(unknown.contains("as in `gsv cp -r ~/gsv/tree gsv:other`"), "{unknown}");
    }

    #[test]
    fn tf14_a_report_keeps_the_names_of_its_first_version() {
        let report = Report {
            copied: 1,
            already: 2,
            bytes: 3,
            failed: vec![FailedFile {
                path: "a".into(),
                problem: "b".into(),
            }],
            skipped: vec![],
            unfinished: vec![],
        };
        let wire = serde_json::json!({"copied": 1, "before": 2, "bytes": 3, "left": [{"path": "a", "problem": "b"}], "skipped": [],
            "unfinished": []});
        assert_eq!(serde_json::to_value(&report).unwrap(), wire);
    }
}
