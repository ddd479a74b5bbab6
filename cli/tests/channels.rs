//! `gsv channel` and `gsv pair` against a gateway that the test plays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;

use common::fake_gateway::{Connection, FakeGateway};
use common::{Home, Run, finish};
use serde_json::{Value, json};

const SECRET: &str = "MTAw.Fake-1.the-token-of-a-bot";

/// What the test does with one connection.
type Play<'a> = Box<dyn FnOnce(&mut Connection) + 'a>;

/// Runs `gsv` with this on stdin while the test plays one connection after the other.
fn fed(home: &Home, gateway: &FakeGateway, args: &[&str], input: &str, plays: Vec<Play<'_>>) -> Run {
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv_with_stdin(args, input));
        for play in plays {
            let mut connection = gateway.accept();
            play(&mut connection);
        }
        run.join().unwrap()
    })
}

fn played(args: &[&str], plays: Vec<Play<'_>>) -> Run {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    fed(&home, &gateway, args, "", plays)
}

/// One question, checked, and its answer.
fn answers<'a>(connection: &mut Connection, method: &str, params: &Value, answer: &'a Value) -> &'a Value {
    let request = connection.expect(method);
    assert_eq!(&request.params, params, "{method}");
    connection.answer(&request, answer);
    answer
}

fn asked(args: &[&str], method: &str, params: &Value, answer: &Value) -> Run {
    played(
        args,
        vec![Box::new(|connection| {
            answers(connection, method, params, answer);
        })],
    )
}

fn account(login: bool, more: &Value) -> Value {
    let mut account = json!({
        "accountId": "default", "connected": false, "authenticated": false,
        "capabilities": {"peerKinds": ["dm"], "media": true, "reactions": true, "typing": true, "replies": true,
            "edits": false, "buttons": false, "login": login, "maxTextChars": 4000},
    });
    account
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    account
}

fn accounts(channel: &str, accounts: &[Value]) -> Value {
    json!({"channel": channel, "accounts": accounts})
}

fn connected() -> Value {
    account(
        true,
        &json!({"connected": true, "authenticated": true, "mode": "open", "silentMs": 4000, "roundTripMs": 85, "inboxWaiting": 1,
            "outboxWaiting": 0, "undelivered": 2, "extra": {"phone": "+31612345678", "started": true, "selfChat": false},
            "gap": {"from": 0, "until": 1000, "why": "another program used the linked device"}}),
    )
}

/// What is listed with one channel connected, one failing, and a fax that does not answer.
fn three(connection: &mut Connection) {
    let entries = json!([
        {"channel": "whatsapp", "accountId": "default", "connectedAt": 1},
        {"channel": "discord", "accountId": "default", "connectedAt": 1}
    ]);
    answers(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": entries, "count": 2, "bound": ["discord", "fax", "whatsapp"]}),
    );
    let failing = account(
        false,
        &json!({"error": "Discord does not accept the token.\u{1b}[2J", "extra": {"started": true}}),
    );
    answers(
        connection,
        "channel.status",
        &json!({"channel": "discord"}),
        &accounts("discord", &[failing]),
    );
    let request = connection.expect("channel.status");
    connection.error(&request, 542, "channel.failed", "The channel fax did not answer.");
    answers(
        connection,
        "channel.status",
        &json!({"channel": "whatsapp"}),
        &accounts("whatsapp", &[connected()]),
    );
}

