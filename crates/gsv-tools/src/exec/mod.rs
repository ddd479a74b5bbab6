//! Commands that outlive the node. Each runs under a small supervisor program in its own session; its output, its exit
//! status and its metadata are files in one folder, from which a restarted node recovers it.
//!
//! At most one start: the folder of a call id is made exclusively, and the command itself waits at a gate until the
//! node's `on_started` has returned. A node that dies before that closes the gate, and the command does not run.
//! Never: runs a command twice, keeps output in memory.

mod asked;
mod command_limits;
mod host;
mod meta;
mod output;
mod proxy;
mod report;
mod sandbox;
mod session;
mod sessions;
mod start;
mod state;
mod supervisor;
mod tree;
mod usage;
mod watch;

use serde::Serialize;

pub(crate) use asked::Asked;
pub use command_limits::CommandLimits;
pub use meta::StartInfo;
pub(crate) use report::{CommandInfo, ListedCommand};
pub use report::{CommandOutput, CommandStatus, EndedCommand, EndedOutput, RunningCommand, RunningOutput};
pub use sandbox::{Network, Sandbox};
pub use session::RunningCall;
pub(crate) use session::{KillReason, Session};
pub(crate) use sessions::Sessions;
pub(crate) use start::Spec;
pub use supervisor::{Supervisor, supervise_main};
pub use tree::is_inside_command;
pub use usage::machine_memory_bytes;

/// A change of a background command, for `node.exec.event`. The same event always has the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecEvent {
    pub event_id: String,
    pub session_id: String,
    pub event: ExecEventKind,
    pub call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tail: Option<String>,
    pub started_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecEventKind {
    Started,
    Finished,
    Failed,
    TimedOut,
}

/// The state of a command that an earlier node started.
pub enum Reattached {
    /// It still runs. Its timeout counts from its start.
    Running(RunningCall),
    /// It has ended; this is the output of the call.
    Finished(CommandOutput),
    /// It is gone and left no exit status, so whether it finished is not known.
    Lost { pid: u32, tail: String, started_at: u64 },
    /// It never ran and cannot run under this id any more.
    NeverStarted,
}
