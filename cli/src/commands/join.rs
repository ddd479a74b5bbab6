//! `gsv join`: exchanges an invitation for a token and writes the local config. A kill at any step loses nothing: the nonce of the exchange
//! is stored first, so the same line gets the same token again (gateway rule RM9).

use std::path::{Path, PathBuf};
use std::time::Duration;

use gsv_link::{Join as Exchange, LinkError};
use gsv_protocol::errors;
use gsv_protocol::types::{InviteKind, JoinRequest, JoinResult};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::context::Context;
use super::node::{host_name, no_name};
use super::node_files::{Running, nodes_here};
use super::node_service::installed;
use crate::args::Join;
use crate::ask;
use crate::clean::one_line;
use crate::client::{link_failure, without_login};
use crate::config::{Config, Key, check_node_id};
use crate::embedded::bootstrap::{random_hex, sha256_hex};
use crate::embedded::layout::Layout;
use crate::embedded::login;
use crate::exit::{Failure, Outcome};
use crate::join_code::JoinCode;
use crate::private_file;

/// For one address.
const WITHIN: Duration = Duration::from_secs(10);
/// Sends of one request, when its answer is lost.
const ATTEMPTS: u32 = 3;
const NONCE_BYTES: usize = 32;

pub async fn run(context: &Context, args: Join) -> Outcome {
    let out = context.out;
    let code = JoinCode::read(&args.code)?;
    let urls = code.urls();
    let path = Config::path()?;
    let (node_id, had_own) = {
        let config = Config::load()?;
        let layout = Layout::find()?;
        let known = config.get(Key::Url);
        let had_own = known.is_some_and(|known| login::is_own_address(&layout, known));
        if is_other(&config, &urls) && !args.yes {
            let known = config.show(Key::Url).unwrap_or_default();
            let known = without_login(&known);
            ask::confirm(
                out,
                &format!(
                    "The local config is for the gateway at {known}. Replace it? Its former content is kept beside it."
                ),
                "replace the local config's gateway",
                "Nothing was changed, and the code is still valid.",
            )?;
        }
        let node_id = match code.kind {
            InviteKind::Client => None,
            InviteKind::Node => Some(own_name(args.id, &config)?),
        };
        (node_id, had_own)
    };
    let pending = Pending::ensure(&path, &args.code)?;
    let request = JoinRequest {
        secret: code.secret.clone(),
        nonce: pending.nonce.clone(),
        kind: code.kind,
        node_id,
        label: host_name().map(|host| format!("gsv on {host}")),
    };
    let (url, joined) = pending.exchange(&path, &urls, &request).await?;
    let backup = store(&path, &urls, url, &joined)?;
    pending.remove(&path);
    let next = match &joined.node_id {
        Some(id) => {
            format!("Start it: `gsv node`. As a service: `gsv node install`. The agent knows this machine as {id}.")
        }
        None => "Talk to the agent: `gsv chat hello`".to_owned(),
    };
    let document = json!({ "kind": joined.kind, "nodeId": joined.node_id, "url": url });
    out.show(document, |_| {
        out.note("This machine has joined. Address and token are stored in the local config.");
    });
    if let Some(backup) = backup {
        out.note(&format!(
            "The local config's former content is in {}.",
            backup.display()
        ));
        for line in of_former_gateway(had_own, &nodes_here(), &installed().unwrap_or_default()) {
            out.note(&line);
        }
    }
    out.aside(&next);
    Ok(())
}

/// What stays with the gateway that the local config was for. `had_own`: it is this machine's own. `services`: the nodes that are services.
fn of_former_gateway(had_own: bool, nodes: &[(String, Running)], services: &[String]) -> Vec<String> {
    let back = had_own.then(|| {
        "This machine's own gateway stays as it is. To go back to it: `gsv local-config unset url`, then `gsv up`."
            .to_owned()
    });
    let nodes = nodes.iter().map(|(id, node)| {
        let id = one_line(id, 64);
        let again = match node {
            _ if services.contains(&id) => {
                format!("run `gsv node stop --id {id} && gsv node start --id {id}`")
            }
            Running::Process(pid) => {
                format!("stop it (Ctrl-C in its terminal, or `kill {pid}`), then run `gsv node --id {id}`")
            }
            Running::No | Running::Somewhere => {
                format!("stop it (Ctrl-C in its terminal), then run `gsv node --id {id}`")
            }
        };
        format!(
            "The node `{id}` runs on this machine and keeps its present gateway. To use it with the new one, {again}."
        )
    });
    back.into_iter().chain(nodes).collect()
}

/// Whether the local config is for another gateway.
fn is_other(config: &Config, urls: &[String]) -> bool {
    config
        .get(Key::Url)
        .is_some_and(|known| urls.iter().all(|url| url != known))
}

