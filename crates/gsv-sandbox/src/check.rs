//! The check between bubblewrap and the command: inside the sandbox, after the mounts are made and before the command runs, it compares
//! them with the plan. bubblewrap 0.8 resolves the path of a mount again after it was looked at, and another command can exchange a folder
//! with a link in between: then a folder outside could be writable. PURE, but for the driver at the end.

use std::path::Path;

use crate::expected::{Expected, Identity, Want};
use crate::mount_table::{Mount, mounts};

/// File systems that bubblewrap creates with each sandbox. They must be new ones.
const FRESH: [&str; 6] = ["/proc", "/dev", "/dev/pts", "/run", "/var/tmp", "/tmp"];
/// Devices that bubblewrap mounts one by one.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/console",
];

/// What is at a path when no link is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    File {
        identity: Identity,
        mount: u64,
    },
    /// A command can't reach it either.
    OutOfReach,
    /// Nothing, or a link.
    Nothing,
}

/// Compares the mounts with the plan.
///
/// # Errors
/// A sentence: something is mounted that was not planned, or something is missing.
fn compare(expected: &Expected, now: &[u8], look: &dyn Fn(&Path) -> Found) -> Result<(), String> {
    let (before, now) = (mounts(&expected.before)?, mounts(now)?);
    let mut planned = Vec::new();
    for (path, want) in &expected.points {
        let other = || Err(format!("{} changed while it was mounted", path.display()));
        let (identity, id) = match (look(path), want) {
            (Found::File { identity, mount }, _) => (identity, mount),
            (Found::OutOfReach, Want::Cover) => continue,
            _ => return other(),
        };
        let Some(mount) = now.iter().find(|mount| mount.id == id && mount.point == *path) else {
            return other();
        };
        let holds = match want {
            Want::Writable(wanted) => identity == *wanted,
            Want::ReadOnly(wanted) => identity == *wanted && !mount.is_writable,
            Want::Cover => !mount.is_writable,
        };
        if !holds {
            return other();
        }
        if matches!(want, Want::Writable(_)) {
            planned.push(id);
        }
    }
    for mount in now
        .iter()
        .filter(|mount| mount.is_writable && !planned.contains(&mount.id))
    {
        if !is_known(mount, expected, &before, look) {
            return Err(format!("{} is writable, which was not planned", mount.point.display()));
        }
    }
    Ok(())
}

/// Whether a writable mount that no point names is one that every command has.
fn is_known(mount: &Mount, expected: &Expected, before: &[Mount], look: &dyn Fn(&Path) -> Found) -> bool {
    let mut writable = (expected.points.iter())
        .filter(|(_, want)| matches!(want, Want::Writable(_)))
        .map(|(path, _)| path);
    let was_there = before.iter().any(|earlier| earlier.is_same(mount));
    // The user has mounted something in a writable folder. Another command can move what is mounted there, so no other mount may be in it.
    if writable.any(|folder| mount.point.starts_with(folder)) {
        return was_there;
    }
    let reached = matches!(look(&mount.point), Found::File { mount: id, .. } if id == mount.id);
    // bubblewrap can't make read-only what it can't reach, nor can a command reach it.
    if !reached {
        return was_there;
    }
    let is_one_of = |names: &[&str]| names.iter().any(|name| mount.point == Path::new(name));
    is_one_of(&DEVICES) || (is_one_of(&FRESH) && !before.iter().any(|earlier| earlier.device == mount.device))
}

#[cfg(target_os = "linux")]
pub(crate) use driver::check;

#[cfg(target_os = "linux")]
mod driver {
    use std::path::Path;

    use rustix::io::Errno;

    use super::{Found, compare};
    use crate::expected::{Expected, identity_of};
    use crate::look::MOUNTS;
    use crate::mounts::without_links;

    /// Checks the mounts of this process. `number`: of an open file with what is expected.
    ///
    /// # Errors
    /// A sentence: the command must not run.
    pub(crate) fn check(number: &str) -> Result<Expected, String> {
        let read = |path: &str| std::fs::read(path).map_err(|error| format!("{path} can't be read: {error}"));
        let planned = read(&format!("/proc/self/fd/{number}"))?;
        let expected = Expected::from_bytes(&planned).ok_or("the plan of the mounts can't be read")?;
        compare(&expected, &read(MOUNTS)?, &look)?;
        Ok(expected)
    }

    fn look(path: &Path) -> Found {
        match without_links(path).and_then(|file| Ok((identity_of(&file)?, mount_of(&file)?))) {
            Ok((identity, mount)) => Found::File { identity, mount },
            Err(Errno::ACCESS) => Found::OutOfReach,
            Err(_) => Found::Nothing,
        }
    }

