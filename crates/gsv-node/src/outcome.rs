//! How a call ended, and the params of its `tool.result`.

use gsv_link::ledger::LedgerError;
use gsv_protocol::types::{ToolOutcome, ToolResultParams};
use gsv_protocol::{ErrorReason, errors, limits};
use gsv_tools::{CommandOutput, EndedOutput, ToolError, ToolOutput};
use serde::Serialize;

/// What an outcome carries besides its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CallResult {
    Output(ToolOutput),
    Known(KnownCommand),
}

/// What is known of a call whose outcome is not. `started_at` is in epoch milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownCommand {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
}

impl KnownCommand {
    /// `None`: nothing is known. Zero and an empty text stand for absent.
    fn into_result(self) -> Option<CallResult> {
        let known = Self {
            pid: self.pid.filter(|pid| *pid > 0),
            started_at: self.started_at.filter(|at| *at > 0),
            tail: self.tail.filter(|tail| !tail.is_empty()),
        };
        (known != Self::default()).then_some(CallResult::Known(known))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub kind: ToolOutcome,
    pub result: Option<CallResult>,
    pub error: Option<String>,
    pub reason: Option<&'static ErrorReason>,
}

impl Outcome {
    pub fn ok(output: ToolOutput) -> Self {
        Self {
            kind: ToolOutcome::Ok,
            result: Some(CallResult::Output(output)),
            error: None,
            reason: None,
        }
    }

    pub fn error(reason: &'static ErrorReason, error: impl Into<String>) -> Self {
        Self {
            kind: ToolOutcome::Error,
            result: None,
            error: Some(error.into()),
            reason: Some(reason),
        }
    }

    pub fn cancelled_before_start(why: &str) -> Self {
        let error = format!("The call was cancelled before it was started ({why}); nothing was run.");
        Self {
            kind: ToolOutcome::Cancelled,
            result: None,
            error: Some(error),
            reason: Some(&errors::TOOL_CANCELLED),
        }
    }

    pub fn late_before_start() -> Self {
        let error = "The time for the call ran out while it waited for others; nothing was run. Try again.";
        Self {
            kind: ToolOutcome::Timeout,
            result: None,
            error: Some(error.into()),
            reason: Some(&errors::TOOL_TIMEOUT),
        }
    }

    /// More calls run and wait than the machine takes.
    pub fn queue_full() -> Self {
        let error = format!(
            "{} calls run and {} wait on this machine already; nothing was run. Wait for some to end.",
            limits::NODE_CONCURRENT_CALLS,
            limits::NODE_QUEUED_CALLS
        );
        Self::error(&errors::TOOL_QUEUE_FULL, error)
    }

    pub fn bad_args(why: &str) -> Self {
        Self::error(&errors::TOOL_BAD_ARGS, format!("Nothing was run: {why}."))
    }

    /// The ledger could not record the call, so nothing was run.
    pub fn not_recorded(error: &LedgerError) -> Self {
        Self::error(&errors::TOOL_IO, format!("Nothing was run: {error}."))
    }

    /// Started, and the outcome is not known.
    pub fn unknown(why: &str, known: KnownCommand) -> Self {
        let error = format!("It is not known whether the call took effect: {why}. Check before you repeat it.");
        Self {
            kind: ToolOutcome::Unknown,
            result: known.into_result(),
            error: Some(error),
            reason: Some(&errors::TOOL_OUTCOME_UNKNOWN),
        }
    }

    /// `is_late`: the gateway's deadline for the call has passed.
    pub fn of(done: Result<ToolOutput, ToolError>, is_late: bool) -> Self {
        let error = match done {
            Ok(ToolOutput::Command(CommandOutput::Ended(ended))) if is_late && ended.command.timed_out => {
                return Self::timed_out(ended);
            }
            Ok(output) => return Self::ok(output),
            Err(error) => error,
        };
        let kind = match &error {
            ToolError::Cancelled { .. } => ToolOutcome::Cancelled,
            ToolError::Timeout { .. } => ToolOutcome::Timeout,
            ToolError::OutcomeUnknown { .. } => ToolOutcome::Unknown,
            _ => ToolOutcome::Error,
        };
        let result = match &error {
            ToolError::OutcomeUnknown {
                pid, started_at, tail, ..
            } => KnownCommand {
                pid: *pid,
                started_at: *started_at,
                tail: tail.clone(),
            }
            .into_result(),
            _ => None,
        };
        Self {
            kind,
            result,
            error: Some(error.to_string()),
            reason: Some(error.row()),
        }
    }

    fn timed_out(ended: EndedOutput) -> Self {
        let tail = if ended.tail.is_empty() {
            String::new()
        } else {
            format!(" Its last output was:\n{}", ended.tail)
        };
        let error = format!("The command was ended because the time for the call ran out.{tail}");
        Self {
            kind: ToolOutcome::Timeout,
            result: Some(CallResult::Output(ToolOutput::Command(CommandOutput::Ended(ended)))),
            error: Some(error),
            reason: Some(&errors::TOOL_TIMEOUT),
        }
    }

