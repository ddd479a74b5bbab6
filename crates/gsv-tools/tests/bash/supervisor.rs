//! The program that supervises a command, called as a node does.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::common::{Lab, PATIENCE, is_running, tier};
use gsv_tools::{CallContext, Supervisor};
use serde_json::json;
use tempfile::TempDir;

const HELPER: &str = env!("CARGO_BIN_EXE_gsv-tools-helper");

fn supervise(dir: &Path, args: &[&str]) -> Child {
    Command::new(HELPER)
        .arg("__supervise")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets the command run, and returns what `exit` says about it.
fn run(args: &[&str]) -> (String, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("output"), "").unwrap();
    let folder = dir.path().to_str().unwrap();
    let mut child = supervise(dir.path(), &[&[folder, "/dev/null"], args].concat());
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    (std::fs::read_to_string(dir.path().join("exit")).unwrap(), dir)
}

#[test]
fn p6_2_a_high_exit_status_is_a_signal_only_of_a_program_that_reports_it_so() {
    for (mark, status, want) in [
        ("--", 137, "code 137\n"),
        ("--status", 137, "signal 9\n"),
        ("--", 3, "code 3\n"),
        ("--status", 3, "code 3\n"),
    ] {
        let (exit, _) = run(&[mark, "/bin/sh", "-c", &format!("exit {status}")]);
        assert_eq!(exit, want, "{mark} {status}");
    }
    assert_eq!(run(&["--", "/bin/sh", "-c", "kill -9 $$"]).0, "signal 9\n");
}

#[test]
fn p6_a_node_of_an_earlier_version_starts_commands_too() {
    let (exit, dir) = run(&["/bin/sh", "echo said"]);
    assert_eq!(exit, "code 0\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("output")).unwrap(), "said\n");
}

#[test]
fn k15_a_gate_that_closes_and_words_that_name_no_command_run_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let mut child = supervise(dir.path(), &[folder, "/dev/null", "--", "/bin/sh", "-c", "echo >ran"]);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(dir.path().join("exit")).unwrap(), "never\n");
    for args in [
        &[folder][..],
        &[folder, "/dev/null"],
        &[folder, "/dev/null", "--"],
        &[folder, "/dev/null", "--status"],
        &[folder, "/dev/null", "/bin/sh"],
        &[folder, "/dev/null", "/bin/sh", "echo >ran", "more"],
    ] {
        assert_eq!(supervise(dir.path(), args).wait().unwrap().code(), Some(2), "{args:?}");
    }
    assert!(!dir.path().join("ran").exists());
}

#[test]
fn f20_an_orphan_of_a_command_stays_below_its_supervisor() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("output"), "").unwrap();
    let folder = dir.path().to_str().unwrap();
    // The orphan may outlive the folder.
    let waits = "while [ -e output ] && ! [ -e go ]; do sleep 0.02; done";
    let command = format!("(sh -c 'echo $$ >orphan; {waits}' &); {waits}");
    let mut child = supervise(dir.path(), &[folder, "/dev/null", "--", "/bin/sh", "-c", &command]);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    // The supervisor keeps none of the pipes, so this ends when the command has begun.
    let mut pid = String::new();
    child.stdout.take().unwrap().read_to_string(&mut pid).unwrap();
    assert!(is_running(&pid));
    let deadline = std::time::Instant::now() + PATIENCE;
    let orphan = || std::fs::read_to_string(dir.path().join("orphan")).unwrap_or_default();
    let parent = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", orphan().trim())).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        fields.split(' ').nth(1).map(str::to_owned)
    };
    while parent() != Some(child.id().to_string()) && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let found = parent();
    std::fs::write(dir.path().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(found, Some(child.id().to_string()));
}

/// A supervisor that goes on after its command, until it can open the pipe that its first argument names.
const ENDLESS: &str = r#"
pipe=$1; shift 4
mkfifo "$pipe"
setsid sh -c 'echo $$; read -r go; exec "$@" >/dev/null 2>&1' sh "$@"
read -r end <"$pipe"
"#;

#[tokio::test]
async fn p14_a_command_that_can_not_be_ended_is_listed_as_such() {
    // Nothing about it depends on the sandbox, and it takes seconds.
    if tier().is_some() {
        return;
    }
    let lab = Lab::with(|config| {
        config.supervisor = Supervisor::Program {
            program: "/bin/sh".into(),
            args: ["-c", ENDLESS, "sh"]
                .map(OsString::from)
                .into_iter()
                .chain([config.workspace.join("pipe").into()])
                .collect(),
            limits: None,
        };
    });
    let call = json!({"command": "sleep 300", "background": true});
    let started = lab.call_with("Bash", call, CallContext::new("e")).await.unwrap();
    assert_eq!(started["status"], "running");
    let kill = json!({"action": "kill", "sessionId": "e"});
    assert_eq!(lab.reason("Process", kill).await, "tool.failed");
    let becomes = async |field: &str, value: &str| {
        let list = || lab.ok("Process", json!({"action": "list"}));
        let change = async { while list().await["sessions"][0][field] != value {} };
        tokio::time::timeout(PATIENCE, change)
            .await
            .expect("it does not become so");
    };
    becomes("note", "it did not end when it was killed").await;
    becomes("status", "running").await;
    std::fs::write(lab.ws("pipe"), "end\n").unwrap();
    // Nothing has said how it ended.
    becomes("status", "unknown").await;
}
