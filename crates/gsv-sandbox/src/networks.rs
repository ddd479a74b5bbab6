//! The sockets of programs in other network namespaces, such as containers and services: the kernel lists the sockets of each namespace apart.
//! A process that can't be looked at is left out.

use std::collections::BTreeSet;
use std::fs::{metadata, read, read_dir, read_link, read_to_string};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::look::{Disk, Look as _};
use crate::mount_table::{Mount, mounts, shown};
use crate::relative::{Listed, listed};

/// The file of a process that lists the sockets of its network namespace.
const LISTING: &str = "net/unix";
/// Network namespaces that are looked at, at most.
const NAMESPACES: usize = 1_000;

/// The sockets in other network namespaces.
#[derive(Debug, Default)]
pub(crate) struct OtherNamespaces {
    /// Sockets of other programs, at absolute paths of this process.
    pub(crate) paths: Vec<PathBuf>,
    /// Sockets of other programs, bound by relative paths.
    pub(crate) relative: Vec<Listed>,
    /// Sockets of commands in this sandbox.
    pub(crate) own: BTreeSet<PathBuf>,
    /// Sockets of commands in this sandbox, bound by relative paths.
    pub(crate) own_relative: Vec<Listed>,
}

/// `temp`: the folder that commands in this sandbox have as `/tmp`.
///
/// # Errors
/// A sentence: there are too many namespaces.
pub(crate) fn other_namespaces(temp: &Path) -> Result<OtherNamespaces, String> {
    at_most(NAMESPACES, temp)
}

fn at_most(limit: usize, temp: &Path) -> Result<OtherNamespaces, String> {
    let this = Path::new("/proc/self");
    let mut known: BTreeSet<NetworkNamespace> = namespace_of(this).into_iter().chain(listing_of(this)).collect();
    let mut found = OtherNamespaces::default();
    let threads = kernel_threads();
    for pid in pids().filter(|pid| !threads.contains(pid)) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Some(namespace) = namespace_of(&process).filter(|namespace| !known.contains(namespace)) else {
            continue;
        };
        // It may have ended meanwhile; another process of the namespace may be there.
        let Ok(listing) = read(process.join(LISTING)) else {
            continue;
        };
        known.insert(namespace);
        if known.len() > limit {
            return Err(format!(
                "more than {limit} network namespaces are in use, so the sockets in them can't all be masked; stop containers or services that are not needed"
            ));
        }
        let (absolute, relative): (Vec<_>, Vec<_>) =
            listed(&String::from_utf8_lossy(&listing)).partition(|socket| socket.path.is_absolute());
        let paths = absolute.into_iter().map(|socket| socket.path);
        let open = relative.into_iter().filter(|socket| socket.is_open);
        let relative = open.map(|socket| Listed {
            is_elsewhere: true,
            ..socket
        });
        if is_in_sandbox(&process, temp) {
            found.own.extend(paths);
            found.own_relative.extend(relative);
            continue;
        }
        found.paths.extend(seen_here(&process, paths)?);
        found.relative.extend(relative);
    }
    Ok(found)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What tells network namespaces apart.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NetworkNamespace {
    /// The link `ns/net`.
    Link(PathBuf),
    /// The inode of the list of its sockets.
    Listing(u64),
}

