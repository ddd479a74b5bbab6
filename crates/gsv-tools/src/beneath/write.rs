//! Writes and removes files. A file is replaced as a whole or not at all, and only if it is still the expected file.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, PathBuf};

use gsv_sandbox::is_run_by_others;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

#[cfg(not(target_vendor = "apple"))]
use super::fd_path;
use super::{Beneath, DIR_FLAGS, Held, Links, Parents, RelPath, Scope, Spot, git, kind_name, kind_of, stat_name};
use crate::error::{ToolError, quote};

/// The name that a change is about, as it is right before the change.
pub struct Target<'a> {
    dir: &'a OwnedFd,
    name: &'a OsStr,
    /// `None`: there is no such file.
    pub(crate) stat: Option<&'a Stat>,
    /// Absolute, without links.
    pub(crate) path: PathBuf,
}

impl Target<'_> {
    /// Only for a regular file.
    pub(crate) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.dir, self.name, flags, Mode::empty())?;
        Ok(File::from(fd))
    }

    /// Whether an open file is the one that was looked at, unchanged.
    pub(crate) fn is_seen(&self, file: &File) -> io::Result<bool> {
        let now = rustix::fs::fstat(file)?;
        Ok(self.stat.is_some_and(|seen| is_same(&now, seen)))
    }

    /// The target of a symlink, when it is text.
    pub(crate) fn read_link(&self) -> Option<String> {
        let target = rustix::fs::readlinkat(self.dir, self.name, Vec::new()).ok()?;
        target.into_string().ok()
    }
}

