//! Which hosts the commands of a sandbox may reach through the node's proxy: names with ports, and the addresses that a name may stand
//! for. PURE: names are resolved elsewhere.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where a command wants to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Lower case, without a dot at the end.
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            HTTP | HTTPS => write!(formatter, "{}", self.host),
            port => write!(formatter, "{}:{port}", self.host),
        }
    }
}

const HTTP: u16 = 80;
const HTTPS: u16 = 443;
/// Bytes of a name in the DNS.
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

impl Destination {
    /// `example.org:8080`, `[::1]:443`; without a port it is `default`. `None`: it has another form.
    pub fn parse(text: &str, default: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(text)?;
        let host = Host::parse(host)?;
        let port = port.or(default)?;
        Some(Self { host, port })
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        is_name(&name).then_some(Self::Name(name))
    }
}

impl Host {
    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == LOCALHOST,
            Self::Address(address) => address.is_loopback(),
        }
    }
}

/// The port is what follows the last colon, unless that is part of an IPv6 address.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    match text.get(after_address..)?.rfind(':') {
        None => Some((text, None)),
        Some(at) => {
            let (host, port) = text.split_at(after_address + at);
            let digits = port.get(1..)?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let port = digits.parse::<u16>().ok().filter(|port| *port != 0)?;
            Some((host, Some(port)))
        }
    }
}

/// Labels of letters, digits, `-` and `_`. The last one is no number, because resolvers read `127.1` and `0x7f000001` as addresses.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES).contains(&label.len())
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    name.len() <= NAME_BYTES && !is_number && name.split('.').all(is_label)
}

/// One entry of a list: `example.org`, `*.example.org`, `example.org:8080`, `127.0.0.1:3000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    host: Host,
    /// Names below `host`, and not itself.
    below: bool,
    /// Without one: 80 and 443.
    port: Option<u16>,
}

impl HostRule {
    /// # Errors
    /// What is wrong with the entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no host; write `example.org`, `*.example.org` or `example.org:8080`");
        let (host, port) = split_port(text).ok_or_else(wrong)?;
        let below = host.strip_prefix("*.");
        let host = Host::parse(below.unwrap_or(host)).ok_or_else(wrong)?;
        match &host {
            Host::Address(_) if below.is_some() => Err(wrong()),
            Host::Name(name) if below.is_some() && !name.contains('.') => Err(format!(
                "{text:?} would allow too many hosts; name at least two parts, as in `*.example.org`"
            )),
            _ => Ok(Self {
                host,
                below: below.is_some(),
                port,
            }),
        }
    }

    /// A host that only the owner of the machine can list: an address, or this machine itself. What a name stands for is decided by others.
    pub fn needs_owner(&self) -> bool {
        matches!(self.host, Host::Address(_)) || self.is_localhost()
    }
    /// `localhost`, or a name below it, which resolvers read as the loopback.
    fn is_localhost(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == LOCALHOST || name.ends_with(".localhost"),
            Host::Address(_) => false,
        }
    }

    /// Whether these entries of the owner have this one: as it is, or for `localhost` as another name of this machine with the same port.
    pub fn is_in(&self, listed: &[Self]) -> bool {
        let is_same = |entry: &Self| {
            entry == self || (self.is_localhost() && entry.host.is_loopback() && entry.port == self.port)
        };
        listed.iter().any(is_same)
    }

    /// Whether the entry opens this server. The names of this machine's loopback are one server. `host`: a name, or an address without
    /// brackets.
    pub fn opens(&self, host: &str, port: u16) -> bool {
        let Some(host) = host
            .parse()
            .map_or_else(|_| Host::parse(host), |address| Some(Host::Address(address)))
        else {
            return false;
        };
        let destination = Destination { host, port };
        self.admits(&destination)
            || (self.host.is_loopback()
                && destination.host.is_loopback()
                && self.admits(&Destination {
                    host: self.host.clone(),
                    port,
                }))
    }

    fn admits(&self, destination: &Destination) -> bool {
        let has_port = self.port.map_or(matches!(destination.port, HTTP | HTTPS), |port| {
            port == destination.port
        });
        has_port
            && match (&self.host, &destination.host) {
                (Host::Name(suffix), Host::Name(name)) if self.below => name
                    .strip_suffix(suffix.as_str())
                    .is_some_and(|start| start.ends_with('.')),
                (rule, host) => rule == host,
            }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.below { "*." } else { "" };
        write!(formatter, "{star}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

/// The hosts that a command may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Listed by the owner of the machine. Those that are addresses may be anywhere.
    pub listed: Vec<HostRule>,
    /// Allowed for this command. Their addresses must be public ones.
    pub asked: Vec<HostRule>,
}

/// Which addresses of a host may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The owner of the machine has listed the address.
    Any,
    /// The owner has listed `localhost`.
    Loopback,
    /// The address of a name is decided by others, also that of a name that the owner has listed.
    Public,
}

