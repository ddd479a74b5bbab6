//! `gsv up`, `down` and `status` with the real workerd and a tiny Worker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot continue has failed"
)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use common::fake_gateway::FakeGateway;
use common::runtime::{Embedded, free_port, is_alive, kill};
use common::{finish, mode, start, wait_for};

#[test]
fn up_starts_the_gateway_and_down_stops_it() {
    let gateway = Embedded::new();
    let run = gateway.up().ok();
    assert_eq!(run.stdout, format!("ws://127.0.0.1:{}/ws\n", gateway.port));
    assert!(run.stderr.contains("version 9.9.9"), "{}", run.stderr);
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);
    let pid = gateway.pid("workerdPid").unwrap();

    let again = gateway.up().ok();
    assert!(again.stderr.contains("already running"), "{}", again.stderr);
    assert_eq!(gateway.pid("workerdPid"), Some(pid), "a second `up` changes nothing");
    let elsewhere = gateway.gsv(&["up", "--port", "1"]).failed(1);
    assert!(elsewhere.stderr.contains("gsv down"), "{}", elsewhere.stderr);

    let supervisor = gateway.pid("supervisorPid").unwrap();
    gateway.gsv(&["down"]).ok();
    assert!(gateway.get("/health").is_none());
    assert!(!is_alive(pid) && !is_alive(supervisor));
    assert!(gateway.state().is_none());
    let again = gateway.gsv(&["down"]).ok();
    assert!(again.stderr.contains("was not running"), "{}", again.stderr);
}

#[test]
fn a_gateway_whose_state_folder_was_removed_is_found_and_stopped() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let pids = [
        gateway.pid("supervisorPid").unwrap(),
        gateway.pid("workerdPid").unwrap(),
    ];
    fs::remove_dir_all(gateway.home.state()).unwrap();
    let up = gateway.up().failed(1);
    assert!(up.stderr.contains("still runs"), "{}", up.stderr);
    assert!(up.stderr.contains("gsv down"), "{}", up.stderr);
    let down = gateway.gsv(&["down"]).ok();
    assert!(down.stderr.contains("is stopped"), "{}", down.stderr);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(gateway.get("/health").is_none());
    let again = gateway.gsv(&["down"]).ok();
    assert!(again.stderr.contains("was not running"), "{}", again.stderr);
    gateway.up().ok();
}

#[test]
fn f46_the_port_that_was_chosen_is_remembered() {
    let gateway = Embedded::new();
    gateway.up().ok();
    gateway.gsv(&["down"]).ok();
    let run = gateway.gsv(&["up"]).ok();
    assert_eq!(run.stdout, format!("ws://127.0.0.1:{}/ws\n", gateway.port));
}

#[test]
fn su1_setup_starts_the_gateway_on_the_port_that_was_chosen() {
    let gateway = Embedded::new();
    let port = gateway.port.to_string();
    let setup = |port: &str| {
        gateway.gsv(&[
            "setup",
            "--yes",
            "--provider",
            "demo",
            "--no-services",
            "--no-path",
            "--port",
            port,
        ])
    };
    // The gateway of this test knows no methods, so the setup ends there.
    let run = setup(&port);
    assert!(run.stderr.contains("The gateway is started."), "{run:?}");
    assert_eq!(gateway.state().unwrap()["port"], gateway.port);
    let other = setup("1").failed(1);
    assert!(other.stderr.contains("is already running, on port"), "{other:?}");
}

