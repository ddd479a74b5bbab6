//! Checks that a port of this machine is free, and names the process that listens on it.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use listeners::Protocol;

use crate::exit::{Failure, Outcome};

/// A killed workerd keeps its port until the system has cleaned up.
const DYING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Fails with the name of the program that listens on the port, if the system tells it. Without a name the program may be
/// ending, so the port gets some time to become free.
pub fn ensure_free(port: u16) -> Outcome<()> {
    let give_up = Instant::now() + DYING;
    loop {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let owner = listeners::get_process_by_port(port, Protocol::TCP).ok();
                if owner.is_none() && Instant::now() < give_up {
                    sleep(LOOK_AGAIN);
                    continue;
                }
                let owner = owner.map(|process| format!("process {} ({})", process.pid, process.name));
                let who = owner.as_deref().unwrap_or("another program");
                return Err(Failure::failed(
                    format!("Port {port} is in use by {who}."),
                    format!(
                        "Stop it, or choose another port: `gsv up --port {}`.",
                        if port == u16::MAX { port - 1 } else { port + 1 }
                    ),
                ));
            }
            Err(error) => {
                return Err(Failure::failed(
                    format!("Port {port} cannot be used: {error}."),
                    "Choose another: `gsv up --port 8788`.",
                ));
            }
        }
    }
}
