//! The gateway's port: which one it takes, and what is said of one that another program has.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;

use crate::common::runtime::{Embedded, free_port};
use crate::common::{finish, start};

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
    let stays = "The gateway was started and goes on; `gsv down` stops it.";
    assert!(run.stderr.contains(stays), "{run:?}");
    assert_eq!(gateway.state().unwrap()["port"], gateway.port);
    let again = setup(&port).failed(run.code.unwrap());
    assert!(!again.stderr.contains(stays), "{again:?}");
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
    let other = free_port().to_string();
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
fn f46_a_wait_for_a_port_that_no_program_is_known_to_have_is_told() {
    let gateway = Embedded::new();
    // Taken, and without a listener: as the port of a program that is ending.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], gateway.port).into()).unwrap();
    let mut up = start(gateway.command().args(["up", "--port", &gateway.port.to_string()]));
    let mut lines = BufReader::new(up.stderr.take().unwrap()).lines().map(Result::unwrap);
    let wanted = format!("waiting until port {} is free ...", gateway.port);
    assert!(lines.any(|line| line.contains(&wanted)));
    drop(taken);
    let rest: Vec<String> = lines.collect();
    assert!(up.wait().unwrap().success(), "{rest:?}");
}
