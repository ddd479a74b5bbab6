//! Backups of the state of a gateway on this machine (rules BK1 to BK21, gateway/spec/backup.md): one encrypted file with a copy of all
//! that a kill of the gateway at one moment would leave on disk.
//!
//! `snapshot` copies the state, `archive` writes and reads the file through `seal`, `restore` puts a state in place. `schedule` is the setting of
//! scheduled backups, `record` decides when the next one is due, `scheduled` makes it. Nothing here asks the gateway for anything, and nothing prints.

pub mod archive;
pub mod content;
pub mod databases;
pub mod make;
pub mod manifest;
pub mod place;
pub mod record;
pub mod restore;
pub mod schedule;
pub mod scheduled;
pub mod scratch;
pub mod seal;
pub mod secrets;
pub mod snapshot;
pub mod verify;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Failure, Outcome};

static STOP: AtomicBool = AtomicBool::new(false);

/// Ends the work at its next step, which removes what is half done.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

pub fn go_on() -> Outcome {
    if STOP.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    Ok(())
}
