//! The gateway on this machine: the Worker bundle on workerd, kept alive by a supervisor process.
//!
//! `up` prepares the state folder and starts the supervisor; the supervisor (`supervisor`) runs workerd, watches it and
//! says in `state.json` what it knows; `down` and `status` read that. Locks say who runs, never pid files: a lock ends
//! with its process. Nothing here talks the wire protocol; the only request is `GET /health`.

pub mod bootstrap;
pub mod capnp;
pub mod channels;
pub mod configure;
pub mod down;
pub mod health;
pub mod layout;
pub mod lock;
pub mod log;
pub mod ports;
pub mod process;
pub mod reload;
pub mod restart;
pub mod runtime;
pub mod state;
pub mod supervisor;
pub mod up;

pub const DEFAULT_PORT: u16 = 8787;

/// The address that clients on this machine use.
pub fn url(port: u16) -> String {
    format!("ws://127.0.0.1:{port}/ws")
}
