//! Describes a command: outputs of calls, entries of lists, events. Optional fields are absent, never null.

use std::borrow::Cow;
use std::fmt::Write as _;

use gsv_sandbox::explain;
use serde::Serialize;

use super::meta::{Ending, Exit, Meta};
use super::output::Tail;
use super::state::{End, State};
use super::{ExecEvent, ExecEventKind, host};
use crate::error::ToolError;
use crate::limits;
use crate::text::{cut_chars, tail_chars};

/// The output of Bash: the command runs on in the background, or it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandOutput {
    Running(RunningOutput),
    Ended(EndedOutput),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    Running,
    /// It ended with exit code 0.
    Completed,
    /// It ended with another exit code, by a signal or by its timeout.
    Failed,
    /// It is gone and left no exit status.
    Unknown,
}

/// A command that runs. `started_at` is in epoch milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCommand {
    /// Always [`CommandStatus::Running`].
    status: CommandStatus,
    pub session_id: String,
    pub pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'static, str>>,
}

impl RunningCommand {
    pub fn new(session_id: impl Into<String>, pid: u32, started_at: Option<u64>) -> Self {
        Self {
            status: CommandStatus::Running,
            session_id: session_id.into(),
            pid,
            started_at,
            workdir: None,
            note: None,
        }
    }

    fn of(meta: &Meta) -> Self {
        Self {
            workdir: Some(meta.workdir.clone()),
            ..Self::new(meta.session_id.as_str(), meta.pid, Some(meta.started_at))
        }
    }
}

/// A command that runs, and the end of its output so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningOutput {
    #[serde(flatten)]
    pub command: RunningCommand,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
}

/// A command that has ended. Times are in epoch milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedCommand {
    pub status: CommandStatus,
    pub session_id: String,
    pub timed_out: bool,
    pub started_at: u64,
    pub ended_at: u64,
    pub duration_ms: u64,
    pub workdir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'static, str>>,
}

/// A command that has ended, and its output. `tail` is the end of `output`; `truncated`: the start of `output` was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndedOutput {
    #[serde(flatten)]
    pub command: EndedCommand,
    pub output: String,
    pub tail: String,
    pub truncated: bool,
}

/// A command as Process shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum CommandInfo {
    Running(RunningCommand),
    Ended(EndedCommand),
}

impl CommandInfo {
    pub(super) fn of(meta: &Meta, state: &State) -> Self {
        let running = RunningCommand::of(meta);
        match state {
            State::Running => Self::Running(running),
            State::Stuck => Self::Running(RunningCommand {
                note: Some("it did not end when it was killed".into()),
                ..running
            }),
            State::Ended(end) => Self::Ended(ended_command(meta, end)),
        }
    }

    pub(crate) fn status(&self) -> CommandStatus {
        match self {
            Self::Running(command) => command.status,
            Self::Ended(command) => command.status,
        }
    }
}

/// A command in the list of Process. `command` is its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ListedCommand {
    #[serde(flatten)]
    info: CommandInfo,
    command: String,
}

impl ListedCommand {
    pub(super) fn of(meta: &Meta, state: &State) -> Self {
        Self {
            info: CommandInfo::of(meta, state),
            command: cut_chars(&meta.command, 200).to_owned(),
        }
    }
}

pub(super) fn running(meta: &Meta, tail: &Tail) -> CommandOutput {
    CommandOutput::Running(RunningOutput {
        command: RunningCommand::of(meta),
        tail: Some(tail_chars(&tail.text, limits::TAIL_CHARS).0.to_owned()),
    })
}

/// The output of a call whose command has ended.
pub(super) fn ended(meta: &Meta, end: &End, refused: &[String], output: Tail) -> Result<CommandOutput, ToolError> {
    let tail = tail_chars(&output.text, limits::TAIL_CHARS).0.to_owned();
    match end.exit {
        None => Err(ToolError::OutcomeUnknown {
            why: "the command and its supervisor are gone and left no exit status",
            pid: Some(meta.pid),
            started_at: Some(meta.started_at),
            tail: Some(tail),
        }),
        Some(Exit::NeverRan) => Err(ToolError::Failed(
            "the command was not run: its start was not confirmed".into(),
        )),
        Some(Exit::Code(_) | Exit::Signal(_)) => Ok(CommandOutput::Ended(EndedOutput {
            command: EndedCommand {
                note: ended_command(meta, end)
                    .note
                    .or_else(|| of_sandbox(meta, end, refused, &tail).map(Cow::from)),
                ..ended_command(meta, end)
            },
            output: output.text,
            tail,
            truncated: output.truncated,
        })),
    }
}

