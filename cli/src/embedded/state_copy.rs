//! The copy of the state that the first start of another version makes (rules UP1, UP3, UP4): how it is made, put back and removed. Decides
//! nothing: `upgrade.rs` does. The gateway does not run meanwhile, which the caller's locks ensure. The agent's files are not copied, because
//! no version converts them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use crate::exit::{Failure, OrFail, Outcome};
use crate::private_file;
use crate::units::{bytes, now_ms};

/// The folders with what versions convert: databases, and the files of the services built into workerd.
const FOLDERS: [&str; 2] = ["do", "services"];
const ABOUT: &str = "upgrade.json";
/// An index that each process builds on its own.
const SHARED_MEMORY: &str = ".sqlite-shm";
/// Beside the copy, a start writes scripts and logs.
const RESERVE_BYTES: u64 = 16 << 20;
const NEXT: &str = "Check that the state folder is yours and writable, then run the command again.";

/// `upgrade.json` in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The version that the state is of. Absent: it is older than this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version whose first start it was made for.
    pub to: String,
    pub made_at: u64,
    /// The copied folders. One of them in the place of the state has been put back.
    inodes: BTreeMap<String, u64>,
}

/// Why a copy takes the place of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A start has failed or was interrupted. The other state is kept in the place of an earlier one.
    Failed,
    /// The person has asked for it. The other state has the person's work, so nothing overwrites it.
    Rollback,
}

/// Where the state is that a copy has replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub why: Why,
    pub path: PathBuf,
}

/// A rollback is refused when so many earlier ones have kept their states.
pub const MOST_ROLLED_BACK: usize = 3;

/// The states that rollbacks have kept and the person has not removed.
pub fn rolled_back(layout: &Layout) -> Vec<PathBuf> {
    let names = (1..=u32::try_from(MOST_ROLLED_BACK).unwrap_or(u32::MAX)).map(|number| layout.rolled_back(number));
    names.filter(|path| is_there(path)).collect()
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The whole copy. `None`: there is none, or it can't be used.
pub fn find(layout: &Layout) -> Option<About> {
    about(&layout.before_upgrade())
}

/// Whether there may be a copy, whole or being put back: a glance, for starts that have nothing else to do.
pub fn leaves_trace(layout: &Layout) -> bool {
    layout.before_upgrade().exists()
        || [Why::Failed, Why::Rollback]
            .iter()
            .any(|why| putting_back(layout, *why).exists())
}

/// Whether there is a state to copy.
pub fn has_state(layout: &Layout) -> bool {
    fs::read_dir(layout.durable()).is_ok_and(|mut entries| entries.next().is_some())
}

fn about(dir: &Path) -> Option<About> {
    serde_json::from_slice(&fs::read(dir.join(ABOUT)).ok()?).ok()
}

fn making(layout: &Layout) -> PathBuf {
    layout.gateway().join("before-upgrade.new")
}

fn putting_back(layout: &Layout, why: Why) -> PathBuf {
    layout.gateway().join(match why {
        Why::Failed => "before-upgrade.back",
        Why::Rollback => "before-upgrade.rollback",
    })
}

/// Makes the copy, in the place of an earlier one. A kill leaves none, the earlier one or the new one.
pub fn make(layout: &Layout, from: Option<&str>, to: &str) -> Outcome {
    ensure_space(layout, to)?;
    let new = making(layout);
    let made = fill(layout, &new, from, to).and_then(|()| {
        // Everything is on disk before the name says so.
        rustix::fs::sync();
        set_aside(layout, to)?;
        fs::rename(&new, layout.before_upgrade())
    });
    if let Err(error) = made {
        let _ = remove_dir(&new);
        let failure = Err(error).or_fail(format_args!("copy the state before version {to} starts with it"), NEXT);
        return failure.map_err(|failure: Failure| Failure {
            message: format!("{} Nothing was started, and the state is as it was.", failure.message),
            ..failure
        });
    }
    sync_dir(&layout.gateway());
    Ok(())
}

/// Makes place for a copy. The copy of the version that is about to start is kept aside: it goes back to an earlier version, may refuse the
/// current state, and then its own is the way out.
fn set_aside(layout: &Layout, to: &str) -> io::Result<()> {
    if find(layout).is_some_and(|copy| copy.from.as_deref() == Some(to)) {
        remove_dir(&layout.before_rollback())?;
        return fs::rename(layout.before_upgrade(), layout.before_rollback());
    }
    remove_dir(&layout.before_upgrade())
}

pub fn find_aside(layout: &Layout) -> Option<About> {
    about(&layout.before_rollback())
}

/// Makes the copy that was kept aside the one that is put back.
pub fn bring_back(layout: &Layout) -> Outcome {
    if find_aside(layout).is_none() {
        return Ok(());
    }
    remove_dir(&layout.before_upgrade())
        .and_then(|()| fs::rename(layout.before_rollback(), layout.before_upgrade()))
        .or_fail("bring the copy of the state back", NEXT)
}

/// Best effort: it only takes space.
pub fn forget_aside(layout: &Layout) {
    let _ = remove_dir(&layout.before_rollback());
}

fn ensure_space(layout: &Layout, to: &str) -> Outcome {
    let mut needed = RESERVE_BYTES;
    for folder in FOLDERS {
        needed += size(&layout.gateway().join(folder)).or_fail("look at the state", NEXT)?;
    }
    // Where the disk does not say how much is free, the copy itself finds out.
    let Ok(disk) = rustix::fs::statvfs(layout.gateway().as_path()) else {
        return Ok(());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "The disk has too little space for a copy of the state, which version {to} needs before its first start: {} are needed and {} are free. Nothing was started, and the state is as it was.",
            bytes(needed),
            bytes(free)
        ),
        "Free some space (`df -h` shows how full each disk is), then run the command again; or go on with the earlier version.",
    ))
}

