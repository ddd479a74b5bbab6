//! Opens a ledger: locks the folder, reads the log, repairs damage. Whatever the files hold, the result is a usable ledger with
//! a note for each repair, or an error of the disk.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::disk::{Disk, RealDisk};
use super::index::{EpochMs, Index, Place};
use super::record::{self, HEADER, Indexed, MAGIC, Slot};
use super::retention::{MAX_CALLS, RELEASED_BYTES};
use super::store::{LOG, NEW_LOG, RESULTS};
use super::{Ledger, LedgerError, io};

const LOCK: &str = "lock";
/// Broken logs that are kept for inspection.
const KEPT_BROKEN: usize = 3;

impl Ledger {
    /// Opens or makes the ledger in `dir`.
    ///
    /// # Errors
    /// Another process has the ledger open, or the disk fails.
    pub fn open(dir: &Path, now: EpochMs) -> Result<Self, LedgerError> {
        Self::open_on(dir, now, Arc::new(RealDisk))
    }

    /// [`Ledger::open`] with another way to the disk.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_on(dir: &Path, now: EpochMs, disk: Arc<dyn Disk>) -> Result<Self, LedgerError> {
        let results = dir.join(RESULTS);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&results)
            .map_err(io("make its folder"))?;
        let lock = lock(dir)?;
        remove_if_there(&dir.join(NEW_LOG)).map_err(io("remove an unfinished log"))?;
        let path = dir.join(LOG);
        let mut notes = vec![];
        let scan = match fs::read(&path) {
            Ok(bytes) => Scan::of(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Scan::of(b""),
            Err(error) => return Err(io("read its log")(error)),
        };
        let log = match scan.end {
            Ending::Empty => {
                let log = disk.create(&path).map_err(io("make its log"))?;
                let make = || {
                    disk.write_at(&log, MAGIC, 0)?;
                    disk.sync(&log)?;
                    disk.sync_dir(dir)
                };
                make().map_err(io("make its log"))?;
                log
            }
            _ => OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(io("open its log"))?,
        };
        let mut ledger = Self {
            dir: dir.to_owned(),
            log: Arc::new(log),
            log_len: scan.len,
            compacted_len: 0,
            distrusted: false,
            index: scan.index,
            unchecked_bytes: 0,
            max_bytes: gsv_protocol::limits::LEDGER_BYTES,
            max_released_bytes: RELEASED_BYTES,
            max_calls: MAX_CALLS,
            next_file: 1,
            notes: vec![],
            disk,
            _lock: lock,
        };
        match scan.end {
            Ending::Whole | Ending::Empty => {}
            Ending::TornTail { bytes } => {
                ledger
                    .disk
                    .set_len(&ledger.log, ledger.log_len)
                    .map_err(io("cut off a torn record"))?;
                ledger.disk.sync(&ledger.log).map_err(io("cut off a torn record"))?;
                notes.push(format!("the last {bytes} bytes of the call ledger were an incomplete record (a crash while writing) and were cut off"));
            }
            Ending::Broken { bytes, salvaged } => {
                let aside = format!("ledger.broken-{now}");
                ledger
                    .disk
                    .link(&path, &dir.join(&aside))
                    .map_err(io("set a broken log aside"))?;
                ledger.compact()?;
                notes.push(format!(
                    "the call ledger was damaged: {bytes} bytes could not be read, {salvaged} records after them could. The damaged file is kept as {aside}"
                ));
            }
        }
        ledger.clean_up(&results, &mut notes);
        ledger.notes = notes;
        ledger.sweep(now);
        Ok(ledger)
    }

    /// Removes result files that no record names, and all but the latest broken logs.
    fn clean_up(&mut self, results: &Path, notes: &mut Vec<String>) {
        let wanted: std::collections::HashSet<u64> = self
            .index
            .calls
            .values()
            .filter_map(|entry| match entry.finish.as_ref()?.place {
                Place::File(number) => Some(number),
                _ => None,
            })
            .collect();
        let mut highest = wanted.iter().copied().max().unwrap_or(0);
        for (path, name) in names(results) {
            let number = name.strip_suffix(".json").and_then(|number| number.parse::<u64>().ok());
            highest = highest.max(number.unwrap_or(0));
            if number.is_none_or(|number| !wanted.contains(&number))
                && let Err(error) = self.disk.remove(&path)
            {
                notes.push(format!("{} can't be removed: {error}", path.display()));
            }
        }
        self.next_file = highest + 1;
        let mut broken: Vec<_> = names(&self.dir)
            .into_iter()
            .filter(|(_, name)| name.starts_with("ledger.broken-"))
            .collect();
        broken.sort_by(|(_, one), (_, other)| other.cmp(one));
        for (path, _) in broken.into_iter().skip(KEPT_BROKEN) {
            if let Err(error) = self.disk.remove(&path) {
                notes.push(format!("{} can't be removed: {error}", path.display()));
            }
        }
    }
}

