//! The address of a gateway: parses what a person typed, and gives the paths of the endpoints. Opens no connection.

use std::net::IpAddr;

use tokio_tungstenite::tungstenite::http::Uri;

use crate::error::LinkError;
use crate::net::pin::Fingerprint;

/// What stands before a certificate's fingerprint, in the fragment of an address.
const PIN: &str = "sha256=";

/// A gateway to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub uri: Uri,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub tls: bool,
    /// The only certificate that the server may have. `None`: one that a public authority has signed.
    pub pin: Option<Fingerprint>,
    /// Shown in messages: without the query, which may hold a secret.
    pub shown: String,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, LinkError> {
        let url = url.trim();
        let bad = |why: &str| LinkError::BadUrl {
            url: without_secrets(url),
            why: why.into(),
        };
        if url.is_empty() {
            return Err(bad("it is empty"));
        }
        let (url, fragment) = url.split_once('#').map_or((url, None), |(url, rest)| (url, Some(rest)));
        let pin = match fragment.filter(|fragment| !fragment.is_empty()) {
            None => None,
            Some(fragment) => Some(fragment.strip_prefix(PIN).and_then(Fingerprint::parse).ok_or_else(|| {
                bad("after `#` stands only sha256= and the 64 hex digits of a certificate's fingerprint")
            })?),
        };
        let with_scheme = if url.contains("://") {
            url.to_owned()
        } else {
            format!("{}{url}", scheme_for_bare(url))
        };
        let uri: Uri = with_scheme.parse().map_err(|_| bad("it can't be read"))?;
        let tls = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            _ => return Err(bad("only ws, wss, http and https are known")),
        };
        if pin.is_some() && !tls {
            return Err(bad("a certificate's fingerprint needs wss:// or https://"));
        }
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad(
                "names and passwords don't belong in an address; set the token instead",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        // `Authority` drops a port that it can't read; here that is an error.
        let port = match authority.as_str().get(authority.host().len()..).unwrap_or_default() {
            "" if tls => 443,
            "" => 80,
            rest => match rest.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
                Some(port) if port > 0 => port,
                _ => return Err(bad("the port is not valid")),
            },
        };
        let path = match uri.path() {
            "" | "/" => "/ws",
            path => path,
        };
        let scheme = if tls { "wss" } else { "ws" };
        let shown = format!("{scheme}://{authority}{path}");
        let full = uri
            .query()
            .map_or_else(|| shown.clone(), |query| format!("{shown}?{query}"));
        let uri = full.parse().map_err(|_| bad("it can't be read"))?;
        Ok(Self {
            uri,
            host,
            port,
            tls,
            pin,
            shown,
        })
    }

    /// Whether the address is on this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The same server and certificate as a `wss://` address that the local config can keep.
    pub fn pinned(host_and_port: &str, pin: Option<Fingerprint>) -> String {
        let pin = pin.map_or_else(String::new, |pin| format!("#{PIN}{pin}"));
        format!("wss://{host_and_port}/ws{pin}")
    }

    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or(self.host.as_str(), |authority| authority.as_str())
    }

    /// The path for uploads.
    pub fn media_path(&self) -> String {
        self.http_path("/media")
    }

    /// A path of the gateway: beside the socket's path, because a gateway may be served below a prefix of its host.
    pub fn http_path(&self, path: &str) -> String {
        format!("{}{path}", self.uri.path().strip_suffix("/ws").unwrap_or_default())
    }

    /// The address of such a path, as other services reach it.
    pub fn http_url(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.http_path(path))
    }
}

/// The scheme of a bare `host[:port]`: plain on this machine, encrypted elsewhere.
fn scheme_for_bare(url: &str) -> &'static str {
    let host = url.split('/').next().unwrap_or_default();
    let local = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|prefix| host.starts_with(prefix));
    if local { "ws://" } else { "wss://" }
}

