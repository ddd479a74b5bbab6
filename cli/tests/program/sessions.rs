//! `gsv session` against a gateway that the test plays.

use crate::common::Home;
use crate::common::fake_gateway::{FakeGateway, TOKEN};
use crate::common::play::{asked, played, played_in, refused, serve};
use serde_json::json;

#[test]
fn r3_who_stops_a_run_is_told_what_is_taken_up_next() {
    let stop = |waiting: Option<u32>| {
        let mut result = json!({"ok": true, "wasRunning": true, "runId": "r", "pendingToolsCancelled": 1});
        if let Some(count) = waiting {
            result["waiting"] = json!(count);
        }
        let params = json!({"sessionKey": "agent:main:work"});
        played(&["stop", "agent:main:work"], |connection| {
            serve(connection, "chat.abort", &params, &result);
        })
        .ok()
        .stderr
    };
    assert!(stop(Some(2)).contains("Stopped, with 1 tool call cancelled. 2 queued messages are read next."));
    assert!(stop(Some(1)).contains("1 queued message is read next."));
    assert!(!stop(None).contains("queued"));
}

#[test]
fn ap16_a_conversation_that_waits_for_its_owner_is_listed_with_the_code() {
    let entry = json!({
        "code": "K7Q2A", "sessionKey": "agent:main:main", "agentId": "main", "runId": "r", "callId": "c", "tool": "limit", "limit": true,
        "text": "Continue?", "textBytes": 9, "why": "w", "rule": "limits.stepsPerRun", "hash": "h", "createdAt": 0, "expiresAt": 1
    });
    let session = |key: &str| json!({"sessionKey": key, "createdAt": 1, "lastActiveAt": 2});
    let sessions = json!({"sessions": [session("agent:main:main"), session("agent:main:other")], "count": 2});
    let list = |args: &[&str]| {
        played(args, |connection| {
            serve(connection, "sessions.list", &json!({}), &sessions);
            serve(connection, "approval.list", &json!({}), &json!({"approvals": [entry]}));
        })
        .ok()
    };
    let shown = list(&["session", "list"]).stdout;
    assert!(shown.contains("waits for your answer (K7Q2A)"), "{shown}");
    assert_eq!(shown.matches("waits").count(), 1, "{shown}");
    let document = list(&["session", "list", "--json"]).json();
    assert_eq!(
        (
            &document["sessions"][0]["questions"],
            &document["sessions"][1]["questions"]
        ),
        (&json!(["K7Q2A"]), &json!(null))
    );
    let stats = json!({"sessionKey": "agent:main:main", "sessionId": "s", "messageCount": 1, "tokens": {"input": 1, "output": 1, "total": 2},
        "createdAt": 1, "updatedAt": 2, "uptime": 1, "isProcessing": true, "queueSize": 0, "state": "acting", "questions": ["K7Q2A"]});
    let run = asked(
        &["session", "stats", "main"],
        "session.stats",
        &json!({"sessionKey": "main"}),
        &stats,
    )
    .ok();
    assert!(run.stdout.contains("waits for your answer (K7Q2A)"), "{}", run.stdout);
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

    let none = json!({"sessions": [], "count": 0});
    let run = asked(
        &["session", "list", "--agent", "work"],
        "sessions.list",
        &json!({"agentId": "work"}),
        &none,
    )
    .ok();
    assert!(run.stderr.contains("`gsv chat --agent work hello`"), "{}", run.stderr);

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
    let warned = json!({"ok": true, "warnings": ["No key is set for X."]});
    let run = asked(&args, "session.patch", &params, &warned).ok();
    assert!(run.stderr.contains("warning: No key is set for X."), "{}", run.stderr);
    let words = "main from now on: model a/b/c, thinking high, label x, reset idle, idle reset after 5 minutes";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    let cleared = asked(
        &["session", "set", "main", "--clear", "mode"],
        "session.patch",
        &json!({"sessionKey": "main", "clear": ["mode"]}),
        &json!({"ok": true}),
    );
    let cleared = cleared.ok().stderr;
    assert!(cleared.contains("main from now on: mode as configured"), "{cleared}");
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
        &json!({"sessionKey": "main", "limit": 2, "notes": true}),
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
        "There is no such conversation.",
    );
    run.failed(1);
}

#[test]
fn p12_a_preview_shows_the_model_s_thoughts_on_demand() {
    let content = json!([{"type": "thinking", "thinking": "They greet."}, {"type": "text", "text": "Hello."}]);
    let messages = json!([{"role": "assistant", "content": content, "timestamp": 1}]);
    let shown = |args: &[&str]| {
        let answer = json!({"sessionKey": "main", "sessionId": "s", "messageCount": 1, "messages": messages});
        asked(
            args,
            "session.preview",
            &json!({"sessionKey": "main", "notes": true}),
            &answer,
        )
        .ok()
        .stdout
    };
    let plain = shown(&["session", "preview", "main"]);
    assert!(plain.contains("Hello.") && !plain.contains("They greet."), "{plain}");
    let whole = shown(&["session", "preview", "main", "--thinking"]);
    assert!(whole.contains("Thinking: They greet.\nHello."), "{whole}");
}

