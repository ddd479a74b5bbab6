//! The program between a command's supervisor and the shell: enforces the stored plan on itself and becomes the shell. With bubblewrap it
//! runs a second time, inside, and checks what was mounted (check.rs). When that fails, it ends with 126 and a sentence, and the command
//! does not run.

use std::ffi::{OsStr, OsString};
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
    fn enter(&self, proxy: Option<&Path>, command: &[OsString]) -> String {
        let Ok(workdir) = std::env::current_dir() else {
            return "the command's folder is gone".into();
        };
        if let Err(problem) = close_inherited() {
            return problem;
        }
        if proxy.is_some() && !self.tier.has_hosts() {
            return format!("the tier {} can't let single hosts through", self.tier.name());
        }
        match self.tier {
            Tier::Bubblewrap => self.enter_bubblewrap(proxy, command, workdir),
            Tier::Landlock => {
                if let Err(problem) = restrict(&self.plan) {
                    return problem;
                }
                become_program(command, Vec::new())
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
    fn enter_bubblewrap(&self, proxy: Option<&Path>, command: &[OsString], workdir: PathBuf) -> String {
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
        let sockets = match crate::sockets::outside(&covered, &self.plan.writable) {
            Ok(sockets) => sockets,
            Err(problem) => return problem,
        };
        let survey = Survey {
            hidden,
            protected,
            sockets,
            workdir,
        };
        let filter = match seccomp::filter(Sockets::Isolated).map(|program| memory_file(&seccomp::bytes(&program))) {
            Ok(Ok(file)) => file,
            Ok(Err(error)) => return format!("the system-call filter can't be passed on: {error}"),
            Err(problem) => return problem,
        };
        let number = u32::try_from(filter.as_raw_fd()).unwrap_or_default();
        let mounted = arguments(&self.plan, &survey, number, &Disk);
        let check = match inside::expected(&mounted, &survey.protected)
            .and_then(|expected| inside::Check::new(&expected, proxy))
        {
            Ok(check) => check,
            Err(problem) => return problem,
        };
        let error = Command::new(bubblewrap)
            .args(mounted.arguments)
            .args(check.words())
            .args(command)
            .exec();
        format!("{} can't be started: {error}", bubblewrap.display())
    }

    #[cfg(not(target_os = "linux"))]
    fn enter_bubblewrap(&self, _proxy: Option<&Path>, _command: &[OsString], _workdir: PathBuf) -> String {
        "bubblewrap exists only on Linux".into()
    }
}

/// This program again, between bubblewrap and the command: it checks the mounts.
#[cfg(target_os = "linux")]
mod inside {
    use std::ffi::OsString;
    use std::fs::File;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, open};

    use super::{INSIDE, PROXY, memory_file};
    use crate::bubblewrap::Mounted;
    use crate::check::LISTING;
    use crate::expected::{Expected, Want, identity_of};
    use crate::mounts::{Mounts, without_links};

    /// # Errors
    /// A sentence: a folder is gone, or the mounts can't be listed.
    pub(super) fn expected(mounted: &Mounted, protected: &Mounts) -> Result<Expected, String> {
        let mut points = Vec::new();
        for (folder, path) in &mounted.writable {
            let identity = without_links(folder).and_then(identity_of);
            let identity = identity.map_err(|error| format!("{} can't be opened: {error}", folder.display()))?;
            points.push((path.clone(), Want::Writable(identity)));
        }
        let opened =
            |want: fn(_) -> Want| move |opened: &crate::mounts::Opened| (opened.path.clone(), want(opened.identity));
        points.extend(protected.pinned.iter().map(opened(Want::Writable)));
        points.extend(protected.read_only.iter().map(opened(Want::ReadOnly)));
        points.extend(mounted.covers.iter().map(|path| (path.clone(), Want::Cover)));
        points.extend(mounted.sockets.iter().map(|path| (path.clone(), Want::Socket)));
        let before = std::fs::read(LISTING).map_err(|error| format!("{LISTING} can't be read: {error}"))?;
        Ok(Expected { points, before })
    }

    /// Open files for the program inside. It is started by its open file, because the sandbox may hide its path.
    pub(super) struct Check {
        program: OwnedFd,
        expected: File,
        proxy: Option<OwnedFd>,
    }

    impl Check {
        /// # Errors
        /// A sentence: a file can't be made or opened.
        pub(super) fn new(expected: &Expected, proxy: Option<&Path>) -> Result<Self, String> {
            let program = open("/proc/self/exe", OFlags::PATH, Mode::empty());
            let proxy = proxy
                .map(|socket| open(socket, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()))
                .transpose();
            Ok(Self {
                program: program.map_err(|error| format!("this program can't be opened: {error}"))?,
                expected: memory_file(&expected.to_bytes())
                    .map_err(|error| format!("the plan of the mounts can't be passed on: {error}"))?,
                proxy: proxy.map_err(|error| format!("the node's proxy can't be reached: {error}"))?,
            })
        }

        /// The words before the command.
        pub(super) fn words(&self) -> Vec<OsString> {
            // The word that leads to `confine_main` is the first argument of each program that calls it.
            let word = std::env::args_os().nth(1).unwrap_or_default();
            let mut words: Vec<OsString> = vec![
                format!("/proc/self/fd/{}", self.program.as_raw_fd()).into(),
                word,
                INSIDE.into(),
                self.expected.as_raw_fd().to_string().into(),
            ];
            if let Some(proxy) = &self.proxy {
                words.extend([PROXY.into(), proxy.as_raw_fd().to_string().into()]);
            }
            words.push("--".into());
            words
        }
    }
}

/// Checks the mounts from inside and becomes the command. Returns only when that failed.
#[cfg(target_os = "linux")]
fn enter_checked(number: &OsStr, proxy: Option<&OsStr>, command: &[OsString]) -> String {
    let checked = crate::check::check(&number.to_string_lossy());
    let bridged = checked.and_then(|()| {
        proxy
            .map(|socket| crate::bridge::start(&socket.to_string_lossy()))
            .transpose()
    });
    match bridged.and_then(|variables| close_inherited().map(|()| variables)) {
        Ok(variables) => become_program(command, variables.unwrap_or_default()),
        Err(problem) => problem,
    }
}

#[cfg(not(target_os = "linux"))]
fn enter_checked(_number: &OsStr, _proxy: Option<&OsStr>, _command: &[OsString]) -> String {
    "bubblewrap exists only on Linux".into()
}

/// Returns only when that failed.
fn become_program(command: &[OsString], variables: Vec<(&'static str, String)>) -> String {
    let Some((program, arguments)) = command.split_first() else {
        return "there is no command".into();
    };
    let error = Command::new(program).args(arguments).envs(variables).exec();
    format!("{} can't be started: {error}", program.display())
}

/// A file that a started program inherits, at its beginning.
#[cfg(target_os = "linux")]
fn memory_file(content: &[u8]) -> io::Result<std::fs::File> {
    use std::io::Seek as _;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("gsv", rustix::fs::MemfdFlags::empty())?);
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

/// Returns only when that failed.
fn enter_stored(file: &Path, proxy: Option<&Path>, command: &[OsString]) -> String {
    match Confinement::read(file) {
        Ok(confinement) => confinement.enter(proxy, command),
        Err(error) => format!("its plan can't be read: {error}"),
    }
}

/// The exit status of a command that was not started.
pub const NOT_STARTED: u8 = 126;

/// Stands in the place of the stored plan when this program runs in the sandbox.
const INSIDE: &str = "--inside";
/// Followed by the node's socket for this command, or inside by the number of that open file.
const PROXY: &str = "--proxy";

/// The `main` of the program; `args` are `FILE [--proxy SOCKET] -- PROGRAM ARGS...`, `FILE` being a stored [`Confinement`].
///
/// The program that calls it must do so for its first argument, whatever that is: it is started again with the same one, followed by
/// `--inside NUMBER [--proxy NUMBER] -- PROGRAM ARGS...`.
pub fn confine_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let problem = match args.as_slice() {
        [inside, number, dashes, command @ ..] if inside == INSIDE && dashes == "--" => {
            enter_checked(number, None, command)
        }
        [inside, number, proxy, socket, dashes, command @ ..]
            if inside == INSIDE && proxy == PROXY && dashes == "--" =>
        {
            enter_checked(number, Some(socket.as_os_str()), command)
        }
        [file, proxy, socket, dashes, command @ ..] if proxy == PROXY && dashes == "--" => {
            enter_stored(Path::new(file), Some(Path::new(socket)), command)
        }
        [file, dashes, command @ ..] if dashes == "--" => enter_stored(Path::new(file), None, command),
        _ => "it was called without a plan".into(),
    };
    let text = format!("[GSV: the sandbox can't be set up: {problem}. The command was not run.]\n");
    // Without standard error there is no one to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(NOT_STARTED)
}
