//! A private folder for the decrypted databases of `gsv backup verify`. No one else may list it or write into it, where `SQLite` looks for
//! the log and the journal of a database by their names. What a killed verify left is removed by the next one.

use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::embedded::lock::Lock;
use crate::exit::{Failure, OrFail, Outcome};
use crate::units::bytes;

const PREFIX: &str = ".gsv-verify-";
/// Held while the folder is in use.
const LOCK: &str = "lock";
const NEXT: &str = "Check the folder of temporary files, or choose another one with TMPDIR.";
/// Another verify may remove a folder between its making and its lock.
const TRIES: usize = 10;

/// Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _lock: Lock,
}

impl Scratch {
    pub fn make() -> Outcome<Self> {
        Self::make_in(&env::temp_dir())
    }

    fn make_in(parent: &Path) -> Outcome<Self> {
        sweep(parent);
        for _ in 0..TRIES {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).permissions(fs::Permissions::from_mode(0o700));
            let dir = builder
                .tempdir_in(parent)
                .or_fail(format_args!("make a folder in {}", parent.display()), NEXT)?;
            let path = dir.path().join(LOCK);
            match Lock::try_take(&path) {
                Ok(Some(lock)) if path.exists() => return Ok(Self { dir, _lock: lock }),
                Err(failure) if dir.path().exists() => return Err(failure),
                _ => {}
            }
        }
        Err(Failure::later(
            format!("No folder in {} can be used.", parent.display()),
            NEXT,
        ))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Fails when the disk has less than `needed` bytes.
    pub fn check_space(&self, what: &str, needed: u64) -> Outcome {
        let free = free(self.dir.path());
        if needed > free {
            return Err(Failure::failed(
                format!(
                    "The disk of temporary files is too full: {what} has {}, and {} are free.",
                    bytes(needed),
                    bytes(free)
                ),
                "Free some space, or choose a folder on another disk with TMPDIR.",
            ));
        }
        Ok(())
    }
}

/// The bytes that this user can still write to a disk.
pub fn free(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Removes what killed verifies of this user have left.
fn sweep(parent: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // A link is no folder here. In a private folder of this user no one else has put anything.
        let is_ours = || {
            fs::symlink_metadata(&path)
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == me && meta.mode().trailing_zeros() >= 6)
        };
        if !is_named || !is_ours() {
            continue;
        }
        if !path.join(LOCK).exists() {
            // Nothing was written before the lock.
            let _ = fs::remove_dir(&path);
        } else if let Ok(Some(_lock)) = Lock::try_take(&path.join(LOCK)) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bk7_decrypted_databases_are_in_a_private_folder_that_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::make_in(parent.path()).unwrap();
        let dir = scratch.dir.path().to_owned();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        assert!(scratch.check_space("x", 0).is_ok());
        let failure = scratch.check_space("a database of the backup", 1 << 60).unwrap_err();
        assert!(failure.message.contains("too full") && failure.next.contains("TMPDIR"));
        drop(scratch);
        assert!(!dir.exists());
    }

    #[test]
    fn bk7_what_a_killed_verify_left_is_removed_and_what_is_in_use_or_of_others_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::make_in(parent.path()).unwrap();
        fs::write(used.path("database.sqlite"), "in use").unwrap();
        let make = |name: &str, mode: u32| {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join(LOCK), "").unwrap();
            fs::write(dir.join("database.sqlite"), "decrypted").unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            dir
        };
        let killed = make(".gsv-verify-killed", 0o700);
        let (open, other) = (make(".gsv-verify-open", 0o777), make("other", 0o700));
        let link = parent.path().join(".gsv-verify-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let _next = Scratch::make_in(parent.path()).unwrap();
        assert!(!killed.exists());
        assert!(used.path("database.sqlite").exists() && link.exists());
        assert!(open.join("database.sqlite").exists() && other.join("database.sqlite").exists());
    }
}
