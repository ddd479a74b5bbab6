//! `gsv audit`.

use gsv_protocol::methods::AuditList;
use gsv_protocol::types::AuditListParams;

use super::Context;
use crate::args::Audit;
use crate::exit::Outcome;
use crate::table::Table;
use crate::units::time;

pub async fn run(context: &Context, args: Audit) -> Outcome {
    let client = context.connect().await?;
    let params = AuditListParams {
        limit: args.limit,
        before_seq: args.before,
        action: args.action,
    };
    let result = client.call::<AuditList>(params).await?;
    client.close().await;
    if context.out.json {
        context.out.json_document(&result);
    } else {
        let mut table = Table::new(["SEQ", "TIME", "WHO", "ACTION", "TARGET", "DECISION", "DETAIL"]);
        for entry in result.entries {
            table.row(&[
                entry.seq.to_string(),
                time(entry.at),
                entry.actor,
                entry.action,
                entry.target.unwrap_or_default(),
                entry.decision.as_str().to_owned(),
                entry.detail.unwrap_or_default(),
            ]);
        }
        context.out.table(&table);
    }
    if !result.intact {
        context
            .out
            .warn("the chain of entries is broken: somebody or something has changed them");
    }
    Ok(())
}
