//! `gsv agent`, `gsv prompt` and `gsv chat --agent` against a gateway that the test plays.

use std::fs;

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{played, serve};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};
use tempfile::TempDir;

fn entry(id: &str) -> Value {
    json!({"agentId": id, "isDefault": id == "main", "commissioned": true, "sessions": 2})
}

#[test]
fn agents_are_listed_and_shown() {
    let run = played(&["agent", "list"], |connection| {
        let mut work = entry("work");
        work["model"] = json!({"provider": "openai", "id": "x"});
        work["commissioned"] = json!(false);
        let agents = json!({"agents": [entry("main"), work]});
        let request = connection.expect("agents.list");
        connection.answer(&request, &agents);
    })
    .ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[1].starts_with("main") && lines[1].contains("default"),
        "{lines:?}"
    );
    assert!(
        lines[2].contains("openai/x") && lines[2].contains("not met yet"),
        "{lines:?}"
    );
    let run = played(&["agent", "show", "work"], |connection| {
        let files = json!([{"path": "SOUL.md", "sizeBytes": 10, "updatedAt": 1}]);
        let bindings = json!([{"agentId": "work", "match": {"channel": "discord", "peer": {"kind": "dm"}}}]);
        let shown = json!({"agent": entry("work"), "systemPrompt": "Be brief.", "files": files, "bindings": bindings});
        serve(connection, "agents.get", &json!({"agentId": "work"}), &shown);
    })
    .ok();
    for part in ["Be brief.", "SOUL.md", "discord dm"] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
}

#[test]
fn an_agent_is_made_with_what_was_said() {
    let dir = TempDir::new().unwrap();
    let prompt = dir.path().join("p.md");
    fs::write(&prompt, "Be brief.").unwrap();
    let prompt = format!("@{}", prompt.display());
    let args = [
        "agent",
        "new",
        "work",
        "--model",
        "openai/x",
        "--prompt",
        &prompt,
        "--description",
        "d",
        "--default",
    ];
    let run = played(&args, |connection| {
        // The address of another provider is said to be unused.
        let own = json!({"value": {"provider": "mine", "id": "m", "baseUrl": "http://127.0.0.1:1/v1"}});
        serve(connection, "config.get", &json!({"path": "model"}), &own);
        serve(connection, "config.get", &json!({"path": "providers"}), &json!({}));
        let params = json!({"agentId": "work", "model": {"provider": "openai", "id": "x"}, "systemPrompt": "Be brief.",
            "description": "d", "default": true});
        let created = json!({"agent": entry("work"), "warnings": ["No key is set for OpenAI."]});
        serve(connection, "agents.create", &params, &created);
    })
    .ok();
    assert!(run.stderr.contains("gsv chat --agent work"), "{}", run.stderr);
    assert!(
        run.stderr.contains("warning: No key is set for OpenAI."),
        "{}",
        run.stderr
    );
    let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let warning = "warning: `model.baseUrl` is the server of mine and is not used for openai.";
    assert!(words.contains(warning), "{words}");
    // A wrong id is refused before connecting.
    let home = FakeGateway::new().home();
    let run = home.gsv(["agent", "new", "My Bot"]).failed(2);
    assert!(run.stderr.contains("`my-bot`"), "{}", run.stderr);
    home.gsv(["chat", "--agent", "a:b", "hi"]).failed(2);
    home.gsv(["chat", "--agent", "a", "--session", "main", "hi"]).failed(2);
}

#[test]
fn chat_with_an_agent_is_the_command_lines_conversation_with_it() {
    let run = played(&["chat", "--agent", "work", "hello"], |connection| {
        let request = connection.expect("chat.send");
        assert_eq!(request.params["sessionKey"], "agent:work:cli:dm:main");
        connection.error(&request, 570, "agent.unknown", "There is no agent work.");
    });
    assert!(run.stderr.contains("There is no agent work."), "{}", run.stderr);
}

fn prompt() -> Value {
    let section = |id: &str, layer: u8, text: &str| json!({"id": id, "title": id.to_uppercase(), "layer": layer, "text": text, "sizeBytes": text.len(), "tokens": 300});
    json!({"sessionKey": "agent:main:main", "agentId": "main", "model": {"provider": "demo", "id": "demo"},
        "sections": [section("base", 1, "one\ntwo\nthree\nfour\nfive\nsix"), section("memory", 6, "the facts")],
        "tools": [{"name": "gsv__ReadFile", "tokens": 50}], "systemTokens": 600, "toolTokens": 50, "messageCount": 4,
        "messageTokens": 350, "totalTokens": 1000, "contextWindow": 10000, "sha256": "00"})
}

