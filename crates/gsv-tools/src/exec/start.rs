//! Starts a command: makes its folder, starts its supervisor, records the start, opens the gate.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use gsv_sandbox::{ConfineOptions, Escalation, GateFiles, HostRule, MayAsk, PlanUse};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use super::meta::{Exit, Folder, Meta, NEVER, OUTPUT, PROXY, REFUSED, STDIN, StartInfo, session_id};
use super::proxy::Proxy;
use super::session::off;
use super::tree::MARK;
use super::{Sandbox, Supervisor, host};
use crate::error::ToolError;
use crate::limits;
use crate::tool::OnStarted;

/// What to run.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) call_id: String,
    pub(crate) command: String,
    pub(crate) workdir: PathBuf,
    pub(crate) timeout_ms: u64,
    pub(crate) background: bool,
    /// The call asked for no sandbox.
    pub(crate) outside: bool,
    /// The hosts that the call asked for.
    pub(crate) hosts: Vec<HostRule>,
    /// The command changes nothing. There is a sandbox, which sees to it.
    pub(crate) read_only: bool,
}

/// How the commands of a node are run.
pub(crate) struct How {
    pub(crate) supervisor: Supervisor,
    pub(crate) shell: PathBuf,
    pub(crate) sandbox: Option<Sandbox>,
}

impl How {
    /// The sandbox of this command.
    fn sandbox_of(&self, spec: &Spec) -> Option<&Sandbox> {
        self.sandbox
            .as_ref()
            .filter(|sandbox| !(spec.outside && sandbox.may_leave))
    }

    /// The program that the command's process becomes.
    fn program(
        &self,
        spec: &Spec,
        sandbox: Option<&Sandbox>,
        proxy: Option<PathBuf>,
        gate: Option<GateFiles>,
    ) -> Vec<OsString> {
        let command = spec.command.as_str();
        let shell: [OsString; 4] = [self.shell.clone().into(), "-l".into(), "-c".into(), command.into()];
        let mut words: Vec<OsString> = Vec::new();
        if let Some(sandbox) = sandbox {
            let plan_use = match proxy {
                _ if spec.read_only => PlanUse::ReadOnly,
                Some(socket) => PlanUse::Proxied(socket),
                None => PlanUse::AsPlanned,
            };
            words.extend(sandbox.wrapper.iter().cloned());
            words.extend(ConfineOptions { plan_use, gate }.words());
        }
        words.extend(shell);
        words
    }
}

/// A command that has passed the gate.
pub(super) struct Started {
    pub(super) folder: Folder,
    pub(super) meta: Meta,
    pub(super) child: Child,
    /// Ends with the command.
    pub(super) proxy: Option<Proxy>,
}

pub(super) async fn start(
    spool: &Path,
    how: &How,
    spec: Spec,
    on_started: Option<OnStarted>,
) -> Result<Started, ToolError> {
    let folder = Folder::new(spool.join(session_id(&spec.call_id)));
    let (made, with_stdin) = (folder.clone(), spec.background);
    match off(move || make_folder(&made, with_stdin)).await {
        Some(Ok(())) => {}
        Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(ToolError::OutcomeUnknown {
                why: "a command was started under this call id before; it is not started again",
                pid: None,
                started_at: None,
                tail: None,
            });
        }
        Some(Err(error)) => return Err(ToolError::io("make the command's folder", error)),
        None => {
            return Err(ToolError::Failed(
                "the tool was stopped before the command was started".into(),
            ));
        }
    }
    let mut child = None;
    let proxy = match open_proxy(&folder, how, &spec) {
        Ok(proxy) => proxy,
        Err(error) => {
            off(move || folder.remove()).await;
            return Err(ToolError::io("open the proxy of the sandbox", error));
        }
    };
    match open_gate(&folder, how, spec, on_started, &mut child).await {
        Ok((meta, child)) => Ok(Started {
            folder,
            meta,
            child,
            proxy,
        }),
        Err(error) => {
            // The gate is closed permanently, so the folder is not needed once the supervisor has seen that.
            if let Some(mut child) = child
                && tokio::time::timeout(limits::START_TIME, child.wait()).await.is_err()
            {
                // It still makes a sandbox, which ends with it.
                let _ = child.kill().await;
            }
            off(move || folder.remove()).await;
            Err(error)
        }
    }
}

