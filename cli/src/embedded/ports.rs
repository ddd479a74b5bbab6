//! Checks that a port of this machine is free, and names the process that listens on it.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use listeners::Protocol;

use super::layout::Layout;
use super::record;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::paths::shell;
use crate::private_file;

/// A killed workerd keeps its port until the system has cleaned up.
const DYING: Duration = Duration::from_secs(2);
/// Ports that are tried.
const NEAR: u16 = 200;
/// A wait that is longer is told.
const SILENT: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The port of the last start. A file that is missing or damaged counts as none.
pub fn last_port(layout: &Layout) -> Option<u16> {
    let text = private_file::read_private(&layout.port(), "").ok()??;
    text.trim().parse().ok().filter(|port| *port > 0)
}

pub fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// A port that is free now, near this one.
pub fn free_beside(port: u16) -> u16 {
    let after = port.checked_add(1).unwrap_or(port - 1);
    let mut near = (after..=after.saturating_add(NEAR)).filter(|near| *near != port);
    near.find(|port| is_free(*port)).unwrap_or(after)
}

/// Fails with the name of the program that listens on the port, if the system tells it. Without a name the program may be
/// ending, so the port gets some time to become free.
pub fn ensure_free(port: u16, out: Option<Output>) -> Outcome<()> {
    let began = Instant::now();
    let give_up = began + DYING;
    let mut out = out;
    loop {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if let Some(home) = record::home_on(port) {
                    return Err(Failure::failed(
                        format!("Port {port} is in use by the gateway of {}.", home.display()),
                        format!(
                            "Stop it with `GSV_HOME={} gsv down`, or choose another port: `gsv up --port {}`.",
                            shell(&home),
                            free_beside(port)
                        ),
                    ));
                }
                let owner = listeners::get_process_by_port(port, Protocol::TCP).ok();
                if owner.is_none() && Instant::now() < give_up {
                    if let Some(out) = out.take_if(|_| began.elapsed() > SILENT) {
                        out.aside(&format!("waiting until port {port} is free ..."));
                    }
                    sleep(LOOK_AGAIN);
                    continue;
                }
                let owner = owner.map(|process| format!("process {} ({})", process.pid, process.name));
                let who = owner.as_deref().unwrap_or("another program");
                return Err(Failure::failed(
                    format!("Port {port} is in use by {who}."),
                    format!(
                        "Stop it, or choose another port: `gsv up --port {}`.",
                        free_beside(port)
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
