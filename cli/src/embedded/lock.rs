//! Exclusive lock files. A lock ends with the process that holds it, so it is never stale.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::poll;
use super::process::Process;
use crate::exit::{Failure, OrFail, Outcome};

/// A command waits so long without a word.
const MOMENT: Duration = Duration::from_secs(1);
const NEXT: &str = "Check that the state folder is yours and writable.";

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// `None` when another process holds the lock.
    pub fn try_take(path: &Path) -> Outcome<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path);
        let mut file = file.or_fail(format_args!("open {}", path.display()), NEXT)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(error).or_fail(format_args!("lock {}", path.display()), NEXT);
            }
        }
        // For `down`, when the state file is damaged. The lock itself does not depend on the content.
        let me = serde_json::to_vec(&Process::current()).unwrap_or_default();
        let written = file.set_len(0).and_then(|()| file.write_all(&me));
        written.or_fail(
            format_args!("write {}", path.display()),
            "Check that the disk is not full.",
        )?;
        Ok(Some(Self { _file: file }))
    }

    /// Waits for the lock of the commands that start and end the gateway.
    pub fn take(path: &Path, patience: Duration) -> Outcome<Self> {
        let held = Held {
            who: "Another `gsv up` or `gsv down`",
            does: "is running",
        };
        let taken = poll(patience, || Self::try_take(path).transpose());
        taken.unwrap_or_else(|| Err(held.failure(path)))
    }

    /// Waits for the lock, and says so once when that takes longer than a moment: silence looks like a hang.
    pub fn take_and_say(held: &Held, path: &Path, patience: Duration, say: impl FnOnce(&str)) -> Outcome<Self> {
        Self::take_saying(held, path, (MOMENT.min(patience), patience.saturating_sub(MOMENT)), say)
    }

    fn take_saying(
        held: &Held,
        path: &Path,
        (silent, patience): (Duration, Duration),
        say: impl FnOnce(&str),
    ) -> Outcome<Self> {
        if let Some(taken) = poll(silent, || Self::try_take(path).transpose()) {
            return taken;
        }
        say(&format!(
            "{}, so this one waits for its end.\n",
            held.by(alive(path).as_ref())
        ));
        let taken = poll(patience, || Self::try_take(path).transpose());
        taken.unwrap_or_else(|| Err(held.failure(path)))
    }
}

/// What is said about a lock that another process holds.
pub struct Held {
    pub who: &'static str,
    pub does: &'static str,
}

impl Held {
    fn by(&self, holder: Option<&Process>) -> String {
        let process = holder.map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
        format!("{}{process} {}", self.who, self.does)
    }

    fn failure(&self, path: &Path) -> Failure {
        let holder = alive(path);
        let next = match &holder {
            Some(Process { pid, .. }) => {
                format!("See what it is with `ps -p {pid}`, end it with `kill {pid}`, and try again.")
            }
            // A program that holds the lock without GSV.
            None => "Find it with `ps`, kill it, and try again.".to_owned(),
        };
        Failure::later(format!("{} and does not end.", self.by(holder.as_ref())), next)
    }
}

/// The holder of a lock, unless it has ended since it wrote itself into the file.
fn alive(path: &Path) -> Option<Process> {
    holder(path).filter(Process::is_alive)
}

pub fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns whether the lock is free in time.
pub fn wait_until_free(path: &Path, patience: Duration) -> bool {
    poll(patience, || (!is_held(path)).then_some(())).is_some()
}

/// The process that holds a lock, as it wrote itself into the file.
pub fn holder(path: &Path) -> Option<Process> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(4_096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rm9_a_command_that_waits_for_the_lock_says_so_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.lock");
        let held = Held {
            who: "Another command",
            does: "changes the local config",
        };
        let none = (Duration::ZERO, Duration::ZERO);
        let lock = Lock::take_saying(&held, &path, none, |said| panic!("{said}")).unwrap();
        let mut said = String::new();
        let failure = Lock::take_saying(&held, &path, none, |text| said = text.to_owned()).unwrap_err();
        let pid = std::process::id();
        assert_eq!(
            said,
            format!("Another command (process {pid}) changes the local config, so this one waits for its end.\n")
        );
        assert_eq!(
            failure.message,
            format!("Another command (process {pid}) changes the local config and does not end.")
        );
        assert!(failure.next.contains(&format!("`kill {pid}`")), "{failure:?}");
        let up = Lock::take(&path, Duration::ZERO).unwrap_err();
        assert!(
            up.message.contains(&format!("`gsv down` (process {pid}) is running")),
            "{up:?}"
        );
        // Another program has the lock, and the file still names a process that has ended.
        let mut ended = Process::current();
        ended.started = "other".to_owned();
        fs::write(&path, serde_json::to_vec(&ended).unwrap()).unwrap();
        let unknown = Lock::take_saying(&held, &path, none, |_| {}).unwrap_err();
        assert_eq!(
            unknown.message,
            "Another command changes the local config and does not end."
        );
        drop(lock);
    }

    #[test]
    fn one_holder_at_a_time_and_none_after_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!is_held(&path));
        let lock = Lock::try_take(&path).unwrap().unwrap();
        assert!(is_held(&path));
        assert!(Lock::try_take(&path).unwrap().is_none());
        assert_eq!(holder(&path), Some(Process::current()));
        drop(lock);
        // A process that another test starts has the lock, too, until it is another program.
        let patience = Duration::from_secs(10);
        assert!(wait_until_free(&path, patience));
        Lock::take(&path, patience).unwrap();
    }
}
