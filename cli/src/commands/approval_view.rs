//! Questions, answers and grants as `gsv approval`, `gsv chat` and `gsv status` show them. Their texts come from the gateway with hidden
//! characters as escapes; they are cleaned here once more, because a terminal must not depend on that.

use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalChoice, ApprovalEntry, ApprovalGrant, ApprovalOutcome, ApprovalResolveResult,
};

use super::actors::Actors;
use crate::clean::{one_line, visible};
use crate::exit::{Failure, Outcome};
use crate::units::{ago, bytes, duration};

/// Columns of a call in a line about its answer.
const ASKED_COLUMNS: usize = 72;

/// Where the answer is typed: a prompt takes `allow CODE`, a shell the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Prompt,
    Shell,
}

/// The order of the calls: by the time of the question, then by the parts of the call's id. Questions about events stay last.
pub fn in_order(mut questions: Vec<ApprovalEntry>) -> Vec<ApprovalEntry> {
    questions.sort_by_cached_key(|entry| {
        let parts = entry.call_id.as_str().split('/');
        // Numbers count as numbers, so that call 10 comes after call 9.
        let parts: Vec<_> = parts.map(|part| (part.parse::<u64>().ok(), part.to_owned())).collect();
        let session = entry.session_key.as_str().to_owned();
        (entry.event.is_some(), entry.created_at, session, parts)
    });
    questions
}

/// Everything that a call will do, and why it needs a word.
pub fn question(entry: &ApprovalEntry, now: u64, place: Place) -> Vec<String> {
    let left = entry.expires_at.saturating_sub(now);
    let machine = entry
        .node_id
        .as_ref()
        .map_or_else(|| "the gateway".to_owned(), |node| visible(node.as_ref()));
    let what = if entry.limit.is_some() {
        "a paused run".to_owned()
    } else if let Some(event) = &entry.event {
        format!("the event {}", visible(event))
    } else {
        format!("{} on {machine}", visible(entry.tool.as_ref()))
    };
    let mut lines = vec![
        format!(
            "{}  {what}, for {} ({} left)",
            visible(&entry.code),
            visible(entry.session_key.as_ref()),
            duration(left)
        ),
        format!("  {} ({})", visible(&entry.why), visible(&entry.rule)),
    ];
    lines.extend(entry.text.lines().map(|line| format!("  | {}", visible(line))));
    if let Some(sha256) = &entry.text_sha256 {
        let shown = entry.text.len() as u64;
        lines.push(format!(
            "  ! {} more are not shown; the whole has the sha256 {}, and `gsv session show {}` shows it",
            bytes(entry.text_bytes.saturating_sub(shown)),
            visible(sha256),
            visible(entry.session_key.as_ref())
        ));
    }
    if entry.limit.is_some() {
        lines.push(limit_answers(&visible(&entry.rule)));
    }
    lines.extend(longer(entry, place));
    lines
}

/// What the answers to a question about a limit do, and what happens without one: when the setting is raised, and with a message.
fn limit_answers(setting: &str) -> String {
    format!(
        "  > Allowed, the run continues. When `{setting}` is raised, it goes on by itself. Denied, or with any other message to the conversation before that, it ends here; what it has done stays."
    )
}

/// The questions of one conversation, for a line about it.
pub fn codes(waiting: &[ApprovalEntry], session: &str) -> Vec<String> {
    let asked = waiting.iter().filter(|entry| entry.session_key.as_str() == session);
    asked.map(|entry| visible(&entry.code)).collect()
}

pub fn choices(entry: &ApprovalEntry) -> &[ApprovalChoice] {
    entry.choices.as_deref().unwrap_or_default()
}

/// The times for which a question offers to allow such calls.
pub fn times(entry: &ApprovalEntry) -> Vec<&'static str> {
    let offered = choices(entry).iter();
    offered.filter_map(|choice| time_name(choice.answer)).collect()
}

const fn time_name(answer: ApprovalAnswerKind) -> Option<&'static str> {
    match answer {
        ApprovalAnswerKind::AllowSession => Some("session"),
        ApprovalAnswerKind::Allow1h => Some("1h"),
        ApprovalAnswerKind::Allow8h => Some("8h"),
        ApprovalAnswerKind::Allow30d => Some("30d"),
        ApprovalAnswerKind::AllowAlways | ApprovalAnswerKind::Allow | ApprovalAnswerKind::Deny => None,
    }
}

