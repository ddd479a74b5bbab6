//! A cluster of gateways with one state in a bucket (rules CL1 to CL8), experimental. What this machine needs for it: the bucket's address,
//! stored in the state folder; an address for the other instances; and the bucket's keys, in a file of the configuration folder that only
//! workerd uses. Connects to nothing.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use gsv_link::Target;
use gsv_protocol::errors;
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::sealing_key::SealingKeys;
use super::state_copy;
use crate::exit::{Failure, Outcome};
use crate::{paths, private_file};

const FILE: &str = "cluster.env";
/// In the configuration folder, which is workerd's folder of imports (`arguments`).
pub const KEY_FILE: &str = "cluster.key";
const MAX_PREFIX: usize = 200;
const REQUIRED: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
const REGION: &str = "AWS_REGION";
/// The names of the lines of that file.
pub const LINES: [&str; 5] = [REQUIRED[0], REQUIRED[1], "AWS_SESSION_TOKEN", ENDPOINT, REGION];
/// Names a file with keys, which would take the place of that file.
const OTHER_FILE: &str = "AWS_CREDENTIALS_FILE";
/// A port of its own choice, for instances of the same machine.
const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const REPAIR: &str = "Put the file back: it has the bucket of the cluster that this home belongs to.";

/// What `--cluster` and `--cluster-listen` ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    bucket: String,
    /// Absent: as before.
    listen: Option<SocketAddr>,
}

/// `cluster.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// `s3://BUCKET/PREFIX`
    pub bucket: String,
    /// For other instances.
    pub listen: SocketAddr,
}

/// Where the bucket is, as the file of its keys says. No secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub endpoint: Option<String>,
    pub region: Option<String>,
}

impl Wanted {
    pub fn parse(bucket: &str, listen: Option<&str>) -> Outcome<Self> {
        Ok(Self {
            bucket: parse_bucket(bucket)?,
            listen: listen.map(parse_listen).transpose()?,
        })
    }

    /// Whether a gateway that runs has this already.
    pub fn is_met(&self, now: Option<&Cluster>) -> bool {
        now.is_some_and(|now| now.bucket == self.bucket && self.listen.is_none_or(|listen| listen == now.listen))
    }
}

impl Cluster {
    /// `None`: this home belongs to no cluster.
    pub fn read(layout: &Layout) -> Outcome<Option<Self>> {
        private_file::read_json(&layout.cluster(), REPAIR)
    }

    /// Joins, once nothing refuses the start any more.
    pub fn store(&self, layout: &Layout) -> Outcome {
        private_file::write_changed(&layout.cluster(), serde_json::to_string(self).unwrap_or_default())
    }

    /// What a command that works on files of this machine says in a cluster.
    pub fn refuse(layout: &Layout, what: &str, next: &str) -> Outcome {
        match Self::read(layout)? {
            None => Ok(()),
            Some(cluster) => Err(unsupported(
                &format!("{what}: this home belongs to the cluster {}.", cluster.bucket),
                next,
            )),
        }
    }
}

/// What workerd would take from its environment in place of the file.
pub fn variables() -> impl Iterator<Item = &'static str> {
    LINES.into_iter().chain([OTHER_FILE])
}

/// A glance, for the times to wait and workerd's arguments.
pub fn is_joined(layout: &Layout) -> bool {
    layout.cluster().exists()
}

/// What holds after this start, if it is not refused: `Cluster::store` stores it. Checks the bucket's keys, also at each later start.
pub fn check(layout: &Layout, wanted: Option<&Wanted>) -> Outcome<Option<Cluster>> {
    let cluster = match (Cluster::read(layout)?, wanted) {
        (None, None) => return Ok(None),
        (Some(stored), None) => stored,
        // Files that a failed start has left are of no use in another bucket.
        (Some(stored), Some(wanted)) if stored.bucket != wanted.bucket && (was_ready(layout) || is_used(layout)) => {
            return Err(home_used(&format!(
                "This home belongs to the cluster {}.",
                stored.bucket
            )));
        }
        (Some(stored), Some(wanted)) => Cluster {
            bucket: wanted.bucket.clone(),
            listen: wanted.listen.unwrap_or(stored.listen),
        },
        (None, Some(wanted)) => {
            if is_used(layout) {
                return Err(home_used(&format!(
                    "The gateway in {} has conversations or files.",
                    layout.home.display()
                )));
            }
            Cluster {
                bucket: wanted.bucket.clone(),
                listen: wanted.listen.unwrap_or(HERE),
            }
        }
    };
    Place::read()?;
    Ok(Some(cluster))
}

