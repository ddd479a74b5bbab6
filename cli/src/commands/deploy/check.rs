//! `gsv deploy check`: what this machine and the account have for a deployment, and what is missing. Changes nothing.

use serde_json::json;

use super::finding::{Finding, Verdict};
use super::open::Open;
use crate::args::DeployAccount;
use crate::commands::context::Context;
use crate::exit::{Failure, Outcome};
use crate::table::Table;

pub async fn run(context: &Context, args: DeployAccount) -> Outcome {
    let out = context.out;
    let open = Open::new(out, args.account.as_deref()).await?;
    let wrangler = format!("Version {}.", open.wrangler.version);
    let account = format!("{} ({}).", open.account_name, open.account_id);
    let mut findings = vec![
        Finding::new("wrangler", Verdict::Present, wrangler, ""),
        Finding::new("account", Verdict::Present, account, ""),
    ];
    findings.extend(open.account().look(&open.bundle.needs()).await.findings);
    findings.push(open.plan().await);
    let missing = findings
        .iter()
        .filter(|found| found.verdict == Verdict::Missing)
        .count();
    let document = json!({
        "ok": missing == 0, "account": { "id": open.account_id, "name": open.account_name },
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    });
    out.show(document, |_| {
        let rows = findings
            .iter()
            .map(|found| [found.verdict.word().to_owned(), found.what.clone(), found.found.clone()]);
        out.table(&Table::new(["", "WHAT", "FOUND"], rows));
        for found in findings.iter().filter(|found| !found.next.is_empty()) {
            out.note(&format!("{}: {}", found.what, found.next));
        }
    });
    if missing == 0 {
        return Ok(());
    }
    let message = format!(
        "{missing} of the things that a deployment needs {} missing.",
        if missing == 1 { "is" } else { "are" }
    );
    let next = "Do what the lines say, then run `gsv deploy check` again.";
    Err(
        if findings
            .iter()
            .all(|found| found.verdict != Verdict::Missing || found.is_passing)
        {
            Failure::later(message, next)
        } else {
            Failure::failed(message, next)
        },
    )
}