/// What the sandbox has probably stopped. A command that was ended on request failed for that reason. `refused`: hosts that the command
/// tried to reach; it may have taken the refusal for an answer, and ended without an error.
fn of_sandbox(meta: &Meta, end: &End, refused: &[String], tail: &str) -> Option<String> {
    let ended = end.ending.is_none() && matches!(end.exit, Some(Exit::Code(code)) if code != 0 || !refused.is_empty());
    explain(meta.sandbox.filter(|_| ended)?, meta.escalation, refused, tail)
}

fn status(end: &End) -> CommandStatus {
    match end.exit {
        None | Some(Exit::NeverRan) => CommandStatus::Unknown,
        Some(Exit::Code(0)) if !end.timed_out() => CommandStatus::Completed,
        Some(_) => CommandStatus::Failed,
    }
}

fn ended_command(meta: &Meta, end: &End) -> EndedCommand {
    let (exit_code, signal) = match end.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(host::signal_name(signal))),
        None | Some(Exit::NeverRan) => (None, None),
    };
    EndedCommand {
        status: status(end),
        session_id: meta.session_id.clone(),
        timed_out: end.timed_out(),
        started_at: meta.started_at,
        ended_at: end.ended_at,
        duration_ms: end.duration_ms,
        workdir: meta.workdir.clone(),
        exit_code,
        signal,
        note: over_limit(meta, end),
    }
}

/// That the command was ended because it used too much.
fn over_limit(meta: &Meta, end: &End) -> Option<Cow<'static, str>> {
    let limits = meta.limits.as_ref();
    match end.ending? {
        Ending::Flood => {
            Some("the command was ended because it printed more than can be kept; send its output to a file".into())
        }
        Ending::Memory => Some(
            format!(
                "limit.memory: the command was ended because its processes used more than {} MiB of memory together; let it use less, or ask the user to raise `memory_mib` in node.toml",
                limits?.memory_bytes >> 20
            )
            .into(),
        ),
        Ending::Processes => Some(
            format!(
                "limit.processes: the command was ended because it had more than {} processes and threads at once; let it start fewer, or ask the user to raise `processes` in node.toml",
                limits?.processes
            )
            .into(),
        ),
        Ending::Timeout | Ending::Cancelled | Ending::Killed => None,
    }
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