/// Whether a gateway was ever ready in this home: only then its port is stored.
fn was_ready(layout: &Layout) -> bool {
    layout.port().exists()
}

fn is_used(layout: &Layout) -> bool {
    let has_files = fs::read_dir(layout.workspace()).is_ok_and(|mut entries| entries.next().is_some());
    has_files || state_copy::has_state(layout)
}

pub fn keys_file() -> Outcome<PathBuf> {
    Ok(paths::config_dir()?.join(FILE))
}

/// Writes the key with which the instances know each other into a file of the configuration folder, which workerd's configuration embeds.
pub fn write_key() -> Outcome {
    let key = SealingKeys::ensure_file()?.for_cluster()?;
    private_file::write_changed(&paths::config_dir()?.join(KEY_FILE), key)
}

/// Further arguments of workerd: where it finds that file, which must not be in the state folder.
pub fn arguments(layout: &Layout) -> Vec<OsString> {
    match paths::config_dir() {
        Ok(folder) if is_joined(layout) => vec!["--import-path".into(), folder.into()],
        _ => Vec::new(),
    }
}

impl Place {
    pub fn read() -> Outcome<Self> {
        let path = keys_file()?;
        let failed = |why: &str| {
            let row = Failure::from_reason(errors::CLUSTER_NO_KEYS.reason, "", false);
            Failure {
                message: format!(
                    "The keys of the cluster's bucket can't be used: {} {why}.",
                    path.display()
                ),
                ..row
            }
        };
        let text = private_file::read_checked(&path, "", |meta, _| paths::check_key_file(&path, meta));
        match text {
            Ok(Some(text)) => parse_keys(&text).map_err(|why| failed(&why)),
            Ok(None) => Err(failed("does not exist")),
            // What is wrong with the file, and how it is repaired.
            Err(failure) => Err(Failure {
                message: failure.message,
                next: failure.next,
                ..Failure::from_reason(errors::CLUSTER_NO_KEYS.reason, "", false)
            }),
        }
    }
}

/// Names no value in its errors.
fn parse_keys(text: &str) -> Result<Place, String> {
    let mut place = Place::default();
    let mut found = Vec::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("has no `=` in line {at}"))?;
        let known = LINES.iter().find(|known| **known == name);
        let name = *known.ok_or_else(|| format!("has an unknown name in line {at}"))?;
        if value.is_empty() || value.contains(char::is_whitespace) || value.contains(['"', '\'']) {
            return Err(format!("has no plain value for {name} in line {at}"));
        }
        if found.contains(&name) {
            return Err(format!("has {name} twice"));
        }
        found.push(name);
        match name {
            ENDPOINT => {
                let target = Target::parse(value)
                    .ok()
                    .filter(|target| target.tls || target.is_loopback());
                let is_http = value.starts_with("https://") || value.starts_with("http://");
                if target.is_none() || !is_http || value.contains(['?', '#']) {
                    return Err(format!("has no https address in {ENDPOINT}, or http on this machine"));
                }
                place.endpoint = Some(value.trim_end_matches('/').to_owned());
            }
            REGION => place.region = Some(value.to_owned()),
            _ => {}
        }
    }
    match REQUIRED.iter().find(|name| !found.contains(name)) {
        Some(missing) => Err(format!("has no line {missing}=")),
        None => Ok(place),
    }
}

