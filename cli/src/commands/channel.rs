//! `gsv channel`: what is connected and what waits, stopping, logging out. Starting and logging in have files of their own.

use std::time::Duration;

use gsv_protocol::methods::{ChannelLogout, ChannelStatus, ChannelStop, ChannelsList, PairList};
use gsv_protocol::types::{
    ChannelAccount, ChannelEntry, ChannelLogoutParams, ChannelStatusParams, ChannelStopParams, DeliveryProblem,
};
use gsv_protocol::{NoParams, errors};
use serde_json::{Value, json};

use super::channel_state::{self as state, DEFAULT_ACCOUNT, Standing};
use super::{Context, channel_here, channel_login, channel_start};
use crate::args::{ChannelAccount as Which, ChannelCommand};
use crate::ask;
use crate::clean::visible;
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, duration, now_ms};
use crate::width::columns;

/// A channel that does not answer must not keep the others from being shown.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many lost messages are shown.
const PROBLEMS: usize = 20;
const GLANCE: Duration = Duration::from_secs(4);

pub async fn run(context: &Context, command: ChannelCommand) -> Outcome {
    match command {
        ChannelCommand::List => list(context).await,
        ChannelCommand::Status { channel, account } => status(context, channel, account).await,
        ChannelCommand::Start(args) => channel_start::run(context, args).await,
        ChannelCommand::Stop(which) => stop(context, which).await,
        ChannelCommand::Login(args) => channel_login::run(context, args).await,
        ChannelCommand::Logout { which, yes } => logout(context, which, yes).await,
        // The parser has turned it round already.
        ChannelCommand::Named(_) => Err(Failure::usage(
            "This is not understood.",
            "`gsv channel --help` shows what there is.",
        )),
    }
}

/// A channel and what its Worker says.
pub struct Asked {
    pub channel: String,
    pub accounts: Outcome<Vec<ChannelAccount>>,
    /// Absent: the gateway does not keep them.
    problems: Option<Vec<DeliveryProblem>>,
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

    /// All of one account in one line.
    pub fn line(&self, account: &ChannelAccount, now: u64) -> String {
        state::line(&self.channel, account, self.problems.as_deref(), now)
    }

    pub fn lost(&self, account: &ChannelAccount) -> Option<String> {
        state::lost(account, self.problems.as_deref())
    }

    pub fn json(&self) -> Value {
        match &self.accounts {
            Ok(accounts) => {
                json!({ "channel": self.channel, "bound": true, "accounts": accounts, "problems": self.problems })
            }
            Err(failure) => {
                let error = json!({ "message": failure.message, "reason": failure.reason });
                json!({ "channel": self.channel, "bound": !failure.is(&errors::CHANNEL_UNKNOWN), "accounts": [], "error": error })
            }
        }
    }
}

/// The channels that have accounts, and how many strangers wait, for `gsv status` and `gsv doctor`. A channel without an account
/// is not woken up to say so.
pub struct Overview {
    pub channels: Vec<Asked>,
    /// Unknown to whom may not ask.
    pub strangers: Option<usize>,
}

impl Overview {
    pub async fn ask(client: &Client) -> Outcome<Self> {
        let entries = client.call::<ChannelsList>(NoParams {}).await?.channels;
        let mut channels = Vec::new();
        for channel in names(None, &entries) {
            channels.push(Asked::ask(client, &channel, None, GLANCE).await);
        }
        let strangers = client.call::<PairList>(NoParams {}).await.ok();
        Ok(Self {
            channels,
            strangers: strangers.map(|listed| listed.pairs.len()),
        })
    }

    /// `2 people wait to be let in: ...`, if any do.
    pub fn strangers_line(&self) -> Option<(String, &'static str)> {
        let count = self.strangers.filter(|count| *count > 0)?;
        let who = if count == 1 { "person waits" } else { "people wait" };
        Some((format!("{count} {who} to be let in"), "`gsv pair list`"))
    }
}

/// The channels that a gateway has, by name. Not every gateway tells of those without an account.
fn names(bound: Option<Vec<String>>, entries: &[ChannelEntry]) -> Vec<String> {
    let mut names = bound.unwrap_or_default();
    names.extend(entries.iter().map(|entry| entry.channel.clone()));
    names.sort();
    names.dedup();
    names
}

