//! The first token, and the local config that several gateways of a machine take turns in.

use std::fs;

use crate::common::fake_gateway::FakeGateway;
use crate::common::runtime::{Embedded, free_port};
use crate::common::{finish, mode, start};

#[test]
fn s4_the_first_token_is_only_in_the_local_config_and_its_hash_reaches_the_gateway() {
    let gateway = Embedded::new();
    let run = gateway.up().ok();
    let config = fs::read_to_string(gateway.home.config_file()).unwrap();
    let token = config
        .lines()
        .find_map(|line| line.strip_prefix("token = \""))
        .unwrap()
        .trim_end_matches('"')
        .to_owned();
    assert!(
        token.starts_with("gsv_admin_") && token.len() == "gsv_admin_".len() + 10 + 1 + 64,
        "{token}"
    );
    assert!(config.contains(&format!("url = \"ws://127.0.0.1:{}/ws\"", gateway.port)));
    assert_eq!(mode(&gateway.home.config_file()), 0o600);

    let environment = gateway.get("/env").unwrap();
    let hash = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let hash = hash
        .as_ref()
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    assert_eq!(environment["hash"], hash.as_str());
    assert_eq!(
        (
            &environment["environment"],
            &environment["session"],
            &environment["storage"]
        ),
        (&"embedded".into(), &true.into(), &true.into())
    );

    let secret = token.rsplit('_').next().unwrap();
    assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret));
    for file in ["config.capnp", "bootstrap.json", "state.json", "gateway.log"] {
        let path = gateway.home.state().join("gateway").join(file);
        assert!(!fs::read_to_string(&path).unwrap().contains(secret), "{file}");
        assert_eq!(mode(&path), 0o600, "{file}");
    }
    for dir in ["", "gateway", "workspace", "gateway/do"] {
        assert_eq!(mode(&gateway.home.state().join(dir)), 0o700, "{dir}");
    }

    gateway.gsv(&["down"]).ok();
    gateway.up().ok();
    assert_eq!(
        fs::read_to_string(gateway.home.config_file()).unwrap(),
        config,
        "the token is made once"
    );
}

#[test]
fn a_lost_first_token_can_be_replaced() {
    let gateway = Embedded::new();
    gateway.up().ok();
    gateway.gsv(&["down"]).ok();
    let before = gateway.gsv(&["local-config", "get", "token"]).ok().stdout;
    gateway.gsv(&["local-config", "unset", "token"]).ok();
    let run = gateway.up().ok();
    assert!(run.stderr.contains("--new-token"), "{}", run.stderr);
    let again = gateway.up().ok();
    assert!(again.stderr.contains("already running"), "{}", again.stderr);
    assert!(again.stderr.contains("gsv up --new-token"), "{}", again.stderr);
    let refused = gateway.gsv(&["up", "--new-token"]).failed(1);
    assert!(refused.stderr.contains("gsv down"), "{}", refused.stderr);
    gateway.gsv(&["down"]).ok();
    let run = gateway
        .gsv(&["up", "--new-token", "--port", &gateway.port.to_string()])
        .ok();
    assert!(run.stderr.contains("had before is revoked"), "{}", run.stderr);
    let after = gateway.gsv(&["local-config", "get", "token"]).ok().stdout;
    assert!(after.starts_with("gsv_admin_") && after != before);
}

#[test]
fn bk13_a_new_first_token_in_place_of_a_stored_one_is_said() {
    let gateway = Embedded::new();
    let first = gateway.up().ok();
    assert!(!first.stderr.contains("new first admin token"), "{first:?}");
    gateway.gsv(&["down"]).ok();
    // As after a restore without secrets.
    fs::remove_file(gateway.home.state().join("gateway/bootstrap.json")).unwrap();
    let run = gateway.gsv(&["up"]).ok();
    assert!(
        run.stderr
            .contains("The token is a new first admin token of this gateway."),
        "{run:?}"
    );
}

