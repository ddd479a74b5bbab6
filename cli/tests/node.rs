//! `gsv node` against a gateway that the test plays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::fake_gateway::{FakeGateway, TOKEN};
use common::{Home, mode};
use serde_json::json;

#[test]
fn a_node_creates_its_token_and_stores_only_that() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\n", gateway.url()));
    let mut child = home
        .command()
        .args(["node", "--id", "laptop", "--workspace", home.root().to_str().unwrap()])
        .env("GSV_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut connection = gateway.accept();
    assert_eq!(connection.hello["auth"]["token"], TOKEN);
    let request = connection.expect("tokens.create");
    assert_eq!(
        (&request.params["kind"], &request.params["nodeId"]),
        (&json!("node"), &json!("laptop"))
    );
    let entry = json!({"tokenId": "n1", "kind": "node", "nodeId": "laptop", "last4": "beef", "createdAt": 1});
    connection.answer(&request, &json!({"token": "gsv_node_n1_beef", "entry": entry}));
    let node = gateway.accept();
    assert_eq!(
        (&node.hello["client"]["mode"], &node.hello["client"]["id"]),
        (&json!("node"), &json!("laptop"))
    );
    assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
    assert!(node.hello["ledger"].is_object());
    let config = fs::read_to_string(home.config_file()).unwrap();
    assert!(
        config.contains("token = \"gsv_node_n1_beef\"")
            && config.contains("id = \"laptop\"")
            && !config.contains(TOKEN),
        "{config}"
    );
    assert!(
        Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    drop(node);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(mode(&home.state().join("node/laptop")), 0o700);

    // The second time it needs no admin token.
    let mut child = home.command().args(["node"]).stderr(Stdio::null()).spawn().unwrap();
    let node = gateway.accept();
    assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    drop(node);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_node_without_any_token_says_how_to_get_one() {
    let home = Home::new();
    let run = home.gsv(["node", "--id", "laptop"]).failed(3);
    assert!(
        run.stderr.contains("gsv token create --scope node --node laptop"),
        "{}",
        run.stderr
    );
    home.gsv(["node"]).failed(2);
    home.gsv(["node", "--id", "-x"]).failed(2);
    let run = home
        .gsv(["node", "--id", "x", "--workspace", "/nowhere/at/all"])
        .failed(1);
    assert!(run.stderr.contains("--workspace"), "{}", run.stderr);
}
