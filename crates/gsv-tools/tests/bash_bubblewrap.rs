//! The suite of Bash and Process with every command in the sandbox (bubblewrap).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

#[path = "bash.rs"]
mod bash;
#[path = "bash/hosts.rs"]
mod hosts;
#[path = "bash/sandboxed.rs"]
mod sandboxed;

use bash::common;
