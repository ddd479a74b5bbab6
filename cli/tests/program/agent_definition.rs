//! `gsv agent validate|define|edit|show|undefine` against a gateway that the test plays.

use std::fs;
use std::path::PathBuf;
use std::thread;

use crate::common::editor::{editor, seen};
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, asked, fed, played, serve};
use crate::common::terminal::{Terminal, pair};
use crate::common::{Home, Run, finish, start};
use serde_json::{Value, json};
use tempfile::TempDir;

const TEXT: &str =
    "metadata: { id: triage, name: triage }\ncore_context: { system_prompt: { file: ./triage.prompt.md } }\n";

fn definition() -> Value {
    json!({"metadata": {"id": "triage", "name": "triage"}, "core_context": {"system_prompt": "You sort."},
        "tools": {"allowed": ["gsv__ReadFile"]}, "autonomy": {"max_iterations": 3}})
}

fn problems() -> Value {
    json!([{"path": "tool", "line": 2, "problem": "There is no such key."}, {"path": "", "problem": "It is odd."}])
}

fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("agent.yaml"), TEXT).unwrap();
    fs::write(dir.path().join("triage.prompt.md"), "You sort.").unwrap();
    fs::write(dir.path().join("other.md"), "never sent").unwrap();
    dir
}

fn sent() -> Value {
    json!([{"path": "triage.prompt.md", "content": "You sort."}])
}

fn shown(text: Option<&str>, changed: &[&str]) -> Value {
    let mut shown = json!({"agent": {"agentId": "triage", "isDefault": false, "commissioned": true, "sessions": 0},
        "files": [], "bindings": []});
    if let Some(text) = text {
        shown["definition"] = definition();
        shown["definitionText"] = json!(text);
        shown["changedFiles"] = json!(changed);
    }
    shown
}

#[test]
fn ad12_the_files_that_the_gateway_names_are_sent_and_no_other() {
    let dir = folder();
    for path in [dir.path().to_owned(), dir.path().join("agent.yaml")] {
        let run = played(&["agent", "validate", path.to_str().unwrap()], |connection| {
            let alone = json!({"problems": [{"path": "core_context.system_prompt", "line": 2, "problem": "There is no file."}],
                "files": ["triage.prompt.md"]});
            serve(connection, "agents.validate", &json!({"text": TEXT}), &alone);
            let right = json!({"problems": [], "files": ["triage.prompt.md"], "definition": definition()});
            serve(connection, "agents.validate", &json!({"text": TEXT, "files": sent()}), &right);
        })
        .ok();
        for line in ["agent.yaml is right.", "triage", "gsv__ReadFile", "3 model calls a run"] {
            assert!(run.stdout.contains(line), "{line}: {run:?}");
        }
    }
}

#[test]
fn ad1_every_problem_is_a_line_with_its_place() {
    let dir = folder();
    let path = dir.path().join("agent.yaml");
    let path = path.to_str().unwrap();
    let answer = json!({"problems": problems(), "files": []});
    for command in ["validate", "define"] {
        let run = asked(
            &["agent", command, path],
            "agents.validate",
            &json!({"text": TEXT}),
            &answer,
        )
        .failed(1);
        assert_eq!(
            run.stdout,
            format!("{path}:2: tool: There is no such key.\n{path}: It is odd.\n")
        );
        assert!(
            run.stderr.contains("agent.yaml has 2 mistakes, so it was not applied."),
            "{run:?}"
        );
        let run = asked(
            &["agent", command, path, "--json"],
            "agents.validate",
            &json!({"text": TEXT}),
            &answer,
        )
        .failed(1);
        assert_eq!(run.json()["problems"], problems());
    }
}

