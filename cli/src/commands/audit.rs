//! `gsv audit`: who did what, and whether the log is intact.

use gsv_protocol::methods::{AuditList, AuditVerify};
use gsv_protocol::types::{
    AuditDecision, AuditEntry, AuditExport, AuditListParams, AuditVerifyParams, AuditVerifyResult,
};

use super::actors::Actors;
use super::context::Context;
use crate::args::Audit;
use crate::exit::{Failure, Outcome};
use crate::table::Table;
use crate::units::time;

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
    let actors = Actors::find(context, &client, result.entries.iter().map(|entry| entry.actor.as_str())).await;
    client.close().await;
    let intact = result.intact;
    out.show(result, |result| {
        let rows = result.entries.into_iter().map(|entry| {
            let decision = shown(&entry);
            [
                entry.seq.to_string(),
                time(entry.at),
                actors.name(&entry.actor),
                entry.action,
                entry.target.unwrap_or_default(),
                decision.to_owned(),
                entry.rule.unwrap_or_default(),
                entry.detail.unwrap_or_default(),
            ]
        });
        out.table(&Table::new(
            ["SEQ", "TIME", "WHO", "ACTION", "TARGET", "DECISION", "RULE", "DETAIL"],
            rows,
        ));
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

/// Asks for one page after the other. The result is that of the last page, with the number of entries of all.
async fn verify(context: &Context) -> Outcome {
    let client = context.connect().await?;
    let mut checked = 0;
    let mut after_seq = None;
    let result = loop {
        let page = client.call::<AuditVerify>(AuditVerifyParams { after_seq }).await?;
        checked += page.checked;
        // A page that does not go on would be asked for without end.
        if page.done || !page.ok || Some(page.last_seq) == after_seq {
            break AuditVerifyResult { checked, ..page };
        }
        after_seq = Some(page.last_seq);
    };
    client.close().await;
    let broken = result.broken.clone();
    let (is_intact, last) = (result.ok && result.done, result.last_seq);
    context.out.show(result, |result| {
        if is_intact {
            context.out.line(&format!(
                "The audit log is intact: {checked} entries, the last one is {last}."
            ));
        }
        if let Some(exported) = result.exported {
            tell_copies(context, &exported);
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
                "Compare the log with its daily copies in `audit/` of the bucket; on an embedded gateway they are in `workspace/audit` of its state folder.",
            ))
        }
    }
}

fn tell_copies(context: &Context, exported: &AuditExport) {
    if let Some(key) = &exported.key {
        let to = exported
            .last_seq
            .map(|seq| format!(", to entry {seq}"))
            .unwrap_or_default();
        context
            .out
            .line(&format!("The newest copy in the bucket is {key}{to}."));
    }
    if let Some(since) = exported.failing_since {
        let why = exported.problem.as_deref().unwrap_or("the bucket did not say why");
        context.out.warn(&format!(
            "no copy could be written since {}: {why}. The gateway tries again by itself",
            time(since)
        ));
    }
}