/// The answer for a time, with the other times that the question offers.
fn for_a_time(entry: &ApprovalEntry, place: Place) -> Option<String> {
    let code = visible(&entry.code);
    let mut names = times(entry);
    if names.is_empty() {
        return None;
    }
    let first = names.remove(names.iter().position(|name| *name == "1h").unwrap_or(0));
    let others = if names.is_empty() {
        String::new()
    } else {
        format!(" (or {})", names.join(", "))
    };
    Some(match place {
        Place::Prompt => format!("`allow {code} for {first}`{others}"),
        Place::Shell => format!("`gsv approval allow {code} --for {first}`{others}"),
    })
}

/// How to allow more than the call that waits: the answers that the question takes, and exactly what they allow.
pub fn longer(entry: &ApprovalEntry, place: Place) -> Vec<String> {
    let code = visible(&entry.code);
    let mut choices = choices(entry).iter();
    let scope = choices.clone().find(|choice| time_name(choice.answer).is_some());
    let timed = for_a_time(entry, place)
        .zip(scope)
        .map(|(answer, scope)| format!("  > {answer} allows {}", visible(&scope.text)));
    let rule = choices.find(|choice| choice.answer == ApprovalAnswerKind::AllowAlways);
    let rule = rule.map(|rule| {
        let at = if place == Place::Prompt { "in a terminal, " } else { "" };
        format!(
            "  > {at}`gsv approval allow {code} --always` saves {}",
            visible(&rule.text)
        )
    });
    timed.into_iter().chain(rule).collect()
}

/// What an answer allows for longer, where the question offers it.
pub fn held(entry: &ApprovalEntry, decision: ApprovalAnswerKind) -> Option<String> {
    let choice = choices(entry).iter().find(|choice| choice.answer == decision)?;
    Some(format!("For {}: {}", how_long(decision), visible(&choice.text)))
}

/// A question that `--approve` answers, in one line: the call, and why it had asked. That says which hosts it reaches, and whether it is outside the sandbox.
pub fn answered_for_you(entry: &ApprovalEntry) -> String {
    let code = visible(&entry.code);
    let first = entry
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let mut text = one_line(first, ASKED_COLUMNS);
    if entry.text.trim().lines().nth(1).is_some() && !text.ends_with('…') {
        text.push_str(" …");
    }
    let what = match (&entry.limit, &entry.node_id) {
        (Some(_), _) => "about a limit".to_owned(),
        (None, Some(node)) => format!("for {} on {}", visible(entry.tool.as_ref()), visible(node.as_ref())),
        (None, None) => format!("for {} on the gateway", visible(entry.tool.as_ref())),
    };
    let (why, rule) = (visible(&entry.why), visible(&entry.rule));
    format!("{code} asks {what}: {text}. It asked because: {why} ({rule})")
}

pub fn not_offered(entry: &ApprovalEntry) -> Failure {
    let code = visible(&entry.code);
    if entry.limit.is_some() {
        return Failure::usage(
            format!("{code} is about a limit: the answer counts for this run only."),
            format!(
                "Let the run continue: `gsv approval allow {code}`. For good, raise `{}`.",
                visible(&entry.rule)
            ),
        );
    }
    let always = choices(entry)
        .iter()
        .any(|choice| choice.answer == ApprovalAnswerKind::AllowAlways)
        .then(|| format!("for good with `gsv approval allow {code} --always`"));
    let timed = for_a_time(entry, Place::Shell).map(|answer| format!("for longer with {answer}"));
    let others: Vec<String> = timed.into_iter().chain(always).collect();
    let once = format!("once with `gsv approval allow {code}`");
    if others.is_empty() {
        let message = format!("{code}: this call can be allowed once only.");
        return Failure::usage(message, format!("Allow it {once}."));
    }
    Failure::usage(
        format!("{code}: the question does not offer this answer."),
        format!("Allow it {}, or {once}.", others.join(", ")),
    )
}

