//! The only module that opens paths from callers. Every open stays beneath one directory. The check is part of the open, so
//! that a symlink that is swapped in at the last moment does not lead outside.
//!
//! Linux resolves paths with `openat2`. A walk by component, in which the kernel follows no link, is used on macOS, on old
//! kernels, and for valid paths that `openat2` refuses (absolute symlinks that lead back inside).
//! Never: opens devices, fifos or sockets; trusts a path twice.

mod git;
mod open;
mod partial;
mod path;
mod private;
mod walk;
mod write;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gsv_sandbox::{Remembered, homes_of_user};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub use open::Opened;
pub(crate) use open::WalkOpener;
pub use partial::{GoesOn, Partial};
pub use path::RelPath;
pub(crate) use private::FileId;
pub use private::overlaps;
use private::{Held, LinkedFiles, Private};
pub use write::{BeforeChange, Target};
pub(crate) use write::{Content, mode_of};

use crate::error::{ToolError, quote};

/// How far paths may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Beneath the workspace only.
    Workspace,
    /// Anywhere on the machine; relative paths still start at the workspace.
    Anywhere,
}

/// How paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// `openat2` where the system has it, else the walk.
    Auto,
    /// The walk, always.
    Walk,
}

/// A directory that paths are resolved beneath.
#[derive(Debug)]
pub struct Beneath {
    root: OwnedFd,
    /// `/` for [`Scope::Anywhere`], else the workspace; canonical.
    root_path: PathBuf,
    workspace: PathBuf,
    /// The workspace as the user named it, when that is another name than the canonical one.
    alias: Option<PathBuf>,
    scope: Scope,
    private: Private,
    /// Further folders of the owner that commands may write: the configurations of git in them count, too.
    roots: Vec<PathBuf>,
    /// Homes of the user, as the sandbox has them: what their settings name is not changed.
    homes: Vec<PathBuf>,
    /// What the search for such settings has seen before.
    searched: Remembered,
    walk_only: AtomicBool,
}

/// A name in a directory that is known to lie beneath the root. `stat` is of the name itself, links not followed.
pub(crate) struct Spot {
    pub(crate) dir: OwnedFd,
    pub(crate) name: OsString,
    pub(crate) stat: Option<Stat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    MustExist,
    Create,
}

pub(crate) const DIR_FLAGS: OFlags = if cfg!(target_os = "linux") {
    OFlags::from_bits_retain(PATH_FLAG.bits() | OFlags::DIRECTORY.bits() | OFlags::CLOEXEC.bits())
} else {
    OFlags::from_bits_retain(OFlags::DIRECTORY.bits() | OFlags::CLOEXEC.bits())
};

#[cfg(target_os = "linux")]
const PATH_FLAG: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_FLAG: OFlags = OFlags::empty();

impl Beneath {
    /// Opens the workspace, which must be an existing directory.
    pub fn new(workspace: &Path, scope: Scope, resolver: Resolver) -> io::Result<Self> {
        let canonical = workspace.canonicalize()?;
        let absolute = std::path::absolute(workspace)?;
        let alias = (absolute != canonical).then_some(absolute);
        let root_path = if scope == Scope::Anywhere {
            PathBuf::from("/")
        } else {
            canonical.clone()
        };
        let check = |path: &Path| rustix::fs::open(path, DIR_FLAGS, Mode::empty());
        check(&canonical)?;
        let root = check(&root_path)?;
        let walk_only = AtomicBool::new(resolver == Resolver::Walk || cfg!(not(target_os = "linux")));
        Ok(Self {
            root,
            root_path,
            workspace: canonical,
            alias,
            scope,
            private: Private::default(),
            roots: Vec::new(),
            homes: homes_of_user(std::env::home_dir())
                .iter()
                .filter_map(|home| home.canonicalize().ok())
                .collect(),
            searched: Remembered::default(),
            walk_only,
        })
    }

