//! The process that keeps workerd running: starts it, polls its health (which also resumes interrupted runs), restarts it
//! after a crash or when it no longer answers (`watchdog`), and gives up with a reason when restarts do not help. It holds
//! the supervisor's lock while it runs, and talks only to its child and its parent.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use super::backups::Backups;
use super::cluster::Cluster;
use super::health::{self, Unhealthy};
use super::layout::Layout;
use super::listen::{Listen, Listening};
use super::lock::Lock;
use super::log::Log;
use super::process::Process;
use super::relay::{Destination, Relay};
use super::restart::{MOST_CRASHES, RestartPolicy, Verdict};
use super::runtime::Runtime;
use super::sealing_key::SealingKeys;
use super::state::{Phase, State};
use super::times::Times;
use super::unfinished;
use super::upgrade::OfStart;
use super::watchdog::Watchdog;
use super::worker::{SharedLog, Worker};
use super::{record, url};
use crate::exit::{Failure, OrFail, Outcome};
use crate::private_file;
use crate::units::{self, now_ms};

/// The one line that the supervisor writes to `gsv up`, on its stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
pub enum Report {
    Ready {
        pid: u32,
        version: Option<String>,
    },
    Failed {
        reason: String,
        /// What to do next. Absent: an older program's report, or the log is all there is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
        /// The contract's reason, which says all: the log has nothing to add.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

pub enum Mode {
    /// In the background: one report to stdout, nothing else.
    Detached,
    /// In the user's terminal: log lines to stderr, and a call with the pid when workerd is ready.
    Foreground(Box<dyn FnMut(u32)>),
    /// In the foreground of a service manager: log lines only to the log, and the same call.
    Service(Box<dyn FnMut(u32)>),
}

const NEWER_STATE_NEXT: &str = "Install the newer version of GSV, then run `gsv up`.";

struct Supervisor {
    layout: Layout,
    runtime: Runtime,
    /// Read once, so that a restart after a crash has them also when the file is gone meanwhile.
    keys: Option<SealingKeys>,
    state: State,
    log: SharedLog,
    mode: Mode,
    signals: Signals,
    watchdog: Watchdog,
    of_start: OfStart,
    backups: Backups,
    is_cluster: bool,
    /// A start that takes longer has failed.
    ready_within: Duration,
}

struct Signals {
    term: Signal,
    int: Signal,
    reload: Signal,
    _hup: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Stop,
    Reload,
}

/// Why one workerd process ended.
enum End {
    Asked(Asked),
    Died(String),
    /// A newer version has written the state, in a sentence.
    NewerState(String),
}

impl Signals {
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

/// `gsv up --supervise`: in a session of its own, so that neither the terminal nor the end of the parent reaches it.
pub async fn main(layout: Layout, port: u16) -> Outcome<()> {
    // Fails only for a group leader, which a child of `gsv up` is not; started by hand it stays in its session.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir(Path::new("/"));
    run(layout, port, Mode::Detached).await
}

/// Runs until it is stopped (ok) or gives up (the failure has the reason). `config.capnp` must be written.
pub async fn run(layout: Layout, port: u16, mode: Mode) -> Outcome<()> {
    let runtime = Runtime::find(&layout)?;
    keep_running(layout, runtime, port, mode, Watchdog::default()).await
}

async fn keep_running(layout: Layout, runtime: Runtime, port: u16, mode: Mode, watchdog: Watchdog) -> Outcome<()> {
    let echo = matches!(mode, Mode::Foreground(_));
    let _lock = Lock::take(&layout.supervisor_lock(), Duration::from_secs(1))?;
    let log = Log::open(&layout.log(), echo).or_fail("open the log", "Check that the disk is not full.")?;
    let log = SharedLog::new(log);
    let mut state = State::starting(port, &runtime);
    state.home = Some(layout.home.clone());
    let relay = match Listen::read(&layout)? {
        None => None,
        Some(listen) => {
            let certificate = listen.certificate(&layout)?;
            state.listening = Some(Listening::of(&listen, certificate.as_ref()));
            Some(Relay {
                address: listen.address,
                to: match certificate {
                    Some(_) => Destination::Socket(layout.remote_socket()),
                    None => Destination::Port(port),
                },
                tls: certificate.map(|certificate| certificate.server(&layout)).transpose()?,
            })
        }
    };
    // Its connections end with this function.
    let _relay = relay.map(|relay| relay.start(log.clone()));
    let of_start = OfStart::look(&layout, &runtime.manifest.version);
    // Before the state says so.
    let backups = Backups::start(layout.clone(), log.clone())?;
    let mut supervisor = Supervisor {
        ready_within: Times::of(&layout).start,
        // The start has read it before; a file that is damaged since says that there is one.
        is_cluster: !matches!(Cluster::read(&layout), Ok(None)),
        of_start,
        state,
        keys: SealingKeys::read()?,
        layout,
        runtime,
        log,
        mode,
        signals: Signals::listen()?,
        watchdog,
        backups,
    };
    let result = supervisor.supervise().await;
    supervisor.finish(&result);
    supervisor.backups.stop().await;
    result
}

impl Supervisor {
    async fn supervise(&mut self) -> Outcome<()> {
        let began = Instant::now();
        let mut policy = RestartPolicy::default();
        let mut ever_ready = false;
        loop {
            let (end, was_ready) = self.run_workerd().await?;
            ever_ready |= was_ready;
            let reason = match end {
                End::Asked(Asked::Stop) => return Ok(()),
                End::Asked(Asked::Reload) => {
                    self.reload()?;
                    continue;
                }
                End::Died(reason) => reason,
                End::NewerState(sentence) => return Err(self.newer_state(&sentence)),
            };
            self.say(&format!("workerd {reason}"));
            if !ever_ready {
                // It has never worked: a restart would only hide the cause.
                return Err(self.not_started(&reason));
            }
            let Verdict::RetryIn(delay) = policy.crashed(began.elapsed(), was_ready) else {
                return Err(self.gave_up(format!(
                    "workerd died {MOST_CRASHES} times within a minute (the last time it {reason}), so it is no longer restarted."
                )));
            };
            self.state.restarts += 1;
            self.state.set_workerd(None);
            self.enter(Phase::Restarting)?;
            self.say(&format!("restarting in {} ms", delay.as_millis()));
            tokio::select! {
                () = sleep(delay) => {}
                asked = self.signals.asked() => match asked {
                    Asked::Stop => return Ok(()),
                    Asked::Reload => self.reload()?,
                },
            }
        }
    }

    /// Runs one workerd process from start to end. Returns why it ended, and whether the gateway was ready.
    async fn run_workerd(&mut self) -> Outcome<(End, bool)> {
        let began = Instant::now();
        self.remove_unfinished().await;
        // A first start compiles, which may take seconds.
        let mut worker = tokio::select! {
            started = Worker::start(&self.layout, &self.runtime, self.keys.as_ref(), &self.log) => started?,
            asked = self.signals.asked() => return Ok((End::Asked(asked), false)),
        };
        let pid = worker.pid();
        self.state.set_workerd(Some(Process::of(pid)));
        self.enter(Phase::Starting)?;
        let port = self.state.port;
        let ready_within = self.ready_within;
        let is_upgrade = self.of_start.is_upgrade();
        // In a cluster, the state may be open on another machine, and the bucket away.
        let opens_state = !self.is_cluster;
        let answered = async {
            let health = health::until_ready(port, opens_state).await.map_err(End::NewerState)?;
            // Another version may refuse the state, or fail to convert it, while it answers.
            if is_upgrade {
                health::check_state(port).await.map_err(|unhealthy| match unhealthy {
                    Unhealthy::NewerState(sentence) => End::NewerState(sentence),
                    other => End::Died(format!("can't use the state: {other}")),
                })?;
            }
            Ok::<_, End>(health)
        };
        let health = tokio::select! {
            answered = answered => match answered {
                Ok(health) => health,
                Err(end) => {
                    worker.stop().await;
                    return Ok((end, false));
                }
            },
            status = worker.wait() => return Ok((End::Died(worker.died(status).await), false)),
            asked = self.signals.asked() => {
                worker.stop().await;
                return Ok((End::Asked(asked), false));
            }
            () = sleep(ready_within) => {
                worker.stop().await;
                let reason = format!("gave no healthy answer within {} s", ready_within.as_secs());
                return Ok((End::Died(reason), false));
            }
        };
        // Another program may have answered on the port, while workerd ends because it did not get the port.
        if let Some(status) = worker.ended() {
            return Ok((End::Died(worker.died(Some(status)).await), false));
        }
        if let Some(fault) = self.of_start.succeeded(&self.layout, &self.state.version) {
            self.say(&fault);
        }
        // Only a port that the gateway has had is the one of the next start.
        if let Err(failure) = private_file::write_changed(&self.layout.port(), self.state.port.to_string()) {
            self.say(&format!("the port is not stored: {}", failure.message));
        }
        self.state.ready_at = Some(now_ms());
        self.enter(Phase::Ready)?;
        self.backups.ready();
        let took_ms = began.elapsed().as_millis();
        self.say(&format!(
            "ready on {} after {took_ms} ms, workerd pid {pid}",
            url(self.state.port)
        ));
        match &mut self.mode {
            Mode::Detached => report(&Report::Ready {
                pid,
                version: health.version,
            }),
            Mode::Foreground(ready) | Mode::Service(ready) => ready(pid),
        }
        tokio::select! {
            status = worker.wait() => Ok((End::Died(worker.died(status).await), true)),
            asked = self.signals.asked() => {
                worker.stop().await;
                Ok((End::Asked(asked), true))
            }
            () = self.watchdog.until_silent(self.state.port) => {
                worker.kill().await;
                let silent = self.watchdog.patience().as_secs();
                let reason = format!("has not answered for {silent} s although its process lives, so it was killed");
                Ok((End::Died(reason), true))
            }
        }
    }

    /// A workerd or a GSV that was killed leaves what it was writing. Before the next one is started: then no such file is in use.
    async fn remove_unfinished(&self) {
        let (workspace, own, start) = (self.layout.workspace(), self.layout.gateway(), SystemTime::now());
        let removing = tokio::task::spawn_blocking(move || {
            unfinished::remove_own(&own, start);
            unfinished::remove(&workspace, start)
        });
        if let Ok(removed) = removing.await
            && removed.files > 0
        {
            let bytes = units::bytes(removed.bytes);
            self.say(&format!(
                "removed {} unfinished files of an earlier run, {bytes}",
                removed.files
            ));
        }
    }

    /// Counts the reload. The process that asked for it waits until the count has risen and the gateway is ready.
    fn reload(&mut self) -> Outcome<()> {
        self.say("loading a new configuration");
        self.state.reloads = Some(self.state.reloads.unwrap_or(0).wrapping_add(1));
        self.state.set_workerd(None);
        self.enter(Phase::Starting)
    }

    /// Once the gateway has worked, a state that can't be stored ends nothing: a full disk must not keep it from being restarted.
    fn enter(&mut self, phase: Phase) -> Outcome<()> {
        self.state.phase = phase;
        record::write(&self.layout, &self.state);
        let written = self.state.write(&self.layout.state());
        match written {
            Err(failure) if self.state.ready_at.is_some() => {
                self.say(&format!("the state is not stored: {}", failure.message));
                Ok(())
            }
            written => written,
        }
    }

    fn say(&self, text: &str) {
        self.log.line("supervisor", text);
    }

    /// The first start of a version leaves the state as it was before it.
    fn not_started(&mut self, reason: &str) -> Failure {
        let message = format!("The gateway did not start: workerd {}.", reason.trim_end_matches('.'));
        let failure = self.gave_up(message);
        let Some((happened, next)) = self.of_start.failed(&self.layout) else {
            return failure;
        };
        self.say(&happened);
        self.state.next = Some(next.clone());
        Failure::failed(
            format!("{} {happened}", failure.message),
            format!("{next} {}", failure.next).trim_end(),
        )
    }

    /// An older version can't read the state either, so there is one way on. What this version may have converted before is undone.
    fn newer_state(&mut self, sentence: &str) -> Failure {
        let (mut message, mut next) = (
            format!("The gateway did not start. {sentence}"),
            NEWER_STATE_NEXT.to_owned(),
        );
        if let Some((happened, first)) = self.of_start.refused(&self.layout) {
            message = format!("{message} {happened}");
            next = format!("{first} {next}");
        }
        self.state.next = Some(next.clone());
        Failure {
            next,
            ..Failure::from_reason(health::NEWER_STATE, &message, false)
        }
    }

    /// The process that reports it names the log.
    fn gave_up(&self, message: String) -> Failure {
        let next = match self.mode {
            Mode::Detached => String::new(),
            Mode::Foreground(_) | Mode::Service(_) => format!("The log is {}.", self.layout.log().display()),
        };
        Failure::failed(message, next)
    }

    /// After a stop there is no state file; after a failure it has the reason.
    fn finish(&mut self, result: &Outcome<()>) {
        let Err(failure) = result else {
            self.say("stopped");
            let _ = std::fs::remove_file(self.layout.state());
            record::remove(&self.layout);
            return;
        };
        let reason = &failure.message;
        self.say(&format!("gave up: {reason}"));
        self.state.set_workerd(None);
        self.state.reason = Some(reason.clone());
        let _ = self.enter(Phase::Failed);
        record::remove(&self.layout);
        if matches!(self.mode, Mode::Detached) {
            report(&Report::Failed {
                reason: reason.clone(),
                next: (!failure.next.is_empty()).then(|| failure.next.clone()),
                code: failure.reason.clone(),
            });
        }
    }
}

/// Best effort: the user may have stopped `gsv up`.
fn report(report: &Report) {
    crate::output::report_to_parent(&serde_json::to_string(report).unwrap_or_default());
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
