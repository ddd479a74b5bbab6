//! The file system of this machine, with a cache of the folders that have not changed: file tools search the same folders before each change.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};

use crate::folder::Folder;
use crate::look::{Disk, Kind, Look, Unseen, list, open_folder};

/// Folders that are remembered, and names in them, together at most.
const MEMORY: usize = 60_000;
/// A folder with more names that count is read again each time.
const NAMES: usize = 2_000;
/// Two changes within this time may leave a folder with the same times. Some disks count in steps of two seconds.
const STEP: Duration = Duration::from_secs(3);

/// Answers as [`Disk`] does.
#[derive(Debug)]
pub struct Remembered {
    memory: Mutex<Memory>,
    clock: fn() -> SystemTime,
}

#[derive(Debug, Default)]
struct Memory {
    folders: HashMap<PathBuf, Known>,
    /// What they take of [`MEMORY`].
    size: usize,
}

#[derive(Debug, Clone)]
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

    fn size(&self) -> usize {
        1 + self.folder.names()
    }
}

/// A folder, and its times: each change of its entries changes both. Programs choose the first one (mtime), but not the second one (ctime).
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

    /// Whether no change from `now` on can leave the same times.
    fn is_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.changed.0.max(self.modified.0)).ok();
        let last = seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds + 1)));
        last.and_then(|last| now.duration_since(last).ok())
            .is_some_and(|since| since >= STEP)
    }
}

impl Default for Remembered {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl Remembered {
    fn new(clock: fn() -> SystemTime) -> Self {
        Self {
            memory: Mutex::default(),
            clock,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, dir: &Path, limit: usize) -> Option<Arc<Folder>> {
        let known = self.memory().folders.get(dir).cloned();
        // Without the lock: the folder may be on a disk that does not answer.
        let known = known.filter(|known| known.serves(limit))?;
        let now = Stamp::of(&dir.metadata().ok()?);
        (now == known.stamp).then_some(known.folder)
    }

    fn remember(&self, dir: &Path, known: Known) {
        let size = known.size();
        let mut memory = self.memory();
        if memory.size + size > MEMORY {
            // What is still needed comes back with the next search.
            *memory = Memory::default();
        }
        let before = memory.folders.insert(dir.to_owned(), known);
        memory.size = memory.size + size - before.map_or(0, |before| before.size());
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
        // In this order: each change that the list does not have comes after `now`, and gives the folder other times than these.
        let now = (self.clock)();
        let stamp = opened.metadata().ok().map(|found| Stamp::of(&found));
        let folder = Arc::new(Folder::of(list(&opened, dir, limit)?));
        let is_small = folder.names() <= NAMES;
        if let Some(stamp) = stamp.filter(|stamp| is_small && stamp.is_settled(now) && keeps_times(&opened)) {
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

/// Whether the folder is on a file system that is known to note each change in a folder's times. One of a network, or of a program, may not,
/// and an encrypted folder shows other names when its key comes or goes.
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
    let is_kept = magic.is_some_and(|magic| [EXT, XFS, BTRFS, F2FS, TMPFS, OVERLAY].contains(&magic));
    let facts = || rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    is_kept && facts().is_ok_and(|facts| !facts.stx_attributes.contains(StatxAttributes::ENCRYPTED))
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

    const MANY: usize = 5_000;
    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn in_an_hour() -> SystemTime {
        SystemTime::now() + HOUR
    }
    fn lab() -> (TempDir, PathBuf, Remembered) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        (dir, folder, Remembered::new(in_an_hour))
    }
    /// As if it had been changed long ago: kernels differ in how soon a change gives it another time.
    fn age(folder: &Path) {
        let before = SystemTime::now() - HOUR;
        File::open(folder).unwrap().set_modified(before).unwrap();
    }
    fn is_remembered(memory: &Remembered, dir: &Path) -> bool {
        let read = || memory.try_folder(dir, MANY).unwrap();
        Arc::ptr_eq(&read(), &read())
    }

    #[test]
    fn sb5_a_folder_that_stays_as_it_is_is_not_read_again() {
        let (_dir, folder, memory) = lab();
        fs::write(folder.join(".envrc"), "").unwrap();
        assert!(is_remembered(&memory, &folder));
        assert!(memory.try_folder(&folder, MANY).unwrap().has(".envrc"));
        // What was changed just now may be changed again at the same time.
        assert!(!is_remembered(&Remembered::default(), &folder));
    }

    #[test]
    fn sb5_a_folder_of_a_file_system_of_another_kind_is_read_again() {
        assert!(!is_remembered(
            &Remembered::new(in_an_hour),
            Path::new("/proc/self/fdinfo")
        ));
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
            age(&folder);
            assert!(is_remembered(&memory, &folder), "{number}");
            change();
            let after = memory.try_folder(&folder, MANY).unwrap();
            assert_eq!(*after, *Disk.try_folder(&folder, MANY).unwrap(), "{number}");
        }
    }

    #[test]
    fn sb5_a_folder_is_settled_some_seconds_after_its_last_change() {
        let (_dir, folder, _memory) = lab();
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
        assert_eq!(memory.try_folder(&folder, 2).unwrap().folders.len(), 2);
        assert_eq!(memory.try_folder(&folder, MANY).unwrap().folders.len(), 3);
    }

    #[test]
    fn sb5_the_memory_is_bounded() {
        let (_dir, folder, memory) = lab();
        let stamp = Stamp::of(&folder.metadata().unwrap());
        let names = (0..NAMES).map(|number| (format!("d{number}").into(), Kind::Dir));
        let full = Arc::new(Folder::of(names));
        let put = |number: usize| {
            let folder = Arc::clone(&full);
            let known = Known {
                stamp,
                limit: MANY,
                folder,
            };
            memory.remember(&PathBuf::from(format!("/{number}")), known);
        };
        for number in 0..100 {
            put(number);
            put(number);
            let memory = memory.memory();
            assert!(memory.size <= MEMORY);
            assert_eq!(memory.size, memory.folders.values().map(Known::size).sum::<usize>());
        }
        for number in 0..=NAMES {
            fs::create_dir(folder.join(number.to_string())).unwrap();
        }
        assert!(!is_remembered(&memory, &folder));
    }
}
