//! `gsv node` against a gateway that the test plays.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::fake_gateway::{Connection, FakeGateway, TOKEN};
use crate::common::{Home, finish, mode, signal, start};
use serde_json::json;

/// Before a token is made, the name is looked up.
fn no_machine_is_online(connection: &mut Connection) {
    let request = connection.expect("nodes.list");
    connection.answer(&request, &json!({"nodes": [], "count": 0}));
}

#[test]
fn a_node_creates_its_token_and_stores_only_that() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\n", gateway.url()));
    let workspace = home.root().join("work");
    fs::create_dir(&workspace).unwrap();
    let mut child = home
        .command()
        .args(["node", "--id", "laptop", "--workspace", workspace.to_str().unwrap()])
        .env("GSV_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut connection = gateway.accept();
    assert_eq!(connection.hello["auth"]["token"], TOKEN);
    no_machine_is_online(&mut connection);
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
    signal(&child, "-TERM");
    drop(node);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(mode(&home.state().join("node/laptop")), 0o700);

    // The second time it needs no admin token.
    let mut child = home.command().args(["node"]).stderr(Stdio::null()).spawn().unwrap();
    let node = gateway.accept();
    assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
    signal(&child, "-INT");
    drop(node);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_doctor_of_a_machine_that_is_only_a_node_looks_at_the_node() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n\n[node]\nid = \"desk\"\ntoken = \"gsv_node_n1_beef\"\n",
        gateway.url()
    ));
    let workspace = home.root().join("work");
    fs::create_dir(&workspace).unwrap();
    let check = |run: &crate::common::Run, name: &str| {
        let checks = run.json()["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == name).unwrap()
    };
    // The gateway knows the token: it only refuses a client with it.
    for (code, reason, says) in [
        (403, "auth.forbidden", "gsv node --id desk"),
        (
            401,
            "auth.required",
            "Make an invitation on the gateway's machine: `gsv invite node`",
        ),
    ] {
        let child = start(home.command().args(["doctor", "--json"]));
        let (mut connection, request) = gateway.greet();
        assert_eq!(connection.hello["auth"]["token"], "gsv_node_n1_beef");
        assert_eq!(connection.hello["client"]["mode"], "client");
        connection.error(&request, code, reason, "No.");
        connection.close(4001, reason);
        let run = finish(child).failed(1);
        assert!(check(&run, "node")["next"].as_str().unwrap().contains(says), "{run:?}");
    }
    let run = home.gsv(["doctor", "--offline", "--json"]).failed(1);
    assert_eq!(check(&run, "token")["level"], "ok");
    assert_eq!(check(&run, "node")["level"], "fail");
    assert!(run.stdout.contains("gsv node --id desk"), "{run:?}");
    let mut child = home
        .command()
        .args(["node", "--workspace", workspace.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let node = gateway.accept();
    let run = crate::common::wait_for("the node is connected", || {
        let run = home.gsv(["doctor", "--json"]);
        (check(&run, "node")["level"] == "ok").then_some(run)
    })
    .ok();
    assert_eq!(check(&run, "node")["found"], "`desk` runs and is connected");
    let second = home.gsv(["node", "--workspace", workspace.to_str().unwrap()]).failed(1);
    let words = second.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Node `desk` is already running (pid"), "{words}");
    assert!(
        words.contains("next: Stop it, or start this one under another name"),
        "{words}"
    );
    signal(&child, "-TERM");
    drop(node);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn bk12_a_node_that_starts_during_a_restore_is_refused() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\ntoken = \"{TOKEN}\"\n", gateway.url()));
    home.write_state("port", "1");
    let workspace = home.root().join("work");
    fs::create_dir(&workspace).unwrap();
    let lock = fs::File::create(home.state().join("node.lock")).unwrap();
    lock.try_lock().unwrap();
    let run = home
        .gsv(["node", "--id", "laptop", "--workspace", workspace.to_str().unwrap()])
        .failed(4);
    assert!(run.stderr.contains("`gsv restore` is replacing the state"), "{run:?}");
    assert!(!home.state().join("node").exists());
}

#[test]
fn f19_a_workspace_around_gsvs_own_folders_is_refused_before_a_token_is_made() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\ntoken = \"{TOKEN}\"\n", gateway.url()));
    for workspace in [home.root(), home.config_file().parent().unwrap(), &home.state()] {
        fs::create_dir_all(workspace).unwrap();
        let run = home
            .gsv(["node", "--id", "laptop", "--workspace", workspace.to_str().unwrap()])
            .failed(2);
        assert!(
            run.stderr.contains("overlap") && run.stderr.contains("--workspace"),
            "{}",
            run.stderr
        );
    }
    assert!(!fs::read_to_string(home.config_file()).unwrap().contains("laptop"));
}