/// Called before a change; when it fails, nothing is changed.
pub type BeforeChange<'a> = &'a mut dyn FnMut(&Target<'_>) -> Result<(), ToolError>;

/// The content that an undo restores under a name.
pub(crate) enum Content {
    File { from: File, mode: u32 },
    Link { target: String },
    Nothing,
}

impl Beneath {
    pub(crate) fn target<'a>(&self, rel: &RelPath, spot: &'a Spot) -> Target<'a> {
        let folder = rel.split_last().map_or_else(PathBuf::new, |(parent, _)| parent);
        let folder = path_now(&spot.dir).unwrap_or_else(|| self.root_path.join(folder));
        Target {
            dir: &spot.dir,
            name: &spot.name,
            stat: spot.stat.as_ref(),
            path: folder.join(&spot.name),
        }
    }

    /// Whether a file is not, and has no other name, in a private folder.
    pub(crate) fn is_public_file(&self, stat: &Stat) -> bool {
        self.private.holds_file(stat) == Held::No
    }

    /// Whether the folder of a path is reached without following a link; `None`: as far as there are folders.
    pub(crate) fn is_without_links(&self, rel: &RelPath, spot: Option<&Spot>) -> bool {
        let Ok(mut here) = self.root.try_clone() else {
            return false;
        };
        let folders = rel.parts().len().saturating_sub(1);
        for name in rel.parts().iter().take(folders) {
            here = match rustix::fs::openat(&here, name, DIR_FLAGS | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => return spot.is_none(),
                Err(_) => return false,
            };
        }
        let Some(spot) = spot else {
            return true;
        };
        let id = |folder: &OwnedFd| rustix::fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino));
        matches!((id(&here), id(&spot.dir)), (Ok(one), Ok(other)) if one == other)
    }

    /// Replaces or creates a file: temporary file beside it, fsync, rename, fsync of the directory. An existing file keeps its
    /// mode; a symlink is written through when it stays beneath the root. `expected` is the state that the new content
    /// was made from: when the file has changed since, nothing is written.
    pub fn write_file(&self, rel: &RelPath, content: &[u8], expected: Option<&Stat>) -> Result<(), ToolError> {
        self.write_after(rel, content, expected, &mut |_| Ok(()))
    }

    /// As `write_file`, with `before` called when everything else is ready. A file that changes after `before` has seen it is left alone.
    pub fn write_after(
        &self,
        rel: &RelPath,
        content: &[u8],
        expected: Option<&Stat>,
        before: BeforeChange<'_>,
    ) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Follow, Parents::Create)?;
        if let Some(stat) = &spot.stat {
            self.require_regular(rel, kind_of(stat))?;
            rustix::fs::accessat(&spot.dir, &spot.name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|errno| ToolError::io(format!("write {}", quote(&self.show(rel))), errno))?;
        }
        self.require_named(rel, &spot)?;
        self.require_not_run(rel, &spot)?;
        let temp = format!(".gsv-{:016x}.tmp", fastrand::u64(..));
        let mode = spot.stat.as_ref().map(|stat| mode_of(stat) & 0o777);
        let written = self
            .write_temp(&spot, &temp, &mut &*content, mode)
            .and_then(|()| match expected {
                // `before` must see the file that the content was made from.
                Some(expected) => self.require_same(rel, &spot, Some(expected)),
                None => Ok(()),
            })
            .and_then(|()| before(&self.target(rel, &spot)))
            .and_then(|()| self.put(rel, &spot, &temp, spot.stat.as_ref()));
        if written.is_err() {
            // Best effort: the first error is the one that matters.
            let _ = rustix::fs::unlinkat(&spot.dir, temp.as_str(), AtFlags::empty());
        }
        written
    }

    /// A link must not turn the change of an ordinary file into that of a file which other programs run, such as a git hook, or of one
    /// outside the workspace: who allowed it has seen the path as it was given. Names of such files and folders begin with a dot, or git
    /// gives them to its files.
    pub(super) fn require_named(&self, rel: &RelPath, spot: &Spot) -> Result<(), ToolError> {
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
        let is_hidden = names.any(|name| name.as_bytes().starts_with(b".") && !is_given(name))
            || (git::is_setting(&actual, &spot.name)
                && !git::is_setting(parent, given.file_name().unwrap_or_default()));
        let leaves = below.is_none() && given.starts_with(&self.workspace);
        if !is_hidden && !leaves {
            return Ok(());
        }
        Err(ToolError::ThroughLink {
            path: quote(&self.show(rel)),
            real: quote(&actual.join(&spot.name).to_string_lossy()),
        })
    }

    /// No change of what a configuration of git names, because git runs it outside the sandbox: its hooks in another folder, included files,
    /// programs. Only this machine knows the configuration, so no one was asked about such a path as about `.git`.
    pub(super) fn require_not_run(&self, rel: &RelPath, spot: &Spot) -> Result<(), ToolError> {
        let path = self.target(rel, spot).path;
        let root = path_now(&self.root).filter(|_| self.scope == Scope::Workspace);
        let workspace = root.unwrap_or_else(|| self.workspace.clone());
        let mut searched = vec![workspace];
        searched.extend(self.roots.iter().filter(|root| **root != self.workspace).cloned());
        if !searched.iter().any(|root| path.starts_with(root)) {
            return Ok(());
        }
        match is_run_by_others(&searched, &path, &self.homes, &self.searched) {
            Ok(false) => Ok(()),
            Ok(true) => Err(ToolError::RunByOthers {
                path: quote(&self.show(rel)),
            }),
            Err(problem) => Err(ToolError::Failed(problem)),
        }
    }

    /// Gives a name back what it had, when it still is as it was `seen`. Links are not followed, also not in the folders of its path.
    /// `temp`: the name of the temporary file, for this path alone: one that an interrupted call has left there is replaced.
    pub(crate) fn put_back(
        &self,
        rel: &RelPath,
        seen: Option<&Stat>,
        content: Content,
        temp: &str,
    ) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Keep, Parents::Create)?;
        self.require_named(rel, &spot)?;
        if !self.is_without_links(rel, Some(&spot)) {
            return Err(ToolError::Changed {
                path: quote(&self.show(rel)),
            });
        }
        self.require_same(rel, &spot, seen)?;
        let failed = |errno: Errno| ToolError::io(format!("restore {}", quote(&self.show(rel))), errno);
        // Another program may have made a folder of that name.
        let spare = format!(".gsv-{:016x}.tmp", fastrand::u64(..));
        let temp = match rustix::fs::unlinkat(&spot.dir, temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => temp,
            Err(_) => spare.as_str(),
        };
        let written = match content {
            Content::Nothing => match rustix::fs::unlinkat(&spot.dir, &spot.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {
                    sync_dir(&spot.dir);
                    return Ok(());
                }
                Err(errno) => return Err(failed(errno)),
            },
            Content::File { mut from, mode } => self.write_temp(&spot, temp, &mut from, Some(mode)),
            Content::Link { target } => rustix::fs::symlinkat(target.as_str(), &spot.dir, temp).map_err(failed),
        };
        let put = written.and_then(|()| self.put(rel, &spot, temp, seen));
        if put.is_err() {
            let _ = rustix::fs::unlinkat(&spot.dir, temp, AtFlags::empty());
        }
        put
    }

    /// `mode`: `None` leaves it to the system.
    fn write_temp(
        &self,
        spot: &Spot,
        temp: &str,
        content: &mut dyn io::Read,
        mode: Option<u32>,
    ) -> Result<(), ToolError> {
        let failed = |errno: std::io::Error| {
            ToolError::io(
                format!("write a file in {}", quote(&self.workspace.to_string_lossy())),
                errno,
            )
        };
        let first = if mode.is_some() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&spot.dir, temp, flags, Mode::from_raw_mode(first))
            .map_err(|errno| failed(errno.into()))?;
        let mut file = File::from(fd);
        io::copy(content, &mut file).map_err(failed)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, Mode::from_bits_truncate(mode as rustix::fs::RawMode))
                .map_err(|errno| failed(errno.into()))?;
        }
        file.sync_all().map_err(failed)
    }

    /// `None`: there was no such file.
    fn require_same(&self, rel: &RelPath, spot: &Spot, expected: Option<&Stat>) -> Result<(), ToolError> {
        let now = stat_name(&spot.dir, &spot.name).map_err(|errno| self.error(rel, errno))?;
        let is_unchanged = match (&now, expected) {
            (Some(now), Some(expected)) => is_same(now, expected),
            (None, None) => true,
            _ => false,
        };
        if is_unchanged {
            return Ok(());
        }
        Err(ToolError::Changed {
            path: quote(&self.show(rel)),
        })
    }

    pub(super) fn put(&self, rel: &RelPath, spot: &Spot, temp: &str, expected: Option<&Stat>) -> Result<(), ToolError> {
        self.require_same(rel, spot, expected)?;
        rustix::fs::renameat(&spot.dir, temp, &spot.dir, &spot.name).map_err(|errno| self.error(rel, errno))?;
        sync_dir(&spot.dir);
        Ok(())
    }

    /// Removes one regular file or one symlink (the link, never its target).
    pub fn remove_file(&self, rel: &RelPath) -> Result<(), ToolError> {
        self.remove_after(rel, &mut |_| Ok(()))
    }

    /// As `remove_file`, with `before` called right before. A file that changes after `before` has seen it is left alone.
    pub fn remove_after(&self, rel: &RelPath, before: BeforeChange<'_>) -> Result<(), ToolError> {
        let spot = self.locate(rel, Links::Keep, Parents::MustExist)?;
        self.require_named(rel, &spot)?;
        self.require_not_run(rel, &spot)?;
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
        before(&self.target(rel, &spot))?;
        self.require_same(rel, &spot, spot.stat.as_ref())?;
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
        #[cfg(test)]
        tests::SYNCED.set(tests::SYNCED.get() + 1);
    }
}

