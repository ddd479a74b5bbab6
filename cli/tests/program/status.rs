//! `gsv status` and `gsv usage` against a gateway that the test plays.

use crate::common::Home;
use crate::common::channels::overview;
use crate::common::fake_gateway::{Connection, FakeGateway, TOKEN};
use crate::common::play::{Play, asked, played, played_all, played_in, serve};
use serde_json::{Value, json};

const NEARLY: &str = "Today's limit is nearly used up: $8.00 of $10.00, 80 %.";

fn usage() -> Value {
    let row = |key: &str, calls: u64, cost: f64, unpriced: u64| json!({"key": key, "calls": calls, "input": 12_000, "output": 900, "cacheRead": 4000, "cacheWrite": 1000, "costUsd": cost, "unpricedTokens": unpriced});
    json!({
        "from": "2026-11-21", "today": "2026-11-22", "timeZone": "Europe/Berlin",
        "rows": [row("anthropic/claude", 12, 7.75, 0), row("own/m", 3, 0.0, 45_000)], "more": false,
        "total": row("total", 15, 7.75, 45_000),
        "caps": [
            {"setting": "limits.guestDayTokens", "of": "discord:a:7", "used": 1500.0, "reserved": 0.0, "limit": 2_000_000.0},
            {"setting": "limits.dayCostUsd", "used": 8.0, "reserved": 0.25, "limit": 10.0, "allowed": 2.0},
        ],
        "attention": [NEARLY],
    })
}

#[test]
fn sp8_usage_is_shown_with_its_limits() {
    let params = json!({"by": "model", "days": 2});
    let run = asked(
        &["usage", "--by", "model", "--days", "2"],
        "usage.get",
        &params,
        &usage(),
    )
    .ok();
    for row in [
        "anthropic/claude  12     12,000  5,000   900  $7.75  0",
        "own/m             3      12,000  5,000   900  $0.00  45,000",
        "total             15     12,000  5,000   900  $7.75  45,000",
        "limits.guestDayTokens  discord:a:7  1,500  0          2,000,000",
        "limits.dayCostUsd      all          $8.00  $0.2500    $10.00 ($8.00 set + $2.00 that you allowed)",
        NEARLY,
    ] {
        assert!(run.stdout.contains(row), "{row} is not in\n{}", run.stdout);
    }
    let run = asked(
        &["usage", "--json"],
        "usage.get",
        &json!({"by": "day", "days": 30}),
        &usage(),
    )
    .ok();
    assert_eq!(run.json(), usage());
}

