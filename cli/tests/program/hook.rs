//! `gsv hook` against a gateway that the test plays.

use crate::common::Home;
use crate::common::play::{played, played_all, serve};
use serde_json::{Value, json};

fn job(id: &str, name: &str) -> Value {
    json!({"id": id, "agentId": "main", "name": name, "enabled": true, "createdAtMs": 0, "updatedAtMs": 0,
        "schedule": {"kind": "every", "everyMs": 3_600_000}, "spec": {"mode": "task", "message": "m"}, "state": {}})
}

fn jobs() -> Value {
    let all = [
        job("report-1", "Report"),
        job("mail-1", "Mail"),
        job("mail-2", "mail"),
        // The id of one job is the name of another.
        job("mail", "Other"),
        job("other-2", "report-1"),
    ];
    json!({"jobs": all, "count": all.len()})
}

#[test]
fn hk6_a_job_is_named_by_its_id_or_by_a_name_that_only_one_job_has() {
    for (named, id) in [("report-1", "report-1"), ("REPORT", "report-1"), ("mail", "mail")] {
        let run = played_all(
            &["hook", "add", "gh", "--job", named],
            vec![
                Box::new(|connection| serve(connection, "cron.list", &json!({}), &jobs())),
                Box::new(move |connection| {
                    let request = connection.expect("hook.add");
                    assert_eq!(request.params["target"], json!({"kind": "job", "jobId": id}), "{named}");
                    connection.error(&request, 600, "hook.exists", "A hook has this name.");
                }),
            ],
        );
        run.failed(1);
    }
    for (named, says) in [
        ("Mail", "2 jobs have the name Mail."),
        ("absent", "There is no job absent."),
    ] {
        let run = played(&["hook", "add", "gh", "--job", named], |connection| {
            serve(connection, "cron.list", &json!({}), &jobs());
        });
        let run = run.failed(1);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn hk8_a_name_that_no_hook_can_have_is_refused_in_words() {
    let home = Home::new();
    let long = "x".repeat(49);
    for wrong in ["My Hook", "Issues", "", "-a", "a/b", long.as_str()] {
        for verb in ["add", "show", "remove", "test"] {
            let run = home.gsv(["hook", verb, "--", wrong]).failed(2);
            assert!(
                run.stderr.contains("A hook's name has 1 to 48 of a-z"),
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn hk11_a_hook_is_removed_after_a_yes() {
    let golden = include_str!("../../../protocol/golden/HookShowResult.jsonl");
    let example: Value = serde_json::from_str(golden.lines().next().unwrap()).unwrap();
    let shown = &example["value"];
    let run = played(&["hook", "remove", "gh"], |connection| {
        serve(connection, "hook.show", &json!({"name": "gh", "limit": 1}), shown);
    });
    assert!(run.failed(2).stderr.contains("re-run with --yes to remove it"));
    let run = played(&["hook", "remove", "gh", "--yes"], |connection| {
        serve(
            connection,
            "hook.remove",
            &json!({"name": "gh"}),
            &json!({"ok": true, "removed": true}),
        );
    });
    assert!(run.ok().stderr.contains("gh is removed"));
}
