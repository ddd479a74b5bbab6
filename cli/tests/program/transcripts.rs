//! Versions of files and transcripts of conversations, against a gateway that the test plays.

use std::fs;

use crate::common::fake_gateway::{Connection, FakeGateway, Request};
use crate::common::mode;
use crate::common::play::{played, played_in, serve};
use serde_json::{Value, json};

const NEWER: &str = "1708300002000-bb";
const OLDER: &str = "1708300001000-aa";
fn log() -> Value {
    json!({"path": "SOUL.md",
        "current": {"version": "1708300003000-cc", "at": 1_708_300_003_000_u64, "sizeBytes": 6, "by": "agent:agent:main:main"},
        "versions": [
            {"version": NEWER, "at": 1_708_300_002_000_u64, "sizeBytes": 8, "by": "client:laptop", "replacedAt": 1_708_300_003_000_u64},
            {"version": OLDER, "at": 1_708_300_001_000_u64, "sizeBytes": 4}]})
}
fn file(content: &str) -> Value {
    json!({"path": "SOUL.md", "content": content, "size": content.len(), "etag": "e"})
}

#[test]
fn s10_versions_are_listed_with_their_numbers() {
    let run = played(&["workspace", "log", "SOUL.md", "--agent", "writer"], |connection| {
        serve(
            connection,
            "workspace.log",
            &json!({"path": "SOUL.md", "agentId": "writer"}),
            &log(),
        );
    })
    .ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[1].starts_with("now") && lines[1].contains("agent:agent:main:main"),
        "{}",
        run.stdout
    );
    assert!(lines[2].starts_with('1') && lines[2].contains("client:laptop") && lines[2].contains(NEWER));
    assert!(lines[3].starts_with('2') && lines[3].contains(OLDER));
    let run = played(&["workspace", "log", "SOUL.md", "--json"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
    });
    assert_eq!(run.ok().json(), log());
    let mut deleted = log();
    deleted.as_object_mut().unwrap().remove("current");
    let run = played(&["workspace", "log", "SOUL.md"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &deleted);
    });
    assert!(
        run.ok()
            .stderr
            .contains("SOUL.md is deleted; `gsv workspace restore SOUL.md`")
    );
}

#[test]
fn p3_2_an_earlier_version_is_printed_and_nothing_is_restored() {
    let run = played(&["workspace", "cat", "SOUL.md", "--version", "2"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
        let params = json!({"path": "SOUL.md", "version": OLDER, "offset": 0});
        let file = json!({"path": "SOUL.md", "content": "old\n", "size": 4, "etag": "e1"});
        serve(connection, "workspace.read", &params, &file);
    });
    assert_eq!(run.ok().stdout, "old\n");
}

#[test]
fn f51_times_are_in_the_zone_of_the_person_and_a_writer_is_named_by_its_token() {
    let gateway = FakeGateway::new();
    let mut home = gateway.home();
    home.zone = "CET-1CEST,M3.5.0,M10.5.0/3";
    let mut log = log();
    log["versions"][0]["by"] = json!("client:cli-0000145a00009c1f token:first-8b1f");
    let run = played_in(&gateway, &home, &["workspace", "log", "SOUL.md"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log);
    })
    .ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[2].contains("2024-02-19 00:46:42 CET"), "{}", run.stdout);
    assert!(lines[2].contains("  first-8b1f gsv  "), "{}", run.stdout);
}

#[test]
fn s10_a_diff_is_of_the_last_version_and_now() {
    let serve_diff = |connection: &mut Connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
        serve(
            connection,
            "workspace.read",
            &json!({"path": "SOUL.md", "version": NEWER, "offset": 0}),
            &file("one\ntwo\n"),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "SOUL.md", "offset": 0}),
            &file("one\nthree\n"),
        );
    };
    let run = played(&["workspace", "diff", "SOUL.md"], serve_diff).ok();
    assert!(run.stdout.starts_with("--- SOUL.md (2024-02-"), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("+++ SOUL.md (now)\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n")
    );
    let document = played(&["workspace", "diff", "SOUL.md", "--json"], serve_diff)
        .ok()
        .json();
    assert_eq!(
        (document["from"].as_str(), document["to"].as_str()),
        (Some(NEWER), Some("now"))
    );
    let run = played(&["workspace", "diff", "SOUL.md", "2", "1"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
        serve(
            connection,
            "workspace.read",
            &json!({"path": "SOUL.md", "version": OLDER, "offset": 0}),
            &file("same"),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "SOUL.md", "version": NEWER, "offset": 0}),
            &file("same"),
        );
    })
    .ok();
    assert_eq!((run.stdout.as_str(), run.stderr.trim()), ("", "no difference"));
    let run = played(&["workspace", "diff", "SOUL.md", "9"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
    });
    assert!(run.failed(1).stderr.contains("2 earlier versions"));
}

