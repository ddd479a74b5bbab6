//! `gsv channel`: lists channels, shows, stops and logs out accounts. `start` and `login` have files of their own.

use gsv_protocol::NoParams;
use gsv_protocol::errors;
use gsv_protocol::methods::{ChannelLogout, ChannelStop, ChannelsList};
use gsv_protocol::types::{ChannelAccount, ChannelEntry, ChannelLogoutParams, ChannelStopParams};
use serde_json::{Value, json};

use super::channel_account::{self as account, DEFAULT_ACCOUNT, Standing};
use super::channel_enable::explain_unknown;
use super::channel_overview::{Asked, PATIENCE, names};
use super::context::Context;
use super::{channel_enable, channel_login, channel_start};
use crate::args::{ChannelAccount as Which, ChannelCommand};
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::table::Table;
use crate::units::{ago, duration, now_ms};

/// Undelivered messages that are shown.
const PROBLEMS: usize = 20;

pub async fn run(context: &Context, command: ChannelCommand) -> Outcome {
    match command {
        ChannelCommand::List => list(context).await,
        ChannelCommand::Status { channel, account } => status(context, channel, account).await,
        ChannelCommand::Start(args) => channel_start::run(context, args).await,
        ChannelCommand::Stop(which) => stop(context, which).await,
        ChannelCommand::Login(args) => channel_login::run(context, args).await,
        ChannelCommand::Logout { which, yes } => logout(context, which, yes).await,
        // The parser has put the words into order.
        ChannelCommand::Named(_) => Err(Failure::usage(
            "There is no such command.",
            "`gsv channel --help` lists the commands.",
        )),
    }
}

async fn list(context: &Context) -> Outcome {
    let at = context.account()?;
    let client = at.connect().await?;
    let listed = client.call::<ChannelsList>(NoParams {}).await?;
    let bound = names(listed.bound, &listed.channels);
    let all = Asked::ask_all(&client, &bound, PATIENCE).await;
    client.close().await;
    let mut more = channel_enable::available(&at.url);
    more.retain(|name| !bound.contains(name));
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
    let mut rows = Vec::new();
    for asked in &all {
        match &asked.accounts {
            Ok(accounts) => rows.extend(
                accounts
                    .iter()
                    .map(|account| row(asked, account, &listed.channels, now)),
            ),
            Err(failure) => rows.push(bare(&asked.channel, "failing", failure.message.clone())),
        }
    }
    rows.extend(more.iter().map(|channel| {
        let start = account::command(channel, DEFAULT_ACCOUNT, "start");
        bare(channel, "available", format!("{start} enables it"))
    }));
    let head = ["CHANNEL", "ACCOUNT", "STATE", "ACTIVE", "IN", "OUT", "LOST", "REASON"];
    if !out.table(&Table::new(head, rows)) {
        // Reasons that were cut are repeated in full.
        for (name, reason) in all.iter().flat_map(|asked| problems_of(asked, now)) {
            out.line(&format!("{}  {reason}", out.paint(Style::Bold, &name)));
        }
    }
    Ok(())
}

/// The accounts of a channel that report an error, with the reason in full.
fn problems_of(asked: &Asked, now: u64) -> Vec<(String, String)> {
    let channel = &asked.channel;
    match &asked.accounts {
        Ok(accounts) => {
            let failing = accounts.iter().filter(|account| account.error.is_some());
            let named = |one: &ChannelAccount| {
                (
                    account::name(channel, &one.account_id),
                    account::reason(channel, one, now),
                )
            };
            failing.map(named).collect()
        }
        Err(failure) => vec![(channel.clone(), visible(&failure.message))],
    }
}

fn bare(channel: &str, state: &str, reason: String) -> [String; 8] {
    let mut cells: [String; 8] = Default::default();
    channel.clone_into(&mut cells[0]);
    state.clone_into(&mut cells[2]);
    cells[7] = reason;
    cells
}

fn row(asked: &Asked, one: &ChannelAccount, entries: &[ChannelEntry], now: u64) -> [String; 8] {
    let channel = &asked.channel;
    let entry = entries
        .iter()
        .find(|entry| &entry.channel == channel && entry.account_id == one.account_id);
    let active = one.last_activity.max(entry.and_then(|entry| entry.last_message_at));
    let problems = asked.problems.as_ref();
    let lost = problems.map(|all| {
        all.iter()
            .filter(|problem| problem.account_id == one.account_id)
            .count() as u64
    });
    let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    [
        channel.clone(),
        one.account_id.clone(),
        Standing::of(one).word().to_owned(),
        active.map(|at| ago(at, now)).unwrap_or_default(),
        count(one.inbox_waiting),
        count(one.outbox_waiting),
        count(lost.or(one.undelivered)),
        account::reason(channel, one, now),
    ]
}