#[test]
fn the_prompt_is_shown_by_section_with_what_it_takes() {
    let show = |args: &[&str]| {
        played(&[&["prompt", "show", "-s", "main"], args].concat(), |connection| {
            serve(connection, "session.prompt", &json!({"sessionKey": "main"}), &prompt());
        })
    };
    let run = show(&[]).ok();
    for part in [
        "1 core",
        "6 memory",
        "3.0 %",
        "10.0 %",
        "90.0 %",
        "2 more lines",
        "the facts",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("six"));
    assert!(show(&["--full"]).ok().stdout.contains("six"));
    let layers = show(&["--layers"]).ok().stdout;
    let rows: Vec<String> = layers
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for row in [
        "1 core 300 3.0 %",
        "base 300 3.0 %",
        "2 characteristics 0 0.0 %",
        "3 shared 50 0.5 %",
        "1 tools 50 0.5 %",
        "4 delegated 0 0.0 %",
        "5 conversation 350 3.5 %",
        "4 messages 350 3.5 %",
        "6 memory 300 3.0 %",
        "all 1,000 10.0 %",
    ] {
        assert!(rows.iter().any(|line| line == row), "{row}: {layers}");
    }
    assert!(!layers.contains("the facts"), "{layers}");
    assert_eq!(show(&["--section", "memory"]).ok().stdout, "the facts\n");
    assert!(show(&["--section", "memroy"]).failed(2).stderr.contains("`memory`"));
    let json: Value = serde_json::from_str(&show(&["--json"]).ok().stdout).unwrap();
    assert_eq!(json["totalTokens"], 1000);
}

fn workspace() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("SOUL.md"), "soul").unwrap();
    fs::write(dir.path().join("USER.md"), "user").unwrap();
    fs::create_dir_all(dir.path().join("skills/mail")).unwrap();
    fs::write(dir.path().join("skills/mail/SKILL.md"), "skill").unwrap();
    fs::create_dir_all(dir.path().join("sessions")).unwrap();
    fs::write(dir.path().join("sessions/a.jsonl.gz"), "x").unwrap();
    dir
}

fn import<'a>(dir: &'a TempDir, more: &[&'a str]) -> Vec<&'a str> {
    [&["agent", "import", dir.path().to_str().unwrap(), "--id", "work"], more].concat()
}

fn unknown(connection: &mut Connection) {
    let request = connection.expect("agents.get");
    connection.error(&request, 570, "agent.unknown", "There is no agent work.");
}

/// An agent that has SOUL.md, the given text, and its first meeting before it.
fn known(connection: &mut Connection, soul: &str) {
    let shown = json!({"agent": entry("work"), "files": [], "bindings": []});
    serve(connection, "agents.get", &json!({"agentId": "work"}), &shown);
    let listed = json!({"path": "", "files": ["BOOTSTRAP.md", "SOUL.md"], "directories": []});
    serve(connection, "workspace.list", &json!({"agentId": "work"}), &listed);
    let request = connection.expect("workspace.list");
    assert_eq!(request.params["path"], "skills/mail");
    connection.error(&request, 501, "path.not_found", "There is no folder.");
    for (path, text) in [("BOOTSTRAP.md", "boot"), ("SOUL.md", soul)] {
        let request = connection.expect("workspace.read");
        assert_eq!(request.params["path"], path);
        connection.answer(
            &request,
            &json!({"path": path, "content": text, "size": text.len(), "etag": "e1"}),
        );
    }
}

#[test]
fn an_import_shows_what_it_would_do_and_does_nothing() {
    let dir = workspace();
    let run = played(&import(&dir, &["--dry-run"]), unknown).ok();
    for part in ["SOUL.md", "skills/mail/", "new"] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    assert!(
        run.stderr.contains("nothing was changed") && run.stderr.contains("1 archived conversation"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_agent_that_is_not_there_is_made_without_a_first_meeting() {
    let dir = workspace();
    let run = played(&import(&dir, &["--json"]), |connection| {
        unknown(connection);
        let params = json!({"agentId": "work", "bootstrap": false});
        serve(connection, "agents.create", &params, &json!({"agent": entry("work")}));
        for (path, content) in [
            ("SOUL.md", "soul"),
            ("USER.md", "user"),
            ("skills/mail/SKILL.md", "skill"),
        ] {
            let params = json!({"agentId": "work", "path": path, "content": content});
            serve(
                connection,
                "workspace.write",
                &params,
                &json!({"path": path, "size": 4, "written": true}),
            );
        }
    })
    .ok();
    let done: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&done["created"], &done["archivesLeft"]), (&json!(true), &json!(1)));
    assert_eq!(done["files"].as_array().unwrap().len(), 3);
}

#[test]
fn only_what_is_missing_is_sent_and_a_first_meeting_goes() {
    let dir = workspace();
    let run = played(&import(&dir, &[]), |connection| {
        known(connection, "soul");
        for path in ["USER.md", "skills/mail/SKILL.md"] {
            let request = connection.expect("workspace.write");
            assert_eq!(
                (&request.params["path"], &request.params["ifMatch"]),
                (&json!(path), &json!("absent"))
            );
            connection.answer(&request, &json!({"path": path, "size": 4, "written": true}));
        }
        let params = json!({"agentId": "work", "path": "BOOTSTRAP.md"});
        serve(
            connection,
            "workspace.delete",
            &params,
            &json!({"path": "BOOTSTRAP.md", "deleted": true}),
        );
    })
    .ok();
    assert!(run.stderr.contains("2 new, 1 unchanged, 1 removed"), "{}", run.stderr);
}

#[test]
fn an_import_without_changes_says_so() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("SOUL.md"), "soul").unwrap();
    let run = played(&import(&dir, &[]), |connection| {
        let shown = json!({"agent": entry("work"), "files": [], "bindings": []});
        serve(connection, "agents.get", &json!({"agentId": "work"}), &shown);
        let listed = json!({"path": "", "files": ["SOUL.md"], "directories": []});
        serve(connection, "workspace.list", &json!({"agentId": "work"}), &listed);
        let request = connection.expect("workspace.read");
        connection.answer(
            &request,
            &json!({"path": "SOUL.md", "content": "soul", "size": 4, "etag": "e1"}),
        );
    })
    .ok();
    assert!(run.stderr.contains("Nothing to import: 1 unchanged"), "{}", run.stderr);
}

