//! The program between a command's supervisor and the shell: enforces the stored plan on itself and becomes the shell. With bubblewrap it
//! waits for the shell, and runs a second time, inside, where it checks what was mounted (check.rs); a plan that was out of date is made
//! again (attempt.rs). When that fails, it ends with 126 and a sentence, and the command does not run. Where it has a gate (gate.rs), all
//! is made before the gate is passed.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use crate::explain::NOT_SET_UP;
use crate::gate::{Gate, GateFiles, Passed, pass_inside};
use crate::look::Disk;
use crate::mounts::close_inherited;
use crate::plan::Plan;
use crate::profile::Tier;
use crate::protect::{names, protected, smaller};
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

    /// # Errors
    /// There is no such file, or it can't be read.
    pub fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    /// Enforces the plan, passes the gate and becomes the program; with bubblewrap it waits for the program, and returns its exit status.
    /// That is 0 when the gate was closed.
    ///
    /// # Errors
    /// A sentence: the command was not run.
    fn enter(&self, proxy: Option<&Path>, gate: Option<&Gate>, command: &[OsString]) -> Result<u8, String> {
        let Ok(workdir) = std::env::current_dir() else {
            return Err("the command's folder is gone".into());
        };
        close_inherited()?;
        if proxy.is_some() && !self.tier.has_hosts() {
            return Err(format!("the tier {} can't let single hosts through", self.tier.name()));
        }
        match self.tier {
            Tier::Bubblewrap => self.enter_bubblewrap(proxy, gate, command, &workdir),
            Tier::Landlock => {
                let restriction = restriction(&self.plan)?;
                if is_closed(gate)? {
                    return Ok(0);
                }
                restriction.enforce()?;
                Err(become_program(command, Vec::new()))
            }
            Tier::Seatbelt => {
                // A hidden path may be a link, and one that is missing may be made.
                let mut hidden = self.plan.hidden.clone();
                hidden.extend(self.plan.hidden_now(&Disk)?);
                let profile = seatbelt::profile(
                    &self.plan,
                    &hidden,
                    &protected(
                        &self.plan.searched(),
                        &self.plan.writable,
                        &self.plan.homes,
                        &workdir,
                        &Disk,
                    )?,
                );
                if is_closed(gate)? {
                    return Ok(0);
                }
                let mut built = Command::new(seatbelt::PROGRAM);
                let error = built.arg("-p").arg(profile).args(command).exec();
                Err(format!("{} can't be started: {error}", seatbelt::PROGRAM))
            }
        }
    }

    /// Starts the command again with a new plan as long as it has not begun.
    #[cfg(target_os = "linux")]
    fn enter_bubblewrap(
        &self,
        proxy: Option<&Path>,
        gate: Option<&Gate>,
        command: &[OsString],
        workdir: &Path,
    ) -> Result<u8, String> {
        use rustix::process::{Signal, set_parent_process_death_signal};

        use crate::attempt::{End, MORE};

        let failed = |error: io::Error| format!("the command's start can't be followed: {error}");
        // bubblewrap ends with this process, and this one with the supervisor.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(error.into()))?;
        let mut left = MORE;
        loop {
            let attempt = self.try_bubblewrap(proxy, gate, command, workdir)?;
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

    #[cfg(target_os = "linux")]
    fn try_bubblewrap(
        &self,
        proxy: Option<&Path>,
        gate: Option<&Gate>,
        command: &[OsString],
        workdir: &Path,
    ) -> Result<crate::attempt::Attempt, String> {
        use std::os::fd::AsRawFd as _;

        use crate::attempt::{Files, memory_file};
        use crate::bubblewrap::{EMPTY, Survey, arguments};
        use crate::mounts::Mounts;
        use crate::seccomp::{self, Sockets};

        let Some(bubblewrap) = &self.bubblewrap else {
            return Err("the plan does not say where bubblewrap is".into());
        };
        let hidden = self.plan.hidden_now(&Disk)?;
        let mut covered = hidden.clone();
        covered.extend(EMPTY.iter().map(PathBuf::from));
        covered.push("/tmp".into());
        let temp = self.plan.temp();
        let (protected, elsewhere) = std::thread::scope(|scope| {
            // It waits for the kernel once for each process, so it runs beside the search.
            let elsewhere = scope.spawn(|| crate::networks::elsewhere(&temp));
            let (searched, plan) = (self.plan.searched(), &self.plan);
            let protected = protected(&searched, &plan.writable, &plan.homes, workdir, &Disk);
            (protected, elsewhere.join())
        });
        let mut protected = protected?;
        let elsewhere = elsewhere.map_err(|_| "the sockets of other programs can't be listed".to_owned())??;
        let met = std::mem::take(&mut protected.sockets);
        // Where nothing is writable, nothing else needs protection.
        let protected = if self.plan.read_only {
            Mounts::default()
        } else {
            Mounts::open(protected)?
        };
        let sockets = crate::sockets::outside(&covered, &self.plan.writable, met, elsewhere)?;
        let survey = Survey {
            hidden,
            protected,
            sockets,
            workdir: workdir.to_owned(),
        };
        let filter = memory_file(&seccomp::bytes(&seccomp::filter(Sockets::Isolated, false)?))
            .map_err(|error| format!("the system-call filter can't be passed on: {error}"))?;
        let mounted = arguments(&self.plan, &survey, filter.as_raw_fd(), &Disk);
        let expected = inside::expected(&mounted, &survey.protected)?;
        let check = inside::Check::new(&expected, proxy, gate)?;
        let failed = |error: io::Error| format!("{} can't be started: {error}", bubblewrap.display());
        let files = Files::new().map_err(failed)?;
        if mounted.arguments.len() > ARGUMENTS {
            return Err(format!(
                "there are more hooks, settings and sockets in {} that must be kept from commands than bubblewrap can mount. Ask the user to remove what is not needed there, or to {}",
                names(&self.plan.searched()),
                smaller(&self.plan.searched()),
            ));
        }
        let mut built = Command::new(bubblewrap);
        built.args(mounted.arguments).args(check.words(&files)).args(command);
        files.start(built).map_err(failed)
    }

    #[cfg(not(target_os = "linux"))]
    fn enter_bubblewrap(
        &self,
        _proxy: Option<&Path>,
        _gate: Option<&Gate>,
        _command: &[OsString],
        _workdir: &Path,
    ) -> Result<u8, String> {
        Err("bubblewrap exists only on Linux".into())
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

    use super::{INPUT, INSIDE, PROXY};
    use crate::attempt::{Files, memory_file};
    use crate::bubblewrap::Mounted;
    use crate::expected::{Expected, Want, identity_of};
    use crate::gate::Gate;
    use crate::look::MOUNTS;
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
        for path in &mounted.read_only {
            let identity = without_links(path).and_then(identity_of);
            let identity = identity.map_err(|error| format!("{} can't be opened: {error}", path.display()))?;
            points.push((path.clone(), Want::ReadOnly(identity)));
        }
        points.extend(protected.pinned.iter().map(opened(Want::Writable)));
        points.extend(protected.read_only.iter().map(opened(Want::ReadOnly)));
        points.extend(mounted.covers.iter().map(|path| (path.clone(), Want::Cover)));
        let before = std::fs::read(MOUNTS).map_err(|error| format!("{MOUNTS} can't be read: {error}"))?;
        Ok(Expected { points, before })
    }

    /// Open files for the program inside. It is started by its open file, because the sandbox may hide its path.
    pub(super) struct Check {
        program: OwnedFd,
        expected: File,
        proxy: Option<OwnedFd>,
        /// The number of the command's standard input, where the program inside waits at a gate.
        input: Option<OsString>,
    }

    impl Check {
        /// # Errors
        /// A sentence: a file can't be made or opened.
        pub(super) fn new(expected: &Expected, proxy: Option<&Path>, gate: Option<&Gate>) -> Result<Self, String> {
            let program = open("/proc/self/exe", OFlags::PATH, Mode::empty());
            let proxy = proxy
                .map(|socket| open(socket, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()))
                .transpose();
            Ok(Self {
                program: program.map_err(|error| format!("this program can't be opened: {error}"))?,
                expected: memory_file(&expected.to_bytes())
                    .map_err(|error| format!("the plan of the mounts can't be passed on: {error}"))?,
                proxy: proxy.map_err(|error| format!("the node's proxy can't be reached: {error}"))?,
                input: (gate.map(Gate::input).transpose())
                    .map_err(|error| format!("the command's standard input can't be passed on: {error}"))?,
            })
        }

        /// The words before the command.
        pub(super) fn words(&self, files: &Files) -> Vec<OsString> {
            // The word that leads to `confine_main` is the first argument of each program that calls it.
            let word = std::env::args_os().nth(1).unwrap_or_default();
            let mut words: Vec<OsString> = vec![
                format!("/proc/self/fd/{}", self.program.as_raw_fd()).into(),
                word,
                INSIDE.into(),
                self.expected.as_raw_fd().to_string().into(),
            ];
            words.extend(files.words().map(OsString::from));
            if let Some(proxy) = &self.proxy {
                words.extend([PROXY.into(), proxy.as_raw_fd().to_string().into()]);
            }
            if let Some(input) = &self.input {
                words.extend([INPUT.into(), input.clone()]);
            }
            words.push("--".into());
            words
        }
    }
}

/// Checks the mounts from inside, passes the gate and becomes the command. Returns only when the gate was closed, or when something failed.
/// `files`: the numbers of what is expected, the sign that the command begins, and its standard error.
#[cfg(target_os = "linux")]
fn enter_checked(files: [&OsStr; 3], options: &Options) -> ExitCode {
    let [expected, sign, errors] = files.map(OsStr::to_string_lossy);
    let start = || -> Result<_, String> {
        let planned = crate::check::check(&expected)?;
        let bridge = options
            .proxy
            .map(|socket| crate::bridge::start(&socket.to_string_lossy()));
        let variables = bridge.transpose()?;
        close_inherited()?;
        crate::landlock::keep_from_pipes(["1", &errors], planned.writable())?;
        if options.input.map(pass_inside).transpose()? == Some(Passed::Closed) {
            crate::attempt::close(&sign)?;
            return Ok(None);
        }
        crate::attempt::begin(&sign, &errors)?;
        Ok(Some(variables.unwrap_or_default()))
    };
    match start() {
        Ok(Some(variables)) => not_started(&become_program(options.command, variables)),
        Ok(None) => ExitCode::SUCCESS,
        // The program outside makes a sentence of it, unless it tries again.
        Err(problem) => ended(&problem),
    }
}

#[cfg(not(target_os = "linux"))]
fn enter_checked(_files: [&OsStr; 3], _options: &Options) -> ExitCode {
    ended("bubblewrap exists only on Linux")
}

/// Waits at the gate, where there is one.
fn is_closed(gate: Option<&Gate>) -> Result<bool, String> {
    Ok(gate.map(Gate::pass).transpose()? == Some(Passed::Closed))
}

/// Returns only when that failed.
fn become_program(command: &[OsString], variables: Vec<(&'static str, String)>) -> String {
    let Some((program, arguments)) = command.split_first() else {
        return "there is no command".into();
    };
    let error = Command::new(program).args(arguments).envs(variables).exec();
    format!("{} can't be started: {error}", program.display())
}

#[cfg(target_os = "linux")]
fn restriction(plan: &Plan) -> Result<crate::landlock::Restriction, String> {
    crate::landlock::Restriction::prepare(&crate::grants::grants(plan, &Disk)?, plan.read_only)
}

#[cfg(not(target_os = "linux"))]
mod none {
    /// Of this system there is none.
    pub(super) enum Restriction {}

    impl Restriction {
        pub(super) fn enforce(self) -> Result<(), String> {
            match self {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn restriction(_plan: &Plan) -> Result<none::Restriction, String> {
    Err("Landlock exists only on Linux".into())
}

/// What bubblewrap takes (9000), with the command's own.
const ARGUMENTS: usize = 8_900;

/// The exit status of a command that was not started.
pub const NOT_STARTED: u8 = 126;

/// Stands in the place of the stored plan when this program runs in the sandbox.
const INSIDE: &str = "--inside";
/// Followed by the node's socket for this command, or inside by the number of that open file.
const PROXY: &str = "--proxy";
/// The command changes nothing (rule SB21). It has no way to hosts either.
const READ_ONLY: &str = "--read-only";
/// Followed by the paths of [`GateFiles`].
pub(crate) const GATE: &str = "--gate";
/// Inside, followed by the number of the open file that is the command's standard input behind the gate.
const INPUT: &str = "--input";

/// What stands between the plan and the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options<'args> {
    proxy: Option<&'args OsStr>,
    read_only: bool,
    gate: Option<GateFiles>,
    input: Option<&'args OsStr>,
    command: &'args [OsString],
}

impl<'args> Options<'args> {
    fn is_inside(&self) -> bool {
        self.gate.is_none() && !self.read_only
    }

    fn is_outside(&self) -> bool {
        self.input.is_none()
    }

    /// `None`: this is no call of a node.
    fn parse(mut rest: &'args [OsString]) -> Option<Self> {
        let mut options = Self::default();
        loop {
            rest = match rest {
                [word, command @ ..] if word == "--" => {
                    options.command = command;
                    return (!options.read_only || options.proxy.is_none()).then_some(options);
                }
                [word, after @ ..] if word == READ_ONLY => {
                    options.read_only = true;
                    after
                }
                [word, proxy, after @ ..] if word == PROXY => {
                    options.proxy = Some(proxy);
                    after
                }
                [word, input, after @ ..] if word == INPUT => {
                    options.input = Some(input);
                    after
                }
                [word, input, output, never, after @ ..] if word == GATE => {
                    let [input, output, never] = [input, output, never].map(PathBuf::from);
                    options.gate = Some(GateFiles { input, output, never });
                    after
                }
                _ => return None,
            };
        }
    }
}

/// As [`Confinement::enter`].
fn enter_stored(file: &Path, options: &Options, gate: Option<&Gate>) -> Result<u8, String> {
    let stored = Confinement::read(file);
    let mut confinement = stored.map_err(|error| format!("its plan can't be read: {error}"))?;
    confinement.plan.read_only = options.read_only;
    confinement.enter(options.proxy.map(Path::new), gate, options.command)
}

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

fn exit_of(entered: Result<u8, String>) -> ExitCode {
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(problem) => not_started(&problem),
    }
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

fn not_started(problem: &str) -> ExitCode {
    ended(&format!(
        "{NOT_SET_UP}{problem}. The command was not run. If this happens again, tell the user: `gsv node sandbox` tests the sandbox.]\n"
    ))
}

fn ended(text: &str) -> ExitCode {
    // Without standard error there is no one to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(NOT_STARTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn sb21_a_read_only_command_has_no_proxy() {
        let parses = |text: &str| Options::parse(&words(text)).is_some();
        assert!(!parses("--read-only --proxy s -- x") && !parses("--proxy s --read-only -- x"));
        assert!(parses("--read-only -- x") && parses("--proxy s -- x") && parses("-- x"));
        let given = words("--proxy s --input 3 -- x --read-only -- y");
        let options = Options::parse(&given).unwrap();
        assert_eq!(options.proxy, Some(OsStr::new("s")));
        assert_eq!(options.input, Some(OsStr::new("3")));
        assert!(!options.read_only, "the words behind `--` are the command's");
        assert_eq!(options.command, words("x --read-only -- y"));
    }

    #[test]
    fn sb23_a_call_that_is_no_call_of_a_node_is_refused() {
        let inside = |text: &str| Options::parse(&words(text)).is_some_and(|options| options.is_inside());
        let outside = |text: &str| Options::parse(&words(text)).is_some_and(|options| options.is_outside());
        for text in [
            "x",
            "--read-only",
            "--proxy s",
            "--proxy -- x",
            "--gate i o -- x",
            "--other -- x",
        ] {
            assert!(!inside(text) && !outside(text), "{text}");
        }
        for text in ["--gate i o n -- x", "--read-only -- x"] {
            assert!(!inside(text) && outside(text), "{text}");
        }
        assert!(inside("--input 3 -- x") && !outside("--input 3 -- x"));
        assert!(inside("--proxy 4 -- x") && outside("--proxy s -- x"));
    }
}
