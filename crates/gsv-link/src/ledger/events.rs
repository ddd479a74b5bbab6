//! Events of background commands, stored until the gateway acknowledges them.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index::EpochMs;
use super::record::Record;
use super::{Commit, Ledger, LedgerError};

/// The most events that wait for the gateway.
pub(super) const EVENTS: usize = 1000;

impl Ledger {
    /// An event to be delivered until the gateway acknowledges it. `None`: it is known already.
    ///
    /// # Errors
    /// The disk's.
    pub fn add_event(
        &mut self,
        now: EpochMs,
        id: &str,
        payload: &impl Serialize,
    ) -> Result<Option<Commit>, LedgerError> {
        if self.index.events.values().any(|event| event.id == id) {
            return Ok(None);
        }
        let raw = serde_json::value::to_raw_value(payload).map_err(|error| LedgerError::Record(error.to_string()))?;
        let commit = self.append(&Record::Event {
            id: id.into(),
            at: now,
            payload: Some(Cow::Owned(raw)),
        })?;
        while self.index.events.len() > EVENTS {
            let Some(oldest) = self.index.events.values().next().map(|event| event.id.clone()) else {
                break;
            };
            self.notes.push(format!(
                "event {oldest} was dropped: more than {EVENTS} wait for the gateway"
            ));
            self.event_done(&oldest)?;
        }
        Ok(Some(commit))
    }

    /// The gateway has the event.
    ///
    /// # Errors
    /// The disk's.
    pub fn event_done(&mut self, id: &str) -> Result<(), LedgerError> {
        if self.index.events.values().any(|event| event.id == id) {
            self.append(&Record::EventDone { id: id.into() }).map(Commit::lazily)?;
        }
        Ok(())
    }

    /// Ids of events that the gateway has not acknowledged, oldest first.
    pub fn pending_events(&self) -> Vec<String> {
        self.index.events.values().map(|event| event.id.clone()).collect()
    }

    /// The payload of an event that the gateway has not acknowledged. `None`: acknowledged, or never added.
    ///
    /// # Errors
    /// The disk's; also when the record is damaged.
    pub fn event<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, LedgerError> {
        let Some(event) = self.index.events.values().find(|event| event.id == id) else {
            return Ok(None);
        };
        match self.read_record(event.offset, event.len)? {
            Record::Event {
                payload: Some(payload), ..
            } => Ok(Some(payload)),
            _ => Err(LedgerError::Record("another record is in the event's place".into())),
        }
    }
}
