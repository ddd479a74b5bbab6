//! The supervisor: a small program between the node and the command. It starts the command, waits for its end, and writes
//! the exit status, also when the node has died.
//!
//! Two forms, one protocol. The default is a few lines of `/bin/sh`. A program can be the supervisor instead by calling
//! [`supervise_main`], which also reports signals exactly and bounds the output without the node. Both get the arguments
//! `FOLDER STDIN MARK PROGRAM ARGS...`, print the command's pid on standard output, and wait at a gate: the line `go` on standard
//! input. `MARK` is `--`; `--status` when the program reports signals of the command as high exit statuses; `--gated` when the program does
//! so and has the gate itself (`gsv_sandbox`).
//! Standard input that ends without `go` closes the gate permanently.
//! Never: runs the command before `go`, or a second time.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};

use super::command_limits::CommandLimits;
use super::host;
use super::meta::{Ending, Exit, Folder, NEVER, OUTPUT};
use super::output::{Trimmed, trim};
use super::tree::Tree;
use super::usage::excess;
use crate::limits;

/// How commands are supervised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Supervisor {
    /// By a script for `/bin/sh`.
    #[default]
    Shell,
    /// By a program that calls [`supervise_main`] with what follows `args`, such as `gsv __supervise`. It ends a command that goes beyond
    /// `limits`, where the system tells what it uses.
    Program {
        program: PathBuf,
        args: Vec<OsString>,
        limits: Option<CommandLimits>,
    },
}

const SH: &str = "/bin/sh";

/// The program reports the exit itself.
const PLAIN: &str = "--";
/// The program, such as a sandbox, reports a signal as a shell does.
const STATUS: &str = "--status";
/// The program reports a signal as a shell does, prints the pid and waits at the gate itself: it makes the sandbox meanwhile.
const GATED: &str = "--gated";

/// The script of the command's process before it becomes the shell: prints its pid, waits at the gate. The command's files are
/// opened here, because a sandbox hides them.
const STAGE: &str = r#"
printf '%s\n' "$$"
IFS= read -r go || go=
if [ "$go" != go ]; then : >"$1/never"; exit 0; fi
exec <>"$2" >>"$1/output" 2>&1
shift 3
exec "$@"
"#;

/// `setsid` gives the command its own session and group; without `setsid` the shell's job control gives it a group. `setsid`
/// runs in the foreground, because a shell lets background commands ignore interrupts. `mv` replaces the shell, because the
/// processes below the supervisor are killed when the command is ended.
const SCRIPT: &str = r#"
trap : HUP INT TERM
if command -v setsid >/dev/null 2>&1; then
  setsid /bin/sh -c "$3" sh "$@"
  status=$?
else
  exec 3<&0
  set -m
  /bin/sh -c "$3" sh "$@" <&3 3<&- &
  pid=$!
  exec 3<&-
  wait "$pid"
  status=$?
  while kill -0 "$pid" 2>/dev/null; do wait "$pid"; status=$?; done
fi
if [ -e "$1/never" ]; then line=never; else line="status $status"; fi
printf '%s\n' "$line" >"$1/exit.tmp" && exec mv -f "$1/exit.tmp" "$1/exit"
"#;

impl Supervisor {
    /// What its commands may use.
    pub(super) fn limits(&self) -> Option<CommandLimits> {
        match self {
            Self::Shell => None,
            Self::Program { limits, .. } => *limits,
        }
    }

    /// Whether a program in a sandbox has the gate itself.
    pub(super) fn leaves_gate(&self) -> bool {
        matches!(self, Self::Program { .. })
    }

    /// The command line that runs `program`. The caller adds pipes, directory and environment. `is_gated`: the program has the gate itself.
    pub(super) fn command(&self, folder: &Path, stdin: &Path, program: &[OsString], is_gated: bool) -> Command {
        let mut built = match self {
            Self::Shell => {
                let mut built = Command::new(SH);
                built.args(["-c", SCRIPT, "sh"]);
                // Outside the node's group, so that signals from the node's terminal do not reach it.
                built.process_group(0);
                built
            }
            Self::Program {
                program: path, args, ..
            } => {
                let mut built = Command::new(path);
                built.args(args);
                built
            }
        };
        built.arg(folder).arg(stdin).args(match self {
            Self::Shell => [STAGE],
            Self::Program { .. } if is_gated => [GATED],
            Self::Program { .. } => [PLAIN],
        });
        built.args(program);
        built
    }
}

