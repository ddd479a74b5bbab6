//! The limits to the byte and the millisecond, and a disk that refuses single operations.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gsv_protocol::limits;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::disk::{Disk, RealDisk};
use super::record::HEADER;
use super::store::{LOG, NEW_LOG, RESULTS};
use super::*;

const DAY: u64 = 86_400_000;
const NOW: EpochMs = 1_800_000_000_000;

/// Notes what it is asked for, and refuses some of it.
#[derive(Default)]
struct NotingDisk {
    asked: Mutex<Vec<&'static str>>,
    refused: Mutex<Vec<&'static str>>,
}
impl NotingDisk {
    fn ask(&self, operation: &'static str) -> io::Result<()> {
        self.asked.lock().unwrap().push(operation);
        if self.refused.lock().unwrap().contains(&operation) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        Ok(())
    }
    fn refuse(&self, operations: &[&'static str]) {
        *self.refused.lock().unwrap() = operations.to_vec();
    }
    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}
impl Disk for NotingDisk {
    /// When refused, the first half is on the disk.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.ask("write") {
            RealDisk.write_at(file, &bytes[..bytes.len() / 2], offset)?;
            return Err(error);
        }
        RealDisk.write_at(file, bytes, offset)
    }
    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.ask("set_len").and_then(|()| RealDisk.set_len(file, len))
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.ask("sync").and_then(|()| RealDisk.sync(file))
    }
    fn create(&self, path: &Path) -> io::Result<File> {
        self.ask("create").and_then(|()| RealDisk.create(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask("rename").and_then(|()| RealDisk.rename(from, to))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask("link").and_then(|()| RealDisk.link(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask("remove").and_then(|()| RealDisk.remove(path))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.ask("sync_dir").and_then(|()| RealDisk.sync_dir(path))
    }
}

fn open(dir: &TempDir) -> Ledger {
    Ledger::open(dir.path(), NOW).unwrap()
}
fn noting(dir: &TempDir) -> (Ledger, Arc<NotingDisk>) {
    let disk = Arc::new(NotingDisk::default());
    (Ledger::open_on(dir.path(), NOW, disk.clone()).unwrap(), disk)
}
fn run(ledger: &mut Ledger, at: EpochMs, call: &str, result: &Value) {
    ledger.begin(at, call, "Write", true).unwrap().lazily();
    ledger.finish(at, call, false, result).unwrap().lazily();
}
fn log_of(dir: &TempDir) -> Vec<u8> {
    fs::read(dir.path().join(LOG)).unwrap()
}
fn large() -> Value {
    json!("x".repeat(300_000))
}

#[test]
fn p7_a_dropped_call_is_known_for_one_more_day() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    run(&mut ledger, NOW, "a", &json!(1));
    for (age, known) in [(7 * DAY + 1, true), (8 * DAY, true), (8 * DAY + 1, false)] {
        ledger.sweep(NOW + age);
        assert_eq!(ledger.state("a").is_some(), known, "{age}");
    }
}

#[test]
fn p7_a_call_that_was_never_started_is_removed_after_7_days_with_a_note() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.accept(NOW, "a", "Bash", true).unwrap().lazily();
    ledger.sweep(NOW + 7 * DAY);
    assert_eq!(
        (ledger.state("a"), ledger.take_notes().len()),
        (Some(CallState::Accepted), 0)
    );
    ledger.sweep(NOW + 7 * DAY + 1);
    assert_eq!((ledger.state("a"), ledger.take_notes().len()), (None, 1));
}

#[test]
fn p7_an_event_waits_7_days_for_the_gateway() {
    let dir = TempDir::new().unwrap();
    let (mut ledger, disk) = noting(&dir);
    ledger.add_event(NOW, "e", &json!({})).unwrap().unwrap().lazily();
    ledger.sweep(NOW + 7 * DAY);
    assert_eq!((ledger.pending_events().len(), ledger.take_notes().len()), (1, 0));
    disk.refuse(&["write"]);
    ledger.sweep(NOW + 7 * DAY + 1);
    assert_eq!(
        ledger.take_notes().len(),
        2,
        "that it was dropped, and that the disk failed"
    );
    disk.refuse(&[]);
    ledger.sweep(NOW + 7 * DAY + 1);
    assert_eq!(ledger.pending_events(), Vec::<String>::new());
}

#[test]
fn the_only_event_is_acknowledged() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.add_event(NOW, "e", &json!({})).unwrap().unwrap().lazily();
    let before = log_of(&dir).len();
    ledger.event_done("other").unwrap();
    assert_eq!(log_of(&dir).len(), before, "nothing to record");
    ledger.event_done("e").unwrap();
    assert_eq!(ledger.pending_events(), Vec::<String>::new());
}