#[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
pub(crate) fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode as u32
}

pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    one.st_dev == other.st_dev
        && one.st_ino == other.st_ino
        && one.st_size == other.st_size
        && one.st_mtime == other.st_mtime
        && one.st_mtime_nsec == other.st_mtime_nsec
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::io::Write as _;

    use tempfile::TempDir;

    use super::*;
    use crate::beneath::Resolver;

    thread_local! {
        /// Folders that were synced: no later read shows it.
        pub(super) static SYNCED: Cell<usize> = const { Cell::new(0) };
    }

    fn lab() -> (TempDir, Beneath) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        fs::write(dir.path().join("ws/f"), "first").unwrap();
        let files = Beneath::new(&dir.path().join("ws"), Scope::Workspace, Resolver::Auto).unwrap();
        (dir, files)
    }
    fn stat_of(files: &Beneath) -> Stat {
        files.open_file(&files.parse("f").unwrap()).unwrap().stat
    }
    fn content(text: &str) -> Content {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        Content::File {
            from: file,
            mode: 0o600,
        }
    }
    fn is_changed(outcome: &Result<(), ToolError>) -> bool {
        matches!(outcome, Err(ToolError::Changed { .. }))
    }

    #[test]
    fn a_change_is_durable_in_its_folder() {
        let (_dir, files) = lab();
        let rel = files.parse("f").unwrap();
        let synced = |work: &dyn Fn() -> Result<(), ToolError>| {
            SYNCED.set(0);
            work().unwrap();
            SYNCED.get()
        };
        assert_eq!(synced(&|| files.write_file(&rel, b"second", None)), 1);
        let seen = stat_of(&files);
        assert_eq!(synced(&|| files.put_back(&rel, Some(&seen), content("third"), "t")), 1);
        let seen = stat_of(&files);
        assert_eq!(synced(&|| files.put_back(&rel, Some(&seen), Content::Nothing, "t")), 1);
        files.write_file(&rel, b"fourth", None).unwrap();
        assert_eq!(synced(&|| files.remove_file(&rel)), 1);
    }

    #[test]
    fn sb5_what_a_repository_in_a_root_of_the_owner_runs_is_not_changed() {
        let (dir, _) = lab();
        let root = dir.path().canonicalize().unwrap().join("other");
        fs::create_dir_all(root.join("repo/.git")).unwrap();
        fs::write(
            root.join("repo/.git/config"),
            "[core]\n hooksPath = hk\n fsmonitor = ./watch\n",
        )
        .unwrap();
        fs::write(root.join("repo/watch"), "first").unwrap();
        let files = Beneath::new(&dir.path().join("ws"), Scope::Anywhere, Resolver::Auto).unwrap();
        let files = files.with_roots(vec![root.clone()]);
        let write = |name: &str| {
            let rel = files.parse(root.join(name).to_str().unwrap()).unwrap();
            files.write_file(&rel, b"second", None)
        };
        for name in ["repo/watch", "repo/hk/pre-push"] {
            assert!(matches!(write(name), Err(ToolError::RunByOthers { .. })), "{name}");
        }
        write("repo/other").unwrap();
    }

    #[test]
    fn f75_a_file_that_changes_after_it_was_looked_at_is_left_alone() {
        let (dir, files) = lab();
        let (rel, path) = (files.parse("f").unwrap(), dir.path().join("ws/f"));
        let mut other = |_: &Target<'_>| {
            fs::write(&path, "another program's").unwrap();
            Ok(())
        };
        assert!(is_changed(&files.write_after(&rel, b"mine", None, &mut other)));
        fs::write(&path, "first").unwrap();
        assert!(is_changed(&files.remove_after(&rel, &mut other)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "another program's");
    }

    #[test]
    fn un3_what_was_changed_since_it_was_looked_at_is_not_put_back() {
        let (dir, files) = lab();
        let (rel, path) = (files.parse("f").unwrap(), dir.path().join("ws/f"));
        let seen = stat_of(&files);
        fs::write(&path, "the owner's").unwrap();
        assert!(is_changed(&files.put_back(&rel, Some(&seen), Content::Nothing, "t")));
        assert!(is_changed(&files.put_back(&rel, None, content("old"), "t")));
        assert_eq!(fs::read_to_string(&path).unwrap(), "the owner's");
    }

    #[test]
    fn un3_a_file_that_changes_while_its_content_is_copied_is_not_put_back_and_nothing_is_left() {
        let (dir, files) = lab();
        let (rel, path) = (files.parse("f").unwrap(), dir.path().join("ws/f"));
        let seen = stat_of(&files);
        let (from, mut to) = std::io::pipe().unwrap();
        let from = Content::File {
            from: File::from(OwnedFd::from(from)),
            mode: 0o600,
        };
        let put = std::thread::scope(|scope| {
            let put = scope.spawn(|| files.put_back(&rel, Some(&seen), from, "t"));
            // More than the pipe holds: most of it is read when this returns.
            to.write_all(&vec![b'x'; 1 << 20]).unwrap();
            fs::write(&path, "the owner's").unwrap();
            drop(to);
            put.join().unwrap()
        });
        assert!(is_changed(&put));
        assert_eq!(fs::read_to_string(&path).unwrap(), "the owner's");
        assert_eq!(fs::read_dir(dir.path().join("ws")).unwrap().count(), 1);
    }

    #[test]
    fn un3_a_link_to_another_folder_is_named_when_something_is_put_back_through_it() {
        let (dir, files) = lab();
        fs::create_dir(dir.path().join("ws/.hidden")).unwrap();
        std::os::unix::fs::symlink(".hidden", dir.path().join("ws/link")).unwrap();
        let rel = files.parse("link/f").unwrap();
        let error = files.put_back(&rel, None, content("x"), "t").unwrap_err();
        assert!(matches!(error, ToolError::ThroughLink { .. }), "{error}");
    }

    #[test]
    fn a_workspace_that_was_moved_is_written_to() {
        let (dir, files) = lab();
        fs::rename(dir.path().join("ws"), dir.path().join("moved")).unwrap();
        files.write_file(&files.parse("f").unwrap(), b"new", None).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("moved/f")).unwrap(), "new");
    }

    #[test]
    fn each_part_of_a_files_state_counts() {
        let (_dir, files) = lab();
        let one = stat_of(&files);
        assert!(is_same(&one, &one));
        let changes: [fn(&mut Stat); 5] = [
            |stat| stat.st_dev += 1,
            |stat| stat.st_ino += 1,
            |stat| stat.st_size += 1,
            |stat| stat.st_mtime += 1,
            |stat| stat.st_mtime_nsec += 1,
        ];
        for change in changes {
            let mut other = one;
            change(&mut other);
            assert!(!is_same(&one, &other) && !is_same(&other, &one));
        }
    }
}
