//! The copies and records of one node, on the disk: `copies/<sha256>` and the append-only `changes.jsonl`. A record is durable
//! before its change is made (UN1). Decides nothing about what is kept or undone: [`super::index`] does.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest;

use super::change::{Change, FileState};
use super::index::{Index, Limits, Step};
use crate::limits;

const LOG: &str = "changes.jsonl";
const COPIES: &str = "copies";
const NEW: &str = ".new";
/// Files up to this size are copied through memory.
const SMALL_BYTES: u64 = 1024 * 1024;

const LIMITS: Limits = Limits {
    bytes: limits::UNDO_BYTES,
    age_ms: limits::UNDO_MS,
    changes: limits::UNDO_CHANGES,
};

/// Called with the name of each operation that changes the disk, before it, so that tests can stop there and see the order.
pub(super) trait Steps: Send + Sync {
    fn next(&self, operation: &'static str) -> io::Result<()>;
}

struct NoStops;

impl Steps for NoStops {
    fn next(&self, _operation: &'static str) -> io::Result<()> {
        Ok(())
    }
}

/// A change that is about to be recorded.
pub(super) struct Planned {
    pub(super) path: String,
    pub(super) before: FileState,
    pub(super) after: FileState,
}

pub(crate) struct UndoStore {
    dir: PathBuf,
    limits: Limits,
    steps: Arc<dyn Steps>,
    kept: Mutex<Kept>,
}

struct Kept {
    index: Index,
    log: File,
    /// A copy was added that the folder may not know durably yet.
    is_dirty: bool,
}

impl UndoStore {
    /// Opens or makes the folder, which must belong to this node alone. Removes what an interrupted change left there.
    pub(crate) fn open(dir: &Path, now_ms: u64) -> io::Result<Self> {
        Self::open_with(dir, now_ms, LIMITS, Arc::new(NoStops))
    }