#[test]
fn s10_a_restore_is_of_the_last_version_and_only_over_what_was_seen() {
    let params = json!({"path": "SOUL.md", "version": NEWER, "ifMatch": "1708300003000-cc"});
    let run = played(&["workspace", "restore", "SOUL.md"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
        serve(
            connection,
            "workspace.restore",
            &params,
            &json!({"path": "SOUL.md", "size": 8, "etag": "e"}),
        );
    })
    .ok();
    assert!(
        run.stderr.contains("SOUL.md restored to the version written 2024-02-")
            && run.stderr.contains("by client:laptop"),
        "{}",
        run.stderr
    );
    let run = played(&["workspace", "restore", "SOUL.md"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
        let request = connection.expect("workspace.restore");
        connection.error(&request, 530, "workspace.conflict", "`SOUL.md` was changed meanwhile.");
    });
    assert!(run.failed(1).stderr.contains("Nothing was restored"));
    let mut deleted = log();
    deleted.as_object_mut().unwrap().remove("current");
    let run = played(&["workspace", "restore", "SOUL.md", OLDER], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &deleted);
        let params = json!({"path": "SOUL.md", "version": OLDER, "ifMatch": "absent"});
        serve(
            connection,
            "workspace.restore",
            &params,
            &json!({"path": "SOUL.md", "size": 4, "etag": "e"}),
        );
    });
    assert!(run.ok().stderr.contains("the file was deleted before"));
    let run = played(&["workspace", "restore", "SOUL.md", "now"], |connection| {
        serve(connection, "workspace.log", &json!({"path": "SOUL.md"}), &log());
    });
    assert!(run.failed(2).stderr.contains("has this content already"));
}

#[test]
fn p19_a_long_file_comes_in_parts_and_one_that_changes_is_read_again() {
    let part = |content: &str, etag: &str, next: Option<u64>| {
        let mut answer = json!({"path": "a", "content": content, "size": 9, "etag": etag});
        if let Some(next) = next {
            answer["nextOffset"] = json!(next);
        }
        answer
    };
    let run = played(&["workspace", "cat", "a"], |connection| {
        serve(
            connection,
            "workspace.read",
            &json!({"path": "a", "offset": 0}),
            &part("old", "e1", Some(3)),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "a", "offset": 3}),
            &part("new", "e2", Some(6)),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "a", "offset": 0}),
            &part("abc", "e2", Some(3)),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "a", "offset": 3}),
            &part("def", "e2", Some(6)),
        );
        serve(
            connection,
            "workspace.read",
            &json!({"path": "a", "offset": 6}),
            &part("ghi", "e2", None),
        );
    });
    assert_eq!(run.ok().stdout, "abcdefghi");
}

fn archive(path: &str, kind: &str, id: &str, at: u64) -> Value {
    json!({"path": path, "kind": kind, "sessionId": id, "messageCount": 2, "archivedAt": at, "sizeBytes": 2048})
}
fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 1_708_300_000_000_u64})
}
fn page(messages: &[Value], offset: u64, next: Option<u64>, total: u64) -> Value {
    let mut answer = json!({"messages": messages, "offset": offset, "total": total});
    if let Some(next) = next {
        answer["nextOffset"] = json!(next);
    }
    answer
}
fn of_session(mut page: Value) -> Value {
    page["sessionKey"] = json!("main");
    page["sessionId"] = json!("c");
    page
}
fn of_archive(mut page: Value) -> Value {
    page["archive"] = archive("sessions/a.jsonl.gz", "reset", "a", 1);
    page
}
fn damaged(connection: &mut Connection, request: &Request, details: &Value) {
    let error = json!({"code": 580, "reason": "archive.damaged", "details": details,
        "message": "The transcript `sessions/a.jsonl.gz` is damaged: its end is missing. Its first 2 messages can be read."});
    connection.send(&json!({"type": "res", "id": request.id, "ok": false, "error": error}));
}

