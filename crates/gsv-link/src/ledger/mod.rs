//! The node's record of its calls: accepted, started and finished, durable before each next step, so that a call starts at
//! most once and no result is lost in a crash (promises P6, P7, K14 to K20).
//!
//! An append-only log of checksummed records, and an index in memory; large results are files beside the log. One process at a
//! time. It runs nothing, sends nothing, and has no clock: the time is an argument of each operation. All operations block on
//! the disk; those whose durability matters return a [`Commit`], to be synced outside of locks if possible.

mod disk;
mod events;
mod index;
mod open;
mod record;
mod retention;
mod store;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use gsv_protocol::limits;
use gsv_protocol::types::{LedgerCall, LedgerCallState, NodeLedger};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use disk::{Disk, RealDisk};
pub use index::{CallState, EpochMs};
use index::{Index, Place};
pub use record::ProcessInfo;
use record::{Record, Written};

/// The longest list of calls in the `connect` frame.
const LISTED_CALLS: usize = 512;
/// Larger results get a file of their own.
const INLINE_BYTES: u64 = limits::TOOL_INLINE_BYTES;
/// The log is rewritten when it is larger than this and has doubled since the last time.
const LOG_BYTES: u64 = 8 * 1024 * 1024;
/// The bytes of kept results are counted again when this many were added.
const CHECK_BYTES: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("Another node is already running (pid {pid}) with the ledger at {}. Stop it, or start this one under another name (`--id NAME`) or with another state folder (GSV_HOME=DIR).", path.display())]
    Locked { path: PathBuf, pid: String },
    #[error("the call ledger could not {doing}: {source}. Check free space and permissions.")]
    Io {
        doing: &'static str,
        source: std::io::Error,
    },
    #[error("the call {call} is {state}; that can't be recorded now")]
    WrongState { call: String, state: &'static str },
    #[error("the record can't be written: {0}")]
    Record(String),
}
fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> LedgerError {
    move |source| LedgerError::Io { doing, source }
}

/// A record that is written but may not survive a power cut yet.
#[must_use = "a record that matters has to be synced"]
pub struct Commit {
    file: Arc<File>,
    disk: Arc<dyn Disk>,
}
impl Commit {
    /// Returns when the record, and all before it, are durable. After an error call [`Ledger::distrust`].
    ///
    /// # Errors
    /// The disk's.
    pub fn sync(self) -> Result<(), LedgerError> {
        self.disk.sync(&self.file).map_err(io("make a record durable"))
    }

    /// Skips the sync. For calls that may run again: when the record is lost, nothing else is.
    pub fn lazily(self) {}
}

/// A call on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCall {
    pub call_id: String,
    pub tool: String,
    pub mutating: bool,
    pub state: CallState,
    pub accepted_at: EpochMs,
    pub started_at: Option<EpochMs>,
    pub process: Option<ProcessInfo>,
}

/// The node's call ledger.
pub struct Ledger {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    log: Arc<File>,
    log_len: u64,
    /// Length of the log when it was last rewritten.
    compacted_len: u64,
    /// The log may be incomplete on disk; it is rewritten before the next record.
    distrusted: bool,
    index: Index,
    unchecked_bytes: u64,
    /// Bytes of results that wait for the gateway.
    max_bytes: u64,
    /// Bytes of acknowledged results.
    max_released_bytes: u64,
    max_calls: usize,
    next_file: u64,
    notes: Vec<String>,
    /// Held as long as the ledger lives.
    _lock: File,
}

