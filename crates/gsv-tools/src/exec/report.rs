//! Describes a command: results of calls, entries of lists, events. Optional fields are absent, never null.

use serde_json::{Value, json};

use super::meta::{Ending, Exit, Meta};
use super::output::Tail;
use super::state::{End, State};
use super::{ExecEvent, ExecEventKind, host};
use crate::error::ToolError;
use crate::limits;
use crate::text::{cut_chars, tail_chars};

pub(crate) fn running(meta: &Meta, tail: &Tail) -> Value {
    json!({
        "status": "running",
        "sessionId": meta.session_id,
        "pid": meta.pid,
        "startedAt": meta.started_at,
        "tail": tail_chars(&tail.text, limits::TAIL_CHARS).0,
        "workdir": meta.workdir,
    })
}

/// The result of a call whose command has ended.
pub(super) fn ended(meta: &Meta, end: &End, output: &Tail) -> Result<Value, ToolError> {
    let tail = tail_chars(&output.text, limits::TAIL_CHARS).0;
    match end.exit {
        None => {
            return Err(ToolError::OutcomeUnknown {
                why: "the command and its supervisor are gone and left no exit status",
                pid: Some(meta.pid),
                started_at: Some(meta.started_at),
                tail: Some(tail.to_owned()),
            });
        }
        Some(Exit::NeverRan) => {
            return Err(ToolError::Failed(
                "the command was not run: its start was not confirmed".into(),
            ));
        }
        Some(Exit::Code(_) | Exit::Signal(_)) => {}
    }
    let mut value = described(meta, end);
    value["output"] = output.text.as_str().into();
    value["tail"] = tail.into();
    value["truncated"] = output.truncated.into();
    Ok(value)
}

fn status(end: &End) -> &'static str {
    match end.exit {
        None | Some(Exit::NeverRan) => "unknown",
        Some(Exit::Code(0)) if !end.timed_out() => "completed",
        Some(_) => "failed",
    }
}

fn described(meta: &Meta, end: &End) -> Value {
    let mut value = json!({
        "status": status(end),
        "sessionId": meta.session_id,
        "timedOut": end.timed_out(),
        "startedAt": meta.started_at,
        "endedAt": end.ended_at,
        "durationMs": end.duration_ms,
        "workdir": meta.workdir,
    });
    match end.exit {
        Some(Exit::Code(code)) => value["exitCode"] = code.into(),
        Some(Exit::Signal(signal)) => value["signal"] = host::signal_name(signal).into(),
        None | Some(Exit::NeverRan) => {}
    }
    if end.ending == Some(Ending::Flood) {
        value["note"] =
            "the command was ended because it printed more than can be kept; send its output to a file".into();
    }
    value
}

/// A command as Process shows it.
pub(super) fn session(meta: &Meta, state: &State) -> Value {
    if let State::Ended(end) = state {
        return described(meta, end);
    }
    let mut value = json!({
        "status": "running",
        "sessionId": meta.session_id,
        "pid": meta.pid,
        "startedAt": meta.started_at,
        "workdir": meta.workdir,
    });
    if *state == State::Stuck {
        value["note"] = "it did not end when it was killed".into();
    }
    value
}

/// A command in the list of Process.
pub(super) fn listed(meta: &Meta, state: &State) -> Value {
    let mut value = session(meta, state);
    value["command"] = cut_chars(&meta.command, 200).into();
    value
}

pub(super) fn start_event(meta: &Meta) -> ExecEvent {
    ExecEvent {
        event_id: format!("{}:started", meta.session_id),
        session_id: meta.session_id.clone(),
        event: ExecEventKind::Started,
        call_id: meta.call_id.clone(),
        exit_code: None,
        signal: None,
        output_tail: None,
        started_at: meta.started_at,
        ended_at: None,
    }
}

pub(super) fn end_event(meta: &Meta, end: &End, mut tail: String) -> ExecEvent {
    let event = match end.exit {
        _ if end.timed_out() => ExecEventKind::TimedOut,
        Some(Exit::Code(0)) => ExecEventKind::Finished,
        _ => ExecEventKind::Failed,
    };
    let (mut exit_code, mut signal) = (None, None);
    match end.exit {
        Some(Exit::Code(code)) => exit_code = Some(code),
        Some(Exit::Signal(number)) => signal = Some(host::signal_name(number)),
        None | Some(Exit::NeverRan) => tail += "\n[it is gone; its exit status is not known]",
    }
    ExecEvent {
        event_id: format!("{}:ended", meta.session_id),
        session_id: meta.session_id.clone(),
        event,
        call_id: meta.call_id.clone(),
        exit_code,
        signal,
        output_tail: (!tail.is_empty()).then_some(tail),
        started_at: meta.started_at,
        ended_at: Some(end.ended_at),
    }
}