fn parse_bucket(text: &str) -> Outcome<String> {
    let is_name = |name: &str| {
        let edge = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        (3..=63).contains(&name.len())
            && name.bytes().all(|c| edge(c) || c == b'-' || c == b'.')
            && name.bytes().next().is_some_and(edge)
            && name.bytes().last().is_some_and(edge)
    };
    let is_part = |part: &str| {
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain)
    };
    let parsed = text.strip_prefix("s3://").and_then(|rest| {
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (name, prefix) = rest
            .split_once('/')
            .map_or((rest, None), |(name, prefix)| (name, Some(prefix)));
        let is_plain = prefix.is_none_or(|prefix| prefix.len() <= MAX_PREFIX && prefix.split('/').all(is_part));
        (is_name(name) && is_plain).then(|| format!("s3://{rest}"))
    });
    parsed.ok_or_else(|| Failure::from_reason(errors::CLUSTER_BAD_ADDRESS.reason, "", false))
}

fn parse_listen(text: &str) -> Outcome<SocketAddr> {
    let address = text.parse::<SocketAddr>().ok();
    address
        .filter(|address| address.port() > 0 && is_private(address.ip()))
        .ok_or_else(|| Failure::from_reason(errors::CLUSTER_BAD_LISTEN.reason, "", false))
}

/// As workerd counts them: private, loopback, link-local, and those that Tailscale uses.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local() || is_shared(ip),
        IpAddr::V6(ip) => ip == Ipv6Addr::LOCALHOST || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

const fn is_shared(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 100 && second & 0xc0 == 64
}

fn home_used(message: &str) -> Failure {
    Failure::from_reason(errors::CLUSTER_HOME_USED.reason, message, false)
}

