//! The supervisor's part in scheduled backups (rules BK14, BK18, BK19): waits until one is due and starts a process that makes it. Without
//! a schedule there is no timer. Never makes a backup itself, so that a folder that does not answer stops nothing here.

use std::env;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::layout::Layout;
use super::process::Process;
use super::worker::{SharedLog, copy_lines};
use crate::backup::schedule::{self, Record, Schedule, due_at, retry_ms};
use crate::exit::{OrFail, Outcome};
use crate::units::now_ms;

/// The first argument of the process that makes a backup.
pub const MAKE: &str = "__make-scheduled-backup";
const SOURCE: &str = "backup";
/// A timer stands still while the machine sleeps, so the clock is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// Between two backups in any case, whatever is known of the last one.
const LEAST_PAUSE: Duration = Duration::from_secs(600);
/// For the end of a backup that is stopped. It ends also when nothing waits for it.
const STOP_GRACE: Duration = Duration::from_secs(1);

pub struct Backups {
    ready: Arc<Notify>,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Backups {
    /// Listens for changes of the schedule. The first backup waits for `ready`.
    pub fn start(layout: Layout, log: SharedLog) -> Outcome<Self> {
        let changed = signal(SignalKind::user_defined2()).or_fail("listen for signals", "Run `gsv up` again.")?;
        let (ready, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let keeper = Keeper {
            layout,
            log,
            changed,
            stop: stop.clone(),
            failures: 0,
            not_before: Instant::now(),
        };
        let task = tokio::spawn(keeper.run(ready.clone()));
        Ok(Self { ready, stop, task })
    }

    /// The gateway works.
    pub fn ready(&self) {
        self.ready.notify_one();
    }

    /// Ends the backup under way, which leaves no file.
    pub async fn stop(self) {
        self.stop.notify_one();
        let _ = timeout(STOP_GRACE, self.task).await;
    }
}

struct Keeper {
    layout: Layout,
    log: SharedLog,
    changed: Signal,
    stop: Arc<Notify>,
    /// In a row, as this process has seen them: on a full disk no record can be written.
    failures: u32,
    not_before: Instant,
}

/// How a backup's process ended.
enum Ended {
    Made,
    Failed,
    /// The schedule was changed.
    Changed,
    /// The gateway stops.
    Stopped,
}

impl Keeper {
    async fn run(mut self, ready: Arc<Notify>) {
        tokio::select! {
            () = ready.notified() => {}
            () = self.stop.notified() => return,
        }
        loop {
            let begins = self.begins();
            let look = begins.map(|at| at.min(Instant::now() + LOOK_AGAIN));
            tokio::select! {
                () = self.stop.notified() => return,
                _ = self.changed.recv() => {
                    (self.failures, self.not_before) = (0, Instant::now());
                    continue;
                }
                () = until(look) => {}
            }
            if begins.is_none_or(|at| at > Instant::now()) {
                continue;
            }
            match self.make().await {
                Ended::Stopped => return,
                Ended::Changed => (self.failures, self.not_before) = (0, Instant::now()),
                Ended::Made => (self.failures, self.not_before) = (0, Instant::now() + LEAST_PAUSE),
                Ended::Failed => {
                    self.failures = self.failures.saturating_add(1);
                    self.not_before = Instant::now() + Duration::from_millis(retry_ms(self.failures, u64::MAX));
                }
            }
        }
    }

    /// When the next backup begins. `None`: none is scheduled.
    fn begins(&self) -> Option<Instant> {
        let schedule = match Schedule::read(&self.layout) {
            Ok(schedule) => schedule?,
            Err(failure) => {
                self.log
                    .line(SOURCE, &format!("no backups are made: {}", failure.message));
                return None;
            }
        };
        let now = now_ms();
        let due = due_at(&schedule, &Record::read(&self.layout, &schedule), now);
        let wait = Duration::from_millis(due.saturating_sub(now));
        Some((Instant::now() + wait).max(self.not_before))
    }

    async fn make(&mut self) -> Ended {
        let mut child = match self.spawn() {
            Ok(child) => child,
            Err(error) => {
                self.log.line(SOURCE, &format!("the backup was not started: {error}"));
                return Ended::Failed;
            }
        };
        let lines = tokio::spawn(copy_lines(child.stdout.take(), self.log.clone(), SOURCE));
        let errors = tokio::spawn(copy_lines(child.stderr.take(), self.log.clone(), SOURCE));
        let process = Process::of(child.id().unwrap_or_default());
        let ended = tokio::select! {
            status = child.wait() => match status.ok().and_then(|status| status.code()) {
                Some(0) => Ended::Made,
                Some(_) => Ended::Failed,
                None => {
                    self.log.line(SOURCE, "no backup was made: its process was killed");
                    Ended::Failed
                }
            },
            _ = self.changed.recv() => Ended::Changed,
            () = self.stop.notified() => Ended::Stopped,
        };
        match ended {
            Ended::Changed | Ended::Stopped => {
                process.terminate();
                let _ = timeout(STOP_GRACE, child.wait()).await;
            }
            Ended::Made | Ended::Failed => {
                let _ = timeout(STOP_GRACE, async { (lines.await, errors.await) }).await;
            }
        }
        ended
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(program()?);
        command
            .arg(MAKE)
            .env("GSV_HOME", &self.layout.home)
            // The decrypted databases of the check stay on the disk of the state.
            .env("TMPDIR", schedule::folder(&self.layout))
            .env_remove("GSV_TOKEN")
            .env_remove("GSV_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn()
    }
}

/// This program. After an update its file may have been replaced by the new one.
fn program() -> io::Result<PathBuf> {
    let exe = env::current_exe()?;
    if exe.exists() {
        return Ok(exe);
    }
    let replaced = exe.to_string_lossy().strip_suffix(" (deleted)").map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(exe))
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
