//! What is said of a command that was not run, and with which exit status.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::explain::{NO_PROGRAM, NOT_SET_UP};

/// The exit status of a command that was not started.
pub(super) const NOT_STARTED: u8 = 126;

/// Why a command was not run.
#[derive(Debug)]
pub(super) enum NotRun {
    /// The sandbox can't be made. A clause that says why.
    NoSandbox(String),
    /// The sandbox was made, and the program, usually a shell, can't be started in it.
    NoProgram { program: OsString, error: io::Error },
}

impl From<String> for NotRun {
    fn from(problem: String) -> Self {
        Self::NoSandbox(problem)
    }
}

/// A command that was not run.
pub(super) fn not_started(why: &NotRun) -> ExitCode {
    ended(&match why {
        NotRun::NoSandbox(problem) => format!(
            "{NOT_SET_UP}{problem}. The command was not run. If this happens again, tell the user: `gsv node sandbox` tests the sandbox.]\n"
        ),
        NotRun::NoProgram { program, error } => format!(
            "[GSV: {}{NO_PROGRAM}{error}. The command was not run. Tell the user to give the node a shell that the sandbox shows.]\n",
            program.display()
        ),
    })
}

/// Ends with the text as it is.
pub(super) fn ended(text: &str) -> ExitCode {
    // Without standard error there is no one to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(NOT_STARTED)
}
