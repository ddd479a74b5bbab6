//! Sockets that a program has bound by a relative path: the kernel lists them as they were named, and does not tell the folder. It is the
//! folder in which the program is, or was when it was started. PURE, but for the driver at the end.

use std::path::{Path, PathBuf};

/// One line of `/proc/net/unix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    /// The inode of the socket, not of its file.
    pub(crate) inode: u64,
    /// Whether a program could connect or send to it. A connection has the name of the socket that it came to.
    pub(crate) is_open: bool,
    /// In another network namespace, whose programs may have other folders than this process.
    pub(crate) is_elsewhere: bool,
}

/// `Num RefCount Protocol Flags Type St Inode Path`; abstract names begin with `@`.
pub(crate) fn listed(listing: &str) -> impl Iterator<Item = Listed> {
    const LISTENS: u32 = 0x1_0000;
    const DATAGRAMS: &str = "0002";
    listing.lines().filter_map(|line| {
        let mut fields = [""; 7];
        let mut rest = line;
        for field in &mut fields {
            (*field, rest) = rest.trim_start().split_once(' ')?;
        }
        let [number, _, _, flags, kind, _, inode] = fields;
        let is_line = number.ends_with(':') && !rest.is_empty() && !rest.starts_with('@');
        is_line.then_some(())?;
        Some(Listed {
            path: rest.into(),
            inode: inode.parse().ok()?,
            is_open: kind == DATAGRAMS || u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & LISTENS != 0),
            is_elsewhere: false,
        })
    })
}

/// A process of which the system tells what it has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    /// Its sockets, by inode.
    pub(crate) sockets: Vec<u64>,
    /// Where it is, and where it was when it was started. Those that are gone are left out.
    pub(crate) folders: Vec<PathBuf>,
}

/// What is known about one relative path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Socket,
    /// The process has it at this path, but here it is not.
    Elsewhere,
    Nothing,
}

/// The absolute paths of relative ones. Sockets of processes of which the system does not tell are left out: nothing finds them.
///
/// # Errors
/// A sentence: a program has left the folder of its socket.
pub(crate) fn located(
    relative: &[Listed],
    holders: &[Holder],
    look: &dyn Fn(&Holder, &Path, &Path) -> Found,
) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for socket in relative {
        let holders = holders.iter().filter(|holder| holder.sockets.contains(&socket.inode));
        let places: Vec<(&Holder, &PathBuf)> = holders
            .flat_map(|holder| holder.folders.iter().map(move |folder| (holder, folder)))
            .collect();
        let (mut is_known, mut last) = (places.is_empty(), 0);
        for (holder, folder) in places {
            match look(holder, folder, &socket.path) {
                Found::Socket => found.push(folder.join(&socket.path)),
                Found::Elsewhere => {}
                Found::Nothing => {
                    last = holder.pid;
                    continue;
                }
            }
            is_known = true;
        }
        if !is_known && !socket.is_elsewhere {
            return Err(format!(
                "the program with the number {last} has bound the socket {} by a relative path, and has left its folder; end that program, or start it with an absolute path",
                socket.path.display()
            ));
        }
    }
    Ok(found)
}

pub(crate) use driver::absolute;

mod driver {
    use std::ffi::OsStr;
    use std::fs::{read, read_dir, read_link};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    use super::{Found, Holder, Listed, located};
    use crate::look::{Disk, Kind, Look as _};

    /// # Errors
    /// As [`located`].
    pub(crate) fn absolute(relative: &[Listed]) -> Result<Vec<PathBuf>, String> {
        if relative.is_empty() {
            return Ok(vec![]);
        }
        let processes = read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let holders: Vec<Holder> = pids.filter_map(|pid| holder(pid, relative)).collect();
        located(relative, &holders, &look)
    }

    fn holder(pid: u32, relative: &[Listed]) -> Option<Holder> {
        let open = read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let links = open.filter_map(|entry| read_link(entry.path()).ok());
        let numbers = links.filter_map(|link| {
            let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            number.parse().ok()
        });
        let sockets: Vec<u64> = numbers
            .filter(|number| relative.iter().any(|socket| socket.inode == *number))
            .collect();
        (!sockets.is_empty()).then_some(())?;
        let began = read(format!("/proc/{pid}/environ")).ok().and_then(|environment| {
            let mut entries = environment.split(|byte| *byte == 0);
            let folder = entries.find_map(|entry| entry.strip_prefix(b"PWD="))?;
            Some(PathBuf::from(OsStr::from_bytes(folder)))
        });
        let now = read_link(format!("/proc/{pid}/cwd")).ok();
        let folders = now.into_iter().chain(began).filter(|folder| folder.is_dir());
        Some(Holder {
            pid,
            sockets,
            folders: folders.collect(),
        })
    }

    fn look(holder: &Holder, folder: &Path, name: &Path) -> Found {
        let is_socket = |path: &Path| Disk.kind(path) == Some(Kind::Socket);
        if is_socket(&folder.join(name)) {
            return Found::Socket;
        }
        // A process of another view of the file system.
        let seen = |of: &str| is_socket(&PathBuf::from(format!("/proc/{}/{of}", holder.pid)).join(name));
        if seen("cwd") { Found::Elsewhere } else { Found::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb4_paths_are_read_and_abstract_names_are_not() {
        let listing = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20219 /run/docker.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 23115\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 23116 s\n\
            0000000000000000: 00000002 00000000 00010000 0001 01     1 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000002 00000000 00000000 0002 01     2 a b.sock\n";
        let found: Vec<(PathBuf, u64, bool)> = listed(listing)
            .map(|socket| (socket.path, socket.inode, socket.is_open))
            .collect();
        assert_eq!(
            found,
            [
                ("/run/docker.sock".into(), 20219, true),
                ("s".into(), 23116, false),
                ("a b.sock".into(), 2, true)
            ]
        );
    }

    #[test]
    fn sb4_a_relative_path_is_in_a_folder_of_its_program_and_else_no_command_runs() {
        let socket = |inode| Listed {
            path: "run/s".into(),
            inode,
            is_open: true,
            is_elsewhere: false,
        };
        let holder = |pid, folders: &[&str]| Holder {
            pid,
            sockets: vec![7],
            folders: folders.iter().map(PathBuf::from).collect(),
        };
        let look = |_: &Holder, folder: &Path, _: &Path| match folder.to_str() {
            Some("/a" | "/b") => Found::Socket,
            Some("/jail") => Found::Elsewhere,
            _ => Found::Nothing,
        };
        let of = |holders: &[Holder]| located(&[socket(7)], holders, &look);
        let paths = |names: &[&str]| Ok(names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&[holder(5, &["/a"])]), paths(&["/a/run/s"]));
        assert_eq!(of(&[holder(5, &["/", "/b"]), holder(6, &["/"])]), paths(&["/b/run/s"]));
        assert_eq!(of(&[holder(5, &["/jail"])]), paths(&[]));
        // Its folder is gone, and the socket with it; or the system does not tell whose it is.
        assert_eq!(of(&[holder(5, &[])]), paths(&[]));
        assert_eq!(located(&[socket(8)], &[holder(5, &["/"])], &look), paths(&[]));
        let problem = of(&[holder(5, &["/"])]).unwrap_err();
        let other = Listed {
            is_elsewhere: true,
            ..socket(7)
        };
        assert_eq!(located(&[other], &[holder(5, &["/"])], &look), paths(&[]));
        assert!(problem.contains("number 5 has bound the socket run/s"), "{problem}");
    }
}
