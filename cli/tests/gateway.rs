//! Tools, tokens, the audit log, status and doctor against a gateway that the test plays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use common::Home;
use common::channels::{connected, looks, strangers};
use common::fake_gateway::{Connection, FakeGateway, TOKEN};
use common::play::{Play, asked, played, played_all, played_in, refused, serve};
use serde_json::{Value, json};

#[test]
fn tools_are_listed_and_called() {
    let tools =
        json!({"tools": [{"name": "laptop__Bash", "description": "Runs a command.\nSecond line.", "inputSchema": {}}]});
    let run = asked(&["tools", "list"], "tools.list", &json!({}), &tools).ok();
    assert!(
        run.stdout.contains("laptop__Bash  Runs a command. Second line."),
        "{}",
        run.stdout
    );
    let params = json!({"tool": "gsv__ReadFile", "args": {"path": "a.md", "limit": 5}});
    let run = asked(
        &["tools", "call", "gsv__ReadFile", "path=a.md", "limit=5"],
        "tool.invoke",
        &params,
        &json!({"result": "text"}),
    )
    .ok();
    assert_eq!(run.stdout, "text\n");
    let run = asked(
        &["tools", "call", "x", "{}"],
        "tool.invoke",
        &json!({"tool": "x", "args": {}}),
        &json!({"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}),
    )
    .ok();
    assert_eq!(run.stdout, "a\nb\n");
    let run = asked(
        &["tools", "call", "x"],
        "tool.invoke",
        &json!({"tool": "x", "args": {}}),
        &json!({"result": {"ok": true}}),
    )
    .ok();
    assert_eq!(run.json(), json!({"ok": true}));
    refused(
        &["tools", "call", "laptop__Bash"],
        "tool.invoke",
        480,
        "node.offline",
        "The machine is not connected.",
    )
    .failed(1);
    refused(
        &["tools", "call", "laptop__Bash"],
        "tool.invoke",
        478,
        "tool.queue_full",
        "Too many.",
    )
    .failed(4);
}

#[test]
fn s4_a_new_token_is_alone_on_stdout() {
    let entry = json!({"tokenId": "abc", "kind": "node", "nodeId": "laptop", "last4": "9999", "createdAt": 1, "expiresAt": 7_776_000_001_u64});
    let params = json!({"kind": "node", "nodeId": "laptop", "label": "mine", "expiresInMs": 7_776_000_000_u64});
    let args = [
        "token",
        "create",
        "--scope",
        "node",
        "--node",
        "laptop",
        "--expires",
        "90d",
        "--label",
        "mine",
    ];
    let run = asked(
        &args,
        "tokens.create",
        &params,
        &json!({"token": "gsv_node_abc_9999", "entry": entry}),
    )
    .ok();
    assert_eq!(run.stdout, "gsv_node_abc_9999\n");
    assert!(
        !run.stderr.contains("gsv_node_abc_9999") && run.stderr.contains("token revoke abc"),
        "{}",
        run.stderr
    );
    let run = asked(
        &["token", "list"],
        "tokens.list",
        &json!({}),
        &json!({"tokens": [entry], "count": 1}),
    )
    .ok();
    assert!(
        run.stdout.contains("abc") && run.stdout.contains("laptop") && run.stdout.contains("expired"),
        "{}",
        run.stdout
    );
    asked(
        &["token", "revoke", "gsv_node_abc_9999"],
        "tokens.revoke",
        &json!({"tokenId": "abc"}),
        &json!({"ok": true, "tokenId": "abc", "closed": 1}),
    )
    .ok();
    refused(&["token", "list"], "tokens.list", 403, "auth.forbidden", "No.").failed(3);
}

#[test]
fn the_own_token_is_revoked_only_after_a_yes() {
    // The gateway calls a first token after its digest.
    let digest = ring::digest::digest(&ring::digest::SHA256, TOKEN.as_bytes());
    let [one, two, three, ..] = digest.as_ref() else {
        panic!("a digest has 32 bytes")
    };
    let id = format!("first-{one:02x}{two:02x}{three:02x}");
    let gateway = FakeGateway::new();
    let home = gateway.home();
    for named in [id.as_str(), TOKEN] {
        let run = home.gsv(["token", "revoke", named]).failed(2);
        assert!(
            run.stderr.contains("this command itself uses") && run.stderr.contains("--yes"),
            "{run:?}"
        );
    }
    let params = json!({"tokenId": id});
    let answer = json!({"ok": true, "tokenId": id, "closed": 1});
    played_in(&gateway, &home, &["token", "revoke", TOKEN, "--yes"], |connection| {
        serve(connection, "tokens.revoke", &params, &answer);
    })
    .ok();
}

#[test]
fn lifetimes_are_checked_in_units() {
    for (time, says) in [("5ms", "at least 1 second"), ("99999d", "at most 3650 days")] {
        let run = Home::new()
            .gsv(["token", "create", "--scope", "client", "--expires", time])
            .failed(2);
        assert!(run.stderr.contains(says) && !run.stderr.contains("InMs"), "{run:?}");
    }
}

#[test]
fn status_of_another_gateway_shows_no_facts_of_this_machine() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    home.write_config(&format!("url = \"ws://127.0.0.1:1/ws\"\ntoken = \"{TOKEN}\"\n"));
    home.write_state("port", "1");
    let url = gateway.url();
    let plays = |connection: &mut Connection| {
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
fn s16_audit_entries_are_listed_and_a_broken_chain_is_reported() {
    let entry = json!({"seq": 2, "at": 1, "actor": "client:cli", "action": "config.set", "decision": "allowed", "prevHash": "a", "hash": "b"});
    let run = asked(
        &["audit", "--limit", "1", "--action", "config.set"],
        "audit.list",
        &json!({"limit": 1, "action": "config.set"}),
        &json!({"entries": [entry], "count": 1, "intact": false}),
    )
    .ok();
    assert!(
        run.stdout.contains("config.set") && run.stderr.contains("broken"),
        "{run:?}"
    );
}

#[test]
fn au3_the_whole_log_is_checked_in_pages_and_a_break_is_a_failure() {
    let page = json!({"ok": true, "done": false, "checked": 1000, "lastSeq": 1000});
    let first = |connection: &mut Connection| {
        let request = connection.expect("audit.verify");
        assert_eq!(request.params, json!({}));
        connection.answer(&request, &page);
        let request = connection.expect("audit.verify");
        assert_eq!(request.params, json!({"afterSeq": 1000}));
        request
    };
    let run = played(&["audit", "--verify"], |connection| {
        let request = first(connection);
        connection.answer(&request, &json!({"ok": true, "done": true, "checked": 5, "lastSeq": 1005, "exported": {"key": "audit/2026-11-21-000000000001.jsonl.gz", "lastSeq": 900, "failingSince": 1, "problem": "full"}}));
    })
    .ok();
    assert!(run.stdout.contains("1005 entries, the last one is 1005"), "{run:?}");
    assert!(
        run.stdout.contains("to entry 900") && run.stderr.contains("full"),
        "{run:?}"
    );
    let run = played(&["audit", "--verify"], |connection| {
        let request = first(connection);
        connection.answer(&request, &json!({"ok": false, "done": true, "checked": 5, "lastSeq": 1005, "broken": {"seq": 1003, "at": 1, "problem": "Entry 1003 was changed."}}));
    })
    .failed(1);
    assert!(
        run.stderr.contains("broken at entry 1003") && run.stderr.contains("Entry 1003 was changed."),
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

#[test]
fn sp6_status_has_a_line_for_a_limit_that_is_nearly_used_up() {
    let plays = |connection: &mut Connection| {
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
fn doctor_looks_at_the_gateway() {
    let hour = 3_600_000;
    let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let stats = json!({"sessionKey": "main", "sessionId": "s", "messageCount": 2, "tokens": {"input": 1, "output": 1, "total": 2}, "createdAt": now - hour, "updatedAt": 2, "uptime": 2 * hour, "isProcessing": false, "queueSize": 0});
    let run = played(&["doctor", "--json"], |connection| {
        let request = connection.expect("sessions.list");
        let session = json!({"sessionKey": "main", "createdAt": 1, "lastActiveAt": 2});
        connection.answer(&request, &json!({"sessions": [session], "count": 1}));
        let request = connection.expect("session.stats");
        connection.answer(&request, &stats);
        let request = connection.expect("nodes.list");
        connection.answer(&request, &json!({"nodes": [], "count": 0}));
        let request = connection.expect("config.get");
        connection.answer(
            &request,
            &json!({"config": {"model": {"provider": "anthropic", "id": "x"}, "apiKeys": {}}}),
        );
        let request = connection.expect("model.test");
        connection.error(&request, 450, "model.not_configured", "No key is set for Anthropic.");
    });
    let report = run.failed(1).json();
    let level = |name: &str| {
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == name)
            .unwrap()["level"]
            .clone()
    };
    assert_eq!(level("token"), "ok");
    assert_eq!(level("version"), "ok");
    assert_eq!(level("clock"), "warn");
    assert_eq!(level("machines"), "warn");
    assert_eq!(level("model"), "fail");
}

fn model_of(run: &Value) -> &Value {
    run["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "model")
        .unwrap()
}

/// Everything that the doctor asks before the model; the model has a key.
fn up_to_the_model(connection: &mut Connection) {
    before_the_model(connection);
    let config = json!({"model": {"provider": "anthropic", "id": "claude-x"}, "apiKeys": {"anthropic": "[redacted]"}});
    let request = connection.expect("config.get");
    connection.answer(&request, &json!({ "config": config }));
}

fn before_the_model(connection: &mut Connection) {
    let serve = |connection: &mut Connection, method: &str, answer: &Value| {
        let request = connection.expect(method);
        connection.answer(&request, answer);
    };
    serve(connection, "sessions.list", &json!({"sessions": [], "count": 0}));
    serve(connection, "nodes.list", &json!({"nodes": [], "count": 0}));
}

#[test]
fn f5_the_doctor_calls_the_model_and_reports_a_refused_key() {
    let run = played(&["doctor", "--json"], |connection| {
        up_to_the_model(connection);
        let request = connection.expect("model.test");
        connection.error(&request, 452, "model.auth", "Anthropic refused the key (401).");
    });
    let report = run.failed(1).json();
    assert_eq!(
        (&model_of(&report)["level"], &model_of(&report)["found"]),
        (
            &json!("fail"),
            &json!("anthropic/claude-x: Anthropic refused the key (401).")
        )
    );
    let run = played(&["doctor", "--json"], |connection| {
        up_to_the_model(connection);
        let request = connection.expect("model.test");
        let model = json!({"provider": "anthropic", "id": "claude-x"});
        connection.answer(&request, &json!({"model": model, "tookMs": 1200}));
    });
    let found = model_of(&run.json())["found"].clone();
    assert_eq!(found, json!("anthropic/claude-x answered in 1.2 s"));
}

#[test]
fn f5_the_doctor_lets_the_gateway_say_what_a_provider_without_a_key_needs() {
    let run = played(&["doctor", "--json"], |connection| {
        before_the_model(connection);
        let config = json!({"model": {"provider": "cloudflare-workers-ai", "id": "@cf/x"}});
        let request = connection.expect("config.get");
        connection.answer(&request, &json!({ "config": config }));
        let request = connection.expect("model.test");
        connection.error(
            &request,
            450,
            "model.not_configured",
            "Cloudflare Workers AI needs the id of your account.",
        );
    });
    let report = run.failed(1).json();
    let found = model_of(&report)["found"].clone();
    let said = "cloudflare-workers-ai/@cf/x: Cloudflare Workers AI needs the id of your account.";
    assert_eq!(found, json!(said));
}

#[test]
fn f6_providers_and_their_models_are_listed_with_prices() {
    let providers = json!({"providers": [
        {"provider": "openai", "name": "OpenAI", "models": 41, "ready": true},
        {"provider": "amazon-bedrock", "name": "Amazon Bedrock", "models": 165, "ready": false},
    ]});
    let run = asked(&["models"], "models.list", &json!({}), &providers).ok();
    assert!(
        run.stdout.contains("amazon-bedrock  Amazon Bedrock  165     no key"),
        "{}",
        run.stdout
    );
    let models = json!({"models": [
        {"id": "m-1", "contextWindow": 400_000, "maxTokens": 8192, "images": true, "thinking": true, "price": {"input": 2, "output": 10}},
        {"id": "m-2", "contextWindow": 1000, "maxTokens": 100, "images": false, "thinking": false},
    ]});
    let run = asked(
        &["models", "openai"],
        "models.list",
        &json!({"provider": "openai"}),
        &models,
    )
    .ok();
    for row in [
        "m-1    400,000  $2.00 / $10.00   images, thinking",
        "m-2    1,000    not known",
    ] {
        assert!(run.stdout.contains(row), "{row} is not in\n{}", run.stdout);
    }
    let none = asked(
        &["models", "ollama"],
        "models.list",
        &json!({"provider": "ollama"}),
        &json!({"models": []}),
    )
    .ok();
    assert!(
        none.stderr.contains("No models of ollama are listed."),
        "{}",
        none.stderr
    );
}

#[test]
fn f5_the_doctor_calls_no_model_offline_or_on_an_older_gateway() {
    let run = played(&["doctor", "--json", "--offline"], |connection| {
        up_to_the_model(connection);
        lists_models(connection, true, &["claude-x"]);
    });
    let found = model_of(&run.json())["found"].clone();
    assert_eq!(found, json!("anthropic/claude-x, not called (--offline)"));
    let run = played(&["doctor", "--json"], |connection| {
        up_to_the_model(connection);
        let request = connection.expect("model.test");
        connection.error(
            &request,
            404,
            "protocol.unknown_method",
            "There is no method model.test.",
        );
    });
    let found = model_of(&run.json())["found"].clone();
    assert_eq!(found, json!("anthropic/claude-x, not called: the gateway is older"));
}

#[test]
fn f5_the_doctor_says_offline_that_a_key_is_missing_and_that_a_model_is_not_known() {
    for (ready, models, level, says, next) in [
        (
            false,
            &["claude-x"][..],
            "fail",
            "no key is set",
            "gsv config set apiKeys.anthropic -",
        ),
        (
            true,
            &["claude-y"][..],
            "warn",
            "not a known model",
            "gsv models anthropic",
        ),
        // A gateway that lists nothing.
        (true, &[][..], "ok", "not called (--offline)", ""),
    ] {
        let run = played(&["doctor", "--json", "--offline"], |connection| {
            up_to_the_model(connection);
            lists_models(connection, ready, models);
        });
        let report = run.json();
        let model = model_of(&report);
        assert_eq!(model["level"], level, "{model}");
        assert!(model["found"].as_str().unwrap().contains(says), "{model}");
        assert!(model["next"].as_str().unwrap_or_default().contains(next), "{model}");
    }
}

fn lists_models(connection: &mut Connection, ready: bool, ids: &[&str]) {
    let provider = json!({"provider": "anthropic", "name": "Anthropic", "models": ids.len(), "ready": ready});
    serve(connection, "models.list", &json!({}), &json!({"providers": [provider]}));
    let models: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "contextWindow": 1, "maxTokens": 1, "images": false, "thinking": false}))
        .collect();
    serve(
        connection,
        "models.list",
        &json!({"provider": "anthropic"}),
        &json!({"models": models}),
    );
}

fn overview(connection: &mut Connection) {
    let entries = json!([
        {"channel": "whatsapp", "accountId": "default", "connectedAt": 1},
        {"channel": "fax", "accountId": "default", "connectedAt": 1}
    ]);
    serve(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": entries, "count": 2, "bound": ["fax", "idle", "whatsapp"]}),
    );
    let request = connection.expect("channel.status");
    connection.error(&request, 542, "channel.failed", "The channel fax did not answer.");
    looks(connection, &connected());
    serve(connection, "pair.list", &json!({}), &strangers());
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
fn p9_the_doctor_reports_problems_of_channels() {
    let run = played_all(
        &["doctor", "--json"],
        vec![Box::new(|connection| {
            let request = connection.expect("sessions.list");
            connection.answer(&request, &json!({"sessions": [], "count": 0}));
            serve(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
            let request = connection.expect("config.get");
            connection.answer(
                &request,
                &json!({"config": {"model": {"provider": "demo", "id": "demo"}}}),
            );
            overview(connection);
        })],
    )
    .failed(1)
    .json();
    let checks: Vec<(&str, &str)> = run["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"] == "channels")
        .map(|check| (check["level"].as_str().unwrap(), check["found"].as_str().unwrap()))
        .collect();
    assert_eq!(
        checks,
        [
            ("fail", "fax: The channel fax did not answer."),
            (
                "warn",
                "whatsapp: connected as +31612345678; 1 waiting for the agent; 2 undelivered or unknown; messages may have been missed"
            ),
            ("warn", "2 pairing requests"),
        ]
    );
}