fn names(folder: &Path) -> Vec<(std::path::PathBuf, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?)))
        .collect()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How often the lock is tried: a child process that a node forked before it died holds the node's lock until its `exec` closes the file.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

fn lock(dir: &Path) -> Result<File, LedgerError> {
    let path = dir.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(io("open its lock"))?;
    let mut locked = file.try_lock();
    for _ in 0..LOCK_TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Only for the message.
            let _ = file.take(16).read_to_string(&mut pid);
            let pid = pid.trim().to_owned();
            return Err(LedgerError::Locked {
                path: dir.to_owned(),
                pid: if pid.is_empty() { "unknown".into() } else { pid },
            });
        }
        Err(TryLockError::Error(error)) => return Err(io("lock its folder")(error)),
    }
    file.set_len(0)
        .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()))
        .map_err(io("write its lock"))?;
    Ok(file)
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Ending {
    /// There is no log, or only a part of its first line.
    #[default]
    Empty,
    Whole,
    TornTail {
        bytes: usize,
    },
    Broken {
        bytes: usize,
        salvaged: usize,
    },
}

/// The outcome of reading a log.
#[derive(Default)]
struct Scan {
    index: Index,
    /// Every record before this offset is whole.
    len: u64,
    end: Ending,
}

impl Scan {
    fn of(bytes: &[u8]) -> Self {
        let mut scan = Self {
            len: HEADER as u64,
            ..Self::default()
        };
        let mut at = HEADER;
        if bytes.len() < HEADER && MAGIC.starts_with(bytes) {
            return scan;
        }
        scan.end = Ending::Whole;
        let (mut lost, mut salvaged) = (0, 0);
        // Logs that earlier versions made begin with a record.
        if !bytes.starts_with(MAGIC) {
            at = record::resync(bytes).unwrap_or(bytes.len());
            lost = at;
        }
        loop {
            match record::slot(bytes.get(at..).unwrap_or_default()) {
                Slot::End => break,
                Slot::Whole(payload) => {
                    // A whole record of a kind that this version does not know is skipped, not lost.
                    if let Ok(record) = serde_json::from_slice::<Indexed>(payload) {
                        scan.index.apply(&record, at as u64, payload.len() as u64);
                    }
                    at += HEADER + payload.len();
                    if lost == 0 { scan.len = at as u64 } else { salvaged += 1 }
                }
                Slot::Broken { reaches_end } => {
                    let rest = &bytes[at..];
                    match record::resync(&rest[1..]) {
                        Some(next) => {
                            lost += next + 1;
                            at += next + 1;
                        }
                        None if reaches_end && lost == 0 => {
                            scan.end = Ending::TornTail { bytes: rest.len() };
                            return scan;
                        }
                        None => {
                            lost += rest.len();
                            break;
                        }
                    }
                }
            }
        }
        if lost > 0 {
            scan.end = Ending::Broken { bytes: lost, salvaged };
        }
        scan
    }
}
