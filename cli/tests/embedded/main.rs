//! `gsv up`, `down` and `status` with the real workerd and a tiny Worker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

#[path = "../common/mod.rs"]
mod common;

mod login;
mod port;
mod restart;
mod start;
