//! `gsv workspace` and `gsv search` against a gateway that the test plays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use crate::common::fake_gateway::FakeGateway;
use crate::common::play::{asked, played_in, refused};
use crate::common::{Home, Run, finish, start};
use serde_json::json;

#[test]
fn an_empty_stdin_empties_no_file_by_mistake() {
    let run = Home::new()
        .gsv_with_stdin(["workspace", "put", "SOUL.md"], "")
        .failed(2);
    assert!(
        run.stderr.contains("SOUL.md was not changed") && run.stderr.contains("--allow-empty"),
        "{run:?}"
    );
    asked(
        &["workspace", "put", "SOUL.md", "--allow-empty"],
        "workspace.write",
        &json!({"path": "SOUL.md", "content": ""}),
        &json!({"path": "SOUL.md", "size": 0, "etag": "e", "written": true}),
    )
    .ok();
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
    let large = asked(
        &["workspace", "rm", "--permanently", "a"],
        "workspace.delete",
        &json!({"path": "a", "permanently": true}),
        &json!({"path": "a", "deleted": true, "kept": false}),
    )
    .ok();
    assert!(
        large.stderr.contains("too large to keep an earlier version") && !large.stderr.contains("restore"),
        "{}",
        large.stderr
    );
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
            finish(start(&mut command))
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
fn p10_an_edit_without_a_terminal_names_the_command_that_needs_none() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = home.command();
            command
                .args(["workspace", "edit", "my notes.md", "--agent", "work"])
                .env_remove("EDITOR")
                .env_remove("VISUAL");
            finish(start(&mut command))
        });
        served_for_edit(&gateway, "old\n");
        let run = run.join().unwrap().failed(2);
        assert!(
            run.stderr
                .contains("From a file: `gsv workspace put --agent work 'my notes.md' FILE`."),
            "{run:?}"
        );
    });
}

#[test]
fn p5_4_search_shows_hits_their_places_and_how_to_open_them() {
    let hits = json!([
        {"source": "workspace", "path": "MEMORY.md", "position": 3, "at": 1, "snippet": "the \u{e000}boat\u{e001} is blue", "before": ["line one", "line two"], "after": ["line four"], "score": 2.0},
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
        run.stdout.contains("MEMORY.md:3")
            && run
                .stdout
                .contains("    line one\n    line two\n    the boat is blue\n    line four\n"),
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
fn a_file_of_the_workspace_is_saved_and_replaces_another_only_by_force() {
    let home = Home::new();
    let folder = home.root().join("here");
    fs::create_dir(&folder).unwrap();
    let get = |more: &[&str]| {
        let answer = json!({"path": "memory/day.md", "content": "héllo", "size": 6, "etag": "e"});
        let to = folder.to_str().unwrap();
        let args = [&["workspace", "get", "memory/day.md", to, "--agent", "work"], more].concat();
        asked(
            &args,
            "workspace.read",
            &json!({"path": "memory/day.md", "agentId": "work", "offset": 0}),
            &answer,
        )
    };
    let run = get(&[]).ok();
    assert!(
        run.stdout.is_empty() && run.stderr.contains("memory/day.md saved as"),
        "{run:?}"
    );
    let file = folder.join("day.md");
    assert_eq!(fs::read_to_string(&file).unwrap(), "héllo");
    fs::write(&file, "mine").unwrap();
    let refused = home
        .gsv(["workspace", "get", "memory/day.md", file.to_str().unwrap()])
        .failed(1);
    assert!(refused.stderr.contains("already exists") && refused.stderr.contains("--force"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(get(&["--force", "--json"]).ok().json()["size"], 6);
    assert_eq!(fs::read_to_string(&file).unwrap(), "héllo");
    home.gsv(["workspace", "get", ".."]).failed(2);
}

#[test]
fn put_with_swapped_arguments_says_the_order() {
    let home = FakeGateway::new().home();
    let local = home.root().join("local.txt");
    fs::write(&local, "text").unwrap();
    let run = home
        .gsv(["workspace", "put", local.to_str().unwrap(), "SOUL.md"])
        .failed(2);
    assert!(run.stderr.contains("The file of the workspace comes first."), "{run:?}");
    assert!(run.stderr.contains("gsv workspace put SOUL.md"), "{run:?}");
}

#[test]
fn p10_an_incomplete_list_says_how_a_file_is_read_that_is_missing_in_it() {
    let run = asked(
        &["workspace", "ls", "many"],
        "workspace.list",
        &json!({"path": "many"}),
        &json!({"path": "many", "files": ["many/a"], "directories": [], "truncated": true}),
    )
    .ok();
    assert!(run.stderr.contains("`gsv workspace cat PATH`"), "{run:?}");
}
