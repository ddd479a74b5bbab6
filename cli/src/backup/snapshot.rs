//! Copies the state of a gateway that works into a folder of our own (rules BK1 to BK3). A first pass copies all files while the gateway
//! goes on. Then the gateway is held still, and only what has changed meanwhile is copied again: mostly the logs of a few databases. All
//! files of the copy are as they were at that one moment.

use std::collections::BTreeMap;
use std::fs::{self, FileTimes};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::content::{self, FILES, FOLDERS};
use super::go_on;
use crate::embedded::hold;
use crate::embedded::layout::Layout;
use crate::exit::{Failure, OrFail, Outcome};

const ROUNDS: usize = 5;
/// A change within the same tick of the file system's clock as the copy leaves no trace in the times.
const TICK: Duration = Duration::from_secs(2);
/// A first pass that took longer is followed by another one, so that the hold is short.
const LONG_PASS: Duration = Duration::from_secs(2);

/// What tells one content of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.len(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// Whether a later change would show.
    fn is_settled(self, now: SystemTime) -> bool {
        let at = Duration::new(u64::try_from(self.changed.0).unwrap_or(0), 0);
        now.duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|now| now >= at + TICK)
    }
}

/// A copy on its way.
pub struct Snapshot<'a> {
    home: &'a Path,
    to: &'a Path,
    /// What was copied; `None`: it may have changed since, without a trace.
    copied: BTreeMap<String, Option<Stamp>>,
    /// Links, special files, and names that are not text: these are never copied.
    pub left_out: Vec<String>,
}

/// One pass took too long.
struct TooLong;

impl<'a> Snapshot<'a> {
    /// Copies the state to the folder `to`, which is empty. Returns how long the gateway was held.
    pub fn take(layout: &'a Layout, to: &'a Path) -> Outcome<(Self, Duration)> {
        let mut snapshot = Self {
            home: &layout.home,
            to,
            copied: BTreeMap::new(),
            left_out: Vec::new(),
        };
        for _ in 0..2 {
            let began = Instant::now();
            let _ = snapshot.pass(None)?;
            if began.elapsed() < LONG_PASS {
                break;
            }
        }
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let done = hold::while_still(layout, || snapshot.pass(Some(Instant::now() + hold::LONGEST)))?;
            if matches!(done, Some(Ok(()))) {
                return Ok((snapshot, began.elapsed()));
            }
            let _ = snapshot.pass(None)?;
        }
        Err(Failure::later(
            "The state of the gateway changes faster than it can be copied.",
            "Run the command again when the gateway has less to do, or stop it with `gsv down` before.",
        ))
    }

    /// Copies what has changed since the last pass, and removes copies of files that are gone.
    fn pass(&mut self, until: Option<Instant>) -> Outcome<Result<(), TooLong>> {
        let mut seen = BTreeMap::new();
        self.left_out.clear();
        for folder in FOLDERS {
            self.walk(&self.home.join(folder), folder, &mut seen)?;
        }
        for file in FILES.into_iter().chain([content::BOOTSTRAP, content::CERTIFICATE]) {
            if let Some(meta) = look(&self.home.join(file))?.filter(fs::Metadata::is_file) {
                seen.insert(file.to_owned(), Stamp::of(&meta));
            }
        }
        for (path, stamp) in &seen {
            if self.copied.get(path) == Some(&Some(*stamp)) {
                continue;
            }
            go_on()?;
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Err(TooLong));
            }
            let settled = stamp.is_settled(SystemTime::now());
            if self.copy(path)? {
                self.copied.insert(path.clone(), settled.then_some(*stamp));
            }
        }
        let gone: Vec<String> = self
            .copied
            .keys()
            .filter(|path| !seen.contains_key(*path))
            .cloned()
            .collect();
        for path in gone {
            self.copied.remove(&path);
            remove(&self.to.join(path))?;
        }
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        Ok(if is_late { Err(TooLong) } else { Ok(()) })
    }

    fn walk(&mut self, dir: &Path, path: &str, seen: &mut BTreeMap<String, Stamp>) -> Outcome {
        let doing = || format!("read {}", dir.display());
        let next = "Check that the state folder is yours and readable.";
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.or_fail(doing(), next)?,
        };
        for entry in entries {
            let entry = entry.or_fail(doing(), next)?;
            let Ok(name) = entry.file_name().into_string() else {
                self.left_out.push(entry.path().display().to_string());
                continue;
            };
            let path = format!("{path}/{name}");
            let Some(meta) = look(&entry.path())? else { continue };
            if meta.is_dir() {
                self.walk(&entry.path(), &path, seen)?;
            } else if !meta.is_file() || !content::is_copied(&path) {
                self.left_out.push(entry.path().display().to_string());
            } else if !content::is_shared_memory(&path) {
                seen.insert(path, Stamp::of(&meta));
            }
        }
        Ok(())
    }

    /// `false`: the file is gone. The copy has the file's time of change.
    fn copy(&self, path: &str) -> Outcome<bool> {
        let (from, to) = (self.home.join(path), self.to.join(path));
        match copy_file(&from, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound && !from.exists() => remove(&to).map(|()| false),
            done => done.map(|()| true).or_fail(
                format_args!("copy {}", from.display()),
                "Check that the state folder is yours and readable.",
            ),
        }
    }
}

fn look(path: &Path) -> Outcome<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        meta => meta
            .map(Some)
            .or_fail(format_args!("look at {}", path.display()), "Check that it is yours."),
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    // A file that is not writable could not be copied a second time.
    let _ = fs::remove_file(to);
    fs::copy(from, to)?;
    let modified = fs::metadata(from)?.modified()?;
    fs::OpenOptions::new()
        .read(true)
        .open(to)?
        .set_times(FileTimes::new().set_modified(modified))
}

fn remove(path: &PathBuf) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).or_fail(format_args!("remove {}", path.display()), "Check the disk.")
        }
        _ => Ok(()),
    }
}
