//! What a node says about the ends of transfers.

use std::fs;

use serde_json::json;

use crate::support::{Gateway, Home, Node};

#[tokio::test]
async fn tf4_what_the_gateway_refuses_for_the_number_of_requests_is_said_again() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    fs::write(home.file("a.txt"), "content").unwrap();
    let node = Node::start(home.config(&gateway.url));
    let mut conn = gateway.accept().await;
    conn.event("transfer.send", json!({"transferId": 7, "path": "a.txt"}));
    let refused = conn.request("transfer.meta").await;
    conn.refuse(&refused.id, 429, "limit.rate", true);
    let again = conn.request("transfer.meta").await;
    assert_eq!(
        (&again.params, again.params["size"].as_u64()),
        (&refused.params, Some(7))
    );
    conn.answer(&again, json!({"ok": true}));
    conn.event("transfer.start", json!({"transferId": 7, "offset": 0}));
    let refused = conn.request("transfer.complete").await;
    conn.refuse(&refused.id, 429, "limit.rate", true);
    let again = conn.request("transfer.complete").await;
    assert_eq!(again.params["sha256"].as_str().map(str::len), Some(64));
    conn.answer(&again, json!({"ok": true}));
    // Another error ends the attempt: nothing is said again.
    conn.event("transfer.send", json!({"transferId": 8, "path": "a.txt"}));
    let refused = conn.request("transfer.meta").await;
    conn.refuse(&refused.id, 404, "transfer.unknown", false);
    conn.settle().await;
    assert_eq!(conn.untaken("transfer.meta").len(), 0);
    node.stop().await.unwrap();
}