#[test]
fn f46_a_start_that_failed_leaves_the_stored_port_as_it_was() {
    let gateway = Embedded::new();
    gateway.up().ok();
    gateway.gsv(&["down"]).ok();
    let config = fs::read_to_string(gateway.home.config_file()).unwrap();
    let worker = fs::read(gateway.runtime.join("worker.js")).unwrap();
    fs::write(gateway.runtime.join("worker.js"), "not a program").unwrap();
    let other = common::runtime::free_port().to_string();
    gateway.gsv(&["up", "--port", &other]).failed(1);
    assert_eq!(fs::read_to_string(gateway.home.config_file()).unwrap(), config);
    fs::write(gateway.runtime.join("worker.js"), worker).unwrap();
    let run = gateway.gsv(&["up"]).ok();
    assert_eq!(run.stdout, format!("ws://127.0.0.1:{}/ws\n", gateway.port));
    gateway.gsv(&["down"]).ok();
    gateway.gsv(&["up", "--port", &other]).ok();
    let config = fs::read_to_string(gateway.home.config_file()).unwrap();
    assert!(config.contains(&format!(":{other}/ws")), "{config}");
    gateway.gsv(&["down"]).ok();
    let run = gateway.gsv(&["up"]).ok();
    assert_eq!(run.stdout, format!("ws://127.0.0.1:{other}/ws\n"));
}

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
fn the_address_that_a_node_has_joined_stays_in_the_config() {
    let pinned = format!("wss://127.0.0.1:28201/ws#sha256={}", "7d".repeat(32));
    for url in ["wss://gsv.example.com/ws", &pinned, "ws://127.0.0.1:1/ws"] {
        let gateway = Embedded::new();
        let config = format!("url = \"{url}\"\n\n[node]\nid = \"desk\"\ntoken = \"gsv_node_abc_def\"\n");
        gateway.home.write_config(&config);
        let run = gateway.up().ok();
        assert!(run.stderr.contains("was not changed"), "{run:?}");
        assert!(!run.stderr.contains("gsv_admin_"), "{run:?}");
        // While it runs, and at its next start.
        gateway.gsv(&["up"]).ok();
        gateway.gsv(&["down"]).ok();
        gateway.gsv(&["up"]).ok();
        assert_eq!(fs::read_to_string(gateway.home.config_file()).unwrap(), config);
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

#[test]
fn bk24_a_port_that_another_gateway_of_this_machine_has_is_reported_with_its_state_folder() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let other = gateway.home.root().join("other");
    let mut command = gateway.command();
    command
        .args(["up", "--port", &gateway.port.to_string()])
        .env("GSV_HOME", &other);
    let run = finish(start(&mut command)).failed(1);
    let home = gateway.home.state();
    let port = gateway.port;
    let expected = format!("Port {port} is in use by the gateway of {}.", home.display());
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    assert!(
        run.stderr.contains("gsv down") && run.stderr.contains("gsv up --port"),
        "{}",
        run.stderr
    );
}

#[test]
fn p12_a_killed_workerd_is_restarted_with_its_state() {
    let gateway = Embedded::new();
    gateway.up().ok();
    assert_eq!(gateway.get("/count").unwrap()["n"], 1);
    for count in 2..4 {
        let pid = gateway.pid("workerdPid").unwrap();
        kill(pid);
        wait_for("the restart", || {
            gateway
                .pid("workerdPid")
                .filter(|now| *now != pid && gateway.state().unwrap()["phase"] == "ready")
        });
        assert_eq!(gateway.get("/count").unwrap()["n"], count);
    }
    assert_eq!(gateway.state().unwrap()["restarts"], 2);
    let log = fs::read_to_string(gateway.home.state().join("gateway/gateway.log")).unwrap();
    assert!(log.contains("workerd was killed"), "{log}");
}

#[test]
fn a_workerd_that_fails_to_start_for_a_while_is_retried() {
    let gateway = Embedded::new();
    let good = gateway.home.root().join("good");
    fs::write(&good, "").unwrap();
    let real = common::runtime::workerd();
    gateway.replace_workerd(&format!(
        "#!/bin/sh\n[ -e '{}' ] || exit 3\nexec '{}' \"$@\"\n",
        good.display(),
        real.display()
    ));
    gateway.up().ok();
    let pid = gateway.pid("workerdPid").unwrap();
    fs::remove_file(&good).unwrap();
    kill(pid);
    wait_for("some tries", || {
        gateway.state().filter(|state| state["restarts"].as_u64() >= Some(3))
    });
    fs::write(&good, "").unwrap();
    wait_for("the recovery", || {
        gateway.state().filter(|state| state["phase"] == "ready")
    });
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);
}

#[test]
fn a_killed_supervisor_is_noticed_and_replaced() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let (supervisor, workerd) = (
        gateway.pid("supervisorPid").unwrap(),
        gateway.pid("workerdPid").unwrap(),
    );
    kill(supervisor);
    wait_for("its end", || (!is_alive(supervisor)).then_some(()));
    let status = gateway.gsv(&["status", "--json"]);
    assert_eq!(status.json()["gateway"]["state"], "orphaned", "{status:?}");
    gateway.up().ok();
    assert!(!is_alive(workerd), "the orphan is ended");
    assert_ne!(gateway.pid("supervisorPid"), Some(supervisor));
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);

    let (supervisor, workerd) = (
        gateway.pid("supervisorPid").unwrap(),
        gateway.pid("workerdPid").unwrap(),
    );
    kill(supervisor);
    gateway.gsv(&["down"]).ok();
    assert!(!is_alive(workerd), "`down` ends an orphan");
}

#[test]
fn a_damaged_state_file_does_not_stop_down_or_up() {
    let gateway = Embedded::new();
    gateway.up().ok();
    let workerd = gateway.pid("workerdPid").unwrap();
    fs::write(gateway.state_file(), "{ torn").unwrap();
    gateway.gsv(&["down"]).ok();
    assert!(!is_alive(workerd));
    fs::write(gateway.state_file(), "{ torn").unwrap();
    gateway.up().ok();
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);
}