#[test]
fn p3_2_history_shows_transcripts_the_oldest_first() {
    let history = json!({"sessionKey": "main", "currentSessionId": "c", "previousSessionIds": ["gone", "a"]});
    let listed = json!({"count": 2, "archives": [
        archive("sessions/c-part5.jsonl.gz", "part", "c", 2_000_000_000_000), archive("sessions/a.jsonl.gz", "reset", "a", 1_000_000_000_000)]});
    let serve_all = |connection: &mut Connection| {
        serve(connection, "session.history", &json!({"sessionKey": "main"}), &history);
        serve(
            connection,
            "archives.list",
            &json!({"sessionKey": "main", "offset": 0, "limit": 200}),
            &listed,
        );
    };
    let run = played(&["session", "history", "main"], serve_all).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[1].starts_with("gone") && lines[1].contains("no transcript"),
        "{}",
        run.stdout
    );
    assert!(lines[2].starts_with("sessions/a.jsonl.gz") && lines[2].contains("conversation"));
    assert!(lines[3].starts_with("sessions/c-part5.jsonl.gz") && lines[3].contains("part") && lines[3].contains('2'));
    assert!(lines[4].starts_with('c') && lines[4].contains("now"));
    let document = played(&["session", "history", "main", "--json"], serve_all).ok().json();
    assert_eq!(document["archives"].as_array().map(Vec::len), Some(2));
    let old = played(&["session", "history", "main"], |connection| {
        serve(connection, "session.history", &json!({"sessionKey": "main"}), &history);
        let request = connection.expect("archives.list");
        connection.error(&request, 417, "protocol.unknown_method", "There is no such method.");
    });
    old.ok();
}

#[test]
fn p10_a_conversation_is_shown_page_by_page() {
    let tool = json!({"role": "assistant", "timestamp": 1, "content": [
        {"type": "toolCall", "name": "lap__Bash", "arguments": {"command": "ls"}}]});
    let result = json!({"role": "toolResult", "toolName": "lap__Bash", "isError": false,
        "content": [{"type": "text", "text": "a\nb\u{1b}[31m"}]});
    let run = played(&["session", "show", "main"], |connection| {
        let first = of_session(page(&[user("hello"), tool], 0, Some(2), 3));
        serve(
            connection,
            "session.messages",
            &json!({"sessionKey": "main", "notes": true}),
            &first,
        );
        let second = of_session(page(std::slice::from_ref(&result), 2, None, 3));
        serve(
            connection,
            "session.messages",
            &json!({"sessionKey": "main", "offset": 2, "notes": true}),
            &second,
        );
    })
    .ok();
    assert!(run.stdout.starts_with("You  2024-02-"), "{}", run.stdout);
    for part in ["\nhello\n", "● lap__Bash ls\n", "● lap__Bash ok: a b\n"] {
        assert!(run.stdout.contains(part), "{part:?} in {}", run.stdout);
    }
    let run = played(
        &["session", "show", "main", "--offset", "1", "--limit", "1", "--json"],
        |connection| {
            let answer = of_session(page(std::slice::from_ref(&result), 1, Some(2), 3));
            serve(
                connection,
                "session.messages",
                &json!({"sessionKey": "main", "offset": 1, "limit": 1, "notes": true}),
                &answer,
            );
        },
    );
    assert_eq!(run.ok().json(), json!({"messages": [result], "offset": 1, "total": 3}));
}

