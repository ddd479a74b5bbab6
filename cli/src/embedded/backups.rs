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
use crate::backup::record::{Record, due_at, retry_ms};
use crate::backup::schedule::{self, Schedule};
use crate::exit::{OrFail, Outcome};
use crate::units::now_ms;

/// The first argument of the process that makes a backup.
pub const MAKE: &str = "__make-scheduled-backup";
const SOURCE: &str = "backup";
/// A timer stands still while the machine sleeps, so the clock is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// Between two backups in any case, whatever is known of the last one.
const LEAST_PAUSE: Duration = Duration::from_secs(600);
/// How long the supervisor waits for a stopped backup. It ends by itself later, too.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// For the end of a backup whose schedule was changed.
const CHANGE_GRACE: Duration = Duration::from_secs(60);

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
            ended_at: None,
            unreadable: None,
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
    /// The last attempt. `None`: nothing holds the next one back.
    ended_at: Option<Instant>,
    /// Why the schedule can't be read, once it is in the log.
    unreadable: Option<String>,
}

/// When the next backup begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// None is scheduled.
    Never,
    At(Instant),
    /// The schedule could not be read.
    Unknown,
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
            let look = next_look(&begins);
            tokio::select! {
                () = self.stop.notified() => return,
                _ = self.changed.recv() => {
                    (self.failures, self.ended_at) = (0, None);
                    continue;
                }
                () = until(look) => {}
            }
            if !matches!(begins, Begins::At(at) if at <= Instant::now()) {
                continue;
            }
            match self.make().await {
                Ended::Stopped => return,
                Ended::Changed => (self.failures, self.ended_at) = (0, None),
                Ended::Made => (self.failures, self.ended_at) = (0, Some(Instant::now())),
                Ended::Failed => {
                    (self.failures, self.ended_at) = (self.failures.saturating_add(1), Some(Instant::now()));
                }
            }
        }
    }

    fn begins(&mut self) -> Begins {
        let schedule = match Schedule::read(&self.layout) {
            Ok(Some(schedule)) => schedule,
            Ok(None) => return Begins::Never,
            Err(failure) => {
                // The reason is the same at each look.
                if self.unreadable.as_ref() != Some(&failure.message) {
                    self.log
                        .line(SOURCE, &format!("no backups are made: {}", failure.message));
                    self.unreadable = Some(failure.message);
                }
                return Begins::Unknown;
            }
        };
        self.unreadable = None;
        let now = now_ms();
        let due = due_at(&schedule, &Record::read(&self.layout, &schedule), now);
        let at = Instant::now() + Duration::from_millis(due.saturating_sub(now));
        let pause = match self.failures {
            0 => LEAST_PAUSE,
            failures => Duration::from_millis(retry_ms(failures, schedule.every_ms)),
        };
        Begins::At(self.ended_at.map_or(at, |ended| at.max(ended + pause)))
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
            Ended::Stopped => {
                process.terminate();
                let _ = timeout(STOP_GRACE, child.wait()).await;
            }
            Ended::Changed => {
                process.terminate();
                // While it ends, another one would find it under way, and make nothing.
                let _ = timeout(CHANGE_GRACE, child.wait()).await;
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

/// `None`: a change of the schedule is told by a signal.
fn next_look(begins: &Begins) -> Option<Instant> {
    let soon = Instant::now() + LOOK_AGAIN;
    match begins {
        Begins::Never => None,
        Begins::At(at) => Some(soon.min(*at)),
        Begins::Unknown => Some(soon),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::log::Log;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// The keeper of a home with a backup that is due every hour.
    fn keeper(home: &std::path::Path) -> (Keeper, Schedule) {
        let layout = Layout { home: home.to_owned() };
        layout.ensure().unwrap();
        let schedule = Schedule {
            id: "k3".into(),
            folder: "/backups".into(),
            every_ms: crate::units::millis(HOUR),
            keep: 3,
            with_secrets: false,
            since: 1,
            passphrase: String::new(),
        };
        schedule.write(&layout).unwrap();
        let keeper = Keeper {
            log: SharedLog::new(Log::open(&layout.log(), false).unwrap()),
            layout,
            changed: signal(SignalKind::user_defined2()).unwrap(),
            stop: Arc::new(Notify::new()),
            failures: 0,
            ended_at: None,
            unreadable: None,
        };
        (keeper, schedule)
    }

    #[tokio::test]
    async fn bk18_the_next_attempt_is_never_later_than_the_interval_and_follows_a_change_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut keeper, schedule) = keeper(dir.path());
        let ended = Instant::now();
        keeper.ended_at = Some(ended);
        for (failures, minutes) in [(1, 1), (3, 15), (4, 60), (5, 60), (60, 60)] {
            keeper.failures = failures;
            let due = ended + Duration::from_secs(60 * minutes);
            assert_eq!(keeper.begins(), Begins::At(due), "{failures}");
        }
        let daily = Schedule {
            every_ms: crate::units::millis(24 * HOUR),
            ..schedule
        };
        daily.write(&keeper.layout).unwrap();
        assert_eq!(keeper.begins(), Begins::At(ended + 6 * HOUR));
        keeper.failures = 0;
        assert_eq!(keeper.begins(), Begins::At(ended + LEAST_PAUSE));
    }

    #[tokio::test]
    async fn bk14_a_schedule_that_could_not_be_read_is_looked_at_again_and_one_that_is_missing_needs_no_timer() {
        let dir = tempfile::tempdir().unwrap();
        let (mut keeper, schedule) = keeper(dir.path());
        let file = schedule::folder(&keeper.layout).join("schedule.json");
        std::fs::write(&file, "{").unwrap();
        for _ in 0..2 {
            assert_eq!(keeper.begins(), Begins::Unknown);
        }
        let log = std::fs::read_to_string(keeper.layout.log()).unwrap();
        assert_eq!(log.matches("no backups are made").count(), 1, "{log}");
        let look = next_look(&Begins::Unknown).unwrap();
        assert!(look <= Instant::now() + LOOK_AGAIN);
        schedule.write(&keeper.layout).unwrap();
        assert!(matches!(keeper.begins(), Begins::At(at) if at <= Instant::now()));
        schedule.remove(&keeper.layout).unwrap();
        assert_eq!((keeper.begins(), next_look(&Begins::Never)), (Begins::Never, None));
    }
}
