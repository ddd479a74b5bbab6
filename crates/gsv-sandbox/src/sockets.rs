//! Finds the Unix sockets of other programs, so that they are hidden: a read-only mount does not keep a command from connecting. Linux lists them for
//! each network namespace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::look::{Disk, Kind, Look};
use crate::mounts::without_links;
use crate::networks::OtherNamespaces;
use crate::relative::listed;

/// Sockets that are masked, at most.
const SOCKETS: usize = 1_000;
/// Entries of writable folders that are looked at, at most.
const ENTRIES: usize = 500_000;

/// Sockets that exist now and that a command would see: outside `covered`, or in a writable folder, which is mounted over it. `met`: sockets
/// that another search has found. They are masked where a program listens that the kernel does not list, such as that of another user in a
/// container. Sockets of earlier commands are left out. `others`: in other network namespaces.
///
/// The kernel lists a socket under the path of its first moment, also after a command has moved the folder above it. So when another
/// program has a socket in a writable folder, all sockets in that folder are taken for sockets of other programs.
///
/// # Errors
/// A sentence: the list can't be read; such a socket is not at its place, and the folder can't be searched for it; a program has left the
/// folder of a socket that it bound by a relative path; or there are too many.
pub(crate) fn outside(
    covered: &[PathBuf],
    writable: &[PathBuf],
    met: Vec<PathBuf>,
    others: OtherNamespaces,
) -> Result<Vec<PathBuf>, String> {
    let listing = std::fs::read("/proc/net/unix")
        .map_err(|error| format!("the sockets of other programs can't be listed: {error}"))?;
    let (absolute, mut relative): (Vec<_>, Vec<_>) =
        listed(&String::from_utf8_lossy(&listing)).partition(|socket| socket.path.is_absolute());
    relative.retain(|socket| socket.is_open);
    relative.extend(others.relative);
    let located = crate::relative::absolute(&relative)?;
    let paths = absolute.into_iter().map(|socket| socket.path);
    let is_own = |path: &PathBuf| others.own.contains(path);
    let mut met: Vec<PathBuf> = met.into_iter().filter(|path| !is_own(path) && is_used(path)).collect();
    if !met.is_empty() {
        let own = crate::relative::absolute(&others.own_relative)?.into_iter();
        let own: BTreeSet<PathBuf> = own.filter_map(|path| path.canonicalize().ok()).collect();
        met.retain(|path| !own.contains(path));
    }
    let listed = paths.chain(others.paths).chain(located).chain(met);
    among(listed, covered, writable, ENTRIES)
}

/// Whether a program has the socket open, as far as can be known. The connection of another type makes the kernel tell, and the program
/// does not notice.
fn is_used(path: &Path) -> bool {
    use std::os::fd::AsRawFd as _;
    let Ok(file) = without_links(path) else {
        return false;
    };
    // The path itself may be too long for an address.
    let address = format!("/proc/self/fd/{}", file.as_raw_fd());
    let refused = std::os::unix::net::UnixDatagram::unbound().and_then(|socket| socket.connect(address));
    !refused.is_err_and(|error| error.raw_os_error() == Some(libc::ECONNREFUSED))
}

fn among(
    listed: impl Iterator<Item = PathBuf>,
    covered: &[PathBuf],
    writable: &[PathBuf],
    entries: usize,
) -> Result<Vec<PathBuf>, String> {
    let is_in = |path: &Path, folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    let (mut found, mut folders, mut lost) = (Vec::new(), BTreeSet::new(), None);
    for path in listed {
        // A socket file that no program has open may have been put there, in the place of the moved one.
        let is_there = |path: &PathBuf| is_socket(path) && (!is_in(path, writable) || is_used(path));
        let real = path.canonicalize().ok().filter(is_there);
        let Some(place) = path.ancestors().find_map(|above| above.canonicalize().ok()) else {
            continue;
        };
        let around = writable.iter().filter(|folder| place.starts_with(folder));
        folders.extend(around.cloned());
        match real {
            Some(real) if is_in(&real, writable) || !is_in(&real, covered) => found.push(real),
            None if is_in(&place, writable) => lost = Some(path),
            _ => {}
        }
    }
    let mut left = entries;
    for folder in &folders {
        // A folder in another one was looked at with it.
        let is_done = folder.ancestors().skip(1).any(|above| folders.contains(above));
        if !is_done
            && !sockets_below(folder, &Disk, &mut left, &mut found)
            && let Some(path) = &lost
        {
            return Err(format!(
                "the socket {} of another program was moved, and {} can't be searched for it, because it has more than {entries} files or a folder that can't be read; end that program, or remove what is not needed",
                path.display(),
                folder.display()
            ));
        }
    }
    found.sort();
    found.dedup();
    if found.len() > SOCKETS {
        return Err(format!(
            "there are {} sockets that other programs may have, {} among them, and at most {SOCKETS} can be masked; remove what is not needed",
            found.len(),
            found.last().map(|last| last.display().to_string()).unwrap_or_default(),
        ));
    }
    Ok(found)
}

