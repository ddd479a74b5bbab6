//! `gsv backup schedule`: sets, shows and ends scheduled backups, and the process that makes one. The supervisor of the gateway starts
//! that process (`embedded/backups.rs`).

use std::process::ExitCode;
use std::time::Duration;

use gsv_protocol::errors;
use gsv_protocol::methods::BackupReport;
use gsv_protocol::types::BackupReportParams;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::backup_input::{absolute, interruptible, new_passphrase, refuse_elsewhere, use_zone_of_gateway};
use super::context::{Context, block_on};
use super::doctor_report::Report;
use super::local::Local;
use super::own_gateway::is_own;
use crate::args::{BackupSchedule, Global};
use crate::backup::record::{Kept, Record, due_at, problems};
use crate::backup::schedule::Schedule;
use crate::backup::scheduled;
use crate::clean::{clean, one_line};
use crate::client::Account;
use crate::config::Config;
use crate::embedded::cluster::Cluster;
use crate::embedded::layout::Layout;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::{Output, report_to_parent};
use crate::units::{ago, bytes, counted, millis, now_ms, time, until};

const DAY_MS: u64 = 86_400_000;
const KEEP: u32 = 7;
const ID_CHARS: usize = 12;
const NEXT_IN_CLUSTER: &str =
    "Keep the state of the cluster with `gsv stop --all` and `gsv deploy export FILE`, then `gsv resume`.";
/// The owner is told by the gateway, which may be starting. What it did not answer is told again with the next attempt.
const REPORT_PATIENCE: Duration = Duration::from_secs(20);
/// A low priority: work that a person waits for comes first.
const NICE: i32 = 10;

pub async fn run(context: &Context, args: &BackupSchedule) -> Outcome {
    let layout = Layout::find()?;
    let current = Schedule::read(&layout);
    if args.off {
        refuse_elsewhere(context, &layout, "no schedule was ended", "backup schedule --off")?;
        return end(context.out, &layout, current?);
    }
    if args.only_shows() {
        if let Some(schedule) = current? {
            use_zone_of_gateway(context).await;
            show(context.out, &layout, &schedule);
        } else {
            refuse(context, &layout, args)?;
            none(context.out);
        }
        return Ok(());
    }
    refuse(context, &layout, args)?;
    // A damaged setting is replaced.
    let before = current.ok().flatten();
    let schedule = wanted(context.out, args, before.as_ref())?;
    scheduled::choose(&layout, &schedule)?;
    schedule.write(&layout)?;
    let is_first = before.as_ref().is_none_or(|before| before.id != schedule.id);
    let has_new_passphrase = before
        .as_ref()
        .is_none_or(|before| before.passphrase != schedule.passphrase);
    if let Some(before) = before.filter(|before| before.id != schedule.id) {
        let _ = std::fs::remove_file(before.mark());
        context.out.note(&format!(
            "Backups that were made before stay in {}, and none of them is removed any more.",
            before.folder.display()
        ));
    }
    let mut record = Record::read(&layout, &schedule);
    if record.retry_now() {
        record.write(&layout)?;
    }
    let tells = tell_supervisor(&layout);
    use_zone_of_gateway(context).await;
    show(context.out, &layout, &schedule);
    context.out.note(match tells {
        Told::Now if is_first => "The first backup is being made now; `gsv backup schedule` shows how it went.",
        Told::Now => "The gateway knows the new schedule.",
        Told::NotRunning => {
            "Backups are made while the gateway runs: `gsv up` starts it, `gsv service install` keeps it running."
        }
        Told::TooOld => {
            "The running gateway is an older version that makes no backups by itself: run `gsv down && gsv up`."
        }
    });
    if has_new_passphrase {
        context
            .out
            .note("Keep the passphrase elsewhere too: a restore on another machine needs it.");
    }
    Ok(())
}

/// The schedule that the arguments ask for, from what it was.
fn wanted(out: Output, args: &BackupSchedule, before: Option<&Schedule>) -> Outcome<Schedule> {
    let folder = match (&args.to, before) {
        (Some(folder), _) => absolute(folder)?,
        (None, Some(before)) => before.folder.clone(),
        (None, None) => {
            return Err(Failure::usage(
                "No backups are scheduled, and --to is missing.",
                "Name the folder: `gsv backup schedule --to FOLDER`.",
            ));
        }
    };
    let same = before.filter(|before| before.folder == folder);
    let asks = args.new_passphrase || args.passphrase.passphrase_stdin;
    let passphrase = match before {
        Some(before) if !asks => before.passphrase.clone(),
        _ => Schedule::seal(&new_passphrase(out, &args.passphrase)?)?,
    };
    let with_secrets = args.with_secrets || (before.is_some_and(|before| before.with_secrets) && !args.without_secrets);
    let now = now_ms();
    Ok(Schedule {
        id: same.map_or_else(fresh_id, |same| same.id.clone()),
        folder,
        every_ms: args
            .every
            .as_ref()
            .map(|every| millis(every.time))
            .or(before.map(|before| before.every_ms))
            .unwrap_or(DAY_MS),
        keep: args.keep.or(before.map(|before| before.keep)).unwrap_or(KEEP),
        with_secrets,
        since: same.map_or(now, |same| same.since),
        passphrase,
    })
}

