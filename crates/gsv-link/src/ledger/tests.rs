use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::events::EVENTS;
use super::store::{LOG, RESULTS};
use super::*;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
const NOW: EpochMs = 1_800_000_000_000;

fn open(dir: &TempDir) -> Ledger {
    open_at(dir, NOW)
}
fn open_at(dir: &TempDir, now: EpochMs) -> Ledger {
    Ledger::open(dir.path(), now).unwrap()
}
fn process() -> ProcessInfo {
    ProcessInfo {
        pid: 7,
        pgid: 7,
        boot_id: "boot".into(),
        start_time: "99".into(),
        spool: "/spool/a".into(),
    }
}
fn finish(ledger: &mut Ledger, call: &str, result: &Value) {
    ledger.finish(NOW, call, false, result).unwrap().sync().unwrap();
}
fn log_bytes(dir: &Path) -> Vec<u8> {
    fs::read(dir.join(LOG)).unwrap()
}
fn result_files(dir: &Path) -> usize {
    fs::read_dir(dir.join(RESULTS)).unwrap().count()
}

#[test]
fn k15_to_k20_a_call_goes_from_accepted_to_released_and_every_step_survives_a_restart() {
    let dir = TempDir::new().unwrap();
    let result = json!({"callId": "s/r1/1/0", "outcome": "ok", "result": {"exitCode": 0}});
    let call = "s/r1/1/0";
    let mut ledger = open(&dir);
    assert_eq!(ledger.state(call), None);
    ledger.accept(NOW, call, "Bash", true).unwrap().sync().unwrap();
    drop(ledger);
    let mut ledger = open(&dir);
    assert_eq!(ledger.state(call), Some(CallState::Accepted));
    ledger.start(NOW, call, Some(&process())).unwrap().sync().unwrap();
    drop(ledger);
    let mut ledger = open(&dir);
    let known = ledger.started().remove(0);
    assert_eq!(
        (known.call_id.as_str(), known.tool.as_str(), known.process),
        (call, "Bash", Some(process()))
    );
    finish(&mut ledger, call, &result);
    drop(ledger);
    let mut ledger = open(&dir);
    assert_eq!(ledger.unreleased(), vec![call]);
    assert_eq!(ledger.result(call).unwrap(), Some(result.clone()));
    ledger.release(NOW, call).unwrap();
    drop(ledger);
    let ledger = open(&dir);
    assert_eq!(ledger.state(call), Some(CallState::Released));
    assert_eq!(ledger.result(call).unwrap(), Some(result));
    assert!(ledger.unreleased().is_empty() && ledger.listing().calls.is_empty());
}

#[test]
fn p6_no_step_can_be_made_twice_or_out_of_order() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    let wrong = |outcome: Result<Commit, LedgerError>| matches!(outcome, Err(LedgerError::WrongState { .. }));
    assert!(wrong(ledger.start(NOW, "a", None)));
    assert!(wrong(ledger.finish(NOW, "a", false, &json!(1))));
    ledger.begin(NOW, "a", "Write", true).unwrap().sync().unwrap();
    assert!(wrong(ledger.accept(NOW, "a", "Write", true)));
    assert!(wrong(ledger.begin(NOW, "a", "Write", true)));
    assert!(wrong(ledger.start(NOW, "a", None)));
    assert!(ledger.forget("a").is_err());
    assert!(ledger.release(NOW, "a").is_err());
    finish(&mut ledger, "a", &json!(1));
    assert!(wrong(ledger.finish(NOW, "a", false, &json!(2))));
    ledger.release(NOW, "a").unwrap();
    ledger.release(NOW, "a").unwrap();
    assert!(wrong(ledger.accept(NOW, "a", "Write", true)));
    assert_eq!(ledger.result("a").unwrap(), Some(json!(1)));
}

#[test]
fn t3_the_listing_has_the_state_of_each_call() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    for call in ["released", "finished", "lost", "started", "accepted"] {
        ledger.accept(NOW, call, "Bash", true).unwrap().lazily();
    }
    for call in ["released", "finished", "lost", "started"] {
        ledger.start(NOW, call, None).unwrap().lazily();
    }
    for call in ["released", "finished", "lost"] {
        ledger.finish(NOW, call, call == "lost", &json!({})).unwrap().lazily();
    }
    ledger.release(NOW, "released").unwrap();
    let listed: Vec<_> = ledger
        .listing()
        .calls
        .into_iter()
        .map(|call| (call.call_id, call.state))
        .collect();
    let want = [
        ("started", LedgerCallState::Started),
        ("accepted", LedgerCallState::Accepted),
        ("finished", LedgerCallState::Finished),
        ("lost", LedgerCallState::Lost),
    ];
    assert_eq!(listed, want.map(|(call, state)| (call.to_owned(), state)));
}

