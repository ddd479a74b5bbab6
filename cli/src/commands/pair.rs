//! `gsv pair`: strangers who wrote to the agent. Their names and words are a stranger's: what hides in them is shown as what it is.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{PairApprove, PairList, PairReject};
use gsv_protocol::types::{PairApproveParams, PairListResult, PairRejectParams, PairRole, PendingPair};

use super::Context;
use crate::args::{PairCommand, PairWho};
use crate::ask;
use crate::clean::visible;
use crate::exit::{Failure, Outcome};
use crate::table::Table;
use crate::units::{ago, now_ms};
use crate::width::cut;

const NAME_COLUMNS: usize = 40;
const WORDS_COLUMNS: usize = 200;

pub async fn run(context: &Context, command: PairCommand) -> Outcome {
    match command {
        PairCommand::List => list(context).await,
        PairCommand::Approve { who, owner, yes } => approve(context, who, owner, yes).await,
        PairCommand::Reject { who } => reject(context, who).await,
    }
}

async fn list(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let result = client.call::<PairList>(NoParams {}).await?;
    client.close().await;
    let out = context.out;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    let mut pairs: Vec<PendingPair> = result.pairs.into_values().collect();
    if pairs.is_empty() {
        out.aside("Nobody waits to be let in.");
        return Ok(());
    }
    pairs.sort_by_key(|pair| pair.requested_at);
    let now = now_ms();
    let mut table = Table::new(["CHANNEL", "CODE", "NAME", "ID", "SINCE", "WAITING", "SAID"]);
    for pair in &pairs {
        table.row(&[
            visible(&pair.channel),
            pair.code.as_deref().map(visible).unwrap_or_default(),
            name(pair.sender_name.as_deref()),
            visible(&pair.sender_id),
            ago(pair.requested_at, now),
            pair.waiting.map_or(String::new(), |count| count.to_string()),
            cut(
                &visible(pair.first_message.as_deref().unwrap_or_default()),
                WORDS_COLUMNS,
            ),
        ]);
    }
    out.table(&table);
    out.aside("Let somebody in whose code you know: `gsv pair approve CHANNEL CODE`; yourself: add --owner.");
    Ok(())
}

fn name(name: Option<&str>) -> String {
    cut(visible(name.unwrap_or_default()).trim(), NAME_COLUMNS)
}

/// `Anna (31612345678@lid)`, or the id alone.
fn person(sender_id: &str, sender_name: Option<&str>) -> String {
    let name = name(sender_name);
    if name.is_empty() {
        visible(sender_id)
    } else {
        format!("{name} ({})", visible(sender_id))
    }
}

/// Whoever waits under this id or code.
fn find<'a>(listed: &'a PairListResult, who: &PairWho) -> Option<&'a PendingPair> {
    let mut here = listed.pairs.values().filter(|pair| pair.channel == who.channel);
    here.clone().find(|pair| pair.sender_id == who.sender).or_else(|| {
        here.find(|pair| {
            pair.code
                .as_deref()
                .is_some_and(|code| code.eq_ignore_ascii_case(&who.sender))
        })
    })
}

async fn approve(context: &Context, who: PairWho, owner: bool, yes: bool) -> Outcome {
    let out = context.out;
    let at = context.account()?;
    let mut sender_id = who.sender.clone();
    let client = at.connect().await?;
    let listed = client.call::<PairList>(NoParams {}).await?;
    let pair = find(&listed, &who);
    if let Some(pair) = pair {
        // Who was shown is who is let in, whatever the code means in a moment.
        sender_id.clone_from(&pair.sender_id);
    }
    if owner && !yes {
        client.close().await;
        let person = pair.map_or_else(
            || visible(&who.sender),
            |pair| person(&pair.sender_id, pair.sender_name.as_deref()),
        );
        let words = pair.and_then(|pair| pair.first_message.as_deref()).map(visible);
        ask::confirm(
            out,
            &warning(&who.channel, &person, words.as_deref()),
            Failure::usage(
                "Nobody is there to be asked, so nobody was let in.",
                "If this is you, add --yes.",
            ),
            "Nobody was let in.",
        )?;
    } else {
        client.close().await;
    }
    // Somebody may have thought for a while: a connection of its own.
    let client = at.connect().await?;
    let params = PairApproveParams {
        channel: who.channel.clone(),
        sender_id,
        role: Some(if owner { PairRole::Owner } else { PairRole::Guest }),
    };
    let result = client.call::<PairApprove>(params).await?;
    client.close().await;
    if out.json {
        out.json_document(&result);
        return Ok(());
    }
    let person = person(&result.sender_id, result.sender_name.as_deref());
    let waiting = pair.and_then(|pair| pair.waiting).filter(|count| *count > 0);
    let waiting = waiting.map_or(String::new(), |count| {
        let what = if count == 1 {
            "message that waited goes"
        } else {
            "messages that waited go"
        };
        format!("; {count} {what} to the agent now")
    });
    let what = if result.role == Some(PairRole::Owner) {
        "as you"
    } else {
        "as a guest, with a conversation of their own"
    };
    out.aside(&format!("{person} is let in on {} {what}{waiting}", who.channel));
    Ok(())
}

fn warning(channel: &str, person: &str, words: Option<&str>) -> String {
    let words = words.map_or(String::new(), |words| {
        format!("\nThey wrote: {}", cut(words, WORDS_COLUMNS))
    });
    format!(
        "{person} on {channel} will be you: what they write there goes into your own conversation, with your notes and your memory, and the agent does on your machines what they ask.{words}\nAre you sure that this is you?"
    )
}

async fn reject(context: &Context, who: PairWho) -> Outcome {
    let client = context.connect().await?;
    let params = PairRejectParams {
        channel: who.channel.clone(),
        sender_id: who.sender,
    };
    let result = client.call::<PairReject>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        context.out.aside(&format!(
            "{} is turned away on {}; what they wrote is deleted",
            visible(&result.sender_id),
            who.channel
        ));
    }
    Ok(())
}
