//! The configuration folder and the state folder of this machine. Makes folders private and refuses folders that others can
//! read or change (promises S20). Never reads their files.

use std::env;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit::{Failure, OrFail, Outcome};

const OTHERS_ANY: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

fn from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub fn home() -> Outcome<PathBuf> {
    from_env("HOME").ok_or_else(|| {
        Failure::usage(
            "HOME is not set, so GSV has no folder for its files.",
            "Set HOME, or GSV_HOME and GSV_CONFIG_DIR.",
        )
    })
}

/// `$GSV_CONFIG_DIR`, else `$XDG_CONFIG_HOME/gsv`, else `~/.config/gsv`.
pub fn config_dir() -> Outcome<PathBuf> {
    if let Some(dir) = from_env("GSV_CONFIG_DIR") {
        return absolute(&dir);
    }
    match from_env("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute()) {
        Some(dir) => Ok(dir.join("gsv")),
        None => Ok(home()?.join(".config").join("gsv")),
    }
}

/// `$GSV_HOME`, else `~/.gsv`.
pub fn state_dir() -> Outcome<PathBuf> {
    match from_env("GSV_HOME") {
        Some(dir) => absolute(&dir),
        None => usual_state_dir(),
    }
}

/// Where the state is without `GSV_HOME`.
pub fn usual_state_dir() -> Outcome<PathBuf> {
    Ok(home()?.join(".gsv"))
}

/// `$XDG_CACHE_HOME/gsv`, else `~/.cache/gsv`. Holds nothing that can't be made again.
pub fn cache_dir() -> Outcome<PathBuf> {
    match from_env("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()) {
        Some(dir) => Ok(dir.join("gsv")),
        None => Ok(home()?.join(".cache").join("gsv")),
    }
}

fn absolute(dir: &Path) -> Outcome<PathBuf> {
    std::path::absolute(dir).or_fail(format_args!("find {}", dir.display()), "Give an absolute path.")
}

/// An absolute path without links and `..`, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                real.pop();
            }
            part => real.push(part),
        }
        real = fs::canonicalize(&real).unwrap_or(real);
    }
    real
}

/// Makes a folder that only its owner can use. A folder that others can read is made private; one that others can change is
/// refused, because its content can't be trusted.
pub fn ensure_private_dir(dir: &Path) -> Outcome<()> {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            return made.or_fail(format_args!("make the folder {}", dir.display()), unwritable_next(dir));
        }
        Err(error) => return Err(error).or_fail(format_args!("look at {}", dir.display()), unwritable_next(dir)),
        Ok(_) => {}
    }
    let meta = fs::metadata(dir).or_fail(format_args!("look at {}", dir.display()), unwritable_next(dir))?;
    if !meta.is_dir() {
        return Err(Failure::failed(
            format!("{} is not a folder.", dir.display()),
            "Move it away, or set GSV_HOME to another folder.",
        ));
    }
    check_owner(dir, &meta)?;
    let mode = meta.permissions().mode();
    if mode & OTHERS_WRITE != 0 {
        return Err(Failure::failed(
            format!(
                "{} can be changed by other users (mode {:04o}).",
                dir.display(),
                mode & 0o7777
            ),
            format!(
                "Check that all files in it are yours, then run `chmod 700 {}`.",
                shell(dir)
            ),
        ));
    }
    if mode & OTHERS_ANY != 0 {
        let closed = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
        closed.or_fail(
            format_args!("make {} private", dir.display()),
            format!("Run `chmod 700 {}`.", shell(dir)),
        )?;
    }
    if rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_err() {
        return Err(Failure::failed(
            format!("{} can't be written.", dir.display()),
            unwritable_next(dir),
        ));
    }
    Ok(())
}

/// Refuses a file with secrets that others can read or change.
pub fn check_private_file(path: &Path, meta: &Metadata) -> Outcome<()> {
    check_secret(path, meta, "create new tokens with `gsv token create`")
}

/// Refuses a file with the keys of stored secrets that others can read or change.
pub fn check_key_file(path: &Path, meta: &Metadata) -> Outcome<()> {
    check_secret(path, meta, "replace the secrets at those who gave them to you")
}

