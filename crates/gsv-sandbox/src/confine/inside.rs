//! This program again, between bubblewrap and the command: checks the mounts, passes the gate and becomes the command.

use std::ffi::OsString;
use std::process::ExitCode;

use super::enter::become_program;
use super::exit::{ended, not_started};
use super::options::InsideOptions;
use crate::check::check;
use crate::gate::{Passed, pass_inside};
use crate::landlock::keep_from_pipes;
use crate::mounts::close_inherited;
use crate::{attempt, bridge};

/// Checks the mounts from inside, passes the gate and becomes the command. Returns only when the gate was closed, or when something failed.
pub(super) fn enter_checked(options: &InsideOptions, command: &[OsString]) -> ExitCode {
    let [expected, sign, errors] =
        [&options.expected, &options.sign, &options.errors].map(|number| number.to_string_lossy());
    let start = || -> Result<_, String> {
        let planned = check(&expected)?;
        let bridge = (options.proxy.as_ref()).map(|socket| bridge::start(&socket.to_string_lossy()));
        let variables = bridge.transpose()?;
        close_inherited()?;
        keep_from_pipes(["1", &errors], planned.writable())?;
        let passed = options.input.as_deref().map(pass_inside).transpose()?;
        if passed == Some(Passed::Closed) {
            attempt::close(&sign)?;
            return Ok(None);
        }
        attempt::begin(&sign, &errors)?;
        Ok(Some(variables.unwrap_or_default()))
    };
    match start() {
        // The sandbox is set up: what fails now is the program.
        Ok(Some(variables)) => not_started(&become_program(command, variables)),
        Ok(None) => ExitCode::SUCCESS,
        // The program outside makes a sentence of it, unless it tries again.
        Err(problem) => ended(&problem),
    }
}
