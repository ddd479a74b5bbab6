//! `gsv channel login` in a pipe; `asking.rs` tests it at a terminal.

use crate::common::channels::{WHATSAPP, account, accounts, connected, serve_status};
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, fed, played_all, serve};
use serde_json::{Value, json};

fn login(state: &str, more: &Value) -> Value {
    let mut login = json!({"state": state, "message": "Scan it within two minutes."});
    login.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"ok": true, "channel": "whatsapp", "accountId": "default", "message": login["message"], "login": login})
}

fn logins(connection: &mut Connection, params: &Value, answer: &Value) {
    serve(connection, "channel.login", params, answer);
}

#[test]
fn p10_a_login_in_json_lines_over_a_lost_connection() {
    let which = json!({"channel": WHATSAPP});
    let begun = json!({"channel": WHATSAPP, "force": true});
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let args = ["channel", "whatsapp", "login", "--force", "--json"];
    let first: Play<'_> = Box::new(|connection| {
        serve_status(connection, &account(true, &json!({})));
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
        serve_status(connection, &connected());
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
    let run = played_all(
        &args,
        vec![Box::new(|connection| {
            serve_status(connection, &account(true, &json!({})));
            let far = json!({"code": "ABCDEFGH", "expiresAt": 9_007_199_254_740_991_u64});
            logins(connection, &params, &login("code", &far));
            logins(connection, &params, &login("connected", &json!({})));
            serve_status(connection, &connected());
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
        played_all(
            args,
            vec![Box::new(|connection| {
                serve_status(connection, &account(true, &json!({})));
                for answer in answers {
                    logins(connection, &which, answer);
                    if answer["login"]["state"] == "connected" {
                        serve_status(connection, &connected());
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
        let run = played_all(
            &["channel", "whatsapp", "login"],
            vec![Box::new(|connection| {
                serve_status(connection, &account(true, &json!({})));
                let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
                let soon = json!({"qr": "ONE", "expiresAt": now + 800});
                logins(connection, &which, &login("qr", &soon));
                serve_status(connection, &account(true, &json!({"authenticated": linked})));
                if linked {
                    logins(connection, &which, &login("connected", &json!({})));
                    serve_status(connection, &connected());
                }
            })],
        );
        assert_eq!(run.code, Some(code), "{run:?}");
    }
}

#[test]
fn a_channel_without_a_login_says_what_it_wants() {
    let run = played_all(
        &["channel", "discord", "login"],
        vec![Box::new(|connection| {
            serve(
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