#[test]
fn the_listing_fits_a_connect_frame() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    for number in 0..600 {
        ledger.begin(NOW, &format!("{number}"), "Read", false).unwrap().lazily();
        ledger
            .finish(NOW, &format!("{number}"), false, &json!({}))
            .unwrap()
            .lazily();
    }
    ledger.accept(NOW, "waiting", "Bash", true).unwrap().lazily();
    let calls = ledger.listing().calls;
    assert_eq!((calls.len(), calls[0].call_id.as_str()), (512, "waiting"));
    assert_eq!(ledger.unreleased().len(), 600);
}

#[test]
fn large_results_are_files_of_their_own_and_go_with_their_call() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    let large = json!({"result": "x".repeat(300_000)});
    ledger.begin(NOW, "a", "Read", false).unwrap().lazily();
    finish(&mut ledger, "a", &large);
    assert!(log_bytes(dir.path()).len() < 1000 && result_files(dir.path()) == 1);
    drop(ledger);
    fs::write(dir.path().join(RESULTS).join("77.json"), b"orphan").unwrap();
    fs::write(dir.path().join(RESULTS).join("5.new"), b"half").unwrap();
    let mut ledger = open(&dir);
    assert_eq!(result_files(dir.path()), 1);
    assert_eq!(ledger.result("a").unwrap(), Some(large));
    ledger.release(NOW, "a").unwrap();
    ledger.sweep(NOW + DAY + 1);
    assert_eq!((ledger.state("a"), result_files(dir.path())), (None, 0));
}

#[test]
fn a_removed_result_file_is_a_missing_result_not_an_error() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.begin(NOW, "a", "Read", false).unwrap().lazily();
    finish(&mut ledger, "a", &json!("x".repeat(300_000)));
    for file in fs::read_dir(dir.path().join(RESULTS)).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(ledger.result::<Value>("a").unwrap(), None);
    assert_eq!(ledger.state("a"), Some(CallState::Finished));
}

#[test]
fn p6_2_a_released_call_is_kept_for_a_day_and_may_then_come_again() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.begin(NOW, "a", "Write", true).unwrap().lazily();
    finish(&mut ledger, "a", &json!(1));
    ledger.release(NOW, "a").unwrap();
    ledger.sweep(NOW + DAY);
    assert_eq!(ledger.state("a"), Some(CallState::Released));
    ledger.sweep(NOW + DAY + 1);
    assert_eq!(ledger.state("a"), None);
    ledger.accept(NOW + DAY + 1, "a", "Write", true).unwrap().lazily();
    drop(ledger);
    assert_eq!(open_at(&dir, NOW + DAY + 2).state("a"), Some(CallState::Accepted));
}

#[test]
fn p7_an_unreleased_result_is_kept_7_days_then_dropped_with_a_note_and_the_call_is_not_run_again() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.begin(NOW, "a", "Write", true).unwrap().lazily();
    finish(&mut ledger, "a", &json!(1));
    ledger.sweep(NOW + 7 * DAY);
    assert_eq!(ledger.result("a").unwrap(), Some(json!(1)));
    assert_eq!(ledger.take_notes(), Vec::<String>::new());
    ledger.sweep(NOW + 7 * DAY + 1);
    assert_eq!(
        (ledger.result::<Value>("a").unwrap(), ledger.state("a")),
        (None, Some(CallState::Finished))
    );
    assert_eq!(
        ledger.take_notes(),
        ["the result of call a is dropped: the gateway has not acknowledged it for 7 days"]
    );
    drop(ledger);
    let ledger = open_at(&dir, NOW + 7 * DAY + 2);
    assert_eq!(
        (ledger.result::<Value>("a").unwrap(), ledger.state("a")),
        (None, Some(CallState::Finished))
    );
    drop(ledger);
    assert_eq!(open_at(&dir, NOW + 8 * DAY + 1).state("a"), None);
}

#[test]
fn p7_beyond_256_mib_the_oldest_results_are_dropped_with_a_note() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    assert_eq!(ledger.max_bytes, 256 * 1024 * 1024);
    ledger.max_bytes = 32 * 1024 * 1024;
    let large = json!("x".repeat(2 * 1024 * 1024 - 2));
    for number in 0..18 {
        let call = format!("c{number:02}");
        ledger.begin(NOW, &call, "Read", false).unwrap().lazily();
        ledger.finish(NOW + number, &call, false, &large).unwrap().lazily();
    }
    assert_eq!(result_files(dir.path()), 16);
    let notes = ledger.take_notes();
    assert_eq!(notes.len(), 2);
    assert!(notes[0].contains("c00") && notes[1].contains("c01"), "{notes:?}");
    assert_eq!(ledger.result::<Value>("c01").unwrap(), None);
    assert_eq!(ledger.result("c02").unwrap(), Some(large));
    assert_eq!(ledger.state("c00"), Some(CallState::Finished));
}