#[test]
fn in_the_home_folder_the_agent_works_in_a_folder_of_its_own() {
    let home = Home::new();
    let mut command = home.command();
    command.args(["node", "--id", "laptop"]).current_dir(home.root());
    let run = finish(start(&mut command)).failed(3);
    let folder = home.root().join("gsv");
    assert!(folder.is_dir());
    assert!(run.stderr.contains("--workspace"), "{}", run.stderr);
    assert!(run.stderr.contains(folder.to_str().unwrap()), "{}", run.stderr);
}

#[test]
fn p10_a_node_without_any_token_says_how_to_get_one() {
    let home = Home::new();
    let run = home.gsv(["node", "--id", "laptop"]).failed(3);
    // Before there is any gateway: one can be started here, too.
    assert!(
        run.stderr.contains("next: Start a gateway on this machine: `gsv up`"),
        "{run:?}"
    );
    assert!(run.stderr.contains(INVITATION.trim_start_matches("next: ")), "{run:?}");
    home.write_config("url = \"wss://gsv.example:1\"\n");
    let run = home.gsv(["node", "--id", "laptop"]).failed(3);
    assert!(run.stderr.contains(INVITATION), "{run:?}");
    assert!(
        run.stderr.contains("gsv token create --scope node --node laptop"),
        "{}",
        run.stderr
    );
    home.gsv(["node", "--id", "-x"]).failed(2);
    let run = home
        .gsv(["node", "--id", "x", "--workspace", "/nowhere/at/all"])
        .failed(1);
    assert!(run.stderr.contains("--workspace"), "{}", run.stderr);
}

fn state(port: &str) -> String {
    json!({"phase": "ready", "supervisorPid": 1, "supervisorStart": "0", "bootId": "none", "port": port.parse::<u16>().unwrap(),
        "version": "1", "startedAt": 1, "restarts": 0})
    .to_string()
}
fn port(gateway: &FakeGateway) -> String {
    let url = gateway.url();
    let (_, rest) = url.rsplit_once(':').unwrap();
    rest.trim_end_matches("/ws").to_owned()
}

#[test]
fn p6_1_a_node_follows_this_machine_s_gateway_to_another_port() {
    let (first, second) = (FakeGateway::new(), FakeGateway::new());
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        first.url()
    ));
    home.write_state("port", &port(&first));
    home.write_state("state.json", &state(&port(&first)));
    let mut child = start(home.command().arg("node"));
    let node = first.accept();
    home.write_state("state.json", &state(&port(&second)));
    drop(first);
    node.cut();
    let moved = second.accept();
    assert_eq!(moved.hello["auth"]["token"], "gsv_node_a_lap");
    signal(&child, "-TERM");
    drop(moved);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn f46_a_second_node_keeps_its_token_when_the_gateway_moved() {
    let (first, second) = (FakeGateway::new(), FakeGateway::new());
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        first.url()
    ));
    let made = runs(&first, &home, &["--id", "box"], Some("gsv_node_b_box"));
    home.gsv(["local-config", "set", "url", &second.url()]).ok();
    assert_eq!(runs(&second, &home, &["--id", "box"], None), made);
}

const INVITATION: &str =
    "next: Make an invitation on the gateway's machine: `gsv invite node`, then run its line here.";

#[test]
fn h2_the_log_of_a_service_says_once_that_the_token_was_refused_and_what_to_do() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        gateway.url()
    ));
    let child = start(home.command().args(["node", "--service", "--id", "lap"]));
    let (mut connection, request) = gateway.greet();
    let hint = "Set a valid token: `gsv local-config set token -`.";
    let error = json!({"code": 401, "reason": "auth.required", "message": "Token rejected.", "hint": hint});
    connection.send(&json!({"type": "res", "id": request.id, "ok": false, "error": error}));
    connection.close(4001, "auth.required");
    finish(child).failed(3);
    let log = home.gsv(["node", "logs", "--id", "lap"]).ok().stdout;
    assert_eq!(log.matches("Token rejected.").count(), 1, "{log}");
    assert!(
        log.contains("Make an invitation on the gateway's machine: `gsv invite node`"),
        "{log}"
    );
    assert!(!log.contains("set token -"), "{log}");
}

