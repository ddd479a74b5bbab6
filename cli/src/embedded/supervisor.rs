//! The process that keeps workerd alive: starts it, asks it for its health until it answers (which also makes the gateway
//! take up interrupted runs), starts it again when it dies, and gives up visibly when that helps nothing. It holds the
//! supervisor's lock for as long as it lives and never talks to anyone but its child.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::layout::Layout;
use super::lock::Lock;
use super::log::Log;
use super::process::Process;
use super::restart::{RestartPolicy, Verdict};
use super::runtime::Runtime;
use super::state::{Phase, State};
use super::{health, url};
use crate::exit::{Failure, OrFail, Outcome};
use crate::units::{duration, now_ms};

/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// workerd has nothing to finish: all that counts is on disk already.
const STOP_GRACE: Duration = Duration::from_millis(250);
/// Its last words after its death.
const DRAIN: Duration = Duration::from_secs(1);
const LINE_BYTES: u64 = 64 * 1024;

/// The one line that the supervisor says to `gsv up` on its stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
pub enum Report {
    Ready { pid: u32, version: Option<String> },
    Failed { reason: String },
}

/// What to do with the first news of the start.
pub enum Mode {
    /// Detached: one report to stdout, nothing else.
    Detached,
    /// In the user's terminal: log lines to stderr, and a call when ready.
    Foreground(Box<dyn FnMut(u32)>),
}

type SharedLog = Arc<Mutex<Log>>;

struct Supervisor {
    layout: Layout,
    runtime: Runtime,
    state: State,
    log: SharedLog,
    mode: Mode,
    stop: Stop,
}

struct Stop {
    term: Signal,
    int: Signal,
    reload: Signal,
    _hup: Signal,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Stop,
    Reload,
}

impl Stop {
    /// HUP is caught and dropped: the gateway outlives the terminal.
    fn listen() -> Outcome<Self> {
        let catch = |kind| signal(kind).or_fail("listen for signals", "Run `gsv up` again.");
        Ok(Self {
            term: catch(SignalKind::terminate())?,
            int: catch(SignalKind::interrupt())?,
            reload: catch(SignalKind::user_defined1())?,
            _hup: catch(SignalKind::hangup())?,
        })
    }

    async fn asked(&mut self) -> Asked {
        tokio::select! {
            _ = self.term.recv() => Asked::Stop,
            _ = self.int.recv() => Asked::Stop,
            _ = self.reload.recv() => Asked::Reload,
        }
    }
}

/// How one life of workerd ended.
enum End {
    Stopped,
    /// There is a new configuration.
    Reloading {
        was_ready: bool,
    },
    Died {
        reason: String,
        was_ready: bool,
    },
}

/// Runs until stopped (ok) or until it gives up (the failure says why). `config.capnp` must be written.
pub async fn run(layout: Layout, port: u16, mode: Mode) -> Outcome<()> {
    let echo = matches!(mode, Mode::Foreground(_));
    let runtime = Runtime::find(&layout)?;
    let _lock = Lock::take(&layout.supervisor_lock(), Duration::from_secs(1))?;
    let log = Log::open(&layout.log(), echo).or_fail("open the log", "Check that the disk is not full.")?;
    let me = Process::current();
    let state = State {
        phase: Phase::Starting,
        supervisor_pid: me.pid,
        supervisor_start: me.started,
        workerd_pid: None,
        workerd_start: None,
        boot_id: me.boot_id,
        port,
        version: runtime.manifest.version.clone(),
        started_at: now_ms(),
        ready_at: None,
        restarts: 0,
        reloads: Some(0),
        runtime: Some(runtime.dir.clone()),
        reason: None,
    };
    let stop = Stop::listen()?;
    let mut supervisor = Supervisor {
        layout,
        runtime,
        state,
        log: Arc::new(Mutex::new(log)),
        mode,
        stop,
    };
    let result = supervisor.supervise().await;
    supervisor.finish(&result);
    result
}

impl Supervisor {
    async fn supervise(&mut self) -> Outcome<()> {
        let began = Instant::now();
        let mut policy = RestartPolicy::default();
        let mut ever_ready = false;
        loop {
            let (reason, was_ready) = match self.one_life().await? {
                End::Stopped => return Ok(()),
                End::Reloading { was_ready } => {
                    // If the new one does not work, the old one did: trying again gives whoever wrote it time to take it back.
                    ever_ready |= was_ready;
                    self.reload()?;
                    continue;
                }
                End::Died { reason, was_ready } => (reason, was_ready),
            };
            ever_ready |= was_ready;
            self.say(&format!("workerd {reason}"));
            if !ever_ready {
                // It has never worked: trying again would only hide the cause.
                return Err(Failure::failed(
                    format!("The gateway did not start: workerd {reason}."),
                    self.log_next(),
                ));
            }
            let delay = match policy.crashed(began.elapsed(), was_ready) {
                Verdict::RetryIn(delay) => delay,
                Verdict::GiveUp => {
                    return Err(Failure::failed(
                        format!(
                            "workerd died 10 times within a minute (at last it {reason}), so it is no longer restarted."
                        ),
                        self.log_next(),
                    ));
                }
            };
            self.state.restarts += 1;
            self.state.set_workerd(None);
            self.enter(Phase::Restarting)?;
            self.say(&format!("starting again in {} ms", delay.as_millis()));
            tokio::select! {
                () = sleep(delay) => {}
                asked = self.stop.asked() => match asked {
                    Asked::Stop => return Ok(()),
                    Asked::Reload => self.reload()?,
                },
            }
        }
    }