/// Writes address and token into the local config as it is now: another `gsv join` may have ended meanwhile. Returns where the former content
/// is that was another gateway's.
fn store(path: &Path, urls: &[String], url: &str, joined: &JoinResult) -> Outcome<Option<PathBuf>> {
    let mut config = Config::load_locked(path)?;
    let is_other = is_other(&config, urls);
    let backup = is_other.then(|| config.back_up()).transpose()?.flatten();
    if is_other {
        // They belong to the other gateway, and must not be sent to this one.
        for key in [Key::Token, Key::NodeToken] {
            config.unset(key);
        }
    }
    config.set(Key::Url, url)?;
    if let Some(id) = &joined.node_id {
        config.set(Key::NodeId, id)?;
        config.set(Key::NodeToken, &joined.token)?;
    } else {
        config.set(Key::Token, &joined.token)?;
    }
    config.save()?;
    Ok(backup)
}

fn own_name(given: Option<String>, config: &Config) -> Outcome<String> {
    let stored = || config.get(Key::NodeId).map(str::to_owned);
    let id = given.or_else(stored).or_else(host_name).ok_or_else(|| Failure {
        next: "Name it: `gsv join CODE --id NAME`.".to_owned(),
        ..no_name()
    })?;
    check_node_id(&id).map_err(|problem| {
        Failure::usage(
            format!("`{id}` is not valid: {problem}."),
            "Choose another name with --id.",
        )
    })?;
    Ok(id)
}

/// Whether the gateway never takes this code again, also not with the stored nonce.
fn is_final(failure: &Failure) -> bool {
    [&errors::INVITE_USED, &errors::INVITE_EXPIRED, &errors::INVITE_WRONG]
        .into_iter()
        .any(|row| failure.is(row))
}

/// Tries the addresses in order. The first one that is the gateway decides.
async fn exchange<'a>(urls: &'a [String], request: &JoinRequest) -> Outcome<(&'a str, JoinResult)> {
    let mut first = None;
    for url in urls {
        match ask(url, request).await {
            Ok(joined) => return Ok((url, joined)),
            Err(error @ LinkError::Remote(_)) => return Err(link_failure(&error)),
            // Another computer may have this address in this network; a wrong certificate says more than silence.
            Err(error) => {
                let says_more = matches!(error, LinkError::Refused { .. });
                if first.is_none() || says_more {
                    first = Some(error);
                }
            }
        }
    }
    Err(first.as_ref().map_or_else(
        || Failure::usage(
                "The join code has no address.",
                "Make another invitation on the gateway's machine: `gsv invite node` or `gsv invite client`.",
            ),
        |error| Failure {
            next: format!(
                "Check that both machines are in the same network and that the firewall lets the port through, then run the command again: the code is still valid. Tried: {}.",
                urls.iter().map(|url| without_login(url)).collect::<Vec<_>>().join(", ")
            ),
            ..link_failure(error)
        },
    ))
}

