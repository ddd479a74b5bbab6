//! Writes and removes files. A file is replaced as a whole or not at all, and only if it is still the expected file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

#[cfg(not(target_vendor = "apple"))]
use super::fd_path;
use super::{Beneath, Links, Parents, RelPath, Scope, Spot, kind_name, kind_of, stat_name};
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
        self.require_named(rel, &spot)?;
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

    /// A link must not turn the change of an ordinary file into that of a file which other programs run, such as a git hook, or of one
    /// outside the workspace: who allowed it has seen the path as it was given. Names of such files and folders begin with a dot.
    fn require_named(&self, rel: &RelPath, spot: &Spot) -> Result<(), ToolError> {
        let given = self.root_path.join(rel.joined());
        let parent = given.parent().unwrap_or(&given);
        let actual = path_now(&spot.dir).unwrap_or_else(|| parent.to_owned());
        // The workspace may have been moved since the node has started.
        let moved = path_now(&self.root).filter(|_| self.scope == Scope::Workspace);
        let workspace = moved.unwrap_or_else(|| self.workspace.clone());
        let below = actual.strip_prefix(&workspace).ok();
        let is_given = |name: &OsStr| rel.parts().iter().any(|part| part.eq_ignore_ascii_case(name));
        let mut names = below
            .unwrap_or(&actual)
            .components()
            .map(Component::as_os_str)
            .chain([spot.name.as_os_str()]);
        let is_hidden = names.any(|name| name.as_bytes().starts_with(b".") && !is_given(name));
        let leaves = below.is_none() && given.starts_with(&self.workspace);
        if !is_hidden && !leaves {
            return Ok(());
        }
        Err(ToolError::ThroughLink {
            path: quote(&self.show(rel)),
            real: quote(&actual.join(&spot.name).to_string_lossy()),
        })
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
        self.require_named(rel, &spot)?;
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

/// Where an open directory is, without links.
fn path_now(dir: &OwnedFd) -> Option<PathBuf> {
    #[cfg(target_vendor = "apple")]
    let path = rustix::fs::getpath(dir)
        .ok()
        .map(|path| PathBuf::from(OsStr::from_bytes(path.as_bytes())));
    #[cfg(not(target_vendor = "apple"))]
    let path = fd_path(dir).and_then(|path| std::fs::read_link(path).ok());
    path
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
