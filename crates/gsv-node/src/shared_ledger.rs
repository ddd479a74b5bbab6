//! The ledger, shared by the node's tasks. Writes run off the async threads, and records are synced outside the lock, so
//! that calls do not wait for each other's syncs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_link::ledger::{CallState, Commit, Ledger, LedgerError};
use gsv_protocol::types::NodeLedger;

use crate::log::{Level, Log};

#[derive(Clone)]
pub struct SharedLedger {
    ledger: Arc<Mutex<Ledger>>,
    log: Arc<Log>,
}

/// Whether a record must survive a power cut before its call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Synced,
    Lazy,
}
impl Durability {
    /// The record of a call that changes nothing may be lost.
    pub fn of(mutating: bool) -> Self {
        if mutating { Self::Synced } else { Self::Lazy }
    }
}

impl SharedLedger {
    pub fn new(ledger: Ledger, log: Arc<Log>) -> Self {
        let shared = Self {
            ledger: Arc::new(Mutex::new(ledger)),
            log,
        };
        shared.log_notes(&mut shared.lock());
        shared
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_notes(&self, ledger: &mut Ledger) {
        for note in ledger.take_notes() {
            self.log.write(Level::Warn, &note, &[]);
        }
    }

    /// Reads the state in memory; `look` must not access the disk.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.lock())
    }

    pub fn state(&self, call: &str) -> Option<CallState> {
        self.look(|ledger| ledger.state(call))
    }

    pub fn listing(&self) -> NodeLedger {
        self.look(Ledger::listing)
    }

    /// Runs `work` on a thread that may block.
    pub async fn with<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Ledger) -> Result<T, LedgerError> + Send + 'static,
    {
        let shared = self.clone();
        blocking(move || shared.change(work)).await
    }

    fn change<T>(&self, work: impl FnOnce(&mut Ledger) -> Result<T, LedgerError>) -> Result<T, LedgerError> {
        let mut ledger = self.lock();
        let outcome = work(&mut ledger);
        self.log_notes(&mut ledger);
        outcome
    }

    /// Writes one record and, for [`Durability::Synced`], waits until it is durable.
    pub async fn record<F>(&self, durability: Durability, write: F) -> Result<(), LedgerError>
    where
        F: FnOnce(&mut Ledger) -> Result<Commit, LedgerError> + Send + 'static,
    {
        let shared = self.clone();
        blocking(move || {
            let commit = shared.change(write)?;
            match durability {
                Durability::Lazy => {
                    commit.lazily();
                    Ok(())
                }
                Durability::Synced => commit.sync().inspect_err(|_| shared.lock().distrust()),
            }
        })
        .await
    }
}

/// Runs `work` off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, LedgerError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(LedgerError::Io {
            doing: "finish a step",
            source: std::io::Error::other(error),
        })
    })
}
