//! A node: a link, a call ledger and the tools. [`run`] is the only function to call.
//!
//! Serves a gateway's tool calls on this machine: each starts at most once, and every result arrives. Never decides what may
//! be called (the gateway and the tools do), prints, or keeps the arguments of a call.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod admission;
mod background;
mod calls;
mod connection;
mod context;
mod dangling;
mod delivery;
mod desktop;
mod dispatch;
mod error;
mod event;
mod finish;
mod fit;
mod images;
mod invocation;
mod log;
mod mask;
mod node;
mod outbox;
mod outcome;
pub mod policy;
mod progress;
mod recover;
mod report;
mod run_call;
pub mod sandbox;
mod scrub;
mod service;
mod shared_ledger;
mod show;
mod tasks;
mod transfer;
mod undo;

pub use connection::Connection;
pub use dangling::{Dangling, dangling_link};
pub use error::NodeError;
pub use event::{EventSink, NodeEvent};
pub use gsv_tools::transfer::is_temp_name;
pub use gsv_tools::{CommandLimits, Supervisor, is_inside_command, machine_memory_bytes, supervise_main};
pub use log::Level;
pub use node::{NodeConfig, check_workspace, run};
pub use report::{Status, StatusSink};
pub use transfer::{Ends, Part};

/// A runtime for a program that only runs a node: one thread, and short-lived threads for the disk, so that an idle node needs
/// little memory.
///
/// # Errors
/// The system's.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(32)
        .thread_stack_size(512 * 1024)
        .thread_keep_alive(std::time::Duration::from_secs(2))
        .build()
}
