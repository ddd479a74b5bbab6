//! Jobs and their runs as `gsv cron` shows them.

use gsv_protocol::types::{CronJob, CronOutcome, CronRun, CronSchedule, CronSpec, CronWait, NodeId};

use crate::clean::one_line;
use crate::table::Table;
use crate::units::{ago, duration, now_ms, time, until};

pub fn work(spec: &CronSpec) -> String {
    match spec {
        CronSpec::SystemEvent { text, .. } => {
            format!("the agent answers in your conversation: {}", one_line(text, 400))
        }
        CronSpec::Remind { text, to, .. } => {
            format!("reminds you: {}{}", one_line(text, 400), at_place("to", to.as_deref()))
        }
        CronSpec::Task { message, to, .. } => {
            format!("{}{}", one_line(message, 400), at_place("answer to", to.as_deref()))
        }
    }
}

fn at_place(how: &str, to: Option<&str>) -> String {
    to.map(|to| format!(" ({how} {})", one_line(to, 200)))
        .unwrap_or_default()
}

/// How long a task waits for a machine that is not connected. `None`: it does not say, or it is no task.
pub fn waiting(spec: &CronSpec) -> Option<String> {
    match spec {
        CronSpec::Task {
            wait_seconds: Some(0), ..
        } => Some("not for a machine that is away".to_owned()),
        CronSpec::Task {
            wait_seconds: Some(seconds),
            ..
        } => Some(format!(
            "{} for a machine that is away",
            duration(u64::from(*seconds) * 1000)
        )),
        _ => None,
    }
}

/// What a new job does at its time, and how to change one's mind.
pub fn what_comes(job: &CronJob) -> String {
    let id = one_line(&job.id, 64);
    let remove = format!("Remove it: `gsv cron remove {id}`.");
    let (to, deliver) = match &job.spec {
        CronSpec::Task { to, deliver, .. } => (to, deliver),
        CronSpec::Remind { to: Some(to), .. } => {
            return format!(
                "you are reminded at {}, and no model is called. {remove}",
                one_line(to, 200)
            );
        }
        CronSpec::Remind { .. } => {
            return format!(
                "you are reminded in your conversation and in the chat that was active last, and no model is called. {remove}"
            );
        }
        CronSpec::SystemEvent { .. } => return format!("the agent answers it in your conversation. {remove}"),
    };
    let answer = match (to, deliver) {
        (Some(to), _) => format!("sends the answer to {}", one_line(to, 200)),
        (None, Some(false)) => format!("keeps the answer for `gsv cron runs {id}`"),
        (None, _) => "puts the answer into your conversation".to_owned(),
    };
    let reminder = match job.schedule {
        CronSchedule::At { .. } => " To be only reminded of it, add it with --remind.",
        _ => "",
    };
    format!("the agent does the task and {answer}. {remove}{reminder}")
}

pub fn rhythm(schedule: &CronSchedule) -> String {
    match schedule {
        CronSchedule::At { at_ms, at, .. } => match (at_ms, at) {
            (Some(ms), _) => format!("once, {}", time(*ms)),
            (None, at) => format!("once, {}", one_line(at.as_deref().unwrap_or_default(), 64)),
        },
        CronSchedule::Every { every_ms, every, .. } => match every_ms {
            Some(ms) => format!("every {}", duration(*ms)),
            None => format!("every {}", one_line(every.as_deref().unwrap_or_default(), 64)),
        },
        CronSchedule::Cron { expr, tz } => {
            format!(
                "{} ({})",
                one_line(expr, 64),
                one_line(tz.as_deref().unwrap_or("UTC"), 64)
            )
        }
    }
}

pub fn next(at: u64, now: u64) -> String {
    format!("{}, {}", until(at, now), time(at))
}

pub fn standing(job: &CronJob) -> String {
    let state = &job.state;
    if let Some(why) = &state.paused {
        return format!("paused: {}", one_line(why, 300));
    }
    if !job.enabled {
        return "paused".to_owned();
    }
    if state.running_at_ms.is_some() {
        return "runs now".to_owned();
    }
    match state.next_run_at_ms {
        Some(at) => next(at, now_ms()),
        None => "over".to_owned(),
    }
}