#[test]
fn sd1_a_session_is_deleted_only_after_a_yes() {
    let key = "agent:main:cli:dm:x";
    let shown = json!({"sessionId": "5d3f", "sessionKey": key, "createdAt": 1, "updatedAt": 1, "messageCount": 3,
        "tokens": {"input": 3, "output": 3, "total": 3}, "settings": {}, "previousSessionIds": []});
    let delete = ["session", "delete", key];
    let refused = asked(&delete, "session.get", &json!({"sessionKey": key}), &shown).failed(2);
    assert!(
        refused.stderr.contains("Not a terminal: re-run with --yes"),
        "{refused:?}"
    );
    // One that does not exist needs no yes.
    let unknown = self::refused(&delete, "session.get", 430, "session.not_found", "").failed(1);
    assert!(!unknown.stderr.contains("--yes"), "{unknown:?}");
    let run = asked(
        &["session", "delete", key, "--yes"],
        "session.delete",
        &json!({"sessionKey": key}),
        &json!({"ok": true, "sessionKey": key, "done": true, "archives": 1, "files": 2}),
    )
    .ok();
    assert!(
        run.stderr.contains("is deleted, with 1 transcript and 2 files"),
        "{run:?}"
    );
    let run = asked(
        &["session", "delete", key, "--yes"],
        "session.delete",
        &json!({"sessionKey": key}),
        &json!({"ok": true, "sessionKey": key, "done": true, "archives": 0, "files": 0}),
    )
    .ok();
    assert!(run.stderr.contains("is deleted, with its messages"), "{run:?}");
    let run = asked(
        &["session", "delete", key, "--yes", "--stop"],
        "session.delete",
        &json!({"sessionKey": key, "stop": true}),
        &json!({"ok": true, "sessionKey": key, "done": false}),
    )
    .ok();
    assert!(run.stderr.contains("in the background"), "{run:?}");
}

#[test]
fn sd4_a_session_with_a_run_is_refused_with_the_next_step() {
    let run = refused(
        &["session", "delete", "x", "--yes"],
        "session.delete",
        431,
        "session.running",
        "",
    )
    .failed(1);
    assert!(run.stderr.contains("--stop"), "{run:?}");
}

#[test]
fn a_conversation_is_named_as_a_word_or_with_the_option() {
    for args in [
        &["session", "preview", "uu"][..],
        &["session", "preview", "-s", "uu"],
        &["session", "preview", "--session", "uu"],
    ] {
        let params = json!({"sessionKey": "uu", "notes": true});
        let shown =
            json!({"sessionKey": "agent:main:uu", "sessionId": "s", "messages": [], "count": 0, "messageCount": 0});
        asked(args, "session.preview", &params, &shown).ok();
    }
    for args in [&["stop", "uu"][..], &["stop", "-s", "uu"]] {
        let params = json!({"sessionKey": "uu"});
        let done = json!({"ok": true, "wasRunning": false, "pendingToolsCancelled": 0});
        asked(args, "chat.abort", &params, &done).ok();
    }
    let home = FakeGateway::new().home();
    for both in [
        &["stop", "uu", "-s", "vv"][..],
        &["stop", "--all", "-s", "vv"],
        &["session", "get", "uu", "--session", "vv"],
        &["session", "show", "uu", "-s", "vv"],
        &["session", "delete", "--yes"],
    ] {
        home.gsv(both).failed(2);
    }
}

#[test]
fn a_stop_of_everything_counts_the_commands_and_copies_of_clients() {
    for (calls, words) in [
        (1, "Ended 1 command or copy that clients had started."),
        (4, "Ended 4 commands or copies that clients had started."),
    ] {
        let done =
            json!({"ok": true, "runs": [], "pending": 0, "state": {"since": 1, "by": "cli"}, "clientCalls": calls});
        let run = asked(&["stop", "--all"], "gateway.stop", &json!({}), &done).ok();
        assert!(run.stderr.contains(words), "{run:?}");
    }
}

#[test]
fn ta15_to_drop_a_memory_that_does_not_wait_is_an_error() {
    let args = ["memory", "review", "--drop", "K7Q2ABCD"];
    let params = json!({"id": "K7Q2ABCD"});
    let gone = asked(&args, "memory.drop", &params, &json!({"ok": true, "dropped": false})).failed(1);
    let words = gone.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("No memory K7Q2ABCD waits for you: it was kept or removed before, or never existed."),
        "{words}"
    );
    let done = asked(&args, "memory.drop", &params, &json!({"ok": true, "dropped": true})).ok();
    assert!(done.stderr.contains("K7Q2ABCD is removed"), "{}", done.stderr);
}

#[test]
fn gr1_without_a_terminal_the_rule_is_shown_before_the_refusal() {
    let entry = json!({"code": "K7Q2A", "sessionKey": "agent:main:main", "agentId": "main", "runId": "R", "callId": "c", "tool": "lap__Bash",
        "text": "ls", "textBytes": 2, "why": "w", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1,
        "choices": [{"answer": "allow_always", "text": "the rule `ls` on lap"}]});
    let run = asked(
        &["approval", "allow", "K7Q2A", "--always"],
        "approval.list",
        &json!({}),
        &json!({"approvals": [entry]}),
    )
    .failed(2);
    let (rule, refusal) = (
        run.stderr.find("This saves the rule `ls` on lap."),
        run.stderr.find("re-run with --yes"),
    );
    assert!(rule.is_some() && rule < refusal, "{}", run.stderr);
}
