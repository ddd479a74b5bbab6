//! Checks that a port of this machine is free, and finds the process that listens on it.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::process::describe;
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
                let owner = listener(port);
                if owner.is_none() && Instant::now() < give_up {
                    sleep(LOOK_AGAIN);
                    continue;
                }
                let who = owner.map_or_else(|| "another program".to_owned(), describe);
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

/// The pid of the process that listens on 127.0.0.1 or on all addresses. Linux only, and only for one's own processes.
fn listener(port: u16) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let files = fs::read_dir(process.path().join("fd")).ok()?;
        let has = files.flatten().any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|target| inodes.iter().any(|inode| target.as_os_str() == inode.as_str()))
        });
        has.then_some(pid)
    })
}

/// Inodes of the sockets in state LISTEN (0A) on a port, from the text of `/proc/net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let lines = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (local.ends_with(&suffix) && *state == "0A").then(|| (*inode).to_owned())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_names_its_process() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let failure = ensure_free(port).unwrap_err();
        assert!(
            failure.message.contains(&format!("Port {port} is in use by")),
            "{failure:?}"
        );
        if cfg!(target_os = "linux") {
            assert!(
                failure.message.contains(&format!("process {}", std::process::id())),
                "{failure:?}"
            );
        }
        assert!(failure.next.contains("--port"));
        drop(listener);
        ensure_free(port).unwrap();
    }

    #[test]
    fn listening_sockets_are_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1\n\
             1: 0100007F:2253 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1\n";
        assert_eq!(listening_inodes(table, 8787), ["4242"]);
    }
}