/// The `main` of a program that is the supervisor; `args` are the arguments after its own.
pub fn supervise_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let [folder, stdin, mark, program @ ..] = args.as_slice() else {
        return ExitCode::from(2);
    };
    let staged = |program: &[OsString]| {
        let mut staged = Command::new(SH);
        staged
            .args(["-c", STAGE, "sh"])
            .args([folder, stdin])
            .arg(PLAIN)
            .args(program);
        staged
    };
    let (mut command, has_statuses) = match program {
        [program, args @ ..] if mark == GATED => {
            let mut command = Command::new(program);
            command.args(args);
            (command, true)
        }
        [_, ..] if mark == PLAIN => (staged(program), false),
        // A node of an earlier version, whose program was replaced while it runs, as in the next line: `FOLDER STDIN SHELL COMMAND`.
        [_, ..] if mark == STATUS => (staged(program), true),
        [command] => (
            staged(&[mark.clone(), "-l".into(), "-c".into(), command.clone()]),
            false,
        ),
        _ => return ExitCode::from(2),
    };
    // Fails when this process leads a group already, which is enough.
    let _ = rustix::process::setsid();
    adopt_orphans();
    let folder = Folder::new(PathBuf::from(folder));
    let Ok(held) = folder.hold() else {
        return exit_with(false);
    };
    let child = command.process_group(0).stderr(Stdio::null()).spawn();
    // The command has its own copies of the gate and the pid's pipe.
    close_pipes();
    let Ok(child) = child else {
        return exit_with(held.write_exit(Exit::NeverRan).is_ok());
    };
    bound(folder.clone(), child.id());
    let exit = match wait_for(child.id()) {
        Some(_) if held.file(NEVER).exists() => Exit::NeverRan,
        Some(Exit::Code(code)) if has_statuses => Exit::of_status(code),
        Some(exit) => exit,
        None => return exit_with(false),
    };
    if folder.ending().is_some() {
        end_the_rest(&folder);
    }
    exit_with(held.write_exit(exit).is_ok())
}

/// Waits for the command, and reaps adopted orphans until then.
fn wait_for(pid: u32) -> Option<Exit> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if u32::try_from(ended.as_raw_pid()) == Ok(pid) => {
                let code = status.exit_status().map(Exit::Code);
                return code.or_else(|| status.terminating_signal().map(Exit::Signal));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Makes this process the parent of its descendants whose own parents end, so that none leaves its tree.
fn adopt_orphans() {
    // Fails only on kernels without subreapers; then orphans leave the tree.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends what the command has left, when the command was ended: processes in other groups and sessions too.
fn end_the_rest(folder: &Folder) {
    if let Some(meta) = folder.meta() {
        Tree::of(folder, &meta).end(Instant::now() + limits::KILL_TIME / 2);
    }
}

fn exit_with(ok: bool) -> ExitCode {
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn close_pipes() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Keeps the output file small while the command runs, and ends a command that uses too much. What is left of it outside its group ends
/// when the command has (`end_the_rest`). The thread ends with the program.
fn bound(folder: Folder, pgid: u32) {
    std::thread::spawn(move || {
        // Written before the command may run.
        let mut meta = None;
        loop {
            std::thread::sleep(Duration::from_millis(100));
            if meta.is_none() {
                meta = folder.meta();
            }
            let why = if matches!(trim(&folder.file(OUTPUT)), Ok(Trimmed::Flood)) {
                Some(Ending::Flood)
            } else {
                let limits = meta.as_ref().and_then(|meta| meta.limits);
                limits.and_then(|limits| excess(std::process::id(), &limits))
            };
            if let Some(why) = why {
                if folder.ending().is_none() {
                    folder.write_ending(why);
                }
                host::signal_group(pgid, Signal::KILL);
                return;
            }
        }
    });
}
