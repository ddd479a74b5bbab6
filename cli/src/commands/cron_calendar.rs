//! What comes next: `gsv cron calendar`, and the lines of `gsv status`. The gateway works out the times and their days; this only
//! writes them.

use gsv_protocol::methods::CronUpcoming as Upcoming;
use gsv_protocol::types::{CronComing, CronFailure, CronUpcomingParams, CronUpcomingResult};

use super::context::Context;
use super::stop_state::naming_copy;
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::Outcome;
use crate::output::Style;
use crate::table::Table;
use crate::units::{ago, clock, counted, duration, short_day, time, until, weekday};
use crate::width::{columns, pad};

const STATUS_NEXT: usize = 5;
const STATUS_FAILED: usize = 3;
const NAME_CHARS: usize = 60;
const ERROR_CHARS: usize = 200;

pub async fn run(context: &Context, days: u8) -> Outcome {
    let out = context.out;
    let params = CronUpcomingParams {
        days: Some(days),
        limit: None,
    };
    let stopped = naming_copy(
        "GSV is stopped: nothing of this begins until `gsv resume`.",
        &context.account()?.url,
    );
    let shown = context.show::<Upcoming>(params, |result| {
        if result.stopped && !result.days.is_empty() {
            out.note(&stopped);
        }
        for line in lines(&result) {
            match line {
                Line::Day(day) => out.line(&out.paint(Style::Bold, &day)),
                Line::Times(times) => out.line(&times),
            }
        }
        for note in notes(&result, days) {
            out.aside(&note);
        }
    });
    shown.await
}

/// For `gsv status`. None: this token may not ask, or the gateway is older.
pub async fn ask(client: &Client) -> Option<CronUpcomingResult> {
    let params = CronUpcomingParams {
        days: Some(0),
        limit: None,
    };
    client.call::<Upcoming>(params).await.ok()
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Day(String),
    Times(String),
}

fn lines(result: &CronUpcomingResult) -> Vec<Line> {
    let whens = result
        .days
        .iter()
        .flat_map(|day| &day.times)
        .map(|times| when(times, result.now_ms));
    let wide = whens.map(|when| columns(&when)).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (i, day) in result.days.iter().enumerate() {
        if i > 0 {
            lines.push(Line::Times(String::new()));
        }
        lines.push(Line::Day(weekday(&day.date).unwrap_or_else(|| one_line(&day.date, 10))));
        lines.extend(day.times.iter().map(|times| {
            let when = when(times, result.now_ms);
            let who = named(times.job_id.as_deref(), &times.agent_id.0, &times.name);
            Line::Times(format!("  {when}{}  {who}", pad(&when, wide)))
        }));
    }
    lines
}

/// `07:00`, or `every 30 min, 06:30-22:00 (32 times)`.
fn when(times: &CronComing, now: u64) -> String {
    let Some(last) = times.last_at_ms else {
        return if times.at_ms < now {
            format!("waits since {}", time(times.at_ms))
        } else {
            clock(times.at_ms)
        };
    };
    let hours = format!("{}-{}", clock(times.at_ms), clock(last));
    let more = if times.is_more == Some(true) { "more than " } else { "" };
    let count = format!("{more}{} times", times.count);
    match times.every_ms {
        Some(every) => format!("every {}, {hours} ({count})", duration(every)),
        None => format!("{count}, {hours}"),
    }
}

fn named(job: Option<&str>, agent: &str, name: &str) -> String {
    let Some(id) = job else {
        return format!("heartbeat of {}", one_line(agent, NAME_CHARS));
    };
    let (id, name) = (one_line(id, NAME_CHARS), one_line(name, NAME_CHARS));
    if id == name { name } else { format!("{name} ({id})") }
}

fn notes(result: &CronUpcomingResult, days: u8) -> Vec<String> {
    let mut notes = Vec::new();
    if result.days.is_empty() && result.left_out == 0 {
        let days = match days {
            0 | 1 => "today".to_owned(),
            days => format!("in the next {days} days"),
        };
        notes.push(format!(
            "Nothing is scheduled {days}. All jobs: `gsv cron list`; heartbeats: `gsv heartbeat status`."
        ));
    }
    if result.left_out > 0 {
        notes.push(format!(
            "Left out: {}. Show fewer days: `gsv cron calendar --days 1`; all jobs: `gsv cron list`.",
            counted(result.left_out, "further entry", "further entries")
        ));
    }
    if result.days_left_out > 0 {
        notes.push(format!(
            "Left out: the last {}, because there are too many times to work out.",
            counted(result.days_left_out, "day", "days")
        ));
    }
    notes
}