/// False: not everything was looked at. There are more entries than `left`, or a folder of the user can't be read.
fn sockets_below(folder: &Path, look: &dyn Look, left: &mut usize, found: &mut Vec<PathBuf>) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = look.try_list(&folder, left.saturating_add(1)) else {
            return false;
        };
        let Some(rest) = left.checked_sub(entries.len()) else {
            return false;
        };
        *left = rest;
        for (name, kind) in entries {
            match kind {
                Kind::Dir => folders.push(folder.join(name)),
                Kind::Socket => found.push(folder.join(name)),
                Kind::File | Kind::Link | Kind::Other => {}
            }
        }
    }
    true
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;

    #[test]
    fn sb4_a_socket_outside_is_found_and_one_in_a_covered_folder_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let _one = std::os::unix::net::UnixListener::bind(root.join("one")).unwrap();
        let (one, all) = (root.join("one"), std::slice::from_ref(&root));
        assert!(
            outside(&[], &[], vec![], OtherNamespaces::default())
                .unwrap()
                .contains(&one)
                && outside(all, all, vec![], OtherNamespaces::default())
                    .unwrap()
                    .contains(&one)
        );
        assert!(
            !outside(all, &[], vec![], OtherNamespaces::default())
                .unwrap()
                .contains(&one)
        );
    }

    #[test]
    fn sb4_a_socket_is_used_while_a_program_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().canonicalize().unwrap().join("a".repeat(100));
        std::fs::create_dir(&long).unwrap();
        let bind = |name: &str| {
            let path = dir.path().join(name);
            let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
            std::fs::rename(path, long.join(name)).unwrap();
            socket
        };
        let (one, two) = (bind("one"), bind("two"));
        drop(two);
        let three = std::os::unix::net::UnixDatagram::bind(dir.path().join("three")).unwrap();
        assert!(is_used(&long.join("one")) && is_used(&dir.path().canonicalize().unwrap().join("three")));
        assert!(!is_used(&long.join("two")) && !is_used(&long.join("none")));
        // The programs have noticed nothing.
        one.set_nonblocking(true).unwrap();
        three.set_nonblocking(true).unwrap();
        let nothing = Some(std::io::ErrorKind::WouldBlock);
        assert_eq!(one.accept().err().map(|error| error.kind()), nothing);
        assert_eq!(three.recv(&mut [0]).err().map(|error| error.kind()), nothing);
    }

    #[test]
    fn sb4_a_folder_that_can_not_be_read_is_not_taken_for_an_empty_one() {
        let disk = || Fake::of(&["/ws/a/b/", "/ws/c"]);
        let is_whole = |disk: &Fake, mut left: usize| sockets_below(Path::new("/ws"), disk, &mut left, &mut vec![]);
        assert!(is_whole(&disk(), 3) && !is_whole(&disk(), 2));
        assert!(!is_whole(&disk().closed("/ws/a/b"), 3));
    }

    #[test]
    fn sb4_a_socket_that_was_moved_in_a_writable_folder_is_found_also_when_another_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let all = std::slice::from_ref(&root);
        let (run, moved) = (root.join("run"), root.join("deep/moved"));
        std::fs::create_dir_all(&run).unwrap();
        std::fs::create_dir_all(root.join("deep")).unwrap();
        let _other = std::os::unix::net::UnixListener::bind(run.join("s")).unwrap();
        std::fs::rename(&run, &moved).unwrap();
        let listed = || std::iter::once(run.join("s"));
        let found = |entries| among(listed(), &[], all, entries);
        assert_eq!(found(ENTRIES), Ok(vec![moved.join("s")]));
        let problem = found(2).unwrap_err();
        assert!(problem.contains("run/s of another program was moved"), "{problem}");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("s"), "").unwrap();
        assert_eq!(found(ENTRIES), Ok(vec![moved.join("s")]));
        std::fs::remove_file(run.join("s")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(run.join("s")).unwrap());
        assert!(
            found(3).is_err(),
            "a socket that no program has open is not the moved one"
        );
        std::fs::remove_file(run.join("s")).unwrap();
        let _own = std::os::unix::net::UnixListener::bind(run.join("s")).unwrap();
        assert_eq!(found(ENTRIES), Ok(vec![moved.join("s"), run.join("s")]));
        for number in 0..SOCKETS {
            drop(std::os::unix::net::UnixListener::bind(root.join(format!("a{number}"))).unwrap());
        }
        let problem = found(ENTRIES).unwrap_err();
        assert!(
            problem.contains("1002 sockets") && problem.contains("run/s among"),
            "{problem}"
        );
        // Nothing of another program is here, so the command's own sockets are not masked.
        assert_eq!(among(std::iter::once("/none/s".into()), &[], all, ENTRIES), Ok(vec![]));
    }
}
