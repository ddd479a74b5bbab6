//! What the file tools changed is undone when the gateway asks, also after a restart of the node.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::connected;
use crate::support::{Conn, Node};

async fn undo(conn: &mut Conn, request: Value) -> Value {
    conn.event("undo.request", request);
    let report = conn.request("undo.report").await;
    conn.ack(&report);
    report.params
}

fn request(calls: &str, undo_id: &str, is_dry: bool) -> Value {
    json!({"callId": "gw/session/~u", "calls": calls, "undoId": undo_id, "dryRun": is_dry, "force": false})
}

fn outcomes(report: &Value) -> Vec<(&str, &str, &str)> {
    let files = report["files"].as_array().unwrap();
    files
        .iter()
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["action"].as_str().unwrap(),
                file["outcome"].as_str().unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn un3_un4_the_calls_of_a_run_are_undone_after_a_restart_and_the_undo_too() {
    let (mut gateway, home, node, mut conn) = connected().await;
    fs::write(home.file("a.txt"), "one\ntwo\n").unwrap();
    fs::write(home.file("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(home.file("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let host = conn.hello["nodeRuntime"]["hostCapabilities"].as_array().unwrap();
    assert!(host.contains(&json!("filesystem.undo")));
    let edit = json!({"path": "a.txt", "oldString": "two", "newString": "three"});
    let new = json!({"path": "sub/new.txt", "content": "new"});
    for (index, (tool, args)) in [
        ("Edit", edit),
        ("Delete", json!({"path": "run.sh"})),
        ("Write", new),
        ("Write", json!({"path": "a.txt", "content": "all of it"})),
    ]
    .into_iter()
    .enumerate()
    {
        let result = conn.run(&format!("ref0000000/r3/1/{index}"), tool, args).await;
        assert_eq!(result["outcome"], "ok", "{result}");
        assert_eq!(result["result"].get("undo"), None, "it can be undone: {result}");
    }
    conn.run(
        "ref0000000/r30/1/0",
        "Write",
        json!({"path": "later.txt", "content": "stays"}),
    )
    .await;
    node.stop().await.unwrap();

    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    let plan = undo(&mut conn, request("ref0000000/r3/", "undo/1", true)).await;
    let all = [
        ("a.txt", "rewrite"),
        ("sub/new.txt", "remove"),
        ("run.sh", "bring_back"),
    ];
    assert_eq!(outcomes(&plan), all.map(|(path, action)| (path, action, "planned")));
    assert_eq!(home.read("a.txt"), "all of it");

    let done = undo(&mut conn, request("ref0000000/r3/", "undo/1", false)).await;
    assert_eq!(outcomes(&done), all.map(|(path, action)| (path, action, "undone")));
    assert_eq!(
        (home.read("a.txt").as_str(), home.read("run.sh").as_str()),
        ("one\ntwo\n", "#!/bin/sh\n")
    );
    assert_eq!(
        fs::metadata(home.file("run.sh")).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert!(!home.file("sub/new.txt").exists());
    assert_eq!(
        home.read("later.txt"),
        "stays",
        "a run whose number begins alike is another run"
    );

    let back = undo(&mut conn, request("undo/1", "undo/2", false)).await;
    assert!(
        outcomes(&back).iter().all(|(_, _, outcome)| *outcome == "undone"),
        "{back}"
    );
    assert_eq!(
        (home.read("a.txt").as_str(), home.file("run.sh").exists()),
        ("all of it", false)
    );
    assert!(home.log().contains("calls were undone"));
    node.stop().await.unwrap();
}

#[tokio::test]
async fn un3_a_conflict_is_reported_and_a_bad_request_changes_nothing() {
    let (_gateway, home, node, mut conn) = connected().await;
    conn.run(
        "ref0000000/r1/1/0",
        "Write",
        json!({"path": "a", "content": "by the agent"}),
    )
    .await;
    fs::write(home.file("a"), "by the owner").unwrap();
    let done = undo(&mut conn, request("ref0000000/r1/1/0", "undo/1", false)).await;
    assert_eq!(outcomes(&done), [("a", "remove", "conflict")]);
    assert_eq!(home.read("a"), "by the owner");
    for calls in ["", "/", "a"] {
        let refused = undo(&mut conn, request(calls, "undo/2", false)).await;
        assert!(
            refused["error"].is_string() && refused.get("files").is_none(),
            "{calls}: {refused}"
        );
    }
    let unreadable = undo(&mut conn, json!({"callId": "gw/session/~v", "calls": 7})).await;
    assert_eq!(unreadable["callId"], "gw/session/~v");
    assert!(unreadable["error"].is_string());
    let inside = home.state().join("undo/changes.jsonl");
    let read = conn
        .run("ref0000000/r2/1/0", "Read", json!({"path": inside.to_str().unwrap()}))
        .await;
    assert_eq!(read["outcome"], "error", "no tool reads the copies");
    node.stop().await.unwrap();
}
