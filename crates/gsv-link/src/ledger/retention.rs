//! Retention of calls and results. An unacknowledged result is never dropped without a note, and the fact that a call ran
//! is kept longer than its result.

use gsv_protocol::limits;

use super::Ledger;
use super::index::{self, CallState, EpochMs, Place};

/// Acknowledged results that are kept to answer repeated calls.
pub const RELEASED_BYTES: u64 = 32 * 1024 * 1024;
/// Calls on record; only a broken gateway makes more.
pub const MAX_CALLS: usize = 50_000;

impl Ledger {
    /// Drops results and calls that are too old. Call it from time to time.
    pub fn sweep(&mut self, now: EpochMs) {
        let age = |at: EpochMs| now.saturating_sub(at);
        let mut over = vec![];
        let mut give_up = vec![];
        for (call, entry) in self.index.in_order() {
            match (entry.state(), &entry.finish) {
                (CallState::Released, _) if age(entry.released_at.unwrap_or(now)) > limits::LEDGER_MS => {
                    over.push(call.clone());
                }
                (CallState::Finished, Some(finish)) if age(finish.at) > limits::LEDGER_UNRELEASED_MS => {
                    let gone = finish.place == Place::Gone;
                    let and_over = age(finish.at) > limits::LEDGER_UNRELEASED_MS + limits::LEDGER_MS;
                    if !gone {
                        give_up.push(call.clone());
                    } else if and_over {
                        over.push(call.clone());
                    }
                }
                (CallState::Accepted, _) if age(entry.accepted_at) > limits::LEDGER_UNRELEASED_MS => {
                    self.notes.push(format!(
                        "call {call} was accepted long ago and never asked for again; it is removed"
                    ));
                    over.push(call.clone());
                }
                _ => {}
            }
        }
        for call in give_up {
            self.notes.push(format!(
                "the result of call {call} is dropped: the gateway has not acknowledged it for 7 days"
            ));
            self.drop_result(&call);
        }
        for call in over {
            self.forget_entirely(&call);
        }
        let stale: Vec<String> = self
            .index
            .events
            .values()
            .filter(|event| age(event.at) > limits::LEDGER_UNRELEASED_MS)
            .map(|event| event.id.clone())
            .collect();
        for id in stale {
            self.notes.push(format!(
                "event {id} was dropped: the gateway has not acknowledged it for 7 days"
            ));
            if let Err(error) = self.event_done(&id) {
                self.notes.push(error.to_string());
            }
        }
        self.enforce_bytes();
        self.enforce_calls();
    }

    pub(super) fn enforce_bytes(&mut self) {
        self.unchecked_bytes = 0;
        self.enforce_bytes_of(CallState::Finished, self.max_bytes);
        self.enforce_bytes_of(CallState::Released, self.max_released_bytes);
    }

    fn enforce_bytes_of(&mut self, state: CallState, limit: u64) {
        let kept = |(_, entry): &(&String, &index::Entry)| entry.state() == state && entry.kept_bytes() > 0;
        let mut total: u64 = self
            .index
            .calls
            .iter()
            .filter(kept)
            .map(|(_, entry)| entry.kept_bytes())
            .sum();
        let oldest: Vec<(String, u64)> = self
            .index
            .in_order()
            .into_iter()
            .filter(kept)
            .map(|(call, entry)| (call.clone(), entry.kept_bytes()))
            .collect();
        for (call, bytes) in oldest {
            if total <= limit {
                break;
            }
            if state == CallState::Finished {
                self.notes.push(format!(
                    "the result of call {call} ({bytes} bytes) is dropped: more than {limit} bytes wait for the gateway"
                ));
            }
            self.drop_result(&call);
            total -= bytes;
        }
    }

    /// Removes acknowledged calls only: the others may still start, or have a result to deliver.
    fn enforce_calls(&mut self) {
        if self.index.calls.len() <= self.max_calls {
            return;
        }
        let too_many = self.index.calls.len() - self.max_calls;
        let oldest: Vec<String> = self
            .index
            .in_order()
            .into_iter()
            .filter(|(_, entry)| entry.state() == CallState::Released)
            .take(too_many)
            .map(|(call, _)| call.clone())
            .collect();
        for call in oldest {
            self.forget_entirely(&call);
        }
    }
}