    /// Refuses these folders and everything in them. `entries`: how many of theirs are compared with a file that has several names.
    #[must_use]
    pub fn without(mut self, private: Vec<PathBuf>, entries: usize) -> Self {
        self.private = Private::new(private, entries);
        self
    }

    /// Folders besides the workspace that commands may write, without links.
    #[must_use]
    pub fn with_roots(mut self, roots: Vec<PathBuf>) -> Self {
        self.roots = roots;
        self
    }

    /// The workspace's canonical path.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The names of the workspace in absolute paths, where no other folder is used.
    pub fn only_folder(&self) -> Option<Vec<&Path>> {
        let names = || [Some(&self.workspace), self.alias.as_ref()];
        (self.scope == Scope::Workspace).then(|| names().into_iter().flatten().map(PathBuf::as_path).collect())
    }

    /// Opens a directory (for searching it, or for running a command there).
    pub fn open_dir(&self, rel: &RelPath) -> Result<OwnedFd, ToolError> {
        let dir = self.open_any_dir(rel)?;
        self.require_public(rel, &dir)?;
        Ok(dir)
    }

    /// Refuses a directory of a private folder.
    fn require_public(&self, rel: &RelPath, dir: &OwnedFd) -> Result<(), ToolError> {
        if self.private.holds_dir(dir) {
            return Err(self.private_error(rel));
        }
        Ok(())
    }

    /// Where paths may leave the workspace, they do so only by name: who judges a call by its path must see that what it reads is outside.
    pub(crate) fn require_given(&self, rel: &RelPath, dir: &OwnedFd) -> Result<(), ToolError> {
        if self.scope == Scope::Workspace || !self.root_path.join(rel.joined()).starts_with(&self.workspace) {
            return Ok(());
        }
        let actual = self.real_path(dir, rel);
        if actual.starts_with(&self.workspace) {
            return Ok(());
        }
        Err(ToolError::ThroughLink {
            path: quote(&self.show(rel)),
            real: quote(&actual.to_string_lossy()),
        })
    }

    /// Refuses a file that has another name in a private folder, or may have one.
    fn require_unlinked(&self, rel: &RelPath, stat: &Stat) -> Result<(), ToolError> {
        match self.private.holds_file(stat) {
            Held::No => Ok(()),
            Held::Yes => Err(self.private_error(rel)),
            Held::Unclear => Err(ToolError::ManyNames {
                path: quote(&self.show(rel)),
            }),
        }
    }

    fn private_error(&self, rel: &RelPath) -> ToolError {
        ToolError::PrivateFolder {
            path: quote(&self.show(rel)),
        }
    }

    /// The inodes of private folders, for walks.
    pub(crate) fn private_ids(&self) -> Vec<FileId> {
        self.private.ids()
    }

    fn open_any_dir(&self, rel: &RelPath) -> Result<OwnedFd, ToolError> {
        if let Some(result) = self.openat2(&rel.joined(), DIR_FLAGS) {
            match result {
                Err(Errno::XDEV) => {}
                other => return other.map_err(|errno| self.error(rel, errno)),
            }
        }
        walk::directory(self, rel).map_err(|fault| fault.describe(self, rel))
    }

    /// The path of an open directory as the system knows it now; for messages and for `chdir`, never to open files.
    pub(crate) fn real_path(&self, dir: &OwnedFd, rel: &RelPath) -> PathBuf {
        fd_path(dir)
            .and_then(|path| std::fs::read_link(path).ok())
            .unwrap_or_else(|| self.root_path.join(rel.joined()))
    }

    pub(crate) fn locate(&self, rel: &RelPath, links: Links, parents: Parents) -> Result<Spot, ToolError> {
        let spot = self.locate_any(rel, links, parents)?;
        self.require_public(rel, &spot.dir)?;
        Ok(spot)
    }

