//! The token of one node: given, stored, or created with an admin token. Stores only the token that it has created.

use std::path::{Path, PathBuf};

use gsv_protocol::methods::{NodesList, TokensCreate, TokensList};
use gsv_protocol::types::{TokenKind, TokensCreateParams, TokensCreateResult};
use gsv_protocol::{NoParams, errors};
use serde::{Deserialize, Serialize};

use super::context::Context;
use crate::clean::clean;
use crate::client::Account;
use crate::config::{Config, Key};
use crate::embedded::up::is_loopback;
use crate::exit::{Exit, Failure, Outcome};
use crate::private_file;
use crate::units::now_ms;
use crate::width::cut;

/// The one way for every machine that is to be a node.
pub const INVITATION: &str = "Make an invitation on the gateway's machine: `gsv invite node`, then run its line here.";

/// How the owner gets a token for a node.
pub fn get_token(id: &str) -> String {
    format!(
        "{INVITATION} Over a tunnel, where an invitation does not help: `gsv token create --scope node --node {id}` there, then `gsv local-config set node.id {id}` and `gsv local-config set node.token -` here."
    )
}

/// The kind of a token, which is part of it. Tokens of other gateways have no kind.
pub fn kind_of(token: &str) -> Option<&str> {
    token.strip_prefix("gsv_")?.split_once('_').map(|(kind, _)| kind)
}

/// The public id of a token of GSV.
pub fn id_of(token: &str) -> Option<&str> {
    match token.split('_').collect::<Vec<_>>().as_slice() {
        ["gsv", _, id, _] => Some(id),
        _ => None,
    }
}

/// The token in a node's own file.
pub fn read(file: &Path) -> Option<String> {
    stored_in(file).map(|stored| stored.token)
}

fn stored_in(file: &Path) -> Option<Stored> {
    let text = private_file::read_private(file, "").ok()??;
    serde_json::from_str(&text).ok()
}

/// The token of one node. The machine's first node has it in the local config, every other one in a file of its own.
pub struct Tokens<'a> {
    pub id: &'a str,
    pub url: &'a str,
    pub config: &'a mut Config,
    /// The local config is for this gateway, or for none yet.
    pub is_ours: bool,
    pub file: PathBuf,
    /// The command that takes another name.
    pub command: &'static str,
}

/// `token.json`.
#[derive(Serialize, Deserialize)]
struct Stored {
    url: String,
    token: String,
}

impl Tokens<'_> {
    /// The node's own token: given, stored, or created now with an admin token.
    pub async fn find(&mut self, context: &Context) -> Outcome<String> {
        let given = context.global.token.clone().filter(|token| !token.is_empty());
        if let Some(token) = &given {
            Key::Token.check(token)?;
            if kind_of(token) != Some("admin") {
                return Ok(token.clone());
            }
        }
        let stored = self.stored().filter(|_| given.is_none());
        let known = || {
            self.config
                .get(Key::Token)
                .filter(|token| kind_of(token) == Some("admin"))
        };
        let admin = given.or_else(|| known().map(str::to_owned));
        let admin = admin.map(|token| Account::of_command(self.url, &token));
        match (stored, admin) {
            (Some(stored), None) => Ok(stored),
            (Some(stored), Some(admin)) if !is_void(&admin, &stored).await => Ok(stored),
            (stored, Some(admin)) => {
                if stored.is_some() {
                    context
                        .out
                        .aside("the stored node token is no longer valid; creating another");
                }
                self.create(context, &admin).await
            }
            (None, None) => Err(self.missing()),
        }
    }

    fn missing(&self) -> Failure {
        let id = self.id;
        let next = if self.config.get(Key::Url).is_none() {
            format!(
                "Start a gateway on this machine: `gsv up`, then run this again. For a gateway on another machine: {}",
                get_token(id)
            )
        } else {
            get_token(id)
        };
        Failure::new(Exit::Auth, format!("There is no token for the node `{id}`."), next)
    }

    /// Whether the local config has, or will have, the token of this node.
    fn is_in_config(&self) -> bool {
        self.is_ours && self.config.get(Key::NodeId).is_none_or(|first| first == self.id)
    }

    fn stored(&self) -> Option<String> {
        if self.is_ours && self.config.get(Key::NodeId) == Some(self.id) {
            return self.config.get(Key::NodeToken).map(str::to_owned);
        }
        let stored = stored_in(&self.file)?;
        // The gateway of this machine may have moved to another port.
        let is_same = stored.url == self.url || (is_loopback(&stored.url) && is_loopback(self.url));
        is_same.then_some(stored.token)
    }

    async fn create(&mut self, context: &Context, admin: &Account) -> Outcome<String> {
        let host = rustix::system::uname();
        let label = clean(&format!("gsv node on {}", host.nodename().to_string_lossy()));
        let params = TokensCreateParams {
            kind: TokenKind::Node,
            node_id: Some(self.id.to_owned()),
            channel: None,
            account_id: None,
            label: Some(cut(&label, 100)),
            expires_in_ms: None,
        };
        let client = admin.connect().await?;
        // The gateway would refuse this machine while that one is connected, and the token would be left behind.
        if let Ok(listed) = client.call::<NodesList>(NoParams {}).await
            && listed
                .nodes
                .iter()
                .any(|node| node.online && node.node_id.as_str() == self.id)
        {
            client.close().await;
            return Err(name_taken(self.id, &other_name(self.command)));
        }
        let TokensCreateResult { token, .. } = client.call::<TokensCreate>(params).await?;
        client.close().await;
        if self.is_in_config() {
            if self.config.get(Key::Url).is_none() {
                self.config.set(Key::Url, self.url)?;
            }
            self.config.set(Key::NodeId, self.id)?;
            self.config.set(Key::NodeToken, &token)?;
            self.config.save()?;
        } else {
            let stored = Stored {
                url: self.url.to_owned(),
                token: token.clone(),
            };
            private_file::write(&self.file, serde_json::to_string_pretty(&stored).unwrap_or_default())?;
        }
        context
            .out
            .aside(&format!("created a token for the node {} and stored it", self.id));
        Ok(token)
    }
}

/// The next step when another machine has this name and this user can create tokens.
pub fn other_name(command: &str) -> String {
    format!("Use another name: `{command} --id OTHER`.")
}

pub fn name_taken(id: &str, next: &str) -> Failure {
    Failure {
        reason: Some(errors::AUTH_FORBIDDEN.reason.to_owned()),
        ..Failure::new(
            Exit::Auth,
            format!("Another machine is connected to the gateway as `{id}`, with another token."),
            next,
        )
    }
}

/// Whether the gateway says that a token is revoked, expired or unknown. If it can't be asked, the node tries the token.
async fn is_void(admin: &Account, token: &str) -> bool {
    let Some(id) = token.split('_').nth(2) else {
        return false;
    };
    let Ok(client) = admin.connect().await else {
        return false;
    };
    let listed = client.call::<TokensList>(NoParams {}).await;
    client.close().await;
    let now = now_ms();
    listed.is_ok_and(|listed| {
        let found = listed.tokens.iter().find(|entry| entry.token_id.as_str() == id);
        found.is_none_or(|entry| entry.revoked_at.is_some() || entry.expires_at.is_some_and(|at| at <= now))
    })
}
