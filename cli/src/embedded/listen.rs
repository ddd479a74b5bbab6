//! Where the gateway listens for other machines (`gsv up --listen`), stored in the state folder so that each later start, also that of
//! the service, does the same.

use std::net::{IpAddr, SocketAddr, TcpListener};

use gsv_link::Target;
use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use super::layout::Layout;
use crate::exit::{Failure, Outcome};
use crate::private_file;

/// The longest path of a Unix socket on Linux and macOS.
const SOCKET_PATH_BYTES: usize = 103;
const REPAIR: &str = "Set it again: `gsv up --listen ADDR:PORT`, or `gsv up --listen none`.";

/// What `--listen` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// As at the last start.
    Same,
    /// Only on loopback.
    None,
    At(Listen),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listen {
    pub address: SocketAddr,
    /// The public name of a proxy that ends TLS, as in `Host` headers. Absent: the gateway ends TLS with its own certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
}

/// A listening address, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listening {
    #[serde(flatten)]
    pub listen: Listen,
    /// SHA-256 of the certificate, hex. Absent: a proxy ends TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl Listening {
    pub fn of(listen: &Listen, certificate: Option<&Certificate>) -> Self {
        Self {
            listen: listen.clone(),
            fingerprint: certificate.map(|certificate| certificate.fingerprint().to_string()),
        }
    }

    /// One line for people.
    pub fn words(&self) -> String {
        match (&self.listen.proxy, &self.fingerprint) {
            (Some(proxy), _) => format!(
                "{} without encryption, for the proxy of https://{proxy}",
                self.listen.address
            ),
            (None, Some(fingerprint)) => format!("{} (TLS, certificate {fingerprint})", self.listen.address),
            (None, None) => self.listen.address.to_string(),
        }
    }
}

/// The unspecified address is no address to connect to.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl Listen {
    /// `None`: only on loopback.
    pub fn read(layout: &Layout) -> Outcome<Option<Self>> {
        private_file::read_json(&layout.listen(), REPAIR)
    }

    /// The certificate that this needs; made when there is none.
    pub fn certificate(&self, layout: &Layout) -> Outcome<Option<Certificate>> {
        match self.proxy {
            Some(_) => Ok(None),
            None => Certificate::ensure(layout).map(Some),
        }
    }
}

/// A warning, where the gateway had a certificate that is gone: the next one is another, and no machine that has joined accepts it.
pub fn lost_certificate(layout: &Layout, wanted: &Wanted) -> Option<String> {
    let before = Listen::read(layout).ok()??;
    let needs_one = match wanted {
        Wanted::Same => true,
        Wanted::None => false,
        Wanted::At(listen) => listen.proxy.is_none(),
    };
    (needs_one && before.proxy.is_none() && !layout.certificate().exists()).then(|| {
        format!(
            "the gateway's certificate for other machines was gone, and a new one was made. The machines that have joined do not accept it: make an invitation for each (`gsv invite node`, `gsv invite client`) and join again. Or stop the gateway, put {} back from a backup with secrets, and start it",
            layout.certificate().display()
        )
    })
}

/// Stores what is asked for and returns what holds now. A new address is tried first; a stored one may be missing for the moment, such
/// as that of a network which is not connected yet, and the supervisor goes on trying.
pub fn settle(layout: &Layout, wanted: &Wanted, port: u16) -> Outcome<Option<Listening>> {
    let listen = match wanted {
        Wanted::Same => Listen::read(layout)?,
        Wanted::None => {
            let _ = std::fs::remove_file(layout.listen());
            None
        }
        Wanted::At(listen) => Some(listen.clone()),
    };
    let Some(listen) = listen else { return Ok(None) };
    if listen.address.port() == port {
        return Err(Failure::usage(
            format!("Port {port} is the gateway's port for this machine."),
            "Choose another port for other machines, such as `gsv up --listen 0.0.0.0:8788`.",
        ));
    }
    if listen.proxy.is_none() && layout.remote_socket().as_os_str().len() > SOCKET_PATH_BYTES {
        return Err(Failure::failed(
            format!(
                "The path {} is too long for a socket.",
                layout.remote_socket().display()
            ),
            "Set GSV_HOME to a folder with a shorter path.",
        ));
    }
    let certificate = listen.certificate(layout)?;
    if let Wanted::At(listen) = wanted {
        TcpListener::bind(listen.address).map_err(|error| {
            Failure::failed(
                format!("The gateway can't listen on {}: {error}.", listen.address),
                "Choose an address of this machine and a free port, such as `gsv up --listen 0.0.0.0:8788`.",
            )
        })?;
        let text = serde_json::to_string(listen).unwrap_or_default();
        private_file::write(&layout.listen(), text)?;
    }
    Ok(Some(Listening::of(&listen, certificate.as_ref())))
}