#[test]
fn a_config_of_another_gateway_is_not_changed() {
    let gateway = Embedded::new();
    let config = "url = \"wss://gsv.example.com/ws\"\ntoken = \"gsv_client_abc_def\"\n";
    gateway.home.write_config(config);
    let run = gateway.up().ok();
    assert_eq!(fs::read_to_string(gateway.home.config_file()).unwrap(), config);
    // The token is stored and not shown; the address alone is enough for a command.
    assert!(!run.stderr.contains("gsv_admin_"), "{}", run.stderr);
    let own = format!("ws://127.0.0.1:{}/ws", gateway.port);
    assert!(
        run.stderr.contains(&format!("`gsv --url {own} chat`")),
        "{}",
        run.stderr
    );
    let logins = gateway.home.config_dir().join("logins.json");
    assert_eq!(mode(&logins), 0o600);
    let logins: serde_json::Value = serde_json::from_str(&fs::read_to_string(logins).unwrap()).unwrap();
    let token = logins["logins"][0]["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("gsv_admin_"));
    gateway.gsv(&["down"]).ok();
    // A gateway that the test plays, at the address of this machine's own.
    let played = FakeGateway::new();
    gateway.home.write_state("port", &played.port.to_string());
    let mut command = gateway.command();
    command.args(["--url", &played.url(), "token", "list"]);
    let child = start(&mut command);
    assert_eq!(played.accept().hello["auth"]["token"], token.as_str());
    finish(child);
    // No other address gets it.
    let other = FakeGateway::new();
    let mut command = gateway.command();
    command.args(["--url", &other.url(), "token", "list"]);
    let child = start(&mut command);
    assert_eq!(other.accept().hello["auth"]["token"], "gsv_client_abc_def");
    finish(child);
}

#[test]
fn bk25_where_no_login_of_the_own_gateway_is_known_it_is_said_with_what_to_do() {
    let gateway = Embedded::new();
    let config = "url = \"wss://gsv.example.com/ws\"\ntoken = \"gsv_client_abc_def\"\n";
    gateway.home.write_config(config);
    gateway.up().ok();
    let logins = gateway.home.config_dir().join("logins.json");
    fs::remove_file(&logins).unwrap();
    // While it runs, and at its next start.
    let running = gateway.up().ok();
    gateway.gsv(&["down"]).ok();
    let next = gateway.up().ok();
    for run in [running, next] {
        assert!(run.stderr.contains("no token of this gateway is known"), "{run:?}");
        assert!(run.stderr.contains("`gsv down && gsv up --new-token`"), "{run:?}");
    }
    // The way that it names.
    gateway.gsv(&["down"]).ok();
    let port = gateway.port.to_string();
    let new = gateway.gsv(&["up", "--new-token", "--port", &port]).ok();
    assert!(new.stderr.contains("which has its token from"), "{new:?}");
    assert!(fs::read_to_string(logins).unwrap().contains("gsv_admin_"));
    assert_eq!(fs::read_to_string(gateway.home.config_file()).unwrap(), config);
}

#[test]
fn bk25_the_address_that_a_node_has_joined_stays_in_the_config() {
    let pinned = format!("wss://127.0.0.1:28201/ws#sha256={}", "7d".repeat(32));
    for url in ["wss://gsv.example.com/ws", &pinned, "ws://127.0.0.1:1/ws"] {
        let gateway = Embedded::new();
        let config = format!("url = \"{url}\"\n\n[node]\nid = \"desk\"\ntoken = \"gsv_node_abc_def\"\n");
        gateway.home.write_config(&config);
        let run = gateway.up().ok();
        assert!(run.stderr.contains("was not changed"), "{run:?}");
        assert!(!run.stderr.contains("gsv_admin_"), "{run:?}");
        // While it runs, and at its next start.
        let own = format!("`gsv --url ws://127.0.0.1:{}/ws chat`", gateway.port);
        let again = gateway.gsv(&["up"]).ok();
        assert!(again.stderr.contains(&own), "{again:?}");
        let down = gateway.gsv(&["down"]).ok();
        assert!(down.stderr.contains("which was not stopped"), "{down:?}");
        let next = gateway.gsv(&["up"]).ok();
        assert!(next.stderr.contains(&own), "{next:?}");
        assert_eq!(fs::read_to_string(gateway.home.config_file()).unwrap(), config);
        // The way back that it names.
        let unset = gateway.gsv(&["local-config", "unset", "url"]).ok();
        assert!(unset.stderr.contains("config.toml.old"), "{unset:?}");
        let kept = gateway.home.config_file().with_extension("toml.old");
        assert_eq!(fs::read_to_string(&kept).unwrap(), config, "the joined login is whole");
        let back = gateway.gsv(&["up"]).ok();
        assert_eq!(fs::read_to_string(&kept).unwrap(), config, "its only copy stays");
        let stored = fs::read_to_string(gateway.home.config_file()).unwrap();
        assert!(!stored.contains("gsv_node_abc_def"), "{stored}");
        assert!(back.stderr.contains("Address and token are stored"), "{back:?}");
        let down = gateway.gsv(&["down"]).ok();
        assert!(
            down.stderr.contains(&format!(
                "The gateway of {} is stopped.",
                gateway.home.state().display()
            )),
            "{down:?}"
        );
        assert!(!down.stderr.contains("another gateway"), "{down:?}");
    }
}

#[test]
fn a_gateway_takes_back_the_local_config_that_another_state_folder_has_taken() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let login = || {
        let text = fs::read_to_string(gateway.home.config_file()).unwrap();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("url") || line.starts_with("token"))
            .collect();
        lines.join("\n")
    };
    let first = login();
    let other = |args: &[&str]| {
        let mut command = gateway.command();
        command.args(args).env("GSV_HOME", gateway.home.root().join("other"));
        finish(start(&mut command)).ok()
    };
    let port = free_port().to_string();
    let taken = other(&["up", "--port", &port]);
    assert_ne!(login(), first);
    // While both run.
    let back = gateway.gsv(&["up"]).ok();
    assert!(back.stderr.contains("its former content is in"), "{back:?}");
    assert_eq!(login(), first);
    other(&["up"]);
    assert_eq!(login().lines().count(), 2);
    assert!(
        taken.stderr.contains("its former content is in") && login().contains(&port),
        "{taken:?}"
    );
    other(&["down"]);
    // At its next start.
    gateway.gsv(&["down"]).ok();
    gateway.up().ok();
    assert_eq!(login(), first);
}

