//! The connection of a node: its hello, invalid frames, refusals, replacement, and settings that are refused before it.

use std::fs;
use std::sync::{Arc, Mutex};

use gsv_link::LinkError;
use gsv_node::{Level, NodeConfig, NodeError};
use serde_json::json;

use crate::support::{Gateway, Home, Node, TOKEN};
use crate::{bash, connected, started};

#[tokio::test]
async fn p2_2_a_node_connects_with_its_id_tools_and_open_calls() {
    let (_gateway, _home, node, conn) = connected().await;
    let hello = &conn.hello;
    assert_eq!(
        (
            &hello["client"]["mode"],
            &hello["client"]["id"],
            &hello["auth"]["token"]
        ),
        (&json!("node"), &json!("lap"), &json!(TOKEN))
    );
    let tools: Vec<_> = hello["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        tools,
        ["Bash", "Process", "Read", "Write", "Edit", "Delete", "Glob", "Grep"]
    );
    assert!(hello["tools"][0]["inputSchema"]["properties"]["command"].is_object());
    let host = hello["nodeRuntime"]["hostCapabilities"].as_array().unwrap();
    assert!(host.contains(&json!("shell.exec")) && host.contains(&json!("filesystem.write")));
    assert_eq!(hello["nodeRuntime"]["toolCapabilities"]["Bash"], json!(["shell.exec"]));
    assert_eq!(hello["ledger"], json!({"calls": []}));
    node.stop().await.unwrap();
}

#[tokio::test]
async fn p19_invalid_frames_and_calls_are_answered_or_ignored_and_the_link_stays_up() {
    let (_gateway, _home, node, mut conn) = connected().await;
    for text in [
        "",
        "{",
        "[]",
        "null",
        r#"{"type":"evt"}"#,
        r#"{"type":"evt","event":"tool.invoke"}"#,
        r#"{"type":"req","id":"1","method":"x"}"#,
        r#"{"type":"res","id":"77","ok":true}"#,
    ] {
        conn.send_text(text);
    }
    conn.settle().await;
    conn.event("something.new", json!({}));
    conn.event("tool.invoke", json!({"tool": "Bash", "args": {}}));
    conn.event(
        "tool.invoke",
        json!({"callId": "x".repeat(300), "tool": "Bash", "args": {}}),
    );
    for (call, payload, reason) in [
        (
            "args",
            json!({"callId": "args", "tool": "Bash", "args": "ls"}),
            "tool.bad_args",
        ),
        (
            "missing",
            json!({"callId": "missing", "tool": "Bash", "args": {}}),
            "tool.bad_args",
        ),
        (
            "type",
            json!({"callId": "type", "tool": "Bash", "args": {"command": 7}}),
            "tool.bad_args",
        ),
        (
            "unknown",
            json!({"callId": "unknown", "tool": "Fly", "args": {}}),
            "tool.unknown",
        ),
        (
            "large",
            json!({"callId": "large", "tool": "Write", "args": {"path": "a", "content": "x".repeat(1_100_000)}}),
            "tool.bad_args",
        ),
    ] {
        for _ in 0..2 {
            conn.event("tool.invoke", payload.clone());
            let result = conn.result_of(call).await;
            conn.ack(&result);
            assert_eq!(
                (&result.params["outcome"], &result.params["reason"]),
                (&json!("error"), &json!(reason)),
                "{call}"
            );
            conn.settle().await;
        }
    }
    assert_eq!(conn.run("good", "Bash", bash("true")).await["outcome"], "ok");
    node.stop().await.unwrap();
}

#[tokio::test]
async fn h4_a_replaced_node_ends_with_a_message() {
    let (_gateway, _home, mut node, conn) = connected().await;
    conn.close(1000, "replaced by a newer connection");
    let status = node.status("replaced").await;
    assert_eq!(status.level, Level::Error);
    assert!(matches!(
        node.end().await,
        Err(NodeError::Link(LinkError::Replaced { .. }))
    ));
}

#[tokio::test]
async fn h2_a_node_with_a_refused_token_ends_with_the_reason() {
    let (mut gateway, home, mut node) = started().await;
    let conn = gateway.knock().await;
    conn.refuse("hello", 401, "auth.required", false);
    let status = node.status("refused: auth.required").await;
    assert_eq!(status.level, Level::Error);
    let error = node.end().await.unwrap_err();
    assert_eq!(error.exit_status(), 3, "{error}");
    assert!(!home.log().contains(TOKEN));
}

