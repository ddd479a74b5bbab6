//! The program between a command's supervisor and the shell: enforces the stored plan on itself and becomes the shell.
//! When that fails, it ends with 126 and a sentence, and the command does not run.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use crate::look::Disk;
use crate::mounts::close_inherited;
use crate::plan::Plan;
use crate::profile::Tier;
use crate::protect::protected;
use crate::seatbelt;

/// A plan and what enforces it, as it is stored for the commands of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub tier: Tier,
    pub plan: Plan,
    /// The program `bwrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<PathBuf>,
}

impl Confinement {
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let temp = file.with_extension("tmp");
        std::fs::write(&temp, serde_json::to_vec(self)?)?;
        std::fs::rename(temp, file)
    }

    fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    /// Enforces the plan and becomes the program. Returns only when that failed.
    fn enter(&self, command: &[OsString]) -> String {
        let (Some(program), Ok(workdir)) = (command.first(), std::env::current_dir()) else {
            return "there is no command, or its folder is gone".into();
        };
        let arguments = command.get(1..).unwrap_or_default();
        if let Err(problem) = close_inherited() {
            return problem;
        }
        match self.tier {
            Tier::Bubblewrap => self.enter_bubblewrap(command, workdir),
            Tier::Landlock => {
                if let Err(problem) = restrict(&self.plan) {
                    return problem;
                }
                let error = Command::new(program).args(arguments).exec();
                format!("{} can't be started: {error}", program.display())
            }
            Tier::Seatbelt => {
                let profile = seatbelt::profile(&self.plan, &protected(&self.plan.workspace, &workdir, &Disk));
                let mut built = Command::new(seatbelt::PROGRAM);
                let error = built.arg("-p").arg(profile).args(command).exec();
                format!("{} can't be started: {error}", seatbelt::PROGRAM)
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn enter_bubblewrap(&self, command: &[OsString], workdir: PathBuf) -> String {
        use std::os::fd::AsRawFd as _;

        use crate::bubblewrap::{EMPTY, Survey, arguments};
        use crate::mounts::Mounts;
        use crate::seccomp::{self, Sockets};

        let Some(bubblewrap) = &self.bubblewrap else {
            return "the plan does not say where bubblewrap is".into();
        };
        let hidden = self.plan.hidden_now(&Disk);
        let mut covered = hidden.clone();
        covered.extend(EMPTY.iter().map(PathBuf::from));
        covered.push("/tmp".into());
        let protected = match Mounts::open(protected(&self.plan.workspace, &workdir, &Disk)) {
            Ok(mounts) => mounts,
            Err(problem) => return problem,
        };
        let survey = Survey {
            protected,
            sockets: crate::sockets::outside(&covered, &self.plan.writable),
            hidden,
            workdir,
        };
        let filter = match seccomp::filter(Sockets::Isolated).map(|program| memory_file(&seccomp::bytes(&program))) {
            Ok(Ok(file)) => file,
            Ok(Err(error)) => return format!("the system-call filter can't be passed on: {error}"),
            Err(problem) => return problem,
        };
        let number = u32::try_from(filter.as_raw_fd()).unwrap_or_default();
        let error = Command::new(bubblewrap)
            .args(arguments(&self.plan, &survey, number, &Disk))
            .args(command)
            .exec();
        format!("{} can't be started: {error}", bubblewrap.display())
    }

    #[cfg(not(target_os = "linux"))]
    fn enter_bubblewrap(&self, _command: &[OsString], _workdir: PathBuf) -> String {
        "bubblewrap exists only on Linux".into()
    }
}

/// A file that a started program inherits, at its beginning.
#[cfg(target_os = "linux")]
fn memory_file(content: &[u8]) -> io::Result<std::fs::File> {
    use std::io::Seek as _;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("filter", rustix::fs::MemfdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn restrict(plan: &Plan) -> Result<(), String> {
    crate::landlock::restrict(&crate::grants::grants(plan, &Disk))
}

#[cfg(not(target_os = "linux"))]
fn restrict(_plan: &Plan) -> Result<(), String> {
    Err("Landlock exists only on Linux".into())
}

/// The exit status of a command that was not started.
pub const NOT_STARTED: u8 = 126;

/// The `main` of the program; `args` are `FILE -- PROGRAM ARGS...`, `FILE` being a stored [`Confinement`].
pub fn confine_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let problem = match args.as_slice() {
        [file, dashes, command @ ..] if dashes == "--" => match Confinement::read(Path::new(file)) {
            Ok(confinement) => confinement.enter(command),
            Err(error) => format!("its plan can't be read: {error}"),
        },
        _ => "it was called without a plan".into(),
    };
    let text = format!("[GSV: the sandbox can't be set up: {problem}. The command was not run.]\n");
    // Without standard error there is no one to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(NOT_STARTED)
}
