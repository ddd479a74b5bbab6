//! The ledger as the node's tasks use it: writes leave the async threads, and what must be durable is synced outside the
//! lock, so that calls do not wait for each other's disks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_link::ledger::{CallState, Commit, Ledger, LedgerError};
use gsv_protocol::types::NodeLedger;

use crate::log::{Level, Log};

#[derive(Clone)]
pub struct Book {
    ledger: Arc<Mutex<Ledger>>,
    log: Arc<Log>,
}

/// Whether a record must survive a power cut before things go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Synced,
    Lazy,
}
impl Durability {
    /// What changes nothing may be forgotten.
    pub fn of(mutating: bool) -> Self {
        if mutating { Self::Synced } else { Self::Lazy }
    }
}

impl Book {
    pub fn new(ledger: Ledger, log: Arc<Log>) -> Self {
        let book = Self {
            ledger: Arc::new(Mutex::new(ledger)),
            log,
        };
        book.tell(&mut book.lock());
        book
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, ledger: &mut Ledger) {
        for note in ledger.take_notes() {
            self.log.write(Level::Warn, &note, &[]);
        }
    }

    /// A look at what is in memory; must not touch the disk.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.lock())
    }

    pub fn state(&self, call: &str) -> Option<CallState> {
        self.look(|ledger| ledger.state(call))
    }

    pub fn listing(&self) -> NodeLedger {
        self.look(Ledger::listing)
    }

    /// Does something with the ledger where it may block.
    pub async fn with<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Ledger) -> Result<T, LedgerError> + Send + 'static,
    {
        let book = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut ledger = book.lock();
            let outcome = work(&mut ledger);
            book.tell(&mut ledger);
            outcome
        });
        done.await.unwrap_or_else(|error| {
            Err(LedgerError::Io {
                doing: "finish a step",
                source: std::io::Error::other(error),
            })
        })
    }

    /// Writes one record and, where it has to be, waits until it is durable.
    pub async fn record<F>(&self, durability: Durability, write: F) -> Result<(), LedgerError>
    where
        F: FnOnce(&mut Ledger) -> Result<Commit, LedgerError> + Send + 'static,
    {
        let book = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let commit = {
                let mut ledger = book.lock();
                let outcome = write(&mut ledger);
                book.tell(&mut ledger);
                outcome?
            };
            match durability {
                Durability::Lazy => {
                    commit.lazily();
                    Ok(())
                }
                Durability::Synced => commit.sync().inspect_err(|_| book.lock().distrust()),
            }
        });
        done.await.unwrap_or_else(|error| {
            Err(LedgerError::Io {
                doing: "finish a step",
                source: std::io::Error::other(error),
            })
        })
    }
}
