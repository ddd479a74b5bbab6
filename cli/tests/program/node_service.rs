//! `gsv node install` and the other commands of its service, with a service manager and a gateway that the test plays.

use std::fs;
use std::process::{Child, Command};

use crate::common::fake_gateway::{Connection, FakeGateway, TOKEN};
use crate::common::runtime::is_alive;
use crate::common::services::Services;
use crate::common::{Home, Run, finish, signal, start, wait_for};
use serde_json::{Value, json};

struct World {
    gateway: FakeGateway,
    home: Home,
    services: Services,
}

impl World {
    fn new() -> Self {
        let (gateway, home) = (FakeGateway::new(), Home::new());
        home.write_config(&format!("url = \"{}\"\n", gateway.url()));
        fs::create_dir(home.root().join("work")).unwrap();
        let services = Services::new(&home);
        Self {
            gateway,
            home,
            services,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command();
        command
            .args(args)
            .envs(self.services.env())
            .current_dir(self.home.root());
        command
    }

    fn installing(&self) -> Command {
        let mut command = self.command(&["node", "install", "--id", "laptop", "--workspace"]);
        command.arg(self.home.root().join("work"));
        command
    }

    fn begin(&self, args: &[&str]) -> Child {
        start(&mut self.command(args))
    }

    /// With an admin token.
    fn begin_as_admin(&self, args: &[&str]) -> Child {
        start(self.command(args).env("GSV_TOKEN", TOKEN))
    }

    fn gsv(&self, args: &[&str]) -> Run {
        finish(self.begin(args))
    }

    /// Installs the node `laptop`, and answers as the gateway.
    fn install(&self) -> (Run, Connection) {
        self.install_with(&[])
    }

    fn install_with(&self, options: &[&str]) -> (Run, Connection) {
        let child = start(self.installing().args(options).env("GSV_TOKEN", TOKEN));
        let mut minting = self.gateway.accept();
        let looked_up = minting.expect("nodes.list");
        minting.answer(&looked_up, &json!({"nodes": [], "count": 0}));
        let request = minting.expect("tokens.create");
        let entry = json!({"tokenId": "n1", "kind": "node", "nodeId": "laptop", "last4": "beef", "createdAt": 1});
        minting.answer(&request, &json!({"token": "gsv_node_n1_beef", "entry": entry}));
        drop(minting);
        // The node, and the question whether it is connected, in any order.
        let (first, second) = (self.gateway.accept(), self.gateway.accept());
        let (node, asking) = if is_node(&first) {
            (first, second)
        } else {
            (second, first)
        };
        assert_eq!(node.hello["auth"]["token"], "gsv_node_n1_beef");
        Self::online(asking);
        (finish(child).ok(), node)
    }

    /// Forgets the node `laptop`, and answers as the gateway.
    fn forget(&self) -> Run {
        let forget = self.begin_as_admin(&["node", "forget", "--yes"]);
        let mut told = self.gateway.accept();
        let request = told.expect("tokens.list");
        let entry = |id: &str, node: &str| json!({"tokenId": id, "kind": "node", "nodeId": node, "last4": "beef", "createdAt": 1});
        told.answer(
            &request,
            &json!({"tokens": [entry("n1", "laptop"), entry("n9", "desk")], "count": 2}),
        );
        let request = told.expect("tokens.revoke");
        assert_eq!(request.params["tokenId"], "n1");
        told.answer(&request, &json!({"ok": true, "tokenId": "n1", "closed": 1}));
        let request = told.expect("node.forget");
        assert_eq!(request.params["nodeId"], "laptop");
        told.answer(
            &request,
            &json!({"ok": true, "nodeId": "laptop", "removed": true, "disconnected": false}),
        );
        finish(forget)
    }

    /// Answers the question whether the node is connected.
    fn online(mut asking: Connection) {
        let request = asking.expect("nodes.list");
        asking.answer(&request, &json!({"nodes": [laptop()], "count": 1}));
    }
}

fn is_node(connection: &Connection) -> bool {
    connection.hello["client"]["mode"] == "node"
}

fn laptop() -> Value {
    json!({"nodeId": "laptop", "online": true, "hostCapabilities": [], "toolCapabilities": {}, "tools": []})
}

impl Drop for World {
    fn drop(&mut self) {
        self.gsv(&["node", "uninstall", "--id", "laptop"]);
    }
}

#[test]
fn sv1_sv3_an_installed_node_connects_with_its_stored_token_and_is_removed_without_a_trace() {
    let world = World::new();
    let (run, node) = world.install();
    assert!(run.stderr.contains("connected to the gateway"), "{}", run.stderr);
    let unit = fs::read_to_string(world.services.only_unit()).unwrap();
    assert!(
        unit.contains("\"node\" \"--service\" \"--id\" \"laptop\" \"--workspace\""),
        "{unit}"
    );
    assert!(!unit.contains("beef") && !unit.contains(TOKEN), "{unit}");
    let status = world.gsv(&["node", "status", "--json"]).ok().json();
    assert_eq!((&status["state"], &status["old"]), (&json!("running"), &json!([])));
    assert!(world.services.lingers());
    assert!(!world.home.root().join("gsv").exists(), "no other workspace was made");

    // A second one changes nothing.
    let again = world.gsv(&["node", "install"]).ok();
    assert!(again.stderr.contains("already"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(world.services.only_unit()).unwrap(), unit);
    assert_eq!(world.gsv(&["node", "status", "--json"]).json()["pid"], status["pid"]);

    let log = world.gsv(&["node", "logs", "-n", "3"]).ok();
    assert!(log.stdout.contains(" info ") && !log.stdout.contains('{'), "{log:?}");
    let line = world.gsv(&["node", "logs", "-n", "1", "--json"]).ok().json();
    assert!(line["level"].is_string(), "{line}");

    drop(node);
    let removed = world.gsv(&["node", "uninstall"]).ok();
    assert!(removed.stderr.contains("gsv node forget"), "{}", removed.stderr);
    assert!(world.services.knows_nothing());
    assert!(!world.home.state().join("services").exists());
    assert!(world.home.state().join("node/laptop").is_dir());
    world.gsv(&["node", "status"]).failed(1);
}

#[test]
fn rm13_no_token_is_made_for_a_name_that_another_machine_has() {
    let world = World::new();
    let work = world.home.root().join("work");
    for command in [&["node"][..], &["node", "install"]] {
        let args = [command, &["--id", "laptop", "--workspace", work.to_str().unwrap()]].concat();
        let child = world.begin_as_admin(&args);
        let mut connection = world.gateway.accept();
        let request = connection.expect("nodes.list");
        connection.answer(&request, &json!({"nodes": [laptop()], "count": 1}));
        let run = finish(child).failed(3);
        assert!(
            run.stderr
                .contains("Another machine is connected to the gateway as `laptop`"),
            "{run:?}"
        );
        let next = format!("next: Use another name: `gsv {} --id OTHER`.", command.join(" "));
        assert!(run.stderr.contains(&next), "{run:?}");
        let config = fs::read_to_string(world.home.config_file()).unwrap();
        assert!(!config.contains("laptop"), "{config}");
    }
}

#[test]
fn sv4_a_node_in_a_terminal_is_not_ended_by_an_installation() {
    let world = World::new();
    let (_, node) = world.install();
    world.gsv(&["node", "uninstall"]).ok();
    drop(node);
    let work = world.home.root().join("work");
    let mut child = world.begin(&["node", "--id", "laptop", "--workspace", work.to_str().unwrap()]);
    let node = world.gateway.accept();
    // It is no service, and runs: no failure.
    let asking = world.begin_as_admin(&["node", "status"]);
    let mut asked = world.gateway.accept();
    let request = asked.expect("nodes.list");
    asked.answer(&request, &json!({"nodes": [laptop()], "count": 1}));
    let shown = finish(asking).ok().stdout;
    for words in [
        "running in a terminal",
        &child.id().to_string(),
        "gateway  connected",
        "not installed",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let status = world.gsv(&["node", "status", "--json"]).ok().json();
    assert_eq!(
        (&status["installed"], &status["state"], &status["pid"]),
        (&json!(false), &json!("running"), &json!(child.id()))
    );
    let run = world.gsv(&["node", "install", "--id", "laptop"]).failed(1);
    assert!(
        run.stderr.contains("already runs outside of the service")
            && run.stderr.contains(&format!("kill {}", child.id())),
        "{}",
        run.stderr
    );
    signal(&child, "-TERM");
    drop(node);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sv7_a_service_gets_no_token_of_a_shell_and_a_refused_node_ends_it() {
    let world = World::new();
    let run = finish(start(world.installing().env("GSV_TOKEN", "gsv_node_n2_cafe"))).failed(2);
    assert!(run.stderr.contains("local-config set node.token -"), "{}", run.stderr);
    assert!(world.services.units().is_empty());
    // The token of the node is revoked later: the service does not try forever, and says so.
    let (_, node) = world.install();
    drop(node);
    world
        .gateway
        .refuse(401, "auth.invalid_token", "This token is revoked.", 4001);
    wait_for("the failure", || {
        (world.gsv(&["node", "status", "--json"]).json()["state"] == "failed").then_some(())
    });
    let status = world.gsv(&["node", "status"]).failed(1);
    assert!(status.stderr.contains("gsv node logs --id laptop"), "{}", status.stderr);
    assert!(world.gsv(&["node", "logs"]).ok().stdout.contains("revoked"));
}

#[test]
fn sv8_a_forgotten_node_has_no_service_no_token_and_no_entry_and_keeps_its_files() {
    let world = World::new();
    let (_, _node) = world.install();
    fs::write(world.home.root().join("work/kept"), "x").unwrap();
    let not = world.gsv(&["node", "forget"]).failed(2);
    assert!(not.stderr.contains("re-run with --yes"), "{}", not.stderr);
    assert_eq!(world.services.units().len(), 1);
    world.forget().ok();
    assert!(world.services.knows_nothing());
    let config = fs::read_to_string(world.home.config_file()).unwrap();
    assert!(!config.contains("beef") && !config.contains("laptop"), "{config}");
    assert!(world.home.root().join("work/kept").exists());
    let unknown = world.gsv(&["node", "forget", "--id", "desk", "--yes"]).failed(1);
    assert!(unknown.stderr.contains("gsv nodes forget"), "{}", unknown.stderr);
}

#[test]
fn sv2_sv8_a_forget_that_failed_midway_is_completed_by_the_next() {
    for refused in ["disable-linger", "daemon-reload", " disable ", " stop "] {
        let world = World::new();
        let (_, _node) = world.install();
        world.services.refuse(refused);
        let run = world.gsv(&["node", "forget", "--yes"]).failed(1);
        assert!(run.stderr.contains("Access denied"), "{refused}: {}", run.stderr);
        world.services.fail_nothing();
        world.forget().ok();
        assert!(world.services.knows_nothing(), "{refused}");
        assert!(!world.home.state().join("services").exists(), "{refused}");
    }
}

#[test]
fn sv2_sv8_a_forget_ends_a_service_whose_unit_was_removed_by_hand() {
    let world = World::new();
    let (_, _node) = world.install();
    let status = world.gsv(&["node", "status", "--json"]).json();
    let pid = status["pid"].as_u64().unwrap();
    fs::remove_file(world.services.only_unit()).unwrap();
    let reloaded = Command::new(world.home.root().join("fake/systemctl"))
        .args(["--user", "--no-ask-password", "daemon-reload"])
        .env("HOME", world.home.root())
        .env("FAKE", world.home.root().join("fake"))
        .status();
    assert!(reloaded.unwrap().success());
    world.forget().ok();
    assert!(!is_alive(pid));
    assert!(world.services.knows_nothing());
    assert!(!world.home.state().join("services").exists());
}

#[test]
fn sv2_a_second_installation_keeps_the_address_and_says_that_it_confines_the_file_tools() {
    let world = World::new();
    world.home.write_config("url = \"ws://127.0.0.1:1\"\n");
    let url = world.gateway.url();
    let (_, node) = world.install_with(&["--url", &url, "--allow-outside"]);
    let again = world.begin(&["node", "install", "--id", "laptop"]);
    let _next = world.gateway.accept();
    drop(node);
    let again = finish(again).ok();
    let unit = fs::read_to_string(world.services.only_unit()).unwrap();
    assert!(unit.contains(&format!("\"--url\" \"{url}\"")), "{unit}");
    assert!(!unit.contains("--allow-outside"), "{unit}");
    assert!(again.stderr.contains(&format!("last installation, {url}")), "{again:?}");
    assert!(again.stderr.contains("does not keep --allow-outside"), "{again:?}");
}

#[test]
fn sv2_the_workspace_of_the_last_start_comes_before_that_of_the_config() {
    let world = World::new();
    let (_, node) = world.install();
    world.gsv(&["node", "uninstall"]).ok();
    drop(node);
    let other = world.home.root().join("other");
    fs::create_dir(&other).unwrap();
    world
        .gsv(&["local-config", "set", "node.workspace", other.to_str().unwrap()])
        .ok();
    let again = world.begin(&["node", "install", "--id", "laptop"]);
    let _node = world.gateway.accept();
    let again = finish(again).ok();
    let work = world.home.root().join("work");
    assert!(
        again.stderr.contains(&format!("works in {}.", work.display())),
        "{again:?}"
    );
}

#[test]
fn sv1_an_address_with_a_query_or_a_fragment_gets_into_no_unit() {
    let world = World::new();
    let work = world.home.root().join("work");
    for (end, why) in [
        ("?token=s3cret", "query or a fragment"),
        ("#s3cret", "is not an address"),
    ] {
        let url = format!("ws://127.0.0.1:1/{end}");
        let args = [
            "node",
            "install",
            "--workspace",
            work.to_str().unwrap(),
            "--id",
            "laptop",
        ];
        let run = world.gsv(&[&args[..], &["--url", &url]].concat()).failed(2);
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
        assert!(world.services.units().is_empty());
    }
}

#[test]
fn sv7_without_a_service_manager_a_node_is_run_by_hand_and_nothing_is_left_to_uninstall() {
    let world = World::new();
    let gsv = |args: &[&str], path: Option<&str>| {
        let mut command = world.command(args);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        finish(start(&mut command))
    };
    // One that can't be reached, as in a container, and none.
    world.services.refuse("property=Version");
    for path in [None, Some("/nonexistent")] {
        let run = gsv(&["node", "stop", "--id", "laptop"], path).failed(1);
        assert!(
            run.stderr
                .contains(". The node `laptop` does not run now: nothing was stopped."),
            "{run:?}"
        );
        let run = gsv(&["service", "stop"], path).failed(1);
        assert!(run.stderr.contains("next: To stop the gateway: `gsv down`."), "{run:?}");
        for verb in ["install", "status", "start"] {
            let run = gsv(&["node", verb, "--id", "laptop"], path).failed(1);
            assert!(run.stderr.contains("`gsv node --id laptop`"), "{run:?}");
            assert!(!run.stderr.contains("gsv up"), "{run:?}");
            let lingers = run.stderr.contains("enable-linger");
            assert_eq!(lingers, verb == "install" && path.is_none(), "{run:?}");
        }
        let run = gsv(&["service", "status"], path).failed(1);
        assert!(run.stderr.contains("`gsv up --foreground`"), "{run:?}");
        for uninstall in [&["service", "uninstall"][..], &["node", "uninstall", "--id", "laptop"]] {
            let run = gsv(uninstall, path).ok();
            assert!(run.stderr.contains("was not installed"), "{run:?}");
        }
    }
    world.services.fail_nothing();
}
