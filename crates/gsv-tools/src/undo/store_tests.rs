//! The store's operations on the disk and their order, and its limits.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::change::FileState;
use super::index::Limits;
use super::store::{Planned, Steps, UndoStore, sha256_of, sha256_of_file};

const NOW: u64 = 1_800_000_000_000;
const SMALL: usize = 1024 * 1024;
const WIDE: Limits = Limits {
    bytes: 1 << 30,
    age_ms: 1000,
    changes: 100,
};

#[derive(Default)]
struct Noted(Mutex<Vec<&'static str>>);
impl Steps for Noted {
    fn next(&self, operation: &'static str) -> io::Result<()> {
        self.0.lock().unwrap().push(operation);
        Ok(())
    }
}
impl Noted {
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn open(dir: &TempDir, now_ms: u64, limits: Limits) -> (UndoStore, Arc<Noted>) {
    let noted = Arc::new(Noted::default());
    let store = UndoStore::open_with(dir.path(), now_ms, limits, noted.clone()).unwrap();
    (store, noted)
}
fn file_of(content: &[u8]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, content).unwrap();
    File::open(path).unwrap()
}
fn add(store: &UndoStore, content: &[u8]) -> String {
    let size = content.len() as u64;
    store.add_copy(&file_of(content), size).unwrap().unwrap()
}
fn record(store: &UndoStore, call: &str, now_ms: u64, content: &[u8]) {
    let before = FileState::File {
        sha256: add(store, content),
        size: content.len() as u64,
        mode: 0o644,
    };
    let planned = Planned {
        path: "/ws/f".into(),
        before,
        after: FileState::Absent,
    };
    store.record(call, now_ms, vec![planned], true).unwrap();
}
fn copies(dir: &TempDir) -> usize {
    fs::read_dir(dir.path().join("copies")).unwrap().count()
}

#[test]
fn un1_a_copy_is_durable_before_it_has_its_name_and_its_record_before_the_change() {
    let dir = tempfile::tempdir().unwrap();
    let (store, noted) = open(&dir, NOW, WIDE);
    assert_eq!(noted.take(), [""; 0]);
    record(&store, "c/1", NOW, b"one");
    assert_eq!(noted.take(), ["create", "sync", "rename", "sync_dir", "write", "sync"]);
    record(&store, "c/2", NOW, b"one");
    assert_eq!(noted.take(), ["write", "sync"], "the same content is kept once");
    store.record("c/3", NOW, vec![], true).unwrap();
    assert_eq!(noted.take(), [""; 0], "nothing to record");
}

#[test]
fn un1_a_large_file_is_copied_through_the_disk_and_kept_once() {
    for (size, again) in [(SMALL, vec![]), (SMALL + 1, vec!["create", "remove"])] {
        let dir = tempfile::tempdir().unwrap();
        let (store, noted) = open(&dir, NOW, WIDE);
        let content: Vec<u8> = (0..=250).cycle().take(size).collect();
        let sha256 = add(&store, &content);
        assert_eq!(sha256, sha256_of(&content));
        assert_eq!(noted.take(), ["create", "sync", "rename"]);
        let mut kept = Vec::new();
        store.open_copy(&sha256).unwrap().read_to_end(&mut kept).unwrap();
        assert!(kept == content, "{size}");
        assert_eq!(add(&store, &content), sha256);
        assert_eq!(noted.take(), again, "{size}");
        assert_eq!(copies(&dir), 1, "{size}");
    }
}

#[test]
fn un1_a_file_that_has_another_size_than_was_seen_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(&dir, NOW, WIDE);
    for (has, seen) in [(3, 2), (3, 4), (SMALL + 2, SMALL + 1), (SMALL + 2, SMALL + 3)] {
        let file = file_of(&vec![b'x'; has]);
        assert_eq!(store.add_copy(&file, seen as u64).unwrap(), None, "{has} {seen}");
        assert_eq!(copies(&dir), 0, "{has} {seen}");
    }
}

#[test]
fn un2_pruning_writes_the_shorter_record_before_it_removes_copies() {
    let dir = tempfile::tempdir().unwrap();
    let (store, noted) = open(&dir, NOW, WIDE);
    record(&store, "c/1", NOW, b"one");
    record(&store, "c/2", NOW + 1, b"two");
    noted.take();
    store.sweep(NOW + 1000).unwrap();
    assert_eq!(noted.take(), [""; 0], "nothing is too old");
    store.sweep(NOW + 1001).unwrap();
    assert_eq!(noted.take(), ["create", "sync", "rename", "sync_dir", "remove"]);
    assert_eq!(
        (store.plan("c/1").len(), store.plan("c/2").len(), copies(&dir)),
        (0, 1, 1)
    );
    record(&store, "c/3", NOW + 2, b"three");
    drop(store);
    let (store, _) = open(&dir, NOW + 2, WIDE);
    assert_eq!(
        (store.plan("c/2").len(), store.plan("c/3").len()),
        (1, 1),
        "the new record goes on"
    );
    drop(store);
    let (store, _) = open(&dir, NOW + 5000, WIDE);
    assert_eq!(
        (store.plan("c/2").len(), store.plan("c/3").len(), copies(&dir)),
        (0, 0, 0),
        "at the start"
    );
}

#[test]
fn un1_reading_goes_on_after_an_interruption() {
    struct Interrupted(bool);
    impl Read for Interrupted {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if !std::mem::replace(&mut self.0, true) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            io::empty().read(to)
        }
    }
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _to: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }
    assert_eq!(sha256_of_file(&mut Interrupted(false)).unwrap(), (sha256_of(b""), 0));
    assert!(sha256_of_file(&mut Broken).is_err());
}
