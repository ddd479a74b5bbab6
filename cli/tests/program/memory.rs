//! `gsv memory` against a gateway that the test plays.

use crate::common::fake_gateway::Connection;
use crate::common::play::{asked, played, serve};
use serde_json::{Value, json};

const KNOWN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const UNKNOWN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAW";

fn forget(connection: &mut Connection, id: &str, forgotten: u64) {
    serve(
        connection,
        "memory.forget",
        &json!({"ids": [id]}),
        &json!({"ok": true, "forgotten": forgotten}),
    );
}

#[test]
fn lm10_to_forget_an_unknown_memory_is_an_error_that_names_it() {
    let run = played(&["memory", "forget", UNKNOWN, "--yes"], |connection| {
        forget(connection, UNKNOWN, 0);
    })
    .failed(1);
    for part in [
        "Nothing was removed; no memory of the agent has the id 01ARZ3NDEKTSV4RRFFQ69G5FAW: it was removed before, or never existed.",
        "[memory.not_found]",
        "gsv memory list --all",
    ] {
        assert!(run.stderr.contains(part), "{part} is not in {}", run.stderr);
    }
}

#[test]
fn lm10_the_unknown_ones_among_several_memories_are_named() {
    let args = ["memory", "forget", UNKNOWN, KNOWN, "--yes"];
    let serves = |connection: &mut Connection| {
        forget(connection, KNOWN, 1);
        forget(connection, UNKNOWN, 0);
    };
    let run = played(&args, serves).failed(1);
    assert!(
        run.stderr.contains(&format!(
            "Removed 1 memory for good; no memory of the agent has the id {UNKNOWN}"
        )),
        "{}",
        run.stderr
    );
    let json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let run = played(&json, serves).failed(1);
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown, json!({"ok": true, "forgotten": 1}));
    let run = played(&args, |connection| {
        forget(connection, KNOWN, 1);
        forget(connection, UNKNOWN, 1);
    })
    .ok();
    assert!(run.stderr.contains("Removed 2 memories for good"), "{}", run.stderr);
}

#[test]
fn lm11_a_search_shows_the_score_of_each_memory() {
    let memory = json!({"id": KNOWN, "text": "Ada drinks tea.", "author": "owner", "label": "owner", "labelSource": "", "at": 0});
    let answer = json!({"memories": [{"memory": memory, "score": 0.8349}], "notes": []});
    let params = json!({"query": "tea"});
    let run = asked(&["memory", "search", "tea"], "memory.search", &params, &answer).ok();
    assert!(run.stdout.contains("score 0.83"), "{}", run.stdout);
    let run = asked(
        &["memory", "search", "tea", "--json"],
        "memory.search",
        &params,
        &answer,
    )
    .ok();
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), answer);
}
