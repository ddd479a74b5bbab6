//! What `--help` and `--version` say. The help texts are snapshots: a change shows in review.

use std::fmt::Write as _;

use crate::common::Home;

#[test]
#[allow(clippy::too_many_lines, reason = "a list of commands")]
fn help_texts() {
    let home = Home::new();
    let commands: [&[&str]; 98] = [
        &[],
        &["chat"],
        &["up"],
        &["down"],
        &["service"],
        &["service", "install"],
        &["service", "status"],
        &["service", "logs"],
        &["deploy"],
        &["deploy", "up"],
        &["deploy", "rollback"],
        &["deploy", "down"],
        &["status"],
        &["update"],
        &["backup"],
        &["backup", "verify"],
        &["backup", "schedule"],
        &["restore"],
        &["node"],
        &["config"],
        &["config", "set"],
        &["local-config"],
        &["session"],
        &["session", "set"],
        &["node", "sandbox"],
        &["node", "install"],
        &["node", "uninstall"],
        &["node", "logs"],
        &["node", "forget"],
        &["nodes"],
        &["nodes", "forget"],
        &["session", "list"],
        &["tools"],
        &["tools", "call"],
        &["channel"],
        &["channel", "status"],
        &["channel", "start"],
        &["channel", "stop"],
        &["channel", "login"],
        &["channel", "logout"],
        &["pair"],
        &["pair", "approve"],
        &["pair", "reject"],
        &["approval"],
        &["approval", "allow"],
        &["approval", "deny"],
        &["cron"],
        &["cron", "calendar"],
        &["cron", "add"],
        &["cron", "edit"],
        &["heartbeat"],
        &["heartbeat", "on"],
        &["hook"],
        &["hook", "add"],
        &["hook", "test"],
        &["job"],
        &["job", "submit"],
        &["events"],
        &["events", "list"],
        &["events", "resolve"],
        &["notifications"],
        &["notifications", "test"],
        &["agent"],
        &["agent", "new"],
        &["agent", "show"],
        &["agent", "validate"],
        &["agent", "define"],
        &["agent", "edit"],
        &["agent", "undefine"],
        &["agent", "import"],
        &["prompt"],
        &["prompt", "show"],
        &["token"],
        &["token", "create"],
        &["workspace"],
        &["workspace", "cat"],
        &["workspace", "get"],
        &["workspace", "put"],
        &["workspace", "edit"],
        &["cp"],
        &["memory"],
        &["memory", "list"],
        &["memory", "search"],
        &["memory", "add"],
        &["memory", "review"],
        &["memory", "forget"],
        &["memory", "export"],
        &["search"],
        &["skills"],
        &["skills", "install"],
        &["why"],
        &["audit"],
        &["stop"],
        &["undo"],
        &["resume"],
        &["doctor"],
        &["usage"],
        &["completions"],
    ];
    let mut all = String::new();
    for command in commands {
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let run = home.gsv(&args).ok();
        assert_eq!(run.stderr, "");
        writeln!(all, "$ gsv {}\n{}", args.join(" "), run.stdout).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn wrong_use_exits_with_2_and_says_what_is_meant() {
    let home = Home::new();
    let run = home.gsv(["sesion", "list"]).failed(2);
    assert!(run.stderr.contains("session"), "{}", run.stderr);
    home.gsv(["token", "create", "--scope", "node"]).failed(2);
    home.gsv(["up", "--port", "0"]).failed(2);
}

#[test]
fn f7_the_help_says_that_the_workspace_does_not_confine_commands() {
    let help = Home::new().gsv(["node", "--help"]).ok().stdout;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("its commands only in a sandbox"), "{help}");
    assert!(words.contains("the workspace never confines commands"), "{help}");
}

#[test]
fn f53_help_and_version_are_commands_too() {
    let home = Home::new();
    let help = home.gsv(["--help"]).ok().stdout;
    assert_eq!(home.gsv::<&str>([]).ok().stdout, help);
    assert_eq!(home.gsv(["help"]).ok().stdout, help);
    let chat = home.gsv(["chat", "--help"]).ok().stdout;
    assert_eq!(home.gsv(["help", "chat"]).ok().stdout, chat);
    let version = home.gsv(["--version"]).ok().stdout;
    assert_eq!(home.gsv(["version"]).ok().stdout, version);
}

#[test]
fn f54_the_manifest_names_no_address_that_was_made_up() {
    let manifest = include_str!("../../../Cargo.toml");
    assert!(!manifest.contains("://"), "{manifest}");
}

#[test]
fn the_version_needs_no_valid_config() {
    let home = Home::new();
    home.write_config("not a config");
    assert_eq!(
        home.gsv(["--version"]).ok().stdout,
        format!("gsv {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_are_made_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = home.gsv(["completions", shell]).ok();
        assert!(run.stdout.contains("local-config"), "{shell}");
    }
}