async fn list(context: &Context) -> Outcome {
    let account = context.account()?;
    let client = account.connect().await?;
    let listed = client.call::<ChannelsList>(NoParams {}).await?;
    let bound = names(listed.bound, &listed.channels);
    let mut all = Vec::new();
    for channel in &bound {
        all.push(Asked::ask(&client, channel, None, PATIENCE).await);
    }
    client.close().await;
    let more: Vec<String> = channel_here::available(&account.url)
        .into_iter()
        .filter(|name| !bound.contains(name))
        .collect();
    let out = context.out;
    if out.json {
        let available = more
            .iter()
            .map(|channel| json!({ "channel": channel, "bound": false, "accounts": [] }));
        let channels: Vec<Value> = all.iter().map(Asked::json).chain(available).collect();
        out.json_document(&json!({ "channels": channels }));
        return Ok(());
    }
    if all.is_empty() && more.is_empty() {
        out.aside("This gateway has no channels.");
        return Ok(());
    }
    let now = now_ms();
    let mut table = Table::new(["CHANNEL", "ACCOUNT", "STATE", "ACTIVE", "IN", "OUT", "LOST", "WHY"]);
    for asked in &all {
        match &asked.accounts {
            Ok(accounts) => {
                for account in accounts {
                    table.row(&row(asked, account, &listed.channels, now));
                }
            }
            Err(failure) => table.row(&bare(&asked.channel, "failing", failure.message.clone())),
        }
    }
    for channel in &more {
        let todo = state::command(channel, DEFAULT_ACCOUNT, "start");
        table.row(&bare(channel, "available", format!("{todo} switches it on")));
    }
    out.table(&table);
    // What the table had no room for must not be lost.
    if out.tty && table.lines(None).iter().any(|line| columns(line) > out.size().0) {
        for asked in &all {
            for (name, why) in troubles(asked, now) {
                out.line(&format!("{}  {why}", out.paint(Style::Bold, &name)));
            }
        }
    }
    Ok(())
}

/// Why accounts are not connected, in full.
fn troubles(asked: &Asked, now: u64) -> Vec<(String, String)> {
    match &asked.accounts {
        Ok(accounts) => accounts
            .iter()
            .filter(|account| account.error.is_some())
            .map(|account| {
                (
                    state::name(&asked.channel, &account.account_id),
                    state::why(&asked.channel, account, now),
                )
            })
            .collect(),
        Err(failure) => vec![(asked.channel.clone(), visible(&failure.message))],
    }
}

fn bare(channel: &str, state: &str, why: String) -> [String; 8] {
    let mut cells = [const { String::new() }; 8];
    channel.clone_into(&mut cells[0]);
    state.clone_into(&mut cells[2]);
    cells[7] = why;
    cells
}

fn row(asked: &Asked, account: &ChannelAccount, entries: &[ChannelEntry], now: u64) -> [String; 8] {
    let channel = &asked.channel;
    let entry = entries
        .iter()
        .find(|entry| &entry.channel == channel && entry.account_id == account.account_id);
    let active = account.last_activity.max(entry.and_then(|entry| entry.last_message_at));
    let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let lost = asked.problems.as_ref().map(|problems| {
        let mine = problems
            .iter()
            .filter(|problem| problem.account_id == account.account_id);
        u64::try_from(mine.count()).unwrap_or(u64::MAX)
    });
    [
        channel.clone(),
        account.account_id.clone(),
        Standing::of(account).word().to_owned(),
        active.map(|at| ago(at, now)).unwrap_or_default(),
        count(account.inbox_waiting),
        count(account.outbox_waiting),
        count(lost.or(account.undelivered)),
        state::why(channel, account, now),
    ]
}

async fn status(context: &Context, channel: Option<String>, account_id: Option<String>) -> Outcome {
    let client = context.connect().await?;
    let all = if let Some(channel) = channel {
        let asked = Asked::ask(&client, &channel, account_id, PATIENCE).await;
        if let Err(failure) = asked.accounts {
            return Err(channel_here::told(failure, &channel));
        }
        vec![asked]
    } else {
        let listed = client.call::<ChannelsList>(NoParams {}).await?;
        let mut all = Vec::new();
        for channel in names(listed.bound, &listed.channels) {
            all.push(Asked::ask(&client, &channel, None, PATIENCE).await);
        }
        all
    };
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&json!({ "channels": all.iter().map(Asked::json).collect::<Vec<_>>() }));
        return Ok(());
    }
    if all.is_empty() {
        out.aside("This gateway has no channels.");
    }
    let mut first = true;
    for asked in &all {
        match &asked.accounts {
            Ok(accounts) => {
                for account in accounts {
                    if !std::mem::take(&mut first) {
                        out.line("");
                    }
                    show(out, asked, account);
                }
                problems(out, asked);
            }
            Err(failure) => out.warn(&format!("{}: {}", asked.channel, crate::clean::clean(&failure.message))),
        }
    }
    Ok(())
}