    /// The result of a command that goes on in the background.
    pub fn runs_on(&self) -> bool {
        matches!(
            self.result,
            Some(CallResult::Output(ToolOutput::Command(CommandOutput::Running(_))))
        )
    }

    pub fn is_lost(&self) -> bool {
        self.kind == ToolOutcome::Unknown
    }

    /// The params of `tool.result`, whatever their size. The only place where a result becomes JSON.
    pub fn params(self, call_id: &str, duration_ms: Option<u64>) -> ToolResultParams {
        let result = match self.result.map(serde_json::to_value).transpose() {
            Ok(result) => result,
            Err(error) => {
                let error = format!("The result can't be written as JSON: {error}");
                return Self::error(&errors::TOOL_FAILED, error).params(call_id, duration_ms);
            }
        };
        ToolResultParams {
            call_id: call_id.into(),
            result,
            error: self.error,
            reason: self.reason.map(|row| row.reason.to_owned()),
            outcome: Some(self.kind),
            duration_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use gsv_tools::{CommandStatus, EndedCommand, RunningCommand, RunningOutput};
    use serde_json::json;

    use super::*;
    use crate::scrub::Scrub;

    fn ended(timed_out: bool) -> ToolOutput {
        let command = EndedCommand {
            status: CommandStatus::Failed,
            session_id: "s".into(),
            timed_out,
            started_at: 1,
            ended_at: 2,
            duration_ms: 1,
            workdir: "/".into(),
            exit_code: None,
            signal: Some("SIGTERM".into()),
            note: None,
        };
        ToolOutput::Command(CommandOutput::Ended(EndedOutput {
            command,
            output: "half way".into(),
            tail: "half way".into(),
            truncated: false,
        }))
    }

    #[test]
    fn p6_errors_keep_their_reason_and_their_outcome() {
        let unknown = ToolError::OutcomeUnknown {
            why: "it is gone",
            pid: Some(7),
            started_at: Some(5),
            tail: Some("half".into()),
        };
        for (error, kind, reason) in [
            (ToolError::Cancelled { tail: None }, "cancelled", "tool.cancelled"),
            (ToolError::Timeout { ms: 5 }, "timeout", "tool.timeout"),
            (unknown, "unknown", "tool.outcome_unknown"),
            (ToolError::Failed("no".into()), "error", "tool.failed"),
        ] {
            let params = Outcome::of(Err(error), false).into_params("c", Some(3), &Scrub::default());
            assert_eq!(
                (params.outcome.map(ToolOutcome::as_str), params.reason.as_deref()),
                (Some(kind), Some(reason))
            );
            assert!(params.error.is_some() && params.duration_ms == Some(3));
        }
        let known = Outcome::of(
            Err(ToolError::OutcomeUnknown {
                why: "x",
                pid: Some(7),
                started_at: Some(5),
                tail: Some("half".into()),
            }),
            false,
        );
        assert!(known.is_lost());
        assert_eq!(
            known.into_params("c", None, &Scrub::default()).result,
            Some(json!({"pid": 7, "startedAt": 5, "tail": "half"}))
        );
        let nothing = KnownCommand {
            pid: Some(0),
            started_at: Some(0),
            tail: Some(String::new()),
        };
        assert_eq!(
            Outcome::unknown("x", nothing)
                .into_params("c", None, &Scrub::default())
                .result,
            None
        );
    }

    #[test]
    fn the_gateways_deadline_gives_a_timeout_and_the_commands_own_a_result() {
        let late = Outcome::of(Ok(ended(true)), true);
        assert_eq!(late.kind, ToolOutcome::Timeout);
        assert_eq!(late.result, Some(CallResult::Output(ended(true))));
        assert!(late.error.unwrap().contains("half way"));
        assert_eq!(Outcome::of(Ok(ended(true)), false), Outcome::ok(ended(true)));
        assert_eq!(Outcome::of(Ok(ended(false)), true).kind, ToolOutcome::Ok);
    }

    #[test]
    fn only_a_command_in_the_background_runs_on() {
        let command = RunningCommand::new("s", 7, Some(5));
        let running = CommandOutput::Running(RunningOutput { command, tail: None });
        let outcome = Outcome::ok(ToolOutput::Command(running));
        assert!(outcome.runs_on());
        assert_eq!(
            outcome.into_params("c", None, &Scrub::default()).result,
            Some(json!({"status": "running", "sessionId": "s", "pid": 7, "startedAt": 5}))
        );
        assert!(!Outcome::ok(ended(false)).runs_on());
        assert!(!Outcome::ok(ToolOutput::Json(json!({"status": "running"}))).runs_on());
    }
}
