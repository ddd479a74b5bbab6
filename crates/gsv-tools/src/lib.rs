//! The tools that a node serves: Bash, Process, Read, Write, Edit, Delete, Glob and Grep, and those of the program that runs it.
//!
//! Runs tool calls, confined and bounded; every failure has an error code.
//! Never: talks to a network, decides who may call what (policy, queueing and the call ledger are the node's), or runs a
//! command a second time under one call id.
//!
//! Map: [`ToolBox`] is the entry point; only [`beneath`] opens paths; [`exec`] starts commands that survive the node's
//! death.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a test that can't go on has failed"
    )
)]

mod args;
mod bash;
pub mod beneath;
mod delete;
mod edit;
mod error;
pub mod exec;
pub mod limits;
pub mod own;
mod process;
mod read;
mod search;
pub mod shell;
mod temporary;
mod text;
mod tool;
mod tool_output;
mod toolbox;
pub mod transfer;
pub mod undo;
mod write;

pub use error::ToolError;
pub use exec::{CommandLimits, CommandOutput, CommandStatus, EndedCommand, EndedOutput, RunningCommand, RunningOutput};
pub use exec::{
    ExecEvent, ExecEventKind, Network, Reattached, RunningCall, Sandbox, StartInfo, Supervisor, is_inside_command,
    machine_memory_bytes, supervise_main,
};
pub use tool::{BoxFuture, CallContext, Cancel, Effect, OnStarted, Progress, Tool, ToolDefinition};
pub use tool_output::{Block, BlockOutput, ToolOutput};
pub use toolbox::{Config, ToolBox};
