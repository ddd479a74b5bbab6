//! Results and ends of background commands are sent until the gateway has acknowledged them.

use std::fs;

use serde_json::json;

use crate::support::{Node, until};
use crate::{bash, call_id, connected, line_count};

#[tokio::test]
async fn t2_k18_k19_a_result_is_sent_again_after_each_reconnect_until_it_is_acknowledged() {
    let (mut gateway, home, node, mut conn) = connected().await;
    conn.invoke("c", "Bash", bash("echo x >> counter; echo done"));
    let first = conn.result_of("c").await;
    conn.cut().await;
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "finished".into())]);
    let second = conn.result_of("c").await;
    assert_eq!(second.params, first.params);
    conn.cut().await;
    node.stop().await.unwrap();
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "finished".into())]);
    let third = conn.result_of("c").await;
    assert_eq!(third.params, first.params);
    conn.ack(&third);
    conn.settle().await;
    conn.cut().await;
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![]);
    conn.settle().await;
    assert!(conn.untaken("tool.result").is_empty());
    assert_eq!(line_count(&home.file("counter")), 1);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t2_results_that_wait_are_sent_oldest_first() {
    let (mut gateway, home, node, mut conn) = connected().await;
    for number in 0..7 {
        conn.invoke(
            &call_id(number),
            "Write",
            json!({"path": format!("{number}"), "content": "x"}),
        );
        let path = home.file(&number.to_string());
        until("the write", || path.exists()).await;
    }
    for number in 0..4 {
        conn.result_of(&call_id(number)).await;
    }
    conn.settle().await;
    assert!(
        conn.untaken("tool.result").is_empty(),
        "at most four are under way at once"
    );
    conn.cut().await;
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed().len(), 7);
    for number in 0..7 {
        let result = conn.result().await;
        assert_eq!(result.params["callId"], call_id(number));
        conn.ack(&result);
    }
    conn.settle().await;
    assert!(conn.untaken("tool.result").is_empty());
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t6_a_result_that_the_gateway_dropped_is_not_sent_again() {
    let (mut gateway, _home, node, mut conn) = connected().await;
    conn.invoke("c", "Bash", bash("true"));
    let result = conn.result_of("c").await;
    conn.answer(&result, json!({"ok": true, "dropped": true}));
    conn.settle().await;
    conn.cut().await;
    assert_eq!(gateway.accept().await.listed(), vec![]);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_with_a_retryable_refusal_is_sent_again_on_the_same_link() {
    let (mut gateway, _home, node, mut conn) = connected().await;
    conn.invoke("c", "Bash", bash("true"));
    let first = conn.result_of("c").await;
    conn.refuse(&first.id, 429, "limit.rate", true);
    let second = conn.result_of("c").await;
    assert_eq!(second.params, first.params);
    conn.refuse(&second.id, 400, "protocol.invalid_params", false);
    conn.cut().await;
    let mut conn = gateway.accept().await;
    let third = conn.result_of("c").await;
    conn.ack(&third);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn f75_a_refused_event_is_sent_again_before_later_events() {
    let (_gateway, home, node, mut conn) = connected().await;
    let command = "while [ ! -e go ]; do sleep 0.02; done";
    for call in ["a", "b"] {
        conn.run(call, "Bash", json!({"command": command, "background": true}))
            .await;
        let started = conn.request("node.exec.event").await;
        conn.ack(&started);
        conn.settle().await;
    }
    fs::write(home.file("go"), "").unwrap();
    let first = conn.request("node.exec.event").await;
    // The second end waits in the ledger before the first is refused.
    until("both ends on record", || {
        let log = fs::read(home.state().join("ledger/ledger.log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        ["a", "b"].iter().all(|call| log.contains(&format!("\"{call}:ended\"")))
    })
    .await;
    conn.refuse(&first.id, 429, "limit.rate", true);
    let again = conn.request("node.exec.event").await;
    assert_eq!(again.params, first.params);
    conn.ack(&again);
    let second = conn.request("node.exec.event").await;
    assert_ne!(second.params["callId"], first.params["callId"]);
    conn.ack(&second);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_background_command_is_reported_until_it_is_acknowledged() {
    let (mut gateway, home, node, mut conn) = connected().await;
    let command = "echo working; while [ ! -e go ]; do sleep 0.02; done; echo ready";
    let result = conn
        .run("c", "Bash", json!({"command": command, "background": true}))
        .await;
    assert_eq!(
        (&result["outcome"], &result["result"]["status"]),
        (&json!("ok"), &json!("running"))
    );
    let started = conn.request("node.exec.event").await;
    assert_eq!(
        (&started.params["event"], &started.params["callId"]),
        (&json!("started"), &json!("c"))
    );
    conn.ack(&started);
    conn.settle().await;
    fs::write(home.file("go"), "").unwrap();
    let ended = conn.request("node.exec.event").await;
    assert_eq!(
        (&ended.params["event"], &ended.params["exitCode"]),
        (&json!("finished"), &json!(0))
    );
    assert!(ended.params["outputTail"].as_str().unwrap().contains("ready"));
    conn.cut().await;
    let mut conn = gateway.accept().await;
    assert_eq!(conn.request("node.exec.event").await.params, ended.params);
    conn.cut().await;
    node.stop().await.unwrap();
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    let again = conn.request("node.exec.event").await;
    assert_eq!(again.params, ended.params);
    conn.ack(&again);
    conn.settle().await;
    conn.cut().await;
    let mut conn = gateway.accept().await;
    conn.settle().await;
    assert!(conn.untaken("node.exec.event").is_empty());
    node.stop().await.unwrap();
}
