//! How a call ended, and its `tool.result` cut to fit a frame.

use gsv_link::ledger::LedgerError;
use gsv_protocol::types::{ToolOutcome, ToolResultParams};
use gsv_protocol::{ErrorReason, errors, limits};
use gsv_tools::{Block, CommandOutput, EndedOutput, ToolError, ToolOutput};
use serde::Serialize;
use serde_json::Value;

/// Room for the frame around the params.
const FRAME_ROOM: usize = 4096;
/// A string is not cut below this; then something else is too large.
const SHORTEST_CUT: usize = 4096;

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

    /// Params of `tool.result`. What does not fit is cut in the middle, visibly; what can't be cut becomes an error.
    pub fn into_params(self, call_id: &str, duration_ms: Option<u64>) -> ToolResultParams {
        let limit = usize::try_from(limits::FRAME_BYTES).unwrap_or(usize::MAX) - FRAME_ROOM;
        let has_image = self.has_image();
        let mut params = self.params(call_id, duration_ms);
        let mut size = size_of(&params);
        if size > limit && has_image {
            let error = format!(
                "The image is too large: {size} bytes as text, at most {limit} can be sent. Make a smaller copy and read that."
            );
            return Self::error(&errors::TOOL_TOO_LARGE, error).params(call_id, duration_ms);
        }
        while size > limit {
            let over = size - limit;
            if !cut_longest(&mut params, over) {
                let error = format!(
                    "The result is too large: {size} bytes, at most {limit} can be sent. Ask for less at a time."
                );
                return Self::error(&errors::TOOL_TOO_LARGE, error).params(call_id, duration_ms);
            }
            size = size_of(&params);
        }
        params
    }

    /// Half an image is of no use, so a result with an image is not cut.
    fn has_image(&self) -> bool {
        let Some(CallResult::Output(ToolOutput::Blocks(output))) = &self.result else {
            return false;
        };
        output
            .content
            .iter()
            .any(|block| matches!(block, Block::Image { .. } | Block::StoredImage { .. }))
    }

    /// The only place where a result becomes JSON.
    fn params(self, call_id: &str, duration_ms: Option<u64>) -> ToolResultParams {
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

/// Bytes of the params as JSON.
fn size_of(params: &ToolResultParams) -> usize {
    serde_json::to_string(params).map_or(usize::MAX, |text| text.len())
}

/// Whether the outcome can be sent as it is, whatever the call's id. The gateway takes ids of at most 256 characters.
pub fn fits_a_frame(outcome: &Outcome) -> bool {
    const ID: usize = 1024;
    let limit = usize::try_from(limits::FRAME_BYTES).unwrap_or(usize::MAX) - FRAME_ROOM - ID;
    // Without images there is nothing to move; measuring costs as much as writing it out.
    !outcome.has_image() || serde_json::to_string(&outcome.result).is_ok_and(|text| text.len() <= limit)
}

/// Takes at least `over` bytes out of the middle of the longest string. False: no string is long enough to be cut.
fn cut_longest(params: &mut ToolResultParams, over: usize) -> bool {
    let strings = params.result.iter_mut().filter_map(longest).chain(&mut params.error);
    let Some(text) = strings.max_by_key(|text| text.len()) else {
        return false;
    };
    if text.len() <= SHORTEST_CUT {
        return false;
    }
    // A character may take up to six bytes in JSON.
    let in_json = serde_json::to_string(text).map_or(text.len(), |json| json.len());
    let cut = over.saturating_mul(text.len()).div_ceil(in_json.max(1)) + 128;
    let keep = text.len().saturating_sub(cut).max(SHORTEST_CUT / 2);
    let mut head = keep / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - keep / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    *text = format!(
        "{}\n[... {} bytes left out by the node ...]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    );
    true
}

fn longest(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter_mut().filter_map(longest).max_by_key(|text| text.len()),
        Value::Object(fields) => fields.values_mut().filter_map(longest).max_by_key(|text| text.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gsv_tools::{BlockOutput, CommandStatus, EndedCommand, RunningCommand, RunningOutput};
    use serde_json::json;

    use super::*;

    const FRAME: usize = 1_048_576;

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
    fn p6_errors_keep_their_reason_and_say_how_the_call_ended() {
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
            let params = Outcome::of(Err(error), false).into_params("c", Some(3));
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
            known.into_params("c", None).result,
            Some(json!({"pid": 7, "startedAt": 5, "tail": "half"}))
        );
        let nothing = KnownCommand {
            pid: Some(0),
            started_at: Some(0),
            tail: Some(String::new()),
        };
        assert_eq!(Outcome::unknown("x", nothing).into_params("c", None).result, None);
    }

    #[test]
    fn a_command_ended_by_the_gateways_deadline_is_a_timeout_with_what_is_known_and_by_its_own_is_a_result() {
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
            outcome.into_params("c", None).result,
            Some(json!({"status": "running", "sessionId": "s", "pid": 7, "startedAt": 5}))
        );
        assert!(!Outcome::ok(ended(false)).runs_on());
        assert!(!Outcome::ok(ToolOutput::Json(json!({"status": "running"}))).runs_on());
    }

    #[test]
    fn p19_whatever_the_result_it_fits_a_frame() {
        let control = "\u{1}".repeat(900_000);
        for result in [
            json!({"output": "ü".repeat(900_000)}),
            json!({"output": control}),
            json!(["a".repeat(600_000), "b".repeat(600_000)]),
        ] {
            let params = Outcome::ok(ToolOutput::Json(result)).into_params("c", None);
            let text = serde_json::to_string(&params).unwrap();
            assert!(text.len() < FRAME - 1000);
            assert_eq!(params.outcome, Some(ToolOutcome::Ok));
            assert!(text.contains("left out by the node"));
            assert!(text.len() > FRAME / 3, "more was cut than needed");
        }
        let many: Vec<Value> = (0..200_000).map(|number| json!(format!("line {number}"))).collect();
        let params = Outcome::ok(ToolOutput::Json(json!(many))).into_params("c", None);
        assert_eq!(
            (params.outcome, params.reason.as_deref()),
            (Some(ToolOutcome::Error), Some("tool.too_large"))
        );
        let image = ToolOutput::Blocks(BlockOutput {
            path: "a.png".into(),
            content: vec![Block::Image {
                data: "A".repeat(2_000_000),
                mime_type: "image/png".into(),
            }],
        });
        assert_eq!(
            Outcome::ok(image).into_params("c", None).reason.as_deref(),
            Some("tool.too_large")
        );
        let small = Outcome::ok(ToolOutput::Json(json!({"output": "x".repeat(1000)}))).into_params("c", None);
        assert_eq!(small.result.unwrap()["output"].as_str().map(str::len), Some(1000));
    }
}
