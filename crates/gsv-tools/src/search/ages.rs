//! When files of a walk changed. A walk meets the files of a directory together, so each directory is opened once and its files
//! are asked for by name: resolving the whole path of every file costs more than the answer.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// Seconds and nanoseconds of the last change.
pub(super) type Changed = (i64, i64);

const UNKNOWN: Changed = (i64::MIN, 0);

/// Reads the ages of files, for one thread of a walk.
#[derive(Default)]
pub(super) struct Ages {
    last: Option<(PathBuf, OwnedFd)>,
    #[cfg(test)]
    opened: usize,
}

impl Ages {
    /// When the file itself changed, not the target of a link. A file that is gone is older than all others.
    pub(super) fn of(&mut self, path: &Path) -> Changed {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return UNKNOWN;
        };
        if self.last.as_ref().is_none_or(|(last, _)| last != dir) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | PATH_ONLY;
            self.last = rustix::fs::openat(CWD, dir, flags, Mode::empty())
                .ok()
                .map(|fd| (dir.to_path_buf(), fd));
            #[cfg(test)]
            {
                self.opened += 1;
            }
        }
        match &self.last {
            Some((_, fd)) => changed(fd, Path::new(name)).unwrap_or(UNKNOWN),
            None => UNKNOWN,
        }
    }
}

#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::empty();

/// Asks for the time only, and takes what a network file system knows without asking its server.
#[cfg(target_os = "linux")]
fn changed(dir: &OwnedFd, name: &Path) -> Option<Changed> {
    use rustix::fs::StatxFlags;
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    match rustix::fs::statx(dir, name, flags, StatxFlags::MTIME) {
        Ok(found) => Some((found.stx_mtime.tv_sec, i64::from(found.stx_mtime.tv_nsec))),
        Err(rustix::io::Errno::NOSYS) => changed_by_stat(dir, name),
        Err(_) => None,
    }
}
#[cfg(not(target_os = "linux"))]
use changed_by_stat as changed;

#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_fallible_conversions,
    reason = "the types of the fields differ between systems"
)]
fn changed_by_stat(dir: &OwnedFd, name: &Path) -> Option<Changed> {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((
        i64::from(found.st_mtime),
        i64::try_from(found.st_mtime_nsec).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    #[test]
    fn f66_a_directory_is_opened_once_for_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut ages = Ages::default();
        for dir in ["a", "b"] {
            fs::create_dir(folder.path().join(dir)).unwrap();
            for seconds in 0..50 {
                let path = folder.path().join(dir).join(format!("f{seconds}"));
                let at = SystemTime::UNIX_EPOCH + Duration::new(1_000 + seconds, 7);
                File::create(&path).unwrap().set_modified(at).unwrap();
                assert_eq!(ages.of(&path), (1_000 + i64::try_from(seconds).unwrap(), 7));
                let (dir, name) = (ages.last.as_ref().unwrap(), path.file_name().unwrap());
                assert_eq!(changed_by_stat(&dir.1, Path::new(name)), Some(ages.of(&path)));
            }
        }
        assert_eq!(ages.opened, 2);
    }

    #[test]
    fn f66_a_link_has_its_own_age_and_a_missing_file_is_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        File::create(&old)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        std::os::unix::fs::symlink(&old, folder.path().join("link")).unwrap();
        let mut ages = Ages::default();
        assert_eq!(ages.of(&old), (0, 0));
        assert!(ages.of(&folder.path().join("link")) > (0, 0));
        assert_eq!(ages.of(&folder.path().join("none")), UNKNOWN);
        assert_eq!(ages.of(&folder.path().join("none/x")), UNKNOWN);
    }
}
