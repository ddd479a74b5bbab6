//! The file system of this machine, with a memory of the folders that stay as they are: file tools search the same folders before each change.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::folder::Folder;
use crate::look::{Disk, Kind, Look, Unseen, list, open_folder};

/// Folders that are remembered, at most. One search looks at no more than 20,000.
const FOLDERS: usize = 25_000;
/// Two changes within this time may leave a folder with the same times. Some disks count in steps of two seconds.
const STEP: Duration = Duration::from_secs(3);

/// Answers as [`Disk`] does.
#[derive(Debug, Default)]
pub struct Remembered {
    folders: Mutex<HashMap<PathBuf, Known>>,
}

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    /// How many entries were asked for.
    limit: usize,
    folder: Arc<Folder>,
}

impl Known {
    /// Whether it has all that a list of `limit` entries would tell.
    fn serves(&self, limit: usize) -> bool {
        self.folder.entries < self.limit || limit <= self.limit
    }
}

/// A folder, and its times, which each change of its entries changes. No program can choose the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether a later change can't have the same times.
    fn is_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.changed.0.max(self.modified.0)).ok();
        let last = seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds + 1)));
        last.and_then(|last| now.duration_since(last).ok())
            .is_some_and(|since| since >= STEP)
    }
}

impl Remembered {
    fn known(&self, dir: &Path, limit: usize) -> Option<Arc<Folder>> {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let known = folders.get(dir).filter(|known| known.serves(limit))?;
        let now = Stamp::of(&dir.metadata().ok()?);
        (now == known.stamp).then(|| Arc::clone(&known.folder))
    }

    fn remember(&self, dir: &Path, known: Known) {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= FOLDERS && !folders.contains_key(dir) {
            // Those that are still needed come back with the next search.
            folders.clear();
        }
        folders.insert(dir.to_owned(), known);
    }
}

impl Look for Remembered {
    fn try_folder(&self, dir: &Path, limit: usize) -> Result<Arc<Folder>, Unseen> {
        if let Some(folder) = self.known(dir, limit) {
            return Ok(folder);
        }
        let Some(opened) = open_folder(dir)? else {
            return Ok(Arc::default());
        };
        // Before the list: a change after it changes the times.
        let stamp = opened.metadata().ok().map(|found| Stamp::of(&found));
        let folder = Arc::new(Folder::of(list(&opened, dir, limit)?));
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled(SystemTime::now()) && keeps_times(&opened)) {
            let folder = Arc::clone(&folder);
            self.remember(dir, Known { stamp, limit, folder });
        }
        Ok(folder)
    }

    fn try_real(&self, path: &Path) -> Result<Option<PathBuf>, Unseen> {
        Disk.try_real(path)
    }

    fn try_kind(&self, path: &Path) -> Result<Option<Kind>, Unseen> {
        Disk.try_kind(path)
    }

    fn try_list(&self, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen> {
        Disk.try_list(dir, limit)
    }

    fn try_text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unseen> {
        Disk.try_text(path)
    }

    fn is_listed(&self, dir: &Path) -> bool {
        Disk.is_listed(dir)
    }

    fn mounts(&self) -> Result<Vec<u8>, String> {
        Disk.mounts()
    }
}

/// Whether the folder is on a file system that is known to note each change in a folder's times. One of a network, or of a program, may not.
#[cfg(target_os = "linux")]
fn keeps_times(folder: &File) -> bool {
    const EXT: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683E;
    const F2FS: u64 = 0xF2F5_2010;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAY: u64 = 0x794C_7630;
    let found = rustix::fs::fstatfs(folder).ok();
    let magic = found.and_then(|found| u64::try_from(found.f_type).ok());
    magic.is_some_and(|magic| [EXT, XFS, BTRFS, F2FS, TMPFS, OVERLAY].contains(&magic))
}
#[cfg(not(target_os = "linux"))]
fn keeps_times(_folder: &File) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const MANY: usize = 1_000;

    /// A folder whose last change was long ago, as far as its times tell. `changed` can't be chosen, so the tests take it for `modified`.
    fn lab() -> (TempDir, PathBuf, Remembered) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        (dir, folder, Remembered::default())
    }
    fn remember(memory: &Remembered, dir: &Path) -> Arc<Folder> {
        let folder = memory.try_folder(dir, MANY).unwrap();
        let stamp = Stamp::of(&dir.metadata().unwrap());
        let known = Known {
            stamp,
            limit: MANY,
            folder: Arc::clone(&folder),
        };
        memory.remember(dir, known);
        folder
    }

    #[test]
    fn sb5_a_folder_that_stays_as_it_is_is_not_read_again() {
        let (_dir, folder, memory) = lab();
        fs::write(folder.join(".envrc"), "").unwrap();
        let first = remember(&memory, &folder);
        let again = memory.try_folder(&folder, MANY).unwrap();
        assert!(first.has(".envrc") && Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn sb5_each_change_of_a_folders_entries_is_seen() {
        let (dir, folder, memory) = lab();
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        let changes: [&dyn Fn(); 5] = [
            &|| symlink("file", folder.join(".envrc")).unwrap(),
            &|| fs::rename(folder.join(".envrc"), folder.join("away")).unwrap(),
            &|| fs::create_dir(folder.join("src")).unwrap(),
            &|| fs::remove_dir(folder.join("src")).unwrap(),
            // Another folder under the same name.
            &|| {
                fs::rename(&folder, dir.path().join("before")).unwrap();
                fs::rename(&other, &folder).unwrap();
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let before = remember(&memory, &folder);
            change();
            let after = memory.try_folder(&folder, MANY).unwrap();
            assert!(!Arc::ptr_eq(&before, &after), "{number}");
            assert_eq!(*after, *Disk.try_folder(&folder, MANY).unwrap(), "{number}");
        }
    }

    #[test]
    fn sb5_a_folder_that_was_changed_just_now_is_read_again() {
        let (_dir, folder, memory) = lab();
        let first = memory.try_folder(&folder, MANY).unwrap();
        assert!(!Arc::ptr_eq(&first, &memory.try_folder(&folder, MANY).unwrap()));
        let stamp = Stamp::of(&folder.metadata().unwrap());
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let changed = u64::try_from(stamp.changed.0).unwrap();
        assert!(stamp.is_settled(at(changed + 4)));
        // A clock that was set back says nothing about the times of a later change.
        for now in [changed + 3, changed, changed - 100] {
            assert!(!stamp.is_settled(at(now)), "{now}");
        }
    }

    #[test]
    fn sb5_a_short_list_does_not_serve_for_a_longer_one() {
        let (_dir, folder, memory) = lab();
        for name in ["a", "b", "c"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let stamp = Stamp::of(&folder.metadata().unwrap());
        let short = memory.try_folder(&folder, 2).unwrap();
        let known = Known {
            stamp,
            limit: 2,
            folder: short,
        };
        memory.remember(&folder, known);
        assert_eq!(memory.try_folder(&folder, 2).unwrap().folders.len(), 2);
        assert_eq!(memory.try_folder(&folder, MANY).unwrap().folders.len(), 3);
    }

    #[test]
    fn sb5_no_more_folders_are_remembered_than_the_limit() {
        let (_dir, folder, memory) = lab();
        let stamp = Stamp::of(&folder.metadata().unwrap());
        for number in 0..=FOLDERS {
            let folder = Arc::default();
            memory.remember(
                &PathBuf::from(format!("/{number}")),
                Known {
                    stamp,
                    limit: 1,
                    folder,
                },
            );
        }
        assert_eq!(memory.folders.lock().unwrap().len(), 1);
    }
}