/// A request whose answer is lost is sent again with the same nonce.
async fn ask(url: &str, request: &JoinRequest) -> Result<JoinResult, LinkError> {
    let mut attempt = 1;
    loop {
        let within = WITHIN;
        match (Exchange { url, request, within }).send().await {
            Err(LinkError::Closed { .. }) if attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// Exchanges that are kept: the oldest are dropped.
const KEPT: usize = 16;

/// The nonce of an exchange that is not finished.
#[derive(Clone, Serialize, Deserialize)]
struct Pending {
    /// The digest of the code.
    code: String,
    nonce: String,
}

/// What `join.json` has: one exchange in a file of an earlier version.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    All { exchanges: Vec<Pending> },
    One(Pending),
}

/// `config`: the path of the local config, which the file is beside.
impl Pending {
    /// The stored one of this code, else a new one, which is stored before it is used.
    fn ensure(config: &Path, code: &str) -> Outcome<Self> {
        let code = sha256_hex(code.trim().as_bytes());
        let _lock = Config::lock_folder(config)?;
        let mut stored = Self::read(config)?;
        if let Some(pending) = stored.iter().find(|pending| pending.code == code) {
            return Ok(pending.clone());
        }
        let nonce = random_hex(NONCE_BYTES)?;
        let pending = Self { code, nonce };
        stored.push(pending.clone());
        stored.drain(..stored.len().saturating_sub(KEPT));
        Self::write(config, stored)?;
        Ok(pending)
    }

    /// Forgets the nonce of a code that the gateway never takes again.
    async fn exchange<'a>(
        &self,
        config: &Path,
        urls: &'a [String],
        request: &JoinRequest,
    ) -> Outcome<(&'a str, JoinResult)> {
        let exchanged = exchange(urls, request).await;
        if exchanged.as_ref().is_err_and(is_final) {
            self.remove(config);
        }
        exchanged
    }

    /// Best effort: with it, the same line gets the same token again.
    fn remove(&self, config: &Path) {
        let Ok(_lock) = Config::lock_folder(config) else { return };
        if let Ok(mut stored) = Self::read(config) {
            stored.retain(|pending| pending.code != self.code);
            let _ = Self::write(config, stored);
        }
    }

    fn file(config: &Path) -> PathBuf {
        config.with_file_name("join.json")
    }

    /// The caller has the lock. A damaged file has none.
    fn read(config: &Path) -> Outcome<Vec<Self>> {
        let text = private_file::read_private(&Self::file(config), "Remove it, then run the command again.")?;
        Ok(match text.and_then(|text| serde_json::from_str(&text).ok()) {
            None => Vec::new(),
            Some(Stored::All { exchanges }) => exchanges,
            Some(Stored::One(pending)) => vec![pending],
        })
    }

    fn write(config: &Path, exchanges: Vec<Self>) -> Outcome {
        let file = Self::file(config);
        if exchanges.is_empty() {
            let _ = std::fs::remove_file(file);
            return Ok(());
        }
        let stored = Stored::All { exchanges };
        private_file::write(&file, serde_json::to_string(&stored).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn rm9_two_joins_at_once_lose_no_token_and_no_nonce() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let urls = ["wss://10.0.0.1:1/ws".to_owned()];
        let mut other = Config::load_from(path.clone()).unwrap();
        other.set(Key::Url, "wss://other.example/ws").unwrap();
        other.set(Key::Token, "of-the-other").unwrap();
        other.set(Key::NodeToken, "of-the-other-node").unwrap();
        other.save().unwrap();
        // Both have begun before one ends.
        let node = Pending::ensure(&path, "node").unwrap();
        let client = Pending::ensure(&path, "client").unwrap();
        assert_eq!(Pending::ensure(&path, "node").unwrap().nonce, node.nonce);
        let joined = |kind, token: &str, node_id: Option<&str>| JoinResult {
            kind,
            token: token.into(),
            node_id: node_id.map(str::to_owned),
        };
        let backup = store(
            &path,
            &urls,
            &urls[0],
            &joined(InviteKind::Node, "node-token", Some("box")),
        )
        .unwrap();
        assert!(backup.is_some());
        node.remove(&path);
        assert_eq!(Pending::ensure(&path, "client").unwrap().nonce, client.nonce);
        let backup = store(
            &path,
            &urls,
            &urls[0],
            &joined(InviteKind::Client, "client-token", None),
        )
        .unwrap();
        assert_eq!(backup, None);
        client.remove(&path);
        assert!(!Pending::file(&path).exists());
        let config = Config::load_from(path).unwrap();
        let stored = [Key::Url, Key::Token, Key::NodeId, Key::NodeToken].map(|key| config.get(key));
        assert_eq!(
            stored,
            [
                Some(urls[0].as_str()),
                Some("client-token"),
                Some("box"),
                Some("node-token")
            ]
        );
    }

    /// The address of a gateway that refuses one request to join.
    fn refusing(row: &'static gsv_protocol::ErrorReason) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut piece = [0; 4096];
            while !asked.ends_with(b"}") {
                let length = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..length]);
            }
            let body = json!({"reason": row.reason, "message": "Refused."}).to_string();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 409 Conflict\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .unwrap();
        });
        format!("ws://127.0.0.1:{port}/ws")
    }

    #[tokio::test]
    async fn rm9_the_nonce_of_a_code_that_is_refused_for_good_is_removed_and_no_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let other = Pending::ensure(&path, "other").unwrap();
        for (row, is_kept) in [
            (&errors::INVITE_USED, false),
            (&errors::INVITE_EXPIRED, false),
            (&errors::INVITE_WRONG, false),
            (&errors::INVITE_NAME_TAKEN, true),
            (&errors::LIMIT_RATE, true),
        ] {
            let pending = Pending::ensure(&path, "code").unwrap();
            let request = JoinRequest {
                secret: "secret".into(),
                nonce: pending.nonce.clone(),
                kind: InviteKind::Client,
                node_id: None,
                label: None,
            };
            let urls = [refusing(row)];
            let failure = pending.exchange(&path, &urls, &request).await.unwrap_err();
            assert!(failure.is(row), "{failure:?}");
            let kept = Pending::read(&path).unwrap();
            assert_eq!(
                kept.iter().any(|kept| kept.nonce == pending.nonce),
                is_kept,
                "{failure:?}"
            );
            assert!(kept.iter().any(|kept| kept.nonce == other.nonce));
        }
    }

    #[test]
    fn bk25_the_way_back_to_the_own_gateway_and_its_running_node_are_named() {
        let nodes = ["laptop", "desk"].map(|id| (id.to_owned(), Running::Process(7)));
        let said = of_former_gateway(true, &nodes, &["laptop".to_owned()]);
        assert!(
            said[0].contains("`gsv local-config unset url`, then `gsv up`"),
            "{said:?}"
        );
        assert!(
            said[1].contains("`gsv node stop --id laptop && gsv node start --id laptop`"),
            "{said:?}"
        );
        assert!(said[2].contains("`kill 7`), then run `gsv node --id desk`"), "{said:?}");
        assert_eq!(of_former_gateway(false, &[], &[]), [""; 0]);
    }

    #[test]
    fn rm9_the_nonce_of_an_earlier_version_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let earlier = json!({"code": sha256_hex(b"code"), "nonce": "kept"}).to_string();
        private_file::write(&Pending::file(&path), earlier).unwrap();
        assert_eq!(Pending::ensure(&path, "code").unwrap().nonce, "kept");
    }
}
