//! Resolves a path one component at a time, each opened with `O_NOFOLLOW` from its parent's descriptor. Symlinks are read and
//! their targets walked like any path; `..` in a target returns to a descriptor that was entered before. The kernel follows
//! no link, so a swapped link can at most make the walk fail.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Beneath, DIR_FLAGS, Links, Parents, RelPath, Scope, Spot, kind_of, stat_name};
use crate::error::{ToolError, quote};
use crate::limits;

pub(super) enum Fault {
    Outside,
    Directory,
    Private,
    Os(Errno),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

impl Fault {
    pub(super) fn describe(self, beneath: &Beneath, rel: &RelPath) -> ToolError {
        match self {
            Self::Outside => ToolError::OutsideWorkspace {
                path: quote(&beneath.show(rel)),
            },
            Self::Directory => ToolError::NotAFile {
                path: quote(&beneath.show(rel)),
                kind: "a directory",
            },
            Self::Private => beneath.private_error(rel),
            Self::Os(errno) => beneath.error(rel, errno),
        }
    }
}

struct Walk<'a> {
    beneath: &'a Beneath,
    /// Descriptors entered, the root not included.
    stack: Vec<OwnedFd>,
    left: VecDeque<OsString>,
    links: usize,
    steps: usize,
}

impl<'a> Walk<'a> {
    fn new(beneath: &'a Beneath, rel: &RelPath) -> Self {
        Self {
            beneath,
            stack: Vec::new(),
            left: rel.parts().iter().cloned().collect(),
            links: 0,
            steps: 0,
        }
    }

    fn here(&self) -> &OwnedFd {
        self.stack.last().unwrap_or(&self.beneath.root)
    }

    /// Puts a link's target before the remaining components.
    fn follow(&mut self, name: &OsString) -> Result<(), Fault> {
        self.links += 1;
        if self.links > limits::SYMLINKS {
            return Err(Errno::LOOP.into());
        }
        let target = PathBuf::from(OsString::from_vec(
            rustix::fs::readlinkat(self.here(), name, Vec::new())?.into_bytes(),
        ));
        if is_magic(self.here(), &target) {
            return Err(Errno::LOOP.into());
        }
        let target = if target.is_absolute() {
            let inside = self.beneath.inside(&target).ok_or(Fault::Outside)?;
            self.stack.clear();
            inside
        } else {
            target
        };
        for part in target.components().rev() {
            match part {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn climb(&mut self) -> Result<(), Fault> {
        if self.stack.pop().is_none() && self.beneath.scope == Scope::Workspace {
            return Err(Fault::Outside);
        }
        Ok(())
    }

    /// Takes the next component; `..` is resolved here. `None` at the end.
    fn next(&mut self) -> Result<Option<OsString>, Fault> {
        loop {
            self.steps += 1;
            if self.steps > limits::PATH_BYTES {
                return Err(Errno::LOOP.into());
            }
            match self.left.pop_front() {
                Some(part) if part == ".." => self.climb()?,
                other => return Ok(other),
            }
        }
    }

    fn enter(&mut self, name: &OsString) -> Result<(), Fault> {
        let dir = rustix::fs::openat(self.here(), name, DIR_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        self.stack.push(dir);
        Ok(())
    }

    fn into_dir(mut self) -> Result<OwnedFd, Fault> {
        match self.stack.pop() {
            Some(dir) => Ok(dir),
            None => Ok(self
                .beneath
                .root
                .as_fd()
                .try_clone_to_owned()
                .map_err(|_| Errno::MFILE)?),
        }
    }
}

/// Links of procfs that lead to an object, not to a name: their text is absolute or like `pipe:[1]`.
fn is_magic(dir: &OwnedFd, target: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        let on_proc = rustix::fs::fstatfs(dir).is_ok_and(|fs| fs.f_type == rustix::fs::PROC_SUPER_MAGIC);
        on_proc && (target.is_absolute() || target.to_string_lossy().contains(':'))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (dir, target);
        false
    }
}

pub(super) fn directory(beneath: &Beneath, rel: &RelPath) -> Result<OwnedFd, Fault> {
    let mut walk = Walk::new(beneath, rel);
    while let Some(name) = walk.next()? {
        let stat = stat_name(walk.here(), &name)?.ok_or(Errno::NOENT)?;
        if kind_of(&stat) == FileType::Symlink {
            walk.follow(&name)?;
        } else {
            walk.enter(&name)?;
        }
    }
    walk.into_dir()
}

pub(super) fn spot(beneath: &Beneath, rel: &RelPath, links: Links, parents: Parents) -> Result<Spot, Fault> {
    let mut walk = Walk::new(beneath, rel);
    while let Some(name) = walk.next()? {
        let stat = stat_name(walk.here(), &name)?;
        let is_last = walk.left.is_empty();
        match stat.as_ref().map(kind_of) {
            Some(FileType::Symlink) if !is_last || links == Links::Follow => walk.follow(&name)?,
            _ if is_last => {
                return Ok(Spot {
                    dir: walk.into_dir()?,
                    name,
                    stat,
                });
            }
            None if parents == Parents::Create => {
                if beneath.private.holds_dir(walk.here()) {
                    return Err(Fault::Private);
                }
                match rustix::fs::mkdirat(walk.here(), &name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => walk.enter(&name)?,
                    Err(errno) => return Err(errno.into()),
                }
            }
            None => return Err(Errno::NOENT.into()),
            Some(_) => walk.enter(&name)?,
        }
    }
    // A link's target was `..`, `.` or the root itself.
    Err(Fault::Directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::beneath::Resolver;

    #[test]
    fn s11_a_path_may_have_40_links() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: String| dir.path().join(name);
        std::fs::write(dir.path().join("0"), "x").unwrap();
        for at in 1..=41 {
            symlink((at - 1).to_string(), path(at.to_string())).unwrap();
        }
        let files = Beneath::new(dir.path(), Scope::Workspace, Resolver::Walk).unwrap();
        let open = |name: &str| files.open_file(&files.parse(name).unwrap());
        assert!(open("40").is_ok());
        assert_eq!(open("41").map(drop).unwrap_err().reason(), "path.invalid");
    }

    #[test]
    fn th16_links_with_thousands_of_parts_are_not_followed_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("0"), "x").unwrap();
        for at in 1..=4 {
            let target = "d/../".repeat(682) + &(at - 1).to_string();
            symlink(target, dir.path().join(at.to_string())).unwrap();
        }
        let files = Beneath::new(dir.path(), Scope::Workspace, Resolver::Walk).unwrap();
        let open = |name: &str| files.open_file(&files.parse(name).unwrap());
        // Each link has 1364 parts before the next name: with three of them that makes 4096.
        assert!(open("3").is_ok());
        assert_eq!(open("4").map(drop).unwrap_err().reason(), "path.invalid");
    }
}
