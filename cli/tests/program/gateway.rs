//! Tools, tokens, models and the audit log against a gateway that the test plays.

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, TOKEN};
use crate::common::play::{asked, played, played_in, refused, serve};
use serde_json::json;

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
    let run = asked(
        &["token", "revoke", "gsv_node_abc_9999"],
        "tokens.revoke",
        &json!({"tokenId": "abc"}),
        &json!({"ok": true, "tokenId": "abc", "closed": 1}),
    )
    .ok();
    assert!(run.stderr.contains("; 1 connection closed"), "{run:?}");
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
fn a_port_is_a_number() {
    for command in [&["up", "--port"][..], &["setup", "--port"]] {
        for port in ["abc", "0", "65536"] {
            let run = Home::new().gsv([command, &[port]].concat()).failed(2);
            assert!(run.stderr.contains("a port is a number from 1 to 65535"), "{run:?}");
        }
    }
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
fn au1_people_read_the_labels_of_tokens_in_the_audit_and_programs_the_ids() {
    let actor = "client:cli-0000145a00009c1f token:first-8b1f";
    let entry = json!({"seq": 2, "at": 1, "actor": actor, "action": "config.set", "decision": "allowed", "prevHash": "a", "hash": "b"});
    let result = json!({"entries": [entry], "count": 1, "intact": true});
    let token =
        json!({"tokenId": "first-8b1f", "kind": "client", "last4": "beef", "label": "first token", "createdAt": 1});
    let run = played(&["audit"], |connection| {
        serve(connection, "audit.list", &json!({}), &result);
        serve(
            connection,
            "tokens.list",
            &json!({}),
            &json!({"tokens": [token], "count": 1}),
        );
    })
    .ok();
    assert!(
        run.stdout.contains("  first-8b1f gsv \"first token\"  ") && !run.stdout.contains("cli-"),
        "{run:?}"
    );
    // A token that may not list tokens leaves the id.
    let run = played(&["audit"], |connection| {
        serve(connection, "audit.list", &json!({}), &result);
        let request = connection.expect("tokens.list");
        connection.error(&request, 403, "auth.forbidden", "no");
    })
    .ok();
    assert!(run.stdout.contains("  first-8b1f gsv  "), "{run:?}");
    let run = asked(&["audit", "--json"], "audit.list", &json!({}), &result).ok();
    assert_eq!(run.json()["entries"][0]["actor"], actor);
}

#[test]
fn ap11_a_question_in_the_audit_is_not_shown_as_an_allowed_call() {
    let entry = |action: &str| json!({"seq": 2, "at": 1, "actor": "session:s", "action": action, "decision": "allowed", "prevHash": "a", "hash": "b"});
    let listed = |action: &str| {
        let result = json!({"entries": [entry(action)], "count": 1, "intact": true});
        asked(&["audit"], "audit.list", &json!({}), &result).ok().stdout
    };
    let question = listed("approval.ask");
    assert!(
        question.contains("asked") && !question.contains("allowed"),
        "{question}"
    );
    assert!(listed("approval.end").contains("allowed"));
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
    assert!(run.stdout.contains("1,005 entries, the last one is 1005"), "{run:?}");
    assert!(
        run.stdout.contains(
            "The end of its newest daily copy, 2026-11-21-000000000001.jsonl.gz (entry 900), is in the log. The copies are in `audit/` of the gateway's bucket"
        ) && run.stderr.contains("full"),
        "{run:?}"
    );
    let run = played(&["audit", "--verify"], |connection| {
        let request = first(connection);
        connection.answer(&request, &json!({"ok": false, "done": true, "checked": 5, "lastSeq": 1005, "broken": {"seq": 1003, "at": 1, "problem": "Entry 1003 was changed."}}));
    })
    .failed(1);
    assert!(
        run.stderr
            .contains("did not say which daily copies there are: look in `audit/`"),
        "{run:?}"
    );
    assert!(
        run.stderr.contains("broken at entry 1003") && run.stderr.contains("Entry 1003 was changed."),
        "{run:?}"
    );
}

#[test]
fn au5_without_a_daily_copy_the_check_says_so_and_when_the_first_one_comes() {
    let verified = |exported: &serde_json::Value, ok: bool| {
        let mut answer = json!({"ok": ok, "done": true, "checked": 5, "lastSeq": 5, "exported": exported});
        if !ok {
            answer["broken"] = json!({"seq": 3, "problem": "Entry 3 was changed."});
        }
        asked(&["audit", "--verify"], "audit.verify", &json!({}), &answer)
    };
    let run = verified(&json!({}), true).ok();
    assert!(
        run.stdout
            .contains("There is no daily copy yet to compare it with: the first one is written after 20")
            && run.stdout.contains("00:00:00 UTC, when the day (UTC) is over"),
        "{run:?}"
    );
    let run = verified(&json!({"failingSince": 1, "problem": "full"}), true).ok();
    assert!(
        !run.stdout.contains("the first one is written") && run.stderr.contains("full"),
        "{run:?}"
    );
    let run = verified(&json!({}), false).failed(1);
    assert!(
        run.stderr.contains("There is no daily copy to compare it with"),
        "{run:?}"
    );
    let run = verified(&json!({"key": "audit/2026-11-21-000000000001.jsonl.gz"}), false).failed(1);
    assert!(
        run.stderr.contains("Compare the log with its daily copies in `audit/`"),
        "{run:?}"
    );
}

#[test]
fn f6_providers_and_their_models_are_listed_with_prices() {
    let providers = json!({"providers": [
        {"provider": "openai", "name": "OpenAI", "models": 41, "ready": true},
        {"provider": "amazon-bedrock", "name": "Amazon Bedrock", "models": 165, "ready": false},
    ]});
    let run = asked(&["provider", "list"], "models.list", &json!({}), &providers).ok();
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
        &["model", "list", "openai"],
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
        &["model", "list", "ollama"],
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