/// The url and the token of the local config.
fn login(gateway: &Embedded) -> (String, String) {
    let get = |key| gateway.gsv(&["local-config", "get", key]).ok().stdout.trim().to_owned();
    let text = fs::read_to_string(gateway.home.config_file()).unwrap();
    let token = text.lines().find(|line| line.starts_with("token")).unwrap();
    (get("url"), token.to_owned())
}

#[test]
fn bk25_a_gateway_takes_back_its_node_with_its_login() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let path = gateway.home.config_file();
    let own = fs::read_to_string(&path).unwrap();
    let with_node = format!("{own}\n[node]\nid = \"laptop\"\ntoken = \"gsv_node_abc_def\"\n");
    gateway.home.write_config(&with_node);
    let get = |key| gateway.gsv(&["local-config", "get", key]).ok().stdout.trim().to_owned();
    gateway.gsv(&["local-config", "unset", "url"]).ok();
    assert!(!fs::read_to_string(&path).unwrap().contains("laptop"));
    gateway.gsv(&["up"]).ok();
    assert_eq!(get("node.id"), "laptop");
    assert!(fs::read_to_string(&path).unwrap().contains("gsv_node_abc_def"));
    // The gateway of another folder never gets it, and this one has it again afterwards.
    let mut command = gateway.command();
    command
        .args(["up", "--port", &free_port().to_string()])
        .env("GSV_HOME", gateway.home.root().join("other"));
    finish(start(&mut command)).ok();
    assert!(!fs::read_to_string(&path).unwrap().contains("gsv_node_abc_def"));
    let mut command = gateway.command();
    command.arg("down").env("GSV_HOME", gateway.home.root().join("other"));
    finish(start(&mut command)).ok();
    gateway.gsv(&["up"]).ok();
    assert!(fs::read_to_string(&path).unwrap().contains("gsv_node_abc_def"));
}

