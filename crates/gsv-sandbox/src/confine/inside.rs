//! This program again, between bubblewrap and the command: checks the mounts, passes the gate and becomes the command.

use std::ffi::OsStr;
use std::process::ExitCode;

use super::enter::become_program;
use super::exit::{ended, not_started};
use super::options::Options;
use crate::check::check;
use crate::gate::{Passed, pass_inside};
use crate::landlock::keep_from_pipes;
use crate::mounts::close_inherited;
use crate::{attempt, bridge};

/// Checks the mounts from inside, passes the gate and becomes the command. Returns only when the gate was closed, or when something failed.
/// `files`: the numbers of what is expected, the sign that the command begins, and its standard error.
pub(super) fn enter_checked(files: [&OsStr; 3], options: &Options) -> ExitCode {
    let [expected, sign, errors] = files.map(OsStr::to_string_lossy);
    let start = || -> Result<_, String> {
        let planned = check(&expected)?;
        let bridge = options.proxy.map(|socket| bridge::start(&socket.to_string_lossy()));
        let variables = bridge.transpose()?;
        close_inherited()?;
        keep_from_pipes(["1", &errors], planned.writable())?;
        if options.input.map(pass_inside).transpose()? == Some(Passed::Closed) {
            attempt::close(&sign)?;
            return Ok(None);
        }
        attempt::begin(&sign, &errors)?;
        Ok(Some(variables.unwrap_or_default()))
    };
    match start() {
        Ok(Some(variables)) => not_started(&become_program(options.command, variables)),
        Ok(None) => ExitCode::SUCCESS,
        // The program outside makes a sentence of it, unless it tries again.
        Err(problem) => ended(&problem),
    }
}
