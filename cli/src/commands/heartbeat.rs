//! `gsv heartbeat`: shows, changes and runs heartbeats. What its settings mean is decided by the gateway.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{
    HeartbeatCheck as Check, HeartbeatSet as Set, HeartbeatStatus as Status, HeartbeatTrigger as Trigger,
};
use gsv_protocol::types::{
    HeartbeatCheckParams, HeartbeatChecked, HeartbeatHours, HeartbeatSetParams, HeartbeatSkip, HeartbeatState,
    HeartbeatTriggerParams,
};

use super::context::Context;
use super::doctor_report::Report;
use crate::args::{HeartbeatCommand, HeartbeatOn};
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::table::Table;
use crate::units::{ago, counted, dollars, duration, grouped, now_ms, time, until};

/// The contract's limit: all wrong lines of HEARTBEAT.md are named.
const PROBLEM_CHARS: usize = 2_048;
const LOOK: &str = "Look: `gsv heartbeat status`.";
const DEFAULT_EVERY: &str = "30m";

pub async fn run(context: &Context, command: HeartbeatCommand) -> Outcome {
    let out = context.out;
    match command {
        HeartbeatCommand::Status => {
            let shown = context.show::<Status>(NoParams {}, |result| {
                for (agent, state) in &result.states {
                    out.line(&one_line(agent, 64));
                    for line in lines(state, now_ms()) {
                        out.line(&format!("  {line}"));
                    }
                }
                if result.states.values().all(|state| state.every_ms.is_none()) {
                    out.aside("No agent has a heartbeat. Switch it on: `gsv heartbeat on`.");
                }
            });
            shown.await
        }
        HeartbeatCommand::Check { agent } => {
            let params = HeartbeatCheckParams { agent_id: agent };
            let shown = context.show::<Check>(params, |result| {
                if !result.conditions.is_empty() {
                    out.table(&checked(&result.conditions));
                    out.line("");
                }
                out.line(&one_line(&result.message, PROBLEM_CHARS));
            });
            shown.await
        }
        HeartbeatCommand::Run { agent } => {
            let result = context
                .ask::<Trigger>(HeartbeatTriggerParams { agent_id: agent })
                .await?;
            if !result.ok {
                return Err(Failure::new(
                    Exit::Failed,
                    one_line(&result.message, 400),
                    "Look: `gsv heartbeat status`.",
                ));
            }
            let message = one_line(&result.message, 400);
            let words = match result.skipped {
                Some(true) => format!("nothing was run: {message}"),
                _ => message,
            };
            out.done(&result, &words);
            Ok(())
        }
        HeartbeatCommand::On(args) => on(context, args).await,
        HeartbeatCommand::Off { agent } => {
            let params = HeartbeatSetParams {
                agent_id: agent,
                every: Some("0".to_owned()),
                ..HeartbeatSetParams::default()
            };
            let changed = context.change::<Set>(params, |result| {
                format!("the heartbeat of {} is off", one_line(&result.agent_id.0, 64))
            });
            changed.await
        }
    }
}

fn checked(conditions: &[HeartbeatChecked]) -> Table<3> {
    let row = |checked: &HeartbeatChecked| {
        [
            checked.state.as_str().to_owned(),
            one_line(&checked.condition, 200),
            one_line(&checked.why, 400),
        ]
    };
    Table::new(["NOW", "CONDITION", "WHY"], conditions.iter().map(row))
}

/// For `gsv status`.
pub async fn attention(client: &Client) -> Vec<String> {
    let found = all_troubles(client).await;
    found.into_iter().map(|found| format!("! {found} {LOOK}")).collect()
}

/// For `gsv doctor`.
pub async fn check(report: &mut Report, client: &Client) {
    for found in all_troubles(client).await {
        report.warn("heartbeat", found, LOOK);
    }
}

/// Heartbeats that look at nothing, and conditions that fail. Empty when the gateway is older.
async fn all_troubles(client: &Client) -> Vec<String> {
    let asked = client.call::<Status>(NoParams {}).await;
    let states = asked.map(|result| result.states).unwrap_or_default();
    states
        .iter()
        .flat_map(|(agent, state)| troubles(agent, state))
        .collect()
}