/// `gsv status`: the next times as a table, or what waits while everything is stopped.
pub fn next_table(result: &CronUpcomingResult, now: u64) -> Option<Table<3>> {
    if result.stopped || result.next.is_empty() {
        return None;
    }
    let rows = result.next.iter().take(STATUS_NEXT).map(|next| {
        [
            format!("{} {}", short_day(next.at_ms), clock(next.at_ms)),
            until(next.at_ms, now),
            named(next.job_id.as_deref(), &next.agent_id.0, &next.name),
        ]
    });
    Some(Table::new(["NEXT", "FROM NOW", "JOB"], rows))
}

/// `gsv status`: what waits while everything is stopped, and what failed last.
pub fn attention(result: &CronUpcomingResult, now: u64) -> Vec<String> {
    let mut lines = Vec::new();
    let waiting: Vec<String> = [
        (result.jobs, "job", "jobs"),
        (result.heartbeats, "heartbeat", "heartbeats"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| counted(count, one, many))
    .collect();
    if result.stopped && !waiting.is_empty() {
        let are = if result.jobs + result.heartbeats == 1 {
            "is"
        } else {
            "are"
        };
        lines.push(format!(
            "{} {are} paused because everything is stopped",
            waiting.join(" and ")
        ));
    }
    lines.extend(
        result
            .failed
            .iter()
            .take(STATUS_FAILED)
            .map(|failed| failure(failed, now)),
    );
    let shown = result.failed.len().min(STATUS_FAILED) as u64;
    if result.failed_count > shown {
        lines.push(format!("{} more failed: `gsv cron list`", result.failed_count - shown));
    }
    lines
}

fn failure(failed: &CronFailure, now: u64) -> String {
    let who = named(failed.job_id.as_deref(), &failed.agent_id.0, &failed.name);
    let how = match failed.failures {
        1 => "failed last time".to_owned(),
        times => format!("failed {times} times in a row"),
    };
    let at = failed.at_ms.map(|at| format!(", {}", ago(at, now))).unwrap_or_default();
    let why = failed
        .error
        .as_deref()
        .map(|error| format!(": {}", one_line(error, ERROR_CHARS).trim_end_matches('.')))
        .unwrap_or_default();
    let paused = failed.paused == Some(true);
    let state = if paused { " It is paused; go on with" } else { " Look:" };
    let id = failed.job_id.as_deref().map(|id| one_line(id, NAME_CHARS));
    let next = match (id, paused) {
        (Some(id), true) => format!("gsv cron resume {id}"),
        (Some(id), false) => format!("gsv cron runs {id}"),
        (None, true) => format!("gsv heartbeat on --agent {}", one_line(&failed.agent_id.0, NAME_CHARS)),
        (None, false) => "gsv heartbeat status".to_owned(),
    };
    format!("{who} {how}{at}{why}.{state} `{next}`")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::{Value, json};

    use super::*;

    /// Sunday, 2026-11-22, 10:00 UTC.
    const NOW: u64 = 1_795_341_600_000;
    const HOUR: u64 = 3_600_000;

    fn result(change: &Value) -> CronUpcomingResult {
        let mut value = json!({
            "tz": "UTC", "nowMs": NOW, "stopped": false, "jobs": 2, "heartbeats": 1,
            "next": [], "days": [], "leftOut": 0, "daysLeftOut": 0, "failed": [], "failedCount": 0
        });
        for (key, part) in change.as_object().unwrap() {
            value[key] = part.clone();
        }
        serde_json::from_value(value).unwrap()
    }
    fn report(at: u64) -> Value {
        json!({"jobId": "report", "agentId": "main", "name": "Weather\u{1b}[31m report", "atMs": at, "count": 1})
    }
    fn text(result: &CronUpcomingResult) -> String {
        let lines = lines(result).into_iter().map(|line| match line {
            Line::Day(text) | Line::Times(text) => text,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sc14_the_calendar_is_grouped_by_day_and_folds_many_times_of_a_job() {
        let shown = result(&json!({"days": [
            {"date": "2026-11-22", "times": [
                {"jobId": "dentist", "agentId": "main", "name": "dentist", "atMs": NOW - 48 * HOUR, "count": 1},
                {"agentId": "main", "name": "Heartbeat", "atMs": NOW + HOUR / 2, "lastAtMs": NOW + 12 * HOUR, "count": 24, "everyMs": HOUR / 2},
                report(NOW + 8 * HOUR),
            ]},
            {"date": "2026-11-24", "times": [
                {"jobId": "busy", "agentId": "work", "name": "busy", "atMs": NOW + 38 * HOUR, "lastAtMs": NOW + 60 * HOUR, "count": 150, "isMore": true},
            ]},
        ]}));
        assert_eq!(
            text(&shown),
            "Sunday 22 November 2026
  waits since 2026-11-20 10:00:00 UTC   dentist
  every 30 min, 10:30-22:00 (24 times)  heartbeat of main
  18:00                                 Weather report (report)

Tuesday 24 November 2026
  more than 150 times, 00:00-22:00      busy"
        );
        assert!(notes(&shown, 7).is_empty());
    }

    #[test]
    fn sc14_what_is_left_out_is_said() {
        assert_eq!(
            notes(&result(&json!({"leftOut": 1, "daysLeftOut": 2})), 7),
            [
                "Left out: 1 further entry. Show fewer days: `gsv cron calendar --days 1`; all jobs: `gsv cron list`.",
                "Left out: the last 2 days, because there are too many times to work out."
            ]
        );
        let none = |days| notes(&result(&json!({})), days).join("\n");
        assert_eq!(
            none(8),
            "Nothing is scheduled in the next 8 days. All jobs: `gsv cron list`; heartbeats: `gsv heartbeat status`."
        );
        assert!(none(2).starts_with("Nothing is scheduled in the next 2 days."));
        assert!(none(1).starts_with("Nothing is scheduled today."));
    }

    #[test]
    fn sc15_status_shows_five_next_times() {
        let beat = json!({"agentId": "main", "name": "Heartbeat", "atMs": NOW + HOUR / 2, "count": 1});
        let reports = [8, 32, 56, 80, 104].map(|hours| report(NOW + hours * HOUR));
        let all: Vec<Value> = [beat].into_iter().chain(reports).collect();
        let next = json!({"next": all});
        assert_eq!(
            next_table(&result(&next), NOW).unwrap().lines(None),
            [
                "NEXT              FROM NOW   JOB",
                "Sun 22 Nov 10:30  in 30 min  heartbeat of main",
                "Sun 22 Nov 18:00  in 8 h     Weather report (report)",
                "Mon 23 Nov 18:00  in 1 d     Weather report (report)",
                "Tue 24 Nov 18:00  in 2 d     Weather report (report)",
                "Wed 25 Nov 18:00  in 3 d     Weather report (report)",
            ]
        );
        assert!(next_table(&result(&json!({})), NOW).is_none());
    }

    #[test]
    fn sc15_status_shows_what_waits_while_everything_is_stopped() {
        let stopped = |jobs: u64, heartbeats: u64| {
            result(&json!({"stopped": true, "jobs": jobs, "heartbeats": heartbeats, "next": [report(NOW + HOUR)]}))
        };
        assert!(next_table(&stopped(2, 1), NOW).is_none());
        let words = |jobs, heartbeats| attention(&stopped(jobs, heartbeats), NOW).join("\n");
        assert_eq!(
            words(2, 1),
            "2 jobs and 1 heartbeat are paused because everything is stopped"
        );
        assert_eq!(words(1, 0), "1 job is paused because everything is stopped");
        assert_eq!(words(0, 0), "");
    }

    #[test]
    fn sc15_status_shows_what_failed_last_and_what_to_do() {
        let failed = json!({"failed": [
            {"jobId": "report", "agentId": "main", "name": "Report", "failures": 1, "atMs": NOW - 2 * HOUR, "error": "The key\nis wrong."},
            {"jobId": "news", "agentId": "main", "name": "news", "failures": 5, "atMs": NOW - 3 * HOUR, "error": "No answer", "paused": true},
            {"agentId": "work", "name": "Heartbeat", "failures": 2},
            {"jobId": "other", "agentId": "main", "name": "other", "failures": 1},
        ], "failedCount": 6});
        assert_eq!(
            attention(&result(&failed), NOW),
            [
                "Report (report) failed last time, 2 h ago: The key is wrong. Look: `gsv cron runs report`",
                "news failed 5 times in a row, 3 h ago: No answer. It is paused; go on with `gsv cron resume news`",
                "heartbeat of work failed 2 times in a row. Look: `gsv heartbeat status`",
                "3 more failed: `gsv cron list`",
            ]
        );
    }
}
