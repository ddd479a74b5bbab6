//! Calls that an earlier process of the node accepted or started.

use std::fs;

use gsv_link::ledger::Commit;
use serde_json::json;

use crate::support::{Gateway, Home, Node, now_ms, until};
use crate::{bash, connected, line_count};

#[tokio::test]
async fn k15_an_accepted_call_is_started_once_when_the_gateway_asks_for_it_again() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    {
        let mut ledger = home.ledger();
        ledger
            .accept(now_ms(), "c", "Bash", true)
            .and_then(Commit::sync)
            .unwrap();
        ledger
            .accept(now_ms(), "w", "Write", true)
            .and_then(Commit::sync)
            .unwrap();
    }
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    assert_eq!(
        conn.listed(),
        vec![("c".into(), "accepted".into()), ("w".into(), "accepted".into())]
    );
    conn.settle().await;
    assert!(conn.untaken("tool.result").is_empty());
    for _ in 0..2 {
        conn.invoke("c", "Bash", bash("echo x >> counter"));
        conn.invoke("w", "Write", json!({"path": "w", "content": "w"}));
    }
    for call in ["c", "w"] {
        let result = conn.result_of(call).await;
        assert_eq!(result.params["outcome"], "ok");
        // Not the folder in which a supervisor of the earlier process may still be writing.
        assert_ne!(result.params["result"]["sessionId"], "c");
        conn.ack(&result);
    }
    assert_eq!((line_count(&home.file("counter")), home.read("w").as_str()), (1, "w"));
    node.stop().await.unwrap();
}

#[tokio::test]
async fn k16_t3_a_started_call_without_a_command_or_result_is_lost_and_its_outcome_unknown() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    {
        let mut ledger = home.ledger();
        ledger
            .begin(now_ms(), "w", "Write", true)
            .and_then(Commit::sync)
            .unwrap();
        ledger
            .begin(now_ms(), "r", "Read", false)
            .and_then(Commit::sync)
            .unwrap();
        ledger
            .accept(now_ms(), "c", "Bash", true)
            .and_then(Commit::sync)
            .unwrap();
        let process = gsv_link::ledger::ProcessInfo {
            pid: 4_000_000,
            pgid: 4_000_000,
            boot_id: "an earlier one".into(),
            start_time: "1".into(),
            spool: home.state().join("calls/gone"),
        };
        ledger
            .start(now_ms(), "c", Some(&process))
            .and_then(Commit::sync)
            .unwrap();
    }
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    // A read-only call is not listed: the gateway asks again, and it runs again (T5).
    assert_eq!(
        conn.listed(),
        vec![("w".into(), "lost".into()), ("c".into(), "lost".into())]
    );
    for call in ["w", "c"] {
        let result = conn.result_of(call).await;
        assert_eq!(
            (&result.params["outcome"], &result.params["reason"]),
            (&json!("unknown"), &json!("tool.outcome_unknown"))
        );
        assert!(result.params["result"]["startedAt"].is_u64(), "{}", result.params);
        conn.ack(&result);
        conn.settle().await;
        // Never run again.
        conn.invoke(call, "Write", json!({"path": "again", "content": "x"}));
        assert_eq!(conn.result_of(call).await.params, result.params);
    }
    assert!(!home.file("again").exists());
    fs::write(home.file("r"), "readable").unwrap();
    assert_eq!(conn.run("r", "Read", json!({"path": "r"})).await["outcome"], "ok");
    node.stop().await.unwrap();
}

#[tokio::test]
async fn f75_t7_a_cancelled_call_that_an_earlier_process_accepted_is_not_started() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    home.ledger()
        .accept(now_ms(), "c", "Bash", true)
        .and_then(Commit::sync)
        .unwrap();
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    conn.event("tool.cancel", json!({"callId": "c", "reason": "not wanted"}));
    let cancelled = conn.result_of("c").await;
    assert_eq!(
        (&cancelled.params["outcome"], &cancelled.params["reason"]),
        (&json!("cancelled"), &json!("tool.cancelled"))
    );
    conn.ack(&cancelled);
    conn.settle().await;
    conn.invoke("c", "Bash", bash("echo x >> ran"));
    assert_eq!(conn.result_of("c").await.params, cancelled.params);
    assert!(!home.file("ran").exists());
    node.stop().await.unwrap();
}

#[tokio::test]
async fn k16_commands_go_on_while_the_node_restarts_and_keep_their_results() {
    let (mut gateway, home, node, mut conn) = connected().await;
    conn.invoke(
        "c",
        "Bash",
        bash("echo x >> counter; while [ ! -e go ]; do sleep 0.02; done; echo the end"),
    );
    conn.phase("c", "started").await;
    until("the start", || line_count(&home.file("counter")) == 1).await;
    node.stop().await.unwrap();
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "started".into())]);
    conn.invoke("c", "Bash", bash("echo x >> counter"));
    conn.settle().await;
    fs::write(home.file("go"), "").unwrap();
    let result = conn.result_of("c").await;
    conn.ack(&result);
    assert_eq!(
        (&result.params["outcome"], &result.params["result"]["exitCode"]),
        (&json!("ok"), &json!(0))
    );
    assert!(result.params["result"]["output"].as_str().unwrap().contains("the end"));
    assert_eq!(line_count(&home.file("counter")), 1);
    node.stop().await.unwrap();
}
