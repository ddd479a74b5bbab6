//! Decides about the hosts of one command, and connects to those that it may reach. A name is resolved once, and the connection goes to
//! the address that was checked.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gsv_sandbox::{Destination, Host, Hosts, Reach};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::PATIENCE;
use super::head::{Refusal, Wish};

/// Addresses of a name that are tried.
const ADDRESSES: usize = 4;
/// Refused hosts that are remembered.
const REFUSED: usize = 20;
/// Names that are looked up at once, by all commands: a lookup that is not waited for any more goes on, in a thread of the node.
static LOOKUPS: Semaphore = Semaphore::const_new(16);

pub(super) struct Door {
    hosts: Hosts,
    refused: PathBuf,
    seen: Mutex<BTreeSet<String>>,
}

impl Door {
    /// `refused`: the file that gets a line for each host that is not admitted.
    pub(super) fn new(hosts: Hosts, refused: PathBuf) -> Self {
        Self {
            hosts,
            refused,
            seen: Mutex::default(),
        }
    }

    pub(super) async fn connect(&self, wish: &Wish) -> Result<TcpStream, Refusal> {
        let (Wish::Tunnel(destination) | Wish::Request { destination, .. }) = wish;
        let Some(reach) = self.hosts.reach(destination) else {
            self.remember(destination);
            return Err(Refusal {
                status: 403,
                reason: format!("The sandbox does not let this command reach {destination}."),
            });
        };
        let failed = |reason: String| Refusal { status: 502, reason };
        let found = timeout(PATIENCE, addresses(destination)).await;
        let found = found
            .map_err(|_| failed(format!("{destination} was not found in time.")))?
            .map_err(|error| failed(format!("{destination} was not found: {error}.")))?;
        let usable = usable(&self.hosts, reach, &found, is_of_this_machine);
        if usable.is_empty() {
            return Err(not_public(destination, &found));
        }
        let mut last = String::new();
        // The addresses that were checked: to resolve the name again could give another one.
        for address in usable {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "it did not answer in time".clone_into(&mut last),
            }
        }
        Err(failed(format!("{destination} can't be reached: {last}.")))
    }

    /// Each host once, in a file that outlives the node.
    fn remember(&self, destination: &Destination) {
        use std::io::Write as _;
        let host = destination.to_string();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REFUSED || !seen.insert(host.clone()) {
            return;
        }
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.refused);
        // Without the line, the program's own words remain.
        let _ = file.and_then(|mut file| file.write_all(format!("{host}\n").as_bytes()));
    }
}

async fn addresses(destination: &Destination) -> io::Result<Vec<SocketAddr>> {
    match &destination.host {
        Host::Address(address) => Ok(vec![SocketAddr::new(*address, destination.port)]),
        Host::Name(name) => {
            let slot = LOOKUPS.acquire().await.map_err(io::Error::other)?;
            let asked = (name.clone(), destination.port);
            let found = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                asked.to_socket_addrs().map(Iterator::collect)
            });
            found.await.map_err(io::Error::other)?
        }
    }
}

/// The addresses of a host that may be connected to.
fn usable(hosts: &Hosts, reach: Reach, found: &[SocketAddr], is_own: impl Fn(IpAddr) -> bool) -> Vec<SocketAddr> {
    let usable = found
        .iter()
        .filter(|address| hosts.admits(reach, **address, is_own(address.ip())));
    usable.copied().take(ADDRESSES).collect()
}

/// Whether this machine has the address: only then can a socket have it. Programs of this machine answer there behind its firewall.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn not_public(destination: &Destination, found: &[SocketAddr]) -> Refusal {
    let reason = match found.first() {
        Some(address) => format!(
            "{destination} stands for {address}, an address of this machine or of a network that is not public. Only the owner of the machine can open it: by that address in `network` of node.toml."
        ),
        None => format!("{destination} has no address."),
    };
    Refusal { status: 403, reason }
}

#[cfg(test)]
mod tests {
    use gsv_sandbox::HostRule;

    use super::*;

    #[test]
    fn sb15_only_public_addresses_of_a_name_are_used_and_those_that_are_listed() {
        let found = [
            "127.0.0.1:80",
            "8.8.8.8:80",
            "[::1]:80",
            "169.254.169.254:80",
            "127.0.0.1:81",
        ];
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let none = Hosts::default();
        let usable = |hosts: &Hosts, found: &[SocketAddr]| usable(hosts, Reach::Public, found, |_| false);
        assert_eq!(usable(&none, &found), ["8.8.8.8:80".parse().unwrap()]);
        assert!(usable(&none, found.get(..1).unwrap()).is_empty());
        let hosts = Hosts {
            listed: vec![HostRule::parse("127.0.0.1:80").unwrap()],
            asked: vec![],
        };
        assert_eq!(usable(&hosts, &found), found.get(..2).unwrap());
    }

    #[test]
    fn sb15_a_public_address_of_this_machine_is_not_used() {
        let found: Vec<SocketAddr> = ["8.8.8.8:80", "8.8.4.4:80"].map(|text| text.parse().unwrap()).into();
        let is_own = |address: IpAddr| address == found.first().unwrap().ip();
        let usable = usable(&Hosts::default(), Reach::Public, &found, is_own);
        assert_eq!(usable, found.get(1..).unwrap());
        for (address, wanted) in [("127.0.0.1", true), ("127.9.9.9", true), ("203.0.113.77", false)] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), wanted, "{address}");
        }
    }

    #[test]
    fn sb15_a_refused_address_is_named() {
        let destination = Destination::parse("a.org:80", None).unwrap();
        let refusal = not_public(&destination, &["10.0.0.7:80".parse().unwrap()]);
        assert_eq!(refusal.status, 403);
        assert!(
            refusal.reason.starts_with("a.org stands for 10.0.0.7:80, "),
            "{}",
            refusal.reason
        );
    }
}
