//! `gsv usage`: what model calls used, and how far the limits are used up.

use gsv_protocol::methods::UsageGet;
use gsv_protocol::types::{UsageBy, UsageCap, UsageGetParams, UsageGetResult, UsageRow};

use super::context::Context;
use crate::exit::Outcome;
use crate::output::Output;
use crate::table::Table;
use crate::units::{dollars, grouped, whole};

pub async fn run(context: &Context, by: UsageBy, days: u16) -> Outcome {
    let out = context.out;
    let params = UsageGetParams {
        by: Some(by),
        days: Some(days),
    };
    context.show::<UsageGet>(params, |result| print(out, by, &result)).await
}

fn print(out: Output, by: UsageBy, result: &UsageGetResult) {
    let UsageGetResult {
        from, today, time_zone, ..
    } = result;
    if result.rows.is_empty() {
        out.note(&format!(
            "No model was called from {from} to {today} ({time_zone}). The demo model is not counted."
        ));
    } else {
        let total = UsageRow {
            key: "total".to_owned(),
            ..result.total.clone()
        };
        let rows = result.rows.iter().chain([&total]).map(|row| cells(by, row));
        out.table(&Table::new(
            [
                heading(by),
                "CALLS",
                "IN",
                "CACHED",
                "OUT",
                "COST",
                "TOKENS WITHOUT A PRICE",
            ],
            rows,
        ));
        if result.more {
            out.note("There are more rows than are shown: ask for fewer days with `--days`.");
        }
    }
    if !result.caps.is_empty() {
        out.line("");
        out.table(&Table::new(
            ["LIMIT", "OF", "USED", "SET ASIDE", "LIMIT IS"],
            result.caps.iter().map(cap),
        ));
    }
    for text in &result.attention {
        out.line("");
        out.line(text);
    }
}

fn heading(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Day => "DAY",
        UsageBy::Agent => "AGENT",
        UsageBy::Session => "SESSION",
        UsageBy::Model => "MODEL",
        UsageBy::Guest => "GUEST",
    }
}

fn cells(by: UsageBy, row: &UsageRow) -> [String; 7] {
    let name = if row.key.is_empty() && by == UsageBy::Guest {
        "you".to_owned()
    } else {
        row.key.clone()
    };
    [
        name,
        grouped(row.calls),
        grouped(row.input),
        grouped(row.cache_read.saturating_add(row.cache_write)),
        grouped(row.output),
        dollars(row.cost_usd),
        grouped(row.unpriced_tokens),
    ]
}

fn cap(cap: &UsageCap) -> [String; 5] {
    let tokens = cap.setting.ends_with("Tokens");
    let amount = |value: f64| {
        if tokens { whole(value) } else { dollars(value) }
    };
    [
        cap.setting.clone(),
        cap.of.clone().unwrap_or_else(|| "all".to_owned()),
        amount(cap.used),
        amount(cap.reserved),
        match cap.allowed {
            Some(allowed) => format!(
                "{} ({} set + {} that you allowed)",
                amount(cap.limit),
                amount((cap.limit - allowed).max(0.0)),
                amount(allowed)
            ),
            None => amount(cap.limit),
        },
    ]
}
