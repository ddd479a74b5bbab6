//! Finds the tier that a machine really has: runs the canaries in each tier, and takes the first that stops them.

use std::ffi::OsString;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::canary::{Canary, CanaryResults, CanaryTargets};
use crate::confine::{Confinement, Enforcer};
use crate::environment::environment;
use crate::look::{Disk, Look as _};
use crate::plan::{Plan, Request};
use crate::profile::{Profile, Tier};

/// A program that calls [`crate::confine_main`] and [`crate::canary_main`] with what follows these words.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub confine: OsString,
    pub canary: OsString,
}

/// The level that a machine has for one profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    pub profile: Profile,
    pub tier: Tier,
    /// What this tier can't stop.
    pub gaps: Vec<Canary>,
}

impl Level {
    /// Whether a command can be let through to single hosts. `strict` has no network, whatever is listed.
    pub fn has_hosts(&self) -> bool {
        self.tier.has_hosts() && self.profile != Profile::Strict
    }
}

/// What was found about one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It holds, except for these, which the tier is known not to stop.
    Holds { gaps: Vec<Canary> },
    /// It can't be had, or something got through that it should stop.
    Fails { why: String },
}

/// What was found about a profile on this machine.
#[derive(Debug, Clone)]
pub struct Report {
    pub profile: Profile,
    pub findings: Vec<(Tier, Finding)>,
    /// For the first tier that holds.
    pub confinement: Option<Confinement>,
}

impl Report {
    pub fn level(&self) -> Option<Level> {
        self.findings.iter().find_map(|(tier, finding)| match finding {
            Finding::Holds { gaps } => Some(Level {
                profile: self.profile,
                tier: *tier,
                gaps: gaps.clone(),
            }),
            Finding::Fails { .. } => None,
        })
    }

    /// Why no tier holds, in one line.
    pub fn problem(&self) -> String {
        let failed = self.findings.iter().filter_map(|(tier, finding)| match finding {
            Finding::Fails { why } => Some(format!("{}: {why}", tier.name())),
            Finding::Holds { .. } => None,
        });
        failed.collect::<Vec<_>>().join("; ")
    }

    /// What to do for a better level. `None` when there is none.
    pub fn advice(&self) -> Option<&'static str> {
        let is_best = matches!(self.findings.first(), Some((_, Finding::Holds { gaps })) if gaps.is_empty());
        match std::env::consts::OS {
            _ if is_best => None,
            "linux" => Some(
                "Install bubblewrap 0.10 or later, or an older one with its security updates (`sudo apt install bubblewrap`, `sudo dnf install bubblewrap`); where it is installed and fails, allow user namespaces for it (Ubuntu: an AppArmor profile for /usr/bin/bwrap; else `sudo sysctl kernel.unprivileged_userns_clone=1`).",
            ),
            _ => Some("Run the node in a Linux machine or container, or as a user of its own."),
        }
    }
}

/// What a command could do in each tier, whatever its canaries found: what is protected is found when a command starts (SPEC.md, known
/// gaps).
pub const IN_EACH_TIER: &str = "create files that git, a shell or an editor runs where there are none yet, such as .envrc, .vscode or a repository with hooks in a folder that has none";

/// How long the canaries of one tier may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Tries `tiers` in their order until one holds. `search`: folders in which `bwrap` may be.
pub fn probe(request: &Request, plan: &Plan, program: &Program, tiers: &[Tier], search: &[PathBuf]) -> Report {
    let mut report = Report {
        profile: plan.profile,
        findings: Vec::new(),
        confinement: None,
    };
    for tier in tiers {
        let tried = find(*tier, plan, search).and_then(|enforcer| {
            let plan = plan.clone();
            let confinement = Confinement { enforcer, plan };
            let results = run_canaries(request, &confinement, program)?;
            Ok((judge(*tier, &results), confinement))
        });
        let (finding, confinement) = match tried {
            Ok((finding @ Finding::Holds { .. }, confinement)) => (finding, Some(confinement)),
            Ok((finding, _)) => (finding, None),
            Err(why) => (Finding::Fails { why }, None),
        };
        report.findings.push((*tier, finding));
        if confinement.is_some() {
            report.confinement = confinement;
            break;
        }
    }
    report
}

/// What a tier is known not to stop. Anything else that gets through makes it unusable.
fn known_gaps(tier: Tier) -> &'static [Canary] {
    match tier {
        Tier::Bubblewrap => &[],
        #[cfg(target_os = "linux")]
        Tier::Landlock if crate::landlock::level().is_ok_and(crate::landlock::has_scopes) => {
            &[Canary::ChangeGitHooks, Canary::ListProcesses, Canary::ChangePermissions]
        }
        Tier::Landlock => &[
            Canary::ChangeGitHooks,
            Canary::ListProcesses,
            Canary::ChangePermissions,
            Canary::Signal,
        ],
        Tier::Seatbelt => &[Canary::ListProcesses, Canary::ReadProcess],
    }
}

