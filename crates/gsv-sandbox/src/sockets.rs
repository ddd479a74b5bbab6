//! The Unix sockets of other programs, as the kernel lists them: a read-only mount does not keep a command from connecting.

use std::path::{Path, PathBuf};

/// Sockets that are masked, at most.
const SOCKETS: usize = 1000;

/// The paths in `/proc/net/unix`. PURE.
fn paths(listing: &str) -> impl Iterator<Item = PathBuf> {
    // Num RefCount Protocol Flags Type St Inode Path; abstract names begin with `@`.
    listing
        .lines()
        .filter_map(|line| line.find(" /").and_then(|at| line.get(at + 1..)))
        .map(PathBuf::from)
}

/// Sockets that exist now and that a command would see: outside `covered`, or in a writable folder, which is mounted over it. Those of
/// earlier commands are not listed, because they belong to another network.
pub(crate) fn outside(covered: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_in = |path: &Path, folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    let listing = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<PathBuf> = paths(&String::from_utf8_lossy(&listing))
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| (is_in(path, writable) || !is_in(path, covered)) && is_socket(path))
        .collect();
    found.sort();
    found.dedup();
    found.truncate(SOCKETS);
    found
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb4_paths_are_read_and_abstract_names_are_not() {
        let listing = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20219 /run/docker.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 23115\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 1 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 2 /home/u/a b.sock\n";
        let found: Vec<PathBuf> = paths(listing).collect();
        assert_eq!(found, [Path::new("/run/docker.sock"), Path::new("/home/u/a b.sock")]);
    }

    #[test]
    fn sb4_a_socket_outside_is_found_and_one_in_a_covered_folder_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let _one = std::os::unix::net::UnixListener::bind(root.join("one")).unwrap();
        let (one, all) = (root.join("one"), std::slice::from_ref(&root));
        assert!(outside(&[], &[]).contains(&one) && outside(all, all).contains(&one));
        assert!(!outside(all, &[]).contains(&one));
    }
}