fn fill(layout: &Layout, new: &Path, from: Option<&str>, to: &str) -> io::Result<()> {
    remove_dir(new)?;
    make_dir(new)?;
    let mut inodes = BTreeMap::new();
    for folder in FOLDERS {
        copy_dir(&layout.gateway().join(folder), &new.join(folder))?;
        inodes.insert(folder.to_owned(), fs::metadata(new.join(folder))?.ino());
    }
    let about = About {
        from: from.map(str::to_owned),
        to: to.to_owned(),
        made_at: now_ms(),
        inodes,
    };
    fs::write(new.join(ABOUT), serde_json::to_vec_pretty(&about)?)
}

/// Puts the copy back, and keeps the other state. `None`: there is no copy. After a kill at any step the next call completes it.
pub fn put_back(layout: &Layout, why: Why) -> Outcome<Option<Kept>> {
    let back = putting_back(layout, why);
    let doing = "put the state from before the upgrade back";
    if !back.exists() {
        if find(layout).is_none() {
            return Ok(None);
        }
        fs::rename(layout.before_upgrade(), &back).or_fail(doing, NEXT)?;
    }
    let Some(about) = about(&back) else {
        return Err(Failure::failed(
            format!(
                "{} is damaged, so the state from before the upgrade can't be put back.",
                back.join(ABOUT).display()
            ),
            "Restore a backup with `gsv restore`, or move that folder away to start with the state as it is.",
        ));
    };
    if why == Why::Rollback {
        // The later version was ready. Before the state, so that no kill leaves the earlier one with the mark of the later version.
        mark(layout, about.from.as_deref())?;
    }
    for folder in FOLDERS {
        exchange(
            &back.join(folder),
            &layout.gateway().join(folder),
            about.inodes.get(folder).copied(),
        )
        .or_fail(doing, "The next `gsv up` tries it again.")?;
    }
    rustix::fs::sync();
    let path = match why {
        Why::Failed => {
            let path = layout.failed_upgrade();
            remove_dir(&path).or_fail("remove the state of an earlier failed start", NEXT)?;
            path
        }
        Why::Rollback => unused(layout),
    };
    fs::rename(&back, &path).or_fail("keep the state that was replaced", "The next `gsv up` tries it again.")?;
    sync_dir(&layout.gateway());
    Ok(Some(Kept { why, path }))
}

/// A name that no earlier rollback has.
fn unused(layout: &Layout) -> PathBuf {
    let mut number = 1;
    while is_there(&layout.rolled_back(number)) {
        number += 1;
    }
    layout.rolled_back(number)
}

/// Stores the version that was ready last.
fn mark(layout: &Layout, version: Option<&str>) -> Outcome {
    let path = layout.last_start();
    match version {
        Some(version) => private_file::write(&path, version),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).or_fail("forget the version", NEXT),
            _ => Ok(()),
        },
    }
}

/// Completes what a kill has interrupted.
pub fn heal(layout: &Layout) -> Outcome<Option<Kept>> {
    for why in [Why::Failed, Why::Rollback] {
        if putting_back(layout, why).exists() {
            return put_back(layout, why);
        }
    }
    Ok(None)
}

/// The file that makes the copy valid goes first, so that a part of a copy is none.
pub fn remove(layout: &Layout) -> io::Result<()> {
    match fs::remove_file(layout.before_upgrade().join(ABOUT)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    remove_dir(&layout.before_upgrade())
}

/// Both names have a folder at every moment, so a program that knows nothing of this never begins with an empty state.
fn exchange(copy: &Path, place: &Path, inode: Option<u64>) -> io::Result<()> {
    if fs::metadata(place).is_ok_and(|meta| Some(meta.ino()) == inode) {
        return Ok(());
    }
    renameat_with(CWD, copy, CWD, place, RenameFlags::EXCHANGE)?;
    Ok(())
}

fn size(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in entries(dir)? {
        let (entry, meta) = entry?;
        sum += if meta.is_dir() { size(&entry)? } else { meta.len() };
    }
    Ok(sum)
}

fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    make_dir(to)?;
    for entry in entries(from)? {
        let (path, meta) = entry?;
        let Some(name) = path.file_name() else { continue };
        if meta.is_dir() {
            copy_dir(&path, &to.join(name))?;
        } else if meta.is_file() {
            // Shares the blocks where the file system can.
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// What is copied from a folder. A folder that does not exist has nothing.
fn entries(dir: &Path) -> io::Result<impl Iterator<Item = io::Result<(PathBuf, fs::Metadata)>>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        entries => Some(entries?),
    };
    Ok(entries.into_iter().flatten().filter_map(|entry| match entry {
        Ok(entry) if entry.file_name().to_string_lossy().ends_with(SHARED_MEMORY) => None,
        Ok(entry) => Some(entry.metadata().map(|meta| (entry.path(), meta))),
        Err(error) => Some(Err(error)),
    }))
}

fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Best effort: the names are there, and only a loss of power could undo them.
fn sync_dir(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}