fn judge(tier: Tier, results: &CanaryResults) -> Finding {
    let gaps = known_gaps(tier);
    let holes: Vec<&str> = (results.open.iter().filter(|canary| !gaps.contains(canary)))
        .map(|canary| canary.words())
        .collect();
    if !holes.is_empty() {
        let why = format!("its test failed: a command could {}", holes.join(", "));
        return Finding::Fails { why };
    }
    if !results.broken.is_empty() {
        let why = format!("ordinary work fails in it: {}", results.broken.join(", "));
        return Finding::Fails { why };
    }
    Finding::Holds {
        gaps: results.open.clone(),
    }
}

/// What the machine has for the tier.
fn find(tier: Tier, plan: &Plan, search: &[PathBuf]) -> Result<Enforcer, String> {
    if plan.profile == Profile::WorkspaceNet && !tier.has_hosts() {
        return Err("it can't let commands reach single hosts".into());
    }
    match tier {
        Tier::Bubblewrap if cfg!(target_os = "linux") => {
            let is_safe = |path: &PathBuf| !plan.writable.iter().any(|folder| path.starts_with(folder));
            let found = search
                .iter()
                .map(|folder| folder.join("bwrap"))
                .filter_map(|path| path.canonicalize().ok());
            let found = found.into_iter().find(|path| path.is_file() && is_safe(path));
            found
                .map(Enforcer::Bubblewrap)
                .ok_or_else(|| "the program `bwrap` is not installed".into())
        }
        #[cfg(target_os = "linux")]
        Tier::Landlock => crate::landlock::level().map(|_| Enforcer::Landlock),
        Tier::Seatbelt if Path::new(crate::seatbelt::PROGRAM).exists() => Ok(Enforcer::Seatbelt),
        _ => Err("this system does not have it".into()),
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is ended at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the canaries in the sandbox.
///
/// # Errors
/// A sentence: they can't be run.
fn run_canaries(request: &Request, confinement: &Confinement, program: &Program) -> Result<CanaryResults, String> {
    let folder = Folder(confinement.plan.own.join(format!("probe-{:016x}", fastrand::u64(..))));
    let root = &folder.0;
    make_targets(root).map_err(not_run)?;
    let mut canary_request = request.clone();
    canary_request.workspace = root.join("workspace");
    canary_request.own.clone_from(root);
    canary_request.private.push(root.join("hidden"));
    let mut plan = Plan::new(&canary_request, &Disk).map_err(|refused| refused.reason)?;
    plan.program = Some(Disk.real(&program.path).unwrap_or_else(|| program.path.clone()));
    let outside = root.join("outside");
    let listeners = Listeners::open(&outside).map_err(not_run)?;
    let mut victim = start_victim().map_err(not_run)?;
    let port = |address: io::Result<std::net::SocketAddr>| address.map(|address| address.port()).map_err(not_run);
    let targets = CanaryTargets {
        workspace: canary_request.workspace,
        outside,
        secret: root.join("hidden/secret"),
        homes: request.homes.clone(),
        credentials: confinement.plan.hidden_now(&Disk)?,
        tcp: port(listeners.tcp.local_addr())?,
        udp: port(listeners.udp.local_addr())?,
        abstract_name: listeners.abstract_name.clone(),
        victim: victim.0.id(),
        temp: plan.temp(),
    };
    let confinement = Confinement {
        plan,
        ..confinement.clone()
    };
    let child = start_canaries(root, &confinement, program, &targets).map_err(not_run)?;
    let is_over = listeners.serve_until_over(&mut Running(child)).map_err(not_run)?;
    let mut results = read_results(root, is_over)?;
    if victim.0.try_wait().map_err(not_run)?.is_some() {
        results.open.push(Canary::Signal);
    }
    Ok(results)
}

fn not_run(problem: impl std::fmt::Display) -> String {
    format!("its test can't be run: {problem}")
}

/// The files and folders that the canaries try to read and change.
fn make_targets(root: &Path) -> io::Result<()> {
    for folder in [
        "workspace/.git/hooks",
        "workspace/.vscode",
        "outside",
        "hidden",
        // A folder of the test's own: in the commands' folder for temporary files, its program's folder would be left or be taken already.
        "tmp",
        "cache",
    ] {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root.join(folder))?;
    }
    for file in [
        "workspace/.git/config",
        "workspace/.envrc",
        "outside/file",
        "hidden/secret",
    ] {
        std::fs::write(root.join(file), "canary")?;
    }
    std::fs::write(root.join("empty"), b"")
}

/// A process that the canaries try to read, to trace and to end.
fn start_victim() -> io::Result<Running> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "read line", "gsvcanary"]);
    command.env("GSV_CANARY", "canary");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map(Running)
}