/// How long an answer holds, in words.
fn how_long(decision: ApprovalAnswerKind) -> &'static str {
    match decision {
        ApprovalAnswerKind::AllowSession => "this conversation, at most 24 hours",
        ApprovalAnswerKind::Allow1h => "1 hour",
        ApprovalAnswerKind::Allow8h => "8 hours",
        ApprovalAnswerKind::Allow30d => "30 days",
        ApprovalAnswerKind::AllowAlways => "good",
        ApprovalAnswerKind::Allow | ApprovalAnswerKind::Deny => "this call",
    }
}

/// What became of the question, in words; a failure when it is not what the answer asked for.
pub fn told(code: &str, decision: ApprovalAnswerKind, result: &ApprovalResolveResult, now: u64) -> Outcome<String> {
    let code = visible(code);
    let by = result.by.as_deref().map(|by| visible(&Actors::default().name(by)));
    let when = result.ended_at.map(|at| ago(at, now));
    let by = by.map(|by| format!("by {by}"));
    let known: Vec<String> = when.into_iter().chain(by).collect();
    let known = if known.is_empty() {
        String::new()
    } else {
        format!(" ({})", known.join(", "))
    };
    let is_about_limit = result.limit.is_some();
    match (decision == ApprovalAnswerKind::Deny, result.outcome) {
        (false, ApprovalOutcome::Allowed) if result.ended_at.is_some() => {
            Ok(format!("{code} was allowed before{known}; this answer changes nothing"))
        }
        (true, ApprovalOutcome::Denied) if result.ended_at.is_some() => {
            Ok(format!("{code} was denied before{known}; this answer changes nothing"))
        }
        (false, ApprovalOutcome::Allowed) if result.event.is_some() => {
            Ok(format!("{code}: approved, the event goes to its handler"))
        }
        (true, ApprovalOutcome::Denied) if result.event.is_some() => {
            Ok(format!("{code}: rejected, the event will not be handled"))
        }
        (false, ApprovalOutcome::Allowed) if is_about_limit => Ok(format!("{code}: allowed, the run continues")),
        (false, ApprovalOutcome::Allowed) => Ok(format!("{code}: allowed, its call goes on")),
        (true, ApprovalOutcome::Denied) if is_about_limit => {
            Ok(format!("{code}: denied, the run ends here, and what it has done stays"))
        }
        (true, ApprovalOutcome::Denied) => Ok(format!("{code}: denied, nothing of it is done")),
        (_, ApprovalOutcome::AskedAgain) => Err(Failure::failed(
            format!("{code}: the policy or the file has changed since you were asked, so nothing was allowed."),
            format!(
                "The call waits under a new code: `gsv approval show {}`.",
                result.again.as_deref().map(visible).unwrap_or_default()
            ),
        )),
        (_, outcome) => Err(Failure::failed(
            match outcome {
                ApprovalOutcome::Allowed => {
                    format!("{code} was allowed before{known}, so this answer changes nothing.")
                }
                ApprovalOutcome::Denied => format!("{code} was denied before{known}, so this answer changes nothing."),
                ApprovalOutcome::Expired => format!("{code}: no one answered in time, so it was denied{known}."),
                ApprovalOutcome::Withdrawn => {
                    format!("{code}: the run ended first{known}, so the answer changes nothing.")
                }
                _ => match result.why.as_deref().map(visible) {
                    Some(why) => format!("{code}: the call can no longer be made. The agent is told: {why}"),
                    None => format!(
                        "{code}: the call can no longer be made, because the policy or what is connected changed."
                    ),
                },
            },
            "List what waits for your word: `gsv approval list`.",
        )),
    }
}

pub fn granted(grant: &ApprovalGrant, actors: &Actors, now: u64) -> Vec<String> {
    let place = grant
        .session_key
        .as_ref()
        .map(|key| format!("  only in {}, until its reset", visible(key.as_ref())));
    let last = grant
        .last_used_at
        .map(|at| format!(", last {}", ago(at, now)))
        .unwrap_or_default();
    let mut lines = vec![format!("{}  {}", visible(&grant.id), visible(&grant.text))];
    lines.extend(place);
    lines.push(format!(
        "  {} left; used {} time{}{last}; allowed by {} ({})",
        duration(grant.expires_at.saturating_sub(now)),
        grant.uses,
        if grant.uses == 1 { "" } else { "s" },
        visible(&actors.name(&grant.by)),
        visible(&grant.code)
    ));
    lines
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