fn fresh_id() -> String {
    let id = ulid::Ulid::generate().to_string().to_lowercase();
    // The beginning is the time.
    id[id.len() - ID_CHARS..].to_owned()
}

/// A schedule is for the gateway whose files are here.
fn refuse(context: &Context, layout: &Layout, args: &BackupSchedule) -> Outcome {
    refuse_elsewhere(context, layout, "its backups can't be scheduled here", &args.typed())?;
    if !layout.durable().is_dir() {
        let what = format!(
            "There is no gateway in {}, so no backups can be scheduled.",
            layout.home.display()
        );
        return Err(Failure::from_reason(errors::BACKUP_NOT_HERE.reason, &what, false));
    }
    Cluster::refuse(layout, "No backups are scheduled", NEXT_IN_CLUSTER)
}

enum Told {
    Now,
    NotRunning,
    TooOld,
}

fn tell_supervisor(layout: &Layout) -> Told {
    match Local::look(layout) {
        Local::Running(state) if state.schedules_backups => {
            state.supervisor().schedule_changed();
            Told::Now
        }
        Local::Running(_) => Told::TooOld,
        _ => Told::NotRunning,
    }
}

fn none(out: Output) {
    out.show(json!({ "scheduled": false }), |_| {
        out.aside("No backups are scheduled. Schedule them: `gsv backup schedule --to FOLDER`.");
    });
}

fn end(out: Output, layout: &Layout, current: Option<Schedule>) -> Outcome {
    let Some(schedule) = current else {
        none(out);
        return Ok(());
    };
    let record = Record::read(layout, &schedule);
    schedule.remove(layout)?;
    // A backup under way ends.
    tell_supervisor(layout);
    let words = match record.kept.len() {
        0 => "No backups are scheduled any more.".to_owned(),
        count => format!(
            "No backups are scheduled any more. {} in {}.",
            counted(count as u64, "backup stays", "backups stay"),
            schedule.folder.display()
        ),
    };
    out.done(
        &json!({ "scheduled": false, "folder": schedule.folder, "kept": record.kept }),
        &words,
    );
    Ok(())
}

fn show(out: Output, layout: &Layout, schedule: &Schedule) {
    let now = now_ms();
    let record = Record::read(layout, schedule);
    let was_killed = record.was_killed(layout, schedule);
    let next = match record.making {
        Some(_) if !was_killed => "being made now".to_owned(),
        _ => next_words(schedule, &record, now),
    };
    out.show(document(schedule, &record, now), |_| {
        out.fields([
            ("every", Some(schedule.interval())),
            ("to", Some(schedule.folder.display().to_string())),
            ("keep", Some(format!("{} ({} there)", schedule.keep, record.kept.len()))),
            (
                "secrets",
                Some(if schedule.with_secrets { "included" } else { "left out" }.to_owned()),
            ),
            (
                "last",
                Some(
                    record
                        .last()
                        .map_or_else(|| "none yet".to_owned(), |last| last_words(last, now)),
                ),
            ),
            ("next", Some(next)),
        ]);
    });
    for (found, next) in found(schedule, &record, now, was_killed) {
        out.warn(&format!(
            "{} {}",
            one_line(&found, usize::MAX),
            one_line(&next, usize::MAX)
        ));
    }
}

/// What is wrong, and what to do. A folder that is gone is a problem now, and not when the next backup fails.
fn found(schedule: &Schedule, record: &Record, now: u64, was_killed: bool) -> Vec<(String, String)> {
    let mut found = problems(schedule, record, now, was_killed);
    if found.is_empty() && !schedule.folder.is_dir() {
        found.push((
            format!(
                "The folder of the scheduled backups is not there now: {}.",
                schedule.folder.display()
            ),
            "Bring it back, or choose another one: `gsv backup schedule --to FOLDER`.".to_owned(),
        ));
    }
    found
}

fn last_words(last: &Kept, now: u64) -> String {
    let name = one_line(&last.name, usize::MAX);
    format!("{name} ({}, {})", ago(last.began_at, now), bytes(last.bytes))
}

fn next_words(schedule: &Schedule, record: &Record, now: u64) -> String {
    let due = due_at(schedule, record, now);
    if due <= now {
        "now, while the gateway runs".to_owned()
    } else {
        format!("{} ({})", until(due, now), time(due))
    }
}

/// For programs. The passphrase is not part of it.
fn document(schedule: &Schedule, record: &Record, now: u64) -> Value {
    json!({
        "scheduled": true, "folder": schedule.folder, "everyMs": schedule.every_ms, "keep": schedule.keep,
        "withSecrets": schedule.with_secrets, "since": schedule.since, "kept": record.kept, "nextAt": due_at(schedule, record, now),
        "failure": record.failures, "notRemoved": record.not_removed,
    })
}

