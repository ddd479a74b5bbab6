//! The tools as a model calls them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on has failed; a slow lane says what it has tried"
)]

#[path = "../common/mod.rs"]
mod common;

mod confinement;
mod files;
#[cfg(target_os = "linux")]
mod homes;
mod links;
mod private;
mod race;
mod search;