#[test]
fn h4_a_node_whose_name_another_machine_has_is_told_to_use_another() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        gateway.url()
    ));
    let child = start(home.command().arg("node"));
    gateway.refuse(
        403,
        "auth.forbidden",
        "lap is connected already, with another token.",
        4003,
    );
    let run = finish(child).failed(3);
    assert!(
        run.stderr
            .contains("Another machine is connected to the gateway as `lap`"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("next: Use another name: `gsv invite node --name OTHER`"),
        "{run:?}"
    );
}

#[test]
fn sv8_a_machine_that_is_only_a_node_forgets_its_part_and_names_the_rest() {
    let home = Home::new();
    let url = "url = \"wss://gsv.example:1\"\n";
    home.write_config(&format!("{url}[node]\nid = \"lap\"\ntoken = \"gsv_node_n1_beef\"\n"));
    let run = home.gsv(["node", "forget", "--id", "lap", "--yes"]).ok();
    assert!(
        run.stderr
            .contains("On the gateway's machine, run: `gsv token revoke n1 && gsv nodes forget lap --yes`"),
        "{run:?}"
    );
    let config = fs::read_to_string(home.config_file()).unwrap();
    assert!(
        !config.contains("beef") && !config.contains("lap") && config.contains(url),
        "{config}"
    );
    // A second node of the machine has its token in a file.
    home.write_state("port", "1");
    let dir = home.state().join("node/box");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("token.json");
    fs::write(&file, r#"{"url": "wss://gsv.example:1", "token": "gsv_node_n2_cafe"}"#).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let run = home.gsv(["node", "forget", "--id", "box", "--yes"]).ok();
    assert!(
        run.stderr.contains("gsv token revoke n2 && gsv nodes forget box --yes"),
        "{run:?}"
    );
    assert!(!file.exists());
}

#[test]
fn h2_a_node_with_a_refused_token_ends_and_names_the_setting() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!(
        "url = \"{}\"\n[node]\nid = \"lap\"\ntoken = \"gsv_node_a_lap\"\n",
        gateway.url()
    ));
    let child = start(home.command().arg("node"));
    gateway.refuse(401, "auth.required", "Token rejected.", 4001);
    let run = finish(child).failed(3);
    assert!(run.stderr.contains("token of the node `lap`"), "{run:?}");
    assert!(run.stderr.contains(INVITATION), "{run:?}");
    assert!(run.stderr.contains("gsv local-config set node.token -"), "{run:?}");
    assert!(!run.stderr.contains("set token -"), "{run:?}");
    let child = start(home.command().arg("node").env("GSV_TOKEN", "gsv_node_c_lap"));
    gateway.refuse(405, "auth.bound", "Bound to another node.", 4003);
    let run = finish(child).failed(3);
    assert!(run.stderr.contains("GSV_TOKEN"), "{run:?}");
}

/// Starts a node whose token the test makes, and ends it. Gives the token that it connects with.
fn runs(gateway: &FakeGateway, home: &Home, args: &[&str], new_token: Option<&str>) -> (String, String) {
    let mut child = start(
        home.command()
            .arg("node")
            .args(args)
            .env("GSV_TOKEN", new_token.map_or("", |_| TOKEN)),
    );
    if let Some(token) = new_token {
        let mut connection = gateway.accept();
        no_machine_is_online(&mut connection);
        let request = connection.expect("tokens.create");
        let id = &request.params["nodeId"];
        let entry = json!({"tokenId": "n1", "kind": "node", "nodeId": id, "last4": "beef", "createdAt": 1});
        connection.answer(&request, &json!({"token": token, "entry": entry}));
    }
    let node = gateway.accept();
    let hello = |path: &str| node.hello.pointer(path).unwrap().as_str().unwrap().to_owned();
    let found = (hello("/client/id"), hello("/auth/token"));
    signal(&child, "-TERM");
    drop(node);
    child.wait().unwrap();
    found
}