/// The system shows the link of other users' processes to root alone, and the list to all, but the list takes it three times as long.
fn namespace_of(process: &Path) -> Option<NetworkNamespace> {
    match read_link(process.join("ns/net")) {
        Ok(link) => Some(NetworkNamespace::Link(link)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => listing_of(process),
        Err(_) => None,
    }
}

fn listing_of(process: &Path) -> Option<NetworkNamespace> {
    let found = metadata(process.join(LISTING)).ok()?;
    Some(NetworkNamespace::Listing(found.ino()))
}

/// They are many and are in the network namespace of the system. Empty where the system has no list of them.
fn kernel_threads() -> BTreeSet<u32> {
    const PF_KTHREAD: u64 = 0x20_0000;
    let flags = read_to_string("/proc/2/stat").ok().and_then(|stat| {
        let (_, fields) = stat.rsplit_once(") ")?;
        fields.split(' ').nth(6)?.parse::<u64>().ok()
    });
    if flags.is_none_or(|flags| flags & PF_KTHREAD == 0) {
        return BTreeSet::new();
    }
    let list = read_to_string("/proc/2/task/2/children").unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// A command can't mount another folder at `/tmp`.
fn is_in_sandbox(process: &Path, temp: &Path) -> bool {
    let id = |path: &Path| metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(temp).is_some_and(|temp| id(&process.join("root/tmp")) == Some(temp))
}

/// A process with other mounts has a file at another path.
///
/// # Errors
/// A sentence: the own mounts can't be listed.
fn seen_here(process: &Path, paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut paths = paths.peekable();
    let view = |process: &Path| read_link(process.join("ns/mnt")).ok();
    if paths.peek().is_none() || view(process).is_some_and(|theirs| Some(theirs) == view(Path::new("/proc/self"))) {
        return Ok(paths.collect());
    }
    let theirs = read(process.join("mountinfo")).map_err(|error| error.to_string());
    let Ok(theirs) = theirs.and_then(|listing| mounts(&listing)) else {
        return Ok(paths.collect());
    };
    let here: Vec<Mount> = mounts(&Disk.mounts()?)?;
    Ok(paths
        .flat_map(|path| shown(&path, &theirs, &here).collect::<Vec<_>>())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::sockets::outside;

    /// A program in a network namespace of its own that listens at a path. `None`: this machine does not allow that.
    fn listens(mounts: &str, path: &Path) -> Option<Child> {
        let code = format!(
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('{}'); s.listen(); print('up', flush=True); sys.stdin.read()",
            path.display()
        );
        let script = format!("{mounts}exec python3 -c \"{code}\"");
        let mut program = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--net",
                "--mount",
                "/bin/sh",
                "-c",
                &script,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let is_up = program.stdout.as_mut()?.read_exact(&mut [0; 3]).is_ok();
        is_up.then_some(program)
    }

    fn end(mut program: Child) {
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn sb4_a_socket_of_a_program_in_another_network_namespace_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("volume")).unwrap();
        let Some(program) = listens("", &root.join("s")) else {
            return;
        };
        assert!(
            outside(&[], &[], vec![], other_namespaces(&root).unwrap())
                .unwrap()
                .contains(&root.join("s"))
        );
        // Without a look at all namespaces, no command runs.
        let problem = at_most(1, &root).unwrap_err();
        assert!(
            problem.starts_with("more than 1 network namespaces are in use") && problem.contains("stop containers"),
            "{problem}"
        );
        end(program);
        // A container has the folder at another path.
        let view = root.join("view");
        std::fs::create_dir(&view).unwrap();
        let mount = format!(
            "mount --bind '{}' '{}' && ",
            root.join("volume").display(),
            view.display()
        );
        let program = listens(&mount, &view.join("s")).unwrap();
        let found = outside(&[], &[], vec![], other_namespaces(&root).unwrap()).unwrap();
        assert!(found.contains(&root.join("volume/s")), "{found:?}");
        end(program);
    }

    #[test]
    fn sb4_sockets_of_commands_in_the_same_sandbox_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("tmp")).unwrap();
        let mount = format!("mount --bind '{}' /tmp && ", root.join("tmp").display());
        // A folder that the new mount does not cover.
        let work = tempfile::TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
        let socket = work.path().canonicalize().unwrap().join("s");
        let Some(program) = listens(&mount, &socket) else {
            return;
        };
        let found = |temp: &str| other_namespaces(&root.join(temp)).unwrap();
        assert!(found("tmp").own.contains(&socket) && !found("tmp").paths.contains(&socket));
        assert!(found("other").paths.contains(&socket));
        end(program);
        std::fs::remove_file(&socket).unwrap();
        // Also one that is bound by a relative path.
        let mount = format!("{mount} cd '{}' && ", work.path().display());
        let program = listens(&mount, Path::new("s")).unwrap();
        let met = || vec![socket.clone()];
        assert!(
            outside(&[], &[], met(), OtherNamespaces::default())
                .unwrap()
                .contains(&socket)
        );
        assert!(!outside(&[], &[], met(), found("tmp")).unwrap().contains(&socket));
        end(program);
    }
}
