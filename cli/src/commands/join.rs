//! `gsv join`: exchanges an invitation for a token and writes the local config. A kill at any step loses nothing: the nonce of the exchange
//! is stored first, so the same line gets the same token again (gateway rule RM9).

use std::path::PathBuf;
use std::time::Duration;

use gsv_link::{Join as Exchange, LinkError};
use gsv_protocol::types::{InviteKind, JoinRequest, JoinResult};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::context::Context;
use super::node::{host_name, no_name};
use crate::args::Join;
use crate::ask;
use crate::client::{link_failure, without_login};
use crate::config::{Config, Key, check_node_id};
use crate::embedded::bootstrap::{random_hex, sha256_hex};
use crate::exit::{Failure, Outcome};
use crate::join_code::JoinCode;
use crate::{paths, private_file};

/// For one address.
const WITHIN: Duration = Duration::from_secs(10);
/// Sends of one request, when its answer is lost.
const ATTEMPTS: u32 = 3;
const NONCE_BYTES: usize = 32;

pub async fn run(context: &Context, args: Join) -> Outcome {
    let out = context.out;
    let code = JoinCode::read(&args.code)?;
    let mut config = Config::load()?;
    let urls = code.urls();
    let known = config.get(Key::Url).map(str::to_owned);
    let is_other = known.as_ref().is_some_and(|known| !urls.contains(known));
    if is_other && !args.yes {
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
    let pending = Pending::ensure(&args.code)?;
    let request = JoinRequest {
        secret: code.secret.clone(),
        nonce: pending.nonce,
        kind: code.kind,
        node_id,
        label: host_name().map(|host| format!("gsv on {host}")),
    };
    let (url, joined) = exchange(&urls, &request).await?;
    let backup = is_other.then(|| config.back_up()).transpose()?;
    if is_other {
        // They belong to the other gateway, and must not be sent to this one.
        for key in [Key::Token, Key::NodeToken] {
            config.unset(key);
        }
    }
    config.set(Key::Url, url)?;
    let next = if let Some(id) = &joined.node_id {
        config.set(Key::NodeId, id)?;
        config.set(Key::NodeToken, &joined.token)?;
        format!("Start it: `gsv node`. As a service: `gsv node install`. The agent knows this machine as {id}.")
    } else {
        config.set(Key::Token, &joined.token)?;
        "Talk to the agent: `gsv chat hello`".to_owned()
    };
    config.save()?;
    Pending::remove();
    let document = json!({ "kind": joined.kind, "nodeId": joined.node_id, "url": url });
    out.show(document, |_| {
        out.note("This machine has joined. Address and token are stored in the local config.");
    });
    if let Some(backup) = backup {
        out.note(&format!(
            "The local config's former content is in {}.",
            backup.display()
        ));
    }
    out.aside(&next);
    Ok(())
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

/// The nonce of an exchange that is not finished.
#[derive(Serialize, Deserialize)]
struct Pending {
    /// The digest of the code.
    code: String,
    nonce: String,
}

impl Pending {
    fn path() -> Outcome<PathBuf> {
        Ok(paths::config_dir()?.join("join.json"))
    }

    /// The stored one of this code, else a new one, which is stored before it is used.
    fn ensure(code: &str) -> Outcome<Self> {
        let path = Self::path()?;
        let code = sha256_hex(code.trim().as_bytes());
        let stored = private_file::read_private(&path, "Remove it, then run the command again.")?;
        let stored = stored.and_then(|text| serde_json::from_str::<Self>(&text).ok());
        if let Some(pending) = stored.filter(|pending| pending.code == code) {
            return Ok(pending);
        }
        let nonce = random_hex(NONCE_BYTES)?;
        let pending = Self { code, nonce };
        paths::ensure_private_dir(&paths::config_dir()?)?;
        private_file::write(&path, serde_json::to_string(&pending).unwrap_or_default())?;
        Ok(pending)
    }

    fn remove() {
        if let Ok(path) = Self::path() {
            let _ = std::fs::remove_file(path);
        }
    }
}