const LOCALHOST: &str = "localhost";

impl Hosts {
    /// `None`: the host is not allowed.
    pub fn reach(&self, destination: &Destination) -> Option<Reach> {
        let is_in = |rules: &[HostRule]| rules.iter().any(|rule| rule.admits(destination));
        if !is_in(&self.listed) {
            return is_in(&self.asked).then_some(Reach::Public);
        }
        Some(match &destination.host {
            Host::Address(_) => Reach::Any,
            Host::Name(name) if name == LOCALHOST => Reach::Loopback,
            Host::Name(_) => Reach::Public,
        })
    }

    /// Hosts that programs reach without the proxy (`NO_PROXY`): servers that a command starts for itself. One that is allowed is outside.
    pub fn direct(&self) -> String {
        let rules = || self.listed.iter().chain(&self.asked);
        let is_own = |name: &&str| {
            let host = name
                .parse()
                .map_or_else(|_| Host::Name((*name).to_owned()), Host::Address);
            !rules().any(|rule| rule.host == host)
        };
        [LOCALHOST, "127.0.0.1", "::1"]
            .into_iter()
            .filter(is_own)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Whether an address that a host stands for may be connected to: one that `reach` admits, or that the owner has listed itself.
    /// `is_own`: it is an address of this machine, which may be a public one.
    pub fn admits(&self, reach: Reach, address: SocketAddr, is_own: bool) -> bool {
        let (host, port) = (Host::Address(address.ip()), address.port());
        let is_listed = || {
            self.listed.iter().any(|rule| {
                rule.admits(&Destination {
                    host: host.clone(),
                    port,
                })
            })
        };
        reach.admits(address.ip(), is_own) || is_listed()
    }
}

impl Reach {
    fn admits(self, address: IpAddr, is_own: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => address.is_loopback(),
            Self::Public => !is_own && is_public(address),
        }
    }
}

/// Whether an address belongs to the public internet: not to this machine, its networks, or a cloud's metadata service.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Tells Azure's machines their keys and certificates, under a public number. That of other clouds is a private or link-local one.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The special-purpose registry of IANA (RFC 6890 and its successors), and a metadata service outside of it.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address != AZURE
        && !(matches!(a, 0 | 10 | 127 | 224..)
            || (a == 100 && (64..128).contains(&b))
            || (a == 169 && b == 254)
            || (a == 172 && (16..32).contains(&b))
            || (a == 192 && b == 168)
            || (a == 192 && b == 0 && matches!(c, 0 | 2))
            || (a == 192 && b == 88 && c == 99)
            || (a == 198 && matches!(b, 18 | 19))
            || (a == 198 && b == 51 && c == 100)
            || (a == 203 && b == 0 && c == 113))
}