    fn locate_any(&self, rel: &RelPath, links: Links, parents: Parents) -> Result<Spot, ToolError> {
        let Some((parent, name)) = rel.split_last() else {
            return Err(ToolError::NotAFile {
                path: quote(&self.show(rel)),
                kind: "a directory",
            });
        };
        if rel.needs_dir() {
            return Err(ToolError::NotAFile {
                path: quote(&self.show(rel)),
                kind: "written as a directory",
            });
        }
        if let Some(result) = self.openat2(&parent, DIR_FLAGS) {
            match result {
                Ok(dir) => {
                    let stat = stat_name(&dir, name).map_err(|errno| self.error(rel, errno))?;
                    let is_link = stat.as_ref().is_some_and(|stat| kind_of(stat) == FileType::Symlink);
                    if !(is_link && links == Links::Follow) {
                        return Ok(Spot {
                            dir,
                            name: name.to_owned(),
                            stat,
                        });
                    }
                }
                Err(Errno::XDEV) => {}
                Err(Errno::NOENT) if parents == Parents::Create => {}
                Err(errno) => return Err(self.error(rel, errno)),
            }
        }
        walk::spot(self, rel, links, parents).map_err(|fault| fault.describe(self, rel))
    }

    /// `None` when the system has no `openat2`.
    #[cfg(target_os = "linux")]
    fn openat2(&self, rel: &Path, flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
        use rustix::fs::ResolveFlags;
        if self.walk_only.load(Ordering::Relaxed) {
            return None;
        }
        let confine = if self.scope == Scope::Anywhere {
            ResolveFlags::IN_ROOT
        } else {
            ResolveFlags::BENEATH
        };
        let rel = if rel.as_os_str().is_empty() {
            Path::new(".")
        } else {
            rel
        };
        // EAGAIN: something was renamed while the kernel looked. After several tries the walk resolves it.
        for _ in 0..16 {
            match rustix::fs::openat2(
                &self.root,
                rel,
                flags,
                Mode::empty(),
                confine | ResolveFlags::NO_MAGICLINKS,
            ) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => {
                    self.walk_only.store(true, Ordering::Relaxed);
                    return None;
                }
                other => return Some(other),
            }
        }
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn openat2(&self, _rel: &Path, _flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
        debug_assert!(self.walk_only.load(Ordering::Relaxed));
        None
    }

    fn error(&self, rel: &RelPath, errno: Errno) -> ToolError {
        let path = quote(&self.show(rel));
        match errno {
            Errno::NOENT | Errno::NOTDIR => ToolError::NotFound { path },
            Errno::XDEV => ToolError::OutsideWorkspace { path },
            Errno::LOOP => ToolError::InvalidPath {
                path,
                problem: "its links form a loop, or are links of procfs".into(),
            },
            Errno::NAMETOOLONG => ToolError::InvalidPath {
                path,
                problem: "a name in it is too long".into(),
            },
            Errno::INVAL | Errno::ILSEQ => ToolError::InvalidPath {
                path,
                problem: "the file system refuses it".into(),
            },
            other => ToolError::io(format!("open {path}"), other),
        }
    }
}

pub(crate) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode)
}

pub(crate) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symlink",
        _ => "something else",
    }
}

pub(crate) fn stat_name(dir: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A path of an open directory that stays valid when the directory is renamed. `None` where the system has none.
pub(crate) fn fd_path(dir: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
    path.symlink_metadata().is_ok().then_some(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_walk_is_used_when_it_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        for (resolver, is_asked) in [(Resolver::Auto, true), (Resolver::Walk, false)] {
            let files = Beneath::new(dir.path(), Scope::Workspace, resolver).unwrap();
            assert_eq!(files.openat2(Path::new(""), DIR_FLAGS).is_some(), is_asked);
        }
    }

    /// So that absolute links need no walk.
    #[test]
    fn the_kernel_follows_absolute_links_where_paths_may_lead_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        for (scope, is_followed) in [(Scope::Anywhere, true), (Scope::Workspace, false)] {
            let files = Beneath::new(dir.path(), scope, Resolver::Auto).unwrap();
            let link = files.parse("link").unwrap().joined();
            assert_eq!(files.openat2(&link, DIR_FLAGS).unwrap().is_ok(), is_followed);
        }
    }
}
