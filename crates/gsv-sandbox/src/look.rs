//! What the planning core asks about the file system, and the driver that answers from the real one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType};

use crate::folder::Folder;
pub use crate::kind::Kind;

/// Why this process could not look at a path. A command of the same user may have caused that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseen {
    /// This file or folder of the user keeps the user out.
    Denied(PathBuf),
    /// A file is longer than [`SMALL_FILE`].
    TooLong,
    Other(io::ErrorKind),
}

/// Facts about the file system. What belongs to another user and can't be looked at does not exist for a command either.
pub trait Look {
    /// The path without links. `None` when there is nothing.
    ///
    /// # Errors
    /// It may be there.
    fn try_real(&self, path: &Path) -> Result<Option<PathBuf>, Unseen>;
    /// The kind of the path itself, links not followed.
    ///
    /// # Errors
    /// It may be there.
    fn try_kind(&self, path: &Path) -> Result<Option<Kind>, Unseen>;
    /// The entries of a folder, at most `limit`.
    ///
    /// # Errors
    /// There may be more.
    fn try_list(&self, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen>;
    /// What a search needs to know of a folder: of its entries, at most `limit`.
    ///
    /// # Errors
    /// There may be more.
    fn try_folder(&self, dir: &Path, limit: usize) -> Result<Arc<Folder>, Unseen> {
        self.try_list(dir, limit).map(|entries| Arc::new(Folder::of(entries)))
    }
    /// The content of a small file, links not followed. `None`: there is no file.
    ///
    /// # Errors
    /// It may be there, or it is longer than [`SMALL_FILE`].
    fn try_text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unseen>;

    /// Whether a folder without entries is empty: one of another user may be closed to lists and still open to who knows a name.
    fn is_listed(&self, _dir: &Path) -> bool {
        true
    }

    /// The mounts of this process, as the kernel lists them. Empty where a system has no such list.
    ///
    /// # Errors
    /// A sentence: the list can't be read.
    fn mounts(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// As `try_real`, for those who need nothing that is unseen.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        self.try_real(path).ok().flatten()
    }

    /// As `try_kind`.
    fn kind(&self, path: &Path) -> Option<Kind> {
        self.try_kind(path).ok().flatten()
    }

    /// As `try_list`.
    fn list(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        self.try_list(dir, limit).unwrap_or_default()
    }

    /// As `try_folder`.
    fn folder(&self, dir: &Path, limit: usize) -> Arc<Folder> {
        self.try_folder(dir, limit).unwrap_or_default()
    }

    /// As `try_text`.
    fn text(&self, path: &Path) -> Option<Vec<u8>> {
        self.try_text(path).ok().flatten()
    }
}

/// Bytes of a file that names paths. The configuration of a repository with thousands of branches is the longest.
pub const SMALL_FILE: u64 = 1 << 20;

/// The list of this process's mounts.
#[cfg(target_os = "linux")]
pub(crate) const MOUNTS: &str = "/proc/self/mountinfo";

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

fn kind_of(found: std::fs::FileType) -> Kind {
    match found {
        found if found.is_dir() => Kind::Dir,
        found if found.is_file() => Kind::File,
        found if found.is_symlink() => Kind::Link,
        found if found.is_socket() => Kind::Socket,
        _ => Kind::Other,
    }
}

impl Look for Disk {
    fn try_real(&self, path: &Path) -> Result<Option<PathBuf>, Unseen> {
        // Most paths that are asked for are not there, which one look tells; resolving asks for each folder.
        if self.try_kind(path)?.is_none() {
            return Ok(None);
        }
        found(path, path.canonicalize())
    }

    fn try_kind(&self, path: &Path) -> Result<Option<Kind>, Unseen> {
        let metadata = found(path, path.symlink_metadata())?;
        Ok(metadata.map(|metadata| kind_of(metadata.file_type())))
    }

