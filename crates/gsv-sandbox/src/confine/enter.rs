//! Enforces the plan of a command on this process, by its tier. bubblewrap, which makes a new process, is in `outside`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::exit::NotRun;
#[cfg(not(target_os = "linux"))]
use super::other_systems::restriction;
use super::{Confinement, Enforcer};
use crate::gate::{Gate, Passed};
use crate::look::Disk;
use crate::mounts::close_inherited;
#[cfg(target_os = "linux")]
use crate::plan::Plan;
use crate::seatbelt;

impl Confinement {
    /// Enforces the plan, passes the gate and becomes the program; with bubblewrap it waits for the program, and returns its exit status.
    /// That is 0 when the gate was closed.
    ///
    /// # Errors
    /// The command was not run.
    pub(super) fn enter(&self, proxy: Option<&Path>, gate: Option<&Gate>, command: &[OsString]) -> Result<u8, NotRun> {
        let workdir = std::env::current_dir().map_err(|_| "the command's folder is gone".to_owned())?;
        close_inherited()?;
        if proxy.is_some() && !self.enforcer.tier().has_hosts() {
            return Err(format!(
                "the tier {} can't let single hosts through",
                self.enforcer.tier().name()
            )
            .into());
        }
        match &self.enforcer {
            Enforcer::Bubblewrap(program) => Ok(self.enter_bubblewrap(program, proxy, gate, command, &workdir)?),
            Enforcer::Landlock => {
                let restriction = restriction(&self.plan)?;
                if is_closed(gate)? {
                    return Ok(0);
                }
                restriction.enforce()?;
                Err(become_program(command, Vec::new()))
            }
            Enforcer::Seatbelt => {
                let profile = seatbelt::profile(&self.plan, &workdir, &Disk)?;
                if is_closed(gate)? {
                    return Ok(0);
                }
                let mut built = Command::new(seatbelt::PROGRAM);
                let error = built.arg("-p").arg(profile).args(command).exec();
                Err(format!("{} can't be started: {error}", seatbelt::PROGRAM).into())
            }
        }
    }
}

/// Waits at the gate, where there is one.
fn is_closed(gate: Option<&Gate>) -> Result<bool, String> {
    Ok(gate.map(Gate::pass).transpose()? == Some(Passed::Closed))
}

/// Returns only when that failed.
pub(super) fn become_program(command: &[OsString], variables: Vec<(&'static str, String)>) -> NotRun {
    let Some((program, arguments)) = command.split_first() else {
        return NotRun::NoSandbox("there is no command".into());
    };
    let error = Command::new(program).args(arguments).envs(variables).exec();
    NotRun::NoProgram {
        program: program.clone(),
        error,
    }
}

#[cfg(target_os = "linux")]
fn restriction(plan: &Plan) -> Result<crate::landlock::Restriction, String> {
    crate::landlock::Restriction::prepare(&crate::grants::grants(plan, &Disk)?, plan.read_only)
}