#[test]
fn bk25_two_folders_that_use_one_port_in_turn_keep_their_nodes_apart() {
    const NODE: &str = "gsv_node_abc_def";
    let gateway = Embedded::new();
    gateway.up().ok();
    let path = gateway.home.config_file();
    let has_node = || fs::read_to_string(&path).unwrap().contains(NODE);
    let own = fs::read_to_string(&path).unwrap();
    gateway
        .home
        .write_config(&format!("{own}\n[node]\nid = \"laptop\"\ntoken = \"{NODE}\"\n"));
    let other = |args: &[&str]| {
        let mut command = gateway.command();
        command.args(args).env("GSV_HOME", gateway.home.root().join("other"));
        finish(start(&mut command)).ok()
    };
    // Twice: with a new first token, and with the one that the other folder has then.
    for _ in 0..2 {
        gateway.gsv(&["down"]).ok();
        other(&["up", "--port", &gateway.port.to_string()]);
        assert!(!has_node());
        other(&["down"]);
        gateway.up().ok();
        assert!(has_node());
    }
    let logins = fs::read_to_string(gateway.home.config_dir().join("logins.json")).unwrap();
    assert_eq!(logins.matches(NODE).count(), 1, "{logins}");
}

#[test]
fn bk25_a_gateway_takes_back_its_login_after_two_others_had_the_local_config() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let first = login(&gateway);
    let other = |name: &str, args: &[&str]| {
        let mut command = gateway.command();
        command.args(args).env("GSV_HOME", gateway.home.root().join(name));
        finish(start(&mut command)).ok()
    };
    let look_at = |name: &str| {
        other(name, &["up", "--port", &free_port().to_string()]);
        let taken = login(&gateway);
        other(name, &["down"]);
        taken
    };
    let (a, b) = (look_at("a"), look_at("b"));
    assert!(a != b && a != first && b != first);
    // While the own gateway runs.
    let back = gateway.gsv(&["up"]).ok();
    assert!(back.stderr.contains("Address and token are stored"), "{back:?}");
    assert_eq!(login(&gateway), first);
    // At its next start.
    assert_eq!(look_at("a").1, a.1);
    assert_eq!(look_at("b").1, b.1);
    gateway.gsv(&["down"]).ok();
    gateway.gsv(&["up"]).ok();
    assert_eq!(login(&gateway), first);
}

#[test]
fn bk25_a_token_of_another_gateway_never_gets_this_ones_address() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let first = login(&gateway);
    let other = |args: &[&str]| {
        let mut command = gateway.command();
        command.args(args).env("GSV_HOME", gateway.home.root().join("other"));
        finish(start(&mut command)).ok()
    };
    other(&["up", "--port", &free_port().to_string()]);
    let theirs = login(&gateway);
    assert_ne!(theirs, first);
    other(&["down"]);
    let files = ["logins.json", "config.toml.old"];
    for file in files {
        let path = gateway.home.config_file().with_file_name(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("gsv_admin_"), "{file}");
        fs::remove_file(path).unwrap();
    }
    // Nothing is known about this gateway's token any more.
    let run = gateway.gsv(&["up"]).ok();
    assert!(run.stderr.contains("gsv up --new-token"), "{run:?}");
    assert_eq!(login(&gateway), theirs);
}