fn make_folder(folder: &Folder, with_stdin: bool) -> io::Result<()> {
    if folder.exit().is_some_and(|(exit, _)| exit == Exit::NeverRan) {
        // From a node that died before the gate opened: this id was never started.
        folder.remove();
    }
    std::fs::DirBuilder::new().mode(0o700).create(folder.path())?;
    std::fs::OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.file(OUTPUT))?;
    if with_stdin {
        make_fifo(&folder.file(STDIN))?;
    }
    Ok(())
}

#[cfg(not(target_vendor = "apple"))]
fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?)
}

#[cfg(target_vendor = "apple")]
fn make_fifo(path: &Path) -> io::Result<()> {
    let status = std::process::Command::new("mkfifo")
        .args(["-m", "600"])
        .arg(path)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("mkfifo failed"))
    }
}

/// Before the command can start: the sandbox looks for the socket.
fn open_proxy(folder: &Folder, how: &How, spec: &Spec) -> io::Result<Option<Proxy>> {
    let sandbox = how.sandbox_of(spec).filter(|_| !spec.read_only);
    let hosts = sandbox.and_then(|sandbox| sandbox.hosts(&spec.hosts));
    hosts
        .map(|hosts| Proxy::open(&folder.file(PROXY), folder.file(REFUSED), hosts))
        .transpose()
}