pub fn table(jobs: &[CronJob], now: u64) -> Table<5> {
    Table::new(
        ["ID", "NEXT", "LAST", "WHEN", "NAME"],
        jobs.iter().map(|job| {
            let state = &job.state;
            let next = match state.next_run_at_ms {
                _ if !job.enabled => "paused".to_owned(),
                _ if state.running_at_ms.is_some() => "runs now".to_owned(),
                Some(at) => until(at, now),
                None => "over".to_owned(),
            };
            let last = match (state.last_status, state.last_run_at_ms) {
                (Some(status), Some(at)) => format!("{} {}", status.as_str(), ago(at, now)),
                _ => "never".to_owned(),
            };
            let when = match waiting(&job.spec) {
                Some(wait) => format!("{}; waits {wait}", rhythm(&job.schedule)),
                None => rhythm(&job.schedule),
            };
            [job.id.clone(), next, last, when, job.name.clone()]
        }),
    )
}

fn waits_for(machines: &[NodeId]) -> String {
    let names: Vec<&str> = machines.iter().map(|NodeId(name)| name.as_str()).collect();
    format!("waits for {}", one_line(&names.join(", "), 100))
}

/// `resume`: what to do about a run that waits for `gsv resume`.
pub fn runs(runs: &[CronRun], now: u64, resume: &str) -> Table<5> {
    Table::new(
        ["JOB", "TIME", "BECAME", "TOOK", "WHAT"],
        runs.iter().map(|run| {
            let became = match (run.status, run.count) {
                (CronOutcome::Missed, Some(count)) => format!("missed ({count} times)"),
                (status, _) => status.as_str().to_owned(),
            };
            let (became, next) = match run.waits {
                None => (became, ""),
                Some(CronWait::Slot) => ("waits for another run".to_owned(), ""),
                Some(CronWait::Resume) => ("waits: GSV is stopped".to_owned(), resume),
                Some(CronWait::Owner) => ("waits for you".to_owned(), "Its question: `gsv approval list`."),
                Some(CronWait::Machine) => (waits_for(run.machines.as_deref().unwrap_or_default()), ""),
            };
            let what = run.error.as_deref().or(run.summary.as_deref()).unwrap_or(next);
            [
                run.job_id.clone(),
                ago(run.ts, now),
                became,
                run.duration_ms.map(duration).unwrap_or_default(),
                one_line(what, 300),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn sc4_missed_times_and_failures_are_shown_with_what_became_of_them() {
        let rows: Vec<CronRun> = serde_json::from_value(json!([
            {"id": 2, "jobId": "report", "ts": 3_600_000, "status": "error", "durationMs": 1500, "error": "The key\nis wrong."},
            {"id": 1, "jobId": "report", "ts": 0, "status": "missed", "count": 29}
        ]))
        .unwrap();
        assert_eq!(
            runs(&rows, 7_200_000, "").lines(None).join("\n"),
            "JOB     TIME     BECAME             TOOK   WHAT\nreport  1 h ago  error              1.5 s  The key is wrong.\nreport  2 h ago  missed (29 times)"
        );
    }

    #[test]
    fn sc10_a_run_that_waits_says_for_what() {
        let rows: Vec<CronRun> = serde_json::from_value(json!([
            {"id": 4, "jobId": "a", "ts": 0, "status": "running", "waits": "owner"},
            {"id": 3, "jobId": "b", "ts": 0, "status": "running", "waits": "machine", "machines": ["laptop", "nas"]},
            {"id": 2, "jobId": "c", "ts": 0, "status": "waiting", "waits": "resume"},
            {"id": 1, "jobId": "d", "ts": 0, "status": "waiting", "waits": "slot"}
        ]))
        .unwrap();
        let shown = runs(&rows, 0, "Go on with `gsv resume`.").lines(None).join("\n");
        for part in [
            "waits for you",
            "`gsv approval list`",
            "waits for laptop, nas",
            "waits: GSV is stopped",
            "`gsv resume`",
            "waits for another run",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("running"), "{shown}");
    }

    #[test]
    fn f48_a_new_job_says_what_will_happen() {
        let says = |schedule: Value, spec: Value| {
            let job = json!({
                "id": "a", "agentId": "main", "name": "A", "enabled": true, "createdAtMs": 0, "updatedAtMs": 0, "schedule": schedule,
                "spec": spec, "state": {}
            });
            what_comes(&serde_json::from_value(job).unwrap())
        };
        let (at, every) = (
            json!({"kind": "at", "atMs": 1}),
            json!({"kind": "every", "everyMs": 60_000}),
        );
        let task = json!({"mode": "task", "message": "x"});
        assert_eq!(
            says(at.clone(), json!({"mode": "systemEvent", "text": "x"})),
            "the agent answers it in your conversation. Remove it: `gsv cron remove a`."
        );
        assert_eq!(
            says(at.clone(), json!({"mode": "remind", "text": "x"})),
            "you are reminded in your conversation and in the chat that was active last, and no model is called. Remove it: `gsv cron remove a`."
        );
        assert_eq!(
            says(
                at.clone(),
                json!({"mode": "remind", "text": "x", "to": "whatsapp/default/dm/1"})
            ),
            "you are reminded at whatsapp/default/dm/1, and no model is called. Remove it: `gsv cron remove a`."
        );
        assert_eq!(
            says(at, task.clone()),
            "the agent does the task and puts the answer into your conversation. Remove it: `gsv cron remove a`. To be only reminded of it, add it with --remind."
        );
        assert_eq!(
            says(every.clone(), task),
            "the agent does the task and puts the answer into your conversation. Remove it: `gsv cron remove a`."
        );
        assert_eq!(
            says(every, json!({"mode": "task", "message": "x", "deliver": false})),
            "the agent does the task and keeps the answer for `gsv cron runs a`. Remove it: `gsv cron remove a`."
        );
    }

    #[test]
    fn a_job_says_when_it_runs_and_why_it_does_not() {
        let jobs: Vec<CronJob> = serde_json::from_value(json!([
            {"id": "a", "agentId": "main", "name": "A", "enabled": true, "createdAtMs": 0, "updatedAtMs": 0,
             "schedule": {"kind": "every", "everyMs": 9_000_000}, "spec": {"mode": "task", "message": "x"},
             "state": {"nextRunAtMs": 3_600_000, "lastRunAtMs": 0, "lastStatus": "ok"}},
            {"id": "b", "agentId": "main", "name": "B", "enabled": false, "createdAtMs": 0, "updatedAtMs": 0,
             "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "Europe/Amsterdam"}, "spec": {"mode": "systemEvent", "text": "x"},
             "state": {"failures": 5, "paused": "It failed 5 times in a row."}}
        ]))
        .unwrap();
        assert_eq!(
            table(&jobs, 0).lines(None).join("\n"),
            "ID  NEXT    LAST         WHEN                          NAME\na   in 1 h  ok just now  every 2 h 30 min              A\nb   paused  never        0 9 * * * (Europe/Amsterdam)  B"
        );
        assert_eq!(standing(&jobs[1]), "paused: It failed 5 times in a row.");
    }

    #[test]
    fn om1_a_job_says_how_long_it_waits_for_a_machine() {
        let mut job: CronJob = serde_json::from_value(json!(
            {"id": "a", "agentId": "main", "name": "A", "enabled": true, "createdAtMs": 0, "updatedAtMs": 0,
             "schedule": {"kind": "every", "everyMs": 9_000_000}, "spec": {"mode": "task", "message": "x"}, "state": {}}
        ))
        .unwrap();
        assert_eq!(waiting(&job.spec), None);
        job.spec = serde_json::from_value(json!({"mode": "task", "message": "x", "waitSeconds": 28_800})).unwrap();
        let shown = table(std::slice::from_ref(&job), 0).lines(None).join("\n");
        assert!(
            shown.contains("every 2 h 30 min; waits 8 h for a machine that is away"),
            "{shown}"
        );
        job.spec = serde_json::from_value(json!({"mode": "task", "message": "x", "waitSeconds": 0})).unwrap();
        assert_eq!(waiting(&job.spec).unwrap(), "not for a machine that is away");
    }
}
