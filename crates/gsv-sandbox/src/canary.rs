//! Canaries: a program in the sandbox that tries what the sandbox must stop, and tells what worked.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One thing that a command must not be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Canary {
    WriteHome,
    ChangeShellFiles,
    WriteOutside,
    WriteThroughLink,
    ChangeGitHooks,
    ReadGsv,
    ReadCredentials,
    Tcp,
    Udp,
    UnixSocket,
    UnixDatagram,
    AbstractSocket,
    ReadProcess,
    ListProcesses,
    Mount,
    ChangePermissions,
    Trace,
    Signal,
}

impl Canary {
    pub const ALL: [Self; 18] = [
        Self::WriteHome,
        Self::ChangeShellFiles,
        Self::WriteOutside,
        Self::WriteThroughLink,
        Self::ChangeGitHooks,
        Self::ReadGsv,
        Self::ReadCredentials,
        Self::Tcp,
        Self::Udp,
        Self::UnixSocket,
        Self::UnixDatagram,
        Self::AbstractSocket,
        Self::ReadProcess,
        Self::ListProcesses,
        Self::Mount,
        Self::ChangePermissions,
        Self::Trace,
        Self::Signal,
    ];

    /// What a command could do if the canary got through: "a command could ...".
    pub fn words(self) -> &'static str {
        match self {
            Self::WriteHome => "write files in your home",
            Self::ChangeShellFiles => "change your shell's start files",
            Self::WriteOutside => "write outside the workspace",
            Self::WriteThroughLink => "write outside the workspace through a link",
            Self::ChangeGitHooks => "change git hooks, git configuration, shell and editor files of the workspace",
            Self::ReadGsv => "read GSV's own files",
            Self::ReadCredentials => "read keys and credentials (ssh, gpg, clouds, browsers)",
            Self::Tcp => "open network connections (TCP)",
            Self::Udp => "send network packets (UDP)",
            Self::UnixSocket => "connect to sockets of other programs",
            Self::UnixDatagram => "send to datagram sockets of other programs",
            Self::AbstractSocket => "connect to abstract sockets of other programs",
            Self::ReadProcess => "read the environment of your other programs",
            Self::ListProcesses => "see the names and arguments of your other programs",
            Self::Mount => "mount file systems",
            Self::ChangePermissions => "change permissions, times and attributes of your files outside the workspace",
            Self::Trace => "trace other programs",
            Self::Signal => "end your other programs",
        }
    }
}

/// What the canaries try it on. All of it was made for them, except the credentials, of which nothing is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CanaryTargets {
    pub(crate) workspace: PathBuf,
    /// A folder outside the workspace with a file `file`, a socket `socket` and a datagram socket `dgram`.
    pub(crate) outside: PathBuf,
    /// A file in a folder that is hidden as GSV's own are.
    pub(crate) secret: PathBuf,
    pub(crate) homes: Vec<PathBuf>,
    pub(crate) credentials: Vec<PathBuf>,
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    pub(crate) abstract_name: String,
    /// A process with the variable `GSV_CANARY`.
    pub(crate) victim: u32,
    pub(crate) temp: PathBuf,
}

/// What the canaries found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CanaryResults {
    /// Those that got through.
    pub(crate) open: Vec<Canary>,
    /// What a command must be able to do and could not.
    pub(crate) broken: Vec<String>,
}

const SHELL_FILES: [&str; 7] = [
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".config/fish/config.fish",
];
const PATIENCE: Duration = Duration::from_millis(500);