#[test]
fn p7_results_may_fill_their_limits_and_the_oldest_go_beyond_it() {
    for released in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut ledger = open(&dir);
        for call in ["a", "b", "c"] {
            run(&mut ledger, NOW, call, &json!("12345678"));
            if released {
                ledger.release(NOW, call).unwrap();
            }
        }
        let limit = |ledger: &mut Ledger, bytes: u64| {
            *(if released {
                &mut ledger.max_released_bytes
            } else {
                &mut ledger.max_bytes
            }) = bytes;
            ledger.sweep(NOW);
            ["a", "b", "c"].map(|call| ledger.result::<Value>(call).unwrap().is_some())
        };
        assert_eq!(limit(&mut ledger, 30), [true, true, true]);
        assert_eq!(limit(&mut ledger, 29), [false, true, true]);
        assert_eq!(limit(&mut ledger, 10), [false, false, true]);
        assert_eq!(ledger.take_notes().len(), if released { 0 } else { 2 });
    }
}

#[test]
fn p7_the_bytes_of_results_are_counted_again_after_each_mebibyte() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    ledger.max_bytes = 0;
    let quarter = json!("x".repeat(256 * 1024 - 2));
    for (call, is_kept) in [("a", true), ("b", true), ("c", true), ("d", true), ("e", false)] {
        run(&mut ledger, NOW, call, &quarter);
        assert_eq!(ledger.result::<Value>("a").unwrap().is_some(), is_kept, "{call}");
    }
}

#[test]
fn results_are_sent_in_the_order_in_which_their_calls_ended() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    for call in ["slow", "fast"] {
        ledger.begin(NOW, call, "Bash", true).unwrap().lazily();
    }
    ledger.finish(NOW + 1, "fast", false, &json!(1)).unwrap().lazily();
    ledger.finish(NOW + 2, "slow", false, &json!(1)).unwrap().lazily();
    assert_eq!(ledger.unreleased(), ["fast", "slow"]);
}

#[test]
fn f70_what_a_new_log_a_repair_and_a_large_result_promise_is_synced() {
    let dir = TempDir::new().unwrap();
    let (mut ledger, disk) = noting(&dir);
    assert_eq!(disk.asked(), ["create", "write", "sync", "sync_dir"]);
    ledger.begin(NOW, "a", "Read", false).unwrap().lazily();
    disk.asked();
    ledger.finish(NOW, "a", false, &large()).unwrap().lazily();
    assert_eq!(disk.asked(), ["create", "write", "sync", "rename", "sync_dir", "write"]);
    drop(ledger);
    let whole = log_of(&dir);
    fs::write(dir.path().join(LOG), &whole[..whole.len() - 1]).unwrap();
    let (_ledger, disk) = noting(&dir);
    assert_eq!(disk.asked()[..2], ["set_len", "sync"]);
}

#[test]
fn an_unfinished_rewrite_is_removed_at_the_start() {
    let dir = TempDir::new().unwrap();
    drop(open(&dir));
    fs::write(dir.path().join(NEW_LOG), b"half").unwrap();
    drop(open(&dir));
    assert!(!dir.path().join(NEW_LOG).exists());
}

#[test]
fn files_that_can_not_be_removed_are_named() {
    let dir = TempDir::new().unwrap();
    drop(open(&dir));
    fs::write(dir.path().join(RESULTS).join("77.json"), b"orphan").unwrap();
    for number in 0..4 {
        fs::write(dir.path().join(format!("ledger.broken-{number}")), b"old").unwrap();
    }
    let disk = Arc::new(NotingDisk::default());
    disk.refuse(&["remove"]);
    let notes = Ledger::open_on(dir.path(), NOW, disk).unwrap().take_notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("77.json can't be removed"), "{notes:?}");
    assert!(notes[1].contains("ledger.broken-0 can't be removed"), "{notes:?}");
}

#[test]
fn p7_a_drop_that_fails_is_named() {
    let dir = TempDir::new().unwrap();
    let (mut ledger, disk) = noting(&dir);
    run(&mut ledger, NOW, "a", &large());
    ledger.release(NOW, "a").unwrap();
    disk.refuse(&["write", "remove"]);
    ledger.sweep(NOW + DAY + 1);
    let notes = ledger.take_notes();
    assert_eq!(notes.len(), 3, "its result, its file, the call: {notes:?}");
}

