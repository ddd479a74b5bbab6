//! The ledger's index, in memory: the state of each call and the place of its result, which stays on disk.

use std::collections::{BTreeMap, HashMap};

use super::record::{Indexed, ProcessInfo, Record};

/// Epoch milliseconds.
pub type EpochMs = u64;

/// How far a call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// Durable, not started: safe to start once.
    Accepted,
    Started,
    /// Its result waits for the gateway's acknowledgement.
    Finished,
    /// Acknowledged; remembered so that a repetition is answered, not run.
    Released,
}

/// Where a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the record at this offset of the log.
    Log { offset: u64, len: u64 },
    /// In the file with this number.
    File(u64),
    /// No longer kept.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    pub at: EpochMs,
    /// It was started, and its outcome is unknown.
    pub lost: bool,
    pub place: Place,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub tool: String,
    pub mutating: bool,
    pub accepted_at: EpochMs,
    pub started_at: Option<EpochMs>,
    pub process: Option<ProcessInfo>,
    pub finish: Option<Finish>,
    pub released_at: Option<EpochMs>,
    /// Order of acceptance.
    pub ordinal: u64,
}

impl Entry {
    pub fn state(&self) -> CallState {
        match (&self.finish, self.released_at, self.started_at) {
            (_, Some(_), _) => CallState::Released,
            (Some(_), ..) => CallState::Finished,
            (None, None, Some(_)) => CallState::Started,
            (None, None, None) => CallState::Accepted,
        }
    }

    /// Bytes of a result that is kept.
    pub fn kept_bytes(&self) -> u64 {
        self.finish
            .as_ref()
            .filter(|finish| finish.place != Place::Gone)
            .map_or(0, |finish| finish.bytes)
    }
}

/// An event that the gateway has not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEvent {
    pub id: String,
    pub at: EpochMs,
    pub offset: u64,
    pub len: u64,
}

#[derive(Debug, Default)]
pub struct Index {
    pub calls: HashMap<String, Entry>,
    /// Oldest first.
    pub events: BTreeMap<u64, PendingEvent>,
    next_ordinal: u64,
}

impl Index {
    /// Applies the record at `offset`, whose payload has `len` bytes. It counts even when the call's earlier records were lost with
    /// a broken disk: a call of which too little is known must not run again.
    pub fn apply(&mut self, record: &Indexed, offset: u64, len: u64) {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        match record {
            Record::Accepted {
                call,
                tool,
                mutating,
                at,
            } => {
                self.calls
                    .entry(call.to_string())
                    .or_insert_with(|| fresh(tool, *mutating, *at, ordinal));
            }
            Record::Begun {
                call,
                tool,
                mutating,
                at,
            } => {
                let entry = self
                    .calls
                    .entry(call.to_string())
                    .or_insert_with(|| fresh(tool, *mutating, *at, ordinal));
                entry.started_at.get_or_insert(*at);
            }
            Record::Started { call, at, process } => {
                let entry = self
                    .calls
                    .entry(call.to_string())
                    .or_insert_with(|| fresh("", true, *at, ordinal));
                entry.started_at.get_or_insert(*at);
                if let Some(process) = process {
                    entry.process = Some(process.as_ref().clone());
                }
            }
            Record::Finished {
                call,
                at,
                lost,
                bytes,
                result,
                file,
            } => {
                let entry = self
                    .calls
                    .entry(call.to_string())
                    .or_insert_with(|| fresh("", true, *at, ordinal));
                let place = match (result, file) {
                    (Some(_), _) => Place::Log { offset, len },
                    (None, Some(file)) => Place::File(*file),
                    (None, None) => Place::Gone,
                };
                entry.finish = Some(Finish {
                    at: *at,
                    lost: *lost,
                    place,
                    bytes: *bytes,
                });
            }
            Record::Released { call, at } => {
                let entry = self
                    .calls
                    .entry(call.to_string())
                    .or_insert_with(|| fresh("", true, *at, ordinal));
                entry.finish.get_or_insert(Finish {
                    at: *at,
                    lost: false,
                    place: Place::Gone,
                    bytes: 0,
                });
                entry.released_at.get_or_insert(*at);
            }
            Record::Dropped { call } => {
                if let Some(finish) = self
                    .calls
                    .get_mut(call.as_ref())
                    .and_then(|entry| entry.finish.as_mut())
                {
                    finish.place = Place::Gone;
                }
            }
            Record::Forgotten { call } => {
                self.calls.remove(call.as_ref());
            }
            Record::Event { id, at, .. } => {
                if !self.events.values().any(|event| event.id == *id) {
                    self.events.insert(
                        ordinal,
                        PendingEvent {
                            id: id.to_string(),
                            at: *at,
                            offset,
                            len,
                        },
                    );
                }
            }
            Record::EventDone { id } => self.events.retain(|_, event| event.id != *id),
        }
    }

    /// Where the result of a call is. `None`: the call is not known or has not ended.
    pub fn place(&self, call: &str) -> Option<Place> {
        self.calls.get(call)?.finish.as_ref().map(|finish| finish.place)
    }

    /// Calls in the order of their acceptance.
    pub fn in_order(&self) -> Vec<(&String, &Entry)> {
        let mut all: Vec<_> = self.calls.iter().collect();
        all.sort_by_key(|(_, entry)| entry.ordinal);
        all
    }
}

fn fresh(tool: &str, mutating: bool, at: EpochMs, ordinal: u64) -> Entry {
    Entry {
        tool: tool.to_owned(),
        mutating,
        accepted_at: at,
        started_at: None,
        process: None,
        finish: None,
        released_at: None,
        ordinal,
    }
}
