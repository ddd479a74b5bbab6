//! The sandbox of the built program's node.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that can't go on has failed; a skipped one says so"
)]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod machine;
mod shown;
mod start;