fn troubles(agent: &str, state: &HeartbeatState) -> Vec<String> {
    let agent = one_line(agent, 64);
    // Whether a channel or a machine exists is known after a look.
    let refused = || {
        state
            .last_reason
            .as_ref()
            .filter(|_| state.last_skip == Some(HeartbeatSkip::Wrong))
    };
    let problem = state.problem.as_ref().or_else(refused);
    let stands = problem.map(|why| format!("The heartbeat of {agent} stands still: {}", one_line(why, 400)));
    let failing = state.failing.iter().flatten().map(|failing| {
        format!(
            "A condition of the heartbeat of {agent} fails: {}: {}",
            one_line(&failing.condition, 200),
            one_line(&failing.why, 400)
        )
    });
    stands.into_iter().chain(failing).collect()
}

async fn on(context: &Context, args: HeartbeatOn) -> Outcome {
    let active_hours = hours(args.hours.as_deref(), args.tz)?;
    let mut params = HeartbeatSetParams {
        agent_id: args.agent,
        every: args.every,
        prompt: args.prompt,
        target: args.target,
        active_hours,
    };
    let client = context.connect().await?;
    let mut result = client.call::<Set>(params.clone()).await?;
    // It was never on, or was switched off.
    if result.state.every_ms.is_none() && params.every.is_none() {
        params.every = Some(DEFAULT_EVERY.to_owned());
        result = client.call::<Set>(params).await?;
    }
    client.close().await;
    let state = &result.state;
    let next = state
        .next_run_at_ms
        .map(|at| format!(", next {}", time(at)))
        .unwrap_or_default();
    let words = format!(
        "{} looks every {}{}{next}; write what to look for: `gsv workspace edit HEARTBEAT.md`",
        one_line(&result.agent_id.0, 64),
        duration(state.every_ms.unwrap_or_default()),
        active(state)
    );
    context.out.done(&result, &words);
    Ok(())
}

fn hours(given: Option<&str>, timezone: Option<String>) -> Outcome<Option<HeartbeatHours>> {
    let Some(given) = given else {
        return match timezone {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "A time zone belongs to `--hours`.",
                "Give `--hours FROM-TO` too.",
            )),
        };
    };
    let Some((start, end)) = given.split_once('-') else {
        return Err(Failure::usage(
            format!("`{}` is not a range of hours.", one_line(given, 40)),
            "Give a range such as `08:00-22:00`.",
        ));
    };
    Ok(Some(HeartbeatHours {
        start: Some(start.trim().to_owned()),
        end: Some(end.trim().to_owned()),
        timezone,
    }))
}

/// The hours, which a heartbeat keeps until others are given.
fn active(state: &HeartbeatState) -> String {
    state.active_hours.as_ref().map_or_else(String::new, |hours| {
        format!(
            ", {} to {} ({})",
            one_line(hours.start.as_deref().unwrap_or("00:00"), 5),
            one_line(hours.end.as_deref().unwrap_or("24:00"), 5),
            one_line(hours.timezone.as_deref().unwrap_or("UTC"), 64)
        )
    })
}

/// Where an answer goes, beside the main conversation.
fn answers(target: &str) -> String {
    match target {
        "last" => "answers go to your last direct chat".to_owned(),
        "none" => "answers stay in the main conversation".to_owned(),
        place => format!("answers go to {}", one_line(place, 200)),
    }
}

fn lines(state: &HeartbeatState, now: u64) -> Vec<String> {
    let mut lines = Vec::new();
    match state.every_ms {
        None => lines.push("off".to_owned()),
        Some(every) => {
            let answers = answers(state.target.as_deref().unwrap_or("last"));
            lines.push(format!("every {}{}, {answers}", duration(every), active(state)));
        }
    }
    if let Some(problem) = &state.problem {
        lines.push(format!("! {}", one_line(problem, PROBLEM_CHARS)));
    }
    for failing in state.failing.iter().flatten() {
        let times = match failing.count {
            1 => String::new(),
            count => format!(", {} times in a row", grouped(count)),
        };
        lines.push(format!(
            "! {} fails since {}{times}: {}",
            one_line(&failing.condition, 200),
            time(failing.since),
            one_line(&failing.why, 400)
        ));
    }
    if let Some(why) = &state.paused {
        lines.push(format!("paused: {}", one_line(why, 400)));
    } else if state.running_at_ms.is_some() {
        lines.push("runs now".to_owned());
    } else if let Some(at) = state.next_run_at_ms {
        lines.push(format!("next {}, {}", until(at, now), time(at)));
    } else if state.problem.is_some() && state.every_ms.is_some() {
        lines.push("paused until the problem is fixed".to_owned());
    }
    if let (Some(at), Some(status)) = (state.last_run_at_ms, state.last_status) {
        let why = state
            .last_reason
            .as_deref()
            .map(|why| format!(": {}", one_line(why, 400)))
            .unwrap_or_default();
        lines.push(format!("last {}, {}{why}", ago(at, now), status.as_str()));
    }
    if state.every_ms.is_some() || state.runs > 0 || !state.skipped.is_empty() {
        lines.push(format!(
            "in the last day {} for {}{}",
            counted(state.runs, "model run", "model runs"),
            dollars(state.cost_usd),
            skipped(state)
        ));
    }
    lines
}

