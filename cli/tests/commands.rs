//! The other commands against a gateway that the test plays: their requests, output and exit status.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use common::fake_gateway::{Connection, FakeGateway, TOKEN};
use common::{Home, Run, mode};
use serde_json::{Value, json};

/// Runs `gsv` while the test plays the gateway for one connection.
fn played(args: &[&str], play: impl FnOnce(&mut Connection)) -> Run {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    played_in(&gateway, &home, args, play)
}

fn played_in(gateway: &FakeGateway, home: &Home, args: &[&str], play: impl FnOnce(&mut Connection)) -> Run {
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv(args));
        let mut connection = gateway.accept();
        play(&mut connection);
        drop(connection);
        run.join().unwrap()
    })
}

/// One question, checked, and its answer.
fn asked(args: &[&str], method: &str, params: &Value, answer: &Value) -> Run {
    played(args, |connection| {
        let request = connection.expect(method);
        assert_eq!(&request.params, params, "{args:?}");
        connection.answer(&request, answer);
    })
}

fn refused(args: &[&str], method: &str, code: u32, reason: &str, message: &str) -> Run {
    played(args, |connection| {
        let request = connection.expect(method);
        connection.error(&request, code, reason, message);
    })
}

#[test]
fn config_values_are_json_first_and_strings_else() {
    for (typed, sent) in [
        ("5", json!(5)),
        ("true", json!(true)),
        ("{\"a\": [1]}", json!({"a": [1]})),
        ("demo", json!("demo")),
        ("\"5\"", json!("5")),
    ] {
        let run = asked(
            &["config", "set", "model.id", typed],
            "config.set",
            &json!({"path": "model.id", "value": sent}),
            &json!({"ok": true, "path": "model.id"}),
        );
        assert!(run.ok().stderr.contains("model.id is set"));
    }
}

#[test]
fn s5_a_secret_can_come_from_stdin() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv_with_stdin(["config", "set", "apiKeys.anthropic", "-"], "sk-secret\n"));
        let mut connection = gateway.accept();
        let request = connection.expect("config.set");
        assert_eq!(
            request.params,
            json!({"path": "apiKeys.anthropic", "value": "sk-secret"})
        );
        connection.answer(&request, &json!({"ok": true, "path": "apiKeys.anthropic"}));
        let run = run.join().unwrap().ok();
        assert!(!run.stdout.contains("sk-secret") && !run.stderr.contains("sk-secret"));
    });
}

#[test]
fn config_errors_show_the_gateway_s_message_and_exit_with_2() {
    let run = refused(
        &["config", "set", "modle.id", "x"],
        "config.set",
        510,
        "config.unknown_path",
        "modle is not a setting. Did you mean model?",
    );
    assert!(run.failed(2).stderr.contains("Did you mean model?"));
}

#[test]
fn config_get_shows_plain_values_plainly() {
    let answer = json!({"path": "model.id", "value": "demo"});
    assert_eq!(
        asked(
            &["config", "get", "model.id"],
            "config.get",
            &json!({"path": "model.id"}),
            &answer
        )
        .ok()
        .stdout,
        "demo\n"
    );
    assert_eq!(
        asked(
            &["--json", "config", "get", "model.id"],
            "config.get",
            &json!({"path": "model.id"}),
            &answer
        )
        .ok()
        .stdout,
        "\"demo\"\n"
    );
    let run = asked(
        &["config", "get"],
        "config.get",
        &json!({}),
        &json!({"config": {"model": {"id": "demo"}}}),
    )
    .ok();
    assert_eq!(run.json(), json!({"model": {"id": "demo"}}));
    asked(
        &["config", "unset", "model.id"],
        "config.unset",
        &json!({"path": "model.id"}),
        &json!({"ok": true, "path": "model.id", "wasSet": true}),
    )
    .ok();
}

#[test]
fn sessions_are_listed_and_described() {
    let answer = json!({"sessions": [{"sessionKey": "agent:main:main", "createdAt": 1, "lastActiveAt": 2, "label": "mine"}], "count": 3});
    let run = asked(
        &["session", "list", "--limit", "1"],
        "sessions.list",
        &json!({"limit": 1}),
        &answer,
    )
    .ok();
    assert!(run.stdout.starts_with("SESSION"), "{}", run.stdout);
    assert!(run.stdout.contains("agent:main:main") && run.stdout.contains("mine"));
    assert!(run.stderr.contains("2 more: --offset 1"), "{}", run.stderr);
    assert_eq!(
        asked(&["session", "list", "--json"], "sessions.list", &json!({}), &answer)
            .ok()
            .json(),
        answer
    );

    let session = json!({"sessionId": "s1", "sessionKey": "agent:main:main", "createdAt": 1, "updatedAt": 2, "messageCount": 4, "tokens": {"input": 1000, "output": 5, "total": 1005},
        "settings": {"model": {"provider": "demo", "id": "demo"}}, "previousSessionIds": [], "state": "idle"});
    let run = asked(
        &["session", "get", "main"],
        "session.get",
        &json!({"sessionKey": "main"}),
        &session,
    )
    .ok();
    assert!(
        run.stdout.contains("1,000 in, 5 out") && run.stdout.contains("demo/demo"),
        "{}",
        run.stdout
    );
}

