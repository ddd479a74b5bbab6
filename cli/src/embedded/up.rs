//! `gsv up`: prepares the state folder, starts the supervisor, and waits until the gateway answers.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::cluster::{self, Cluster};
use super::layout::Layout;
use super::listen::{self, Listening, Wanted};
use super::lock::{self, Lock};
use super::login::{self, login};
use super::runtime::Runtime;
use super::state::{Found, PATIENCE, Phase, State};
use super::supervisor::Report;
use super::times::Times;
use super::{DEFAULT_PORT, configure, log, ports, record, sealing_key, start_stopped, upgrade};
use crate::backup::schedule::Schedule;
use crate::exit::{Failure, OrFail, Outcome};
use crate::output::Output;

pub use super::login::{Login, is_loopback};
pub use super::ports::last_port;

const LOG_LINES: usize = 12;
/// For what the supervisor does before and after workerd's start.
const REPORT_MARGIN: Duration = Duration::from_secs(10);
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub struct Request {
    /// Absent: the port of the gateway that runs or ran last, else the default port.
    pub port: Option<u16>,
    pub new_token: bool,
    pub listen: Wanted,
    /// Absent: as at the last start.
    pub cluster: Option<cluster::Wanted>,
    /// Where a wait is told. Absent: nowhere.
    pub out: Option<Output>,
}

impl Default for Request {
    /// As at the last start.
    fn default() -> Self {
        Self {
            port: None,
            new_token: false,
            listen: Wanted::Same,
            cluster: None,
            out: None,
        }
    }
}

#[derive(Debug)]
pub struct Started {
    pub port: u16,
    pub pid: Option<u32>,
    pub version: String,
    pub already_running: bool,
    pub took: Duration,
    pub login: Login,
    /// Where it listens for other machines.
    pub listening: Option<Listening>,
    pub cluster: Option<Cluster>,
    /// Faults that did not stop the gateway.
    pub warnings: Vec<String>,
}

impl Started {
    /// The gateway answers, so the local config may have its address.
    pub fn answers(&mut self) {
        if self.login == Login::Moved
            && let Err(failure) = login::store_address(self.port)
        {
            self.warnings
                .push(format!("the local config still has another port. {}", failure.message));
        }
    }
}

/// Everything that the supervisor needs to start.
#[derive(Debug)]
pub struct Prepared {
    pub port: u16,
    runtime: Runtime,
    login: Login,
    listening: Option<Listening>,
    cluster: Option<Cluster>,
    warnings: Vec<String>,
    command_lock: Lock,
}

impl Prepared {
    /// The gateway as it is before the supervisor reports, and the lock that keeps another `up` or `down` waiting.
    pub fn into_started(self) -> (Started, Lock) {
        let started = Started {
            port: self.port,
            pid: None,
            version: self.runtime.manifest.version,
            already_running: false,
            took: Duration::ZERO,
            login: self.login,
            listening: self.listening,
            cluster: self.cluster,
            warnings: self.warnings,
        };
        (started, self.command_lock)
    }
}

pub enum Preparation {
    Running(Started),
    Ready(Prepared),
}

pub fn prepare(layout: &Layout, request: &Request) -> Outcome<Preparation> {
    layout.ensure()?;
    let command_lock = Lock::take(&layout.command_lock(), PATIENCE)?;
    if lock::is_held(&layout.supervisor_lock()) {
        return running(layout, request).map(Preparation::Running);
    }
    let runtime = Runtime::find(layout)?;
    let port = request.port.or_else(|| last_port(layout)).unwrap_or(DEFAULT_PORT);
    if let Found::State(state) = State::read(&layout.state())
        && let Some(orphan) = state.workerd()
    {
        // Its supervisor was killed, so it would not be restarted after a crash.
        orphan.end(ORPHAN_GRACE);
    }
    let _ = fs::remove_file(layout.state());
    if let Some(left_over) = record::running(layout) {
        return Err(Failure::failed(
            format!(
                "The gateway that was started for {} still runs (process {}), but its files there were removed or replaced.",
                layout.home.display(),
                left_over.supervisor_pid
            ),
            "Stop it with `gsv down`, then run `gsv up`.",
        ));
    }
    ports::ensure_free(port, request.out)?;
    let cluster = cluster::check(layout, request.cluster.as_ref())?;
    if cluster.is_some() && request.new_token {
        return Err(cluster::unsupported(
            "The first token of a cluster follows from secrets.key, so no other one was made.",
            "Write a new first line into secrets.key on every machine of the cluster, and restart them all.",
        ));
    }
    let restored = match cluster {
        // In a cluster, the state is not on the disk.
        Some(_) => None,
        None => upgrade::before_start(layout, &runtime.manifest.version)?,
    };
    let lost_certificate = listen::lost_certificate(layout, &request.listen);
    let listening = listen::settle(layout, &request.listen, port)?;
    let ask = match (&cluster, request.new_token) {
        (Some(_), _) => login::Ask::OfCluster,
        (None, true) => login::Ask::New,
        (None, false) => login::Ask::Same,
    };
    let (bootstrap, login) = login(layout, port, ask)?;
    let lost_key = sealing_key::ensure(layout)?;
    // After all that can refuse the command: from here on each start joins.
    if let Some(cluster) = &cluster {
        cluster.store(layout)?;
    }
    let mut warnings = configure::write(layout, &runtime, port, &bootstrap)?;
    warnings.extend(lost_key);
    warnings.extend(lost_certificate);
    warnings.extend(restored);
    // A schedule that can't be read counts, too.
    if cluster.is_some() && !matches!(Schedule::read(layout), Ok(None)) {
        warnings.push(
            "the scheduled backups of this home fail, because its state is in the cluster's bucket. End them: `gsv backup schedule --off`"
                .to_owned(),
        );
    }
    Ok(Preparation::Ready(Prepared {
        port,
        runtime,
        login,
        listening,
        cluster,
        warnings,
        command_lock,
    }))
}