#[tokio::test]
async fn h2_a_node_waits_for_a_gateway_without_tokens() {
    let (mut gateway, _home, mut node) = started().await;
    let conn = gateway.knock().await;
    conn.refuse("hello", 503, "auth.not_configured", false);
    let status = node.status("refused: auth.not_configured").await;
    assert_eq!(status.level, Level::Warn);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn p6_1_a_node_follows_its_gateway_to_another_address() {
    let (mut first, mut second) = (Gateway::start().await, Gateway::start().await);
    let home = Home::new();
    let address = Arc::new(Mutex::new(first.url.clone()));
    let present = Arc::clone(&address);
    let config = NodeConfig {
        address: Some(Arc::new(move || present.lock().ok().map(|url| url.clone()))),
        ..home.config(&first.url)
    };
    let mut node = Node::start(config);
    let conn = first.accept().await;
    node.status("Connected").await;
    *address.lock().unwrap() = second.url.clone();
    drop(first);
    conn.cut().await;
    let _conn = second.accept().await;
    node.status("Connected").await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn f19_a_workspace_that_overlaps_gsvs_own_folders_is_refused() {
    let home = Home::new();
    let mut in_state = home.config("ws://127.0.0.1:1");
    in_state.workspace = home.state().join("deep");
    fs::create_dir_all(&in_state.workspace).unwrap();
    let mut around_state = home.config("ws://127.0.0.1:1");
    around_state.workspace = home.state().parent().unwrap().to_owned();
    let mut around_private = home.config("ws://127.0.0.1:1");
    around_private.private = vec![home.file("not made yet/gsv")];
    for config in [in_state, around_state, around_private] {
        let error = Node::start(config).end().await.unwrap_err();
        assert!(matches!(error, NodeError::PrivateWorkspace { .. }), "{error}");
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("--workspace"), "{error}");
    }
}

#[tokio::test]
async fn logs_get_is_answered_from_the_log_without_secrets() {
    let (_gateway, _home, mut node, mut conn) = connected().await;
    node.status("Connected").await;
    conn.run("c", "Bash", bash(&format!("echo {TOKEN}"))).await;
    conn.event("logs.get", json!({"callId": "l", "lines": 3}));
    let request = conn.request("logs.result").await;
    let lines = request.params["lines"].as_array().unwrap();
    assert_eq!(
        (lines.len(), &request.params["truncated"], &request.params["callId"]),
        (3, &json!(false), &json!("l"))
    );
    let text = request.params.to_string();
    assert!(text.contains("a call has ended") && !text.contains(TOKEN), "{text}");
    conn.ack(&request);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_node_with_the_same_state_does_not_start() {
    let (mut gateway, home, node) = started().await;
    gateway.accept().await;
    let second = Node::start(home.config(&gateway.url)).end().await;
    assert!(
        matches!(&second, Err(NodeError::Ledger(error)) if error.to_string().contains("Another node is already running")),
        "{second:?}"
    );
    node.stop().await.unwrap();
}

#[tokio::test]
async fn bad_settings_are_reported_before_the_node_starts() {
    // Each in a home of its own: a node that did not start may hold its ledger's lock for a moment longer.
    let home = Home::new();
    let mut config = home.config("ws://127.0.0.1:1");
    config.id = "my laptop".into();
    let refused = Node::start(config).end().await;
    assert!(matches!(refused, Err(NodeError::BadId { .. })), "{refused:?}");
    let home = Home::new();
    let mut config = home.config("ws://127.0.0.1:1");
    config.workspace = home.file("missing");
    let refused = Node::start(config).end().await;
    assert!(matches!(refused, Err(NodeError::Tools(_))), "{refused:?}");
    let home = Home::new();
    let refused = Node::start(home.config("ftp://host")).end().await;
    assert!(
        matches!(refused, Err(NodeError::Link(LinkError::BadUrl { .. }))),
        "{refused:?}"
    );
    let home = Home::new();
    let mut node = Node::start(home.config("ws://127.0.0.1:1"));
    let status = node.status("Not connected").await;
    // A reason ends like a sentence, whether it came as one or not.
    let before = status.text.split(" Trying again in").next().unwrap();
    assert!(before.ends_with('.') && !before.ends_with(".."), "{}", status.text);
    node.stop().await.unwrap();
}