impl Ledger {
    /// Notes about repairs and dropped results, for the log. Each is given once.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub fn state(&self, call: &str) -> Option<CallState> {
        self.index.calls.get(call).map(index::Entry::state)
    }

    pub fn known(&self, call: &str) -> Option<KnownCall> {
        self.index.calls.get(call).map(|entry| known(call, entry))
    }

    /// Calls that are started and not finished, oldest first.
    pub fn started(&self) -> Vec<KnownCall> {
        self.in_state(CallState::Started)
    }

    /// Calls whose results wait for the gateway, oldest first.
    pub fn unreleased(&self) -> Vec<String> {
        let mut finished: Vec<_> = self
            .index
            .in_order()
            .into_iter()
            .filter(|(_, entry)| entry.state() == CallState::Finished)
            .collect();
        finished.sort_by_key(|(_, entry)| entry.finish.as_ref().map_or(0, |finish| finish.at));
        finished.into_iter().map(|(call, _)| call.clone()).collect()
    }

    fn in_state(&self, state: CallState) -> Vec<KnownCall> {
        let all = self.index.in_order().into_iter();
        all.filter(|(_, entry)| entry.state() == state)
            .map(|(call, entry)| known(call, entry))
            .collect()
    }

    /// For `connect` (T3). Open calls come first: at most 512 fit, and finished calls send their results anyway.
    pub fn listing(&self) -> NodeLedger {
        let mut open: Vec<_> = self
            .index
            .in_order()
            .into_iter()
            .filter(|(_, entry)| entry.state() != CallState::Released)
            .collect();
        open.sort_by_key(|(_, entry)| entry.finish.is_some());
        let listed = open.into_iter().take(LISTED_CALLS).map(|(call, entry)| {
            let state = match entry.state() {
                CallState::Accepted => LedgerCallState::Accepted,
                CallState::Started => LedgerCallState::Started,
                CallState::Finished | CallState::Released => match &entry.finish {
                    Some(finish) if finish.lost => LedgerCallState::Lost,
                    _ => LedgerCallState::Finished,
                },
            };
            LedgerCall {
                call_id: call.clone(),
                state,
            }
        });
        NodeLedger {
            calls: listed.collect(),
        }
    }

    /// A new call, which may wait before it is started.
    ///
    /// # Errors
    /// It is known already, or the disk's.
    pub fn accept(&mut self, now: EpochMs, call: &str, tool: &str, mutating: bool) -> Result<Commit, LedgerError> {
        self.expect(call, &[None])?;
        self.append(&Record::Accepted {
            call: call.into(),
            tool: tool.into(),
            mutating,
            at: now,
        })
    }

    /// [`Ledger::accept`] and [`Ledger::start`] in one record, for calls that need no process.
    ///
    /// # Errors
    /// It is known already, or the disk's.
    pub fn begin(&mut self, now: EpochMs, call: &str, tool: &str, mutating: bool) -> Result<Commit, LedgerError> {
        self.expect(call, &[None])?;
        self.append(&Record::Begun {
            call: call.into(),
            tool: tool.into(),
            mutating,
            at: now,
        })
    }

    /// An accepted call is about to be started. Mutating calls must not start before the commit is synced.
    ///
    /// # Errors
    /// It is not in a state to be started, or the disk's.
    pub fn start(&mut self, now: EpochMs, call: &str, process: Option<&ProcessInfo>) -> Result<Commit, LedgerError> {
        self.expect(call, &[Some(CallState::Accepted)])?;
        self.append(&Record::Started {
            call: call.into(),
            at: now,
            process: process.map(std::borrow::Cow::Borrowed),
        })
    }

    /// A call has ended; `result` is what `tool.result` will carry. Of a mutating call the commit must be synced before the
    /// result is sent. `lost`: the outcome is unknown.
    ///
    /// # Errors
    /// It has ended before, or the disk's. A call that could not be recorded stays started, and will be unknown if the
    /// node dies.
    pub fn finish(
        &mut self,
        now: EpochMs,
        call: &str,
        lost: bool,
        result: &impl Serialize,
    ) -> Result<Commit, LedgerError> {
        self.expect(call, &[Some(CallState::Accepted), Some(CallState::Started)])?;
        let raw = serde_json::value::to_raw_value(result).map_err(|error| LedgerError::Record(error.to_string()))?;
        let bytes = raw.get().len() as u64;
        let call_id = std::borrow::Cow::Borrowed(call);
        let record = if bytes > INLINE_BYTES {
            let file = self.store_file(raw.get().as_bytes())?;
            Record::Finished {
                call: call_id,
                at: now,
                lost,
                bytes,
                result: None,
                file: Some(file),
            }
        } else {
            Record::Finished {
                call: call_id,
                at: now,
                lost,
                bytes,
                result: Some(std::borrow::Cow::Owned(raw)),
                file: None,
            }
        };
        let commit = self.append(&record)?;
        self.unchecked_bytes += bytes;
        if self.unchecked_bytes > CHECK_BYTES {
            self.enforce_bytes();
        }
        Ok(commit)
    }

    /// The gateway has the result durably. Not synced: after a crash the result is only sent once more.
    ///
    /// # Errors
    /// It has not ended, or the disk's.
    pub fn release(&mut self, now: EpochMs, call: &str) -> Result<(), LedgerError> {
        if self.state(call) == Some(CallState::Released) {
            return Ok(());
        }
        self.expect(call, &[Some(CallState::Finished)])?;
        self.append(&Record::Released {
            call: call.into(),
            at: now,
        })
        .map(Commit::lazily)
    }

    /// Removes a call that changed nothing: it was not started, or only reads. It may come again as a new call.
    ///
    /// # Errors
    /// It may have changed something, or has ended; or the disk's.
    pub fn forget(&mut self, call: &str) -> Result<(), LedgerError> {
        let only_reads = self.index.calls.get(call).is_some_and(|entry| !entry.mutating);
        let also = only_reads.then_some(CallState::Started);
        self.expect(call, &[Some(CallState::Accepted), also.or(Some(CallState::Accepted))])?;
        self.append(&Record::Forgotten { call: call.into() })
            .map(Commit::lazily)
    }

    /// What `tool.result` carries for a call that has ended. `None`: not ended, or the result is no longer kept.
    ///
    /// # Errors
    /// The disk's; also when the stored result is damaged.
    pub fn result<T: DeserializeOwned>(&self, call: &str) -> Result<Option<T>, LedgerError> {
        match self.index.place(call) {
            None | Some(Place::Gone) => Ok(None),
            Some(Place::Log { offset, len }) => match self.read_record(offset, len)? {
                Record::Finished { result, .. } => Ok(result),
                _ => Err(LedgerError::Record("another record is in the result's place".into())),
            },
            Some(Place::File(number)) => self.read_file(number),
        }
    }

    /// The last sync failed: records may be lost although they still read well. The log is rewritten before its next
    /// record.
    pub fn distrust(&mut self) {
        self.distrusted = true;
    }

    fn expect(&self, call: &str, wanted: &[Option<CallState>]) -> Result<(), LedgerError> {
        let state = self.state(call);
        if wanted.contains(&state) {
            return Ok(());
        }
        let state = match state {
            None => "unknown",
            Some(CallState::Accepted) => "accepted",
            Some(CallState::Started) => "started",
            Some(CallState::Finished) => "finished",
            Some(CallState::Released) => "released",
        };
        Err(LedgerError::WrongState {
            call: call.to_owned(),
            state,
        })
    }

    fn append(&mut self, record: &Written<'_>) -> Result<Commit, LedgerError> {
        self.write_record(record)?;
        Ok(Commit {
            file: Arc::clone(&self.log),
            disk: Arc::clone(&self.disk),
        })
    }
}

fn known(call: &str, entry: &index::Entry) -> KnownCall {
    KnownCall {
        call_id: call.to_owned(),
        tool: entry.tool.clone(),
        mutating: entry.mutating,
        state: entry.state(),
        accepted_at: entry.accepted_at,
        started_at: entry.started_at,
        process: entry.process.clone(),
    }
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