async fn status(context: &Context, channel: Option<String>, account_id: Option<String>) -> Outcome {
    let at = context.account()?;
    let client = at.connect().await?;
    let all = if let Some(channel) = channel {
        let asked = Asked::ask(&client, &channel, account_id, PATIENCE).await;
        if let Err(failure) = asked.accounts {
            return Err(explain_unknown(failure, &at.url, &channel));
        }
        vec![asked]
    } else {
        let listed = client.call::<ChannelsList>(NoParams {}).await?;
        Asked::ask_all(&client, &names(listed.bound, &listed.channels), PATIENCE).await
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
                    print(out, asked, account);
                }
                print_problems(out, asked);
            }
            Err(failure) => out.warn(&format!("{}: {}", asked.channel, visible(&failure.message))),
        }
    }
    Ok(())
}

/// Everything about one account.
fn print(out: Output, asked: &Asked, one: &ChannelAccount) {
    let channel = asked.channel.as_str();
    let now = now_ms();
    let standing = Standing::of(one);
    let reason = Some(account::reason(channel, one, now)).filter(|reason| !reason.is_empty());
    let reason_name = match standing {
        Standing::Connected => "",
        Standing::Failing => "reason",
        _ => "next",
    };
    let late = account::too_late(one).map(|count| format!("{count} came more than a day late and were not answered"));
    let fields = [
        ("channel", Some(channel.to_owned())),
        ("account", Some(one.account_id.clone())),
        ("state", Some(standing.word().to_owned())),
        (reason_name, reason),
        (
            "logged in",
            Some(if one.authenticated { "yes" } else { "no" }.to_owned()),
        ),
        ("last message", one.last_activity.map(|at| ago(at, now))),
        ("silent for", one.silent_ms.map(duration)),
        ("round trip", one.round_trip_ms.map(duration)),
        (
            "waiting for the agent",
            one.inbox_waiting.map(|count| count.to_string()),
        ),
        ("waiting to be sent", one.outbox_waiting.map(|count| count.to_string())),
        ("lost", Some(asked.lost(one).unwrap_or_else(|| "nothing".to_owned()))),
        ("too old", late),
        ("gap", account::gap(one)),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    let details = account::details(one)
        .into_iter()
        .map(|(name, value)| (name, Some(value)));
    out.fields(fields.into_iter().chain(details));
}

/// Messages that were not delivered or have an unknown outcome, the newest first.
fn print_problems(out: Output, asked: &Asked) {
    let problems = asked.problems.as_deref().unwrap_or_default();
    if problems.is_empty() {
        return;
    }
    let now = now_ms();
    let rows = problems.iter().take(PROBLEMS).map(|problem| {
        [
            ago(problem.at, now),
            problem.account_id.clone(),
            account::peer(problem),
            problem.state.as_str().to_owned(),
            visible(problem.error.as_deref().unwrap_or_default()),
        ]
    });
    out.line("");
    out.table(&Table::new(["LOST", "ACCOUNT", "TO", "STATE", "REASON"], rows));
    if problems.len() > PROBLEMS {
        out.aside(&format!("{} more are shown with --json.", problems.len() - PROBLEMS));
    }
    out.aside("These messages are not sent again. Send the important ones yourself.");
}

async fn stop(context: &Context, which: Which) -> Outcome {
    let Which { channel, account } = which;
    let at = context.account()?;
    let params = ChannelStopParams {
        channel: channel.clone(),
        account_id: account,
    };
    let stopped = context.change_within::<ChannelStop>(params, channel_login::PATIENCE, |result| {
        let name = account::name(&channel, &result.account_id);
        let start = account::command(&channel, &result.account_id, "start");
        format!("{name} is stopped; waiting messages are kept. Start it again: {start}")
    });
    stopped
        .await
        .map_err(|failure| explain_unknown(failure, &at.url, &channel))
}

async fn logout(context: &Context, which: Which, yes: bool) -> Outcome {
    let Which { channel, account: id } = which;
    let at = context.account()?;
    let client = at.connect().await?;
    let asked = Asked::ask(&client, &channel, id.clone(), PATIENCE).await;
    client.close().await;
    let found = match asked.accounts {
        Ok(accounts) => accounts.into_iter().next(),
        Err(failure) if failure.is(&errors::CHANNEL_UNKNOWN) => {
            return Err(explain_unknown(failure, &at.url, &channel));
        }
        Err(failure) if failure.is_refusal() => return Err(failure),
        // A failing account can be logged out, too.
        Err(_) => None,
    };
    if !yes {
        let name = account::name(&channel, id.as_deref().unwrap_or(DEFAULT_ACCOUNT));
        let who = found
            .as_ref()
            .and_then(account::identity)
            .map(|who| format!(" ({who})"));
        let then = if found.as_ref().and_then(account::has_login) == Some(true) {
            "Its keys are deleted, and it must be linked with the phone again."
        } else {
            "Its token and settings are deleted."
        };
        let question = format!("Log out {name}{}? {then}", who.unwrap_or_default());
        ask::confirm(context.out, &question, "log out", "Nothing was changed.")?;
    }
    let params = ChannelLogoutParams {
        channel: channel.clone(),
        account_id: id,
    };
    let logged_out = context.change_within::<ChannelLogout>(params, channel_login::PATIENCE, |result| {
        let name = account::name(&channel, &result.account_id);
        format!("{name} is logged out, and its keys are deleted")
    });
    logged_out.await
}
