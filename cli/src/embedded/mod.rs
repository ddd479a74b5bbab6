//! The gateway on this machine: the Worker bundle on workerd, kept running by a supervisor process.
//!
//! `up` prepares the state folder and starts the supervisor. The supervisor (`supervisor`) runs workerd (`worker`) and
//! writes what it knows to `state.json`; `down` and `status` read that file. Locks tell which process runs, never pid
//! files: a lock ends with its process. Nothing here speaks the wire protocol; the only request is `GET /health`.

pub mod backups;
pub mod bootstrap;
pub mod capnp;
pub mod certificate;
pub mod channel_file;
pub mod channel_name;
pub mod channel_run;
pub mod channels;
pub mod cluster;
mod compiled;
pub mod configure;
pub mod down;
pub mod health;
pub mod hold;
pub mod home_lock;
pub mod layout;
pub mod listen;
mod literals;
pub mod lock;
pub mod log;
pub mod login;
pub mod ports;
pub mod process;
pub mod queue;
pub mod record;
pub mod relay;
pub mod reload;
pub mod restart;
pub mod runtime;
pub mod sealing_key;
pub mod services;
pub mod start_stopped;
pub mod state;
mod state_copy;
pub mod supervisor;
pub mod times;
pub mod unfinished;
pub mod up;
pub mod upgrade;
pub mod watchdog;
pub mod worker;

use std::thread;
use std::time::{Duration, Instant};

pub const DEFAULT_PORT: u16 = 8787;
const POLL: Duration = Duration::from_millis(5);

/// The address that clients on this machine use.
pub fn url(port: u16) -> String {
    format!("ws://127.0.0.1:{port}/ws")
}

/// Asks until there is an answer. `None` when that takes too long.
fn poll<T>(patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= deadline {
            return answer;
        }
        thread::sleep(POLL);
    }
}
