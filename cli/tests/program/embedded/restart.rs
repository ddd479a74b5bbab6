//! A gateway of which one process was killed or does not start.

use std::fs;

use crate::common::runtime::{Embedded, is_alive, kill, workerd};
use crate::common::wait_for;

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
    let real = workerd();
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
