//! Hooks and their deliveries as `gsv hook` shows them.

use gsv_protocol::types::{Hook, HookDelivery, HookTarget};

use super::cron_view::work;
use crate::clean::one_line;
use crate::table::Table;
use crate::units::{ago, grouped};

fn does(target: &HookTarget) -> String {
    match target {
        HookTarget::Run { spec } => work(spec),
        HookTarget::Job { job_id, .. } => format!("runs the job {}", one_line(job_id, 64)),
    }
}

pub fn table(hooks: &[Hook], now: u64) -> Table<6> {
    Table::new(
        ["NAME", "FORM", "ACCEPTED", "REFUSED", "LAST", "DOES"],
        hooks.iter().map(|hook| {
            let last = hook.last_at_ms.map_or_else(|| "never".to_owned(), |at| ago(at, now));
            let does = match &hook.problem {
                Some(problem) => format!("! {}", one_line(problem, 200)),
                None => does(&hook.target),
            };
            [
                hook.name.clone(),
                hook.form.as_str().to_owned(),
                grouped(hook.accepted),
                grouped(hook.refused),
                last,
                one_line(&does, 120),
            ]
        }),
    )
}

pub fn details(hook: &Hook, url: &str, now: u64) -> Vec<(&'static str, Option<String>)> {
    let refused = match hook.last_refused_at_ms {
        Some(at) => format!("{}, the last one {}", grouped(hook.refused), ago(at, now)),
        None => "0".to_owned(),
    };
    vec![
        ("address", Some(one_line(url, 400))),
        ("form", Some(hook.form.as_str().to_owned())),
        ("agent", Some(hook.agent_id.to_string())),
        ("does", Some(does(&hook.target))),
        (
            "only",
            (!hook.only.is_empty()).then(|| one_line(&hook.only.join(", "), 400)),
        ),
        ("accepted", Some(grouped(hook.accepted))),
        ("waiting", Some(grouped(hook.waiting))),
        ("left out", Some(grouped(hook.ignored))),
        ("refused", Some(refused)),
        ("problem", hook.problem.as_deref().map(|problem| one_line(problem, 400))),
    ]
}

pub fn deliveries(deliveries: &[HookDelivery], now: u64) -> Table<4> {
    Table::new(
        ["TIME", "ID", "BECAME", "WHAT"],
        deliveries.iter().map(|one| {
            let what = one.error.as_deref().or(one.summary.as_deref()).unwrap_or_default();
            [
                ago(one.at_ms, now),
                one_line(&one.delivery_id, 64),
                one.status.as_str().to_owned(),
                one_line(what, 300),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::json;

    use super::*;

    #[test]
    fn hk10_hooks_show_what_they_do_and_why_they_cannot() {
        let hooks: Vec<Hook> = serde_json::from_value(json!([
            {"name": "gh", "path": "/hooks/gh", "agentId": "main", "form": "github", "only": [], "createdAtMs": 0,
             "target": {"kind": "run", "spec": {"mode": "task", "message": "Look at\n{{body}}"}},
             "accepted": 1200, "ignored": 3, "refused": 2, "waiting": 0, "lastAtMs": 0, "lastRefusedAtMs": 0},
            {"name": "pay", "path": "/hooks/pay", "agentId": "main", "form": "stripe", "only": ["body.type=x"], "createdAtMs": 0,
             "target": {"kind": "job", "jobId": "report"}, "accepted": 0, "ignored": 0, "refused": 0, "waiting": 4,
             "problem": "Its job is paused."}
        ]))
        .unwrap();
        assert_eq!(
            table(&hooks, 3_600_000).lines(None).join("\n"),
            "NAME  FORM    ACCEPTED  REFUSED  LAST     DOES\ngh    github  1,200     2        1 h ago  Look at {{body}}\npay   stripe  0         0        never    ! Its job is paused."
        );
        let fields = details(&hooks[1], "https://x/hooks/pay", 0);
        assert!(fields.contains(&("does", Some("runs the job report".to_owned()))));
        assert!(fields.contains(&("problem", Some("Its job is paused.".to_owned()))));
    }

    #[test]
    fn hk5_deliveries_show_what_became_of_them() {
        let rows: Vec<HookDelivery> = serde_json::from_value(json!([
            {"deliveryId": "d2", "atMs": 0, "status": "waiting"},
            {"deliveryId": "d1\u{1b}[2J", "atMs": 0, "status": "error", "error": "The key\nis wrong."}
        ]))
        .unwrap();
        let shown = deliveries(&rows, 3_600_000).lines(None).join("\n");
        assert!(
            shown.contains("waiting") && shown.contains("The key is wrong."),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