#[test]
fn ad12_a_file_that_leads_out_of_the_folder_is_refused_before_it_is_sent() {
    let dir = folder();
    fs::remove_file(dir.path().join("triage.prompt.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("triage.prompt.md")).unwrap();
    let answer = json!({"problems": [], "files": ["triage.prompt.md"]});
    let args = ["agent", "define", dir.path().to_str().unwrap()];
    let run = asked(&args, "agents.validate", &json!({"text": TEXT}), &answer).failed(2);
    assert!(
        run.stderr.contains("`triage.prompt.md`") && run.stderr.contains("symbolic link"),
        "{run:?}"
    );
    // Nothing to send: no connection is made.
    let home = FakeGateway::new().home();
    assert!(
        home.gsv(["agent", "validate", "/nowhere/at/all"])
            .failed(1)
            .stderr
            .contains("agent.yaml")
    );
}

#[test]
fn ad4_a_definition_is_put_in_force_and_the_words_say_what_became_of_it() {
    let dir = folder();
    for (created, words) in [
        (
            true,
            "The agent triage was created. Talk to it: `gsv chat --agent triage`.",
        ),
        (false, "The definition of triage applies from its next run on."),
    ] {
        let run = played(&["agent", "define", dir.path().to_str().unwrap()], |connection| {
            let alone = json!({"problems": [], "files": ["triage.prompt.md"]});
            serve(connection, "agents.validate", &json!({"text": TEXT}), &alone);
            let right = json!({"problems": [], "files": ["triage.prompt.md"], "definition": definition()});
            serve(
                connection,
                "agents.validate",
                &json!({"text": TEXT, "files": sent()}),
                &right,
            );
            let defined = json!({"definition": definition(), "created": created});
            serve(
                connection,
                "agents.define",
                &json!({"text": TEXT, "files": sent()}),
                &defined,
            );
        })
        .ok();
        assert!(run.stderr.contains(words), "{run:?}");
    }
    // Without the file here, the agent's own one is meant, and that is said.
    fs::remove_file(dir.path().join("triage.prompt.md")).unwrap();
    let run = played(&["agent", "define", dir.path().to_str().unwrap()], |connection| {
        let right = json!({"problems": [], "files": ["triage.prompt.md"], "definition": definition()});
        serve(connection, "agents.validate", &json!({"text": TEXT}), &right);
        let defined = json!({"definition": definition(), "created": false});
        serve(connection, "agents.define", &json!({"text": TEXT}), &defined);
    })
    .ok();
    assert!(run.stderr.contains("triage.prompt.md is not in this folder"), "{run:?}");
}

#[test]
fn ad4_show_has_the_definition_its_changed_files_and_its_text() {
    let get = json!({"agentId": "triage"});
    let changed = shown(Some(TEXT), &["agent.yaml"]);
    let run = asked(&["agent", "show", "triage"], "agents.get", &get, &changed).ok();
    for part in [
        "You sort.",
        "gsv__ReadFile",
        "3 model calls a run",
        "agent.yaml: without effect",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let run = asked(&["agent", "show", "triage"], "agents.get", &get, &shown(None, &[])).ok();
    assert!(run.stdout.contains("No definition: every tool"), "{run:?}");
    let mut laid = shown(None, &[]);
    laid["notInForce"] = json!({"path": "agent.yaml", "sizeBytes": 40, "updatedAt": 1_000});
    let run = asked(&["agent", "show", "triage"], "agents.get", &get, &laid).ok();
    for part in [
        "There is no current definition",
        "agent.yaml is in the agent's folder",
        "`gsv workspace cat agent.yaml --agent triage | gsv agent edit triage`",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let run = asked(&["agent", "show", "triage", "--yaml"], "agents.get", &get, &changed).ok();
    assert_eq!(run.stdout, TEXT);
    let none = asked(
        &["agent", "show", "triage", "--yaml"],
        "agents.get",
        &get,
        &shown(None, &[]),
    )
    .failed(1);
    assert!(none.stderr.contains("gsv agent edit triage"), "{none:?}");
}

#[test]
fn ad11_a_definition_is_taken_out_of_force_only_after_a_yes() {
    let refused = FakeGateway::new().home().gsv(["agent", "undefine", "triage"]).failed(2);
    assert!(refused.stderr.contains("re-run with --yes"), "{refused:?}");
    for (removed, words) in [(true, "is removed"), (false, "had no definition")] {
        let answer = json!({"ok": true, "removed": removed});
        let args = ["agent", "undefine", "triage", "--yes"];
        let run = asked(&args, "agents.undefine", &json!({"agentId": "triage"}), &answer).ok();
        assert!(run.stderr.contains(words), "{run:?}");
        assert!(!run.stderr.contains("sub_agents"), "{run:?}");
    }
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["agent", "undefine", "triage"]);
    terminal.shows("Remove the definition of triage?");
    terminal.types("n\r");
    terminal.shows("Nothing was changed.");
    terminal.ends_with(1);
}

#[test]
fn dg2_who_still_hands_tasks_to_an_agent_that_takes_none_is_named() {
    let removed = json!({"ok": true, "removed": true, "stillNamedBy": ["sorter"]});
    let args = ["agent", "undefine", "triage", "--yes"];
    let run = asked(&args, "agents.undefine", &json!({"agentId": "triage"}), &removed).ok();
    let one = "sorter still has it in `sub_agents`: a task for it is refused until you change that with `gsv agent edit sorter`.";
    assert!(run.stderr.contains(one), "{run:?}");
    let deleted = json!({"ok": true, "agentId": "triage", "sessions": 0, "stillNamedBy": ["sorter", "desk"]});
    let args = ["agent", "remove", "triage", "--yes"];
    let run = asked(&args, "agents.delete", &json!({"agentId": "triage"}), &deleted).ok();
    assert!(
        run.stderr.contains("sorter, desk still have it in `sub_agents`"),
        "{run:?}"
    );
}

#[test]
fn ad12_a_piped_definition_is_checked_and_put_in_force() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let edit = ["agent", "edit", "triage"];
    let right: Play<'_> = Box::new(|connection| {
        let right = json!({"problems": [], "definition": definition()});
        serve(connection, "agents.validate", &json!({"text": TEXT}), &right);
        let defined = json!({"definition": definition(), "created": true, "stillNamedBy": ["sorter"]});
        serve(connection, "agents.define", &json!({"text": TEXT}), &defined);
    });
    let run = fed(&home, &gateway, &edit, TEXT, vec![right]).ok();
    assert!(run.stderr.contains("The agent triage was created."), "{run:?}");
    assert!(
        run.stderr
            .contains("sorter still has it by its earlier name in `sub_agents`"),
        "{run:?}"
    );
    let wrong: Play<'_> = Box::new(|connection| {
        serve(
            connection,
            "agents.validate",
            &json!({"text": TEXT}),
            &json!({"problems": problems()}),
        );
    });
    let run = fed(&home, &gateway, &edit, TEXT, vec![wrong]).failed(1);
    assert_eq!(
        run.stdout,
        "agent.yaml:2: tool: There is no such key.\nagent.yaml: It is odd.\n"
    );
    let other: Play<'_> = Box::new(|connection| {
        let right = json!({"problems": [], "definition": definition()});
        serve(connection, "agents.validate", &json!({"text": TEXT}), &right);
    });
    let run = fed(&home, &gateway, &["agent", "edit", "work"], TEXT, vec![other]).failed(1);
    assert!(
        run.stdout.contains("metadata.id: This is the definition of work"),
        "{run:?}"
    );
    let none = home.gsv(edit).failed(2);
    assert!(none.stderr.contains("gsv agent define PATH"), "{none:?}");
}

