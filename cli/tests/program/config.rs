//! `gsv config` and `gsv local-config`, and where address and token come from.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use crate::common::fake_gateway::{FakeGateway, TOKEN};
use crate::common::play::{asked, refused};
use crate::common::{Home, finish, mode, start};
use serde_json::json;

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
fn cf4_a_mistake_in_json_is_named_with_its_place_when_the_setting_takes_no_text() {
    for (typed, mistake) in [
        ("[{\"id\": \"a\",}]", "trailing comma at line 1 column 13"),
        ("[{\"id\": \"a\"", "the text ends inside an object at line 1 column 11"),
        ("{\n  \"a\": b\n}", "expected value at line 2 column 8"),
    ] {
        let args = ["config", "set", "toolApproval.rules", typed];
        let run = refused(
            &args,
            "config.set",
            511,
            "config.invalid",
            "toolApproval.rules is a list.",
        )
        .failed(2);
        let wanted = format!("error: The value is not valid JSON: {mistake}. [");
        assert!(run.stderr.contains(&wanted), "{}", run.stderr);
    }
    // Another reason than the JSON, and a text that only looks like JSON.
    let run = refused(
        &["config", "set", "model.id", "[1]"],
        "config.set",
        511,
        "config.invalid",
        "It is a text.",
    )
    .failed(2);
    assert!(run.stderr.contains("It is a text."), "{}", run.stderr);
    let sent = json!({"path": "systemPrompt", "value": "[Be brief"});
    let ok = json!({"ok": true, "path": "systemPrompt"});
    asked(
        &["config", "set", "systemPrompt", "[Be brief"],
        "config.set",
        &sent,
        &ok,
    )
    .ok();
}

#[test]
fn f39_a_setting_of_the_command_line_names_the_command_that_has_it() {
    for (args, next) in [
        (
            &["config", "get", "chat.enter"][..],
            "`gsv local-config get chat.enter`",
        ),
        (
            &["config", "set", "chat.enter", "steer"],
            "`gsv local-config set chat.enter VALUE`",
        ),
        (
            &["config", "unset", "chat.enter"],
            "`gsv local-config unset chat.enter`",
        ),
    ] {
        let method = args[..2].join(".");
        let run = refused(args, &method, 600, "config.unknown_path", "There is no such setting.").failed(2);
        assert!(run.stderr.contains(next), "{}", run.stderr);
    }
    let run = refused(
        &["config", "get", "chat.entr"],
        "config.get",
        600,
        "config.unknown_path",
        "There is no such setting.",
    );
    assert!(!run.failed(2).stderr.contains("local-config"));
}

#[test]
fn f4_s5_a_key_comes_from_stdin() {
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
fn f4_a_secret_that_is_an_argument_is_taken_with_a_warning() {
    let set = |name: &str, value: &str, sent: &serde_json::Value| {
        asked(
            &["config", "set", name, value],
            "config.set",
            &json!({"path": name, "value": sent}),
            &json!({"ok": true, "path": name}),
        )
        .ok()
    };
    let run = set("apiKeys.openai", "sk-secret", &json!("sk-secret"));
    assert!(
        run.stderr.contains("history") && run.stderr.contains("`gsv config set apiKeys.openai -`"),
        "{run:?}"
    );
    assert!(!run.stderr.contains("sk-secret"), "{run:?}");
    let run = set("compaction.reserveTokens", "20000", &json!(20_000));
    assert!(!run.stderr.contains("history"), "{run:?}");
    let run = Home::new().gsv(["local-config", "set", "token", TOKEN]).ok();
    assert!(run.stderr.contains("`gsv local-config set token -`"), "{run:?}");
}

#[test]
fn f37_a_session_that_no_gateway_accepts_is_not_stored() {
    let home = Home::new();
    let run = home.gsv(["local-config", "set", "session", "a b:c"]).failed(2);
    assert!(run.stderr.contains("gsv session list"), "{run:?}");
    home.gsv(["local-config", "set", "session", "agent:work:cli:dm:notes"])
        .ok();
    // What an earlier version stored is read.
    home.write_config("session = \"a b:c\"\n");
    assert_eq!(home.gsv(["local-config", "get", "session"]).ok().stdout, "a b:c\n");
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
    let entry = "toolApproval.rules.0";
    let run = asked(
        &["config", "unset", entry],
        "config.unset",
        &json!({ "path": entry }),
        &json!({"ok": true, "path": entry, "wasSet": true}),
    )
    .ok();
    assert!(run.stderr.contains("toolApproval.rules.0 is removed"), "{}", run.stderr);
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
            finish(start(&mut command))
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
fn sc3_a_command_that_changes_a_setting_shows_what_the_gateway_warns_of() {
    let warnings = json!(["1 job keeps its time zone: report\n(Asia/Tokyo)."]);
    let set = asked(
        &["config", "set", "userTimezone", "Europe/Berlin"],
        "config.set",
        &json!({"path": "userTimezone", "value": "Europe/Berlin"}),
        &json!({"ok": true, "path": "userTimezone", "warnings": warnings}),
    );
    let unset = asked(
        &["config", "unset", "userTimezone"],
        "config.unset",
        &json!({"path": "userTimezone"}),
        &json!({"ok": true, "path": "userTimezone", "wasSet": true, "warnings": warnings}),
    );
    for run in [set.ok(), unset.ok()] {
        assert!(
            run.stderr
                .contains("warning: 1 job keeps its time zone: report (Asia/Tokyo).\n"),
            "{run:?}"
        );
    }
}
