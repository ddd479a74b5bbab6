//! A node against a scripted gateway.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gsv_link::LinkError;
use gsv_link::ledger::Commit;
use gsv_node::{Level, NodeConfig, NodeError};
use serde_json::{Value, json};
use support::{Gateway, Home, Node, TOKEN, now_ms, until};

struct Setup {
    gateway: Gateway,
    home: Home,
    node: Node,
}
async fn setup() -> Setup {
    let gateway = Gateway::start().await;
    let home = Home::new();
    let node = Node::start(home.config(&gateway.url));
    Setup { gateway, home, node }
}
fn bash(command: &str) -> Value {
    json!({"command": command})
}
fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}
fn name(number: usize) -> String {
    format!("s/r1/{number}/0")
}

#[tokio::test]
async fn p2_2_a_node_connects_with_its_id_tools_and_open_calls() {
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let conn = gateway.accept().await;
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
async fn p6_2_every_tool_works_through_the_node() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    let calls = [
        ("Write", json!({"path": "a.txt", "content": "one\ntwo\n"}), "path"),
        ("Read", json!({"path": "a.txt"}), "two"),
        (
            "Edit",
            json!({"path": "a.txt", "oldString": "two", "newString": "three"}),
            "a.txt",
        ),
        ("Glob", json!({"pattern": "*.txt"}), "a.txt"),
        ("Grep", json!({"pattern": "thr.e"}), "three"),
        ("Bash", bash("cat a.txt; exit 3"), "three"),
        ("Process", json!({"action": "list"}), "sessions"),
        ("Delete", json!({"path": "a.txt"}), "deleted"),
    ];
    for (number, (tool, args, want)) in calls.into_iter().enumerate() {
        let result = conn.run(&name(number), tool, args).await;
        assert_eq!(result["outcome"], "ok", "{tool}: {result}");
        assert!(result["result"].to_string().contains(want), "{tool}: {result}");
        assert!(result["durationMs"].is_u64() && result.get("error").is_none());
        if tool == "Bash" {
            assert_eq!(result["result"]["exitCode"], 3);
        }
    }
    assert!(!home.file("a.txt").exists());
    let outside = conn.run("out", "Read", json!({"path": "/etc/passwd"})).await;
    assert_eq!(
        (&outside["outcome"], &outside["reason"]),
        (&json!("error"), &json!("path.outside_workspace"))
    );
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t1_p6_w3_a_call_is_started_once_however_often_it_is_asked_for() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    let command = bash("echo x >> counter; while [ ! -e go ]; do sleep 0.02; done; echo end");
    for _ in 0..3 {
        conn.invoke("c", "Bash", command.clone());
    }
    conn.phase("c", "started").await;
    conn.invoke("c", "Bash", command.clone());
    conn.settle().await;
    fs::write(home.file("go"), "").unwrap();
    let first = conn.result_of("c").await;
    // Not acknowledged yet, and asked for again.
    conn.invoke("c", "Bash", command.clone());
    conn.settle().await;
    conn.ack(&first);
    conn.settle().await;
    // Acknowledged and asked for again: the same answer, from memory.
    for _ in 0..2 {
        conn.invoke("c", "Bash", command.clone());
        let again = conn.result_of("c").await;
        assert_eq!(again.params, first.params);
        conn.ack(&again);
        conn.settle().await;
    }
    assert_eq!(lines(&home.file("counter")), 1);
    node.stop().await.unwrap();
    // Also after a restart of the node.
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![]);
    let again = conn.run("c", "Bash", command).await;
    assert_eq!((again, lines(&home.file("counter"))), (first.params, 1));
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t2_k18_k19_a_result_is_sent_again_after_each_reconnect_until_it_is_acknowledged() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
    assert_eq!(lines(&home.file("counter")), 1);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t2_results_that_wait_are_sent_oldest_first() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    for number in 0..7 {
        conn.invoke(
            &name(number),
            "Write",
            json!({"path": format!("{number}"), "content": "x"}),
        );
        let path = home.file(&number.to_string());
        until("the write", || path.exists()).await;
    }
    for number in 0..4 {
        conn.result_of(&name(number)).await;
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
        assert_eq!(result.params["callId"], name(number));
        conn.ack(&result);
    }
    conn.settle().await;
    assert!(conn.untaken("tool.result").is_empty());
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t6_a_result_that_the_gateway_dropped_is_not_sent_again() {
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
    assert_eq!((lines(&home.file("counter")), home.read("w").as_str()), (1, "w"));
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
async fn t7_p14_a_cancelled_command_ends_at_once_with_its_group() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    conn.invoke(
        "c",
        "Bash",
        bash("echo begun; (sleep 60; echo late >> late) & echo $! > child; wait"),
    );
    conn.phase("c", "started").await;
    until("the child", || home.read("child").ends_with('\n')).await;
    let asked = std::time::Instant::now();
    conn.event("tool.cancel", json!({"callId": "c", "reason": "stopped by the user"}));
    let result = conn.result_of("c").await;
    conn.ack(&result);
    assert!(asked.elapsed().as_secs() < 5);
    assert_eq!(
        (&result.params["outcome"], &result.params["reason"]),
        (&json!("cancelled"), &json!("tool.cancelled"))
    );
    assert!(
        result.params["error"].as_str().unwrap().contains("begun"),
        "{}",
        result.params
    );
    let child = home.read("child").trim().to_owned();
    until("the end of the child", || {
        !Path::new("/proc").join(&child).exists()
            || fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| stat.contains(") Z"))
    })
    .await;
    // Cancelling an unknown call is harmless.
    conn.event("tool.cancel", json!({"callId": "unknown", "reason": "x"}));
    conn.event("tool.cancel", json!({}));
    conn.settle().await;
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
async fn f75_a_refused_event_is_sent_again_before_later_events() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
async fn a_call_past_its_deadline_is_ended_and_has_its_last_output() {
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
    conn.event(
        "tool.invoke",
        json!({"callId": "c", "tool": "Bash", "args": bash("echo half way; sleep 60"), "timeoutMs": 3000}),
    );
    let result = conn.result_of("c").await;
    conn.ack(&result);
    assert_eq!(
        (&result.params["outcome"], &result.params["reason"]),
        (&json!("timeout"), &json!("tool.timeout"))
    );
    assert!(result.params["error"].as_str().unwrap().contains("half way"));
    assert_eq!(result.params["result"]["timedOut"], true);
    // The tool's own, shorter time is a result like any other.
    let own = conn
        .run(
            "own",
            "Bash",
            json!({"command": "echo half way; sleep 60", "timeout": 2000}),
        )
        .await;
    assert_eq!(
        (&own["outcome"], &own["result"]["timedOut"]),
        (&json!("ok"), &json!(true))
    );
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t8_p19_eight_run_32_wait_and_more_are_refused() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    let command = bash("echo x >> started; while [ ! -e go ]; do sleep 0.05; done");
    for number in 0..40 {
        conn.invoke(&name(number), "Bash", command.clone());
    }
    for number in 0..40 {
        conn.phase(&name(number), "accepted").await;
    }
    for number in 0..8 {
        conn.phase(&name(number), "started").await;
    }
    until("eight starts", || lines(&home.file("started")) == 8).await;
    conn.invoke("one more", "Bash", command.clone());
    let refused = conn.result_of("one more").await;
    conn.ack(&refused);
    assert_eq!(
        (&refused.params["outcome"], &refused.params["reason"]),
        (&json!("error"), &json!("tool.queue_full"))
    );
    // One waiting call is cancelled and one times out; neither is started.
    conn.event("tool.cancel", json!({"callId": name(39), "reason": "not wanted"}));
    let cancelled = conn.result_of(&name(39)).await;
    conn.ack(&cancelled);
    assert_eq!(cancelled.params["outcome"], "cancelled");
    conn.event(
        "tool.invoke",
        json!({"callId": "late", "tool": "Bash", "args": command, "timeoutMs": 50}),
    );
    let late = conn.result_of("late").await;
    conn.ack(&late);
    assert_eq!(late.params["outcome"], "timeout");
    assert_eq!(lines(&home.file("started")), 8);
    fs::write(home.file("go"), "").unwrap();
    for _ in 0..39 {
        let result = conn.result().await;
        assert_eq!(result.params["outcome"], "ok");
        conn.ack(&result);
    }
    assert_eq!(lines(&home.file("started")), 39);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn p19_invalid_frames_and_calls_are_answered_or_ignored_and_the_link_stays_up() {
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
    let Setup {
        mut gateway,
        mut node,
        home: _home,
    } = setup().await;
    let conn = gateway.accept().await;
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
    let Setup {
        mut gateway,
        home,
        mut node,
    } = setup().await;
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
    let Setup {
        mut gateway,
        mut node,
        home: _home,
    } = setup().await;
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
async fn f10_f19_tokens_do_not_leave_the_machine() {
    const OTHER: &str = "gsv_admin_3f2a9c_00112233445566778899aabbccddeeff";
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    fs::write(
        home.file("config.toml"),
        format!("token = \"{OTHER}\"\nnode = \"{TOKEN}\"\n"),
    )
    .unwrap();
    conn.invoke(
        "live",
        "Bash",
        bash("cat config.toml; while [ ! -e go ]; do sleep 0.02; done"),
    );
    let mut sent = vec![conn.phase("live", "output").await];
    fs::write(home.file("go"), "").unwrap();
    let live = conn.result_of("live").await;
    conn.ack(&live);
    sent.push(live.params);
    for (call, tool, args) in [
        ("read", "Read", json!({"path": "config.toml"})),
        ("grep", "Grep", json!({"pattern": "token"})),
        ("bash", "Bash", bash("cat config.toml")),
        (
            "background",
            "Bash",
            json!({"command": "cat config.toml", "background": true}),
        ),
    ] {
        let result = conn.run(call, tool, args).await;
        assert_eq!(result["outcome"], "ok", "{result}");
        sent.push(result);
    }
    loop {
        let event = conn.request("node.exec.event").await;
        conn.ack(&event);
        let is_end = event.params["event"] == "finished";
        sent.push(event.params);
        if is_end {
            break;
        }
    }
    conn.settle().await;
    sent.extend(conn.progress.iter().cloned());
    for frame in sent {
        let text = frame.to_string();
        assert!(!text.contains(OTHER) && !text.contains(TOKEN), "{text}");
        assert!(!text.contains("00112233445566778899"), "{text}");
    }
    node.stop().await.unwrap();
}

#[tokio::test]
async fn logs_get_is_answered_from_the_log_without_secrets() {
    let Setup {
        mut gateway,
        mut node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
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
async fn the_end_of_a_background_command_is_reported_until_it_is_acknowledged() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
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

#[tokio::test]
async fn live_output_comes_in_bounded_pieces_and_the_result_does_not_wait_for_them() {
    let Setup {
        mut gateway,
        node,
        home: _home,
    } = setup().await;
    let mut conn = gateway.accept().await;
    conn.invoke(
        "slow",
        "Bash",
        bash("echo first; while [ ! -e go ]; do sleep 0.02; done"),
    );
    let chunk = conn.phase("slow", "output").await;
    assert!(chunk["chunk"].as_str().unwrap().contains("first"));
    assert!(conn.phase("slow", "started").await["pid"].is_u64());
    let flood = conn.run("flood", "Bash", bash("yes größer | head -c 3000000")).await;
    assert_eq!(
        (&flood["outcome"], &flood["result"]["truncated"]),
        (&json!("ok"), &json!(true))
    );
    conn.event("tool.cancel", json!({"callId": "slow", "reason": "done"}));
    let slow = conn.result_of("slow").await;
    conn.ack(&slow);
    conn.settle().await;
    for progress in &conn.progress {
        assert!(progress["chunk"].as_str().unwrap_or_default().len() <= 16 * 1024);
    }
    node.stop().await.unwrap();
}

#[tokio::test]
async fn k16_commands_go_on_while_the_node_restarts_and_keep_their_results() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
    let mut conn = gateway.accept().await;
    conn.invoke(
        "c",
        "Bash",
        bash("echo x >> counter; while [ ! -e go ]; do sleep 0.02; done; echo the end"),
    );
    conn.phase("c", "started").await;
    until("the start", || lines(&home.file("counter")) == 1).await;
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
    assert_eq!(lines(&home.file("counter")), 1);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_node_with_the_same_state_does_not_start() {
    let Setup {
        mut gateway,
        home,
        node,
    } = setup().await;
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
    let home = Home::new();
    let mut config = home.config("ws://127.0.0.1:1");
    config.id = "my laptop".into();
    assert!(matches!(Node::start(config).end().await, Err(NodeError::BadId { .. })));
    let mut config = home.config("ws://127.0.0.1:1");
    config.workspace = home.file("missing");
    assert!(matches!(Node::start(config).end().await, Err(NodeError::Tools(_))));
    let config = home.config("ftp://host");
    assert!(matches!(
        Node::start(config).end().await,
        Err(NodeError::Link(LinkError::BadUrl { .. }))
    ));
    let mut node = Node::start(home.config("ws://127.0.0.1:1"));
    let status = node.status("Not connected").await;
    assert!(status.text.contains("Trying again in"), "{}", status.text);
    node.stop().await.unwrap();
}
