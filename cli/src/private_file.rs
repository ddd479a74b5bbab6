//! Small private files of the state and configuration folders: written whole, read with a limit.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

const MAX_BYTES: u64 = 64 * 1024;

/// A reader sees the old content or the new one, never a part.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    paths::write_private_file(path, content.as_ref()).or_fail(
        format_args!("write {}", path.display()),
        "Check that the folder is yours and that the disk is not full.",
    )
}

/// The text of a file that may hold secrets, or `None` when it does not exist. Fails when other users can read the file.
/// `repair` tells the user what to do about a file that cannot be used.
pub fn read_private(path: &Path, repair: &str) -> Outcome<Option<String>> {
    read_checked(path, repair, |meta, _| paths::check_private_file(path, meta))
}

/// As `read_private`, with another check of the file's owner and permissions, which may depend on its text.
pub fn read_checked(
    path: &Path,
    repair: &str,
    check: impl FnOnce(&Metadata, &str) -> Outcome,
) -> Outcome<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.or_fail(format_args!("open {}", path.display()), repair)?,
    };
    let meta = file
        .metadata()
        .or_fail(format_args!("look at {}", path.display()), repair)?;
    if !meta.is_file() {
        return Err(unusable(path, "it is not a file", repair));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .or_fail(format_args!("read {}", path.display()), repair)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unusable(path, &format!("it has more than {MAX_BYTES} bytes"), repair));
    }
    check(&meta, &text)?;
    Ok(Some(text))
}

pub fn unusable(path: &Path, why: &str, repair: &str) -> Failure {
    Failure::failed(format!("{} cannot be used: {why}.", path.display()), repair)
}
