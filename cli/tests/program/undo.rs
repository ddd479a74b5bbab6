//! `gsv undo` against a gateway that the test plays.

use crate::common::Run;
use crate::common::play::{asked, played_all, serve};
use serde_json::{Value, json};

fn place(files: &[(&str, &str, &str)]) -> Value {
    let mut counts = serde_json::Map::new();
    for (_, _, outcome) in files {
        let known = counts.get(*outcome).and_then(Value::as_u64).unwrap_or(0);
        counts.insert((*outcome).to_owned(), json!(known + 1));
    }
    let files: Vec<Value> = files
        .iter()
        .map(|(path, action, outcome)| json!({"path": path, "action": action, "outcome": outcome}))
        .collect();
    json!({"nodeId": "laptop", "files": files, "unlisted": 0, "counts": counts})
}

fn answer(places: &[Value], commands: &[&str]) -> Value {
    let commands: Vec<Value> = commands
        .iter()
        .map(|call| json!({"callId": call, "nodeId": "laptop", "tool": "Bash"}))
        .collect();
    json!({"kind": "run", "target": "run-1", "sessionKey": "agent:main:main", "undoId": "undo/abc", "places": places, "commands": commands})
}

fn dry(answer: &Value) -> Run {
    asked(
        &["undo", "run-1", "--dry-run"],
        "undo.plan",
        &json!({"target": "run-1"}),
        answer,
    )
}

#[test]
fn un6_a_plan_names_each_file_and_says_that_changes_by_commands_are_not_kept() {
    let files = [
        ("a.txt", "rewrite", "planned"),
        ("b.txt", "bring_back", "planned"),
        ("c.txt", "remove", "planned"),
    ];
    let run = dry(&answer(&[place(&files)], &["ref/r1/1/3", "ref/r1/2/0"])).ok();
    for line in [
        "Run run-1 of agent:main:main",
        "machine laptop:",
        "would restore  a.txt",
        "would bring back  b.txt",
        "would remove  c.txt",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "what commands changed is not kept and not undone. This run started 2 commands (the first: ref/r1/1/3 on laptop); `gsv session preview agent:main:main` shows them."
        ),
        "{words}"
    );
    let without = dry(&answer(&[place(&files)], &[])).ok();
    assert!(!without.stderr.contains("commands"), "{}", without.stderr);
}

#[test]
fn un6_a_run_of_a_deleted_conversation_is_named_as_one() {
    let mut deleted = answer(&[place(&[("a.txt", "rewrite", "planned")])], &[]);
    deleted["deleted"] = json!(true);
    let run = dry(&deleted).ok();
    let line = "Run run-1 of agent:main:main (a conversation that was deleted since)";
    assert!(run.stdout.contains(line), "{}", run.stdout);
}

#[test]
fn un6_a_run_of_commands_alone_has_nothing_to_undo_and_is_not_applied() {
    let run = asked(
        &["undo", "run-1"],
        "undo.plan",
        &json!({"target": "run-1"}),
        &answer(&[], &["ref/r1/1/0"]),
    )
    .ok();
    assert!(run.stderr.contains("not kept and not undone"), "{}", run.stderr);
    assert!(run.stderr.contains("There is nothing to undo."), "{}", run.stderr);
}

#[test]
fn un4_an_undo_prints_its_name_and_what_was_left_is_a_failure() {
    let done = answer(&[place(&[("a.txt", "rewrite", "undone")])], &[]);
    let params = json!({"target": "run-1"});
    let run = asked(&["undo", "run-1", "--yes"], "undo.apply", &params, &done).ok();
    assert!(run.stdout.contains("restored  a.txt"), "{}", run.stdout);
    assert!(run.stderr.contains("`gsv undo undo/abc`"), "{}", run.stderr);

    let left = answer(
        &[place(&[
            ("a.txt", "rewrite", "undone"),
            ("b.txt", "rewrite", "conflict"),
        ])],
        &[],
    );
    let run = asked(&["undo", "run-1", "--yes"], "undo.apply", &params, &left).failed(1);
    assert!(
        run.stderr
            .contains("The others are done. Overwrite later changes too: `gsv undo run-1 --force`."),
        "{}",
        run.stderr
    );
    let alone = answer(&[place(&[("b.txt", "rewrite", "conflict")])], &[]);
    let run = asked(&["undo", "run-1", "--yes"], "undo.apply", &params, &alone).failed(1);
    assert!(
        run.stderr.contains("Nothing was changed. Overwrite") && !run.stderr.contains("others"),
        "{}",
        run.stderr
    );
}

#[test]
fn un6_the_next_undo_names_the_conversation_unless_it_is_the_usual_one() {
    let of = |key: &str| {
        let mut done = answer(&[place(&[("a.txt", "rewrite", "undone")])], &[]);
        done["sessionKey"] = json!(key);
        done
    };
    let usual = "agent:main:cli:dm:main";
    for (args, params, key, says) in [
        (
            &["undo", "-s", "uu", "--yes"][..],
            json!({"sessionKey": "uu"}),
            "agent:main:uu",
            "`gsv undo --session uu` again offers the run before.",
        ),
        (
            &["undo", "--yes"],
            json!({"sessionKey": usual}),
            usual,
            "`gsv undo` again offers the run before.",
        ),
        (
            &["undo", "run-1", "--yes"],
            json!({"target": "run-1"}),
            "agent:main:uu",
            "`gsv undo --session agent:main:uu` offers the last run that is not undone.",
        ),
        (
            &["undo", "run-1", "--yes"],
            json!({"target": "run-1"}),
            usual,
            "`gsv undo` offers the last run that is not undone.",
        ),
    ] {
        let run = asked(args, "undo.apply", &params, &of(key)).ok();
        let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(says), "{words}");
    }
}

#[test]
fn un6_commands_of_later_runs_are_shown_by_their_conversation() {
    let mut plan = answer(&[place(&[("a.txt", "rewrite", "planned")])], &[]);
    plan["laterCommands"] = json!([{"callId": "ref/r2/1/0", "nodeId": "laptop", "tool": "Bash"}]);
    let words = |plan: &Value| {
        let run = dry(plan).ok();
        run.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = words(&plan);
    assert!(
        shown.contains("not undone. See what they did: `gsv session preview agent:main:main`."),
        "{shown}"
    );
    assert!(!shown.contains("gsv why"), "{shown}");
    plan["deleted"] = json!(true);
    let deleted = words(&plan);
    assert!(!deleted.contains("preview"), "{deleted}");
}

#[test]
fn un3_without_a_terminal_nothing_is_undone_before_yes() {
    let plan = answer(&[place(&[("a.txt", "rewrite", "planned")])], &[]);
    let run = played_all(
        &["undo", "run-1"],
        vec![Box::new(|connection| {
            serve(connection, "undo.plan", &json!({"target": "run-1"}), &plan);
        })],
    );
    let run = run.failed(2);
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
}
