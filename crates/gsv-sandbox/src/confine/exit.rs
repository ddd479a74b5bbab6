//! What is said of a command that was not run, and with which exit status.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::explain::NOT_SET_UP;

/// The exit status of a command that was not started.
pub(super) const NOT_STARTED: u8 = 126;

/// A command that was not run. `problem`: a clause that says why.
pub(super) fn not_started(problem: &str) -> ExitCode {
    ended(&format!(
        "{NOT_SET_UP}{problem}. The command was not run. If this happens again, tell the user: `gsv node sandbox` tests the sandbox.]\n"
    ))
}

/// Ends with the text as it is.
pub(super) fn ended(text: &str) -> ExitCode {
    // Without standard error there is no one to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(NOT_STARTED)
}
