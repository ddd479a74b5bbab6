//! What the program that runs a node decides: which tools are offered, which of its own, and what it is told.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};

use gsv_node::{NodeConfig, NodeError, NodeEvent};
use gsv_protocol::types::ToolOutcome;
use gsv_tools::{BoxFuture, CallContext, Effect, Tool, ToolDefinition, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::support::{Gateway, Home, Node, within};

struct Lamp(&'static str);

impl Tool for Lamp {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.0.into(),
            description: "Switches a lamp.".into(),
            input_schema: json!({"type": "object"}),
            idempotent: false,
            timeout_ms: Some(1234),
        }
    }
    fn capabilities(&self) -> &'static [&'static str] {
        &[]
    }
    fn effect(&self, _: &Value) -> Effect {
        Effect::Mutating
    }
    fn invoke(&self, args: Value, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match args["on"].as_bool() {
                Some(on) => Ok(ToolOutput::Json(json!({ "on": on }))),
                None => Err(ToolError::Failed("no bulb".into())),
            }
        })
    }
}

fn config(home: &Home, url: &str, only: &[&str], own: &[&'static str]) -> NodeConfig {
    NodeConfig {
        only: Some(only.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>()),
        own: own.iter().map(|name| Arc::new(Lamp(name)) as Arc<dyn Tool>).collect(),
        ..home.config(url)
    }
}

#[tokio::test]
async fn nj2_only_the_named_tools_are_offered_and_no_files_are_copied_or_undone_without_them() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    fs::write(home.file("a.txt"), "secret\n").unwrap();
    let node = Node::start(config(&home, &gateway.url, &["Read"], &["Lamp"]));
    let mut conn = gateway.accept().await;
    let offered = conn.hello["tools"].as_array().unwrap();
    let names: Vec<&str> = offered.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Read", "Lamp"]);
    assert_eq!(
        (offered[1]["timeoutMs"].as_u64(), offered[1].get("idempotent")),
        (Some(1234), None)
    );
    let host = &conn.hello["nodeRuntime"]["hostCapabilities"];
    let has = |name: &str| host.as_array().unwrap().contains(&json!(name));
    assert!(
        !has("filesystem.transfer") && !has("filesystem.undo") && has("filesystem.confined"),
        "{host}"
    );

    conn.event("transfer.send", json!({"transferId": 1, "path": "a.txt"}));
    let meta = conn.request("transfer.meta").await;
    assert_eq!(
        (meta.params["size"].as_u64(), meta.params.get("version")),
        (Some(0), None)
    );
    assert!(
        meta.params["error"].as_str().unwrap().contains("does not copy files"),
        "{}",
        meta.params
    );
    let id = "0123456789abcdef0123456789abcdef";
    let receive = json!({"transferId": 2, "path": "b.txt", "size": 1, "id": id, "sha256": "0".repeat(64)});
    conn.event("transfer.receive", receive);
    let accept = conn.request("transfer.accept").await;
    assert!(
        accept.params["error"].as_str().unwrap().contains("does not copy files"),
        "{}",
        accept.params
    );
    let undo = json!({"callId": "gw/session/~u", "calls": "ref0000000/r3/", "undoId": "undo/1", "dryRun": false, "force": false});
    conn.event("undo.request", undo);
    let report = conn.request("undo.report").await;
    assert!(
        report.params["error"]
            .as_str()
            .unwrap()
            .contains("nothing can be undone"),
        "{}",
        report.params
    );

    let refused = conn
        .run("ref0000000/r1/1/0", "Write", json!({"path": "b.txt", "content": "x"}))
        .await;
    assert_eq!(refused["reason"], "tool.unknown");
    assert!(!home.file("b.txt").exists());
    node.stop().await.unwrap();
}

#[tokio::test]
async fn nj3_a_tool_of_the_program_runs_like_any_other_and_the_program_is_told() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let node = Node::start(NodeConfig {
        events: Some(Arc::new(move |event| sink.lock().unwrap().push(event))),
        ..config(&home, &gateway.url, &[], &["Lamp"])
    });
    let mut conn = gateway.accept().await;
    let result = conn.run("ref0000000/r1/1/0", "Lamp", json!({"on": true})).await;
    assert_eq!(
        (&result["outcome"], &result["result"]),
        (&json!("ok"), &json!({"on": true}))
    );
    let failed = conn.run("ref0000000/r1/1/1", "Lamp", json!({})).await;
    assert_eq!(
        (&failed["outcome"], &failed["reason"]),
        (&json!("error"), &json!("tool.failed"))
    );
    // The ledger answers, not the tool.
    let again = conn.run("ref0000000/r1/1/0", "Lamp", json!({"on": false})).await;
    assert_eq!(again["result"], json!({"on": true}));
    node.stop().await.unwrap();
    let seen = seen.lock().unwrap();
    let ends: Vec<(&str, ToolOutcome, Option<&str>)> = seen
        .iter()
        .filter_map(|event| match event {
            NodeEvent::CallEnded {
                call_id,
                outcome,
                reason,
                ..
            } => Some((call_id.as_str(), *outcome, *reason)),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("ref0000000/r1/1/0", ToolOutcome::Ok, None),
            ("ref0000000/r1/1/1", ToolOutcome::Error, Some("tool.failed"))
        ]
    );
    let starts = seen
        .iter()
        .filter(|event| matches!(event, NodeEvent::CallStarted { .. }))
        .count();
    assert_eq!(starts, 2);
    assert!(matches!(seen[0], NodeEvent::Connected { .. }), "{:?}", seen[0]);
}

#[tokio::test]
async fn nj7_a_node_does_not_start_with_a_tool_that_can_not_be_offered() {
    for own in [&["Bash"] as &[_], &["Lamp", "Lamp"], &["a__b"]] {
        let home = Home::new();
        let node = Node::start(config(&home, "ws://127.0.0.1:9", &[], own));
        let error = within("its end", node.end()).await.unwrap_err();
        assert!(
            matches!(error, NodeError::Tools(ToolError::BadDefinition { .. })),
            "{error}"
        );
        assert_eq!(error.reason(), "node.bad_tool");
    }
}
