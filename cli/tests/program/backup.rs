//! `gsv backup` without a gateway.

use std::os::unix::fs::PermissionsExt;

use crate::common::Home;
use crate::common::fake_gateway::FakeGateway;
use crate::common::runtime::free_port;

#[test]
fn bk8_a_folder_is_refused_before_the_passphrase_is_asked_for() {
    let home = Home::new();
    let root = home.root().to_str().unwrap().to_owned();
    for force in [&[][..], &["--force"]] {
        let run = home.gsv([&["backup", &root], force].concat()).failed(2);
        assert!(run.stderr.contains("is a folder"), "{run:?}");
    }
}

/// A gateway that was started here once, and a folder for its backups.
fn stopped(home: &Home) -> String {
    home.write_state("port", "8787");
    std::fs::create_dir_all(home.state().join("gateway/do")).unwrap();
    let disk = home.root().join("disk");
    std::fs::create_dir(&disk).unwrap();
    disk.to_str().unwrap().to_owned()
}

fn schedule(home: &Home, args: &[&str]) -> crate::common::Run {
    home.gsv_with(
        [&["backup", "schedule"], args].concat(),
        "GSV_BACKUP_PASSPHRASE",
        "five words for a night",
    )
}

#[test]
fn bk14_a_schedule_is_set_shown_changed_and_ended() {
    let home = Home::new();
    let disk = stopped(&home);
    assert!(schedule(&home, &[]).ok().stderr.contains("No backups are scheduled."));
    let missing = schedule(&home, &["--keep", "3"]).failed(2);
    assert!(missing.stderr.contains("--to FOLDER"), "{missing:?}");

    let set = schedule(&home, &["--to", &disk, "--every", "12h"]).ok();
    for words in [
        "every    12 h",
        "keep     7 (0 there)",
        "last     none yet",
        "next     now",
    ] {
        assert!(set.stdout.contains(words), "{words}: {set:?}");
    }
    assert!(set.stderr.contains("`gsv up` starts it"), "{set:?}");
    let setting = std::fs::read_to_string(home.state().join("backups/schedule.json")).unwrap();
    assert!(!setting.contains("five words"), "{setting}");

    // One thing is changed without the passphrase, and the rest stays.
    let changed = home
        .gsv(["backup", "schedule", "--keep", "3", "--with-secrets", "--json"])
        .ok();
    let json = changed.json();
    assert_eq!(
        (&json["everyMs"], &json["keep"], &json["withSecrets"], &json["folder"]),
        (&43_200_000.into(), &3.into(), &true.into(), &disk.as_str().into())
    );
    assert!(!changed.stdout.contains("passphrase"), "{changed:?}");
    let shown = schedule(&home, &["--json"]).ok().json();
    assert_eq!(
        (&shown["scheduled"], &shown["failure"]),
        (&true.into(), &serde_json::Value::Null)
    );
    let without = home
        .gsv(["backup", "schedule", "--without-secrets", "--json"])
        .ok()
        .json();
    assert_eq!(without["withSecrets"], false);

    schedule(&home, &["--off"]).ok();
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0, "the mark is removed");
    assert_eq!(
        schedule(&home, &["--json"]).ok().json(),
        serde_json::json!({"scheduled": false})
    );
    schedule(&home, &["--off"]).ok();
}

#[test]
fn bk14_what_makes_no_sense_is_refused_before_anything_is_stored() {
    let home = Home::new();
    let disk = stopped(&home);
    for args in [
        &["--to", &disk, "--every", "10m"][..],
        &["--to", &disk, "--every", "month"],
        &["--to", &disk, "--keep", "0"],
        &["--to", &disk, "--keep", "9999"],
        &["--to", &disk, "--off"],
        &["--to", &disk, "--with-secrets", "--without-secrets"],
        &["--to", "no such folder"],
    ] {
        schedule(&home, args).failed(2);
    }
    let inside = home.state().join("workspace");
    std::fs::create_dir(&inside).unwrap();
    let run = schedule(&home, &["--to", inside.to_str().unwrap()]).failed(2);
    assert!(run.stderr.contains("in the state folder"), "{run:?}");
    let short = home
        .gsv_with(["backup", "schedule", "--to", &disk], "GSV_BACKUP_PASSPHRASE", "short")
        .failed(2);
    assert!(short.stderr.contains("fewer than 8"), "{short:?}");
    assert!(!home.state().join("backups/schedule.json").exists());
}