#[test]
fn half_a_record_that_can_not_be_cut_off_is_no_damage_later() {
    let dir = TempDir::new().unwrap();
    let (mut ledger, disk) = noting(&dir);
    disk.refuse(&["write", "set_len"]);
    assert!(ledger.accept(NOW, &"long".repeat(500), "Bash", true).is_err());
    disk.refuse(&[]);
    ledger.accept(NOW, "b", "Bash", true).unwrap().sync().unwrap();
    drop(ledger);
    let mut again = open(&dir);
    assert_eq!(again.take_notes(), Vec::<String>::new());
    assert_eq!(again.state("b"), Some(CallState::Accepted));
}

#[test]
fn a_stored_result_is_read_up_to_its_limit() {
    let dir = TempDir::new().unwrap();
    let mut ledger = open(&dir);
    run(&mut ledger, NOW, "a", &large());
    let most = usize::try_from(limits::TOOL_RESULT_BYTES + limits::FRAME_BYTES).unwrap();
    let file = dir.path().join(RESULTS).join("1.json");
    fs::write(&file, format!("1{}", " ".repeat(most - 1))).unwrap();
    assert_eq!(ledger.result("a").unwrap(), Some(json!(1)));
    fs::write(&file, format!("1{}", " ".repeat(most))).unwrap();
    assert_eq!(ledger.result::<Value>("a").unwrap(), None);
}

/// The log of three calls, and where its records begin.
fn three(dir: &TempDir) -> (Vec<u8>, Vec<usize>) {
    let mut ledger = open(dir);
    for call in ["a", "b", "c"] {
        ledger.accept(NOW, call, "Bash", true).unwrap().lazily();
    }
    drop(ledger);
    let bytes = log_of(dir);
    let mut starts = vec![HEADER];
    for _ in 0..2 {
        let at = starts[starts.len() - 1];
        let len = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        starts.push(at + HEADER + len as usize);
    }
    (bytes, starts)
}

#[test]
fn p7_a_log_begins_with_its_format_and_one_of_an_earlier_version_without_it_is_read() {
    let dir = TempDir::new().unwrap();
    let (bytes, _) = three(&dir);
    assert!(bytes.starts_with(b"GSVLOG1\n"));
    fs::write(dir.path().join(LOG), &bytes[HEADER..]).unwrap();
    let mut ledger = open(&dir);
    ledger.accept(NOW, "d", "Bash", true).unwrap().sync().unwrap();
    drop(ledger);
    let mut again = open(&dir);
    assert_eq!(again.take_notes(), Vec::<String>::new());
    assert!(["a", "b", "c", "d"].iter().all(|call| again.state(call).is_some()));
}

#[test]
fn p7_the_note_about_damage_counts_the_bytes_that_are_lost() {
    let dir = TempDir::new().unwrap();
    let (mut bytes, starts) = three(&dir);
    bytes[starts[1] + HEADER + 2] ^= 0x20;
    fs::write(dir.path().join(LOG), &bytes).unwrap();
    let notes = open(&dir).take_notes();
    let lost = format!("{} bytes could not be read, 1 records", starts[2] - starts[1]);
    assert!(notes[0].contains(&lost), "{notes:?}");
}

#[test]
fn p7_a_torn_end_after_damage_costs_nothing_in_between() {
    let dir = TempDir::new().unwrap();
    let (mut bytes, starts) = three(&dir);
    bytes[starts[0] + HEADER + 2] ^= 0x20;
    bytes.truncate(bytes.len() - 1);
    fs::write(dir.path().join(LOG), &bytes).unwrap();
    let ledger = open(&dir);
    assert_eq!(
        ["a", "b", "c"].map(|call| ledger.state(call).is_some()),
        [false, true, false]
    );
}

#[test]
fn another_file_in_the_place_of_the_log_is_kept_and_a_log_that_was_just_begun_is_no_damage() {
    for (content, is_kept) in [(b"hello".as_slice(), true), (b"GSV", false), (b"", false)] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(LOG), content).unwrap();
        assert_eq!(open(&dir).take_notes().len(), usize::from(is_kept), "{content:?}");
        assert_eq!(dir.path().join(format!("ledger.broken-{NOW}")).exists(), is_kept);
    }
}

#[test]
fn the_lock_of_a_node_that_is_ending_is_waited_for() {
    let dir = TempDir::new().unwrap();
    let _first = open(&dir);
    let before = std::time::Instant::now();
    assert!(Ledger::open(dir.path(), NOW).is_err());
    // It may take longer, and never less.
    assert!(before.elapsed() >= std::time::Duration::from_millis(500));
}