#[test]
fn session_commands_default_to_the_configured_session() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\ntoken = \"{TOKEN}\"\nsession = \"agent:main:work\"\n",
        gateway.url()
    ));
    let run = played_in(&gateway, &home, &["session", "reset"], |connection| {
        let request = connection.expect("session.reset");
        assert_eq!(request.params, json!({"sessionKey": "agent:main:work"}));
        connection.answer(&request, &json!({"ok": true, "sessionKey": "agent:main:work", "oldSessionId": "a", "newSessionId": "b", "archivedMessages": 3, "archivedTo": "x.gz", "tokensCleared": {"input": 1, "output": 1, "total": 2}}));
    });
    assert!(run.ok().stderr.contains("3 messages archived to x.gz"));
}

#[test]
fn session_settings_are_patched() {
    let params = json!({"sessionKey": "main", "settings": {"model": {"provider": "a", "id": "b/c"}, "thinkingLevel": "high"}, "label": "x", "resetPolicy": {"mode": "idle", "idleMinutes": 5}});
    let args = [
        "session",
        "set",
        "main",
        "--model",
        "a/b/c",
        "--think",
        "high",
        "--label",
        "x",
        "--reset",
        "idle",
        "--idle-minutes",
        "5",
    ];
    asked(&args, "session.patch", &params, &json!({"ok": true})).ok();
    Home::new().gsv(["session", "set", "main"]).failed(2);
    Home::new()
        .gsv(["session", "set", "main", "--model", "nonsense"])
        .failed(2);
}

#[test]
fn previews_show_messages_and_other_session_commands_ask_the_right_thing() {
    let messages = json!([{"role": "user", "content": "hi", "timestamp": 1}, {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "timestamp": 2}]);
    let run = asked(
        &["session", "preview", "main", "--limit", "2"],
        "session.preview",
        &json!({"sessionKey": "main", "limit": 2}),
        &json!({"sessionKey": "main", "sessionId": "s", "messageCount": 2, "messages": messages}),
    )
    .ok();
    assert!(
        run.stdout.contains("user") && run.stdout.contains("hello\n"),
        "{}",
        run.stdout
    );
    asked(
        &["session", "compact", "main", "--keep", "4"],
        "session.compact",
        &json!({"sessionKey": "main", "keepMessages": 4}),
        &json!({"ok": true, "trimmedMessages": 1, "keptMessages": 4}),
    )
    .ok();
    let stats = json!({"sessionKey": "main", "sessionId": "s", "messageCount": 2, "tokens": {"input": 1, "output": 1, "total": 2}, "createdAt": 1, "updatedAt": 2, "uptime": 1, "isProcessing": true, "queueSize": 2});
    assert!(
        asked(
            &["session", "stats", "main"],
            "session.stats",
            &json!({"sessionKey": "main"}),
            &stats
        )
        .ok()
        .stdout
        .contains("busy")
    );
    let run = refused(
        &["session", "get", "nope"],
        "session.get",
        440,
        "session.not_found",
        "There is no such session.",
    );
    run.failed(1);
}

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
fn workspace_files_are_listed_read_written_and_removed() {
    let run = asked(
        &["workspace", "ls", "--agent", "work"],
        "workspace.list",
        &json!({"agentId": "work"}),
        &json!({"path": "", "files": ["SOUL.md"], "directories": ["memory/"]}),
    )
    .ok();
    assert_eq!(run.stdout, "memory/\nSOUL.md\n");
    // Into a pipe a file is printed byte for byte.
    let file = json!({"path": "a", "content": "raw\u{1b}[31m no line end", "size": 5, "etag": "e1"});
    assert_eq!(
        asked(
            &["workspace", "cat", "a"],
            "workspace.read",
            &json!({"path": "a", "offset": 0}),
            &file
        )
        .ok()
        .stdout,
        "raw\u{1b}[31m no line end"
    );
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let source = home.root().join("source.txt");
    fs::write(&source, "new").unwrap();
    let args = ["workspace", "put", "a", source.to_str().unwrap(), "--if-match", "e1"];
    let run = played_in(&gateway, &home, &args, |connection| {
        let request = connection.expect("workspace.write");
        assert_eq!(request.params, json!({"path": "a", "content": "new", "ifMatch": "e1"}));
        connection.error(&request, 530, "workspace.conflict", "The file was changed meanwhile.");
    });
    run.failed(1);
    let gone = asked(
        &["workspace", "rm", "a"],
        "workspace.delete",
        &json!({"path": "a"}),
        &json!({"path": "a", "deleted": true}),
    )
    .ok();
    assert!(gone.stderr.contains("`gsv workspace restore a` undoes this"));
}

