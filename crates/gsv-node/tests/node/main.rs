//! A node against a scripted gateway.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod connection;
mod delivery;
mod durability;
mod own;
mod recovery;
mod transfers;
mod undo;

use std::path::Path;

use serde_json::{Value, json};
use support::{Conn, Gateway, Home, Node};

/// A gateway and a node that has not connected to it yet.
async fn started() -> (Gateway, Home, Node) {
    let gateway = Gateway::start().await;
    let home = Home::new();
    let node = Node::start(home.config(&gateway.url));
    (gateway, home, node)
}

/// A gateway and a node that has connected to it.
async fn connected() -> (Gateway, Home, Node, Conn) {
    let (mut gateway, home, node) = started().await;
    let conn = gateway.accept().await;
    (gateway, home, node, conn)
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

fn line_count(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

fn call_id(number: usize) -> String {
    format!("s/r1/{number}/0")
}
