//! `gsv audit`: who did what, and whether the log is intact.

use gsv_protocol::methods::{AuditList, AuditVerify};
use gsv_protocol::types::{
    AuditDecision, AuditEntry, AuditExport, AuditListParams, AuditVerifyParams, AuditVerifyResult,
};

use super::actors::{Actors, TOKEN_COLUMNS};
use super::context::Context;
use super::local::Local;
use crate::args::Audit;
use crate::client::Client;
use crate::embedded::layout::Layout;
use crate::exit::{Failure, Outcome};
use crate::table::Table;
use crate::units::{counted, now_ms, time};

const DAY_MS: u64 = 86_400_000;

pub async fn run(context: &Context, args: Audit) -> Outcome {
    if args.verify {
        return verify(context).await;
    }
    let out = context.out;
    let params = AuditListParams {
        limit: args.limit,
        before_seq: args.before,
        action: args.action,
    };
    let client = context.connect().await?;
    let result = client.call::<AuditList>(params).await?;
    let actors = Actors::find(
        context,
        &client,
        result.entries.iter().map(|entry| entry.actor.as_str()),
    )
    .await;
    client.close().await;
    let intact = result.intact;
    out.show(result, |result| {
        let rows = result.entries.into_iter().map(|entry| {
            let decision = shown(&entry);
            [
                entry.seq.to_string(),
                time(entry.at),
                actors.cell(&entry.actor),
                entry.action,
                entry.target.unwrap_or_default(),
                decision.to_owned(),
                entry.rule.unwrap_or_default(),
                entry.detail.unwrap_or_default(),
            ]
        });
        let head = ["SEQ", "TIME", "WHO", "ACTION", "TARGET", "DECISION", "RULE", "DETAIL"];
        out.table(&Table::new(head, rows).keeping(2, TOKEN_COLUMNS));
    });
    if !intact {
        out.warn("the hash chain is broken: entries were changed or removed after they were written. Find the first one: `gsv audit --verify`");
    }
    Ok(())
}

/// A question to the owner is stored as allowed, because it was put. About the call nothing was decided yet.
fn shown(entry: &AuditEntry) -> &'static str {
    match (entry.action.as_str(), entry.decision) {
        ("approval.ask", AuditDecision::Allowed) => "asked",
        (_, decision) => decision.as_str(),
    }
}

/// Asks for one page after the other, from the entry after `after_seq` on. The result is that of the last page, with the number of entries
/// of all.
pub async fn verified(client: &Client, mut after_seq: Option<u64>) -> Outcome<AuditVerifyResult> {
    let mut checked = 0;
    loop {
        let page = client.call::<AuditVerify>(AuditVerifyParams { after_seq }).await?;
        checked = page.checked.saturating_add(checked);
        // A page without progress would be asked for without end.
        if page.done || !page.ok || page.last_seq <= after_seq.unwrap_or_default() {
            return Ok(AuditVerifyResult { checked, ..page });
        }
        after_seq = Some(page.last_seq);
    }
}

async fn verify(context: &Context) -> Outcome {
    let account = context.account()?;
    let client = account.connect().await?;
    let result = verified(&client, None).await?;
    client.close().await;
    let copies = copies_place(&account.url);
    let compare = match result.exported.as_ref().map(|exported| exported.key.is_some()) {
        Some(true) => format!("Compare the log with its daily copies in {copies}."),
        Some(false) => "There is no daily copy to compare it with. Copy the gateway's state before you change anything, and look for who could write it.".to_owned(),
        // Their list could not be read, or the gateway is of an earlier version.
        None => format!("The gateway did not say which daily copies there are: look in {copies}, and compare the log with them."),
    };
    let broken = result.broken.clone();
    let (is_intact, last, checked) = (result.ok && result.done, result.last_seq, result.checked);
    context.out.show(result, |result| {
        if is_intact {
            context.out.line(&format!(
                "The audit log is intact: {}, the last one is {last}. Checked: each entry fits the one before it, and the last one is the recorded end.",
                counted(checked, "entry", "entries")
            ));
        }
        if let Some(exported) = result.exported {
            if is_intact {
                tell_copies(context, &exported, &copies);
            }
            tell_failure(context, &exported);
        }
    });
    match broken {
        None if is_intact => Ok(()),
        None => Err(Failure::failed(
            "The audit log could not be checked to its end.",
            "Run `gsv audit --verify` again.",
        )),
        Some(broken) => {
            let at = broken.at.map(|at| format!(" ({})", time(at))).unwrap_or_default();
            Err(Failure::failed(
                format!(
                    "The audit log is broken at entry {}{at}. {}",
                    broken.seq, broken.problem
                ),
                compare,
            ))
        }
    }
}

/// Where a person finds the copies.
fn copies_place(url: &str) -> String {
    match Layout::find() {
        Ok(layout) if Local::look(&layout).is_at(&layout, url) => {
            layout.workspace().join("audit").display().to_string()
        }
        _ => "`audit/` of the gateway's bucket".to_owned(),
    }
}

/// Prints the daily copy that the log was compared with.
fn tell_copies(context: &Context, exported: &AuditExport, place: &str) {
    if let Some(key) = &exported.key {
        let to = exported
            .last_seq
            .map(|seq| format!(" (entry {seq})"))
            .unwrap_or_default();
        context.out.line(&format!(
            "The end of its newest daily copy, {}{to}, is in the log. The copies are in {place}.",
            file_of(key)
        ));
    } else if let Some(since) = exported.failing_since {
        context.out.line(&format!(
            "There is no daily copy to compare it with: none could be written since {}.",
            time(since)
        ));
    } else {
        context.out.line(&format!(
            "There is no daily copy yet to compare it with: the first one is written after {}, when the day (UTC) is over, to {place}.",
            time(end_of_day(now_ms()))
        ));
    }
}

/// Warns that copies fail.
fn tell_failure(context: &Context, exported: &AuditExport) {
    if let Some(since) = exported.failing_since {
        let why = exported.problem.as_deref().unwrap_or("the bucket did not say why");
        context.out.warn(&format!(
            "no copy could be written since {}: {why}. The gateway tries again by itself",
            time(since)
        ));
    }
}

/// The name of a copy, whose key begins with the folder.
fn file_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// When the day of a moment is over. Days of the log are in UTC.
fn end_of_day(at: u64) -> u64 {
    (at / DAY_MS + 1) * DAY_MS
}
