//! `gsv service` with a service manager that the test plays, and the real workerd.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::runtime::{free_port, is_alive, kill};
use crate::common::service_world::World;
use crate::common::{finish, mode, start, wait_for};
use serde_json::json;

#[test]
fn sv1_sv2_an_installed_gateway_runs_and_a_second_install_changes_nothing() {
    let world = World::new();
    let not = world.gsv(&["service", "status"]).failed(1);
    assert!(not.stderr.contains("gsv service install"), "{}", not.stderr);
    let run = world
        .command(&["service", "install"])
        .env("GSV_TOKEN", "gsv_admin_x_secret")
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let unit = world.services.only_unit();
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains(&format!(
        "ExecStart=:\"{}\" \"up\" \"--service\"",
        env!("CARGO_BIN_EXE_gsv")
    )));
    assert!(text.contains(&format!("GSV_HOME={}", world.gateway.home.state().display())));
    assert!(text.contains(&format!("GSV_CONFIG_DIR={}", world.gateway.home.config_dir().display())));
    let config = fs::read_to_string(world.gateway.home.config_file()).unwrap();
    let secret = config.lines().find_map(|line| line.strip_prefix("token = ")).unwrap();
    for secret in [secret.trim_matches('"'), "gsv_admin_x_secret"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(mode(&unit), 0o600);
    assert!(world.services.lingers());
    let pid = world.gateway.pid("supervisorPid").unwrap();
    let status = world.status();
    assert_eq!((&status["state"], &status["pid"]), (&json!("running"), &json!(pid)));
    assert_eq!((&status["enabled"], &status["old"]), (&json!(true), &json!([])));
    world.services.calls();

    world.gsv(&["service", "install"]).ok();
    assert_eq!(world.gateway.pid("supervisorPid"), Some(pid), "it was not restarted");
    let calls = world.services.calls();
    let verbs: Vec<_> = calls.iter().filter_map(|call| call.split(' ').nth(1)).collect();
    assert!(verbs.contains(&"daemon-reload"), "{calls:?}");
    for change in ["start", "restart", "stop", "enable-linger", "--no-ask-password"] {
        assert!(!verbs.contains(&change), "{calls:?}");
    }
    assert_eq!(fs::read_to_string(world.services.only_unit()).unwrap(), text);
    let shown = world.gsv(&["status"]);
    assert!(
        shown.stdout.contains("service") && shown.stdout.contains("running"),
        "{shown:?}"
    );
    let checked = world.gsv(&["doctor", "--offline"]);
    assert!(
        checked.stdout.contains("ok    service    the gateway: running"),
        "{checked:?}"
    );
}

#[test]
fn sv3_the_command_of_the_unit_starts_the_gateway_again_with_its_state() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    assert_eq!(world.count(), 1);
    for name in ["supervisorPid", "workerdPid"] {
        kill(world.gateway.pid(name).unwrap());
    }
    wait_for("the end", || world.gateway.get("/health").is_none().then_some(()));
    assert_eq!(world.status()["state"], "failed");
    // As the manager runs it: with nothing but the unit's environment.
    let unit = fs::read_to_string(world.services.only_unit()).unwrap();
    let lines = |key: &str| {
        unit.lines()
            .filter_map(|line| line.strip_prefix(key))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let script = format!("exec env -i {} {}", lines("Environment="), lines("ExecStart=:"));
    let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    wait_for("the gateway", || world.gateway.get("/health"));
    assert_eq!(world.count(), 2);
    crate::common::signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0), "a stop is no failure");
    assert!(world.gateway.get("/health").is_none());
}

#[test]
fn sv4_a_gateway_that_gsv_up_started_goes_on_as_the_service() {
    let world = World::new();
    world.gsv(&["up"]).ok();
    assert_eq!(world.count(), 1);
    let before = world.gateway.pid("supervisorPid").unwrap();
    let shown = world.gsv(&["service", "status"]).ok().stdout;
    assert!(
        shown.contains("running, started by `gsv up`") && shown.contains(&before.to_string()),
        "{shown}"
    );
    let status = world.status();
    assert_eq!((&status["installed"], &status["pid"]), (&json!(false), &json!(before)));
    let run = world.gsv(&["service", "install"]).ok();
    assert!(
        run.stderr.contains("outside of the service is stopped"),
        "{}",
        run.stderr
    );
    assert!(!is_alive(before));
    assert_eq!(
        world.status()["pid"],
        json!(world.gateway.pid("supervisorPid").unwrap())
    );
    assert_eq!(world.count(), 2);
    // `gsv up` starts the service.
    let down = world.gsv(&["down"]).ok();
    assert!(down.stderr.contains("gsv service uninstall"), "{}", down.stderr);
    world.gsv(&["service", "status"]).failed(1);
    let up = world.gsv(&["up", "--json"]).ok().json();
    assert_eq!(
        (&up["alreadyRunning"], &up["pid"]),
        (&json!(false), &json!(world.gateway.pid("workerdPid").unwrap()))
    );
    assert_eq!(
        world.status()["pid"],
        json!(world.gateway.pid("supervisorPid").unwrap())
    );
    world.gsv(&["service", "stop"]).ok();
    assert!(world.gateway.get("/health").is_none());
    world.gsv(&["service", "status"]).failed(4);
    assert!(world.services.only_unit().exists());
}

