//! The link against servers that the tests play.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod driver;
mod pinned;
