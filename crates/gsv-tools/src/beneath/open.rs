//! Opens regular files for reading.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Beneath, Held, LinkedFiles, Links, Parents, RelPath, kind_name, kind_of};
use crate::error::{ToolError, quote};

const READ_FLAGS: OFlags = OFlags::from_bits_retain(
    OFlags::RDONLY.bits()
        | OFlags::NOFOLLOW.bits()
        | OFlags::NONBLOCK.bits()
        | OFlags::CLOEXEC.bits()
        | OFlags::NOCTTY.bits(),
);

/// A regular file, open for reading.
pub struct Opened {
    pub file: File,
    pub stat: Stat,
}

impl Opened {
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

impl Beneath {
    /// Opens a regular file. Its kind is checked before the open, because opening a device or fifo can have effects, and
    /// again after it, because the name may have been swapped.
    pub fn open_file(&self, rel: &RelPath) -> Result<Opened, ToolError> {
        for _ in 0..8 {
            let spot = self.locate(rel, Links::Follow, Parents::MustExist)?;
            let Some(stat) = &spot.stat else {
                return Err(ToolError::NotFound {
                    path: quote(&self.show(rel)),
                });
            };
            self.require_regular(rel, kind_of(stat))?;
            self.require_given(rel, &spot.dir)?;
            match rustix::fs::openat(&spot.dir, &spot.name, READ_FLAGS, Mode::empty()) {
                Ok(fd) => return self.checked(rel, fd),
                // It became a link, or was removed, between the two checks.
                Err(Errno::LOOP | Errno::MLINK | Errno::NXIO) => {}
                Err(errno) => return Err(self.error(rel, errno)),
            }
        }
        Err(ToolError::Changed {
            path: quote(&self.show(rel)),
        })
    }

    /// What was opened, when it is a file that may be read.
    fn checked(&self, rel: &RelPath, fd: OwnedFd) -> Result<Opened, ToolError> {
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.error(rel, errno))?;
        self.require_regular(rel, kind_of(&stat))?;
        self.require_unlinked(rel, &stat)?;
        Ok(Opened {
            file: File::from(fd),
            stat,
        })
    }

    pub(crate) fn require_regular(&self, rel: &RelPath, kind: FileType) -> Result<(), ToolError> {
        if kind == FileType::RegularFile {
            return Ok(());
        }
        Err(ToolError::NotAFile {
            path: quote(&self.show(rel)),
            kind: kind_name(kind),
        })
    }
}

/// Opens the files that a directory walk found, with one system call each where the system has `openat2`. The walk follows no
/// link, so a link on the path means that a name was swapped, and the file is left out.
pub(crate) struct WalkOpener<'a> {
    beneath: &'a Beneath,
    by_walk: bool,
    base: &'a OwnedFd,
    /// The directory of the last file, for systems where resolving its path costs several calls.
    last: Option<(std::path::PathBuf, OwnedFd)>,
    /// Files of private folders that have more than one name; read when the walk meets such a file.
    private_files: Option<LinkedFiles>,
    /// Files that were left out because they may have another name in a private folder.
    pub(crate) unclear: usize,
}

impl<'a> WalkOpener<'a> {
    pub(crate) fn new(beneath: &'a Beneath, base: &'a OwnedFd) -> Self {
        let by_walk = beneath.walk_only.load(std::sync::atomic::Ordering::Relaxed);
        Self {
            beneath,
            by_walk,
            base,
            last: None,
            private_files: None,
            unclear: 0,
        }
    }

    /// `path` is relative to the base directory.
    pub(crate) fn open(&mut self, path: &Path) -> Option<Opened> {
        let fd = self.open_fd(path)?;
        let stat = rustix::fs::fstat(&fd).ok()?;
        if stat.st_nlink > 1 {
            let private = self
                .private_files
                .get_or_insert_with(|| self.beneath.private.linked_files());
            match private.holds(&stat) {
                Held::No => {}
                Held::Yes => return None,
                Held::Unclear => {
                    self.unclear += 1;
                    return None;
                }
            }
        }
        (kind_of(&stat) == FileType::RegularFile).then(|| Opened {
            file: File::from(fd),
            stat,
        })
    }

    /// Whether the path names a regular file and has no link in it.
    pub(crate) fn exists(&mut self, path: &Path) -> bool {
        let Some((dir, name)) = self.parent(path) else {
            return false;
        };
        matches!(super::stat_name(dir, name), Ok(Some(stat)) if kind_of(&stat) == FileType::RegularFile)
    }

    fn open_fd(&mut self, path: &Path) -> Option<OwnedFd> {
        if self.by_walk {
            self.open_by_walk(path)
        } else {
            self.open_at_once(path)
        }
    }

    #[cfg(target_os = "linux")]
    fn open_at_once(&mut self, path: &Path) -> Option<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..16 {
            match rustix::fs::openat2(self.base, path, READ_FLAGS, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => return self.open_by_walk(path),
                other => return other.ok(),
            }
        }
        self.open_by_walk(path)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_at_once(&mut self, path: &Path) -> Option<OwnedFd> {
        self.open_by_walk(path)
    }

    fn open_by_walk(&mut self, path: &Path) -> Option<OwnedFd> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::openat(dir, name, READ_FLAGS, Mode::empty()).ok()
    }

    fn parent<'p>(&mut self, path: &'p Path) -> Option<(&OwnedFd, &'p std::ffi::OsStr)> {
        let parent = path.parent()?;
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            self.last = Some((parent.to_path_buf(), self.enter(parent)?));
        }
        Some((&self.last.as_ref()?.1, path.file_name()?))
    }

    fn enter(&self, parent: &Path) -> Option<OwnedFd> {
        let mut dir = self.base.try_clone().ok()?;
        for part in parent.components() {
            dir = rustix::fs::openat(
                &dir,
                part.as_os_str(),
                super::DIR_FLAGS | OFlags::NOFOLLOW,
                Mode::empty(),
            )
            .ok()?;
        }
        Some(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::{Resolver, Scope};

    #[test]
    fn s11_what_was_swapped_for_something_else_before_the_open_is_refused_after_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "x").unwrap();
        let files = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        let rel = files.parse("f").unwrap();
        let opened = |path: &Path| files.checked(&rel, OwnedFd::from(File::open(path).unwrap()));
        assert_eq!(opened(&dir.path().join("f")).map(|opened| opened.size()).unwrap(), 1);
        for path in [dir.path(), Path::new("/dev/null")] {
            assert!(matches!(opened(path), Err(ToolError::NotAFile { .. })));
        }
    }

    #[test]
    fn a_search_opens_files_as_the_resolver_says() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/f"), "x").unwrap();
        for (resolver, by_walk) in [(Resolver::Walk, true), (Resolver::Auto, cfg!(not(target_os = "linux")))] {
            let files = Beneath::new(dir.path(), Scope::Workspace, resolver).unwrap();
            let mut opener = WalkOpener::new(&files, &files.root);
            assert!(opener.open(Path::new("d/f")).is_some());
            assert_eq!(opener.last.is_some(), by_walk);
        }
    }
}