#[test]
fn bk21_the_state_of_another_gateway_than_the_one_in_use_is_not_saved_and_the_way_is_named() {
    let home = Home::new();
    let disk = stopped(&home);
    schedule(&home, &["--to", &disk]).ok();
    home.write_config("url = \"wss://gsv.example:8788/ws\"\ntoken = \"gsv_client_a_0\"\n");
    let file = home.root().join("a.backup");
    let file = file.to_str().unwrap();
    for (args, again) in [
        (
            &["backup", file][..],
            format!("gsv --url ws://127.0.0.1:8787/ws backup {file}"),
        ),
        (
            &["backup", "schedule", "--to", &disk],
            format!("gsv --url ws://127.0.0.1:8787/ws backup schedule --to {disk}"),
        ),
        (
            &["backup", "schedule", "--off"],
            "gsv --url ws://127.0.0.1:8787/ws backup schedule --off".to_owned(),
        ),
    ] {
        let run = home.gsv(args).failed(2);
        assert!(run.stderr.contains("[backup.not_here]"), "{run:?}");
        assert!(run.stderr.contains("wss://gsv.example:8788/ws"), "{run:?}");
        assert!(run.stderr.contains(home.state().to_str().unwrap()), "{run:?}");
        assert!(run.stderr.contains(&again), "{again}: {run:?}");
    }
    assert!(!std::path::Path::new(file).exists());
    assert!(home.state().join("backups/schedule.json").exists());
    home.gsv(["--url", "ws://127.0.0.1:8787/ws", "backup", "schedule", "--off"])
        .ok();
    assert!(!home.state().join("backups/schedule.json").exists());
    // Without a state there is nothing to save all the same.
    let home = Home::new();
    home.write_config("url = \"wss://gsv.example:8788/ws\"\n");
    let run = home.gsv(["backup", file]).failed(2);
    assert!(run.stderr.contains("does not run on this machine"), "{run:?}");
    assert!(!run.stderr.contains("gsv --url"), "{run:?}");
}

#[test]
fn a_word_that_was_meant_as_a_command_becomes_no_file() {
    let home = Home::new();
    stopped(&home);
    for (word, says) in [
        ("now", "To back up into a file of this name: `gsv backup ./now`"),
        ("list", "`gsv backup schedule`"),
        ("shedule", "Did you mean `gsv backup schedule`?"),
        ("verfy", "Did you mean `gsv backup verify`?"),
        ("restore", "`gsv restore FILE`"),
    ] {
        let run = home.gsv(["backup", word]).failed(2);
        assert!(run.stderr.contains(says), "{word}: {run:?}");
    }
    // A name is no word of these: the next question is the passphrase.
    for file in ["./now", "gsv.backup", "monday"] {
        let run = home.gsv(["backup", file]).failed(2);
        assert!(run.stderr.contains("passphrase"), "{file}: {run:?}");
    }
}

#[test]
fn bk14_times_are_in_the_zone_of_the_gateways_settings() {
    let gateway = FakeGateway::new().in_zone("Asia/Tokyo");
    let home = gateway.home();
    let disk = stopped(&home);
    home.write_state("port", &gateway.port.to_string());
    let setting = || schedule(&home, &["--to", &disk]);
    let mut set = std::thread::scope(|scope| {
        let run = scope.spawn(setting);
        drop(gateway.accept());
        run.join().unwrap().ok()
    });
    assert!(set.stderr.contains("Keep the passphrase elsewhere"), "{set:?}");
    set = std::thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv(["backup", "schedule", "--every", "week"]));
        drop(gateway.accept());
        run.join().unwrap().ok()
    });
    // It is stored already.
    assert!(!set.stderr.contains("Keep the passphrase elsewhere"), "{set:?}");
    let file = home.state().join("backups/schedule.json");
    let setting: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let kept = serde_json::json!([{"name": "a.backup", "beganAt": now, "endedAt": now, "bytes": 1}]);
    let record = serde_json::json!({"id": setting["id"], "kept": kept});
    let record_file = home.state().join("backups/record.json");
    std::fs::write(&record_file, record.to_string()).unwrap();
    std::fs::set_permissions(&record_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let shown = std::thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv(["backup", "schedule"]));
        drop(gateway.accept());
        run.join().unwrap().ok()
    });
    assert!(shown.stdout.contains("JST"), "{shown:?}");
}

#[test]
fn bk18_status_and_doctor_name_a_backup_that_failed_and_what_to_do() {
    let home = Home::new();
    let disk = stopped(&home);
    schedule(&home, &["--to", &disk]).ok();
    let file = home.state().join("backups/schedule.json");
    let setting: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let trouble = serde_json::json!({"since": 1, "at": 1, "count": 2, "message": "The disk is full.", "next": "Free some space."});
    let record = serde_json::json!({"id": setting["id"], "trouble": trouble});
    let file_of_record = home.state().join("backups/record.json");
    std::fs::write(&file_of_record, record.to_string()).unwrap();
    std::fs::set_permissions(&file_of_record, std::fs::Permissions::from_mode(0o600)).unwrap();
    let says = "The scheduled backup failed: The disk is full. Free some space.";
    for run in [home.gsv(["status"]), home.gsv(["backup", "schedule"])] {
        assert!(format!("{}{}", run.stdout, run.stderr).contains(says), "{run:?}");
    }
    let doctor = home.gsv(["doctor", "--offline"]);
    assert!(doctor.stdout.contains("fail  backups"), "{doctor:?}");
    assert_eq!(home.gsv(["status", "--json"]).json()["backups"]["failure"]["count"], 2);
    // A schedule that can't be read is no silence.
    std::fs::write(&file, "no JSON").unwrap();
    assert!(home.gsv(["doctor", "--offline"]).stdout.contains("schedule.json"));
    home.gsv(["backup", "schedule"]).failed(1);
}