#[test]
fn p7_all_channels_are_listed_with_state_and_reason() {
    let run = played(&["channel", "list"], vec![Box::new(three)]).ok();
    insta::assert_snapshot!(run.stdout, @r"
    CHANNEL   ACCOUNT  STATE      ACTIVE  IN  OUT  LOST  REASON
    discord   default  failing                           Discord does not accept the token.[U+001B][2J
    fax                failing                           The channel fax did not answer.
    whatsapp  default  connected          1   0    2     as +31612345678
    ");
    let run = played(&["channel", "list", "--json"], vec![Box::new(three)]).ok();
    let channels = run.json()["channels"].clone();
    assert_eq!(channels[2]["accounts"][0]["undelivered"], 2, "{channels}");
    assert_eq!(channels[1]["error"]["reason"], "channel.failed");
    let nothing = json!({"channels": [], "count": 0, "bound": []});
    let run = asked(&["channel", "list"], "channels.list", &json!({}), &nothing).ok();
    assert!(run.stderr.contains("no channels"), "{run:?}");
}

#[test]
fn p7_one_channel_in_detail_in_either_order_of_words() {
    let mut answer = accounts("whatsapp", &[connected()]);
    answer["problems"] = json!([
        {"deliveryId": "d2", "accountId": "default", "state": "unknown", "at": 2, "error": "the answer was lost",
            "peer": {"kind": "dm", "id": "31600@lid", "name": "Anna\u{202e}"}},
        {"deliveryId": "d1", "accountId": "default", "state": "failed", "at": 1, "error": "the peer is gone\u{1b}[2J"}
    ]);
    for args in [
        &["channel", "status", "WhatsApp", "--account", "work"][..],
        &["channel", "whatsapp", "status", "--account", "work"],
        &["channel", "whatsapp", "--account", "work"],
    ] {
        let run = asked(
            args,
            "channel.status",
            &json!({"channel": "whatsapp", "accountId": "work"}),
            &answer,
        )
        .ok();
        insta::allow_duplicates!(insta::assert_snapshot!(run.stdout, @r"
        channel                whatsapp
        account                default
        state                  connected
                               as +31612345678
        logged in              yes
        silent for             4.0 s
        round trip             85 ms
        waiting for the agent  1
        waiting to be sent     0
        lost                   1 undelivered, 1 with unknown outcome
        gap                    between 1970-01-01 00:00:00 UTC and 1970-01-01 00:00:01 UTC messages may have been missed (another program used the linked device)
        self chat              false

        LOST        ACCOUNT  TO                        STATE    REASON
        1970-01-01  default  Anna[U+202E] (31600@lid)  unknown  the answer was lost
        1970-01-01  default                            failed   the peer is gone[U+001B][2J
        "));
        assert!(run.stderr.contains("not sent again"), "{run:?}");
    }
}

#[test]
fn a_channel_that_is_not_bound_elsewhere_is_explained() {
    for args in [
        &["channel", "fax", "status"][..],
        &["channel", "fax", "start"],
        &["channel", "fax", "login"],
    ] {
        let run = played(
            args,
            vec![Box::new(|connection| {
                let request = connection.expect("channel.status");
                connection.error(&request, 540, "channel.unknown", "There is no such channel here.");
            })],
        )
        .failed(1);
        assert!(run.stderr.contains("CHANNEL_FAX"), "{run:?}");
    }
}

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
        answers(connection, "channel.start", &params, &done);
        answers(
            connection,
            "channel.status",
            &json!({"channel": "discord"}),
            &accounts("discord", std::slice::from_ref(after)),
        );
    };
    let by_flag = args.iter().any(|arg| arg.starts_with("--"));
    let look = |connection: &mut Connection| {
        let before = account(false, &json!({"extra": {"started": false}}));
        answers(
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
        let run = played(
            &["channel", channel, "start"],
            vec![Box::new(|connection| {
                let which = json!({"channel": channel});
                answers(
                    connection,
                    "channel.status",
                    &which,
                    &accounts(channel, std::slice::from_ref(before)),
                );
                let done = json!({"ok": true, "channel": channel, "accountId": "default"});
                answers(connection, "channel.start", &which, &done);
                answers(
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
fn stopping_keeps_and_logging_out_asks() {
    let done = json!({"ok": true, "channel": "discord", "accountId": "default"});
    let run = asked(
        &["channel", "discord", "stop"],
        "channel.stop",
        &json!({"channel": "discord"}),
        &done,
    )
    .ok();
    assert!(run.stderr.contains("waiting messages are kept"), "{run:?}");
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let look = || -> Play<'_> {
        Box::new(|connection: &mut Connection| {
            let which = json!({"channel": "whatsapp", "accountId": "work"});
            answers(
                connection,
                "channel.status",
                &which,
                &accounts("whatsapp", &[connected()]),
            );
        })
    };
    let args = ["channel", "whatsapp", "logout", "--account", "work"];
    let run = fed(&home, &gateway, &args, "y\n", vec![look()]).failed(2);
    assert!(run.stderr.contains("--yes"), "{run:?}");
    let logout: Play<'_> = Box::new(|connection| {
        let which = json!({"channel": "whatsapp", "accountId": "work"});
        let done = json!({"ok": true, "channel": "whatsapp", "accountId": "work"});
        answers(connection, "channel.logout", &which, &done);
    });
    let args = ["channel", "logout", "whatsapp", "--account", "work", "--yes"];
    let run = fed(&home, &gateway, &args, "", vec![look(), logout]).ok();
    assert!(run.stderr.contains("whatsapp (work) is logged out"), "{run:?}");
}

fn login(state: &str, more: &Value) -> Value {
    let mut login = json!({"state": state, "message": "Scan it within two minutes."});
    login.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"ok": true, "channel": "whatsapp", "accountId": "default", "message": login["message"], "login": login})
}

fn logins(connection: &mut Connection, params: &Value, answer: &Value) {
    answers(connection, "channel.login", params, answer);
}

const WHATSAPP: &str = "whatsapp";

fn looks(connection: &mut Connection, account: &Value) {
    answers(
        connection,
        "channel.status",
        &json!({"channel": WHATSAPP}),
        &accounts(WHATSAPP, std::slice::from_ref(account)),
    );
}

#[test]
fn p10_a_login_in_json_lines_over_a_lost_connection() {
    let which = json!({"channel": WHATSAPP});
    let begun = json!({"channel": WHATSAPP, "force": true});
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let args = ["channel", "whatsapp", "login", "--force", "--json"];
    let first: Play<'_> = Box::new(|connection| {
        looks(connection, &account(true, &json!({})));
        logins(connection, &begun, &login("qr", &json!({"qr": "ONE"})));
    });
    // The connection is cut, and the login goes on: it is never forced twice.
    let second: Play<'_> = Box::new(|connection| {
        logins(connection, &which, &login("qr", &json!({"qr": "TWO"})));
        logins(
            connection,
            &which,
            &login("connecting", &json!({"message": "Connecting."})),
        );
        logins(connection, &which, &login("connected", &json!({})));
        looks(connection, &connected());
    });
    let run = fed(&home, &gateway, &args, "", vec![first, second]).ok();
    let lines = run.json_lines();
    let states: Vec<&str> = lines.iter().map(|line| line["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["qr", "qr", "connecting", "connected"], "{run:?}");
    assert_eq!((&lines[0]["qr"], &lines[1]["qr"]), (&json!("ONE"), &json!("TWO")));
    assert_eq!(lines[3]["as"], "+31612345678");
}

#[test]
fn in_a_pipe_the_code_is_a_line_of_text() {
    let params = json!({"channel": WHATSAPP, "phone": "+31 6 12345678"});
    let args = ["channel", "login", "whatsapp", "--phone", "+31 6 12345678"];
    let run = played(
        &args,
        vec![Box::new(|connection| {
            looks(connection, &account(true, &json!({})));
            let far = json!({"code": "ABCDEFGH", "expiresAt": 9_007_199_254_740_991_u64});
            logins(connection, &params, &login("code", &far));
            logins(connection, &params, &login("connected", &json!({})));
            looks(connection, &connected());
        })],
    )
    .ok();
    assert_eq!(run.stdout, "ABCD-EFGH\n");
    assert!(
        run.stderr.contains("Scan it") && run.stderr.contains("It expires in 2 min."),
        "{run:?}"
    );
    assert!(
        run.stderr.contains("whatsapp is linked and connected as +31612345678."),
        "{run:?}"
    );
}

#[test]
fn p10_a_login_ends_in_words_and_a_status() {
    let which = json!({"channel": WHATSAPP});
    let begin = |args: &[&str], answers: &[Value]| {
        played(
            args,
            vec![Box::new(|connection| {
                looks(connection, &account(true, &json!({})));
                for answer in answers {
                    logins(connection, &which, answer);
                    if answer["login"]["state"] == "connected" {
                        looks(connection, &connected());
                    }
                }
            })],
        )
    };
    let plain = ["channel", "whatsapp", "login"];
    let run = begin(&plain, &[login("connected", &json!({}))]).ok();
    assert!(
        run.stderr.contains("already linked") && run.stderr.contains("--force"),
        "{run:?}"
    );
    let refused = login("failed", &json!({"message": "This is not a phone number.\u{1b}[2J"}));
    let run = begin(&plain, &[refused]).failed(1);
    assert!(
        run.stderr.contains("not a phone number.[U+001B][2J") && run.stderr.contains("channel whatsapp status"),
        "{run:?}"
    );
    // The login that was shown has expired, and asking began another.
    let far = 9_000_000_000_000_000_u64;
    let shown = [
        login("qr", &json!({"qr": "ONE", "expiresAt": far})),
        login("qr", &json!({"qr": "TWO", "expiresAt": far + 120_000})),
    ];
    let run = begin(&["channel", "whatsapp", "login", "--json"], &shown).failed(4);
    assert_eq!(run.json_lines()[1]["state"], "expired", "{run:?}");
    assert!(
        run.stderr.contains("Start again: `gsv channel whatsapp login`"),
        "{run:?}"
    );
}

#[test]
fn after_its_time_a_login_is_only_looked_at() {
    let which = json!({"channel": WHATSAPP});
    // The code was not scanned, or in the last moment.
    for (linked, code) in [(false, 4), (true, 0)] {
        let run = played(
            &["channel", "whatsapp", "login"],
            vec![Box::new(|connection| {
                looks(connection, &account(true, &json!({})));
                let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
                let soon = json!({"qr": "ONE", "expiresAt": now + 800});
                logins(connection, &which, &login("qr", &soon));
                looks(connection, &account(true, &json!({"authenticated": linked})));
                if linked {
                    logins(connection, &which, &login("connected", &json!({})));
                    looks(connection, &connected());
                }
            })],
        );
        assert_eq!(run.code, Some(code), "{run:?}");
    }
}

#[test]
fn a_channel_without_a_login_says_what_it_wants() {
    let run = played(
        &["channel", "discord", "login"],
        vec![Box::new(|connection| {
            answers(
                connection,
                "channel.status",
                &json!({"channel": "discord"}),
                &accounts("discord", &[account(false, &json!({}))]),
            );
        })],
    )
    .failed(2);
    assert!(run.stderr.contains("`gsv channel discord start`"), "{run:?}");
}

fn strangers() -> Value {
    json!({"pairs": {
        "whatsapp:b": {"channel": "whatsapp", "senderId": "31600@lid", "senderName": "Owner\u{202e}]\u{1b}[2J approve\neverything",
            "requestedAt": 2000, "firstMessage": "hello\u{1b}]52;c;x\u{7}\nGUEST  x\u{200b}", "code": "K7Q2AB", "waiting": 3},
        "discord:a": {"channel": "discord", "senderId": "100", "requestedAt": 1000, "code": "ZZZZZZ", "waiting": 1}
    }})
}

#[test]
fn s7_hidden_characters_of_pairing_requests_are_shown() {
    let run = asked(&["pair", "list"], "pair.list", &json!({}), &strangers()).ok();
    insta::assert_snapshot!(run.stdout, @r"
    CHANNEL   CODE    NAME                                      ID         SINCE       WAITING  MESSAGE
    discord   ZZZZZZ                                            100        1970-01-01  1
    whatsapp  K7Q2AB  Owner[U+202E]][U+001B][2J approve every…  31600@lid  1970-01-01  3        hello[U+001B]]52;c;x[U+0007] GUEST x[U+200B]
    ");
    assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains('\u{202e}'));
    let run = asked(&["pair", "list", "--json"], "pair.list", &json!({}), &strangers()).ok();
    assert_eq!(run.json(), strangers());
    let run = asked(&["pair", "list"], "pair.list", &json!({}), &json!({"pairs": {}})).ok();
    assert!(run.stderr.contains("no pairing requests"), "{run:?}");
}

fn list() -> Play<'static> {
    Box::new(|connection| {
        answers(connection, "pair.list", &json!({}), &strangers());
    })
}

fn approve(params: Value, answer: Value) -> Play<'static> {
    Box::new(move |connection| {
        answers(connection, "pair.approve", &params, &answer);
    })
}

#[test]
fn s6_the_sender_that_was_shown_is_approved() {
    let guest = json!({"channel": "whatsapp", "senderId": "31600@lid", "role": "guest"});
    let done = json!({"approved": true, "senderId": "31600@lid", "senderName": "Anna", "role": "guest"});
    for who in ["k7q2ab", "31600@lid"] {
        let plays = vec![list(), approve(guest.clone(), done.clone())];
        let run = played(&["pair", "approve", "WhatsApp", who], plays).ok();
        assert!(
            run.stderr.contains(
                "Anna (31600@lid) is approved on whatsapp as a guest, with a separate conversation; 3 waiting messages"
            ),
            "{run:?}"
        );
    }
    // Approving the owner is confirmed; without a terminal, no sender is approved.
    let run = played(&["pair", "approve", "whatsapp", "K7Q2AB", "--owner"], vec![list()]).failed(2);
    assert!(run.stderr.contains("--yes"), "{run:?}");
    let owner = json!({"channel": "whatsapp", "senderId": "31600@lid", "role": "owner"});
    let done = json!({"approved": true, "senderId": "31600@lid", "role": "owner"});
    let args = ["pair", "approve", "whatsapp", "K7Q2AB", "--owner", "--yes"];
    let run = played(&args, vec![list(), approve(owner, done)]).ok();
    assert!(
        run.stderr.contains("31600@lid is approved on whatsapp as you"),
        "{run:?}"
    );
    // A code is valid for its channel only: here it is an unknown id.
    let unknown: Play<'_> = Box::new(|connection| {
        let request = connection.expect("pair.approve");
        assert_eq!(request.params["senderId"], "K7Q2AB");
        connection.error(&request, 541, "pair.not_found", "There is no pairing request K7Q2AB.");
    });
    let run = played(&["pair", "approve", "discord", "K7Q2AB"], vec![list(), unknown]).failed(1);
    assert!(run.stderr.contains("There is no pairing request K7Q2AB."), "{run:?}");
}

