//! The folder that a state is restored into, and the one rename that puts it there (rules BK10 and BK11). A new state is built beside the
//! folder. It takes the folder's place by a rename, or by an exchange of the two names when there is a state already; so there is the old
//! state or the new one at every moment.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use jiff::Zoned;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::embedded::lock::{self, Lock};
use crate::exit::{Failure, OrFail, Outcome};
use crate::paths::shell;

const NEW: &str = "new";
/// Held while the folder is in use.
const LOCK: &str = "lock";
/// The inode of the folder `new`: another one there is the old state.
const MARK: &str = "inode";
const NEXT: &str = "Check that you may write there, and that the disk is not full.";

pub struct Place {
    target: PathBuf,
    /// A folder beside the target. Removed when dropped, unless it holds the old state.
    aside: PathBuf,
    inode: u64,
    is_switched: bool,
    _lock: Lock,
}

fn prefix(target: &Path) -> Outcome<(PathBuf, String)> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(Failure::usage(
            format!("{} can't be a state folder.", target.display()),
            "Choose a folder below it.",
        ));
    };
    Ok((parent.to_owned(), format!(".{}.restore-", name.to_string_lossy())))
}

impl Place {
    pub fn make(target: &Path) -> Outcome<Self> {
        let (parent, prefix) = prefix(target)?;
        let aside = parent.join(format!("{prefix}{}", ulid::Ulid::generate().to_string().to_lowercase()));
        let doing = format!("make a folder in {}", parent.display());
        let make = |dir: &Path| DirBuilder::new().mode(0o700).create(dir);
        make(&aside).or_fail(&doing, NEXT)?;
        let Some(lock) = Lock::try_take(&aside.join(LOCK))? else {
            return Err(Failure::later(
                "Another restore uses the same folder.",
                "Run the command again.",
            ));
        };
        let mut place = Self {
            target: target.to_owned(),
            aside,
            inode: 0,
            is_switched: false,
            _lock: lock,
        };
        make(&place.new_state()).or_fail(&doing, NEXT)?;
        place.inode = fs::metadata(place.new_state()).or_fail(&doing, NEXT)?.ino();
        fs::write(place.aside.join(MARK), place.inode.to_string()).or_fail(&doing, NEXT)?;
        Ok(place)
    }

    /// The folder in which the new state is built.
    pub fn new_state(&self) -> PathBuf {
        self.aside.join(NEW)
    }

    /// Puts the new state in place. Returns where the old one is. `replace`: the target has a state.
    pub fn switch(mut self, replace: bool) -> Outcome<Option<PathBuf>> {
        let doing = format!("put the restored state at {}", self.target.display());
        // Everything is on disk before the name says so.
        rustix::fs::sync();
        if !replace {
            // Fails when files have appeared there meanwhile.
            fs::rename(self.new_state(), &self.target).map_err(|error| match error.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => occupied(&self.target),
                _ => not_switched(&doing, &self.target, &error),
            })?;
            self.is_switched = true;
            sync_folder(&self.target);
            return Ok(None);
        }
        renameat_with(CWD, self.new_state(), CWD, &self.target, RenameFlags::EXCHANGE)
            .map_err(|error| not_switched(&doing, &self.target, &error.into()))?;
        self.is_switched = true;
        sync_folder(&self.target);
        let before = keep(&self.aside.join(NEW), &self.target);
        before.map(Some).or_fail(
            format_args!("name the old state, which is in {}", self.new_state().display()),
            "The new state is in place. Move the old one where you want it.",
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_switched || !self.new_state().exists() {
            let _ = fs::remove_dir_all(&self.aside);
        }
    }
}

pub fn occupied(target: &Path) -> Failure {
    Failure::failed(
        format!("{} has files already, and nothing was changed.", target.display()),
        "To keep them beside it under another name and put the backup in their place, add --replace. Or restore elsewhere: `gsv restore FILE --into DIR`.",
    )
}

