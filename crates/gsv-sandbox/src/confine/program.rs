//! The `main` of the program that confines a command (mod.rs): reads its arguments, waits at a gate where there is one, and applies the stored plan to
//! itself.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::Confinement;
use super::exit::{NOT_STARTED, NotRun, not_started};
#[cfg(target_os = "linux")]
use super::inside::enter_checked;
use super::options::{Call, ConfineOptions, PlanUse};
#[cfg(not(target_os = "linux"))]
use super::other_systems::enter_checked;
use crate::gate::{Gate, Passed};

/// The `main` of the program; `args` are `FILE [--proxy SOCKET | --read-only] [--gate INPUT OUTPUT NEVER] -- PROGRAM ARGS...`, `FILE` being a
/// stored [`Confinement`] ([`ConfineOptions::words`] makes what is between it and the program). With a gate ([`crate::GateFiles`]), it prints
/// its pid, and the command begins after the line `go` on standard input.
///
/// The program that calls it must do so for its first argument, whatever that is: it is started again with the same one, followed by
/// `--inside EXPECTED SIGN ERRORS [--proxy NUMBER] [--input NUMBER] -- PROGRAM ARGS...`, which are numbers of open files.
pub fn confine_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match Call::parse(&args) {
        Some(Call::Inside { options, command }) => enter_checked(&options, command),
        Some(Call::Outside { file, options, command }) => enter_outside(file, &options, command),
        None => not_started(&NotRun::NoSandbox("it was called without a plan".into())),
    }
}

fn enter_outside(file: &Path, options: &ConfineOptions, command: &[OsString]) -> ExitCode {
    let enter = |gate: Option<&Gate>| enter_stored(file, &options.plan_use, gate, command);
    let entered = match &options.gate {
        None => enter(None),
        Some(files) => {
            let Ok(gate) = Gate::new(files) else {
                // Without the command's files there is nowhere to say it.
                return ExitCode::from(NOT_STARTED);
            };
            // Why a command did not run is told only where it was to run.
            enter(Some(&gate)).or_else(|why| match gate.pass()? {
                Passed::Opened => Err(why),
                Passed::Closed => Ok(0),
            })
        }
    };
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(why) => not_started(&why),
    }
}

/// As [`Confinement::enter`].
fn enter_stored(file: &Path, plan_use: &PlanUse, gate: Option<&Gate>, command: &[OsString]) -> Result<u8, NotRun> {
    let stored = Confinement::read(file);
    let mut confinement = stored.map_err(|error| format!("its plan can't be read: {error}"))?;
    confinement.plan.read_only = *plan_use == PlanUse::ReadOnly;
    let proxy = match plan_use {
        PlanUse::Proxied(socket) => Some(socket.as_path()),
        PlanUse::AsPlanned | PlanUse::ReadOnly => None,
    };
    confinement.enter(proxy, gate, command)
}
