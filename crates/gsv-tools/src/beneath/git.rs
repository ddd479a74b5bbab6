//! Names of files that make git run programs, in a directory of any name: a bare repository has none that begins with a dot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// In any folder. `HEAD` makes its folder a repository.
const NAMES: [&[u8]; 5] = [b"head", b"config", b"config.worktree", b"commondir", b"gitdir"];

/// The gateway's policy asks about these, and of the hooks only about the names that git knows.
pub(super) fn is_setting(folder: &Path, name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    let is_in = |other: &str| {
        folder
            .file_name()
            .is_some_and(|folder| folder.eq_ignore_ascii_case(other))
    };
    NAMES.contains(&name.as_slice())
        || (is_in("hooks") && !name.contains(&b'.'))
        || (is_in("info") && name == b"attributes")
}
