//! Opens the folders and files of the workspace that bubblewrap mounts again. A command that runs at the same time can put a link in the
//! place of a folder: without the open file, bubblewrap would mount what the link leads to, writable or readable.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::expected::Identity;

/// A file that is open for the program that this process starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) number: i32,
    pub(crate) identity: Identity,
}

/// What [`crate::protect::Protected`] found, opened.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    pub(crate) pinned: Vec<Opened>,
    pub(crate) read_only: Vec<Opened>,
    pub(crate) missing: Vec<PathBuf>,
    /// The open files, until the program that inherits them was started.
    pub(crate) _files: Vec<OwnedFd>,
}

/// Closes the files that this process has inherited, when it becomes another program. The three standard ones stay.
///
/// # Errors
/// A sentence: the open files can't be listed.
#[allow(unsafe_code, reason = "the files belong to no object of this program")]
pub(crate) fn close_inherited() -> Result<(), String> {
    let folder = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    let failed = |error| format!("the open files can't be listed in {folder}: {error}");
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(number) = name
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
            .filter(|number| *number > 2)
        else {
            continue;
        };
        // SAFETY: no memory is touched. A number without a file gives an error; a file with the flag stays as it is until this
        // process becomes another program.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

#[cfg(target_os = "linux")]
pub(crate) use linux::without_links;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::{Component, Path, PathBuf};

    use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
    use rustix::io::{Errno, FdFlags, fcntl_setfd};

    use super::{Mounts, Opened};
    use crate::expected::{Identity, identity_of};
    use crate::protect::Protected;

    /// Open files that every process may have.
    const USUAL_FILES: usize = 900;

    impl Mounts {
        /// # Errors
        /// A sentence: something can't be opened, and is not gone or replaced either.
        pub(crate) fn open(protected: Protected) -> Result<Self, String> {
            let count = protected.pinned.len() + protected.read_only.len();
            if count > USUAL_FILES {
                raise_limit(count);
            }
            let mut files = Vec::with_capacity(count);
            Ok(Self {
                pinned: all(protected.pinned, &mut files)?,
                read_only: all(protected.read_only, &mut files)?,
                missing: protected.missing,
                _files: files,
            })
        }
    }

    fn all(paths: Vec<PathBuf>, files: &mut Vec<OwnedFd>) -> Result<Vec<Opened>, String> {
        let mut opened = Vec::with_capacity(paths.len());
        for path in paths {
            match without_links(&path).and_then(kept) {
                Ok((file, identity)) => {
                    opened.push(Opened {
                        path,
                        number: file.as_raw_fd(),
                        identity,
                    });
                    files.push(file);
                }
                // It was removed or replaced since it was looked at, so it is nothing that must be kept.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(format!("{} can't be opened: {error}", path.display())),
            }
        }
        Ok(opened)
    }

    fn kept(file: OwnedFd) -> Result<(OwnedFd, Identity), Errno> {
        fcntl_setfd(&file, FdFlags::empty())?;
        let identity = identity_of(&file)?;
        Ok((file, identity))
    }

    /// Opens a path for looking only, and follows no link in any of its parts.
    pub(crate) fn without_links(path: &Path) -> Result<OwnedFd, Errno> {
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = open("/", look | OFlags::DIRECTORY, Mode::empty())?;
        let names = path.components().filter(|part| *part != Component::RootDir);
        for part in names {
            file = openat(&file, part.as_os_str(), look, Mode::empty())?;
            if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Symlink {
                return Err(Errno::LOOP);
            }
        }
        Ok(file)
    }

    fn raise_limit(files: usize) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = u64::try_from(files + USUAL_FILES).unwrap_or(u64::MAX);
        let current = Some(limit.maximum.map_or(wanted, |most| wanted.min(most)));
        // When it fails, a file can't be opened, and the command does not run.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn sb5_links_in_a_path_are_not_followed_and_what_is_gone_is_left_out() {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            std::fs::create_dir_all(root.join("a/b")).unwrap();
            std::fs::write(root.join("a/file"), "").unwrap();
            std::os::unix::fs::symlink("a", root.join("link")).unwrap();
            let paths = ["a", "a/b", "a/file", "link", "link/b", "a/file/x", "none"].map(|name| root.join(name));
            let found = all(paths.to_vec(), &mut vec![]).unwrap();
            let names: Vec<&Path> = found.iter().map(|opened| opened.path.as_path()).collect();
            assert_eq!(names, [root.join("a"), root.join("a/b"), root.join("a/file")]);
        }
    }
}
