//! `gsv cp` against a gateway that the test plays.

use crate::common::play::played;
use serde_json::json;

fn ended(id: &str) -> serde_json::Value {
    json!({"id": id, "source": "@:/etc/hostname", "destination": "gsv:a", "state": "done", "doneBytes": 1, "sizeBytes": 1,
        "sha256": "0".repeat(64), "createdAt": 1000, "endedAt": 2000})
}

#[test]
fn tf13_a_question_without_an_answer_is_no_copy() {
    let run = played(&["cp", "/etc/hostname", "gsv:a"], |connection| {
        let asked = connection.expect("transfer.get");
        let earlier = ended(asked.params["id"].as_str().unwrap());
        connection.answer(&asked, &json!({"transfer": earlier}));
        let asked = connection.expect("transfer.get");
        connection.error(&asked, 429, "limit.rate", "Too many requests.");
    });
    let run = run.failed(4);
    assert!(run.stderr.contains("Too many requests"), "{}", run.stderr);
}
