//! `gsv config edit` with an editor that is a script, against a gateway that the test plays.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use crate::common::editor::{editor, seen};
use crate::common::fake_gateway::FakeGateway;
use crate::common::terminal::pair;
use crate::common::{Home, Run, finish, mode, start};
use serde_json::{Value, json};

/// Runs `gsv config edit` at a terminal. Its editor is a script that runs one of these lines of shell on the file each time it is opened.
/// `play` answers the requests after `config.get`.
fn edited(scripts: &[&str], play: impl FnOnce(&FakeGateway)) -> (Run, Home) {
    let (_keyboard, terminal) = pair();
    edited_at(terminal.into(), scripts, play)
}

/// Without scripts there is no editor.
fn edited_at(stdin: Stdio, scripts: &[&str], play: impl FnOnce(&FakeGateway)) -> (Run, Home) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let editor = (!scripts.is_empty()).then(|| editor(&home, scripts));
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = home.command();
            command.args(["config", "edit"]).stdin(stdin);
            command.env_remove("VISUAL").env_remove("EDITOR");
            command.envs(editor.map(|editor| ("EDITOR", editor)));
            finish(start(&mut command))
        });
        let mut connection = gateway.accept();
        let request = connection.expect("config.get");
        connection.answer(&request, &json!({"config": config("anthropic"), "version": 7}));
        play(&gateway);
        run.join().unwrap()
    });
    (run, home)
}

fn config(provider: &str) -> Value {
    json!({"apiKeys": {"anthropic": "[redacted]"}, "model": {"provider": provider}})
}

fn answer(gateway: &FakeGateway, wanted: &Value, answer: Result<Value, (u32, &str, &str)>) {
    let mut connection = gateway.accept();
    let request = connection.expect("config.replace");
    assert_eq!(request.params, json!({"config": wanted, "version": 7}));
    match answer {
        Ok(result) => connection.answer(&request, &result),
        Err((code, reason, message)) => connection.error(&request, code, reason, message),
    }
}

fn drafts(home: &Home) -> Vec<PathBuf> {
    let files = fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("config-edit"))
        .collect()
}

const TO_OPENAI: &str = "sed -i 's/\"provider\": \"anthropic\"/\"provider\": \"openai\"/' \"$1\"";

#[test]
fn cf3_what_was_edited_is_sent_with_its_version_and_nothing_is_left_behind() {
    let (run, home) = edited(&[TO_OPENAI], |gateway| {
        let result = json!({"ok": true, "version": 8, "changed": ["model.provider"]});
        answer(gateway, &config("openai"), Ok(result));
    });
    assert!(run.ok().stderr.contains("changed: model.provider"));
    let shown = seen(&home, 1);
    assert!(
        shown.starts_with("// Every setting") && shown.contains("[redacted]"),
        "{shown}"
    );
    assert_eq!(drafts(&home), Vec::<PathBuf>::new());
}

#[test]
fn cf1_cf3_an_error_reopens_the_file_with_the_reason_and_what_was_typed() {
    let wrong = "sed -i 's/\"anthropic\"$/\"antropic\"/' \"$1\"";
    let broken = "sed -i 's/antropic/openai/; s/^}$/},/' \"$1\"";
    let right = "sed -i 's/^},$/}/' \"$1\"";
    let (run, home) = edited(&[wrong, broken, right], |gateway| {
        let refusal = (511, "config.invalid", "model.provider: antropic is not a provider.");
        answer(gateway, &config("antropic"), Err(refusal));
        let result = json!({"ok": true, "version": 8, "changed": ["model.provider"], "warnings": ["It has no key."]});
        answer(gateway, &config("openai"), Ok(result));
    });
    let run = run.ok();
    assert!(run.stderr.contains("It has no key."), "{run:?}");
    let second = seen(&home, 2);
    assert!(
        second.starts_with("// Nothing was stored. model.provider: antropic is not a provider.")
            && second.contains("\"antropic\""),
        "{second}"
    );
    let third = seen(&home, 3);
    assert!(third.contains("not valid JSON") && third.contains("openai"), "{third}");
    assert!(
        !third.contains("is not a provider"),
        "only the last reason is shown: {third}"
    );
}

#[test]
fn cf3_without_a_terminal_the_first_refusal_ends_it_and_keeps_the_file() {
    for broken in ["echo '}' >>\"$1\"", TO_OPENAI] {
        let (run, home) = edited_at(Stdio::null(), &[broken, broken], |gateway| {
            if broken == TO_OPENAI {
                answer(gateway, &config("openai"), Err((511, "config.invalid", "model: no.")));
            }
        });
        let run = run.failed(2);
        let kept = drafts(&home);
        assert_eq!(kept.len(), 1, "{run:?}");
        assert!(run.stderr.contains(kept[0].to_str().unwrap()), "{run:?}");
        assert!(!home.root().join("seen2").exists(), "it was opened again");
    }
}

#[test]
fn cf3_closing_it_unchanged_after_an_error_gives_up_and_keeps_the_file() {
    let (run, home) = edited(&[TO_OPENAI, "true"], |gateway| {
        answer(gateway, &config("openai"), Err((511, "config.invalid", "model: no.")));
    });
    let run = run.failed(2);
    assert!(
        run.stderr.contains("model: no.") && run.stderr.contains("kept in"),
        "{run:?}"
    );
    let kept = drafts(&home);
    assert_eq!(kept.len(), 1);
    assert_eq!(mode(&kept[0]), 0o600);
    assert!(fs::read_to_string(&kept[0]).unwrap().contains("openai"));
}

#[test]
fn cf1_a_change_in_between_stores_nothing_and_says_what_to_do() {
    let (run, home) = edited(&[TO_OPENAI], |gateway| {
        answer(gateway, &config("openai"), Err((514, "config.changed", "")));
    });
    let run = run.failed(1);
    assert!(
        run.stderr.contains("was changed since it was read") && run.stderr.contains("gsv config edit"),
        "{run:?}"
    );
    assert_eq!(drafts(&home).len(), 1);
}

#[test]
fn cf3_an_unchanged_file_sends_nothing() {
    let (run, home) = edited(&["true"], |_| {});
    assert!(run.ok().stderr.contains("Nothing was changed."));
    assert_eq!(drafts(&home), Vec::<PathBuf>::new());
}

#[test]
fn cf3_an_editor_that_fails_and_an_older_gateway_are_said() {
    let (run, home) = edited(&["exit 3"], |_| {});
    assert!(run.failed(1).stderr.contains("editor"));
    assert_eq!(drafts(&home), Vec::<PathBuf>::new(), "nothing was typed");
    let (run, home) = edited(&[&format!("{TO_OPENAI}; exit 3")], |_| {});
    assert!(run.failed(1).stderr.contains("kept in"));
    assert_eq!(drafts(&home).len(), 1);
    let run = crate::common::play::asked(
        &["config", "edit"],
        "config.get",
        &json!({}),
        &json!({"config": config("demo")}),
    );
    assert!(run.failed(1).stderr.contains("gsv config set"));
}

#[test]
fn cf3_without_a_terminal_and_an_editor_nothing_is_opened() {
    let (run, home) = edited_at(Stdio::null(), &[], |_| {});
    let said = run.failed(2).stderr;
    assert!(said.contains("Not a terminal"), "{said}");
    assert!(drafts(&home).is_empty());
}
