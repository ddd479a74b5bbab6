//! Exclusive lock files. A lock ends with the process that holds it, so it is never stale.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::poll;
use super::process::Process;
use crate::exit::{Failure, OrFail, Outcome};

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
        Self::take_from(
            "Another `gsv up` or `gsv down` is running and does not end.",
            path,
            patience,
        )
    }

    /// Waits for the lock. `held` is said when that takes too long.
    pub fn take_from(held: &str, path: &Path, patience: Duration) -> Outcome<Self> {
        let taken = poll(patience, || Self::try_take(path).transpose());
        taken.unwrap_or_else(|| Err(Failure::later(held, "Find it with `ps`, kill it, and try again.")))
    }
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
    fn one_holder_at_a_time_and_none_after_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!is_held(&path));
        let lock = Lock::try_take(&path).unwrap().unwrap();
        assert!(is_held(&path));
        assert!(Lock::try_take(&path).unwrap().is_none());
        assert_eq!(holder(&path), Some(Process::current()));
        drop(lock);
        assert!(wait_until_free(&path, Duration::ZERO));
        Lock::take(&path, Duration::ZERO).unwrap();
    }
}
