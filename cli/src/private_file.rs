//! Small private files of the state and configuration folders: written whole, read with a limit.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gsv_node::dangling_link;
use serde::de::DeserializeOwned;

use crate::exit::{Failure, OrFail, Outcome};
use crate::paths;

const MAX_BYTES: u64 = 64 * 1024;
const OTHERS: u32 = 0o077;

/// A reader sees the old content or the new one, never a part.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    paths::write_private_file(path, content.as_ref()).or_fail(
        format_args!("write {}", path.display()),
        "Check that the folder is yours and that the disk is not full.",
    )
}

/// As `write`, for what is worthless after a restart of the machine: a start does not wait for the disk.
pub fn write_unsynced(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    paths::write_unsynced_private_file(path, content.as_ref()).or_fail(
        format_args!("write {}", path.display()),
        "Check that the folder is yours and that the disk is not full.",
    )
}

/// As `write`, but does not touch a private file that has this content already.
pub fn write_changed(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    if is_private(path) && fs::read(path).is_ok_and(|kept| kept == content.as_ref()) {
        return Ok(());
    }
    write(path, content)
}

/// Whether this is a file, not a link to one, that no other user can read or change.
pub fn is_private(path: &Path) -> bool {
    let is_private = |meta: Metadata| meta.is_file() && meta.permissions().mode() & OTHERS == 0;
    fs::symlink_metadata(path).is_ok_and(is_private)
}

/// A value that is stored as JSON. `None`: there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path, repair: &str) -> Outcome<Option<T>> {
    let Some(text) = read_private(path, repair)? else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text);
    read.map(Some).map_err(|_| unusable(path, "it is damaged", repair))
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
        Err(error) if error.kind() == ErrorKind::NotFound => return absent(path),
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

/// A link without its target is no absent file: the user has put something there, and GSV would go on with defaults.
fn absent(path: &Path) -> Outcome<Option<String>> {
    let Some(found) = dangling_link(path) else {
        return Ok(None);
    };
    let next = format!(
        "Restore {}, or remove the link: `rm {}`.",
        found.target.display(),
        paths::shell(&found.link)
    );
    Err(Failure::failed(
        format!("{} can't be read: {found}.", path.display()),
        next,
    ))
}

pub fn unusable(path: &Path, why: &str, repair: &str) -> Failure {
    Failure::failed(format!("{} cannot be used: {why}.", path.display()), repair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s20_a_file_is_written_again_when_its_content_or_its_mode_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
        write_changed(&path, "one").unwrap();
        let first = inode();
        write_changed(&path, "one").unwrap();
        assert_eq!(inode(), first);
        write_changed(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        set_mode(0o644);
        write_changed(&path, "two").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let target = dir.path().join("target");
        fs::rename(&path, &target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        write_changed(&path, "two").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
}