    pub(super) fn open_with(dir: &Path, now_ms: u64, limits: Limits, steps: Arc<dyn Steps>) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir.join(COPIES))?;
        let path = dir.join(LOG);
        let mut log = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let mut index = Index::default();
        let whole = read_changes(&mut log, &mut index)?;
        // A last record that was not written to its end is cut off: its change was not made.
        log.set_len(whole)?;
        let store = Self {
            dir: dir.to_owned(),
            limits,
            steps,
            kept: Mutex::new(Kept {
                index,
                log,
                is_dirty: false,
            }),
        };
        store.remove_unneeded()?;
        store.sweep(now_ms)?;
        Ok(store)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic under the lock leaves at most a record without its change, as a kill does.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_unneeded(&self) -> io::Result<()> {
        let kept = self.lock();
        for entry in fs::read_dir(self.dir.join(COPIES))? {
            let entry = entry?;
            if !kept.index.needs(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) fn plan(&self, calls: &str) -> Vec<Step> {
        self.lock().index.plan(calls)
    }

    fn copy_path(&self, sha256: &str) -> PathBuf {
        self.dir.join(COPIES).join(sha256)
    }

    pub(super) fn open_copy(&self, sha256: &str) -> io::Result<File> {
        File::open(self.copy_path(sha256))
    }

    /// Keeps the content of a file, from its beginning. Durable after [`Self::record`]. Returns its hash; `None`: it has another size
    /// than `size`, and nothing was kept. The caller holds the lock of the tools until then, so that no copy is pruned before its
    /// record is written. Several threads may call it at once.
    pub(super) fn add_copy(&self, file: &File, size: u64) -> io::Result<Option<String>> {
        let new = self.copy_path(&format!("{NEW}-{:016x}", fastrand::u64(..)));
        let added = if size <= SMALL_BYTES {
            self.add_small(file, size, &new)
        } else {
            self.add_large(file, size, &new)
        };
        if let Ok(Some((sha256, is_new))) = added {
            self.lock().is_dirty |= is_new;
            return Ok(Some(sha256));
        }
        // Best effort: the next start removes it too.
        let _ = fs::remove_file(&new);
        added.map(|_| None)
    }

    /// Another program may make the file larger while it is read, so no more than its size is read.
    fn add_small(&self, file: &File, size: u64, new: &Path) -> io::Result<Option<(String, bool)>> {
        let mut content = Vec::new();
        file.take(size + 1).read_to_end(&mut content)?;
        if content.len() as u64 != size {
            return Ok(None);
        }
        let sha256 = sha256_of(&content);
        let path = self.copy_path(&sha256);
        if path.exists() {
            return Ok(Some((sha256, false)));
        }
        let mut copy = self.create(new)?;
        copy.write_all(&content)?;
        self.finish(&copy, new, &path)?;
        Ok(Some((sha256, true)))
    }

    fn add_large(&self, file: &File, size: u64, new: &Path) -> io::Result<Option<(String, bool)>> {
        let mut copy = self.create(new)?;
        if !clone_file(&copy, file) {
            io::copy(&mut file.take(size + 1), &mut copy)?;
        }
        if copy.metadata()?.len() != size {
            return Ok(None);
        }
        let (sha256, _) = sha256_of_file(&mut File::open(new)?)?;
        let path = self.copy_path(&sha256);
        if path.exists() {
            self.remove(new)?;
            return Ok(Some((sha256, false)));
        }
        self.finish(&copy, new, &path)?;
        Ok(Some((sha256, true)))
    }

    fn create(&self, new: &Path) -> io::Result<File> {
        self.steps.next("create")?;
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(new)
    }

    fn finish(&self, copy: &File, new: &Path, path: &Path) -> io::Result<()> {
        self.sync(copy)?;
        self.rename(new, path)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.steps.next("sync")?;
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.steps.next("sync_dir")?;
        File::open(dir)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.steps.next("rename")?;
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.steps.next("remove")?;
        fs::remove_file(path)
    }

    /// Records changes that are made next, durably. `may_prune`: false while an undo needs the oldest copies.
    pub(super) fn record(&self, call: &str, now_ms: u64, planned: Vec<Planned>, may_prune: bool) -> io::Result<()> {
        if planned.is_empty() {
            return Ok(());
        }
        let mut kept = self.lock();
        if kept.is_dirty {
            self.sync_dir(&self.dir.join(COPIES))?;
            kept.is_dirty = false;
        }
        let first = kept.index.next_seq();
        let changes: Vec<Change> = (first..)
            .zip(planned)
            .map(|(seq, planned)| Change {
                seq,
                call: call.to_owned(),
                at_ms: now_ms,
                path: planned.path,
                before: planned.before,
                after: planned.after,
            })
            .collect();
        let before = kept.log.metadata()?.len();
        let written = self.append(&kept.log, &changes);
        if let Err(error) = written {
            // Otherwise the next record would follow half a line.
            let _ = kept.log.set_len(before);
            return Err(error);
        }
        for change in changes {
            kept.index.push(change);
        }
        if may_prune {
            // Best effort: the change is recorded, and the next one prunes again.
            let _ = self.prune(&mut kept, now_ms);
        }
        Ok(())
    }

    fn append(&self, mut log: &File, changes: &[Change]) -> io::Result<()> {
        let text = lines_of(changes.iter())?;
        self.steps.next("write")?;
        log.write_all(text.as_bytes())?;
        self.sync(log)
    }

    /// Removes what is older than the limit. Call it from time to time: a node without changes must not keep copies forever.
    pub(crate) fn sweep(&self, now_ms: u64) -> io::Result<()> {
        self.prune(&mut self.lock(), now_ms)
    }

    /// The record is rewritten first: a copy without a record is removed at the next start, but no record loses its copy.
    fn prune(&self, kept: &mut Kept, now_ms: u64) -> io::Result<()> {
        if !kept.index.is_over(now_ms, self.limits) {
            return Ok(());
        }
        let freed = kept.index.prune(now_ms, self.limits);
        let text = lines_of(kept.index.changes())?;
        let new = self.dir.join(format!("{LOG}{NEW}"));
        // An earlier prune may have been interrupted.
        let _ = fs::remove_file(&new);
        let mut log = self.create(&new)?;
        log.write_all(text.as_bytes())?;
        self.sync(&log)?;
        self.rename(&new, &self.dir.join(LOG))?;
        self.sync_dir(&self.dir)?;
        kept.log = OpenOptions::new().append(true).open(self.dir.join(LOG))?;
        for sha256 in freed {
            self.remove(&self.copy_path(&sha256))?;
        }
        Ok(())
    }
}

fn lines_of<'a>(changes: impl Iterator<Item = &'a Change>) -> io::Result<String> {
    let mut text = String::new();
    for change in changes {
        text.push_str(&serde_json::to_string(change)?);
        text.push('\n');
    }
    Ok(text)
}

/// Reads the records. Returns the length of the part that ends with a whole line. A line that can't be read is left out.
fn read_changes(log: &mut File, index: &mut Index) -> io::Result<u64> {
    let mut lines = BufReader::new(log);
    let mut whole = 0;
    loop {
        let mut line = Vec::new();
        let read = lines.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(whole);
        }
        whole += read as u64;
        if let Ok(change) = serde_json::from_slice::<Change>(&line) {
            index.push(change);
        }
    }
}

/// Shares the blocks of a file where the file system can (Btrfs, XFS). A hard link would not do: who changes the file in place
/// would change the copy.
#[cfg(target_os = "linux")]
fn clone_file(copy: &File, file: &File) -> bool {
    rustix::fs::ioctl_ficlone(copy, file).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn clone_file(_copy: &File, _file: &File) -> bool {
    false
}

pub(super) fn sha256_of(content: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, content).as_ref())
}

/// Also returns the number of bytes.
pub(super) fn sha256_of_file(file: &mut impl Read) -> io::Result<(String, u64)> {
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut piece = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((hex(hash.finish().as_ref()), size)),
            Ok(read) => {
                hash.update(&piece[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}