fn check_secret(path: &Path, meta: &Metadata, was_read: &str) -> Outcome<()> {
    check_owner(path, meta)?;
    let mode = meta.permissions().mode();
    if mode & OTHERS_ANY != 0 {
        return Err(Failure::failed(
            format!(
                "{} contains secrets, and other users can read it (mode {:04o}).",
                path.display(),
                mode & 0o7777
            ),
            format!(
                "Run `chmod 600 {}`. If others may have read it, {was_read}.",
                shell(path)
            ),
        ));
    }
    Ok(())
}

/// Refuses a file that decides what may be done here and that others can read or change.
pub fn check_policy_file(path: &Path, meta: &Metadata) -> Outcome<()> {
    check_owner(path, meta)?;
    let mode = meta.permissions().mode();
    if mode & OTHERS_ANY == 0 {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{} is open to other users (mode {:04o}).",
            path.display(),
            mode & 0o7777
        ),
        format!("Check that its content is yours, then run `chmod 600 {}`.", shell(path)),
    ))
}

/// Refuses a file without secrets that others can change.
pub fn check_unchangeable_file(path: &Path, meta: &Metadata) -> Outcome<()> {
    check_owner(path, meta)?;
    let mode = meta.permissions().mode();
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{} can be changed by other users (mode {:04o}).",
            path.display(),
            mode & 0o7777
        ),
        format!("Check that its content is yours, then run `chmod 600 {}`.", shell(path)),
    ))
}

fn check_owner(path: &Path, meta: &Metadata) -> Outcome<()> {
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() == me {
        return Ok(());
    }
    Err(Failure::failed(
        format!("{} belongs to another user.", path.display()),
        "Set GSV_HOME and GSV_CONFIG_DIR to folders of your own, or run as that user.",
    ))
}

fn unwritable_next(dir: &Path) -> String {
    format!(
        "Make sure that you may write there (`ls -ld {}`) and that the disk is not full, or set GSV_HOME.",
        shell(dir)
    )
}

/// A path as it can be pasted into a shell.
pub fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:,~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Writes a file so that a reader sees the old or the new one, never a part, and only its owner can read it.
pub fn write_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = folder(path);
    let file = filled(dir, content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    fs::File::open(dir)?.sync_all()
}

/// As `write_private_file`, for what is worthless after a restart of the machine: nothing is synced to the disk.
pub fn write_unsynced_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    filled(folder(path), content)?.persist(path)?;
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// How the name of a file begins until it is whole.
const UNFINISHED_PREFIX: &str = ".gsv-";
/// Letters and digits after it.
const UNFINISHED_RANDOM: usize = 6;

/// Whether `write_private_file` names a file so until it is whole.
pub fn is_unfinished(name: &str) -> bool {
    let random = name.strip_prefix(UNFINISHED_PREFIX).unwrap_or_default();
    random.len() == UNFINISHED_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a program is writing this unfinished file. One that was killed has left its file without a lock.
pub fn is_being_written(file: &Path) -> bool {
    fs::File::open(file).is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// A temporary file of its owner alone.
fn filled(dir: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED_PREFIX)
        .rand_bytes(UNFINISHED_RANDOM)
        .tempfile_in(dir)?;
    // Best effort: some disks have no locks.
    let _ = file.as_file().try_lock();
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn s20_folders_are_made_private() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        ensure_private_dir(&dir).unwrap();
        assert_eq!(mode(&dir), 0o700);
    }

    #[test]
    fn s20_a_readable_folder_is_made_private_and_a_writable_one_refused() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("state");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        ensure_private_dir(&dir).unwrap();
        assert_eq!(mode(&dir), 0o700);

        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        let failure = ensure_private_dir(&dir).unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains("0777"), "{}", failure.message);
        assert!(failure.next.contains("chmod 700"), "{}", failure.next);
    }

    #[test]
    fn s20_files_are_written_whole_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("secret");
        let draft = filled(temp.path(), b"draft").unwrap();
        assert!(is_unfinished(draft.path().file_name().unwrap().to_str().unwrap()));
        assert!(is_being_written(draft.path()));
        fs::write(&path, b"whole").unwrap();
        assert!(!is_being_written(&path));
        drop(draft);
        write_private_file(&path, b"one").unwrap();
        write_private_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(
            fs::read_dir(temp.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn paths_can_be_pasted() {
        assert_eq!(shell(Path::new("/a/b-c")), "/a/b-c");
        assert_eq!(shell(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
