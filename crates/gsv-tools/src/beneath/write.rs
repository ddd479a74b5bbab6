//! Writes and removes files. A file is replaced as a whole or not at all, and only if it is still the expected file.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Beneath, Links, Parents, RelPath, Spot, kind_name, kind_of, stat_name};
use crate::error::{ToolError, quote};

impl Beneath {
    /// Replaces or creates a file: temporary file beside it, fsync, rename, fsync of the directory. An existing file keeps its
    /// mode; a symlink is written through when it stays beneath the root. `expected` is the state that the new content
    /// was made from: when the file has changed since, nothing is written.
    pub fn write_file(&self, rel: &RelPath, content: &[u8], expected: Option<&Stat>) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Follow, Parents::Create)?;
        if let Some(stat) = &spot.stat {
            self.require_regular(rel, kind_of(stat))?;
            rustix::fs::accessat(&spot.dir, &spot.name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|errno| ToolError::io(format!("write {}", quote(&self.show(rel))), errno))?;
        }
        let temp = format!(".gsv-{:016x}.tmp", fastrand::u64(..));
        let written = self
            .write_temp(&spot, &temp, content)
            .and_then(|()| self.put(rel, &spot, &temp, expected));
        if written.is_err() {
            // Best effort: the first error is the one that matters.
            let _ = rustix::fs::unlinkat(&spot.dir, temp.as_str(), AtFlags::empty());
        }
        written
    }

    fn write_temp(&self, spot: &Spot, temp: &str, content: &[u8]) -> Result<(), ToolError> {
        let failed = |errno: std::io::Error| {
            ToolError::io(
                format!("write a file in {}", quote(&self.workspace.to_string_lossy())),
                errno,
            )
        };
        let mode = if spot.stat.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&spot.dir, temp, flags, Mode::from_raw_mode(mode))
            .map_err(|errno| failed(errno.into()))?;
        let mut file = File::from(fd);
        file.write_all(content).map_err(failed)?;
        if let Some(stat) = &spot.stat {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode as rustix::fs::RawMode & 0o777))
                .map_err(|errno| failed(errno.into()))?;
        }
        file.sync_all().map_err(failed)
    }

    fn put(&self, rel: &RelPath, spot: &Spot, temp: &str, expected: Option<&Stat>) -> Result<(), ToolError> {
        let now = stat_name(&spot.dir, &spot.name).map_err(|errno| self.error(rel, errno))?;
        let changed = || ToolError::Changed {
            path: quote(&self.show(rel)),
        };
        if expected.is_some_and(|expected| now.as_ref().is_none_or(|now| !is_same(now, expected))) {
            return Err(changed());
        }
        if now.as_ref().is_some_and(|now| kind_of(now) != FileType::RegularFile) {
            return Err(changed());
        }
        rustix::fs::renameat(&spot.dir, temp, &spot.dir, &spot.name).map_err(|errno| self.error(rel, errno))?;
        sync_dir(&spot.dir);
        Ok(())
    }

    /// Removes one regular file or one symlink (the link, never its target).
    pub fn remove_file(&self, rel: &RelPath) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Keep, Parents::MustExist)?;
        let not_found = || ToolError::NotFound {
            path: quote(&self.show(rel)),
        };
        match kind_of(spot.stat.as_ref().ok_or_else(not_found)?) {
            FileType::RegularFile | FileType::Symlink => {}
            kind => {
                return Err(ToolError::NotAFile {
                    path: quote(&self.show(rel)),
                    kind: kind_name(kind),
                });
            }
        }
        match rustix::fs::unlinkat(&spot.dir, &spot.name, AtFlags::empty()) {
            Ok(()) => {
                sync_dir(&spot.dir);
                Ok(())
            }
            Err(Errno::ISDIR) => Err(ToolError::NotAFile {
                path: quote(&self.show(rel)),
                kind: "a directory",
            }),
            Err(errno) => Err(self.error(rel, errno)),
        }
    }
}

/// Best effort: the rename has succeeded, and some file systems cannot sync a directory.
fn sync_dir(dir: &OwnedFd) {
    if let Ok(dir) = rustix::fs::openat(
        dir,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        let _ = rustix::fs::fsync(dir);
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    one.st_dev == other.st_dev
        && one.st_ino == other.st_ino
        && one.st_size == other.st_size
        && one.st_mtime == other.st_mtime
        && one.st_mtime_nsec == other.st_mtime_nsec
}
