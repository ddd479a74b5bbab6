//! How a turn ends without its answer, in words: what happened, then what to do. Pure.

use std::time::Duration;

use gsv_protocol::errors;
use gsv_protocol::types::ApprovalEntry;
use serde_json::json;

use crate::clean::{one_line, visible};
use crate::commands::approval_view::{Place, question};
use crate::exit::{Exit, Failure};
use crate::units::{duration, millis, now_ms};

/// Columns of another run's question in a note about it.
const ASKED_COLUMNS: usize = 60;

/// Whether a run ended because it used up a limit. Its error says what to do.
pub fn is_at_limit(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.starts_with("budget."))
}

/// `hint`: the end of the message, when that is what to do.
pub fn run_failed(session: &str, message: String, reason: Option<String>, hint: Option<&str>) -> Failure {
    if let (Some(reason), Some(hint)) = (&reason, hint)
        && let Some(what) = message.strip_suffix(hint)
    {
        return Failure {
            next: hint.to_owned(),
            ..Failure::from_reason(reason, what.trim_end(), false)
        };
    }
    match reason {
        // The error of a run at its limit says what to do about exactly this limit.
        Some(reason) if is_at_limit(Some(&reason)) && !message.is_empty() => Failure {
            next: String::new(),
            ..Failure::from_reason(&reason, &message, false)
        },
        Some(reason) => Failure::from_reason(&reason, &message, false),
        None if message.is_empty() => Failure::failed("The run failed.", look(session)),
        None => Failure::failed(message, look(session)),
    }
}

/// Replaces a command of the chat prompt by the shell command. `session`: another one than the usual.
pub fn in_the_shell(failure: Failure, session: Option<&str>) -> Failure {
    let command = session.map_or_else(
        || "`gsv chat /model default`".to_owned(),
        |session| format!("`gsv chat -s {session} /model default`"),
    );
    Failure {
        next: failure.next.replace("`/model default`", &command),
        ..failure
    }
}

pub fn aborted(by_user: bool) -> Failure {
    if by_user {
        return Failure::interrupted();
    }
    Failure::from_reason(errors::RUN_ABORTED.reason, errors::RUN_ABORTED.text, false)
}

/// Ctrl-C while the message waited behind another run, which goes on.
pub fn withdrawn(session: &str, waiting: &[ApprovalEntry]) -> Failure {
    let codes: Vec<_> = waiting.iter().map(|entry| visible(&entry.code)).collect();
    let other = match codes.as_slice() {
        [] => "The run before it goes on.".to_owned(),
        codes => format!("The run before it still waits for your answer to {}.", codes.join(", ")),
    };
    Failure::new(
        Exit::Interrupted,
        format!("Your message is withdrawn. {other}"),
        format!("To stop that run too: `gsv chat -s {session} /stop`."),
    )
}

pub fn left() -> Failure {
    Failure::new(
        Exit::Interrupted,
        "Stopped waiting; the run may go on.",
        "Stop it with `gsv chat /stop`.",
    )
}

pub fn abort_unconfirmed(session: &str) -> Failure {
    Failure::new(
        Exit::Interrupted,
        "The gateway did not confirm that the run stopped.",
        look(session),
    )
}

pub fn timed_out(session: &str, timeout: Duration, accepted: bool) -> Failure {
    let waited = words(timeout);
    if !accepted {
        return Failure::later(
            format!("The gateway did not accept the message within {waited}."),
            "Check `gsv status`. Sending the same words again makes a second message.",
        );
    }
    let stop = format!("To stop it: `gsv chat -s {session} /stop`.");
    Failure::later(
        format!("No answer within {waited}. The run goes on."),
        format!("{} {stop}", look(session)),
    )
}

/// The run waits for a word about one or several calls. The details have the questions, for programs and for the prompt.
pub fn paused(session: &str, waiting: &[ApprovalEntry]) -> Failure {
    let message = match waiting.len() {
        1 => "A question waits for your word; the run goes on after it.".to_owned(),
        count => format!("{count} questions wait for your word; the run goes on after it."),
    };
    let then = format!(" The answer of the run is then in `gsv session preview {session}`.");
    asks(waiting, message, &then)
}

