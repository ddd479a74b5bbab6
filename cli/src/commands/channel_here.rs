//! Channels of the gateway on this machine: which it could run, and letting one run. Nothing here is done to a gateway elsewhere.

use gsv_protocol::methods::{ChannelStatus, ChannelsList};
use gsv_protocol::types::{ChannelAccount, ChannelStatusParams, ChannelsListResult};
use gsv_protocol::{NoParams, errors};
use tokio::task::spawn_blocking;

use super::Context;
use super::channel_state::name;
use crate::client::{Account, Client};
use crate::embedded::channels::{self, TakenUp};
use crate::embedded::layout::Layout;
use crate::embedded::runtime::Runtime;
use crate::embedded::state::{Found, State};
use crate::embedded::up::is_loopback;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Output;

/// The state folder of the gateway behind an address, when that is the one of this machine.
pub fn layout(url: &str) -> Option<Layout> {
    let layout = Layout::find().ok()?;
    match State::read(&layout.state()) {
        Found::State(state) if is_loopback(url) && port(url) == Some(state.port) => Some(layout),
        _ => None,
    }
}

fn port(url: &str) -> Option<u16> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once(':')?.1.parse().ok()
}

/// What this machine's gateway could run.
pub fn available(url: &str) -> Vec<String> {
    layout(url)
        .and_then(|layout| Runtime::find(&layout).ok())
        .map(|runtime| channels::available(&runtime))
        .unwrap_or_default()
}

/// Channels that are switched on for this machine's gateway and that it does not have.
pub async fn missing(url: &str, client: &Client) -> Vec<String> {
    let Some(layout) = layout(url) else {
        return Vec::new();
    };
    let wanted = channels::enabled(&layout).unwrap_or_default();
    if wanted.is_empty() {
        return wanted;
    }
    match client.call::<ChannelsList>(NoParams {}).await {
        Ok(ChannelsListResult { bound: Some(bound), .. }) => {
            wanted.into_iter().filter(|name| !bound.contains(name)).collect()
        }
        _ => Vec::new(),
    }
}

/// A connection to a gateway that has the channel, and what it says of the account. The gateway on this machine is made to run
/// a channel that it could run.
pub struct Reached {
    pub client: Client,
    pub account: Option<ChannelAccount>,
}

impl Reached {
    pub async fn channel(context: &Context, account: &Account, params: ChannelStatusParams) -> Outcome<Self> {
        let client = account.connect().await?;
        match client.call::<ChannelStatus>(params.clone()).await {
            Ok(result) => Ok(Self {
                client,
                account: result.accounts.into_iter().next(),
            }),
            Err(failure) if failure.is(&errors::CHANNEL_UNKNOWN) => {
                client.close().await;
                enable(context.out, &account.url, &params.channel, failure).await?;
                let client = account.connect().await?;
                let result = client.call::<ChannelStatus>(params).await?;
                Ok(Self {
                    client,
                    account: result.accounts.into_iter().next(),
                })
            }
            Err(failure) => Err(failure),
        }
    }
}

async fn enable(out: Output, url: &str, channel: &str, unknown: Failure) -> Outcome {
    let Some(layout) = layout(url) else {
        return Err(told(unknown, channel));
    };
    let there = available(url);
    if !there.iter().any(|name| name == channel) {
        return Err(Failure {
            next: if there.is_empty() {
                "The runtime of this gateway was built without channels. Build or install it again.".to_owned()
            } else {
                format!("This gateway can run: {}.", there.join(", "))
            },
            ..unknown
        });
    }
    let news = channels::enable(&layout, channel)?;
    out.note(&format!(
        "{channel} is switched on for the gateway on this machine, which takes a moment…"
    ));
    let at = layout.clone();
    let taken = spawn_blocking(move || channels::take_up(&at))
        .await
        .unwrap_or_else(|error| {
            Err(Failure::new(
                Exit::Bug,
                format!("Waiting for the gateway failed: {error}."),
                "Run it again.",
            ))
        });
    match taken {
        Ok(TakenUp::Done { warnings, .. }) => {
            for warning in warnings {
                out.warn(&warning);
            }
            Ok(())
        }
        Ok(TakenUp::NotRunning) => Err(Failure::new(
            Exit::TryLater,
            "The gateway on this machine has stopped meanwhile.",
            "Start it with `gsv up`, then run this again.",
        )),
        Err(failure) => {
            // What keeps the gateway from running must not wait for its next start.
            if news {
                channels::disable(&layout, channel)?;
            }
            Err(failure)
        }
    }
}

/// What somebody can do about a channel that a gateway does not have.
pub fn told(unknown: Failure, channel: &str) -> Failure {
    if !unknown.is(&errors::CHANNEL_UNKNOWN) {
        return unknown;
    }
    Failure {
        next: format!(
            "A gateway elsewhere has the channels that are bound to it: deploy the Worker of {}, bind it to the gateway as CHANNEL_{} (`services` in its wrangler.jsonc), and deploy the gateway. `gsv channel list` shows what there is.",
            name(channel, super::channel_state::DEFAULT_ACCOUNT),
            channel.to_ascii_uppercase().replace('-', "_")
        ),
        ..unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_addresses() {
        assert_eq!(port("ws://127.0.0.1:8787/ws"), Some(8787));
        assert_eq!(port("http://[::1]:99"), Some(99));
        assert_eq!(port("wss://gsv.example.workers.dev/ws"), None);
        assert_eq!(port("ws://[::1]/ws"), None);
    }
}
