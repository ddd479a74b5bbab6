//! Restores a backup: builds the state beside its folder, checks all of it, and switches (rules BK8 to BK12).

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::archive::{Archive, damaged};
use super::manifest::{Entry, Manifest};
use super::place::{self, Place};
use super::secrets::{self, Installed};
use super::{content, databases, go_on};
use crate::embedded::layout::Layout;
use crate::embedded::lock::{self, Lock};
use crate::embedded::state::{Found, PATIENCE, State};
use crate::embedded::{record, sealing_key};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths::shell;
use crate::units::bytes;

const NEXT: &str = "Check that you may write there, and that the disk is not full.";
/// They are in the backup, or are made again.
const OF_THE_BACKUP: [&str; 2] = ["gateway", "workspace"];
const MAX_DEPTH: usize = 32;

pub struct Request<'a> {
    pub file: &'a Path,
    pub passphrase: &'a str,
    pub target: &'a Path,
    pub replace: bool,
}

#[derive(Debug)]
pub struct Restored {
    pub manifest: Manifest,
    pub target: PathBuf,
    /// Where the state is that was there before.
    pub before: Option<PathBuf>,
    pub installed: Installed,
    /// This machine has a key of the stored secrets.
    pub opens_secrets: bool,
    /// Old states of restores that were killed.
    pub healed: Vec<PathBuf>,
}

pub fn restore(request: &Request) -> Outcome<Restored> {
    // A link to the folder stays.
    let target = fs::canonicalize(request.target).unwrap_or_else(|_| request.target.to_owned());
    let old = Layout { home: target.clone() };
    refuse_running(&old)?;
    let healed = place::heal(&target)?;
    let has_files = has_files(&target)?;
    if has_files && !request.replace {
        return Err(place::occupied(&target));
    }
    // No `gsv up` starts on the old state meanwhile.
    let turn = old
        .exists()
        .then(|| Lock::take(&old.turn_lock(), PATIENCE))
        .transpose()?;
    refuse_running(&old)?;
    let archive = Archive::open(request.file, request.passphrase)?;
    let place = Place::make(&target)?;
    let new = place.new_state();
    check_space(&new, archive.manifest.bytes())?;
    let manifest = archive.each(
        |entry| create(&new, entry),
        |entry, file| check(request.file, &new, entry, file),
    )?;
    if has_files {
        carry_over(&target, &new)?;
    }
    go_on()?;
    let installed = secrets::install(&new)?;
    let layout = Layout { home: new };
    layout.ensure()?;
    let opens_secrets = sealing_key::opens(&layout)?;
    let before = place.switch(has_files)?;
    drop(turn);
    Ok(Restored {
        manifest,
        target,
        before,
        installed,
        opens_secrets,
        healed,
    })
}

fn refuse_running(layout: &Layout) -> Outcome {
    let home = layout.home.display();
    let is_held = lock::is_held(&layout.supervisor_lock());
    let workerd = match State::read(&layout.state()) {
        Found::State(state) => state.workerd(),
        Found::Absent | Found::Damaged => None,
    };
    if is_held || workerd.is_some_and(|process| process.is_alive()) || record::running(layout).is_some() {
        return Err(Failure::failed(
            format!("A gateway runs with the state in {home}, so nothing was restored."),
            format!(
                "Stop it with `GSV_HOME={} gsv down`, then run the command again.",
                shell(&layout.home)
            ),
        ));
    }
    for node in fs::read_dir(layout.home.join("node")).into_iter().flatten().flatten() {
        if holds_lock(&node.path(), 3) {
            return Err(Failure::failed(
                format!(
                    "The node `{}` runs with its files in {home}, so nothing was restored.",
                    node.file_name().display()
                ),
                "Stop `gsv node`, then run the command again.",
            ));
        }
    }
    Ok(())
}

/// Whether a process holds a file `lock` in or below a folder.
fn holds_lock(dir: &Path, depth: usize) -> bool {
    lock::is_held(&dir.join("lock"))
        || (depth > 0
            && fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_lock(&entry.path(), depth - 1)))
}

fn has_files(target: &Path) -> Outcome<bool> {
    match fs::read_dir(target) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).or_fail(
            format_args!("read {}", target.display()),
            "Choose a folder with --into DIR.",
        ),
    }
}

fn check_space(dir: &Path, needed: u64) -> Outcome {
    let free = rustix::fs::statvfs(dir).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    if needed > free {
        return Err(Failure::failed(
            format!(
                "The disk is too full: the restored state has {}, and {} are free.",
                bytes(needed),
                bytes(free)
            ),
            "Free some space, or restore elsewhere: `gsv restore FILE --into DIR`.",
        ));
    }
    Ok(())
}

/// Never follows a link and never opens a file that is there: the folder is new, and each of its parts is made here.
fn create(new: &Path, entry: &Entry) -> Outcome<File> {
    let path = new.join(&entry.path);
    let made = path
        .parent()
        .map_or(Ok(()), |dir| DirBuilder::new().recursive(true).mode(0o700).create(dir));
    let bits = if entry.executable { 0o700 } else { 0o600 };
    let file = made.and_then(|()| OpenOptions::new().write(true).create_new(true).mode(bits).open(&path));
    file.or_fail(format_args!("make {}", path.display()), NEXT)
}

fn check(archive: &Path, new: &Path, entry: &Entry, mut file: File) -> Outcome {
    let path = new.join(&entry.path);
    if content::is_database(&entry.path) {
        databases::check(&path)
            .map_err(|why| damaged(archive, &format!("the database {} is not sound: {why}", entry.path)))?;
    }
    let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(entry.modified_ns));
    let stamp = FileTimes::new().set_modified(modified.unwrap_or(SystemTime::UNIX_EPOCH));
    let kept = file.flush().and_then(|()| file.set_times(stamp));
    kept.or_fail(format_args!("write {}", path.display()), NEXT)
}

/// What belongs to this machine and not to the gateway moves on with it: above all the nodes' ledgers, which know the calls that a
/// restored gateway sends again.
fn carry_over(old: &Path, new: &Path) -> Outcome {
    for entry in fs::read_dir(old).or_fail(format_args!("read {}", old.display()), NEXT)? {
        let entry = entry.or_fail(format_args!("read {}", old.display()), NEXT)?;
        if !OF_THE_BACKUP.iter().any(|name| entry.file_name() == **name) {
            let (from, to) = (entry.path(), new.join(entry.file_name()));
            copy_tree(&from, &to, MAX_DEPTH).or_fail(format_args!("copy {}", from.display()), NEXT)?;
        }
    }
    Ok(())
}

/// Links and special files stay behind, in the old state.
fn copy_tree(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        fs::copy(from, to)?;
    } else if kind.is_dir() {
        if depth == 0 {
            return Err(io::Error::other("its folders are nested too deeply"));
        }
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), depth - 1)?;
        }
    }
    Ok(())
}