fn not_switched(doing: &str, target: &Path, error: &io::Error) -> Failure {
    let before = format!("{}.before", target.display());
    let (from, to) = (shell(target), shell(Path::new(&before)));
    match error.kind() {
        ErrorKind::CrossesDevices | ErrorKind::ResourceBusy => Failure::failed(
            format!(
                "{} is a disk of its own, so it can't be replaced in one step. Nothing was changed.",
                target.display()
            ),
            "Restore into a folder on that disk with --into DIR, and set GSV_HOME to it.",
        ),
        ErrorKind::InvalidInput | ErrorKind::Unsupported => Failure::failed(
            "This file system can't exchange two folders in one step. Nothing was changed.",
            format!("Move the old state away with `mv {from} {to}`, then run the command again without --replace."),
        ),
        _ => Failure::failed(format!("Could not {doing}: {error}. Nothing was changed."), NEXT),
    }
}

/// Gives an old state its name beside the target.
fn keep(old: &Path, target: &Path) -> io::Result<PathBuf> {
    let date = Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    for number in 1..1_000 {
        let end = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let name = PathBuf::from(format!("{}.before-{date}{end}", target.display()));
        if fs::symlink_metadata(&name).is_err() {
            fs::rename(old, &name)?;
            sync_folder(&name);
            return Ok(name);
        }
    }
    Err(io::Error::from(ErrorKind::AlreadyExists))
}

/// Cleans up after restores that were killed: what was half done is removed, an old state that was already replaced gets its name.
/// Returns these names.
pub fn heal(target: &Path) -> Outcome<Vec<PathBuf>> {
    let (parent, prefix) = prefix(target)?;
    let mut kept = Vec::new();
    for entry in fs::read_dir(&parent).into_iter().flatten().flatten() {
        let aside = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(&prefix);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) || lock::is_held(&aside.join(LOCK)) {
            continue;
        }
        let new = aside.join(NEW);
        let inode = fs::metadata(&new).map(|meta| meta.ino()).ok();
        let mark = fs::read_to_string(aside.join(MARK))
            .ok()
            .and_then(|text| text.parse::<u64>().ok());
        if inode.is_some() && mark.is_some() && inode != mark {
            let old = keep(&new, target);
            kept.push(old.or_fail(format_args!("name the old state in {}", new.display()), NEXT)?);
        }
        let _ = fs::remove_dir_all(&aside);
    }
    Ok(kept)
}

/// Best effort: the name is there, and only a loss of power could undo it.
fn sync_folder(path: &Path) {
    if let Some(parent) = path.parent() {
        let _ = File::open(parent).and_then(|dir| dir.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn bk10_a_new_state_takes_the_place_of_nothing_an_empty_folder_or_an_old_state() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("home");
        for replace in [false, true] {
            let place = Place::make(&target).unwrap();
            fs::write(place.new_state().join("a"), format!("{replace}")).unwrap();
            let old = place.switch(replace).unwrap();
            assert_eq!(fs::read_to_string(target.join("a")).unwrap(), format!("{replace}"));
            assert_eq!(old.is_some(), replace);
            if let Some(old) = old {
                assert_eq!(fs::read_to_string(old.join("a")).unwrap(), "false");
            }
        }
        assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
        let place = Place::make(&target).unwrap();
        assert!(place.switch(false).unwrap_err().next.contains("--replace"));
        assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
    }

    #[test]
    fn bk11_what_a_killed_restore_left_is_removed_before_the_switch_and_kept_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("home");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("a"), "old").unwrap();
        let kill = |place: Place| {
            let aside = place.aside.clone();
            std::mem::forget(place);
            // The lock of a killed process is free.
            fs::remove_file(aside.join(LOCK)).unwrap();
            aside
        };
        let before = kill(Place::make(&target).unwrap());
        assert_eq!(heal(&target).unwrap(), Vec::<PathBuf>::new());
        assert!(!before.exists());

        let place = Place::make(&target).unwrap();
        fs::write(place.new_state().join("a"), "new").unwrap();
        renameat_with(CWD, place.new_state(), CWD, &target, RenameFlags::EXCHANGE).unwrap();
        let after = kill(place);
        let kept = heal(&target).unwrap();
        assert!(!after.exists());
        assert_eq!(fs::read_to_string(kept[0].join("a")).unwrap(), "old");
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
    }

    #[test]
    fn bk11_a_restore_that_works_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("home");
        let place = Place::make(&target).unwrap();
        heal(&target).unwrap();
        assert!(place.new_state().is_dir());
    }
}
