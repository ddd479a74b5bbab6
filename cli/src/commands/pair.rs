//! `gsv pair`: pairing requests and approvals of people who wrote to the agent. Names and messages are theirs: hidden characters are made
//! visible.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{PairApprove, PairList, PairReject};
use gsv_protocol::types::{ApprovedPair, PairApproveParams, PairListResult, PairRejectParams, PairRole, PendingPair};

use super::context::Context;
use crate::args::{self, PairCommand, PairWho};
use crate::ask;
use crate::clean::visible;
use crate::exit::Outcome;
use crate::output::Output;
use crate::table::Table;
use crate::units::{ago, now_ms, time};
use crate::width::cut;

const NAME_COLUMNS: usize = 40;
const MESSAGE_COLUMNS: usize = 200;

pub async fn run(context: &Context, command: PairCommand) -> Outcome {
    let out = context.out;
    match command {
        PairCommand::List => context.show::<PairList>(NoParams {}, |result| list(out, result)).await,
        PairCommand::Approve(args) => approve(context, args).await,
        PairCommand::Reject(PairWho { channel, sender }) => {
            let params = PairRejectParams {
                channel: channel.clone(),
                sender_id: sender,
            };
            let rejected = context.change::<PairReject>(params, |result| {
                let sender = visible(&result.sender_id);
                format!("{sender} is rejected on {channel}; the waiting messages are deleted")
            });
            rejected.await
        }
    }
}

fn list(out: Output, result: PairListResult) {
    let approved = result.approved.unwrap_or_default();
    let mut pairs: Vec<PendingPair> = result.pairs.into_values().collect();
    if pairs.is_empty() {
        out.aside("There are no pairing requests.");
    } else {
        pairs.sort_by_key(|pair| pair.requested_at);
        requests(out, &pairs);
        if !approved.is_empty() {
            out.line("");
        }
    }
    contacts(out, &approved);
    if !pairs.is_empty() {
        out.aside(
            "Approve a sender who tells you the code: `gsv pair approve CHANNEL CODE`. Add --owner if it is you.",
        );
    }
}

fn requests(out: Output, pairs: &[PendingPair]) {
    let now = now_ms();
    let rows = pairs.iter().map(|pair| {
        [
            visible(&pair.channel),
            pair.code.as_deref().map(visible).unwrap_or_default(),
            name(pair.sender_name.as_deref()),
            visible(&pair.sender_id),
            ago(pair.requested_at, now),
            pair.waiting.map(|count| count.to_string()).unwrap_or_default(),
            cut(
                &visible(pair.first_message.as_deref().unwrap_or_default()),
                MESSAGE_COLUMNS,
            ),
        ]
    });
    out.table(&Table::new(
        ["CHANNEL", "CODE", "NAME", "ID", "SINCE", "WAITING", "MESSAGE"],
        rows,
    ));
}

/// Approved senders, each with the role and the time of the approval.
fn contacts(out: Output, approved: &[ApprovedPair]) {
    if approved.is_empty() {
        return;
    }
    let rows = approved.iter().map(|pair| {
        let role = if pair.role == PairRole::Owner { "you" } else { "guest" };
        [
            visible(&pair.channel),
            role.to_owned(),
            name(pair.sender_name.as_deref()),
            visible(&pair.sender_id),
            time(pair.since),
        ]
    });
    out.table(&Table::new(
        ["CHANNEL", "APPROVED AS", "NAME", "ID", "APPROVED SINCE"],
        rows,
    ));
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

/// The request of this sender, by id or by code.
fn find<'a>(listed: &'a PairListResult, who: &PairWho) -> Option<&'a PendingPair> {
    let has_code = |pair: &&PendingPair| {
        let code = pair.code.as_deref();
        code.is_some_and(|code| code.eq_ignore_ascii_case(&who.sender))
    };
    let mut here = listed.pairs.values().filter(|pair| pair.channel == who.channel);
    here.clone()
        .find(|pair| pair.sender_id == who.sender)
        .or_else(|| here.find(has_code))
}

async fn approve(context: &Context, args: args::PairApprove) -> Outcome {
    let PairWho { channel, sender } = &args.who;
    let listed = context.ask::<PairList>(NoParams {}).await?;
    let pair = find(&listed, &args.who);
    // The sender who is shown is approved, even if the code means another one in a moment.
    let sender_id = pair.map_or(sender, |pair| &pair.sender_id);
    if args.owner && !args.yes {
        let person = person(sender_id, pair.and_then(|pair| pair.sender_name.as_deref()));
        let message = pair.and_then(|pair| pair.first_message.as_deref()).map(visible);
        let message = message.map(|message| format!("\nTheir first message: {}", cut(&message, MESSAGE_COLUMNS)));
        let question = format!(
            "{person} on {channel} gets your own access: messages from there join your own conversation, with your notes and memory, and the agent uses your machines for them.{}\nIs this you?",
            message.unwrap_or_default()
        );
        ask::confirm(
            context.out,
            &question,
            "approve the sender as you",
            "No sender was approved.",
        )?;
    }
    let params = PairApproveParams {
        channel: channel.clone(),
        sender_id: sender_id.clone(),
        role: Some(if args.owner { PairRole::Owner } else { PairRole::Guest }),
    };
    let waiting = match pair.and_then(|pair| pair.waiting).unwrap_or(0) {
        0 => String::new(),
        1 => "; 1 waiting message goes to the agent now".to_owned(),
        count => format!("; {count} waiting messages go to the agent now"),
    };
    let approved = context.change::<PairApprove>(params, |result| {
        let role = if result.role == Some(PairRole::Owner) {
            "you"
        } else {
            "a guest, with a separate conversation"
        };
        let person = person(&result.sender_id, result.sender_name.as_deref());
        format!("{person} is approved on {channel} as {role}{waiting}")
    });
    approved.await
}
