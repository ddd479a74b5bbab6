//! `gsv channel list|status|stop|logout` against a gateway that the test plays.

use crate::common::channels::{account, accounts, connected};
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, asked, fed, played_all, serve};
use serde_json::json;

/// What is listed with one channel connected, one failing, and a fax that does not answer.
fn three(connection: &mut Connection) {
    let entries = json!([
        {"channel": "whatsapp", "accountId": "default", "connectedAt": 1},
        {"channel": "discord", "accountId": "default", "connectedAt": 1}
    ]);
    serve(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": entries, "count": 2, "bound": ["discord", "fax", "whatsapp"]}),
    );
    let failing = account(
        false,
        &json!({"error": "Discord does not accept the token.\u{1b}[2J", "extra": {"started": true}}),
    );
    serve(
        connection,
        "channel.status",
        &json!({"channel": "discord"}),
        &accounts("discord", &[failing]),
    );
    let request = connection.expect("channel.status");
    connection.error(&request, 542, "channel.failed", "The channel fax did not answer.");
    serve(
        connection,
        "channel.status",
        &json!({"channel": "whatsapp"}),
        &accounts("whatsapp", &[connected()]),
    );
}

#[test]
fn p7_all_channels_are_listed_with_state_and_reason() {
    let run = played_all(&["channel", "list"], vec![Box::new(three)]).ok();
    insta::assert_snapshot!(run.stdout, @r"
    CHANNEL   ACCOUNT  STATE      ACTIVE  IN  OUT  LOST  REASON
    discord   default  failing                           Discord does not accept the token.[U+001B][2J
    fax                failing                           The channel fax did not answer.
    whatsapp  default  connected          1   0    2     as +31612345678
    ");
    let run = played_all(&["channel", "list", "--json"], vec![Box::new(three)]).ok();
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
fn a_channel_that_another_gateway_does_not_have_is_explained_with_its_own_channels() {
    for args in [
        &["channel", "fax", "status"][..],
        &["channel", "fax", "start"],
        &["channel", "fax", "login"],
    ] {
        let run = played_all(
            args,
            vec![Box::new(|connection| {
                let request = connection.expect("channel.status");
                connection.send(&json!({"type": "res", "id": request.id, "ok": false, "error": {"code": 540, "reason": "channel.unknown",
                    "message": "There is no such channel.", "hint": "Channels of this gateway: discord."}}));
            })],
        )
        .failed(1);
        assert!(run.stderr.contains("Channels of this gateway: discord."), "{run:?}");
        for invented in ["CHANNEL_", "Worker", "wrangler"] {
            assert!(!run.stderr.contains(invented), "{run:?}");
        }
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
            serve(
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
        serve(connection, "channel.logout", &which, &done);
    });
    let args = ["channel", "logout", "whatsapp", "--account", "work", "--yes"];
    let run = fed(&home, &gateway, &args, "", vec![look(), logout]).ok();
    assert!(run.stderr.contains("whatsapp (work) is logged out"), "{run:?}");
}
