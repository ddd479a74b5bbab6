//! What the planning core asks about the file system, and the driver that answers from the real one.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt as _;
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
}

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
    }

    impl Look for Fake {
        fn real(&self, path: &Path) -> Option<PathBuf> {
            let mut real = PathBuf::new();
            for part in path.components() {
                real.push(part);
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
            let inside = self.entries.iter().filter(|(path, _)| path.parent() == Some(dir));
            inside
                .filter_map(|(path, kind)| Some((path.file_name()?.to_owned(), *kind)))
                .take(limit)
                .collect()
        }
    }
}