    fn try_list(&self, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen> {
        open_folder(dir)?.map_or_else(|| Ok(Vec::new()), |opened| list(&opened, dir, limit))
    }

    fn try_text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unseen> {
        // Without `O_NONBLOCK` a pipe that was put there meanwhile would hold up the open.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let opened = std::fs::File::options().read(true).custom_flags(flags).open(path);
        let Some(file) = found(path, opened)?.filter(|file| file.metadata().is_ok_and(|found| found.is_file())) else {
            return Ok(None);
        };
        let mut text = Vec::new();
        let read = file.take(SMALL_FILE + 1).read_to_end(&mut text);
        read.map_err(|error| Unseen::Other(error.kind()))?;
        if text.len() as u64 > SMALL_FILE {
            return Err(Unseen::TooLong);
        }
        Ok(Some(text))
    }

    fn is_listed(&self, dir: &Path) -> bool {
        rustix::fs::access(dir, rustix::fs::Access::READ_OK).is_ok()
    }

    #[cfg(target_os = "linux")]
    fn mounts(&self) -> Result<Vec<u8>, String> {
        std::fs::read(MOUNTS).map_err(|error| format!("{MOUNTS} can't be read: {error}"))
    }
}

/// `None`: there is no folder, or what keeps this process out belongs to another user.
pub(crate) fn open_folder(dir: &Path) -> Result<Option<File>, Unseen> {
    let flags = libc::O_DIRECTORY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    found(dir, File::options().read(true).custom_flags(flags).open(dir))
}

/// The entries of an open folder, at most `limit`. `dir`: its path, for errors.
pub(crate) fn list(opened: &File, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen> {
    let unreadable = |errno: rustix::io::Errno| Unseen::Other(io::Error::from(errno).kind());
    let mut entries = Vec::new();
    // The folder itself is read: another opening of it would need the right to enter it, too.
    let read = opened.try_clone().map_err(|error| Unseen::Other(error.kind()))?;
    for entry in Dir::new(read).map_err(unreadable)? {
        if entries.len() >= limit {
            break;
        }
        let entry = entry.map_err(unreadable)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Directory => Some(Kind::Dir),
            FileType::RegularFile => Some(Kind::File),
            FileType::Symlink => Some(Kind::Link),
            FileType::Socket => Some(Kind::Socket),
            // The file system does not tell it in its list.
            FileType::Unknown => kind_in(opened, dir, name)?,
            _ => Some(Kind::Other),
        };
        entries.extend(kind.map(|kind| (name.to_owned(), kind)));
    }
    Ok(entries)
}

/// `None`: the entry has gone meanwhile.
fn kind_in(opened: &File, dir: &Path, name: &OsStr) -> Result<Option<Kind>, Unseen> {
    let stat = rustix::fs::statat(opened, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
    let stat = found(&dir.join(name), stat)?;
    Ok(stat.map(|stat| match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Kind::Dir,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        FileType::Socket => Kind::Socket,
        _ => Kind::Other,
    }))
}

/// `None`: there is nothing, or what keeps this process out belongs to another user.
fn found<T>(path: &Path, result: io::Result<T>) -> Result<Option<T>, Unseen> {
    let error = match result {
        Ok(found) => return Ok(Some(found)),
        Err(error) => error,
    };
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => Ok(None),
        io::ErrorKind::PermissionDenied => own(path).map_or(Ok(None), |own| Err(Unseen::Denied(own))),
        _ if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG)) => Ok(None),
        other => Err(Unseen::Other(other)),
    }
}