/// The `main` of the program; `args`: a [`CanaryTargets`] as JSON. Prints a [`CanaryResults`].
pub fn canary_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let targets = args.into_iter().next().and_then(|text| text.into_string().ok());
    let Some(targets) = targets.and_then(|text| serde_json::from_str::<CanaryTargets>(&text).ok()) else {
        return ExitCode::from(2);
    };
    let results = CanaryResults {
        broken: targets.broken(),
        open: Canary::ALL
            .into_iter()
            .filter(|canary| targets.is_open(*canary))
            .collect(),
    };
    let text = serde_json::to_string(&results).unwrap_or_default();
    if std::io::stdout().write_all(text.as_bytes()).is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl CanaryTargets {
    /// Ordinary work that the sandbox must not stop.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for folder in [&self.workspace, &self.temp] {
            let file = folder.join("canary-work");
            let work = std::fs::write(&file, b"x").and_then(|()| std::fs::remove_file(&file));
            if let Err(error) = work {
                broken.push(format!("{} can't be written: {error}", folder.display()));
            }
        }
        if let Err(error) = std::process::Command::new("/bin/sh").args(["-c", ":"]).status() {
            broken.push(format!("/bin/sh can't be started: {error}"));
        }
        if let Err(error) = std::fs::write("/dev/null", b"x") {
            broken.push(format!("/dev/null can't be written: {error}"));
        }
        broken
    }

    fn is_open(&self, canary: Canary) -> bool {
        match canary {
            Canary::WriteHome => self.homes.iter().any(|home| can_create(&home.join(".gsv-canary"))),
            Canary::ChangeShellFiles => {
                let files = self
                    .homes
                    .iter()
                    .flat_map(|home| SHELL_FILES.map(|name| home.join(name)));
                files.into_iter().any(|file| can_append(&file))
            }
            Canary::WriteOutside => can_create(&self.outside.join("new")) || can_append(&self.outside.join("file")),
            Canary::WriteThroughLink => {
                let link = self.workspace.join("link");
                let _ = std::os::unix::fs::symlink(self.outside.join("file"), &link);
                can_append(&link)
            }
            Canary::ChangeGitHooks => {
                let git = self.workspace.join(".git");
                let renamed = self.workspace.join("git");
                can_create(&git.join("hooks/pre-commit"))
                    || can_append(&git.join("config"))
                    || can_append(&self.workspace.join(".envrc"))
                    || can_create(&self.workspace.join(".vscode/new"))
                    || std::fs::rename(&git, &renamed).is_ok()
            }
            Canary::ReadGsv => std::fs::read(&self.secret).is_ok_and(|text| !text.is_empty()),
            Canary::ReadCredentials => self.credentials.iter().any(|path| can_read(path)),
            Canary::Tcp => TcpStream::connect_timeout(&loopback(self.tcp), PATIENCE).is_ok(),
            Canary::Udp => echoes(self.udp).unwrap_or(false),
            Canary::UnixSocket => UnixStream::connect(self.outside.join("socket")).is_ok(),
            Canary::UnixDatagram => sends(&self.outside.join("dgram")),
            Canary::AbstractSocket => connects_abstract(&self.abstract_name),
            Canary::ReadProcess => {
                let environ = std::fs::read(format!("/proc/{}/environ", self.victim)).unwrap_or_default();
                environ.windows(10).any(|part| part == b"GSV_CANARY")
            }
            Canary::ListProcesses => std::fs::read(format!("/proc/{}/cmdline", self.victim))
                .is_ok_and(|words| words.windows(9).any(|part| part == b"gsvcanary")),
            Canary::Mount => mounts(&self.workspace),
            Canary::ChangePermissions => {
                let file = self.outside.join("file");
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o640)).is_ok()
            }
            Canary::Trace => traces(),
            // Whether the victim has ended is seen outside.
            Canary::Signal => {
                signal(self.victim);
                false
            }
        }
    }
}

fn can_create(path: &Path) -> bool {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    made.is_ok() && {
        let _ = std::fs::remove_file(path);
        true
    }
}

/// Opens without writing.
fn can_append(path: &Path) -> bool {
    std::fs::OpenOptions::new().append(true).open(path).is_ok()
}

fn can_read(path: &Path) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    }
    let mut byte = [0];
    std::fs::File::open(path).is_ok_and(|mut file| file.read(&mut byte).is_ok_and(|count| count > 0))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn echoes(port: u16) -> std::io::Result<bool> {
    let socket = UdpSocket::bind(loopback(0))?;
    socket.connect(loopback(port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(b"canary")?;
    Ok(socket.recv(&mut [0; 16])? > 0)
}

/// Also from a pair: each of its ends can send to another socket.
fn sends(path: &Path) -> bool {
    let single = UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"canary", path).is_ok());
    let pair = UnixDatagram::pair().is_ok_and(|(one, _other)| {
        one.send_to(b"canary", path).is_ok() || one.connect(path).and_then(|()| one.send(b"canary")).is_ok()
    });
    single || pair
}

#[cfg(target_os = "linux")]
fn connects_abstract(name: &str) -> bool {
    use std::os::linux::net::SocketAddrExt as _;
    std::os::unix::net::SocketAddr::from_abstract_name(name)
        .is_ok_and(|address| UnixStream::connect_addr(&address).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn connects_abstract(_name: &str) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn mounts(folder: &Path) -> bool {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let mounted = mount("canary", folder, "tmpfs", MountFlags::empty(), None).is_ok();
    if mounted {
        let _ = unmount(folder, UnmountFlags::DETACH);
    }
    mounted
}

#[cfg(not(target_os = "linux"))]
fn mounts(_folder: &Path) -> bool {
    false
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "there is no safe way to ask to be traced")]
fn traces() -> bool {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: PTRACE_TRACEME reads none of its arguments; the parent becomes the tracer of this process, which ends soon.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn traces() -> bool {
    false
}

fn signal(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
