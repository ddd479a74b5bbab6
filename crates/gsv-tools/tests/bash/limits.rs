//! What the processes of a command may use together, in each tier.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::common::{Lab, tier, until};
use gsv_sandbox::Tier;
use gsv_tools::{CommandLimits, Supervisor};
use serde_json::{Value, json};

fn lab() -> Lab {
    Lab::with(|config| {
        config.supervisor = Supervisor::Program {
            program: env!("CARGO_BIN_EXE_gsv-tools-helper").into(),
            args: vec!["__supervise".into()],
            limits: Some(CommandLimits {
                memory_bytes: 64 << 20,
                processes: 40,
            }),
        };
    })
}

/// The processes that have the mark of a command of the lab.
fn left(lab: &Lab) -> Vec<String> {
    let mark = [
        b"GSV_COMMAND=",
        lab.dir.path().canonicalize().unwrap().as_os_str().as_bytes(),
    ]
    .concat();
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(&mark))
    });
    pids.map(|entry| entry.file_name().as_os_str().to_string_lossy().into_owned())
        .filter(|pid| OsStr::new(pid) != "self")
        .collect()
}

async fn dies(lab: &Lab, command: &str, note: &str) {
    let ended: Value = lab.ok("Bash", json!({"command": command})).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    let found = ended["note"].as_str().unwrap_or_default();
    assert!(found.starts_with(note) && found.contains("node.toml"), "{ended}");
    until("all of its processes have ended", || left(lab).is_empty()).await;
    // The node goes on.
    let next = lab.ok("Bash", json!({"command": "echo alive"})).await;
    assert_eq!((&next["output"], next.get("note")), (&json!("alive\n"), None), "{next}");
}

/// Has two processes of each generation, 510 in all, each of which waits.
const BOMB: &str = "bomb() { [ \"$1\" -eq 0 ] || { bomb $(($1-1)) & bomb $(($1-1)) & }; sleep 60; }; bomb 8";
/// `tail` keeps a text without a line end in memory.
const HOG: &str = "(head -c 200000000 /dev/zero; sleep 60) | tail";

#[tokio::test]
async fn sb19_a_command_with_too_many_processes_is_ended_with_all_of_them() {
    dies(&lab(), BOMB, "limit.processes: ").await;
}

#[tokio::test]
async fn sb19_processes_that_leave_the_session_count_and_end_too() {
    let lab = lab();
    dies(&lab, &format!("setsid sh -c '{BOMB}' & sleep 60"), "limit.processes: ").await;
}

#[tokio::test]
async fn sb19_a_command_that_takes_too_much_memory_is_ended() {
    let lab = lab();
    dies(&lab, HOG, "limit.memory: ").await;
    dies(&lab, &format!("setsid sh -c '{HOG}' & sleep 60"), "limit.memory: ").await;
}

#[tokio::test]
async fn sb19_files_that_the_sandbox_keeps_in_memory_count() {
    if tier() != Some(Tier::Bubblewrap) {
        return;
    }
    let lab = lab();
    let fill = |folder: &str, bytes: u32| format!("head -c {bytes} /dev/zero >{folder}/x");
    for folder in ["/dev/shm", "/dev", "/run", "/var/tmp"] {
        dies(
            &lab,
            &format!("{}; sleep 60", fill(folder, 100_000_000)),
            "limit.memory: ",
        )
        .await;
    }
    let both = format!("{}; {}", fill("/run", 40_000_000), fill("/dev/shm", 40_000_000));
    dies(&lab, &format!("{both}; sleep 60"), "limit.memory: ").await;
    let some = format!(
        "{}; {}; sleep 0.5",
        fill("/run", 10_000_000),
        fill("/dev/shm", 10_000_000)
    );
    let ended = lab.ok("Bash", json!({"command": some})).await;
    assert_eq!(
        (&ended["status"], ended.get("note")),
        (&json!("completed"), None),
        "{ended}"
    );
}

#[tokio::test]
async fn sb19_a_command_within_the_limits_goes_on() {
    let lab = lab();
    let some = "for n in 1 2 3 4; do (head -c 1000000 /dev/zero; sleep 0.5) | tail | wc -c & done; wait";
    let ended = lab.ok("Bash", json!({"command": some})).await;
    assert_eq!(
        (&ended["status"], ended.get("note")),
        (&json!("completed"), None),
        "{ended}"
    );
}