/// `gsv workspace edit` with an editor that runs a line of shell on the file.
fn edited(script: &str, play: impl FnOnce(&FakeGateway)) -> (Run, Home) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let temp = home.root().join("tmp");
    fs::create_dir(&temp).unwrap();
    let editor = home.root().join("editor");
    fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = home.command();
            command
                .args(["workspace", "edit", "notes/SOUL.md"])
                .env("EDITOR", &editor)
                .env("TMPDIR", &temp);
            common::finish(
                command
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .unwrap(),
            )
        });
        play(&gateway);
        run.join().unwrap()
    });
    (run, home)
}

fn served_for_edit(gateway: &FakeGateway, content: &str) {
    let mut connection = gateway.accept();
    let request = connection.expect("workspace.read");
    connection.answer(
        &request,
        &json!({"path": "notes/SOUL.md", "content": content, "size": 1, "etag": "e1"}),
    );
}

#[test]
fn an_edited_file_is_written_only_over_the_version_that_was_read() {
    let (run, home) = edited("case \"$1\" in */SOUL.md) echo more >>\"$1\";; esac", |gateway| {
        served_for_edit(gateway, "old\n");
        let mut connection = gateway.accept();
        let request = connection.expect("workspace.write");
        assert_eq!(
            request.params,
            json!({"path": "notes/SOUL.md", "content": "old\nmore\n", "ifMatch": "e1"})
        );
        connection.answer(&request, &json!({"path": "notes/SOUL.md", "size": 9, "written": true}));
    });
    run.ok();
    assert_eq!(
        fs::read_dir(home.root().join("tmp")).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn an_edit_that_conflicts_is_kept() {
    let (run, _home) = edited("echo mine >\"$1\"", |gateway| {
        served_for_edit(gateway, "old\n");
        let mut connection = gateway.accept();
        let request = connection.expect("workspace.write");
        connection.error(&request, 530, "workspace.conflict", "The file was changed meanwhile.");
    });
    let run = run.failed(1);
    let place = run
        .stderr
        .split("Your text is in ")
        .nth(1)
        .unwrap()
        .trim()
        .trim_end_matches('.');
    assert_eq!(fs::read_to_string(place).unwrap(), "mine\n");
}

#[test]
fn an_edit_without_a_change_or_with_a_failed_editor_writes_nothing() {
    let (run, _home) = edited("true", |gateway| served_for_edit(gateway, "old\n"));
    assert!(run.ok().stderr.contains("nothing changed"));
    let (run, _home) = edited("echo x >\"$1\"; exit 1", |gateway| served_for_edit(gateway, "old\n"));
    run.failed(1);
}

#[test]
fn p5_4_search_shows_hits_their_places_and_how_to_open_them() {
    let hits = json!([
        {"source": "workspace", "path": "MEMORY.md", "position": 3, "at": 1, "snippet": "the \u{e000}boat\u{e001} is blue", "score": 2.0},
        {"source": "archives", "path": "sessions/a.jsonl.gz", "position": 0, "role": "toolResult", "snippet": "a \u{e000}boat\u{e001}", "score": 1.0},
        {"source": "sessions", "sessionKey": "agent:main:main", "role": "user", "snippet": "my \u{e000}boat\u{e001}", "score": 1.0},
    ]);
    let answer = json!({"hits": hits, "more": true, "notes": ["1,200 messages are not indexed yet; search again."]});
    let run = asked(
        &["search", "boat -blue", "red*", "--in", "workspace,archives", "--in", "sessions", "-s", "main", "--agent", "main", "--limit", "3"],
        "search.query",
        &json!({"query": "boat -blue red*", "agentId": "main", "sources": ["workspace", "archives", "sessions"], "sessionKey": "main", "limit": 3}),
        &answer,
    )
    .ok();
    assert!(
        run.stdout.contains("MEMORY.md:3") && run.stdout.contains("the boat is blue"),
        "{run:?}"
    );
    assert!(
        run.stdout.contains("tool result") && run.stdout.contains("agent:main:main"),
        "{run:?}"
    );
    for words in [
        "1,200 messages",
        "--offset 3",
        "gsv workspace cat MEMORY.md",
        "gsv session show sessions/a.jsonl.gz",
    ] {
        assert!(run.stderr.contains(words), "{words}: {run:?}");
    }
    let run = asked(
        &["search", "boat", "--json"],
        "search.query",
        &json!({"query": "boat"}),
        &answer,
    )
    .ok();
    assert_eq!(run.json(), answer);
    let run = asked(
        &["search", "nothing"],
        "search.query",
        &json!({"query": "nothing"}),
        &json!({"hits": [], "more": false, "notes": []}),
    )
    .ok();
    assert!(
        run.stdout.is_empty() && run.stderr.contains("Nothing was found."),
        "{run:?}"
    );
    let run = refused(
        &["search", "!!"],
        "search.query",
        585,
        "search.bad_query",
        "There is nothing to search for.",
    );
    assert!(run.failed(2).stderr.contains("nothing to search for"));
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

#[test]
fn a_command_without_a_token_says_how_to_get_one() {
    let run = Home::new().gsv(["session", "list"]).failed(3);
    assert!(run.stderr.contains("gsv up"), "{}", run.stderr);
}

#[test]
fn flags_and_environment_win_over_the_config() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config("url = \"ws://127.0.0.1:1/ws\"\ntoken = \"from-config\"\n");
    let hello = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = home.command();
            command
                .args(["tools", "list", "-u", &gateway.url()])
                .env("GSV_TOKEN", "from-env");
            common::finish(
                command
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .unwrap(),
            )
        });
        let mut connection = gateway.accept();
        let request = connection.expect("tools.list");
        connection.answer(&request, &json!({"tools": []}));
        run.join().unwrap().ok();
        connection.hello
    });
    assert_eq!(hello["auth"]["token"], "from-env");
}