/// What `gsv status` shows of this machine's schedule.
pub struct Standing {
    pub json: Value,
    pub line: String,
    /// Sentences.
    pub attention: Vec<String>,
}

/// `None`: nothing is scheduled.
pub fn standing(layout: &Layout) -> Option<Standing> {
    let now = now_ms();
    let schedule = match Schedule::read(layout) {
        Ok(schedule) => schedule?,
        Err(failure) => {
            return Some(Standing {
                json: json!({ "scheduled": true, "failure": { "message": failure.message, "next": failure.next } }),
                line: "their schedule can't be read".to_owned(),
                attention: vec![format!("{} {}", failure.message, failure.next)],
            });
        }
    };
    let record = Record::read(layout, &schedule);
    let last = record.last().map_or_else(
        || "none yet".to_owned(),
        |last| format!("the last {}", ago(last.began_at, now)),
    );
    let line = format!("every {} to {}, {last}", schedule.interval(), schedule.folder.display());
    let sentences = found(&schedule, &record, now, record.was_killed(layout, &schedule));
    let sentences = sentences
        .iter()
        .map(|(found, next)| one_line(&format!("{found} {next}"), usize::MAX));
    Some(Standing {
        json: document(&schedule, &record, now),
        line: one_line(&line, usize::MAX),
        attention: sentences.collect(),
    })
}

/// For `gsv doctor`. Says nothing where nothing is scheduled.
pub fn check(report: &mut Report, layout: &Layout) {
    const NAME: &str = "backups";
    let schedule = match Schedule::read(layout) {
        Ok(None) => return,
        Ok(Some(schedule)) => schedule,
        Err(failure) => return report.failure(NAME, failure),
    };
    let now = now_ms();
    let record = Record::read(layout, &schedule);
    let found = found(&schedule, &record, now, record.was_killed(layout, &schedule));
    if found.is_empty() {
        let last = record
            .last()
            .map_or_else(|| "none yet".to_owned(), |last| last_words(last, now));
        return report.ok(NAME, format!("every {}, the last: {last}", schedule.interval()));
    }
    for (found, next) in found {
        report.fail(NAME, found, next);
    }
}

/// The process that makes the scheduled backup. Its lines go into the gateway's log.
pub fn make() -> ExitCode {
    // Also where that is not possible, a backup is made.
    let _ = rustix::process::nice(NICE);
    let made = block_on(async {
        // While the owner is told, too: a stop must not be followed by a backup.
        let mut stop = signal(SignalKind::terminate()).or_fail("listen for signals", "Run `gsv down && gsv up`.")?;
        let layout = Layout::find()?;
        let place = layout.clone();
        let Some(mut begun) = interruptible(move || scheduled::begin(&place)).await? else {
            return Ok(());
        };
        // Before the attempt: this process may be killed, too.
        tokio::select! {
            biased;
            _ = stop.recv() => return Err(Failure::interrupted()),
            () = tell_owner(&layout, &mut begun.record) => {}
        }
        let mut attempt = interruptible(move || Ok(begun.make())).await?;
        tokio::select! {
            biased;
            _ = stop.recv() => {}
            () = tell_owner(&layout, &mut attempt.record) => {}
        }
        for path in &attempt.left_out {
            report_to_parent(&format!(
                "left out, as it is no regular file or its name is not UTF-8: {}",
                clean(path)
            ));
        }
        let kept = attempt.result?;
        let removed = attempt
            .record
            .not_removed
            .map(|why| format!("; an older one was not removed: {why}"));
        report_to_parent(&format!(
            "{} is made: {}{}",
            kept.name,
            bytes(kept.bytes),
            removed.unwrap_or_default()
        ));
        Ok(())
    });
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let words = if failure.exit == Exit::Interrupted {
                "stopped"
            } else {
                &failure.message
            };
            report_to_parent(&format!("no backup was made: {words} {}", failure.next));
            ExitCode::from(failure.exit.code())
        }
    }
}

/// A notification about failures, or that they are over. Without a token of this gateway, or before it answers, the record has what was
/// not told.
async fn tell_owner(layout: &Layout, record: &mut Record) {
    let Some(unreported) = record.unreported else { return };
    let problem = record.failures.as_ref().filter(|_| !unreported.over).map(|failures| {
        format!(
            "The scheduled backup failed: {} {} It is tried again; `gsv backup schedule` shows when.",
            failures.message, failures.next
        )
    });
    let params = BackupReportParams {
        since: unreported.since,
        problem,
    };
    let report = async {
        let account = Account::find(&Global::default(), &Config::load()?)?;
        if !is_own(&Local::look(layout), layout, &account.url, None) {
            return Ok(false);
        }
        let client = account.connect().await?;
        client.call::<BackupReport>(params).await?;
        client.close().await;
        Ok::<_, Failure>(true)
    };
    if matches!(timeout(REPORT_PATIENCE, report).await, Ok(Ok(true))) {
        record.unreported = None;
        // Else it is told once more.
        let _ = record.write(layout);
    }
}
