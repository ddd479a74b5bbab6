//! `gsv pair` against a gateway that the test plays.

use crate::common::channels::pairing_requests;
use crate::common::fake_gateway::FakeGateway;
use crate::common::play::{Play, asked, played_all, played_in, serve};
use serde_json::{Value, json};

#[test]
fn s7_hidden_characters_of_pairing_requests_are_shown() {
    let run = asked(&["pair", "list"], "pair.list", &json!({}), &pairing_requests()).ok();
    insta::assert_snapshot!(run.stdout, @r"
    CHANNEL   CODE    NAME                                      ID         SINCE       WAITING  MESSAGE
    discord   ZZZZZZ                                            100        1970-01-01  1
    whatsapp  K7Q2AB  Owner[U+202E]][U+001B][2J approve every…  31600@lid  1970-01-01  3        hello[U+001B]]52;c;x[U+0007] GUEST x[U+200B]
    ");
    assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains('\u{202e}'));
    let run = asked(
        &["pair", "list", "--json"],
        "pair.list",
        &json!({}),
        &pairing_requests(),
    )
    .ok();
    assert_eq!(run.json(), pairing_requests());
    let run = asked(&["pair", "list"], "pair.list", &json!({}), &json!({"pairs": {}})).ok();
    assert!(run.stderr.contains("no pairing requests"), "{run:?}");
}

#[test]
fn f51_approved_senders_are_listed_in_the_owners_time_zone() {
    let mut listed = pairing_requests();
    listed["approved"] = json!([
        {"channel": "discord", "senderId": "7", "senderName": "Me", "role": "owner", "since": 1_771_502_400_000_u64},
        {"channel": "whatsapp", "senderId": "31611@lid", "senderName": "Anna\u{202e}", "role": "guest", "since": 1_771_502_400_000_u64},
    ]);
    let gateway = FakeGateway::new().in_zone("Asia/Kathmandu");
    let home = gateway.home();
    let run = played_in(&gateway, &home, &["pair", "list"], |connection| {
        serve(connection, "pair.list", &json!({}), &listed);
    })
    .ok();
    insta::assert_snapshot!(run.stdout, @r"
    CHANNEL   CODE    NAME                                      ID         SINCE       WAITING  MESSAGE
    discord   ZZZZZZ                                            100        1970-01-01  1
    whatsapp  K7Q2AB  Owner[U+202E]][U+001B][2J approve every…  31600@lid  1970-01-01  3        hello[U+001B]]52;c;x[U+0007] GUEST x[U+200B]

    CHANNEL   APPROVED AS  NAME          ID         APPROVED SINCE
    discord   you          Me            7          2026-02-19 17:45:00 +0545
    whatsapp  guest        Anna[U+202E]  31611@lid  2026-02-19 17:45:00 +0545
    ");
    listed["pairs"] = json!({});
    let run = played_in(&gateway, &home, &["pair", "list"], |connection| {
        serve(connection, "pair.list", &json!({}), &listed);
    })
    .ok();
    assert!(run.stdout.starts_with("CHANNEL   APPROVED AS"), "{run:?}");
    // A zone that this machine does not know: its own one is used.
    let gateway = FakeGateway::new().in_zone("Nowhere/Land");
    let home = gateway.home();
    let run = played_in(&gateway, &home, &["pair", "list"], |connection| {
        serve(connection, "pair.list", &json!({}), &listed);
    })
    .ok();
    assert!(run.stdout.contains("2026-02-19"), "{run:?}");
}

fn list() -> Play<'static> {
    Box::new(|connection| {
        serve(connection, "pair.list", &json!({}), &pairing_requests());
    })
}

fn approve(params: Value, answer: Value) -> Play<'static> {
    Box::new(move |connection| {
        serve(connection, "pair.approve", &params, &answer);
    })
}

#[test]
fn s6_the_sender_that_was_shown_is_approved() {
    let guest = json!({"channel": "whatsapp", "senderId": "31600@lid", "role": "guest"});
    let done = json!({"approved": true, "senderId": "31600@lid", "senderName": "Anna", "role": "guest"});
    for who in ["k7q2ab", "31600@lid"] {
        let plays = vec![list(), approve(guest.clone(), done.clone())];
        let run = played_all(&["pair", "approve", "WhatsApp", who], plays).ok();
        assert!(
            run.stderr.contains(
                "Anna (31600@lid) is approved on whatsapp as a guest, with a separate conversation; 3 waiting messages"
            ),
            "{run:?}"
        );
    }
    // Approving the owner is confirmed; without a terminal, no sender is approved.
    let run = played_all(&["pair", "approve", "whatsapp", "K7Q2AB", "--owner"], vec![list()]).failed(2);
    assert!(run.stderr.contains("--yes"), "{run:?}");
    let owner = json!({"channel": "whatsapp", "senderId": "31600@lid", "role": "owner"});
    let done = json!({"approved": true, "senderId": "31600@lid", "role": "owner"});
    let args = ["pair", "approve", "whatsapp", "K7Q2AB", "--owner", "--yes"];
    let run = played_all(&args, vec![list(), approve(owner, done)]).ok();
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
    let run = played_all(&["pair", "approve", "discord", "K7Q2AB"], vec![list(), unknown]).failed(1);
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