#[test]
fn bk18_a_folder_of_backups_that_is_gone_is_told_before_the_next_backup_fails() {
    let home = Home::new();
    let disk = stopped(&home);
    schedule(&home, &["--to", &disk]).ok();
    let gone = "The folder of the scheduled backups is not there now";
    assert!(!schedule(&home, &[]).ok().stderr.contains(gone));
    std::fs::remove_dir_all(&disk).unwrap();
    for run in [home.gsv(["backup", "schedule"]), home.gsv(["status"])] {
        let said = format!("{}{}", run.stdout, run.stderr).replace('\n', " ");
        assert!(
            said.contains(gone) && said.contains("gsv backup schedule --to"),
            "{said}"
        );
    }
    assert!(home.gsv(["doctor", "--offline"]).stdout.contains(gone));
}

const PASSPHRASE: (&str, &str) = ("GSV_BACKUP_PASSPHRASE", "five words for a night");

#[test]
fn bk24_a_restore_names_a_free_port_when_that_of_the_backup_is_in_use() {
    let home = Home::new();
    stopped(&home);
    let port = free_port();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    home.write_state("port", &port.to_string());
    home.write_config(&format!("url = \"ws://127.0.0.1:{port}/ws\"\n"));
    let file = home.root().join("a.backup");
    let file = file.to_str().unwrap();
    let (variable, passphrase) = PASSPHRASE;
    home.gsv_with(["backup", file], variable, passphrase).ok();
    let restored = |folder: &str| {
        let into = home.root().join(folder);
        let args = ["restore", file, "--into", into.to_str().unwrap()];
        home.gsv_with(args, variable, passphrase).ok().stderr
    };
    let said = restored("one");
    let advised = said.lines().find_map(|line| line.split_once("gsv up --port "));
    let advised: u16 = advised.expect(&said).1.trim_end_matches('`').parse().unwrap();
    assert_ne!(advised, port);
    assert!(std::net::TcpListener::bind(("127.0.0.1", advised)).is_ok());
    drop(listener);
    let said = restored("two");
    assert!(said.contains("gsv up`\n") && !said.contains("--port"), "{said}");
}

#[test]
fn bk26_a_restore_where_no_state_was_says_that_the_other_gateway_must_be_stopped() {
    let (home, new) = (Home::new(), Home::new());
    stopped(&home);
    let file = home.root().join("a.backup");
    let file = file.to_str().unwrap();
    let (variable, passphrase) = PASSPHRASE;
    home.gsv_with(["backup", file], variable, passphrase).ok();
    let restored = |home: &Home, args: &[&str]| home.gsv_with(args, variable, passphrase).ok().stderr;
    let says = "still runs, first stop it there for good: `gsv down`";
    let said = restored(&new, &["restore", file]);
    assert!(said.contains(says), "{said}");
    assert!(said.contains(home.state().to_str().unwrap()), "{said}");
    // The state that is replaced is this machine's own, and a copy starts stopped.
    let said = restored(&home, &["restore", file, "--replace"]);
    assert!(!said.contains(says), "{said}");
    let copy = home.root().join("copy");
    let said = restored(&home, &["restore", file, "--into", copy.to_str().unwrap()]);
    assert!(!said.contains(says), "{said}");
}

#[test]
fn bk14_a_backup_and_a_restore_show_its_time_in_the_zone_of_the_gateways_settings() {
    let gateway = FakeGateway::new().in_zone("Asia/Tokyo");
    let home = gateway.home();
    stopped(&home);
    home.write_state("port", &gateway.port.to_string());
    let file = home.root().join("a.backup");
    let file = file.to_str().unwrap();
    let (variable, passphrase) = PASSPHRASE;
    home.gsv_with(["backup", file], variable, passphrase).ok();
    let into = home.root().join("copy");
    for args in [
        &["backup", "verify", file][..],
        &["restore", file, "--into", into.to_str().unwrap()],
    ] {
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(|| home.gsv_with(args, variable, passphrase));
            drop(gateway.accept());
            run.join().unwrap().ok()
        });
        let made = format!("{}{}", run.stdout, run.stderr);
        let made = made.lines().find(|line| line.contains("Made on ")).expect("the time");
        assert!(made.contains(" JST of "), "{made}");
    }
}
