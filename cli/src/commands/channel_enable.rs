//! Channels of the gateway on this machine: lists the ones that it can run, and enables them. Never changes another gateway.

use gsv_protocol::methods::{ChannelStatus, ChannelsList};
use gsv_protocol::types::{ChannelAccount, ChannelStatusParams};
use gsv_protocol::{NoParams, errors};
use tokio::task::spawn_blocking;

use super::channel_account::{DEFAULT_ACCOUNT, command};
use super::local::Local;
use crate::client::{Account, Client};
use crate::embedded::channels::{self, Reload};
use crate::embedded::layout::Layout;
use crate::embedded::runtime::Runtime;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Output;

/// The state folder of the gateway behind an address, if it runs on this machine.
fn layout(url: &str) -> Option<Layout> {
    let layout = Layout::find().ok()?;
    let local = Local::look(&layout);
    (local.state().is_some() && local.is_at(&layout, url)).then_some(layout)
}

/// Adds how to get a channel to the error of a gateway that does not have it. Names only channels that exist: those that this
/// machine's gateway can run; another gateway's error lists its own.
pub fn explain_unknown(mut failure: Failure, url: &str, channel: &str) -> Failure {
    if !failure.is(&errors::CHANNEL_UNKNOWN) || layout(url).is_none() {
        return failure;
    }
    let available = available(url);
    if available.iter().any(|name| name == channel) {
        failure.message = format!("The channel {channel} is not enabled.");
        failure.next = format!("Enable it: {}.", command(channel, DEFAULT_ACCOUNT, "start"));
    } else if available.is_empty() {
        "The runtime of this gateway was built without channels. Build or install it again."
            .clone_into(&mut failure.next);
    } else {
        failure.message = format!("There is no channel {channel}.");
        failure.next = format!("This gateway can run: {}.", available.join(", "));
    }
    failure
}

/// The channels that this machine's gateway can run.
pub fn available(url: &str) -> Vec<String> {
    let runtime = layout(url).and_then(|layout| Runtime::find(&layout).ok());
    runtime.map(|runtime| channels::available(&runtime)).unwrap_or_default()
}

/// Channels that are enabled for this machine's gateway, and that the running gateway does not have.
pub async fn missing(url: &str, client: &Client) -> Vec<String> {
    let enabled = layout(url).map(|layout| channels::enabled(&layout).unwrap_or_default());
    let mut missing = enabled.unwrap_or_default();
    if !missing.is_empty() {
        let listed = client.call::<ChannelsList>(NoParams {}).await.ok();
        match listed.and_then(|listed| listed.bound) {
            Some(bound) => missing.retain(|name| !bound.contains(name)),
            None => missing.clear(),
        }
    }
    missing
}

/// Connects to a gateway that has the channel, and asks for the account. Enables the channel on this machine's gateway first
/// if that can run it.
pub async fn reach(
    out: Output,
    account: &Account,
    params: ChannelStatusParams,
) -> Outcome<(Client, Option<ChannelAccount>)> {
    let mut client = account.connect().await?;
    let mut result = client.call::<ChannelStatus>(params.clone()).await;
    if let Err(failure) = &result
        && failure.is(&errors::CHANNEL_UNKNOWN)
    {
        client.close().await;
        enable(out, &account.url, &params.channel, failure).await?;
        client = account.connect().await?;
        result = client.call::<ChannelStatus>(params).await;
    }
    Ok((client, result?.accounts.into_iter().next()))
}

async fn enable(out: Output, url: &str, channel: &str, unknown: &Failure) -> Outcome {
    let is_available = available(url).iter().any(|name| name == channel);
    let Some(layout) = layout(url).filter(|_| is_available) else {
        return Err(explain_unknown(unknown.clone(), url, channel));
    };
    let is_new = channels::enable(&layout, channel)?;
    out.note(&format!(
        "Enabling {channel} for the gateway on this machine; this takes a moment…"
    ));
    let at = layout.clone();
    let reloaded = spawn_blocking(move || channels::reload(&at))
        .await
        .unwrap_or_else(|error| {
            let message = format!("Waiting for the gateway failed: {error}.");
            Err(Failure::new(Exit::Bug, message, "Run it again."))
        });
    match reloaded {
        Ok(Reload::Done { warnings, .. }) => {
            for warning in &warnings {
                out.warn(warning);
            }
            Ok(())
        }
        Ok(Reload::NotRunning) => Err(Failure::later(
            "The gateway on this machine was stopped meanwhile.",
            "Start it with `gsv up`, then run this again.",
        )),
        Err(failure) => {
            // A channel that stops the gateway from running must not stay enabled for its next start.
            if is_new {
                channels::disable(&layout, channel)?;
            }
            Err(failure)
        }
    }
}