#[test]
fn s20_the_local_config_is_private_and_secrets_are_masked() {
    let home = Home::new();
    home.gsv_with_stdin(["local-config", "set", "token", "-"], &format!("{TOKEN}\n"))
        .ok();
    assert_eq!((mode(&home.config_file()), mode(&home.config_dir())), (0o600, 0o700));
    let run = home.gsv(["local-config", "get"]).ok();
    assert_eq!(run.stdout, "token  gsv_admin_abcdefghij_…0000\n");
    assert_eq!(
        home.gsv(["local-config", "path"]).ok().stdout.trim_end(),
        home.config_file().to_str().unwrap()
    );
    fs::set_permissions(home.config_file(), fs::Permissions::from_mode(0o644)).unwrap();
    for args in [&["local-config", "get"][..], &["session", "list"], &["chat", "hi"]] {
        assert!(home.gsv(args).failed(1).stderr.contains("chmod 600"), "{args:?}");
    }
    fs::set_permissions(home.config_file(), fs::Permissions::from_mode(0o600)).unwrap();
    let run = home.gsv(["local-config", "set", "tokn", "x"]).failed(2);
    assert!(run.stderr.contains("Did you mean `token`?"), "{}", run.stderr);
    home.gsv(["local-config", "unset", "token"]).ok();
    home.gsv(["local-config", "get", "token"]).failed(1);
}

#[test]
fn a_node_creates_its_token_and_stores_only_that() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\n", gateway.url()));
    let mut child = home
        .command()
        .args(["node", "--id", "laptop", "--workspace", home.root().to_str().unwrap()])
        .env("GSV_TOKEN", TOKEN)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut connection = gateway.accept();
    assert_eq!(connection.hello["auth"]["token"], TOKEN);
    let request = connection.expect("tokens.create");
    assert_eq!(
        (&request.params["kind"], &request.params["nodeId"]),
        (&json!("node"), &json!("laptop"))
    );
    let entry = json!({"tokenId": "n1", "kind": "node", "nodeId": "laptop", "last4": "beef", "createdAt": 1});
    connection.answer(&request, &json!({"token": "gsv_node_n1_beef", "entry": entry}));
    let node = gateway.accept();
    assert_eq!(
        (&node.hello["client"]["mode"], &node.hello["client"]["id"]),
        (&json!("node"), &json!("laptop"))
    );
    assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
    assert!(node.hello["ledger"].is_object());
    let config = fs::read_to_string(home.config_file()).unwrap();
    assert!(
        config.contains("token = \"gsv_node_n1_beef\"")
            && config.contains("id = \"laptop\"")
            && !config.contains(TOKEN),
        "{config}"
    );
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    drop(node);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(mode(&home.state().join("node/laptop")), 0o700);

    // The second time it needs no admin token.
    let mut child = home
        .command()
        .args(["node"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let node = gateway.accept();
    assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    drop(node);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_node_without_any_token_says_how_to_get_one() {
    let home = Home::new();
    let run = home.gsv(["node", "--id", "laptop"]).failed(3);
    assert!(
        run.stderr.contains("gsv token create --scope node --node laptop"),
        "{}",
        run.stderr
    );
    home.gsv(["node"]).failed(2);
    home.gsv(["node", "--id", "-x"]).failed(2);
    let run = home
        .gsv(["node", "--id", "x", "--workspace", "/nowhere/at/all"])
        .failed(1);
    assert!(run.stderr.contains("--workspace"), "{}", run.stderr);
}