/// Runs `gsv agent edit triage` at a terminal, with an editor that runs these lines of shell on the file, one at each opening.
fn edited(before: Option<&str>, scripts: &[&str], plays: Vec<Play<'_>>) -> (Run, Home) {
    let (_keyboard, terminal) = pair();
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let editor = editor(&home, scripts);
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = home.command();
            command
                .args(["agent", "edit", "triage"])
                .env_remove("VISUAL")
                .env("EDITOR", &editor)
                .stdin(terminal);
            finish(start(&mut command))
        });
        let mut connection = gateway.accept();
        let request = connection.expect("agents.get");
        match before {
            Some(text) => connection.answer(&request, &shown(Some(text), &[])),
            None => connection.error(&request, 570, "agent.unknown", "There is no agent triage."),
        }
        drop(connection);
        for play in plays {
            play(&mut gateway.accept());
        }
        run.join().unwrap()
    });
    (run, home)
}

/// The gateway's answer to the text with a key that does not exist.
fn refuses_wrong<'play>() -> Play<'play> {
    Box::new(|connection| {
        let text = format!("{TEXT}tool: 1\n");
        serve(
            connection,
            "agents.validate",
            &json!({"text": text}),
            &json!({"problems": problems()}),
        );
    })
}

fn drafts(home: &Home) -> Vec<PathBuf> {
    let files = fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect()
}