#[test]
fn what_differs_is_replaced_only_when_that_is_said() {
    let dir = workspace();
    let run = played(&import(&dir, &[]), |connection| known(connection, "another soul")).failed(2);
    assert!(
        run.stderr.contains("SOUL.md") && run.stderr.contains("--force"),
        "{}",
        run.stderr
    );
    let run = played(&import(&dir, &["--force"]), |connection| {
        known(connection, "another soul");
        let request = connection.expect("workspace.write");
        assert_eq!(
            (&request.params["path"], &request.params["ifMatch"]),
            (&json!("SOUL.md"), &json!("e1"))
        );
        connection.error(&request, 504, "workspace.conflict", "It has changed meanwhile.");
        for path in ["USER.md", "skills/mail/SKILL.md"] {
            let request = connection.expect("workspace.write");
            connection.answer(&request, &json!({"path": path, "size": 4, "written": true}));
        }
        let request = connection.expect("workspace.delete");
        connection.answer(&request, &json!({"path": "BOOTSTRAP.md", "deleted": true}));
    })
    .failed(1);
    assert!(run.stdout.contains("It has changed meanwhile."), "{}", run.stdout);
}

#[test]
fn a_folder_without_an_agent_is_refused_before_connecting() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    let home = FakeGateway::new().home();
    let run = home.gsv(import(&dir, &[])).failed(2);
    assert!(run.stderr.contains("no files of an agent"), "{}", run.stderr);
}

#[test]
fn at_a_terminal_what_differs_is_asked_about() {
    let dir = workspace();
    let gateway = FakeGateway::new();
    let home = gateway.home();
    // Yes replaces, no brings the others only, anything else stops.
    for (key, written, code) in [
        ("y\r", &["SOUL.md", "USER.md", "skills/mail/SKILL.md"][..], 0),
        ("n\r", &["USER.md", "skills/mail/SKILL.md"][..], 0),
        ("\r", &[][..], 1),
    ] {
        let mut terminal = Terminal::gsv(&home, &import(&dir, &[]));
        let mut connection = gateway.accept();
        known(&mut connection, "another soul");
        terminal.shows("Replace them? [y = yes, n = import the others only, anything else stops]");
        terminal.types(key);
        for path in written {
            let request = connection.expect("workspace.write");
            assert_eq!(&request.params["path"], path, "{key:?}");
            connection.answer(&request, &json!({"path": path, "size": 4, "written": true}));
        }
        if code == 0 {
            let request = connection.expect("workspace.delete");
            connection.answer(&request, &json!({"path": "BOOTSTRAP.md", "deleted": true}));
            terminal.shows("talk to it");
        } else {
            terminal.shows("Nothing was changed.");
        }
        terminal.ends_with(code);
    }
}

#[test]
fn sd6_an_agent_is_deleted_only_after_a_yes() {
    let shown = json!({"agent": {"agentId": "work", "isDefault": false, "commissioned": true, "sessions": 3}, "files": [], "bindings": []});
    let refused = played(&["agent", "delete", "work"], |connection| {
        serve(connection, "agents.get", &json!({"agentId": "work"}), &shown);
    })
    .failed(2);
    assert!(
        refused.stderr.contains("Not a terminal: re-run with --yes"),
        "{refused:?}"
    );
    for (more, params, sessions, says) in [
        (None, json!({"agentId": "work"}), 0, "Its files stay in the workspace"),
        (
            Some("--sessions"),
            json!({"agentId": "work", "sessions": true}),
            2,
            "Its 2 conversations are being deleted.",
        ),
    ] {
        let args: Vec<&str> = ["agent", "delete", "work", "--yes"].into_iter().chain(more).collect();
        let run = played(&args, |connection| {
            serve(
                connection,
                "agents.delete",
                &params,
                &json!({"ok": true, "agentId": "work", "sessions": sessions}),
            );
        })
        .ok();
        assert!(run.stderr.contains(says), "{run:?}");
    }
}