#[test]
fn a_sender_is_rejected() {
    let run = asked(
        &["pair", "reject", "discord", "ZZZZZZ"],
        "pair.reject",
        &json!({"channel": "discord", "senderId": "ZZZZZZ"}),
        &json!({"rejected": true, "senderId": "100"}),
    )
    .ok();
    assert!(run.stderr.contains("100 is rejected on discord"), "{run:?}");
}

fn overview(connection: &mut Connection) {
    let entries = json!([
        {"channel": "whatsapp", "accountId": "default", "connectedAt": 1},
        {"channel": "fax", "accountId": "default", "connectedAt": 1}
    ]);
    answers(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": entries, "count": 2, "bound": ["fax", "idle", "whatsapp"]}),
    );
    let request = connection.expect("channel.status");
    connection.error(&request, 542, "channel.failed", "The channel fax did not answer.");
    looks(connection, &connected());
    answers(connection, "pair.list", &json!({}), &strangers());
}

#[test]
fn p9_status_shows_accounts_undelivered_messages_and_pairing_requests() {
    let play = || -> Play<'_> {
        Box::new(|connection| {
            answers(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
            let request = connection.expect("sessions.list");
            connection.answer(&request, &json!({"sessions": [], "count": 0}));
            overview(connection);
        })
    };
    let run = played(&["status"], vec![play()]).ok();
    let shown = run.stdout.split_once("CHANNELS\n").unwrap().1;
    insta::assert_snapshot!(shown, @r"
    fax       The channel fax did not answer.
    whatsapp  connected as +31612345678; 1 waiting for the agent; 2 undelivered or unknown; messages may have been missed

    2 pairing requests: `gsv pair list`
    ");
    let run = played(&["status", "--json"], vec![play()]).ok().json();
    assert_eq!(
        (&run["channels"][1]["accounts"][0]["undelivered"], &run["strangers"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn p9_the_doctor_reports_problems_of_channels() {
    let run = played(
        &["doctor", "--json"],
        vec![Box::new(|connection| {
            let request = connection.expect("sessions.list");
            connection.answer(&request, &json!({"sessions": [], "count": 0}));
            answers(connection, "nodes.list", &json!({}), &json!({"nodes": [], "count": 0}));
            let request = connection.expect("config.get");
            connection.answer(
                &request,
                &json!({"config": {"model": {"provider": "demo", "id": "demo"}}}),
            );
            overview(connection);
        })],
    )
    .failed(1)
    .json();
    let checks: Vec<(&str, &str)> = run["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"] == "channels")
        .map(|check| (check["level"].as_str().unwrap(), check["found"].as_str().unwrap()))
        .collect();
    assert_eq!(
        checks,
        [
            ("fail", "fax: The channel fax did not answer."),
            (
                "warn",
                "whatsapp: connected as +31612345678; 1 waiting for the agent; 2 undelivered or unknown; messages may have been missed"
            ),
            ("warn", "2 pairing requests"),
        ]
    );
}

#[test]
fn s5_no_secret_is_in_the_list_of_processes() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command
        .args(["channel", "discord", "start"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, SECRET.as_bytes()).unwrap();
    drop(stdin);
    let mut connection = gateway.accept();
    let before = account(false, &json!({}));
    answers(
        &mut connection,
        "channel.status",
        &json!({"channel": "discord"}),
        &accounts("discord", &[before]),
    );
    drop(connection);
    let mut connection = gateway.accept();
    let request = connection.expect("channel.start");
    assert_eq!(request.params["config"]["token"], SECRET);
    let listed = std::process::Command::new("ps")
        .args(["-o", "args=", "-p", &child.id().to_string()])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        listed.contains("channel discord start") && !listed.contains("the-token"),
        "{listed}"
    );
    connection.error(&request, 542, "channel.failed", "It failed.");
    finish(child).failed(1);
}
