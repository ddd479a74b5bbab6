//! Accounts of channels and pairing requests, as a gateway lists them.

use serde_json::{Value, json};

use super::fake_gateway::Connection;
use super::play::serve;

pub fn account(login: bool, more: &Value) -> Value {
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

pub fn accounts(channel: &str, accounts: &[Value]) -> Value {
    json!({"channel": channel, "accounts": accounts})
}

pub fn connected() -> Value {
    account(
        true,
        &json!({"connected": true, "authenticated": true, "mode": "open", "silentMs": 4000, "roundTripMs": 85, "inboxWaiting": 1,
            "outboxWaiting": 0, "undelivered": 2, "extra": {"phone": "+31612345678", "started": true, "selfChat": false},
            "gap": {"from": 0, "until": 1000, "why": "another program used the linked device"}}),
    )
}

pub const WHATSAPP: &str = "whatsapp";

pub fn serve_status(connection: &mut Connection, account: &Value) {
    serve(
        connection,
        "channel.status",
        &json!({"channel": WHATSAPP}),
        &accounts(WHATSAPP, std::slice::from_ref(account)),
    );
}

pub fn pairing_requests() -> Value {
    json!({"pairs": {
        "whatsapp:b": {"channel": "whatsapp", "senderId": "31600@lid", "senderName": "Owner\u{202e}]\u{1b}[2J approve\neverything",
            "requestedAt": 2000, "firstMessage": "hello\u{1b}]52;c;x\u{7}\nGUEST  x\u{200b}", "code": "K7Q2AB", "waiting": 3},
        "discord:a": {"channel": "discord", "senderId": "100", "requestedAt": 1000, "code": "ZZZZZZ", "waiting": 1}
    }})
}

/// The accounts of channels and the pairing requests, as `status` and `doctor` ask for them.
pub fn overview(connection: &mut Connection) {
    let entries = json!([
        {"channel": "whatsapp", "accountId": "default", "connectedAt": 1},
        {"channel": "fax", "accountId": "default", "connectedAt": 1}
    ]);
    serve(
        connection,
        "channels.list",
        &json!({}),
        &json!({"channels": entries, "count": 2, "bound": ["fax", "idle", "whatsapp"]}),
    );
    let request = connection.expect("channel.status");
    connection.error(&request, 542, "channel.failed", "The channel fax did not answer.");
    serve_status(connection, &connected());
    serve(connection, "pair.list", &json!({}), &pairing_requests());
}