async fn open_gate(
    folder: &Folder,
    how: &How,
    spec: Spec,
    on_started: Option<OnStarted>,
    slot: &mut Option<Child>,
) -> Result<(Meta, Child), ToolError> {
    let stdin = if spec.background {
        folder.file(STDIN)
    } else {
        PathBuf::from("/dev/null")
    };
    let sandbox = how.sandbox_of(&spec);
    let proxy = sandbox
        .filter(|_| !spec.read_only)
        .and_then(|sandbox| sandbox.network.as_ref())
        .map(|_| folder.file(PROXY));
    let is_gated = sandbox.is_some() && how.supervisor.leaves_gate();
    let gate = is_gated.then(|| GateFiles {
        input: stdin.clone(),
        output: folder.file(OUTPUT),
        never: folder.file(NEVER),
    });
    let program = how.program(&spec, sandbox, proxy.clone(), gate);
    let built = how.supervisor.command(folder.path(), &stdin, &program, is_gated);
    let mut command = Command::from(built);
    if let Some(sandbox) = sandbox {
        command.env_clear().envs(sandbox.environment.iter().cloned());
        let hosts = sandbox.hosts(&spec.hosts).filter(|_| proxy.is_some());
        let direct = hosts.map(|hosts| ["NO_PROXY", "no_proxy"].map(|name| (name, hosts.direct())));
        command.envs(direct.into_iter().flatten());
    }
    command
        .current_dir(&spec.workdir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if is_own(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    // A shell believes it where it is right, and programs that a shell does not start have it, too.
    command.env("PWD", &spec.workdir);
    command.env("GSV", "1").env(MARK, folder.path());
    let child = command
        .spawn()
        .map_err(|error| ToolError::io("start the shell's supervisor", error))?;
    let child = slot.insert(child);
    let failed = || ToolError::Failed("the shell's supervisor did not start the command; nothing was run".into());
    let (Some(mut gate), Some(pid)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed());
    };
    let pid = tokio::time::timeout(limits::START_TIME, read_pid(pid))
        .await
        .ok()
        .flatten()
        .ok_or_else(failed)?;
    let supervisor_pid = child.id().ok_or_else(failed)?;
    let times = off(move || host::start_time(pid).zip(host::start_time(supervisor_pid)))
        .await
        .flatten();
    let (start_time, supervisor_start_time) = times.ok_or_else(failed)?;
    let meta = Meta {
        session_id: session_id(&spec.call_id),
        call_id: spec.call_id,
        pid,
        pgid: pid,
        start_time,
        supervisor_pid,
        supervisor_start_time,
        boot_id: host::boot_id().to_owned(),
        command: spec.command,
        workdir: spec.workdir.to_string_lossy().into_owned(),
        background: spec.background,
        started_at: host::now_ms(),
        started_uptime_ms: host::uptime_ms(),
        timeout_ms: spec.timeout_ms,
        sandbox: sandbox.map(|sandbox| sandbox.level.profile),
        escalation: Escalation {
            may_ask: (sandbox.filter(|_| !spec.read_only)).map_or(MayAsk::Nothing, Sandbox::may_ask),
            has_hosts: !spec.hosts.is_empty(),
            forbids_hosts: sandbox.is_some_and(|sandbox| sandbox.forbids_hosts),
        },
        limits: how.supervisor.limits(),
    };
    let (written, copy) = (folder.clone(), meta.clone());
    off(move || written.write_meta(&copy))
        .await
        .ok_or_else(failed)?
        .map_err(|error| ToolError::io("record the command", error))?;
    if let Some(on_started) = on_started {
        let info = StartInfo {
            pid,
            pgid: pid,
            boot_id: meta.boot_id.clone(),
            start_time: meta.start_time.clone(),
            spool: folder.path().to_path_buf(),
        };
        on_started(info)
            .await
            .map_err(|error| ToolError::io("record the start", error))?;
    }
    gate.write_all(b"go\n").await.map_err(|_| failed())?;
    slot.take().map(|child| (meta, child)).ok_or_else(failed)
}

async fn read_pid(from: tokio::process::ChildStdout) -> Option<u32> {
    let mut line = String::new();
    BufReader::new(from).take(16).read_line(&mut line).await.ok()?;
    line.trim().parse().ok().filter(|pid| *pid > 1)
}

/// GSV's own variables: they hold tokens and keys, and say where the owner's are (rule SB8).
fn is_own(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with("GSV_")
}

/// The user's login shell where it is one that takes `-l -c`, else `/bin/sh`.
pub(super) fn login_shell(configured: Option<PathBuf>) -> PathBuf {
    configured
        .or_else(|| {
            std::env::var_os("SHELL")
                .map(PathBuf::from)
                .filter(|path| takes_login_and_command(path))
        })
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// Whether this is the path of a shell that takes `-l -c`.
fn takes_login_and_command(path: &Path) -> bool {
    const KNOWN: [&str; 10] = [
        "sh", "bash", "zsh", "dash", "ash", "ksh", "ksh93", "mksh", "yash", "fish",
    ];
    path.is_absolute()
        && path.is_file()
        && path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| KNOWN.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_tokens_are_not_inherited() {
        for name in [
            "GSV_TOKEN",
            "gsv_token",
            "GSV_URL",
            "GSV_HOME",
            "GSV_CONFIG_DIR",
            "GSV_SEALING_KEYS",
        ] {
            assert!(is_own(name), "{name}");
        }
        assert!(!is_own("GSV") && !is_own("TOKEN") && !is_own("MY_GSV_URL"));
    }

    #[test]
    fn a_login_shell_is_an_existing_program_with_a_known_name() {
        let dir = tempfile::TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["zsh", "nu"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at("bash")).unwrap();
        assert!(takes_login_and_command(&at("zsh")));
        for other in [
            at("nu"),
            at("fish"),
            at("bash"),
            PathBuf::from("sh"),
            PathBuf::from("/"),
        ] {
            assert!(!takes_login_and_command(&other), "{other:?}");
        }
        assert_eq!(
            login_shell(Some(at("nu"))),
            at("nu"),
            "the owner's choice is taken as it is"
        );
    }
}