/// `ADDR:PORT`, or `none`.
pub fn parse_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "none" {
        return Ok(None);
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(Some(address)),
        _ => Err("write an IP address and a port, such as 0.0.0.0:8788 or [::]:8788, or `none`".to_owned()),
    }
}

/// The public name of a proxy, with a port when it is not 443.
pub fn parse_proxy(text: &str) -> Result<String, String> {
    let target = Target::parse(&format!("https://{text}")).ok();
    let is_name = |target: &Target| {
        target.authority() == text
            && text.len() <= 253
            && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c))
    };
    match target.filter(is_name) {
        Some(_) => Ok(text.to_ascii_lowercase()),
        None => Err("write the proxy's public name without https://, such as gsv.example.org".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::embedded::poll;

    fn home() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().join("gsv"),
        };
        layout.ensure().unwrap();
        (dir, layout)
    }
    fn at(address: SocketAddr) -> Listen {
        Listen { address, proxy: None }
    }

    #[test]
    fn rm1_addresses_and_proxies_are_checked() {
        for good in ["0.0.0.0:8788", "[::]:8788", "192.168.1.7:1", "none"] {
            assert!(parse_address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "8788",
            ":8788",
            "0.0.0.0",
            "0.0.0.0:0",
            "host:8788",
            "0.0.0.0:99999",
        ] {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_proxy("GSV.example.org").unwrap(), "gsv.example.org");
        assert_eq!(parse_proxy("gsv.example.org:8443").unwrap(), "gsv.example.org:8443");
        for bad in ["", "https://a", "a/b", "a,b", "u@a", "a b", "a#b", "a:99999"] {
            assert!(parse_proxy(bad).is_err(), "{bad}");
        }
    }

    /// Until the port is free: a process that another test starts has the socket until it executes its program.
    fn settled(layout: &Layout, listen: &Listen) -> Option<Listening> {
        poll(Duration::from_secs(10), || {
            settle(layout, &Wanted::At(listen.clone()), 1).ok().flatten()
        })
    }

    #[test]
    fn rm1_an_address_is_stored_once_it_can_be_used_and_stays_until_it_is_removed() {
        let (_dir, layout) = home();
        assert_eq!(settle(&layout, &Wanted::Same, 1).unwrap(), None);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(settle(&layout, &Wanted::At(at(address)), 1).is_err());
        assert_eq!(Listen::read(&layout).unwrap(), None);
        assert!(settle(&layout, &Wanted::At(at(address)), address.port()).is_err());
        drop(taken);
        let first = settled(&layout, &at(address)).unwrap();
        assert_eq!(first.fingerprint.as_ref().map(String::len), Some(64));
        assert_eq!(lost_certificate(&layout, &Wanted::Same), None);
        // A stored address counts also while it can't be used.
        let _taken = TcpListener::bind(address).unwrap();
        assert_eq!(settle(&layout, &Wanted::Same, 1).unwrap(), Some(first));
        assert_eq!(settle(&layout, &Wanted::None, 1).unwrap(), None);
        assert_eq!(Listen::read(&layout).unwrap(), None);
    }

    #[test]
    fn rm2_a_certificate_that_is_gone_is_told_before_another_is_made() {
        let (_dir, layout) = home();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // The first one takes the place of none.
        assert_eq!(lost_certificate(&layout, &Wanted::At(at(free))), None);
        settled(&layout, &at(free)).unwrap();
        std::fs::remove_file(layout.certificate()).unwrap();
        for wanted in [Wanted::Same, Wanted::At(at(free))] {
            let words = lost_certificate(&layout, &wanted).unwrap();
            assert!(words.contains("join again"), "{words}");
        }
        assert_eq!(lost_certificate(&layout, &Wanted::None), None);
        settle(&layout, &Wanted::Same, 1).unwrap();
        assert_eq!(lost_certificate(&layout, &Wanted::Same), None);
    }

    #[test]
    fn rm3_a_proxy_needs_no_certificate_and_the_words_say_that_the_address_is_not_encrypted() {
        let (_dir, layout) = home();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listen = Listen {
            proxy: Some("gsv.example.org".to_owned()),
            ..at(free)
        };
        let listening = settled(&layout, &listen).unwrap();
        assert_eq!(listening.fingerprint, None);
        assert!(listening.words().contains("without encryption"));
        assert!(Certificate::read(&layout).unwrap().is_none());
    }
}
