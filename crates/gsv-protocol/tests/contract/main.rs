//! The contract as Rust reads and writes it. One program, because each further one compiles the reading of all types again.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod codec;
mod golden;
mod golden_types;
mod lookups;