#[test]
fn f75_p7_beyond_the_limit_only_acknowledged_calls_are_removed() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.max_calls = 4;
    ledger.accept(NOW, "accepted", "Bash", true).unwrap().lazily();
    ledger.begin(NOW, "started", "Write", true).unwrap().lazily();
    for call in ["one", "two", "three", "four", "five"] {
        ledger.begin(NOW, call, "Write", true).unwrap().lazily();
        finish(&mut ledger, call, &json!(call));
    }
    ledger.release(NOW, "two").unwrap();
    ledger.release(NOW, "four").unwrap();
    ledger.sweep(NOW);
    let states = ["accepted", "started", "one", "two", "three", "four", "five"].map(|call| ledger.state(call));
    assert_eq!(
        states,
        [
            Some(CallState::Accepted),
            Some(CallState::Started),
            Some(CallState::Finished),
            None,
            Some(CallState::Finished),
            None,
            Some(CallState::Finished),
        ]
    );
    assert_eq!(ledger.unreleased(), ["one", "three", "five"]);
}

#[test]
fn events_wait_until_they_are_acknowledged_and_are_kept_once() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    assert!(ledger.add_event(NOW, "e1", &json!({"n": 1})).unwrap().is_some());
    assert!(ledger.add_event(NOW, "e1", &json!({"n": 1})).unwrap().is_none());
    ledger
        .add_event(NOW, "e2", &json!({"n": 2}))
        .unwrap()
        .unwrap()
        .sync()
        .unwrap();
    drop(ledger);
    let mut ledger = open(&dir);
    assert_eq!(ledger.pending_events(), vec!["e1", "e2"]);
    assert_eq!(ledger.event("e2").unwrap(), Some(json!({"n": 2})));
    ledger.event_done("e1").unwrap();
    ledger.compact().unwrap();
    drop(ledger);
    let mut ledger = open(&dir);
    assert_eq!(ledger.pending_events(), vec!["e2"]);
    assert_eq!(ledger.event("e2").unwrap(), Some(json!({"n": 2})));
    for number in 0..EVENTS {
        ledger
            .add_event(NOW, &format!("more{number}"), &json!({}))
            .unwrap()
            .unwrap()
            .lazily();
    }
    assert_eq!(ledger.pending_events().len(), EVENTS);
    assert!(ledger.take_notes()[0].contains("e2"));
}

#[test]
fn two_processes_never_share_a_ledger() {
    let dir = TempDir::new().unwrap();
    let first = open(&dir);
    let error = Ledger::open(dir.path(), NOW).err().unwrap();
    assert!(
        matches!(&error, LedgerError::Locked { pid, .. } if *pid == std::process::id().to_string()),
        "{error}"
    );
    drop(first);
    open(&dir);
}

/// A ledger with two whole calls and a third that is the last record.
fn three(dir: &TempDir) -> (usize, Vec<u8>) {
    let mut ledger = open(dir);
    for call in ["a", "b"] {
        ledger.begin(NOW, call, "Write", true).unwrap().lazily();
        finish(&mut ledger, call, &json!({"of": call}));
    }
    let whole = log_bytes(dir.path()).len();
    ledger.accept(NOW, "c", "Bash", true).unwrap().sync().unwrap();
    (whole, log_bytes(dir.path()))
}

#[test]
fn a_torn_tail_is_cut_off_at_every_length() {
    let dir = TempDir::new().unwrap();
    let (whole, bytes) = three(&dir);
    for len in whole..bytes.len() {
        fs::write(dir.path().join(LOG), &bytes[..len]).unwrap();
        let mut ledger = open(&dir);
        assert_eq!(ledger.state("c"), None, "{len}");
        assert_eq!(ledger.result("b").unwrap(), Some(json!({"of": "b"})));
        assert_eq!(ledger.take_notes().len(), usize::from(len > whole), "{len}");
        ledger.accept(NOW, "d", "Bash", true).unwrap().sync().unwrap();
        drop(ledger);
        let mut ledger = open(&dir);
        assert_eq!(
            (ledger.state("d"), ledger.take_notes().len()),
            (Some(CallState::Accepted), 0),
            "{len}"
        );
    }
}