/// Starts the program in the sandbox. Its output and errors are files in `root`.
fn start_canaries(
    root: &Path,
    confinement: &Confinement,
    program: &Program,
    targets: &CanaryTargets,
) -> io::Result<Child> {
    let file = root.join("plan.json");
    confinement.write(&file)?;
    let (output, errors) = (
        std::fs::File::create(root.join("output"))?,
        std::fs::File::create(root.join("errors"))?,
    );
    Command::new(&program.path)
        .arg(&program.confine)
        .arg(&file)
        .arg("--")
        .arg(confinement.plan.program.as_ref().unwrap_or(&program.path))
        .arg(&program.canary)
        .arg(serde_json::to_string(targets)?)
        .current_dir(&targets.workspace)
        .env_clear()
        .envs(environment(&confinement.plan, std::env::vars_os(), &[]))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
}

/// # Errors
/// A sentence: the program has printed no results.
fn read_results(root: &Path, is_over: bool) -> Result<CanaryResults, String> {
    let output = std::fs::read(root.join("output")).unwrap_or_default();
    serde_json::from_slice(&output).map_err(|_| {
        let errors = std::fs::read_to_string(root.join("errors")).unwrap_or_default();
        let silent = if is_over { "it said nothing" } else { "it took too long" };
        let why = errors.lines().last().unwrap_or(silent);
        not_run(why.chars().take(300).collect::<String>())
    })
}

/// What the canaries must not reach.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: Option<UnixListener>,
    _datagrams: Option<UnixDatagram>,
    _abstract: Option<UnixListener>,
    abstract_name: String,
}

impl Listeners {
    fn open(outside: &Path) -> io::Result<Self> {
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        udp.set_read_timeout(Some(Duration::from_millis(20)))?;
        let abstract_name = format!("gsv-canary-{:016x}", fastrand::u64(..));
        Ok(Self {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp,
            _unix: if_short(UnixListener::bind(outside.join("socket")))?,
            _datagrams: if_short(UnixDatagram::bind(outside.join("dgram")))?,
            _abstract: bind_abstract(&abstract_name),
            abstract_name,
        })
    }

    /// Echoes packets until the process has ended. False when it took too long.
    fn serve_until_over(&self, running: &mut Running) -> io::Result<bool> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut packet = [0; 16];
                while !over.load(Ordering::Relaxed) {
                    if let Ok((size, from)) = self.udp.recv_from(&mut packet) {
                        let _ = self.udp.send_to(packet.get(..size).unwrap_or_default(), from);
                    }
                }
            });
            let until = Instant::now() + PATIENCE;
            let ended = loop {
                match running.0.try_wait() {
                    Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                    Ok(status) => break Ok(status.is_some()),
                    Err(error) => break Err(error),
                }
            };
            over.store(true, Ordering::Relaxed);
            ended
        })
    }
}

/// None when the path is too long for a socket (107 bytes).
fn if_short<Socket>(bound: io::Result<Socket>) -> io::Result<Option<Socket>> {
    match bound {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        bound => bound.map(Some),
    }
}

#[cfg(target_os = "linux")]
fn bind_abstract(name: &str) -> Option<UnixListener> {
    use std::os::linux::net::SocketAddrExt as _;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).ok()?;
    UnixListener::bind_addr(&address).ok()
}

#[cfg(not(target_os = "linux"))]
fn bind_abstract(_name: &str) -> Option<UnixListener> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb1_a_tier_with_an_unknown_hole_or_broken_work_fails() {
        let of = |open: &[Canary], broken: &[&str]| CanaryResults {
            open: open.to_vec(),
            broken: broken.iter().map(|text| (*text).to_owned()).collect(),
        };
        let holds = |gaps: &[Canary]| Finding::Holds { gaps: gaps.to_vec() };
        let fails = |tier: Tier, results: &CanaryResults| match judge(tier, results) {
            Finding::Fails { why } => why,
            Finding::Holds { gaps } => panic!("{gaps:?}"),
        };
        assert_eq!(judge(Tier::Bubblewrap, &of(&[], &[])), holds(&[]));
        for canary in Canary::ALL {
            let why = fails(Tier::Bubblewrap, &of(&[canary], &[]));
            assert_eq!(why, format!("its test failed: a command could {}", canary.words()));
        }
        let known = [Canary::ListProcesses, Canary::ReadProcess];
        assert_eq!(judge(Tier::Seatbelt, &of(&known, &[])), holds(&known));
        let why = fails(
            Tier::Seatbelt,
            &of(&[Canary::ListProcesses, Canary::Tcp, Canary::Udp], &[]),
        );
        let words = [Canary::Tcp, Canary::Udp].map(Canary::words).join(", ");
        assert_eq!(why, format!("its test failed: a command could {words}"));
        let why = fails(Tier::Bubblewrap, &of(&[], &["/w can't be written", "no shell"]));
        assert_eq!(why, "ordinary work fails in it: /w can't be written, no shell");
    }
}
