//! `gsv channel start`: settings and secrets, and what became of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::common::channels::{account, accounts};
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, fed, played_all, serve};
use crate::common::{Home, Run, finish, start};
use serde_json::{Value, json};

const SECRET: &str = "MTAw.Fake-1.the-token-of-a-bot";

/// `gsv channel discord start` with a Discord that has no token yet.
fn starts(args: &[&str], input: &str, config: Option<&Value>, after: &Value) -> Run {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    starts_in(&home, &gateway, args, input, config, after)
}

fn starts_in(
    home: &Home,
    gateway: &FakeGateway,
    args: &[&str],
    input: &str,
    config: Option<&Value>,
    after: &Value,
) -> Run {
    let mut params = json!({"channel": "discord"});
    if let Some(config) = config {
        params["config"] = config.clone();
    }
    let start = |connection: &mut Connection| {
        let done = json!({"ok": true, "channel": "discord", "accountId": "default"});
        serve(connection, "channel.start", &params, &done);
        serve(
            connection,
            "channel.status",
            &json!({"channel": "discord"}),
            &accounts("discord", std::slice::from_ref(after)),
        );
    };
    let by_flag = args.iter().any(|arg| arg.starts_with("--"));
    let look = |connection: &mut Connection| {
        let before = account(false, &json!({"extra": {"started": false}}));
        serve(
            connection,
            "channel.status",
            &json!({"channel": "discord"}),
            &accounts("discord", &[before]),
        );
    };
    let plays: Vec<Play<'_>> = if by_flag {
        vec![Box::new(|connection| {
            look(connection);
            start(connection);
        })]
    } else {
        vec![Box::new(look), Box::new(start)]
    };
    fed(home, gateway, args, input, plays)
}

#[test]
fn s5_a_token_comes_from_a_file_or_from_stdin_and_is_never_shown() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let file = home.root().join("token.txt");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.to_str().unwrap();
    let works = account(
        false,
        &json!({"connected": true, "authenticated": true, "extra": {"bot": "helper", "started": true}}),
    );
    let token = json!({"token": SECRET});
    for (args, input) in [
        (vec!["channel", "discord", "start"], SECRET),
        (vec!["channel", "start", "discord", "--token-file", "-"], SECRET),
        (vec!["channel", "discord", "start", "--token-file", path], ""),
        (vec!["channel", "discord", "start", "--config", "token=-"], SECRET),
    ] {
        let run = starts_in(&home, &gateway, &args, input, Some(&token), &works).ok();
        assert!(run.stderr.contains("discord is connected as helper"), "{run:?}");
        assert!(
            !run.stderr.contains("the-token") && !run.stdout.contains("the-token"),
            "{run:?}"
        );
        assert_eq!(run.stderr.contains("chmod 600"), args.contains(&path), "{run:?}");
    }
}

#[test]
fn s5_a_secret_in_an_argument_is_refused_before_anything_is_sent() {
    let home = FakeGateway::new().home();
    for args in [
        &["channel", "discord", "start", "--config", "token=MTAw.Fake-1.the-token"][..],
        &["channel", "example", "start", "--config", "secret=the-token"],
    ] {
        let run = home.gsv(args).failed(2);
        assert!(
            run.stderr.contains("=-`") && !run.stderr.contains("the-token"),
            "{run:?}"
        );
    }
    let folder = home.root().to_str().unwrap().to_owned();
    home.gsv(["channel", "discord", "start", "--token-file", &folder])
        .failed(2);
    home.gsv(["channel", "discord", "start", "--token-file", "/nowhere"])
        .failed(1);
    let run = home
        .gsv_with_stdin(["channel", "discord", "start", "--token-file", "-"], "one\ntwo\n")
        .failed(2);
    assert!(!run.stderr.contains("two"), "{run:?}");
    home.gsv([
        "channel",
        "discord",
        "start",
        "--config",
        "token=-",
        "--token-file",
        "-",
    ])
    .failed(2);
}

#[test]
fn a_start_says_how_it_went() {
    // Nothing on stdin: the channel's own token is used.
    let off = account(
        false,
        &json!({"error": "There is no bot token. Make a bot.", "extra": {"started": true}}),
    );
    let run = starts(&["channel", "discord", "start"], "", None, &off).failed(1);
    assert!(
        run.stderr.contains("does not connect. There is no bot token.")
            && run.stderr.contains("`gsv channel discord start`"),
        "{run:?}"
    );
    let config = json!({"apiBase": "http://127.0.0.1:1", "selfChat": true, "old": null});
    let typed = [
        "channel",
        "discord",
        "start",
        "--config",
        "apiBase=http://127.0.0.1:1",
        "--config",
        "selfChat=true",
        "--config",
        "old=null",
        "--json",
    ];
    let on = account(false, &json!({"connected": true, "authenticated": true}));
    let run = starts(&typed, "", Some(&config), &on).ok();
    assert_eq!(run.json()["account"]["connected"], true);
    // A channel that has a token is not asked for one.
    let stopped = account(false, &json!({"authenticated": true, "extra": {"started": false}}));
    let waiting = account(true, &json!({"extra": {"started": true}}));
    for (channel, before, after, words) in [
        ("discord", &stopped, &on, "discord is connected"),
        (
            "whatsapp",
            &waiting,
            &waiting,
            "now log in: `gsv channel whatsapp login`",
        ),
    ] {
        let run = played_all(
            &["channel", channel, "start"],
            vec![Box::new(|connection| {
                let which = json!({"channel": channel});
                serve(
                    connection,
                    "channel.status",
                    &which,
                    &accounts(channel, std::slice::from_ref(before)),
                );
                let done = json!({"ok": true, "channel": channel, "accountId": "default"});
                serve(connection, "channel.start", &which, &done);
                serve(
                    connection,
                    "channel.status",
                    &which,
                    &accounts(channel, std::slice::from_ref(after)),
                );
            })],
        )
        .ok();
        assert!(run.stderr.contains(words), "{run:?}");
    }
}

#[test]
fn s5_no_secret_is_in_the_list_of_processes() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["channel", "discord", "start"]).stdin(Stdio::piped());
    let mut child = start(&mut command);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(SECRET.as_bytes()).unwrap();
    drop(stdin);
    let mut connection = gateway.accept();
    let before = account(false, &json!({}));
    serve(
        &mut connection,
        "channel.status",
        &json!({"channel": "discord"}),
        &accounts("discord", &[before]),
    );
    drop(connection);
    let mut connection = gateway.accept();
    let request = connection.expect("channel.start");
    assert_eq!(request.params["config"]["token"], SECRET);
    let listed = Command::new("ps")
        .args(["-o", "args=", "-p", &child.id().to_string()])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        listed.contains("channel discord start") && !listed.contains("the-token"),
        "{listed}"
    );
    connection.error(&request, 542, "channel.failed", "It failed.");
    finish(child).failed(4);
}
