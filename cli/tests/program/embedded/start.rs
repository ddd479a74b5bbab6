//! What `gsv up` and `gsv down` do, and what a start says that can't work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use crate::common::runtime::{Embedded, is_alive};
use crate::common::{finish, start, wait_for};

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
    let status = gateway.gsv(&["status"]);
    let said = format!("{}{}", status.stdout, status.stderr);
    assert!(said.contains("its state folder was removed; run `gsv down`"), "{said}");
    let doctor = gateway.gsv(&["doctor", "--offline"]);
    assert!(doctor.stdout.contains("its state folder was removed"), "{doctor:?}");
    let down = gateway.gsv(&["down"]).ok();
    assert!(down.stderr.contains("is stopped"), "{}", down.stderr);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(gateway.get("/health").is_none());
    let again = gateway.gsv(&["down"]).ok();
    assert!(again.stderr.contains("was not running"), "{}", again.stderr);
    gateway.up().ok();
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
