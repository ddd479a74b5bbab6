//! `gsv audit`: who did what.

use gsv_protocol::methods::AuditList;
use gsv_protocol::types::AuditListParams;

use super::context::Context;
use crate::args::Audit;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::time;

pub async fn run(context: &Context, args: Audit) -> Outcome {
    let out = context.out;
    let params = AuditListParams {
        limit: args.limit,
        before_seq: args.before,
        action: args.action,
    };
    let result = context.ask::<AuditList>(params).await?;
    let intact = result.intact;
    out.show(result, |result| {
        let rows = result.entries.into_iter().map(|entry| {
            [
                entry.seq.to_string(),
                time(entry.at),
                entry.actor,
                entry.action,
                entry.target.unwrap_or_default(),
                entry.decision.as_str().to_owned(),
                entry.detail.unwrap_or_default(),
            ]
        });
        out.table(&Table::new(
            ["SEQ", "TIME", "WHO", "ACTION", "TARGET", "DECISION", "DETAIL"],
            rows,
        ));
    });
    if !intact {
        out.warn("the hash chain is broken: entries were changed or removed after they were written");
    }
    Ok(())
}