/// The first of the path and the folders above it that can be looked at, where it is this user's.
fn own(path: &Path) -> Option<PathBuf> {
    let mut above = path
        .ancestors()
        .filter_map(|path| Some((path, path.symlink_metadata().ok()?)));
    let (first, found) = above.next()?;
    (found.uid() == rustix::process::geteuid().as_raw()).then(|| first.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    /// As a user without privileges, also where the tests run as root.
    fn without_privileges<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut sets = capabilities(None).unwrap();
                let reads_all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
                sets.effective.remove(reads_all);
                sets.permitted.remove(reads_all);
                set_capabilities(None, sets).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn sb5_a_folder_that_can_not_be_listed_is_not_taken_for_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, empty) = (dir.path().join("folder"), dir.path().join("empty"));
        for path in [&folder, &empty] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(folder.join(".envrc"), "").unwrap();
        let set_mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o311);
        let denied = Err(Unseen::Denied(folder.clone()));
        let look = || {
            let listed = Disk.try_list(&folder, 9).map(|entries| entries.len());
            let kind = Disk.kind(&folder.join(".envrc"));
            (listed, kind, Disk.is_listed(&folder), Disk.is_listed(&empty))
        };
        // It is the user's, who can be told to open it.
        assert_eq!(without_privileges(look), (denied, Some(Kind::File), false, true));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534)).unwrap();
            assert_eq!(without_privileges(look), (Ok(0), Some(Kind::File), false, true));
        }
        set_mode(0o711);
    }

    #[test]
    fn sb5_a_folder_that_can_be_read_and_not_entered_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(".envrc"), "").unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o444)).unwrap();
        let look = || Disk.try_list(&folder, 9).map(|entries| entries.len());
        assert_eq!(without_privileges(look), Ok(1));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534)).unwrap();
            assert_eq!(without_privileges(look), Ok(1));
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o711)).unwrap();
    }

    #[test]
    fn sb5_what_keeps_a_path_from_the_search_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let set_mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o600);
        let denied = || Disk.try_kind(&folder.join(".git/config"));
        assert_eq!(without_privileges(denied), Err(Unseen::Denied(folder.clone())));
        set_mode(0o700);
        let long = folder.join("long");
        let size = usize::try_from(SMALL_FILE).unwrap() + 1;
        std::fs::write(&long, vec![b' '; size]).unwrap();
        assert_eq!(Disk.try_text(&long), Err(Unseen::TooLong));
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A file system in memory: paths with kinds, links with targets.
    use std::collections::BTreeMap;

    use super::{Kind, Look, OsString, Path, PathBuf, Unseen};

    #[derive(Default)]
    pub(crate) struct Fake {
        entries: BTreeMap<PathBuf, Kind>,
        links: BTreeMap<PathBuf, PathBuf>,
        texts: BTreeMap<PathBuf, Vec<u8>>,
        closed: Vec<PathBuf>,
        unlisted: Vec<PathBuf>,
        mounts: String,
    }

    impl Fake {
        /// A path that ends in `/` is a folder. Parents are made.
        pub(crate) fn of(paths: &[&str]) -> Self {
            let mut fake = Self::default();
            for path in paths {
                let kind = if path.ends_with('/') { Kind::Dir } else { Kind::File };
                for parent in Path::new(path).ancestors().skip(1) {
                    fake.entries.insert(parent.to_owned(), Kind::Dir);
                }
                fake.entries.insert(PathBuf::from(path.trim_end_matches('/')), kind);
            }
            fake
        }

        /// A folder that can't be listed, and belongs to the user.
        pub(crate) fn closed(mut self, path: &str) -> Self {
            self.closed.push(path.into());
            self
        }

        /// A folder of another user that can't be listed; names in it can be asked for.
        pub(crate) fn unlisted(mut self, path: &str) -> Self {
            self.unlisted.push(path.into());
            self
        }

        /// One line of the list of mounts: `root` of the only file system is mounted at `point`.
        pub(crate) fn mount(mut self, root: &str, point: &str) -> Self {
            self.mounts = format!("{}1 1 8:1 {root} {point} rw - ext4 /dev/x rw\n", self.mounts);
            self
        }

        pub(crate) fn link(mut self, from: &str, to: &str) -> Self {
            self.entries.insert(from.into(), Kind::Link);
            self.links.insert(from.into(), to.into());
            self
        }

        pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
            for parent in Path::new(path).ancestors().skip(1) {
                self.entries.insert(parent.to_owned(), Kind::Dir);
            }
            self.entries.insert(path.into(), Kind::File);
            self.texts.insert(path.into(), text.into());
            self
        }
    }

    impl Look for Fake {
        fn try_real(&self, path: &Path) -> Result<Option<PathBuf>, Unseen> {
            let mut real = PathBuf::new();
            for part in path.components() {
                if part == std::path::Component::ParentDir {
                    real.pop();
                } else {
                    real.push(part);
                }
                while let Some(target) = self.links.get(&real) {
                    real.clone_from(target);
                }
            }
            Ok(self.entries.contains_key(&real).then_some(real))
        }

        fn try_kind(&self, path: &Path) -> Result<Option<Kind>, Unseen> {
            Ok(self.entries.get(path).copied())
        }

        fn try_list(&self, dir: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Unseen> {
            if self.closed.iter().any(|closed| dir.starts_with(closed)) {
                return Err(Unseen::Denied(dir.to_owned()));
            }
            if self.unlisted.iter().any(|unlisted| dir == unlisted) {
                return Ok(Vec::new());
            }
            let below = self
                .entries
                .range(dir.to_owned()..)
                .take_while(|(path, _)| path.starts_with(dir));
            let inside = below.filter(|(path, _)| path.parent() == Some(dir));
            Ok(inside
                .filter_map(|(path, kind)| Some((path.file_name()?.to_owned(), *kind)))
                .take(limit)
                .collect())
        }

        fn try_text(&self, path: &Path) -> Result<Option<Vec<u8>>, Unseen> {
            Ok(self.texts.get(path).cloned())
        }

        fn is_listed(&self, dir: &Path) -> bool {
            !self.unlisted.iter().any(|unlisted| dir == unlisted)
        }

        fn mounts(&self) -> Result<Vec<u8>, String> {
            Ok(self.mounts.clone().into_bytes())
        }
    }
}