#[test]
fn two_ups_at_once_make_one_gateway() {
    let gateway = Embedded::new();
    let runs: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gateway.up())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let already = runs.iter().filter(|run| run.stderr.contains("already running")).count();
    assert!(runs.iter().all(|run| run.code == Some(0)), "{runs:?}");
    assert_eq!(already, 2, "{runs:?}");
}

#[test]
fn a_busy_port_is_reported_with_its_process() {
    let gateway = Embedded::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let run = gateway.gsv(&["up", "--port", &port.to_string()]).failed(1);
    assert!(
        run.stderr.contains(&format!("Port {port} is in use by")),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("--port"), "{}", run.stderr);
    if cfg!(target_os = "linux") {
        assert!(
            run.stderr.contains(&format!("process {}", std::process::id())),
            "{}",
            run.stderr
        );
    }
    assert!(gateway.state().is_none());
}

#[test]
fn a_missing_runtime_is_reported_with_the_folders_that_were_searched() {
    let mut gateway = Embedded::new();
    gateway.runtime = gateway.home.root().join("nowhere");
    let run = gateway.up().failed(1);
    assert!(
        run.stderr.contains("not installed") && run.stderr.contains("nowhere"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("next:"), "{}", run.stderr);
}

#[test]
fn a_worker_that_does_not_start_shows_the_end_of_the_log() {
    let gateway = Embedded::new();
    fs::write(gateway.runtime.join("worker.js"), "this is not javascript").unwrap();
    let run = gateway.up().failed(1);
    assert!(run.stderr.contains("did not start"), "{}", run.stderr);
    assert!(run.stderr.contains("SyntaxError"), "{}", run.stderr);
    assert!(run.stderr.contains("gateway.log"), "{}", run.stderr);
    let status = gateway.gsv(&["status", "--json"]).failed(1);
    assert_eq!(status.json()["gateway"]["state"], "failed");
}

#[test]
fn s20_a_state_folder_that_others_can_change_is_refused() {
    let gateway = Embedded::new();
    fs::create_dir(gateway.home.state()).unwrap();
    fs::set_permissions(gateway.home.state(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = gateway.up().failed(1);
    assert!(run.stderr.contains("chmod 700"), "{}", run.stderr);
    fs::set_permissions(gateway.home.state(), fs::Permissions::from_mode(0o500)).unwrap();
    let run = gateway.up();
    if run.code != Some(0) {
        // Root may write anywhere; other users get the error.
        assert!(run.stderr.contains("can't be written"), "{}", run.stderr);
    }
}

#[test]
fn in_the_foreground_the_gateway_ends_with_the_signal() {
    let gateway = Embedded::new();
    let mut child = gateway
        .command()
        .args(["up", "--foreground", "--port", &gateway.port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, format!("ws://127.0.0.1:{}/ws\n", gateway.port));
    assert_eq!(gateway.get("/health").unwrap()["ok"], true);
    assert!(gateway.up().ok().stderr.contains("already running"));
    let workerd = gateway.pid("workerdPid").unwrap();
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let run = finish(child).ok();
    assert!(run.stderr.contains("ready on"), "{}", run.stderr);
    assert!(!is_alive(workerd));
}

#[test]
fn p12_a_signal_ends_a_start_that_still_compiles_its_configuration() {
    let gateway = Embedded::new();
    let (compiling, serving) = (
        gateway.home.root().join("compiling"),
        gateway.home.root().join("serving"),
    );
    gateway.replace_workerd(&format!(
        "#!/bin/sh\nif [ \"$1\" = compile ]; then : > '{}'; else : > '{}'; fi\nexec sleep 300\n",
        compiling.display(),
        serving.display()
    ));
    let child = start(
        gateway
            .command()
            .args(["up", "--foreground", "--port", &gateway.port.to_string()]),
    );
    wait_for("the compiler", || compiling.exists().then_some(()));
    let pid = i32::try_from(child.id()).unwrap();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    finish(child).ok();
    assert!(!serving.exists(), "it was not started");
}

#[test]
fn status_and_doctor_report_that_no_gateway_runs() {
    let gateway = Embedded::new();
    let status = gateway.gsv(&["status"]).failed(4);
    assert!(status.stderr.contains("gsv up"), "{status:?}");
    let doctor = gateway.gsv(&["doctor", "--json"]).failed(1);
    let report = doctor.json();
    let check = |name: &str| {
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(check("config")["level"], "ok");
    assert_eq!(check("runtime")["level"], "ok");
    assert_eq!(check("gateway")["level"], "warn");
    assert_eq!(check("token")["level"], "fail");
    assert!(check("token")["next"].as_str().unwrap().contains("gsv up"));
}