/// Everything about one account.
fn show(out: Output, asked: &Asked, account: &ChannelAccount) {
    let channel = asked.channel.as_str();
    let now = now_ms();
    let standing = Standing::of(account);
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut field = |name: &str, value: String| fields.push((name.to_owned(), value));
    field("channel", channel.to_owned());
    field("account", account.account_id.clone());
    field("state", standing.word().to_owned());
    let why = state::why(channel, account, now);
    if !why.is_empty() {
        let name = match standing {
            Standing::Connected => "",
            Standing::Failing => "why",
            _ => "next",
        };
        field(name, why);
    }
    let known = if account.authenticated { "yes" } else { "no" };
    field("logged in", known.to_owned());
    if let Some(at) = account.last_activity {
        field("last message", ago(at, now));
    }
    if let Some(ms) = account.silent_ms {
        field("silent for", duration(ms));
    }
    if let Some(ms) = account.round_trip_ms {
        field("round trip", duration(ms));
    }
    if let Some(count) = account.inbox_waiting {
        field("waits for the agent", count.to_string());
    }
    if let Some(count) = account.outbox_waiting {
        field("waits to be sent", count.to_string());
    }
    field("lost", asked.lost(account).unwrap_or_else(|| "nothing".to_owned()));
    if let Some(count) = state::too_late(account) {
        field(
            "too old",
            format!("{count} came more than a day late and were not answered"),
        );
    }
    if let Some(gap) = state::gap(account) {
        field("gap", gap);
    }
    for (name, value) in state::details(account) {
        field(&name, value);
    }
    let fields: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    out.fields(&fields);
}

/// Messages that did not arrive, or may not have: the newest first.
fn problems(out: Output, asked: &Asked) {
    let problems = asked.problems.as_deref().unwrap_or_default();
    if problems.is_empty() {
        return;
    }
    let now = now_ms();
    let mut table = Table::new(["LOST", "ACCOUNT", "TO", "STATE", "WHY"]);
    for problem in problems.iter().take(PROBLEMS) {
        table.row(&[
            ago(problem.at, now),
            problem.account_id.clone(),
            state::peer(problem),
            problem.state.as_str().to_owned(),
            visible(problem.error.as_deref().unwrap_or_default()),
        ]);
    }
    out.line("");
    out.table(&table);
    if problems.len() > PROBLEMS {
        out.aside(&format!("{} more are shown with --json.", problems.len() - PROBLEMS));
    }
    out.aside("They are not sent again: say it anew, where it matters.");
}

async fn stop(context: &Context, which: Which) -> Outcome {
    let Which { channel, account } = which;
    let client = context.connect().await?;
    let params = ChannelStopParams {
        channel: channel.clone(),
        account_id: account,
    };
    let result = client
        .call::<ChannelStop>(params)
        .await
        .map_err(|failure| channel_here::told(failure, &channel))?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        let name = state::name(&channel, &result.account_id);
        let again = state::command(&channel, &result.account_id, "start");
        context
            .out
            .aside(&format!("{name} is stopped; what waits is kept. {again} goes on."));
    }
    Ok(())
}

async fn logout(context: &Context, which: Which, yes: bool) -> Outcome {
    let Which { channel, account } = which;
    let out = context.out;
    let at = context.account()?;
    let client = at.connect().await?;
    let asked = Asked::ask(&client, &channel, account.clone(), PATIENCE).await;
    client.close().await;
    // An account whose Worker says nothing may still be logged out.
    let found = match asked.accounts {
        Err(failure) if failure.is(&errors::CHANNEL_UNKNOWN) => return Err(channel_here::told(failure, &channel)),
        Err(failure) if failure.is_refusal() => return Err(failure),
        Err(_) => None,
        Ok(accounts) => accounts.into_iter().next(),
    };
    if !yes {
        let name = state::name(&channel, account.as_deref().unwrap_or(DEFAULT_ACCOUNT));
        let who = found.as_ref().and_then(state::identity);
        let who = who.map_or(String::new(), |who| format!(", which is {who},"));
        let login = found
            .and_then(|account| account.capabilities)
            .is_some_and(|capabilities| capabilities.login);
        let then = if login {
            "Its keys are forgotten, and it has to be linked with the phone anew."
        } else {
            "Its token and settings are forgotten."
        };
        ask::confirm(
            out,
            &format!("Log {name}{who} out? {then}"),
            Failure::usage("Nobody is there to be asked, so nothing was done.", "Add --yes."),
            "Nothing was done.",
        )?;
    }
    // Somebody may have thought for a while: a connection of its own.
    let client = at.connect().await?;
    let params = ChannelLogoutParams {
        channel: channel.clone(),
        account_id: account,
    };
    let result = client.call::<ChannelLogout>(params).await?;
    client.close().await;
    if out.json {
        out.json_document(&result);
    } else {
        out.aside(&format!(
            "{} is logged out, and its keys are forgotten",
            state::name(&channel, &result.account_id)
        ));
    }
    Ok(())
}
