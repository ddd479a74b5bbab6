//! The gateway on this machine: the Worker bundle on workerd, kept running by a supervisor process.
//!
//! `up` prepares the state folder and starts the supervisor. The supervisor (`supervisor`) runs workerd (`worker`) and
//! writes what it knows to `state.json`; `down` and `status` read that file. Locks tell which process runs, never pid
//! files: a lock ends with its process. Nothing here speaks the wire protocol; the only request is `GET /health`.

pub mod bootstrap;
pub mod capnp;
pub mod channel_file;
pub mod channel_name;
pub mod channel_run;
pub mod channels;
pub mod configure;
pub mod down;
pub mod file;
pub mod health;
pub mod layout;
pub mod lock;
pub mod log;
pub mod login;
pub mod ports;
pub mod process;
pub mod reload;
pub mod restart;
pub mod runtime;
pub mod state;
pub mod supervisor;
pub mod up;
pub mod worker;

pub const DEFAULT_PORT: u16 = 8787;

/// The address that clients on this machine use.
pub fn url(port: u16) -> String {
    format!("ws://127.0.0.1:{port}/ws")
}