#[test]
fn sv2_an_installation_that_fails_at_any_call_is_completed_by_the_next() {
    let mut failures = 0;
    for number in 1.. {
        let world = World::new();
        world.services.fail_at(number);
        let first = world.gsv(&["service", "install"]);
        world.services.fail_nothing();
        let calls = world.services.calls();
        if calls.len() < number {
            first.ok();
            break;
        }
        if first.code != Some(0) {
            assert!(first.stderr.contains("next:"), "{first:?}");
            failures += 1;
        }
        world.gsv(&["service", "install"]).ok();
        let status = world.status();
        assert_eq!(
            (&status["state"], &status["old"]),
            (&json!("running"), &json!([])),
            "{calls:?}"
        );
        assert_eq!(status["enabled"], true);
        assert_eq!(status["pid"], json!(world.gateway.pid("supervisorPid").unwrap()));
        world.services.only_unit();
    }
    assert!(failures >= 5, "{failures}");
}

#[test]
fn sv2_a_removal_that_fails_at_any_call_is_completed_by_the_next_and_keeps_all_data() {
    let world = World::new();
    let mut failures = 0;
    for number in 1.. {
        world.gsv(&["service", "install"]).ok();
        let count = world.count();
        world.services.calls();
        world.services.fail_at(number);
        let first = world.gsv(&["service", "uninstall"]);
        world.services.fail_nothing();
        let calls = world.services.calls();
        failures += usize::from(first.code != Some(0));
        world.gsv(&["service", "uninstall"]).ok();
        assert!(world.services.knows_nothing(), "{number}: {calls:?}");
        assert!(!world.gateway.home.state().join("services").exists());
        assert!(world.gateway.get("/health").is_none());
        world.gsv(&["up"]).ok();
        assert_eq!(world.count(), count + 1);
        world.gsv(&["down"]).ok();
        if calls.len() < number {
            first.ok();
            break;
        }
    }
    assert!(failures >= 5, "{failures}");
    world.gsv(&["service", "uninstall"]).ok();
}

#[test]
fn sv2_a_linger_that_was_there_before_stays() {
    let world = World::new();
    fs::write(world.gateway.home.root().join("fake/linger"), "").unwrap();
    world.gsv(&["service", "install"]).ok();
    world.gsv(&["service", "uninstall"]).ok();
    assert!(world.services.lingers());
    fs::remove_file(world.gateway.home.root().join("fake/linger")).unwrap();
    // A manager that refuses it: the service runs, and the way out is said.
    world.services.refuse("enable-linger");
    let run = world.gsv(&["service", "install"]).ok();
    assert!(run.stderr.contains("sudo loginctl enable-linger"), "{}", run.stderr);
    assert_eq!(world.status()["lingers"], false);
    let checked = world.gsv(&["doctor", "--offline"]);
    assert!(checked.stdout.contains("only while you are logged in"), "{checked:?}");
}

#[test]
fn sv4_gsv_up_starts_the_gateway_itself_when_its_service_would_start_another_or_can_not() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let is_of_the_service = || world.status()["pid"] == json!(world.gateway.pid("supervisorPid").unwrap());
    assert!(is_of_the_service());
    world.gsv(&["down"]).ok();
    // The service starts on the port of the last start.
    let other = free_port().to_string();
    let up = world.gsv(&["up", "--port", &other]).ok();
    assert!(up.stderr.contains("gsv service install"), "{}", up.stderr);
    assert!(!is_of_the_service());
    world.gsv(&["down"]).ok();
    // Now that is the one.
    world.gsv(&["up", "--port", &other]).ok();
    assert!(is_of_the_service());
    world.gsv(&["down"]).ok();
    // The service manager does not answer.
    let mut without = world.command(&["up"]);
    without.env("PATH", "/nonexistent");
    finish(start(&mut without)).ok();
    assert!(!is_of_the_service());
}

