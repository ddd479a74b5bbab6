//! What the planning core asks about the file system, and the driver that answers from the real one.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File,
    Link,
    Socket,
    /// Devices and pipes.
    Other,
}

/// Facts about the file system. Nothing here fails: a path that can't be looked at does not exist for a command either.
pub trait Look {
    /// The path without links. `None` when there is nothing.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// The kind of the path itself, links not followed.
    fn kind(&self, path: &Path) -> Option<Kind>;
    /// The entries of a folder, at most `limit`.
    fn list(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)>;
    /// The content of a small file, links not followed. `None`: it is longer than [`SMALL_FILE`], or no file.
    fn text(&self, path: &Path) -> Option<Vec<u8>>;
}

/// Bytes of a file that names paths. The configuration of a repository with thousands of branches is the longest.
pub const SMALL_FILE: u64 = 1 << 20;

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
    fn real(&self, path: &Path) -> Option<PathBuf> {
        // Most paths that are asked for are not there, which one look tells; resolving asks for each folder.
        path.symlink_metadata().ok()?;
        path.canonicalize().ok()
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        Some(kind_of(path.symlink_metadata().ok()?.file_type()))
    }

    fn list(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some((entry.file_name(), kind_of(entry.file_type().ok()?))))
            .take(limit)
            .collect()
    }

    fn text(&self, path: &Path) -> Option<Vec<u8>> {
        // Without `O_NONBLOCK` a pipe that was put there meanwhile would hold up the open.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = std::fs::File::options()
            .read(true)
            .custom_flags(flags)
            .open(path)
            .ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        file.take(SMALL_FILE + 1).read_to_end(&mut text).ok()?;
        (text.len() as u64 <= SMALL_FILE).then_some(text)
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A file system in memory: paths with kinds, links with targets.
    use std::collections::BTreeMap;

    use super::{Kind, Look, OsString, Path, PathBuf};

    #[derive(Default)]
    pub(crate) struct Fake {
        entries: BTreeMap<PathBuf, Kind>,
        links: BTreeMap<PathBuf, PathBuf>,
        texts: BTreeMap<PathBuf, Vec<u8>>,
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
        fn real(&self, path: &Path) -> Option<PathBuf> {
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
            self.entries.contains_key(&real).then_some(real)
        }

        fn kind(&self, path: &Path) -> Option<Kind> {
            self.entries.get(path).copied()
        }

        fn list(&self, dir: &Path, limit: usize) -> Vec<(OsString, Kind)> {
            let below = self
                .entries
                .range(dir.to_owned()..)
                .take_while(|(path, _)| path.starts_with(dir));
            let inside = below.filter(|(path, _)| path.parent() == Some(dir));
            inside
                .filter_map(|(path, kind)| Some((path.file_name()?.to_owned(), *kind)))
                .take(limit)
                .collect()
        }

        fn text(&self, path: &Path) -> Option<Vec<u8>> {
            self.texts.get(path).cloned()
        }
    }
}