fn skipped(state: &HeartbeatState) -> String {
    let parts: Vec<String> = state
        .skipped
        .iter()
        .map(|(reason, count)| format!("{} {}", grouped(*count), one_line(reason, 32).replace('_', " ")))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("; skipped {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::json;

    use super::*;

    #[test]
    fn hb8_hb11_the_status_says_when_it_comes_what_was_skipped_and_what_it_cost() {
        let state: HeartbeatState = serde_json::from_value(json!({
            "enabled": true, "everyMs": 1_800_000, "target": "last",
            "activeHours": {"start": "08:00", "end": "22:00", "timezone": "Europe/Amsterdam"},
            "lastRunAtMs": 0, "lastStatus": "skipped", "lastReason": "HEARTBEAT.md has\nno task.",
            "failing": [{"condition": "exec: laptop test -e x", "count": 3, "since": 0, "why": "The machine\nlaptop is not connected."}],
            "runs": 2, "costUsd": 0.02, "skipped": {"empty": 30, "not_due": 4}
        }))
        .unwrap();
        assert_eq!(
            lines(&state, 1_800_000),
            [
                "every 30 min, 08:00 to 22:00 (Europe/Amsterdam), answers go to your last direct chat",
                &format!(
                    "! exec: laptop test -e x fails since {}, 3 times in a row: The machine laptop is not connected.",
                    time(0)
                ),
                "last 30 min ago, skipped: HEARTBEAT.md has no task.",
                "in the last day 2 model runs for $0.0200; skipped 30 empty, 4 not due",
            ]
        );
        let off: HeartbeatState =
            serde_json::from_value(json!({"enabled": false, "runs": 0, "costUsd": 0, "skipped": {}})).unwrap();
        assert_eq!(lines(&off, 0), ["off"]);
        let was_on: HeartbeatState =
            serde_json::from_value(json!({"enabled": false, "runs": 2, "costUsd": 0.02, "skipped": {}})).unwrap();
        assert_eq!(lines(&was_on, 0), ["off", "in the last day 2 model runs for $0.0200"]);
        let one = HeartbeatState { runs: 1, ..was_on };
        assert_eq!(lines(&one, 0), ["off", "in the last day 1 model run for $0.0200"]);
    }

    #[test]
    fn hb8_a_heartbeat_that_stands_still_has_no_next_time() {
        let state: HeartbeatState = serde_json::from_value(json!({
            "enabled": true, "everyMs": 1_800_000, "target": "last", "problem": "`unread: fax` names a channel that is not there.",
            "runs": 0, "costUsd": 0.0, "skipped": {}
        }))
        .unwrap();
        assert_eq!(
            lines(&state, 0)[1..3],
            [
                "! `unread: fax` names a channel that is not there.",
                "paused until the problem is fixed"
            ]
        );
    }

    #[test]
    fn hb12_a_dry_run_shows_each_condition_with_its_reason() {
        let conditions: Vec<HeartbeatChecked> = serde_json::from_value(json!([
            {"condition": "evry: 2h", "state": "wrong", "why": "Line 2: it is not a condition."},
            {"condition": "exec: lap\ntrue", "state": "true", "why": "The command exited with 0."}
        ]))
        .unwrap();
        assert_eq!(
            checked(&conditions).lines(None).join("\n"),
            "NOW    CONDITION       WHY\nwrong  evry: 2h        Line 2: it is not a condition.\ntrue   exec: lap true  The command exited with 0."
        );
    }

    #[test]
    fn hb2_hours_are_read_and_a_zone_alone_is_refused() {
        let read = hours(Some("08:00 - 22:00"), None).unwrap().unwrap();
        assert_eq!(read.start.as_deref(), Some("08:00"));
        assert_eq!(read.end.as_deref(), Some("22:00"));
        assert!(hours(Some("morning"), None).is_err());
        assert!(hours(None, Some("UTC".to_owned())).is_err());
        assert!(hours(None, None).unwrap().is_none());
    }
}