#[test]
fn a_flipped_byte_in_the_last_record_costs_only_that_record() {
    let dir = TempDir::new().unwrap();
    let (whole, bytes) = three(&dir);
    for at in whole..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        fs::write(dir.path().join(LOG), &flipped).unwrap();
        let mut ledger = open(&dir);
        assert_eq!(
            (ledger.state("a"), ledger.state("c")),
            (Some(CallState::Finished), None),
            "{at}"
        );
        assert_eq!(ledger.take_notes().len(), 1, "{at}");
        ledger.accept(NOW, "c", "Bash", true).unwrap().sync().unwrap();
        drop(ledger);
        assert_eq!(open(&dir).state("c"), Some(CallState::Accepted), "{at}");
    }
}

#[test]
fn a_flipped_byte_anywhere_costs_only_its_record_and_the_broken_log_is_kept() {
    let dir = TempDir::new().unwrap();
    let (whole, bytes) = three(&dir);
    for at in 0..whole {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        fs::write(dir.path().join(LOG), &flipped).unwrap();
        let mut ledger = open_at(&dir, NOW + at as u64);
        let notes = ledger.take_notes();
        assert!(notes.len() == 1 && notes[0].contains("damaged"), "{at}: {notes:?}");
        assert_eq!(
            fs::read(dir.path().join(format!("ledger.broken-{}", NOW + at as u64))).unwrap(),
            flipped
        );
        // At most one of the five records is gone, and what is left of a call never lets it run again.
        assert_eq!(ledger.state("c"), Some(CallState::Accepted), "{at}");
        let known = ["a", "b"].map(|call| ledger.state(call));
        assert!(
            known
                .iter()
                .all(|state| matches!(state, Some(CallState::Finished | CallState::Started))),
            "{at}: {known:?}"
        );
        assert!(known.contains(&Some(CallState::Finished)));
        drop(ledger);
        let mut again = open_at(&dir, NOW + at as u64);
        assert_eq!(
            (["a", "b"].map(|call| again.state(call)), again.take_notes().len()),
            (known, 0),
            "{at}"
        );
    }
    let broken = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("broken"));
    assert!(broken.count() <= 4);
}

#[test]
fn any_bytes_open_as_a_usable_ledger() {
    let dir = TempDir::new().unwrap();
    let (_, bytes) = three(&dir);
    let mut zeroed = bytes.clone();
    zeroed.extend([0; 4096]);
    let mut repeated = bytes.clone();
    repeated.extend(&bytes);
    for content in [
        vec![],
        b"GSV".to_vec(),
        b"hello".to_vec(),
        vec![0; 100],
        vec![0xff; 5000],
        zeroed,
        repeated,
    ] {
        fs::write(dir.path().join(LOG), &content).unwrap();
        let mut ledger = open(&dir);
        ledger.accept(NOW, "new", "Bash", true).unwrap().sync().unwrap();
        drop(ledger);
        let mut ledger = open(&dir);
        assert_eq!(
            (ledger.state("new"), ledger.take_notes().len()),
            (Some(CallState::Accepted), 0)
        );
    }
}

#[test]
fn a_grown_log_is_rewritten_and_keeps_open_calls() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.accept(NOW, "waiting", "Bash", true).unwrap().lazily();
    ledger.accept(NOW, "running", "Bash", true).unwrap().lazily();
    ledger.start(NOW, "running", Some(&process())).unwrap().lazily();
    let result = json!("r".repeat(200_000));
    for number in 0..200 {
        let call = format!("c{number}");
        ledger.begin(NOW, &call, "Read", false).unwrap().lazily();
        ledger.finish(NOW, &call, false, &result).unwrap().lazily();
        ledger.release(NOW, &call).unwrap();
        ledger.sweep(if number % 10 == 9 { NOW + 2 * DAY } else { NOW });
        assert!(log_bytes(dir.path()).len() < 25 * 1024 * 1024);
    }
    ledger.accept(NOW, "last", "Bash", true).unwrap().lazily();
    drop(ledger);
    let ledger = open(&dir);
    let states = ["waiting", "running", "last", "c0"].map(|call| ledger.state(call));
    assert_eq!(
        states,
        [
            Some(CallState::Accepted),
            Some(CallState::Started),
            Some(CallState::Accepted),
            None
        ]
    );
    assert_eq!(ledger.started()[0].process, Some(process()));
}

#[test]
fn s20_the_files_are_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let root = TempDir::new().unwrap();
    let dir = root.path().join("state/ledger");
    let mut ledger = Ledger::open(&dir, NOW).unwrap();
    ledger.begin(NOW, "a", "Read", false).unwrap().lazily();
    finish(&mut ledger, "a", &json!("x".repeat(300_000)));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    for path in [
        dir.clone(),
        dir.join(LOG),
        dir.join("lock"),
        dir.join(RESULTS),
        dir.join(RESULTS).join("1.json"),
    ] {
        assert_eq!(mode(&path), 0, "{}", path.display());
    }
}
