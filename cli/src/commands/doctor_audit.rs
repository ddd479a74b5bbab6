//! What `gsv doctor` checks of the audit: that its hash chain is whole.

use gsv_protocol::errors;
use gsv_protocol::methods::AuditList;
use gsv_protocol::types::{AuditListParams, AuditListResult, AuditVerifyResult};

use super::audit::verified;
use super::doctor_report::Report;
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::Outcome;
use crate::units::{counted, grouped, time};

const NAME: &str = "audit";
/// At most this many of the newest entries are checked, so that the doctor stays fast.
const CHECKED_ENTRIES: u64 = 5_000;
const COLUMNS: usize = 300;

struct Checked {
    /// The check began with the first entry.
    is_whole: bool,
    /// Entries of the log.
    count: u64,
    result: AuditVerifyResult,
}

pub async fn check(report: &mut Report, client: &Client) {
    let Checked {
        is_whole,
        count,
        result,
    } = match look(client).await {
        Ok(checked) => checked,
        // A token that may not ask.
        Err(failure) if failure.is(&errors::PROTOCOL_UNKNOWN_METHOD) || failure.is(&errors::AUTH_FORBIDDEN) => return,
        Err(failure) => return report.failure(NAME, failure),
    };
    if let Some(broken) = &result.broken {
        let at = broken.at.map(|at| format!(" ({})", time(at))).unwrap_or_default();
        let problem = one_line(&broken.problem, COLUMNS);
        let found = format!("the log is broken at entry {}{at}: {problem}", broken.seq);
        let next = "The log or its daily copy was changed outside the gateway, or an older state was put in its place. `gsv audit --verify` says what to compare.";
        return report.fail(NAME, found, next);
    }
    if !result.ok || !result.done {
        return report.warn(
            NAME,
            "the log could not be checked to its end",
            "Check it alone: `gsv audit --verify`.",
        );
    }
    let checked = grouped(result.checked);
    let exported = result.exported.as_ref();
    if let Some(since) = exported.and_then(|exported| exported.failing_since) {
        let why = exported.and_then(|exported| exported.problem.as_deref());
        let why = one_line(why.unwrap_or("the bucket did not say why"), COLUMNS);
        let found = format!("no daily copy could be written since {}: {why}", time(since));
        let next =
            "The gateway tries again by itself. Check the free space and the permissions where it keeps its files.";
        return report.warn(NAME, found, next);
    }
    if is_whole {
        report.ok(
            NAME,
            format!("the log is intact: {}", counted(result.checked, "entry", "entries")),
        );
    } else {
        let found = format!(
            "the newest {checked} of {} entries are intact; `gsv audit --verify` checks all",
            grouped(count)
        );
        report.ok(NAME, found);
    }
}

async fn look(client: &Client) -> Outcome<Checked> {
    let newest = list(client, None).await?;
    let last = newest.entries.first().map_or(0, |entry| entry.seq);
    let after = match newest.count.checked_sub(CHECKED_ENTRIES) {
        Some(1..) => {
            let before = list(client, Some(last.saturating_sub(CHECKED_ENTRIES) + 1)).await?;
            before.entries.first().map(|entry| entry.seq)
        }
        _ => None,
    };
    Ok(Checked {
        is_whole: after.is_none(),
        count: newest.count,
        result: verified(client, after).await?,
    })
}

async fn list(client: &Client, before_seq: Option<u64>) -> Outcome<AuditListResult> {
    let params = AuditListParams {
        limit: Some(1),
        before_seq,
        action: None,
    };
    client.call::<AuditList>(params).await
}
