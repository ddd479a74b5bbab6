//! A node: the link's connection and ledger, and the tools, put together. [`run`] is all there is to call.
//!
//! For: serving tool calls of a gateway on this machine so that each is started at most once and every result arrives.
//! Never: decides what may be called (the gateway's and the tools' business), prints, or keeps a call's arguments.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod book;
mod call;
mod delivery;
mod error;
mod images;
mod invocation;
mod life;
mod log;
mod mask;
mod node;
mod outcome;
mod progress;
mod recover;
mod shared;

pub use error::NodeError;
pub use gsv_tools::{Supervisor, supervise_main};
pub use log::Level;
pub use node::{NodeConfig, Status, StatusSink, run};

/// A runtime for a program that only runs a node: one thread, and few, short-lived helpers for the disk, so that an idle
/// node is small.
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
