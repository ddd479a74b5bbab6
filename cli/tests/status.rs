//! `gsv status` and `gsv usage` against a gateway that the test plays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use common::channels::overview;
use common::fake_gateway::{Connection, FakeGateway, TOKEN};
use common::play::{Play, asked, played, played_all, played_in, serve};
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
            {"setting": "limits.dayCostUsd", "used": 8.0, "reserved": 0.25, "limit": 10.0},
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
        "limits.guestDayTokens  discord:a:7  1500   0          2000000",
        "limits.dayCostUsd                   $8.00  $0.2500    $10.00",
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