#[test]
fn sv5_a_service_of_another_program_is_old_until_it_is_installed_again() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let pid = world.gateway.pid("supervisorPid").unwrap();
    // The program has moved, as an upgrade does.
    let moved = world.gateway.home.root().join("gsv-new");
    fs::copy(env!("CARGO_BIN_EXE_gsv"), &moved).unwrap();
    let gsv = |args: &[&str]| {
        let mut command = Command::new(&moved);
        command.args(args).env_clear();
        for (name, value) in world.command(&[]).get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.env("PATH", &world.services.env()[0].1);
        finish(start(&mut command))
    };
    let old = gsv(&["service", "status", "--json"]).ok().json();
    assert!(old["old"][0].as_str().unwrap().contains("gsv-new"), "{old}");
    let words = gsv(&["service", "status"]).ok();
    assert!(words.stderr.contains("gsv service install"), "{words:?}");
    assert!(gsv(&["doctor", "--offline"]).stdout.contains("to be installed again"));
    gsv(&["service", "install"]).ok();
    assert_eq!(gsv(&["service", "status", "--json"]).json()["old"], json!([]));
    assert_ne!(world.gateway.pid("supervisorPid"), Some(pid), "it was restarted");
    let unit = fs::read_to_string(world.services.only_unit()).unwrap();
    assert!(unit.contains("gsv-new"));
    // A file that someone else changed.
    fs::write(world.services.only_unit(), format!("{unit}\n# mine\n")).unwrap();
    assert!(gsv(&["service", "status"]).stderr.contains("its file"));
    gsv(&["service", "install"]).ok();
    assert_eq!(fs::read_to_string(world.services.only_unit()).unwrap(), unit);
}

#[test]
fn sv7_without_a_service_manager_nothing_is_changed_and_the_way_out_is_said() {
    let world = World::new();
    let empty = world.gateway.home.root().join("empty");
    fs::create_dir(&empty).unwrap();
    for (args, path) in [
        (["service", "install"], true),
        (["service", "start"], true),
        (["service", "install"], false),
    ] {
        let mut command = world.command(&args);
        if path {
            command.env("PATH", &empty);
        } else {
            world.services.refuse("show");
        }
        let run = finish(start(&mut command)).failed(1);
        assert!(run.stderr.contains("gsv up"), "{run:?}");
        assert!(run.stderr.contains("systemd"), "{run:?}");
    }
    world.services.fail_nothing();
    assert!(world.services.units().is_empty());
    assert!(!world.gateway.home.state().join("services").exists());
    assert_eq!(
        fs::read_to_string(world.gateway.home.config_file()).unwrap(),
        "",
        "no token was made"
    );
}

#[test]
fn sv7_a_unit_of_someone_else_is_never_replaced() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let unit = world.services.only_unit();
    world.gsv(&["service", "uninstall"]).ok();
    fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    let run = world.gsv(&["service", "install"]).failed(1);
    assert!(run.stderr.contains("was not written by GSV"), "{}", run.stderr);
    world.gsv(&["service", "uninstall"]).ok();
    assert_eq!(fs::read_to_string(&unit).unwrap(), "[Service]\nExecStart=/bin/true\n");
}

#[test]
fn sv7_a_gateway_that_does_not_start_is_a_failure_with_the_end_of_its_log() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    world.gsv(&["service", "stop"]).ok();
    world
        .gateway
        .replace_workerd("#!/bin/sh\necho it is broken >&2\nexit 7\n");
    let run = world.gsv(&["service", "start"]).failed(1);
    assert!(run.stderr.contains("it is broken"), "{}", run.stderr);
    assert!(run.stderr.contains("gsv service logs"), "{}", run.stderr);
    let logs = world.gsv(&["service", "logs", "-n", "5"]).ok();
    assert!(
        logs.stdout.contains("it is broken") && logs.stdout.lines().count() == 5,
        "{logs:?}"
    );
    world.gsv(&["service", "logs", "-n", "200000"]).failed(2);
    // What stops it before the supervisor runs is in the log, too.
    fs::remove_dir_all(&world.gateway.runtime).unwrap();
    let run = world.gsv(&["service", "start"]).failed(1);
    assert!(run.stderr.contains("runtime"), "{}", run.stderr);
}

#[test]
fn sv6_the_log_is_followed_and_given_as_json() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    let mut child = world
        .command(&["service", "logs", "-f", "-n", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("ready on"));
    world.gsv(&["service", "stop"]).ok();
    assert!(lines.any(|line| line.unwrap().contains("stopped")));
    child.kill().unwrap();
    child.wait().unwrap();
    let last = world.gsv(&["service", "logs", "-n", "1", "--json"]).ok().json();
    assert!(last["line"].as_str().unwrap().contains("stopped"), "{last}");
}

#[test]
fn sv1_systemd_itself_accepts_the_unit() {
    let world = World::new();
    world.gsv(&["service", "install"]).ok();
    // Not every machine has it; the golden files hold there.
    let Ok(verified) = Command::new("systemd-analyze")
        .args(["--user", "verify"])
        .arg(world.services.only_unit())
        .env("HOME", world.gateway.home.root())
        .env("XDG_RUNTIME_DIR", world.gateway.home.root())
        .output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let own: Vec<_> = said
        .lines()
        .filter(|line| line.contains("gsv") && !line.contains("RestartSteps") && !line.contains("RestartMaxDelaySec"))
        .collect();
    assert!(own.is_empty(), "{said}");
}
