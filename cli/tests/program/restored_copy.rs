//! What is said about `gsv resume` while the local config is for a restored copy that runs on this machine: such a copy goes on only with the
//! command that names its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{played_in, serve};

/// A home whose gateway, which this test plays, is recorded as that of a restored copy. The second value is the command that lets it go on.
fn copy_of(gateway: &FakeGateway) -> (Home, String) {
    let home = gateway.home();
    let copy = home.root().join("my copy");
    fs::create_dir_all(copy.join("gateway")).unwrap();
    fs::write(copy.join("gateway/start-stopped"), "01a").unwrap();
    let records = home.root().join(".cache/gsv/running");
    fs::create_dir_all(&records).unwrap();
    // The supervisor is this test.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = &stat[stat.rfind(')').unwrap() + 2..];
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let state = json!({"phase": "ready", "supervisorPid": std::process::id(), "supervisorStart": fields.split(' ').nth(19).unwrap(),
        "bootId": boot.trim(), "port": gateway.port, "home": copy, "version": "1", "startedAt": 1, "restarts": 0});
    let record = records.join("copy.json");
    fs::write(&record, state.to_string()).unwrap();
    for path in [&copy, &copy.join("gateway"), &record] {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    (home, format!("`GSV_HOME='{}' gsv resume`", copy.display()))
}

fn says(args: &[&str], play: impl FnOnce(&mut Connection)) {
    let gateway = FakeGateway::new();
    let (home, command) = copy_of(&gateway);
    let run = played_in(&gateway, &home, args, play);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(
        said.contains(&command) && !said.contains("`gsv resume"),
        "{command}: {said}"
    );
}

#[test]
fn bk23_every_command_that_names_the_resume_names_the_folder_of_the_copy() {
    says(&["chat", "hello"], |connection| {
        let sent = connection.expect("chat.send");
        let run = sent.params["runId"].clone();
        connection.answer(
            &sent,
            &json!({"status": "started", "runId": run, "queued": true, "seq": 1, "stopped": true}),
        );
    });
    says(&["stop", "--all"], |connection| {
        let done = json!({"ok": true, "runs": [], "pending": 0, "state": {"since": 1, "by": "cli"}});
        serve(connection, "gateway.stop", &json!({}), &done);
    });
    says(&["cron", "runs"], |connection| {
        let asked = connection.expect("cron.runs");
        let waits = json!({"id": 1, "jobId": "a", "ts": 0, "status": "waiting", "waits": "resume"});
        connection.answer(&asked, &json!({"runs": [waits], "count": 1}));
    });
    // The gateway's own hint names no folder.
    says(&["workspace", "cat", "x"], |connection| {
        let asked = connection.request();
        connection.error(&asked, 409, "gateway.stopped", "GSV is stopped.");
    });
}
