//! Folders that no tool may reach, such as GSV's own state. They are known by their inodes, so that links and other names of
//! them are refused too. Does not know why a folder is private.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat};

use super::DIR_FLAGS;

/// Device and inode.
pub(crate) type FileId = (u64, u64);

fn id_of(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

#[allow(
    clippy::unnecessary_cast,
    clippy::useless_conversion,
    reason = "the types differ between systems"
)]
fn id_of_stat(stat: &Stat) -> FileId {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Whether a file that has several names has one of them in a private folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    No,
    Yes,
    /// The private folders have too many entries, or some can't be read.
    Unclear,
}

/// The files of the private folders that have more than one name.
#[derive(Debug, Default)]
pub(crate) struct LinkedFiles {
    ids: HashSet<FileId>,
    /// Not all entries were seen.
    is_partial: bool,
}

impl LinkedFiles {
    /// For a file with more than one name.
    pub(crate) fn holds(&self, stat: &Stat) -> Held {
        if self.ids.contains(&id_of_stat(stat)) {
            Held::Yes
        } else if self.is_partial {
            Held::Unclear
        } else {
            Held::No
        }
    }
}

/// The private folders. They may be renamed, so their first inodes are kept; and made later, so each check looks again.
#[derive(Debug, Default, Clone)]
pub(crate) struct Private {
    folders: Vec<PathBuf>,
    first: Vec<FileId>,
    /// How many of their entries are compared with a file that has several names.
    entries: usize,
}

impl Private {
    pub(crate) fn new(folders: Vec<PathBuf>, entries: usize) -> Self {
        let mut private = Self {
            folders,
            first: Vec::new(),
            entries,
        };
        private.first = private.ids();
        private
    }

    pub(crate) fn ids(&self) -> Vec<FileId> {
        let now = self.folders.iter().filter_map(|folder| folder.metadata().ok());
        let now = now.map(|found| id_of(&found));
        self.first.iter().copied().chain(now).collect()
    }

    /// Whether a directory is private or lies in a private folder. A directory whose parents can't be opened counts as private.
    pub(crate) fn holds_dir(&self, dir: &OwnedFd) -> bool {
        let ids = self.ids();
        !ids.is_empty() && has_ancestor(dir, &ids).unwrap_or(true)
    }

    /// Whether a file has another name in a private folder.
    pub(crate) fn holds_file(&self, stat: &Stat) -> Held {
        if stat.st_nlink <= 1 {
            return Held::No;
        }
        self.linked_files().holds(stat)
    }

    /// Entries that can't be seen leave the answer open.
    pub(crate) fn linked_files(&self) -> LinkedFiles {
        let mut linked = LinkedFiles::default();
        let mut left = self.folders.clone();
        let mut seen = 0;
        while let Some(folder) = left.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    linked.is_partial |= hides(&error);
                    continue;
                }
            };
            for entry in entries {
                seen += 1;
                if seen > self.entries {
                    linked.is_partial = true;
                    return linked;
                }
                match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                    Ok((path, found)) if found.is_dir() => left.push(path),
                    Ok((_, found)) if found.nlink() > 1 => {
                        linked.ids.insert(id_of(&found));
                    }
                    Ok(_) => {}
                    Err(error) => linked.is_partial |= hides(&error),
                }
            }
        }
        linked
    }
}

/// Whether there may be something that this error keeps from being seen. What was deleted meanwhile is not there.
fn hides(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::NotFound
}

/// Whether the directory itself or one above it is among `ids`.
fn has_ancestor(dir: &OwnedFd, ids: &[FileId]) -> rustix::io::Result<bool> {
    let mut here = dir.as_fd().try_clone_to_owned().map_err(|_| rustix::io::Errno::MFILE)?;
    let mut id = id_of_stat(&rustix::fs::fstat(&here)?);
    loop {
        if ids.contains(&id) {
            return Ok(true);
        }
        let above = rustix::fs::openat(&here, "..", DIR_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        let above_id = id_of_stat(&rustix::fs::fstat(&above)?);
        if above_id == id {
            return Ok(false);
        }
        (here, id) = (above, above_id);
    }
}

/// Whether one of two folders lies in the other, or both are the same. `workspace` must exist; `folder` may be made later.
pub fn overlaps(workspace: &Path, folder: &Path) -> io::Result<bool> {
    let open = |path: &Path| rustix::fs::open(path, DIR_FLAGS, Mode::empty());
    let workspace_id = id_of(&workspace.metadata()?);
    // A folder that does not exist lies where its nearest existing parent lies.
    let existing = folder.ancestors().find(|path| path.is_dir());
    if let Some(existing) = existing
        && has_ancestor(&open(existing)?, &[workspace_id])?
    {
        return Ok(true);
    }
    let Ok(found) = folder.metadata() else {
        return Ok(false);
    };
    Ok(has_ancestor(&open(workspace)?, &[id_of(&found)])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_only_a_file_with_several_names_is_compared_and_only_with_such_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("own")).unwrap();
        for name in ["own/one", "own/linked", "plain", "plain-linked"] {
            std::fs::write(path(name), "x").unwrap();
        }
        std::fs::hard_link(path("own/linked"), path("other")).unwrap();
        std::fs::hard_link(path("plain-linked"), path("plain-other")).unwrap();
        let held = |entries: usize| {
            let private = Private::new(vec![path("own"), path("missing")], entries);
            let names = ["plain", "plain-linked", "other"];
            (
                private.linked_files().ids.len(),
                names.map(|name| private.holds_file(&rustix::fs::stat(path(name)).unwrap())),
            )
        };
        assert_eq!(held(2), (1, [Held::No, Held::No, Held::Yes]));
        let (_, [plain, linked, _]) = held(1);
        assert_eq!((plain, linked), (Held::No, Held::Unclear), "not all entries were seen");
    }

    #[test]
    fn f19_what_was_deleted_meanwhile_hides_nothing() {
        assert!(!hides(&io::ErrorKind::NotFound.into()));
        assert!(hides(&io::ErrorKind::PermissionDenied.into()));
    }
}
