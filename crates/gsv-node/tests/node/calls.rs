//! A call on one connection: it starts once, ends in time or when it is cancelled, and shows no secrets.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::{Node, TOKEN, until};
use crate::{bash, call_id, connected, line_count};

#[tokio::test]
async fn p6_2_every_tool_works_through_the_node() {
    let (_gateway, home, node, mut conn) = connected().await;
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
        let result = conn.run(&call_id(number), tool, args).await;
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
    let (mut gateway, home, node, mut conn) = connected().await;
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
    assert_eq!(line_count(&home.file("counter")), 1);
    node.stop().await.unwrap();
    // Also after a restart of the node.
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![]);
    let again = conn.run("c", "Bash", command).await;
    assert_eq!((again, line_count(&home.file("counter"))), (first.params, 1));
    node.stop().await.unwrap();
}

#[tokio::test]
async fn t7_p14_a_cancelled_command_ends_at_once_with_its_group() {
    let (_gateway, home, node, mut conn) = connected().await;
    conn.invoke(
        "c",
        "Bash",
        bash("echo begun; (sleep 60; echo late >> late) & echo $! > child; wait"),
    );
    conn.phase("c", "started").await;
    until("the child", || home.read("child").ends_with('\n')).await;
    conn.event("tool.cancel", json!({"callId": "c", "reason": "stopped by the user"}));
    let result = conn.result_of("c").await;
    conn.ack(&result);
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
async fn t7_st2_a_cancel_ends_what_a_finished_call_left_in_the_background() {
    let (_gateway, home, node, mut conn) = connected().await;
    let command = "(sleep 60; echo late >> late) & echo $! > child; wait";
    let result = conn
        .run("c", "Bash", json!({"command": command, "background": true}))
        .await;
    assert_eq!(result["outcome"], "ok", "{result}");
    until("the child", || home.read("child").ends_with('\n')).await;
    conn.event("tool.cancel", json!({"callId": "c", "reason": "everything is stopped"}));
    loop {
        let event = conn.request("node.exec.event").await;
        conn.ack(&event);
        if event.params["event"] != "started" {
            assert_eq!(
                (&event.params["event"], &event.params["callId"]),
                (&json!("failed"), &json!("c"))
            );
            break;
        }
    }
    let child = home.read("child").trim().to_owned();
    until("the end of the child", || {
        !Path::new("/proc").join(&child).exists()
            || fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| stat.contains(") Z"))
    })
    .await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_call_past_its_deadline_is_ended_and_has_its_last_output() {
    let (_gateway, _home, node, mut conn) = connected().await;
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
    let (_gateway, home, node, mut conn) = connected().await;
    let command = bash("echo x >> started; while [ ! -e go ]; do sleep 0.05; done");
    for number in 0..40 {
        conn.invoke(&call_id(number), "Bash", command.clone());
    }
    for number in 0..40 {
        conn.phase(&call_id(number), "accepted").await;
    }
    for number in 0..8 {
        conn.phase(&call_id(number), "started").await;
    }
    until("eight starts", || line_count(&home.file("started")) == 8).await;
    conn.invoke("one more", "Bash", command.clone());
    let refused = conn.result_of("one more").await;
    conn.ack(&refused);
    assert_eq!(
        (&refused.params["outcome"], &refused.params["reason"]),
        (&json!("error"), &json!("tool.queue_full"))
    );
    // One waiting call is cancelled and one times out; neither is started.
    conn.event("tool.cancel", json!({"callId": call_id(39), "reason": "not wanted"}));
    let cancelled = conn.result_of(&call_id(39)).await;
    conn.ack(&cancelled);
    assert_eq!(cancelled.params["outcome"], "cancelled");
    conn.event(
        "tool.invoke",
        json!({"callId": "late", "tool": "Bash", "args": command, "timeoutMs": 50}),
    );
    let late = conn.result_of("late").await;
    conn.ack(&late);
    assert_eq!(late.params["outcome"], "timeout");
    assert_eq!(line_count(&home.file("started")), 8);
    fs::write(home.file("go"), "").unwrap();
    for _ in 0..39 {
        let result = conn.result().await;
        assert_eq!(result.params["outcome"], "ok");
        conn.ack(&result);
    }
    assert_eq!(line_count(&home.file("started")), 39);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn f10_f19_tokens_do_not_leave_the_machine() {
    const OTHER: &str = "gsv_admin_3f2a9c_00112233445566778899aabbccddeeff";
    let (_gateway, home, node, mut conn) = connected().await;
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
async fn live_output_comes_in_bounded_pieces_and_the_result_does_not_wait_for_them() {
    let (_gateway, _home, node, mut conn) = connected().await;
    conn.invoke(
        "slow",
        "Bash",
        bash("echo first; while [ ! -e go ]; do sleep 0.02; done"),
    );
    let chunk = conn.phase("slow", "output").await;
    assert!(chunk["chunk"].as_str().unwrap().contains("first"));
    let phases = conn.progress.iter().filter(|report| report["callId"] == "slow");
    let phases: Vec<&str> = phases.filter_map(|report| report["phase"].as_str()).collect();
    assert_eq!(phases, ["accepted", "started", "output"]);
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