#[test]
fn f46_a_second_node_does_not_overwrite_the_first() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\n", gateway.url()));
    let pair = |id: &str, token: &str| (id.to_owned(), token.to_owned());
    let (laptop, other) = ("gsv_node_a_laptop", "gsv_node_b_box");
    assert_eq!(
        runs(&gateway, &home, &["--id", "laptop"], Some(laptop)),
        pair("laptop", laptop)
    );
    assert_eq!(runs(&gateway, &home, &["--id", "box"], Some(other)), pair("box", other));
    // Both know their tokens, and the machine keeps its first name.
    assert_eq!(runs(&gateway, &home, &[], None), pair("laptop", laptop));
    assert_eq!(runs(&gateway, &home, &["--id", "box"], None), pair("box", other));
    assert_eq!(mode(&home.state().join("node/box/token.json")), 0o600);
}

#[test]
fn f53_a_node_without_a_name_takes_the_host_s() {
    let gateway = FakeGateway::new();
    let home = Home::new();
    home.write_config(&format!("url = \"{}\"\n", gateway.url()));
    let host = Command::new("uname").arg("-n").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap();
    let (id, _) = runs(&gateway, &home, &[], Some("gsv_node_a_host"));
    assert_eq!(id, host.trim().split('.').next().unwrap());
}

#[test]
fn the_log_of_a_node_that_this_machine_does_not_have_is_refused() {
    let home = Home::new();
    let run = home.gsv(["node", "logs", "--id", "nosuch"]).failed(1);
    assert!(run.stderr.contains("This machine has no node `nosuch`."), "{run:?}");
    home.write_state("port", "1");
    fs::create_dir_all(home.state().join("node/laptop")).unwrap();
    let run = home.gsv(["node", "logs", "--id", "nosuch"]).failed(1);
    assert!(run.stderr.contains("Its nodes: laptop."), "{run:?}");
    // One that has not logged anything yet.
    home.gsv(["node", "logs", "--id", "laptop"]).ok();
}

#[test]
fn node_list_is_the_list_of_machines() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(home.command().args(["node", "list"]));
    let mut connection = gateway.accept();
    let request = connection.expect("nodes.list");
    let lap = json!({"nodeId": "lap", "online": false, "hostCapabilities": [], "toolCapabilities": {}, "tools": []});
    connection.answer(&request, &json!({"nodes": [lap], "count": 1}));
    assert!(finish(child).ok().stdout.contains("lap"));
}

#[test]
fn a_connected_machine_is_not_forgotten_and_the_way_is_named() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(home.command().args(["nodes", "forget", "lap", "--yes"]));
    let mut connection = gateway.accept();
    let request = connection.expect("node.forget");
    connection.error(&request, 409, "node.online", "The node is connected.");
    let run = finish(child);
    assert!(run.stderr.contains("`gsv nodes forget lap --force`"), "{run:?}");
}

#[test]
fn a_forgotten_machine_is_removed_and_its_token_is_named() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let lap = json!({"nodeId": "lap", "online": false, "hostCapabilities": [], "toolCapabilities": {}, "tools": []});
    for (nodes, code, says) in [(json!([lap]), 2, "--yes"), (json!([]), 1, "There is no machine lap.")] {
        let child = start(home.command().args(["nodes", "forget", "lap"]));
        let mut connection = gateway.accept();
        let request = connection.expect("nodes.list");
        connection.answer(&request, &json!({"nodes": nodes, "count": 0}));
        let refused = finish(child).failed(code);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    let child = start(home.command().args(["nodes", "forget", "lap", "--yes"]));
    let mut connection = gateway.accept();
    let request = connection.expect("node.forget");
    assert_eq!(request.params, json!({"nodeId": "lap"}));
    connection.answer(
        &request,
        &json!({"ok": true, "nodeId": "lap", "removed": true, "disconnected": false}),
    );
    let request = connection.expect("tokens.list");
    let token = |id: &str, node: &str, more: serde_json::Value| {
        let mut token = json!({"tokenId": id, "kind": "node", "nodeId": node, "last4": "beef", "createdAt": 1});
        token.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        token
    };
    let tokens = [
        token("t1", "lap", json!({})),
        token("t2", "lap", json!({"revokedAt": 2})),
        token("t3", "lap", json!({"expiresAt": 3})),
        token("t4", "other", json!({})),
    ];
    connection.answer(&request, &json!({"tokens": tokens, "count": 4}));
    let run = finish(child).ok();
    assert!(
        run.stderr
            .contains("`lap` is removed. Its node can connect again, because"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("To remove it for good: `gsv token revoke t1`\n"),
        "{}",
        run.stderr
    );
    for other in ["t2", "t3", "t4"] {
        assert!(!run.stderr.contains(other), "{}", run.stderr);
    }
}