/// Only global unicast (`2000::/3`) is public; addresses that carry an IPv4 address are as public as that one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let inner = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // NAT64, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => inner(high, low),
        // Protocol assignments with Teredo and ORCHID; documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listed: &[&str], asked: &[&str]) -> Hosts {
        let rules = |texts: &[&str]| texts.iter().map(|text| HostRule::parse(text).unwrap()).collect();
        Hosts {
            listed: rules(listed),
            asked: rules(asked),
        }
    }

    fn reach(hosts: &Hosts, destination: &str) -> Option<Reach> {
        hosts.reach(&Destination::parse(destination, None).unwrap())
    }

    #[test]
    fn sb14_only_exact_hosts_and_names_below_a_suffix_are_admitted() {
        let hosts = hosts(
            &["crates.io", "127.0.0.1:3000", "localhost:3000"],
            &["*.npmjs.org", "Example.org.:8080"],
        );
        for (destination, wanted) in [
            ("crates.io:443", Some(Reach::Public)),
            ("localhost:3000", Some(Reach::Loopback)),
            ("localhost:80", None),
            ("CRATES.IO.:80", Some(Reach::Public)),
            ("crates.io:22", None),
            ("static.crates.io:443", None),
            ("evilcrates.io:443", None),
            ("crates.io.evil.org:443", None),
            ("registry.npmjs.org:443", Some(Reach::Public)),
            ("a.b.npmjs.org:443", Some(Reach::Public)),
            ("npmjs.org:443", None),
            ("evilnpmjs.org:443", None),
            ("example.org:8080", Some(Reach::Public)),
            ("example.org:443", None),
            ("127.0.0.1:3000", Some(Reach::Any)),
            ("127.0.0.1:80", None),
            ("[::1]:3000", None),
        ] {
            assert_eq!(reach(&hosts, destination), wanted, "{destination}");
        }
    }

    #[test]
    fn sb14_an_entry_that_opens_a_server_is_found_under_each_name_of_the_loopback() {
        let opens = |entry: &str, host: &str, port: u16| HostRule::parse(entry).unwrap().opens(host, port);
        for (entry, host, port) in [
            ("127.0.0.1:8787", "127.0.0.1", 8787),
            ("localhost:8787", "127.0.0.1", 8787),
            ("[::1]:8787", "localhost", 8787),
            ("127.0.0.1:8787", "::1", 8787),
            ("*.example.org", "gsv.example.org", 443),
            ("10.0.0.7:8787", "10.0.0.7", 8787),
        ] {
            assert!(opens(entry, host, port), "{entry} {host}:{port}");
        }
        for (entry, host, port) in [
            ("localhost:3000", "127.0.0.1", 8787),
            ("localhost", "127.0.0.1", 8787),
            ("crates.io", "127.0.0.1", 443),
            ("10.0.0.7:8787", "127.0.0.1", 8787),
            ("gsv.example.org", "gsv.example.org", 8787),
        ] {
            assert!(!opens(entry, host, port), "{entry} {host}:{port}");
        }
    }

    /// The gateway, which asks about hosts, is tested with the same ones (`grants.unit.test.ts`).
    #[test]
    fn sb14_hosts_are_written_in_one_way() {
        for (text, host) in [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("example.org:0443", "example.org:443"),
            ("*.Example.org.:8080", "*.example.org:8080"),
            ("_dmarc.example.org", "_dmarc.example.org"),
            ("localhost:3000", "localhost:3000"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(HostRule::parse(text).unwrap().to_string(), host, "{text}");
        }
        let long = format!("{}.org", "a".repeat(64));
        let many = format!("{}aa", "a.".repeat(126));
        for text in [
            "*.com",
            "*",
            "*.",
            "*.127.0.0.1",
            "a.org:0",
            "a.org:65536",
            "a.org:",
            "a.org:8o",
            "0x7f.0x1",
            "127.1",
            "256.0.0.1",
            "1.2.3.4.",
            "a..b.org",
            ".a.org",
            "-a.org",
            "a.-b.org",
            "ä.org",
            "a b.org",
            "a.org/x",
            &long,
            &many,
            "",
        ] {
            assert!(HostRule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sb14_what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.org",
            "*.127.0.0.1",
            "a..b",
            "-a.org",
            "a b.org",
            "http://a.org",
            "a.org/x",
            "a.org:0",
            "a.org:65536",
            "a.org:+1",
            "a.org:",
            ":80",
            "[::1",
            "::1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "a@b.org",
            "a.*.org",
            "m\u{fc}nchen.de",
        ] {
            assert!(HostRule::parse(text).is_err(), "{text}");
            assert_eq!(Destination::parse(text, Some(80)), None, "{text}");
        }
        for text in [
            "example.org",
            "*.example.org",
            "a_b.example.org:8080",
            "127.0.0.1:3000",
            "[::1]:80",
            "localhost:3000",
        ] {
            assert_eq!(HostRule::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Destination::parse("a.org", None), None, "a tunnel has a port");
    }

    #[test]
    fn sb15_an_address_that_is_not_public_is_used_only_when_it_is_listed_itself() {
        let hosts = hosts(&["10.1.2.3:8080", "intranet.example"], &["a.org"]);
        let admits = |reach, address: &str| hosts.admits(reach, address.parse().unwrap(), false);
        assert!(admits(Reach::Public, "10.1.2.3:8080"));
        assert!(!admits(Reach::Public, "10.1.2.3:80"));
        assert!(!admits(Reach::Public, "10.1.2.4:8080"));
        assert!(!admits(Reach::Loopback, "169.254.169.254:80"));
        assert!(admits(Reach::Loopback, "127.0.0.1:80") && admits(Reach::Loopback, "[::1]:80"));
        assert!(!admits(Reach::Public, "127.0.0.1:80"));
    }

    #[test]
    fn sb15_a_public_address_of_this_machine_is_used_only_when_it_is_listed_itself() {
        let hosts = hosts(&["8.8.4.4:8080", "intranet.example"], &["a.org"]);
        let admits = |address: &str, is_own| hosts.admits(Reach::Public, address.parse().unwrap(), is_own);
        assert!(admits("8.8.8.8:80", false) && !admits("8.8.8.8:80", true));
        assert!(!admits("[2606:4700::1111]:80", true));
        assert!(admits("8.8.4.4:8080", true) && !admits("8.8.4.4:80", true));
    }

    #[test]
    fn sb15_addresses_of_this_machine_its_networks_and_metadata_are_not_public() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "64:ff9b::a83f:8110",
            "2002:a83f:8110::",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!Reach::Public.admits(address.parse().unwrap(), false), "{address}");
            assert!(Reach::Any.admits(address.parse().unwrap(), true), "{address}");
        }
        for address in [
            "8.8.8.8",
            "1.1.1.1",
            "100.128.0.1",
            "168.63.129.15",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:4860:4860::8888",
        ] {
            assert!(Reach::Public.admits(address.parse().unwrap(), false), "{address}");
        }
    }
}