#[test]
fn p17_a_damaged_transcript_is_shown_as_far_as_it_can_be_read() {
    let run = played(&["session", "show", "sessions/a.jsonl.gz"], |connection| {
        let request = connection.expect("archives.read");
        assert_eq!(request.params, json!({"path": "sessions/a.jsonl.gz"}));
        damaged(connection, &request, &json!({"readable": 2, "resumeAt": 3, "total": 4}));
        let answer = of_archive(page(&[user("one"), user("two")], 0, Some(2), 4));
        serve(
            connection,
            "archives.read",
            &json!({"path": "sessions/a.jsonl.gz", "limit": 2}),
            &answer,
        );
        let answer = of_archive(page(&[user("four")], 3, None, 4));
        serve(
            connection,
            "archives.read",
            &json!({"path": "sessions/a.jsonl.gz", "offset": 3}),
            &answer,
        );
    })
    .failed(1);
    for text in ["one", "two", "four"] {
        assert!(run.stdout.contains(text), "{}", run.stdout);
    }
    assert!(run.stderr.contains("is damaged: its end is missing"), "{}", run.stderr);
}

#[test]
fn p17_damage_without_an_end_to_it_ends_the_reading() {
    let run = played(&["session", "show", "sessions/a.jsonl.gz", "--json"], |connection| {
        let request = connection.expect("archives.read");
        damaged(connection, &request, &json!({"readable": 0}));
    })
    .failed(1);
    let document = run.json();
    assert_eq!(document["messages"], json!([]));
    assert_eq!(document["damage"].as_array().map(Vec::len), Some(1));
}

/// A live conversation with one part before it, all of it asked for in order.
fn serve_export(connection: &mut Connection) {
    let session = json!({"sessionId": "c", "sessionKey": "agent:main:main", "createdAt": 1, "updatedAt": 1, "messageCount": 1,
        "tokens": {"input": 1, "output": 1, "total": 2}, "settings": {}, "previousSessionIds": ["a"]});
    let listed = json!({"count": 2, "archives": [
        archive("sessions/c-part5.jsonl.gz", "part", "c", 5), archive("sessions/a.jsonl.gz", "reset", "a", 1)]});
    let state = |connection: &mut Connection| {
        serve(
            connection,
            "session.get",
            &json!({"sessionKey": "agent:main:main"}),
            &session,
        );
        serve(
            connection,
            "archives.list",
            &json!({"sessionKey": "agent:main:main", "offset": 0, "limit": 200}),
            &listed,
        );
    };
    state(connection);
    let part = of_archive(page(&[user("early")], 0, None, 1));
    serve(
        connection,
        "archives.read",
        &json!({"path": "sessions/c-part5.jsonl.gz", "agentId": "main"}),
        &part,
    );
    let live = of_session(page(
        &[user("[Summary made by GSV, not by the user]\nearly"), user("late")],
        0,
        None,
        2,
    ));
    serve(
        connection,
        "session.messages",
        &json!({"sessionKey": "agent:main:main", "notes": true}),
        &live,
    );
    state(connection);
}

#[test]
fn p10_a_whole_conversation_is_exported_into_a_private_file_that_replaces_none() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let path = home.root().join("out.md");
    let name = path.to_str().unwrap();
    let run = played_in(
        &gateway,
        &home,
        &["session", "export", "agent:main:main", "-o", name],
        serve_export,
    )
    .ok();
    assert!(run.stderr.contains("3 messages written to"), "{}", run.stderr);
    let text = fs::read_to_string(&path).unwrap();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} in {text}"));
    assert!(at("## You") < at("early") && at("early") < at("## Summary") && at("## Summary") < at("late"));
    assert!(text.contains("> [Summary made by GSV"), "{text}");
    assert_eq!(mode(&path), 0o600);
    fs::write(&path, "mine").unwrap();
    let refused = home.gsv(["session", "export", "agent:main:main", "-o", name]);
    assert!(refused.failed(1).stderr.contains("already exists"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let args = [
        "session",
        "export",
        "agent:main:main",
        "-o",
        name,
        "--force",
        "--format",
        "jsonl",
    ];
    played_in(&gateway, &home, &args, serve_export).ok();
    let lines: Vec<Value> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((lines.len(), &lines[0], &lines[2]), (3, &user("early"), &user("late")));
}

#[test]
fn p10_an_export_without_a_file_goes_to_stdout() {
    let run = played(&["session", "export", "agent:main:main"], serve_export).ok();
    assert_eq!(run.stdout.lines().count(), 3);
}
