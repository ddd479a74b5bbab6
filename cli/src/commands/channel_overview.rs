//! Asks all channels of a gateway for their state, for `gsv channel`, `gsv status` and `gsv doctor`.

use std::time::Duration;

use gsv_protocol::methods::{ChannelStatus, ChannelsList, PairList};
use gsv_protocol::types::{ChannelAccount, ChannelEntry, ChannelStatusParams, DeliveryProblem};
use gsv_protocol::{NoParams, errors};
use serde_json::{Value, json};

use super::channel_account::{line, lost};
use crate::client::Client;
use crate::exit::Outcome;

/// One channel that does not answer must not hide the others.
pub const PATIENCE: Duration = Duration::from_secs(10);
const SHORT_PATIENCE: Duration = Duration::from_secs(4);

/// A channel and the answer of its Worker.
pub struct Asked {
    pub channel: String,
    pub accounts: Outcome<Vec<ChannelAccount>>,
    /// Absent: the gateway does not keep them.
    pub problems: Option<Vec<DeliveryProblem>>,
}

impl Asked {
    pub async fn ask(client: &Client, channel: &str, account_id: Option<String>, patience: Duration) -> Self {
        let params = ChannelStatusParams {
            channel: channel.to_owned(),
            account_id,
        };
        let (accounts, problems) = match client.call_within::<ChannelStatus>(params, patience).await {
            Ok(result) => (Ok(result.accounts), result.problems),
            Err(failure) => (Err(failure), None),
        };
        Self {
            channel: channel.to_owned(),
            accounts,
            problems,
        }
    }

    pub async fn ask_all(client: &Client, channels: &[String], patience: Duration) -> Vec<Self> {
        let mut all = Vec::new();
        for channel in channels {
            all.push(Self::ask(client, channel, None, patience).await);
        }
        all
    }

    /// One account in one line.
    pub fn line(&self, account: &ChannelAccount, now: u64) -> String {
        line(&self.channel, account, self.problems.as_deref(), now)
    }

    pub fn lost(&self, account: &ChannelAccount) -> Option<String> {
        lost(account, self.problems.as_deref())
    }

    pub fn json(&self) -> Value {
        match &self.accounts {
            Ok(accounts) => {
                json!({ "channel": self.channel, "bound": true, "accounts": accounts, "problems": self.problems })
            }
            Err(failure) => {
                let error = json!({ "message": failure.message, "reason": failure.reason });
                let bound = !failure.is(&errors::CHANNEL_UNKNOWN);
                json!({ "channel": self.channel, "bound": bound, "accounts": [], "error": error })
            }
        }
    }
}

/// The channels of a gateway, by name. Older gateways list only channels that have an account.
pub fn names(bound: Option<Vec<String>>, entries: &[ChannelEntry]) -> Vec<String> {
    let mut names = bound.unwrap_or_default();
    names.extend(entries.iter().map(|entry| entry.channel.clone()));
    names.sort();
    names.dedup();
    names
}

/// The channels that have accounts, and the number of pairing requests. A channel without an account is not asked.
pub struct Overview {
    pub channels: Vec<Asked>,
    /// Absent: this token may not ask.
    pub requests: Option<usize>,
}

impl Overview {
    pub async fn ask(client: &Client) -> Outcome<Self> {
        let entries = client.call::<ChannelsList>(NoParams {}).await?.channels;
        let channels = Asked::ask_all(client, &names(None, &entries), SHORT_PATIENCE).await;
        let requests = client.call::<PairList>(NoParams {}).await.ok();
        Ok(Self {
            channels,
            requests: requests.map(|listed| listed.pairs.len()),
        })
    }

    /// `2 pairing requests`, if there are any, and the command that lists them.
    pub fn requests_line(&self) -> Option<(String, &'static str)> {
        let words = match self.requests? {
            0 => return None,
            1 => "1 pairing request".to_owned(),
            count => format!("{count} pairing requests"),
        };
        Some((words, "`gsv pair list`"))
    }
}