fn without_secrets(url: &str) -> String {
    let cut = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = cut.split_at(cut.find("://").map_or(0, |at| at + "://".len()));
    let shown = match rest.rfind('@') {
        Some(at) => format!("{scheme}...{}", &rest[at..]),
        None => cut.to_owned(),
    };
    shown.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Target::parse(url).map_or_else(|error| format!("{}: {error}", error.reason()), |target| target.shown)
    }

    #[test]
    fn every_spelling_of_an_address_leads_to_ws() {
        for (given, want) in [
            ("ws://127.0.0.1:8787", "ws://127.0.0.1:8787/ws"),
            ("http://localhost:8787/", "ws://localhost:8787/ws"),
            ("https://gsv.example.com", "wss://gsv.example.com/ws"),
            ("wss://gsv.example.com/other", "wss://gsv.example.com/other"),
            ("localhost:8787", "ws://localhost:8787/ws"),
            ("gsv.example.com", "wss://gsv.example.com/ws"),
            ("http://[::1]:99", "ws://[::1]:99/ws"),
            ("https://host/ws?key=secret", "wss://host/ws"),
        ] {
            assert_eq!(shown(given), want, "{given}");
        }
        let media = |url: &str| Target::parse(url).unwrap().media_path();
        assert_eq!(media("ws://127.0.0.1:8787"), "/media");
        assert_eq!(media("https://host/gsv/ws"), "/gsv/media");
        let hook = |url: &str| Target::parse(url).unwrap().http_url("/hooks/gh");
        assert_eq!(hook("ws://127.0.0.1:8787"), "http://127.0.0.1:8787/hooks/gh");
        assert_eq!(hook("https://host/gsv/ws?key=secret"), "https://host/gsv/hooks/gh");
        assert_eq!(Target::parse("http://[::1]:99").unwrap().host, "::1");
        assert_eq!(Target::parse("https://a").unwrap().port, 443);
    }

    #[test]
    fn rm4_an_address_carries_the_fingerprint_of_its_certificate() {
        let pin = Fingerprint::of(b"certificate");
        let url = Target::pinned("10.0.0.7:8788", Some(pin));
        let target = Target::parse(&url).unwrap();
        assert_eq!((target.pin, target.port, target.tls), (Some(pin), 8788, true));
        assert_eq!(target.shown, "wss://10.0.0.7:8788/ws");
        assert_eq!(Target::parse("wss://host/ws#").unwrap().pin, None);
        assert_eq!(Target::parse(&Target::pinned("host", None)).unwrap().pin, None);
        for (bad, why) in [
            ("wss://host/ws#sha256=12".to_owned(), "64 hex digits"),
            ("wss://host/ws#other".to_owned(), "64 hex digits"),
            (url.replace("wss:", "ws:"), "needs wss://"),
        ] {
            let said = shown(&bad);
            assert!(said.starts_with("link.bad_url") && said.contains(why), "{bad}: {said}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_recognised() {
        for (given, is_here) in [
            ("ws://127.0.0.1:8787/ws", true),
            ("http://localhost/", true),
            ("ws://[::1]:1/ws", true),
            ("ws://127.9.9.9", true),
            ("wss://gsv.example.workers.dev/ws", false),
            ("ws://127.0.0.1.evil.com/", false),
            ("ws://localhost.evil.com", false),
            ("ws://[2001:db8::1]/", false),
        ] {
            assert_eq!(Target::parse(given).unwrap().is_loopback(), is_here, "{given}");
        }
    }

    #[test]
    fn bad_addresses_are_refused_without_repeating_secrets() {
        for given in [
            "",
            "ftp://host",
            "ws://",
            "ws://u:hunter2@host/ws",
            "ws://host:99999",
            "ws://host:0",
            "ws://host:",
            "not a url",
        ] {
            let said = shown(given);
            assert!(said.starts_with("link.bad_url"), "{given}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        for (given, want) in [
            (" ", "`` is not an address of a gateway: it is empty"),
            ("ws://:80", "it names no host"),
            ("ws://u:hunter2@host/ws", "`ws://...@host/ws`"),
            ("u:hunter2@host/ws", "`...@host/ws`"),
            ("ws://u:hunter2@host/ws", "set the token instead"),
            ("ftp://host/?a@b", "`ftp://host/`"),
        ] {
            let said = shown(given);
            assert!(said.contains(want) && !said.contains("hunter2"), "{given}: {said}");
        }
    }
}
