//! `gsv doctor` against a gateway that the test plays.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::common::channels::overview;
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{played, played_all, played_in, serve};
use crate::common::{Home, finish, start};
use serde_json::{Value, json};

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
/// What the doctor asks before it looks at hooks, with the demo model.
fn before_the_hooks(connection: &mut Connection) {
    before_the_model(connection);
    let request = connection.expect("config.get");
    connection.answer(
        &request,
        &json!({"config": {"model": {"provider": "demo", "id": "demo"}}}),
    );
    overview(connection);
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
fn st6_a_stopped_gateway_calls_no_model_and_that_is_no_fault_of_the_model() {
    let run = played(&["doctor", "--json"], |connection| {
        up_to_the_model(connection);
        let request = connection.expect("model.test");
        connection.error(&request, 620, "gateway.stopped", "GSV is stopped.");
    });
    let report = run.json();
    assert_eq!(
        (&model_of(&report)["level"], &model_of(&report)["found"]),
        (
            &json!("warn"),
            &json!("anthropic/claude-x, not called: everything is stopped")
        )
    );
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
            "gsv model list anthropic",
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

#[test]
fn f5_the_doctor_asks_for_no_key_of_a_server_of_ones_own() {
    let run = played(&["doctor", "--json", "--offline"], |connection| {
        before_the_model(connection);
        let server = json!({"baseUrl": "http://127.0.0.1:1/v1", "wire": "openai-completions"});
        let config = json!({"model": {"provider": "anthropic", "id": "own"}, "providers": {"anthropic": server}});
        serve(connection, "config.get", &json!({}), &json!({ "config": config }));
        lists_models(connection, false, &["claude-x"]);
    });
    let report = run.json();
    let model = model_of(&report);
    assert_eq!(
        (&model["level"], &model["found"]),
        (&json!("ok"), &json!("anthropic/own, not called (--offline)"))
    );
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

#[test]
fn sb12_the_doctor_tests_the_sandbox_of_the_folder_that_the_node_works_in() {
    // The home of the test is in the folder for temporary files, so that one can't be a workspace.
    let home = Home::new();
    let (workspace, node) = (home.root().join("work"), home.state().join("node/lap"));
    for dir in [&workspace, &node] {
        fs::create_dir_all(dir).unwrap();
    }
    for dir in [&node, &home.state().join("node"), &home.state()] {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
    }
    let stored = node.join("workspace");
    fs::write(&stored, workspace.to_str().unwrap()).unwrap();
    fs::set_permissions(&stored, Permissions::from_mode(0o600)).unwrap();
    let tier = home
        .gsv(["node", "sandbox", "--json", "--workspace", workspace.to_str().unwrap()])
        .json()["tier"]
        .clone();
    let found = |home: &Home| {
        let report = home.gsv(["doctor", "--json", "--offline"]).json();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "sandbox").unwrap()
    };
    let is_right = |check: &Value| match tier.as_str() {
        Some(tier) => check["level"] == "ok" && check["found"].as_str().unwrap().contains(tier),
        None => check["level"] == "warn",
    };
    let check = found(&home);
    assert!(is_right(&check), "{check}, and the node has {tier}");
    // A node whose last start had a stronger tier than this machine has now.
    if tier.as_str().is_some_and(|tier| tier != "bubblewrap") && cfg!(target_os = "linux") {
        let plan = json!({"profile": "workspace", "workspace": "/ws", "writable": [], "readable": null, "hidden": [], "own": "/own"});
        let last = node.join("sandbox.json");
        fs::write(&last, json!({"tier": "bubblewrap", "plan": plan}).to_string()).unwrap();
        let report = home.gsv(["doctor", "--json", "--offline"]).json();
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "node").unwrap();
        let said = check["found"].as_str().unwrap();
        assert!(
            said.starts_with("`lap` does not start")
                && said.contains("bubblewrap, but this machine has only")
                && said.contains("`tier = "),
            "{check}"
        );
        fs::remove_file(&last).unwrap();
    }
    // [SB19] Which limits hold, in the sandbox and without one.
    if cfg!(target_os = "linux") {
        let limits = |policy: &str| {
            let file = home.config_dir().join("node.toml");
            fs::create_dir_all(home.config_dir()).unwrap();
            fs::write(&file, policy).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            let report = home.gsv(["doctor", "--json", "--offline"]).json();
            fs::remove_file(file).unwrap();
            let checks = report["checks"].as_array().unwrap().clone();
            let check = checks.into_iter().find(|check| check["name"] == "limits").unwrap();
            check["found"].as_str().unwrap().to_owned()
        };
        for policy in ["", "sandbox = \"off\"\n"] {
            let said = limits(&format!("{policy}[limits]\nmemory_mib = 512\nprocesses = 1000\n"));
            assert!(
                said.starts_with("one command may use 512 MiB of memory and 1,000 processes"),
                "{said}"
            );
            assert!(
                said.contains("the control group of this command") && said.contains("ulimit"),
                "{said}"
            );
        }
    }
    // A node that was started before the folder was noted.
    fs::remove_file(&stored).unwrap();
    let check = found(&home);
    assert!(is_right(&check), "{check}, and the node has {tier}");
}

#[test]
fn hk10_the_doctor_names_a_hook_that_refuses_its_deliveries() {
    let hook = |name: &str| {
        json!({"name": name, "path": "/hooks/x", "agentId": "main", "form": "github", "only": [], "createdAtMs": 0,
            "target": {"kind": "job", "jobId": "report"}, "accepted": 0, "ignored": 0, "refused": 0, "waiting": 0})
    };
    let mut broken = hook("pay");
    broken["problem"] = json!("Its job was removed.");
    let report = played(&["doctor", "--json"], |connection| {
        before_the_hooks(connection);
        serve(
            connection,
            "hook.list",
            &json!({}),
            &json!({"hooks": [hook("gh"), broken]}),
        );
    })
    .failed(1)
    .json();
    let checks = report["checks"].as_array().unwrap();
    let hooks: Vec<_> = checks.iter().filter(|check| check["name"] == "hooks").collect();
    assert_eq!(hooks[0]["level"], "fail");
    assert_eq!(hooks[0]["found"], "pay refuses its deliveries: Its job was removed.");
    assert!(hooks[0]["next"].as_str().unwrap().contains("gsv hook show pay"));
    assert_eq!(
        (&hooks[1]["level"], &hooks[1]["found"]),
        (&json!("ok"), &json!("1 of 2 can take deliveries"))
    );
}

#[test]
fn ot8_the_doctor_tells_why_no_traces_are_exported_and_what_to_do() {
    let doctor = |status: Value| {
        let run = played(&["doctor", "--json"], |connection| {
            before_the_hooks(connection);
            serve(connection, "hook.list", &json!({}), &json!({"hooks": []}));
            for method in ["notifications.list", "heartbeat.status"] {
                let request = connection.expect(method);
                connection.error(&request, 404, "protocol.unknown_method", "No such method.");
            }
            serve(connection, "telemetry.status", &json!({}), &status);
        });
        let checks = run.json()["checks"].clone();
        let checks = checks.as_array().unwrap();
        checks.iter().find(|check| check["name"] == "traces").cloned()
    };
    assert_eq!(
        doctor(json!({"enabled": false, "waiting": 0, "exported": 0, "dropped": 0})),
        None
    );
    let fine = doctor(json!({"enabled": true, "waiting": 0, "exported": 1200, "dropped": 0})).unwrap();
    assert_eq!(
        (&fine["level"], &fine["found"]),
        (&json!("ok"), &json!("1,200 runs exported, 0 wait"))
    );
    let failing = json!({"enabled": true, "waiting": 2, "exported": 5, "dropped": 3, "problem": "The collector answered 503.", "failedAt": 0});
    let failing = doctor(failing).unwrap();
    assert_eq!(failing["level"], "warn");
    assert_eq!(
        failing["found"],
        "the last export failed at 1970-01-01 00:00:00 UTC: The collector answered 503. 5 runs exported, 2 wait, 3 dropped"
    );
    assert!(
        failing["next"]
            .as_str()
            .unwrap()
            .contains("gsv config get telemetry.otlp")
    );
}

#[test]
fn p9_the_doctor_reports_problems_of_channels() {
    let run = played_all(&["doctor", "--json"], vec![Box::new(before_the_hooks)])
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

#[test]
fn p9_a_node_that_runs_here_and_reconnects_is_not_started_a_second_time() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let ledger = home.state().join("node/lap/ledger");
    fs::create_dir_all(&ledger).unwrap();
    let lock = fs::File::create(ledger.join("lock")).unwrap();
    let machines = |nodes: &Value| -> Vec<(String, String, String)> {
        let run = played_in(&gateway, &home, &["doctor", "--json", "--offline"], |connection| {
            let request = connection.expect("sessions.list");
            connection.answer(&request, &json!({"sessions": [], "count": 0}));
            serve(
                connection,
                "nodes.list",
                &json!({}),
                &json!({"nodes": nodes, "count": 1}),
            );
        });
        let text = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
        let report = run.json();
        let checks = report["checks"].as_array().unwrap().iter();
        checks
            .filter(|check| check["name"] == "machines")
            .map(|check| (text(check, "level"), text(check, "found"), text(check, "next")))
            .collect()
    };
    let node = |id: &str, online: bool| json!({"nodeId": id, "online": online, "hostCapabilities": [], "toolCapabilities": {}, "tools": []});
    let stopped = machines(&json!([node("lap", false)]));
    assert!(
        stopped.len() == 1 && stopped[0].2.starts_with("Start one: `gsv node"),
        "{stopped:?}"
    );
    lock.lock().unwrap();
    fs::write(ledger.join("lock"), std::process::id().to_string()).unwrap();
    for nodes in [json!([]), json!([node("lap", false)]), json!([node("nas", false)])] {
        let [(level, found, next)] = &machines(&nodes)[..] else {
            panic!("one check")
        };
        assert_eq!(level, "warn");
        assert_eq!(
            found,
            &format!(
                "`lap` runs on this machine (pid {}) and is not connected to this gateway, so the agent can't use it",
                std::process::id()
            )
        );
        assert!(
            next.starts_with("After a restart of the gateway it connects by itself: wait 30 s"),
            "{next}"
        );
        assert!(
            next.contains("lap/node.log") && next.contains("another gateway"),
            "{next}"
        );
    }
    // With another machine online, a node that this gateway does not know may be another gateway's.
    let one = machines(&json!([node("nas", true)]));
    assert_eq!(one, [("ok".into(), "online: nas".into(), String::new())]);
    let two = machines(&json!([node("nas", true), node("lap", false)]));
    assert!(
        two.len() == 2 && two[1].1.starts_with("`lap` runs on this machine"),
        "{two:?}"
    );
    assert_eq!(machines(&json!([node("lap", true)])).len(), 1);
}

/// The check of the audit, of a log with this many entries, after everything else.
fn audit_check(count: u64, play: impl FnOnce(&mut Connection)) -> Value {
    let run = played(&["doctor", "--json"], |connection| {
        before_the_hooks(connection);
        serve(connection, "hook.list", &json!({}), &json!({"hooks": []}));
        for method in ["notifications.list", "heartbeat.status", "telemetry.status"] {
            let request = connection.expect(method);
            connection.error(&request, 404, "protocol.unknown_method", "No such method.");
        }
        serve(
            connection,
            "audit.list",
            &json!({"limit": 1}),
            &json!({"entries": [audit_entry(20_000)], "count": count, "intact": true}),
        );
        play(connection);
    });
    let checks = run.json()["checks"].clone();
    let checks = checks.as_array().unwrap();
    checks.iter().find(|check| check["name"] == "audit").unwrap().clone()
}
fn audit_entry(seq: u64) -> Value {
    json!({"seq": seq, "at": 1, "actor": "gateway", "action": "config.set", "decision": "allowed", "prevHash": "a", "hash": "b"})
}

#[test]
fn au3_the_doctor_checks_the_chain_of_the_audit_and_fails_where_it_is_broken() {
    let whole = |answer: &Value| {
        audit_check(5_000, |connection| {
            serve(connection, "audit.verify", &json!({}), answer);
        })
    };
    let found = whole(&json!({"ok": true, "done": true, "checked": 5000, "lastSeq": 20000, "exported": {}}));
    assert_eq!(
        (&found["level"], &found["found"]),
        (&json!("ok"), &json!("the log is intact: 5,000 entries"))
    );
    let broken = json!({"seq": 7, "at": 0, "problem": "Entry 7 was changed."});
    let found = whole(&json!({"ok": false, "done": true, "checked": 9, "lastSeq": 9, "broken": broken}));
    assert_eq!(found["level"], "fail");
    assert_eq!(
        found["found"],
        "the log is broken at entry 7 (1970-01-01 00:00:00 UTC): Entry 7 was changed."
    );
    assert!(
        found["next"].as_str().unwrap().contains("`gsv audit --verify`"),
        "{found}"
    );
    let failing = json!({"failingSince": 0, "problem": "The disk is full."});
    let found = whole(&json!({"ok": true, "done": true, "checked": 5000, "lastSeq": 9, "exported": failing}));
    assert_eq!(found["level"], "warn");
    assert!(
        found["found"].as_str().unwrap().contains("The disk is full."),
        "{found}"
    );
}

#[test]
fn au3_of_a_long_audit_the_doctor_checks_the_newest_entries_and_says_so() {
    let found = audit_check(5_001, |connection| {
        let before = json!({"limit": 1, "beforeSeq": 15_001});
        let entry = json!({"entries": [audit_entry(14_990)], "count": 5_001, "intact": true});
        serve(connection, "audit.list", &before, &entry);
        let page = json!({"ok": true, "done": false, "checked": 1000, "lastSeq": 15_990});
        serve(connection, "audit.verify", &json!({"afterSeq": 14_990}), &page);
        let page = json!({"ok": true, "done": true, "checked": 4000, "lastSeq": 20_000, "exported": {}});
        serve(connection, "audit.verify", &json!({"afterSeq": 15_990}), &page);
    });
    assert_eq!(
        (&found["level"], &found["found"]),
        (
            &json!("ok"),
            &json!("the newest 5,000 of 5,001 entries are intact; `gsv audit --verify` checks all")
        )
    );
}

#[test]
fn p10_the_doctor_says_how_a_rejected_token_is_repaired_and_checks_the_node() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\ntoken = \"gsv_client_a_b\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        gateway.url()
    ));
    let next_of = |given: Option<&str>| {
        let mut command = home.command();
        command.args(["doctor", "--json", "--offline"]);
        if let Some(token) = given {
            command.env("GSV_TOKEN", token);
        }
        let child = start(&mut command);
        gateway.refuse(401, "auth.required", "Token rejected.", 4001);
        let report = finish(child).failed(1).json();
        let checks = report["checks"].as_array().unwrap().clone();
        let next = |name: &str| {
            let check = checks
                .iter()
                .find(|check| check["name"] == name && check["level"] == "fail");
            check.expect(name)["next"].as_str().unwrap().to_owned()
        };
        assert!(next("node").contains("`gsv node --id lap`"), "{report}");
        next("token")
    };
    // Of another machine: a new invitation, and nothing is stopped there.
    let next = next_of(None);
    assert!(
        next.contains("`gsv invite client`, then run `gsv join CODE` here"),
        "{next}"
    );
    assert!(!next.contains("gsv down"), "{next}");
    // The stored token may be right.
    let next = next_of(Some("other"));
    assert!(next.starts_with("The token comes from GSV_TOKEN"), "{next}");
    // Of this machine's own gateway, of which no other login is known.
    home.write_state("port", &gateway.port.to_string());
    let next = next_of(None);
    assert!(next.contains("`gsv down && gsv up --new-token`"), "{next}");
    // For another gateway, as after `gsv join`, and asked with the address of the own one.
    let url = gateway.url();
    let config = fs::read_to_string(home.config_file()).unwrap();
    home.write_config(&config.replace(&url, "wss://gsv.example.com/ws"));
    let mut command = home.command();
    command.args(["--url", &url, "token", "list"]);
    let child = start(&mut command);
    gateway.refuse(401, "auth.required", "Token rejected.", 4001);
    let run = finish(child).failed(3);
    assert!(
        run.stderr.contains("for the gateway at wss://gsv.example.com/ws") && run.stderr.contains("--new-token"),
        "{run:?}"
    );
}