pub(super) fn end_event(meta: &Meta, end: &End, refused: &[String], mut tail: String) -> ExecEvent {
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
    let note = over_limit(meta, end).or_else(|| of_sandbox(meta, end, refused, &tail).map(Cow::from));
    if let Some(note) = note {
        let _ = write!(tail, "\n[{note}]");
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gsv_sandbox::Escalation;

    use super::*;
    use crate::exec::CommandLimits;

    fn meta() -> Meta {
        Meta {
            session_id: "s.1".into(),
            call_id: "s/1".into(),
            pid: 7,
            pgid: 7,
            start_time: "1".into(),
            supervisor_pid: 6,
            supervisor_start_time: "1".into(),
            boot_id: "b".into(),
            command: "make".into(),
            workdir: "/ws".into(),
            background: false,
            started_at: 1000,
            started_uptime_ms: 1,
            timeout_ms: 5,
            sandbox: None,
            escalation: Escalation::default(),
            limits: Some(CommandLimits {
                memory_bytes: 64 << 20,
                processes: 16,
            }),
        }
    }

    fn end(exit: Option<Exit>, ending: Option<Ending>) -> End {
        End {
            exit,
            ending,
            ended_at: 1250,
            duration_ms: 250,
        }
    }

    fn output() -> Tail {
        Tail {
            text: "out\n".into(),
            ..Tail::default()
        }
    }

    fn result(exit: Exit, ending: Option<Ending>) -> serde_json::Value {
        let ended = ended(&meta(), &end(Some(exit), ending), &[], output()).unwrap();
        serde_json::to_value(ended).unwrap()
    }

    #[test]
    fn p6_2_the_json_of_a_command_has_these_fields() {
        let common = json!({
            "sessionId": "s.1", "startedAt": 1000, "endedAt": 1250, "durationMs": 250, "workdir": "/ws",
            "output": "out\n", "tail": "out\n", "truncated": false,
        });
        let with = |own: serde_json::Value| {
            let mut all = common.as_object().unwrap().clone();
            all.extend(own.as_object().unwrap().clone());
            serde_json::Value::Object(all)
        };
        assert_eq!(
            result(Exit::Code(0), None),
            with(json!({"status": "completed", "timedOut": false, "exitCode": 0}))
        );
        assert_eq!(
            result(Exit::Code(3), None),
            with(json!({"status": "failed", "timedOut": false, "exitCode": 3}))
        );
        assert_eq!(
            result(Exit::Signal(15), Some(Ending::Timeout)),
            with(json!({"status": "failed", "timedOut": true, "signal": "SIGTERM"}))
        );
        assert_eq!(
            result(Exit::Signal(9), Some(Ending::Flood)),
            with(json!({
                "status": "failed", "timedOut": false, "signal": "SIGKILL",
                "note": "the command was ended because it printed more than can be kept; send its output to a file",
            }))
        );
        for (ending, start) in [
            (
                Ending::Memory,
                "limit.memory: the command was ended because its processes used more than 64 MiB",
            ),
            (
                Ending::Processes,
                "limit.processes: the command was ended because it had more than 16 processes",
            ),
        ] {
            let ended = result(Exit::Signal(9), Some(ending));
            assert!(ended["note"].as_str().unwrap().starts_with(start), "{ended}");
            let event = end_event(&meta(), &end(Some(Exit::Signal(9)), Some(ending)), &[], "out".into());
            assert!(event.output_tail.unwrap().starts_with(&format!("out\n[{start}")));
        }
        assert_eq!(
            serde_json::to_value(running(&meta(), &output())).unwrap(),
            json!({"status": "running", "sessionId": "s.1", "pid": 7, "startedAt": 1000, "tail": "out\n", "workdir": "/ws"})
        );
    }

    #[test]
    fn sb9_only_a_command_that_failed_by_itself_has_a_note_of_the_sandbox() {
        let confined = Meta {
            sandbox: Some(gsv_sandbox::Profile::Workspace),
            ..meta()
        };
        let noted = |meta: &Meta, exit, ending| {
            of_sandbox(meta, &end(exit, ending), &[], "sh: /etc/x: Permission denied\n").is_some()
        };
        assert!(noted(&confined, Some(Exit::Code(1)), None));
        assert!(!noted(&meta(), Some(Exit::Code(1)), None));
        assert!(!noted(&confined, Some(Exit::Code(0)), None));
        assert!(!noted(&confined, Some(Exit::Signal(9)), None));
        for ending in [Ending::Timeout, Ending::Cancelled, Ending::Killed, Ending::Flood] {
            assert!(!noted(&confined, Some(Exit::Code(1)), Some(ending)), "{ending:?}");
        }
    }

    #[test]
    fn p6_2_the_json_of_a_listed_command_has_these_fields() {
        let listed = |state: &State| serde_json::to_value(ListedCommand::of(&meta(), state)).unwrap();
        assert_eq!(
            listed(&State::Stuck),
            json!({
                "status": "running", "sessionId": "s.1", "pid": 7, "startedAt": 1000, "workdir": "/ws", "command": "make",
                "note": "it did not end when it was killed",
            })
        );
        assert_eq!(
            listed(&State::Ended(end(None, None))),
            json!({
                "status": "unknown", "sessionId": "s.1", "timedOut": false, "startedAt": 1000, "endedAt": 1250,
                "durationMs": 250, "workdir": "/ws", "command": "make",
            })
        );
    }
}
