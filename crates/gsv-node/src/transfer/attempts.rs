//! The attempts of transfers that run now, and what the gateway says to each. Knows no file and no connection.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gsv_link::Bytes;
use tokio::sync::mpsc;

/// Signals that wait for one attempt. A window of chunks fits, with room for short ones.
const SIGNALS: usize = 64;
/// Attempts at once. The gateway has a lower limit.
const ATTEMPTS: usize = 16;

/// What the gateway says to an attempt.
pub enum Signal {
    Start {
        offset: u64,
    },
    Ack {
        offset: u64,
    },
    /// With its number in front.
    Chunk(Bytes),
    End {
        sha256: Option<String>,
    },
    /// The transfer has ended without success.
    Abort,
}

struct Attempt {
    /// The id of the transfer.
    id: Option<String>,
    signals: mpsc::Sender<Signal>,
}

/// The attempts of this connection, by the number in front of their chunks.
#[derive(Default)]
pub struct Transfers(Mutex<HashMap<u32, Attempt>>);

impl Transfers {
    /// The connection is gone, and every attempt with it.
    pub fn offline(&self) {
        self.with(HashMap::clear);
    }

    /// A new attempt; an earlier one of the same transfer ends. `None`: there are too many.
    pub fn begin(&self, number: u32, id: Option<String>) -> Option<mpsc::Receiver<Signal>> {
        self.with(|attempts| {
            attempts.retain(|_, other| !other.signals.is_closed() && (id.is_none() || other.id != id));
            if attempts.len() >= ATTEMPTS {
                return None;
            }
            let (signals, taken) = mpsc::channel(SIGNALS);
            attempts.insert(number, Attempt { id, signals });
            Some(taken)
        })
    }

    /// False: there is no such attempt. One that can't keep up ends: the gateway does not keep to the window.
    pub fn signal(&self, number: u32, signal: Signal) -> bool {
        self.with(|attempts| {
            let Some(attempt) = attempts.get(&number) else {
                return false;
            };
            if attempt.signals.try_send(signal).is_err() {
                attempts.remove(&number);
            }
            true
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<u32, Attempt>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