    /// From start to death of one workerd process.
    async fn one_life(&mut self) -> Outcome<End> {
        let began = Instant::now();
        let mut child = self.spawn()?;
        let drains = [
            drain(child.stdout.take(), &self.log),
            drain(child.stderr.take(), &self.log),
        ];
        let pid = child.id().unwrap_or_default();
        self.state.set_workerd(Some(Process::of(pid)));
        self.enter(Phase::Starting)?;
        let health = tokio::select! {
            health = health::until_ready(self.state.port) => health,
            status = child.wait() => return Ok(died(status.ok(), drains, false).await),
            asked = self.stop.asked() => return Ok(ended(asked, child, drains, false).await),
            () = sleep(READY_WITHIN) => {
                stop(child, drains).await;
                let reason = format!("gave no healthy answer within {}", duration(READY_WITHIN.as_millis().try_into().unwrap_or(u64::MAX)));
                return Ok(End::Died { reason, was_ready: false });
            }
        };
        // A foreign program could have answered on the port, if workerd did not get it and is about to say so.
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(died(Some(status), drains, false).await);
        }
        self.state.ready_at = Some(now_ms());
        self.enter(Phase::Ready)?;
        self.say(&format!(
            "ready on {} after {} ms, workerd pid {pid}",
            url(self.state.port),
            began.elapsed().as_millis()
        ));
        match &mut self.mode {
            Mode::Detached => report(&Report::Ready {
                pid,
                version: health.version,
            }),
            Mode::Foreground(ready) => ready(pid),
        }
        tokio::select! {
            status = child.wait() => Ok(died(status.ok(), drains, true).await),
            asked = self.stop.asked() => Ok(ended(asked, child, drains, true).await),
        }
    }

    /// The next life counts: whoever asked for it waits until the count has risen and the gateway is ready.
    fn reload(&mut self) -> Outcome<()> {
        self.say("taking up a new configuration");
        // The bundle may be another one by now.
        if let Ok(runtime) = Runtime::open(&self.runtime.dir) {
            self.runtime = runtime;
            self.state.version.clone_from(&self.runtime.manifest.version);
        }
        self.state.reloads = Some(self.state.reloads.unwrap_or(0).wrapping_add(1));
        self.state.set_workerd(None);
        self.enter(Phase::Starting)
    }

    fn spawn(&self) -> Outcome<Child> {
        let workerd = self.runtime.workerd();
        Command::new(&workerd)
            .arg("serve")
            .arg(self.layout.config())
            .current_dir(self.layout.gateway())
            .env_remove("GSV_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .or_fail(
                format_args!("start {}", workerd.display()),
                "It needs Linux with glibc 2.27 or newer, or macOS, on 64 bits. Install the runtime again.",
            )
    }

    fn enter(&mut self, phase: Phase) -> Outcome<()> {
        self.state.phase = phase;
        self.state.write(&self.layout.state())
    }

    fn say(&self, text: &str) {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .line("supervisor", text);
    }

    fn log_next(&self) -> String {
        format!("The log is {}.", self.layout.log().display())
    }

    /// Leaves the truth behind: no state after a stop, a reason after a failure.
    fn finish(&mut self, result: &Outcome<()>) {
        match result {
            Ok(()) => {
                self.say("stopped");
                let _ = std::fs::remove_file(self.layout.state());
            }
            Err(failure) => {
                self.say(&format!("gave up: {}", failure.message));
                self.state.set_workerd(None);
                self.state.reason = Some(failure.message.clone());
                let _ = self.enter(Phase::Failed);
                if matches!(self.mode, Mode::Detached) {
                    report(&Report::Failed {
                        reason: failure.message.clone(),
                    });
                }
            }
        }
    }
}

/// `gsv up` may have been stopped by its user; then nobody reads this.
fn report(report: &Report) {
    crate::output::report_to_parent(&serde_json::to_string(report).unwrap_or_default());
}

async fn died(status: Option<ExitStatus>, drains: [JoinHandle<()>; 2], was_ready: bool) -> End {
    drained(drains).await;
    End::Died {
        reason: how_it_died(status),
        was_ready,
    }
}

async fn ended(asked: Asked, child: Child, drains: [JoinHandle<()>; 2], was_ready: bool) -> End {
    stop(child, drains).await;
    match asked {
        Asked::Stop => End::Stopped,
        Asked::Reload => End::Reloading { was_ready },
    }
}

async fn stop(mut child: Child, drains: [JoinHandle<()>; 2]) {
    if let Some(pid) = child.id() {
        Process::of(pid).terminate();
    }
    if timeout(STOP_GRACE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
    drained(drains).await;
}

async fn drained(drains: [JoinHandle<()>; 2]) {
    for drain in drains {
        let _ = timeout(DRAIN, drain).await;
    }
}

fn how_it_died(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with status {code}"),
            (None, Some(9)) => "was killed (signal 9; by hand, or out of memory)".to_owned(),
            (None, Some(number)) => format!("was ended by signal {number}"),
            (None, None) => "ended".to_owned(),
        },
        None => "ended".to_owned(),
    }
}

/// Carries a stream of workerd's into the log, line by line.
fn drain(stream: Option<impl AsyncRead + Unpin + Send + 'static>, log: &SharedLog) -> JoinHandle<()> {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => log
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .line("workerd", &String::from_utf8_lossy(&line)),
            }
        }
    })
}

/// `gsv up --supervise`: its own session, so that neither the terminal nor the parent's end reaches it.
pub async fn main(layout: Layout, port: u16) -> Outcome<()> {
    // Fails only for a group leader, which a child of `gsv up` is not; started by hand it stays where it is.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir(Path::new("/"));
    run(layout, port, Mode::Detached).await
}