pub fn unsupported(message: &str, next: &str) -> Failure {
    Failure {
        next: next.to_owned(),
        ..Failure::from_reason(errors::CLUSTER_UNSUPPORTED.reason, message, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn reason<T: std::fmt::Debug>(result: Outcome<T>) -> String {
        result.unwrap_err().reason.unwrap_or_default()
    }

    fn home() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().join("gsv"),
        };
        layout.ensure().unwrap();
        (dir, layout)
    }

    #[test]
    fn cl1_only_addresses_of_s3_with_plain_names_are_taken() {
        for (good, stored) in [
            ("s3://gsv", "s3://gsv"),
            ("s3://my-bucket.eu/team/gsv_1/", "s3://my-bucket.eu/team/gsv_1"),
        ] {
            assert_eq!(Wanted::parse(good, None).unwrap().bucket, stored);
        }
        for bad in [
            "",
            "none",
            "s3:",
            "s3://",
            "s3://ab",
            "s3://-ab",
            "s3://Bucket",
            "gs://bucket",
            "https://bucket/x",
            "s3://bucket//x",
            "s3://bucket/../x",
            "s3://bucket/a b",
            "s3://key:secret@bucket/x",
            "s3://bucket/x?y",
            "s3://bucket/\"",
        ] {
            assert_eq!(reason(Wanted::parse(bad, None)), "cluster.bad_address", "{bad}");
        }
        assert_eq!(
            reason(Wanted::parse(&format!("s3://bucket/{}", "a".repeat(201)), None)),
            "cluster.bad_address"
        );
    }

    #[test]
    fn cl6_instances_listen_only_on_private_addresses_with_a_port() {
        for good in [
            "10.0.0.1:7000",
            "127.0.0.1:1",
            "192.168.1.2:7000",
            "172.31.0.1:2",
            "100.64.0.1:2",
            "[fd00::1]:7000",
            "[::1]:1",
        ] {
            assert!(Wanted::parse("s3://bucket", Some(good)).is_ok(), "{good}");
        }
        for bad in [
            "0.0.0.0:7000",
            "[::]:7000",
            "8.8.8.8:7000",
            "100.128.0.1:2",
            "[2001:db8::1]:7000",
            "10.0.0.1:0",
            "10.0.0.1",
            "host:7000",
            "",
        ] {
            assert_eq!(
                reason(Wanted::parse("s3://bucket", Some(bad))),
                "cluster.bad_listen",
                "{bad}"
            );
        }
    }

    #[test]
    fn cl3_the_file_of_keys_has_plain_known_lines_and_an_encrypted_endpoint() {
        const KEYS: &str = "AWS_ACCESS_KEY_ID=AKIA\nAWS_SECRET_ACCESS_KEY=canary+/=\n";
        assert_eq!(parse_keys(KEYS).unwrap(), Place::default());
        let place = parse_keys(&format!(
            "# mine\n{KEYS}\nAWS_ENDPOINT_URL=https://s3.example.org/\nAWS_REGION=auto\n"
        ))
        .unwrap();
        assert_eq!(
            (place.endpoint.as_deref(), place.region.as_deref()),
            (Some("https://s3.example.org"), Some("auto"))
        );
        assert!(parse_keys(&format!("{KEYS}AWS_ENDPOINT_URL=http://127.0.0.1:9000")).is_ok());
        for (bad, why) in [
            (String::new(), "AWS_ACCESS_KEY_ID"),
            ("AWS_ACCESS_KEY_ID=a".to_owned(), "AWS_SECRET_ACCESS_KEY"),
            (format!("{KEYS}AWS_REGION=a\nAWS_REGION=b"), "twice"),
            (format!("{KEYS}AWS_CREDENTIALS_FILE=/x"), "unknown name in line 3"),
            (format!("{KEYS}export AWS_REGION=a"), "unknown name"),
            (format!("{KEYS}AWS_REGION=\"a\""), "plain value"),
            (format!("{KEYS}canary"), "no `=` in line 3"),
            (format!("{KEYS}AWS_ENDPOINT_URL=http://s3.example.org"), "https"),
            (format!("{KEYS}AWS_ENDPOINT_URL=wss://s3.example.org"), "https"),
            (
                format!("{KEYS}AWS_ENDPOINT_URL=https://u:canary@s3.example.org"),
                "https",
            ),
        ] {
            let said = parse_keys(&bad).unwrap_err();
            assert!(said.contains(why) && !said.contains("canary"), "{bad}: {said}");
        }
    }

    #[test]
    fn cl2_only_a_fresh_home_joins_and_it_stays_in_its_cluster() {
        let (_dir, layout) = home();
        assert_eq!(check(&layout, None).unwrap(), None);
        fs::write(layout.durable().join("x"), "").unwrap();
        let wanted = Wanted::parse("s3://bucket/a", None).unwrap();
        assert_eq!(reason(check(&layout, Some(&wanted))), "cluster.home_used");
        fs::remove_file(layout.durable().join("x")).unwrap();
        fs::write(layout.workspace().join("x"), "").unwrap();
        assert_eq!(reason(check(&layout, Some(&wanted))), "cluster.home_used");
        assert_eq!(Cluster::read(&layout).unwrap(), None);
        let stored = r#"{"bucket":"s3://bucket/a","listen":"127.0.0.1:0"}"#;
        fs::write(layout.cluster(), stored).unwrap();
        fs::set_permissions(layout.cluster(), fs::Permissions::from_mode(0o600)).unwrap();
        let other = Wanted::parse("s3://bucket/b", None).unwrap();
        // Not for want of local files: it was ready once.
        fs::remove_file(layout.workspace().join("x")).unwrap();
        fs::write(layout.port(), "1").unwrap();
        assert_eq!(reason(check(&layout, Some(&other))), "cluster.home_used");
        let now = Cluster::read(&layout).unwrap();
        assert!(wanted.is_met(now.as_ref()) && !other.is_met(now.as_ref()) && !wanted.is_met(None));
        assert!(
            !Wanted::parse("s3://bucket/a", Some("10.0.0.1:7"))
                .unwrap()
                .is_met(now.as_ref())
        );
        assert_eq!(
            reason(Cluster::refuse(&layout, "There is no backup", "Export.")),
            "cluster.unsupported"
        );
    }
}