/// Starts the supervisor in the background, and waits for its report.
pub fn start(layout: &Layout, prepared: Prepared) -> Outcome<Started> {
    let began = Instant::now();
    let mark = log::end(&layout.log());
    let next = "Check that the installation is complete.";
    let exe = env::current_exe().or_fail("find the gsv program", next)?;
    let errors = log::open(&layout.log()).or_fail("open the log", "Check that the disk is not full.")?;
    let mut child = Command::new(exe)
        .args(["up", "--supervise", "--port", &prepared.port.to_string()])
        .env("GSV_HOME", &layout.home)
        .env("GSV_RUNTIME_DIR", &prepared.runtime.dir)
        .env_remove("GSV_TOKEN")
        .env_remove("GSV_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .or_fail("start the supervisor", next)?;
    let (mut started, _command_lock) = prepared.into_started();
    let patience = Times::of(layout).start + REPORT_MARGIN;
    let report = child.stdout.take().and_then(|stdout| first_report(stdout, patience));
    let (reason, next, code) = match report {
        Some(Report::Ready { pid, version }) => {
            started.pid = Some(pid);
            started.version = version.unwrap_or(started.version);
            started.took = began.elapsed();
            started.answers();
            return Ok(started);
        }
        Some(Report::Failed { reason, next, code }) => (reason, next, code),
        // It is silent for too long, or ended without a report: it must not stay.
        None => {
            let _ = child.kill();
            ("The gateway did not start.".to_owned(), None, None)
        }
    };
    let _ = child.wait();
    if let Some(code) = code {
        return Err(Failure {
            next: next.unwrap_or_default(),
            ..Failure::from_reason(&code, &reason, false)
        });
    }
    let log = format!("The whole log is {}.", layout.log().display());
    let next = next.map_or(log.clone(), |next| format!("{next} {log}"));
    Err(Failure::failed(reason, next).with_lines(log::tail_since(&layout.log(), mark, LOG_LINES)))
}

fn first_report(stdout: ChildStdout, patience: Duration) -> Option<Report> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = sender.send(line);
    });
    serde_json::from_str(&receiver.recv_timeout(patience).ok()?).ok()
}

/// A second `up` changes nothing.
fn running(layout: &Layout, request: &Request) -> Outcome<Started> {
    let began = Instant::now();
    let Some(state) = State::wait(layout, |state| state.phase == Phase::Ready, |_| false) else {
        let log = layout.log();
        return Err(Failure::failed(
            "The gateway's supervisor runs, but the gateway is not ready.",
            format!("Read {}, then run `gsv down` and `gsv up`.", log.display()),
        ));
    };
    if let Some(port) = request.port.filter(|port| *port != state.port) {
        return Err(Failure::failed(
            format!("The gateway is already running, on port {}.", state.port),
            format!("To move it: `gsv down` and then `gsv up --port {port}`."),
        ));
    }
    let present = state.listening.as_ref().map(|listening| &listening.listen);
    let is_other = match &request.listen {
        Wanted::Same => false,
        Wanted::None => present.is_some(),
        Wanted::At(listen) => present != Some(listen),
    };
    if is_other {
        return Err(Failure::failed(
            "The gateway is running, and takes another address for other machines only when it starts.",
            "Run `gsv down` and then the same command again.",
        ));
    }
    let cluster = Cluster::read(layout)?;
    if let Some(wanted) = &request.cluster
        && !wanted.is_met(cluster.as_ref())
    {
        return Err(Failure::failed(
            "The gateway is running, and joins a cluster only when it starts.",
            "Run `gsv down` and then the same command again.",
        ));
    }
    if request.new_token {
        return Err(Failure::failed(
            "The gateway is running, and loads a new first token only when it starts.",
            "Run `gsv down` and then `gsv up --new-token`.",
        ));
    }
    let mut started = Started {
        port: state.port,
        pid: state.workerd_pid,
        version: state.version,
        already_running: true,
        took: began.elapsed(),
        login: login::present(layout, state.port)?,
        listening: state.listening,
        cluster,
        warnings: start_stopped::warning(layout)?.into_iter().collect(),
    };
    started.answers();
    Ok(started)
}