/// A gateway that knows nothing yet: what every status asks for first.
fn serve_empty(connection: &mut Connection) {
    serve(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
    serve(
        connection,
        "sessions.list",
        &json!({"limit": 5}),
        &json!({"sessions": [], "count": 0}),
    );
    serve(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": [], "count": 0}),
    );
    serve(connection, "pair.list", &json!({}), &json!({"pairs": {}}));
}

#[test]
fn sp6_status_has_a_line_for_a_limit_that_is_nearly_used_up() {
    let plays = |connection: &mut Connection| {
        serve_empty(connection);
        serve(connection, "approval.list", &json!({}), &json!({"approvals": []}));
        serve(connection, "usage.get", &json!({"days": 1}), &usage());
    };
    assert!(played(&["status"], plays).ok().stdout.contains(NEARLY));
    assert_eq!(
        played(&["status", "--json"], plays).ok().json()["attention"],
        json!([NEARLY])
    );
}

fn coming() -> Value {
    let report =
        json!({"jobId": "report", "agentId": "main", "name": "Weather", "atMs": 4_102_509_600_000_u64, "count": 1});
    let beat = json!({
        "agentId": "main", "name": "Heartbeat", "atMs": 4_102_444_800_000_u64, "lastAtMs": 4_102_506_000_000_u64, "count": 35,
        "everyMs": 1_800_000
    });
    json!({
        "tz": "UTC", "nowMs": 4_102_440_000_000_u64, "stopped": false, "jobs": 1, "heartbeats": 1, "next": [report],
        "days": [{"date": "2100-01-01", "times": [beat, report]}], "leftOut": 0, "daysLeftOut": 2,
        "failed": [{"jobId": "news", "agentId": "main", "name": "News", "failures": 2, "error": "The key is wrong."}], "failedCount": 1,
    })
}

#[test]
fn hb4_status_has_a_line_for_a_heartbeat_that_stands_still_and_for_a_condition_that_fails() {
    let beat = |more: Value| {
        let mut state = json!({"enabled": true, "everyMs": 1_800_000, "runs": 0, "costUsd": 0, "skipped": {}});
        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        state
    };
    let states = json!({
        "calm": beat(json!({"lastSkip": "empty", "lastReason": "HEARTBEAT.md has no task."})),
        "lost": beat(json!({"lastSkip": "wrong", "lastReason": "`unread: fax` names a channel that this gateway does not have."})),
        "main": beat(json!({"problem": "`evry: 2h` in HEARTBEAT.md is not a condition."})),
        "work": beat(json!({"failing": [{"condition": "exec: lap true", "count": 2, "since": 0, "why": "The machine lap is not connected."}]})),
    });
    let plays = |connection: &mut Connection| {
        serve_empty(connection);
        serve(connection, "approval.list", &json!({}), &json!({"approvals": []}));
        serve(connection, "usage.get", &json!({"days": 1}), &usage());
        serve(connection, "cron.upcoming", &json!({"days": 0}), &coming());
        let quiet = json!({"notifications": [], "more": false, "waiting": 0, "places": []});
        serve(connection, "notifications.list", &json!({"limit": 1}), &quiet);
        let answer = json!({"agents": {}, "states": states});
        serve(connection, "heartbeat.status", &json!({}), &answer);
    };
    let shown = played(&["status"], plays).ok().stdout;
    for line in [
        "! The heartbeat of main stands still: `evry: 2h` in HEARTBEAT.md is not a condition. Look: `gsv heartbeat status`",
        "! The heartbeat of lost stands still: `unread: fax` names a channel",
        "! A condition of the heartbeat of work fails: exec: lap true: The machine lap is not connected. Look:",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("calm"), "{shown}");
}

#[test]
fn sc15_status_shows_what_comes_next_and_what_failed() {
    let plays = |connection: &mut Connection| {
        serve_empty(connection);
        serve(connection, "approval.list", &json!({}), &json!({"approvals": []}));
        serve(connection, "usage.get", &json!({"days": 1}), &usage());
        serve(connection, "cron.upcoming", &json!({"days": 0}), &coming());
    };
    let shown = played(&["status"], plays).ok().stdout;
    assert!(shown.contains("Weather (report)"), "{shown}");
    assert!(
        shown.contains("News (news) failed 2 times in a row: The key is wrong. Look: `gsv cron runs news`"),
        "{shown}"
    );
    assert_eq!(played(&["status", "--json"], plays).ok().json()["coming"], coming());
}

#[test]
fn sc14_the_calendar_shows_what_the_gateway_worked_out_and_says_what_is_left_out() {
    let params = json!({"days": 3});
    let args = ["cron", "calendar", "--days", "3"];
    let run = asked(&args, "cron.upcoming", &params, &coming()).ok();
    assert!(run.stdout.starts_with("Friday 1 January 2100\n"), "{}", run.stdout);
    for part in ["every 30 min, ", "(35 times)", "heartbeat of main", "Weather (report)"] {
        assert!(run.stdout.contains(part), "{part} is not in\n{}", run.stdout);
    }
    assert!(run.stderr.contains("the last 2 days"), "{}", run.stderr);
    let run = asked(
        &["cron", "calendar", "--json"],
        "cron.upcoming",
        &json!({"days": 8}),
        &coming(),
    )
    .ok();
    assert_eq!(run.json(), coming());
}

#[test]
fn ap16_status_names_the_question_and_the_conversation_that_waits() {
    let run = played(&["status"], |connection| {
        serve(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
        serve(
            connection,
            "sessions.list",
            &json!({"limit": 5}),
            &json!({"sessions": [{"sessionKey": "agent:main:main", "createdAt": 1, "lastActiveAt": 2}], "count": 1}),
        );
        serve(
            connection,
            "channels.list",
            &json!({}),
            &json!({"channels": [], "count": 0}),
        );
        serve(connection, "pair.list", &json!({}), &json!({"pairs": {}}));
        let entry = json!({
            "code": "K7Q2A", "sessionKey": "agent:main:main", "agentId": "main", "runId": "r", "callId": "c", "tool": "lap__Bash",
            "text": "ls", "textBytes": 2, "why": "w", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1
        });
        serve(connection, "approval.list", &json!({}), &json!({"approvals": [entry]}));
        serve(connection, "usage.get", &json!({"days": 1}), &usage());
    });
    let shown = run.ok().stdout;
    assert!(
        shown.contains("1 question waits for your word: `gsv approval show K7Q2A`"),
        "{shown}"
    );
    assert!(shown.contains("waits for your answer (K7Q2A)"), "{shown}");
}

#[test]
fn status_of_another_gateway_shows_no_facts_of_this_machine() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    home.write_config(&format!("url = \"ws://127.0.0.1:1/ws\"\ntoken = \"{TOKEN}\"\n"));
    home.write_state("port", "1");
    let url = gateway.url();
    let plays = |connection: &mut Connection| {
        serve_empty(connection);
    };
    let run = played_in(&gateway, &home, &["-u", &url, "status", "--json"], plays).ok();
    assert_eq!(
        (&run.json()["gateway"], &run.json()["url"]),
        (&json!(null), &json!(url))
    );
    let run = played_in(&gateway, &home, &["-u", &url, "status"], plays).ok();
    assert!(
        run.stdout.contains(&url) && !run.stdout.contains("not running"),
        "{run:?}"
    );
}

#[test]
fn status_shows_machines_and_sessions() {
    let run = played(&["status", "--json"], |connection| {
        let request = connection.expect("nodes.list");
        connection.answer(&request, &json!({"nodes": [{"nodeId": "laptop", "online": true, "hostCapabilities": [], "toolCapabilities": {}, "tools": ["Bash"]}], "count": 1}));
        let request = connection.expect("sessions.list");
        connection.answer(
            &request,
            &json!({"sessions": [{"sessionKey": "agent:main:main", "createdAt": 1, "lastActiveAt": 2}], "count": 1}),
        );
    });
    let status = run.ok().json();
    assert_eq!(
        (
            &status["reachable"],
            &status["nodes"][0]["nodeId"],
            &status["sessions"][0]["sessionKey"]
        ),
        (&json!(true), &json!("laptop"), &json!("agent:main:main"))
    );
}

#[test]
fn p9_status_shows_accounts_undelivered_messages_and_pairing_requests() {
    let play = || -> Play<'_> {
        Box::new(|connection| {
            serve(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
            let request = connection.expect("sessions.list");
            connection.answer(&request, &json!({"sessions": [], "count": 0}));
            overview(connection);
        })
    };
    let run = played_all(&["status"], vec![play()]).ok();
    let shown = run.stdout.split_once("CHANNELS\n").unwrap().1;
    insta::assert_snapshot!(shown, @r"
    fax       The channel fax did not answer.
    whatsapp  connected as +31612345678; 1 waiting for the agent; 2 undelivered or unknown; messages may have been missed

    2 pairing requests: `gsv pair list`
    ");
    let run = played_all(&["status", "--json"], vec![play()]).ok().json();
    assert_eq!(
        (&run["channels"][1]["accounts"][0]["undelivered"], &run["strangers"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn sc9_an_empty_message_of_a_job_is_refused_before_the_gateway_is_asked() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    for args in [
        &["cron", "add", "", "--every", "1h"][..],
        &["cron", "add", "  ", "--every", "1h"],
        &["cron", "edit", "a", "--message", ""],
    ] {
        let run = home.gsv(args.iter().copied()).failed(2);
        assert!(run.stderr.contains("The message is empty"), "{}", run.stderr);
    }
}

/// A machine that has joined as a client, where nothing answers, with the port of the usual gateway.
fn joined() -> (Home, String) {
    let url = format!("wss://127.0.0.1:8787/ws#sha256={}", "7d".repeat(32));
    let home = Home::new();
    home.write_config(&format!("url = \"{url}\"\ntoken = \"gsv_client_a_0\"\n"));
    (home, url)
}

#[test]
fn p10_another_machines_gateway_is_not_to_be_started_here() {
    let (home, _) = joined();
    for args in [&["status"][..], &["doctor", "--offline"], &["chat", "hi"]] {
        let run = home.gsv(args);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(!said.contains("gsv up"), "{said}");
        assert!(said.contains("Is it running there?"), "{said}");
    }
}

#[test]
fn a_gateway_of_this_machine_beside_the_one_in_use_is_named() {
    let gateway = FakeGateway::new();
    let (home, _) = joined();
    home.write_state("port", &gateway.port.to_string());
    let state = json!({"phase": "ready", "supervisorPid": 1, "supervisorStart": "0", "bootId": "none", "port": gateway.port,
        "version": "1", "startedAt": 1, "restarts": 0});
    home.write_state("state.json", &state.to_string());
    let lock = std::fs::File::create(home.state().join("gateway/supervisor.lock")).unwrap();
    lock.try_lock().unwrap();
    let words = format!(
        "this machine runs a gateway of its own on port {port}: `gsv --url ws://127.0.0.1:{port}/ws status`",
        port = gateway.port
    );
    for args in [&["status"][..], &["doctor", "--offline"]] {
        let run = home.gsv(args);
        assert!(run.stdout.contains(&words), "{run:?}");
    }
    assert_eq!(
        home.gsv(["status", "--json"]).json()["ownGateway"]["port"],
        gateway.port
    );
}

#[test]
fn status_without_a_gateway_says_once_what_to_do() {
    let home = Home::new();
    home.write_config("url = \"ws://127.0.0.1:8787/ws\"\ntoken = \"gsv_admin_a_0\"\n");
    let run = home.gsv(["--url", "ws://127.0.0.1:9/ws", "status"]);
    assert_ne!(run.code, Some(0));
    home.write_state("port", "9");
    let run = home.gsv(["--url", "ws://127.0.0.1:9/ws", "status"]).failed(4);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert_eq!(said.matches("gsv up").count(), 1, "{said}");
    assert_eq!(said.matches("not running").count(), 1, "{said}");
}

#[test]
fn a_machine_that_is_only_a_node_says_so_and_starts_no_gateway() {
    // The second one as `gsv join` stores it, and the others through a tunnel.
    let pinned = format!("wss://127.0.0.1:28201/ws#sha256={}", "7d".repeat(32));
    for (url, shown) in [
        ("wss://gsv.example:1", "wss://gsv.example:1"),
        (&pinned, "wss://127.0.0.1:28201/ws"),
        ("ws://127.0.0.1:1/ws", "ws://127.0.0.1:1/ws"),
        ("ws://127.0.0.1:8787/ws", "ws://127.0.0.1:8787/ws"),
    ] {
        let home = Home::new();
        home.write_config(&format!(
            "url = \"{url}\"\n\n[node]\nid = \"desk\"\ntoken = \"node-token-of-the-test\"\n"
        ));
        for command in [
            ["status"].as_slice(),
            &["session", "list"],
            &["nodes", "list"],
            &["chat", "hi"],
        ] {
            let run = home.gsv(command).failed(3);
            let words = format!("This machine is a node of {shown}, and has no client's token.");
            assert!(run.stderr.contains(&words), "{run:?}");
            assert!(
                run.stderr.contains("`gsv invite client`, then `gsv join CODE` here."),
                "{run:?}"
            );
            assert!(!run.stderr.contains("gsv up"), "{run:?}");
        }
    }
}