/// The message waits behind a run that waits for a word.
pub fn behind(session: &str, waiting: &[ApprovalEntry]) -> Failure {
    let message = "Your message is accepted and waits: the run before it needs your answer first.".to_owned();
    let then = format!(" The answer to your message is then in `gsv session preview {session}`.");
    asks(waiting, message, &then)
}

/// The message looks like an answer to a question that waits.
pub fn not_sent(words: &str, waiting: &[ApprovalEntry]) -> Failure {
    let message =
        format!("`{words}` was not sent: a question waits for your word, and the message begins like an answer to it.");
    asks(
        waiting,
        message,
        " To send the text as a message, pipe it in: `gsv chat -`.",
    )
}

/// The same for a message with `--approve`, whose command waits with it.
pub fn waits_behind(entry: &ApprovalEntry) -> String {
    let code = visible(&entry.code);
    format!(
        "your message waits: the run before it asks {code} ({}), and --approve answers for your message alone. Answer with `gsv approval allow {code}` or `gsv approval deny {code}`",
        one_line(&entry.text, ASKED_COLUMNS)
    )
}

/// Shows the questions and how to answer them. `then`: what to do after the answer.
pub fn asks(waiting: &[ApprovalEntry], message: String, then: &str) -> Failure {
    let now = now_ms();
    let next = format!("{}{then}", how_to_answer(waiting));
    Failure {
        lines: waiting
            .iter()
            .flat_map(|entry| question(entry, now, Place::Shell))
            .collect(),
        details: Some(Box::new(json!({ "approvals": waiting }))),
        ..Failure::new(Exit::Paused, message, next)
    }
}

/// The commands that answer the first question.
pub fn how_to_answer(waiting: &[ApprovalEntry]) -> String {
    let code = waiting.first().map(|entry| visible(&entry.code)).unwrap_or_default();
    let others = if waiting.len() > 1 {
        " Each question has its own code (`gsv approval list`)."
    } else {
        ""
    };
    format!("Answer with `gsv approval allow {code}` or `gsv approval deny {code}`.{others}")
}

pub fn lost(session: &str, patience: Duration) -> Failure {
    Failure::later(
        format!("The gateway did not come back within {}.", words(patience)),
        format!("Check `gsv status`. {}", look(session)),
    )
}

pub fn unreplayable(session: &str) -> Failure {
    Failure::failed(
        "The run went on while the connection was lost, and its events cannot be replayed.",
        look(session),
    )
}

pub fn words(time: Duration) -> String {
    duration(millis(time))
}

fn look(session: &str) -> String {
    format!("See the conversation: `gsv session preview {session}`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p10_a_command_of_the_prompt_is_one_of_the_shell_after_a_single_message() {
        let failure = || {
            Failure::failed(
                "No key is set.",
                "Set one, or go back to the configured model: `/model default`.",
            )
        };
        assert_eq!(
            in_the_shell(failure(), None).next,
            "Set one, or go back to the configured model: `gsv chat /model default`."
        );
        assert!(
            in_the_shell(failure(), Some("work"))
                .next
                .ends_with("`gsv chat -s work /model default`.")
        );
    }

    #[test]
    fn p10_the_step_of_a_failed_run_is_said_once() {
        let of = |message: &str, hint| {
            run_failed(
                "main",
                message.to_owned(),
                Some("model.not_configured".to_owned()),
                hint,
            )
        };
        let step = "Run `gsv config set apiKeys.anthropic -`.";
        let failure = of(
            "No key is set for Anthropic. Run `gsv config set apiKeys.anthropic -`.",
            Some(step),
        );
        assert_eq!(
            (failure.message.as_str(), failure.next.as_str()),
            ("No key is set for Anthropic.", step)
        );
        // A gateway that names no step.
        let failure = of("No key is set for Anthropic.", None);
        assert!(failure.message.ends_with("Anthropic.") && !failure.next.is_empty());
    }
}
