//! The program outside: makes the mounts of a command with bubblewrap, starts itself inside, and waits for the command.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::Confinement;
use super::handover::{Handover, expected};
use crate::attempt::{Attempt, End, Files, MORE, memory_file};
use crate::bubblewrap::{EMPTY, Survey, arguments};
use crate::gate::Gate;
use crate::look::Disk;
use crate::mounts::Mounts;
use crate::protect::protected;
use crate::search::{folder_names, smaller};
use crate::seccomp::{self, Sockets};
use crate::{networks, sockets};

/// What bubblewrap takes (9000), with the command's own.
const ARGUMENTS: usize = 8_900;

impl Confinement {
    /// Starts the command again with a new plan as long as it has not begun.
    pub(super) fn enter_bubblewrap(
        &self,
        bubblewrap: &Path,
        proxy: Option<&Path>,
        gate: Option<&Gate>,
        command: &[OsString],
        workdir: &Path,
    ) -> Result<u8, String> {
        let failed = |error: io::Error| format!("the command's start can't be followed: {error}");
        // bubblewrap ends with this process, and this one with the supervisor.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(error.into()))?;
        let mut left = MORE;
        loop {
            let attempt = self.try_bubblewrap(bubblewrap, proxy, gate, command, workdir)?;
            match attempt.wait().map_err(failed)? {
                End::Over(status) => return Ok(status),
                End::Closed => {
                    gate.map(Gate::close).transpose()?;
                    return Ok(0);
                }
                End::NeverBegan(why) if left == 0 => return Err(why),
                End::NeverBegan(_) => left -= 1,
            }
        }
    }

    fn try_bubblewrap(
        &self,
        bubblewrap: &Path,
        proxy: Option<&Path>,
        gate: Option<&Gate>,
        command: &[OsString],
        workdir: &Path,
    ) -> Result<Attempt, String> {
        let survey = self.survey(workdir)?;
        let filter = memory_file(&seccomp::bytes(&seccomp::filter(Sockets::Isolated, false)?))
            .map_err(|error| format!("the system-call filter can't be passed on: {error}"))?;
        let mounted = arguments(&self.plan, &survey, filter.as_raw_fd(), &Disk);
        let handover = Handover::new(&expected(&mounted, &survey.protected)?, proxy, gate)?;
        let failed = |error: io::Error| format!("{} can't be started: {error}", bubblewrap.display());
        let files = Files::new().map_err(failed)?;
        if mounted.arguments.len() > ARGUMENTS {
            return Err(format!(
                "there are more hooks, settings and sockets in {} that must be kept from commands than bubblewrap can mount. Ask the user to remove what is not needed there, or to {}",
                folder_names(&self.plan.searched()),
                smaller(&self.plan.searched()),
            ));
        }
        let mut built = Command::new(bubblewrap);
        built.args(mounted.arguments).args(handover.words(&files)).args(command);
        files.start(built).map_err(failed)
    }

    fn survey(&self, workdir: &Path) -> Result<Survey, String> {
        let plan = &self.plan;
        let hidden = plan.hidden_now(&Disk)?;
        let mut covered = hidden.clone();
        covered.extend(EMPTY.iter().map(PathBuf::from));
        covered.push("/tmp".into());
        let temp = plan.temp();
        let (found, others) = std::thread::scope(|scope| {
            // It waits for the kernel once for each process, so it runs beside the search.
            let others = scope.spawn(|| networks::other_namespaces(&temp));
            let found = protected(&plan.searched(), &plan.writable, &plan.homes, workdir, &Disk);
            (found, others.join())
        });
        let (protected, met) = found?;
        let others = others.map_err(|_| "the sockets of other programs can't be listed".to_owned())??;
        // Where nothing is writable, nothing else needs protection.
        let protected = if plan.read_only {
            Mounts::default()
        } else {
            Mounts::open(protected)?
        };
        Ok(Survey {
            hidden,
            protected,
            sockets: sockets::outside(&covered, &plan.writable, met, others)?,
            workdir: workdir.to_owned(),
        })
    }
}
