//! The `main` of the program: reads its words, and enforces the stored plan, at a gate where there is one.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::Confinement;
use super::exit::{NOT_STARTED, not_started};
#[cfg(target_os = "linux")]
use super::inside::enter_checked;
use super::options::{INSIDE, Options};
#[cfg(not(target_os = "linux"))]
use super::other_systems::enter_checked;
use crate::gate::{Gate, GateFiles, Passed};

/// The `main` of the program; `args` are `FILE [--proxy SOCKET | --read-only] [--gate INPUT OUTPUT NEVER] -- PROGRAM ARGS...`, `FILE` being a
/// stored [`Confinement`]. With a gate ([`GateFiles`]), it prints its pid, and the command begins after the line `go` on standard input.
///
/// The program that calls it must do so for its first argument, whatever that is: it is started again with the same one, followed by
/// `--inside EXPECTED SIGN ERRORS [--proxy NUMBER] [--input NUMBER] -- PROGRAM ARGS...`, which are numbers of open files.
pub fn confine_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let unplanned = || not_started("it was called without a plan");
    match args.as_slice() {
        [inside, expected, sign, errors, rest @ ..] if inside == INSIDE => {
            match Options::parse(rest).filter(Options::is_inside) {
                Some(options) => enter_checked([expected, sign, errors], &options),
                None => unplanned(),
            }
        }
        [file, rest @ ..] => match Options::parse(rest).filter(Options::is_outside) {
            Some(mut options) => match options.gate.take() {
                Some(gate) => enter_at_gate(Path::new(file), &options, &gate),
                None => exit_of(enter_stored(Path::new(file), &options, None)),
            },
            None => unplanned(),
        },
        [] => unplanned(),
    }
}

/// As [`Confinement::enter`].
fn enter_stored(file: &Path, options: &Options, gate: Option<&Gate>) -> Result<u8, String> {
    let stored = Confinement::read(file);
    let mut confinement = stored.map_err(|error| format!("its plan can't be read: {error}"))?;
    confinement.plan.read_only = options.read_only;
    confinement.enter(options.proxy.map(Path::new), gate, options.command)
}

fn enter_at_gate(file: &Path, options: &Options, files: &GateFiles) -> ExitCode {
    let Ok(gate) = Gate::new(files) else {
        // Without the command's files there is nowhere to say it.
        return ExitCode::from(NOT_STARTED);
    };
    exit_of(enter_stored(file, options, Some(&gate)).or_else(|problem| {
        // Why a command did not run is told only where it was to run.
        match gate.pass()? {
            Passed::Opened => Err(problem),
            Passed::Closed => Ok(0),
        }
    }))
}

fn exit_of(entered: Result<u8, String>) -> ExitCode {
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(problem) => not_started(&problem),
    }
}