/// The text is checked, then what is in force is looked at; the play may go on.
fn looked_at(connection: &mut Connection, text: &str, in_force: Option<&str>) {
    let right = json!({"problems": [], "definition": definition()});
    serve(connection, "agents.validate", &json!({"text": text}), &right);
    serve(
        connection,
        "agents.get",
        &json!({"agentId": "triage"}),
        &shown(in_force, &[]),
    );
}

#[test]
fn ad12_the_editor_shows_what_is_in_force_and_an_unchanged_text_does_nothing() {
    let (run, home) = edited(Some(TEXT), &["true"], vec![]);
    assert!(run.ok().stderr.contains("Nothing was changed."));
    let opened = seen(&home, 1);
    assert!(
        opened.starts_with("# gsv: The current definition of triage.\n"),
        "{opened}"
    );
    assert!(opened.ends_with(TEXT), "{opened}");
    assert_eq!(drafts(&home), Vec::<PathBuf>::new());
    // Without a definition: a beginning, of which nothing comes into force by looking at it.
    let (run, home) = edited(None, &["true"], vec![]);
    assert!(run.ok().stderr.contains("Nothing was changed."));
    let opened = seen(&home, 1);
    assert!(
        opened.contains("there is no agent triage yet") && opened.contains("\n  id: triage\n"),
        "{opened}"
    );
}

#[test]
fn ad12_mistakes_reopen_the_editor_with_their_lines_and_closing_it_gives_up() {
    let (run, home) = edited(Some(TEXT), &["echo 'tool: 1' >>\"$1\"", "true"], vec![refuses_wrong()]);
    let run = run.failed(1);
    let kept = drafts(&home);
    assert_eq!(kept.len(), 1);
    assert!(
        run.stderr.contains("2 mistakes") && run.stderr.contains(kept[0].to_str().unwrap()),
        "{run:?}"
    );
    let opened = seen(&home, 2);
    // Line 2 of the text is line 6 of the file, because four lines of GSV come before it.
    assert!(
        opened.contains("\n# gsv: line 6: tool: There is no such key.\n"),
        "{opened}"
    );
    assert!(opened.ends_with(&format!("{TEXT}tool: 1\n")), "{opened}");
}

#[test]
fn ad12_what_was_repaired_is_put_in_force_without_the_lines_of_gsv() {
    let right: Play<'_> = Box::new(|connection| {
        let text = format!("{TEXT}tools: 1\n");
        looked_at(connection, &text, Some(TEXT));
        let defined = json!({"definition": definition(), "created": false});
        serve(connection, "agents.define", &json!({"text": text}), &defined);
    });
    let scripts = ["echo 'tool: 1' >>\"$1\"", "sed -i 's/^tool:/tools:/' \"$1\""];
    let (run, home) = edited(Some(TEXT), &scripts, vec![refuses_wrong(), right]);
    assert!(
        run.ok()
            .stderr
            .contains("The definition of triage applies from its next run on.")
    );
    assert_eq!(drafts(&home), Vec::<PathBuf>::new());
}

#[test]
fn ad12_a_definition_that_was_changed_meanwhile_is_not_replaced() {
    let play: Play<'_> = Box::new(|connection| {
        looked_at(connection, &format!("{TEXT}# mine\n"), Some("metadata: another\n"));
    });
    let (run, home) = edited(Some(TEXT), &["echo '# mine' >>\"$1\""], vec![play]);
    let run = run.failed(1);
    assert!(run.stderr.contains("was changed since it was read"), "{run:?}");
    assert_eq!(drafts(&home).len(), 1);
}