    /// The number of the mount through which a file was opened.
    fn mount_of(file: &impl std::os::fd::AsRawFd) -> Result<u64, Errno> {
        let path = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
        let text = std::fs::read_to_string(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        number.and_then(|number| number.trim().parse().ok()).ok_or(Errno::IO)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const BEFORE: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        22 27 0:21 / /proc rw - proc proc rw\n\
        26 27 0:24 / /dev/pts rw - devpts devpts rw\n\
        30 27 8:1 / /ws/disk rw - ext4 /dev/sdb rw\n\
        31 27 0:50 / /home/u/fuse rw - fuse fuse rw\n\
        32 27 8:2 / /home rw - ext4 /dev/sdc rw\n";
    /// What bubblewrap makes of it: 99 is the workspace, 100 and 101 are its pins.
    const NOW: &str = "66 42 254:0 / / ro,relatime - ext4 /dev/vda rw\n\
        68 66 0:21 / /proc ro - proc proc rw\n\
        84 66 0:24 / /dev/pts rw - devpts devpts rw\n\
        69 66 0:50 / /home/u/fuse rw - fuse fuse rw\n\
        70 66 8:2 / /home ro - ext4 /dev/sdc rw\n\
        86 66 0:41 / /dev rw - tmpfs tmpfs rw\n\
        87 86 0:6 /null /dev/null rw - devtmpfs devtmpfs rw\n\
        93 86 0:42 / /dev/pts rw - devpts devpts rw\n\
        94 68 0:43 / /proc rw - proc proc rw\n\
        98 66 254:0 /own/tmp /tmp rw - ext4 /dev/vda rw\n\
        99 66 254:0 /ws /ws rw - ext4 /dev/vda rw\n\
        97 99 8:1 / /ws/disk rw - ext4 /dev/sdb rw\n\
        100 99 254:0 /ws/a\\040b/.git /ws/a\\040b/.git rw - ext4 /dev/vda rw\n\
        101 100 254:0 /ws/a\\040b/.git/hooks /ws/a\\040b/.git/hooks ro - ext4 /dev/vda rw\n\
        102 66 0:45 / /home/u/.ssh ro - tmpfs tmpfs rw\n\
        103 66 254:0 /own/empty /home/u/x.sock ro - ext4 /dev/vda rw\n";

    fn identity(inode: u64) -> Identity {
        Identity { device: 1, inode }
    }

    fn expected() -> Expected {
        let points = [
            ("/ws", Want::Writable(identity(99))),
            ("/tmp", Want::Writable(identity(98))),
            ("/ws/a b/.git", Want::Writable(identity(100))),
            ("/ws/a b/.git/hooks", Want::ReadOnly(identity(101))),
            ("/home/u/.ssh", Want::Cover),
            ("/home/u/x.sock", Want::Cover),
        ];
        Expected {
            points: points.map(|(path, want)| (PathBuf::from(path), want)).to_vec(),
            before: BEFORE.into(),
        }
    }

    /// The top mount at each point is what is found there; a file has the inode of its mount's number.
    fn compare_with(now: &str, hidden: &[&str]) -> Result<(), String> {
        let all = mounts(now.as_bytes()).unwrap_or_default();
        compare(&expected(), now.as_bytes(), &|path| {
            if hidden.iter().any(|name| path == Path::new(name)) {
                return Found::OutOfReach;
            }
            let top = all.iter().rfind(|mount| mount.point == path);
            top.map_or(Found::Nothing, |mount| Found::File {
                identity: identity(mount.id),
                mount: mount.id,
            })
        })
    }

    #[test]
    fn sb5_the_planned_mounts_are_accepted() {
        assert_eq!(compare_with(NOW, &["/home/u/fuse"]), Ok(()));
        // A folder that no command can enter needs no cover.
        assert_eq!(compare_with(NOW, &["/home/u/fuse", "/home/u/.ssh"]), Ok(()));
    }

    #[test]
    fn sb5_a_mount_that_was_not_planned_is_refused() {
        for (line, word) in [
            // What a link led to, writable: outside, at another mount of the system, in the workspace, and at a file system of bubblewrap's.
            ("110 66 254:0 /home/u /home/u rw - ext4 /dev/vda rw\n", "/home/u"),
            ("110 70 8:2 / /home rw - ext4 /dev/sdc rw\n", "/home"),
            ("110 99 254:0 /other /ws/x rw - ext4 /dev/vda rw\n", "/ws/x"),
            ("110 99 254:0 /other /ws/disk rw - ext4 /dev/vda rw\n", "/ws/disk"),
            ("110 93 0:24 / /dev/pts rw - devpts devpts rw\n", "/dev/pts"),
            ("110 86 0:27 / /dev/shm rw - tmpfs tmpfs rw\n", "/dev/shm"),
            // Over what was planned.
            (
                "110 101 254:0 /other /ws/a\\040b/.git/hooks ro - ext4 /dev/vda rw\n",
                "hooks",
            ),
            ("110 99 254:0 /other /ws/a\\040b/.git rw - ext4 /dev/vda rw\n", "/.git"),
            (
                "110 66 254:0 /home/u/.ssh /home/u/.ssh rw - ext4 /dev/vda rw\n",
                "/home/u/.ssh",
            ),
        ] {
            let problem = compare_with(&format!("{NOW}{line}"), &["/home/u/fuse"]).expect_err(line);
            assert!(problem.contains(word), "{line}{problem}");
        }
    }

    #[test]
    fn sb5_a_planned_mount_that_is_missing_elsewhere_or_writable_is_refused() {
        let without = |part: &str| {
            let lines = NOW.lines().filter(|line| !line.contains(part));
            lines.collect::<Vec<_>>().join("\n")
        };
        for now in [
            without("/hooks"),
            without("/home/u/.ssh"),
            without("/home/u/x.sock"),
            without("98 66"),
            NOW.replace("/ws/a\\040b/.git/hooks ro", "/ws/a\\040b/.git/hooks rw"),
            NOW.replace("/home/u/.ssh ro", "/home/u/.ssh rw"),
            NOW.replace("/ws/a\\040b/.git rw", "/ws/a\\040b/link rw"),
            NOW.replace("100 99", "104 99"),
            NOW.replace("/home/u/x.sock ro", "/home/u/x.sock rw"),
            NOW.replace("/home ro", "/home rw"),
            format!("{NOW}no line\n"),
        ] {
            assert!(compare_with(&now, &["/home/u/fuse"]).is_err(), "{now}");
        }
        assert!(
            compare_with(NOW, &[]).is_err(),
            "a writable mount that a command can reach"
        );
    }
}
