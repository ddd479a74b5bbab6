//! The node dies before any operation on the disk: a change is either not made, or can be undone; an interrupted undo is
//! finished by the next one; copies and records that were cut off do no harm.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::index::Limits;
use super::keep::Keeper;
use super::restore::{Undo, UndoOutcome, UndoRequest, temp_name};
use super::store::{Steps, UndoStore};
use crate::beneath::{Beneath, Resolver, Scope};
use crate::write::WriteLock;

const NOW: u64 = 1_800_000_000_000;
const WIDE: Limits = Limits {
    bytes: 1 << 30,
    age_ms: u64::MAX,
    changes: 100_000,
};

/// Dies before a given step, and does nothing ever after.
struct Dying(AtomicUsize);

impl Dying {
    fn after(steps: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(steps)))
    }
}

impl Steps for Dying {
    fn next(&self, _operation: &'static str) -> io::Result<()> {
        let left = |steps: usize| steps.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other("the node was killed")),
        }
    }
}

struct Lab {
    dir: TempDir,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        Self { dir }
    }

    fn undo(&self, steps: usize) -> Undo {
        self.undo_within(steps, WIDE)
    }

    /// The node, which dies before that many operations of its store.
    fn undo_within(&self, steps: usize, limits: Limits) -> Undo {
        let files = Beneath::new(&self.dir.path().join("ws"), Scope::Workspace, Resolver::Auto).unwrap();
        let store = UndoStore::open_with(&self.dir.path().join("undo"), NOW, limits, Dying::after(steps)).unwrap();
        Undo {
            files: Arc::new(files),
            store: Arc::new(store),
            write_lock: Arc::new(WriteLock::default()),
        }
    }

    /// Contents and modes by name.
    fn files(&self) -> BTreeMap<String, (Vec<u8>, u32)> {
        let entries = fs::read_dir(self.dir.path().join("ws")).unwrap();
        entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let found = path.symlink_metadata().unwrap();
                if found.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    return (name, (target.into_os_string().into_encoded_bytes(), 0));
                }
                (name, (fs::read(&path).unwrap(), found.permissions().mode() & 0o777))
            })
            .collect()
    }

    fn put(&self, name: &str, content: &str, mode: u32) {
        let path = self.dir.path().join("ws").join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn copies(&self) -> usize {
        fs::read_dir(self.dir.path().join("undo/copies")).unwrap().count()
    }
}

/// As the tools do it. `content`: `None` deletes.
fn change(undo: &Undo, call: &str, name: &str, content: Option<&str>) -> Result<(), String> {
    let keeper = Keeper::new(Arc::clone(&undo.store));
    let rel = undo.files.parse(name).unwrap();
    let bytes = content.map(str::as_bytes);
    let mut keep = |target: &crate::beneath::Target<'_>| keeper.keep(&undo.files, call, target, bytes).map(|_| ());
    let done = match bytes {
        Some(bytes) => undo.files.write_after(&rel, bytes, None, &mut keep),
        None => undo.files.remove_after(&rel, &mut keep),
    };
    done.map_err(|error| error.to_string())
}

/// A run of five calls: two rewrites of one file, a deletion, a new file, a deleted link.
fn run(undo: &Undo) -> Result<(), String> {
    change(undo, "ref/r1/1/0", "a", Some("a, written"))?;
    change(undo, "ref/r1/1/1", "gone", None)?;
    change(undo, "ref/r1/2/0", "a", Some("a, written again"))?;
    change(undo, "ref/r1/2/1", "new", Some("made by the run"))?;
    change(undo, "ref/r1/3/0", "link", None)
}

fn prepared() -> Lab {
    let lab = Lab::new();
    lab.put("a", "the first a", 0o640);
    lab.put("gone", "kept for later", 0o755);
    lab.put("other", "not touched", 0o600);
    std::os::unix::fs::symlink("other", lab.dir.path().join("ws/link")).unwrap();
    lab
}

fn request(calls: &str, undo_id: &str) -> UndoRequest {
    UndoRequest {
        calls: calls.to_owned(),
        undo_id: undo_id.to_owned(),
        is_dry: false,
        is_forced: false,
        before_seq: None,
    }
}

fn outcomes(undo: &Undo, request: &UndoRequest) -> BTreeMap<String, UndoOutcome> {
    let reply = undo.run(request).unwrap();
    reply.files.into_iter().map(|file| (file.path, file.outcome)).collect()
}

#[test]
fn un1_a_kill_before_any_step_leaves_no_change_or_one_that_can_be_undone() {
    let mut steps = 0;
    loop {
        let lab = prepared();
        let first = lab.files();
        let is_whole = run(&lab.undo(steps)).is_ok();
        let again = lab.undo(usize::MAX);
        let done = outcomes(&again, &request("ref/r1/", "undo/1"));
        assert_eq!(lab.files(), first, "killed before step {steps}");
        assert!(
            done.values()
                .all(|outcome| matches!(outcome, UndoOutcome::Undone | UndoOutcome::Unchanged)),
            "{done:?}"
        );
        if is_whole {
            assert_eq!(done.len(), 4);
            assert!(steps > 10, "each call has several steps: {steps}");
            return;
        }
        steps += 1;
    }
}

#[test]
fn un4_an_undo_that_is_killed_before_any_step_is_finished_by_the_next_and_can_be_undone() {
    let mut steps = 0;
    loop {
        let lab = prepared();
        let first = lab.files();
        run(&lab.undo(usize::MAX)).unwrap();
        let changed = lab.files();
        let is_whole = lab.undo(steps).run(&request("ref/r1/", "undo/1")).is_ok();
        let again = lab.undo(usize::MAX);
        outcomes(&again, &request("ref/r1/", "undo/1"));
        assert_eq!(lab.files(), first, "killed before step {steps}");
        let back = outcomes(&again, &request("undo/1", "undo/2"));
        assert!(back.values().all(|outcome| *outcome == UndoOutcome::Undone), "{back:?}");
        let names = |files: &BTreeMap<String, (Vec<u8>, u32)>| {
            let contents = files.iter().map(|(name, (content, _))| (name.clone(), content.clone()));
            contents.collect::<Vec<_>>()
        };
        assert_eq!(names(&lab.files()), names(&changed), "the undo of the undo");
        outcomes(&again, &request("undo/2", "undo/3"));
        assert_eq!(lab.files(), first, "and once more");
        if is_whole {
            assert!(steps > 4, "{steps}");
            return;
        }
        steps += 1;
    }
}

#[test]
fn un4_a_kill_between_the_files_of_an_undo_is_finished_by_the_next() {
    let lab = prepared();
    let first = lab.files();
    run(&lab.undo(usize::MAX)).unwrap();
    // The undo restored one file and died: the record of all of them is there.
    fs::write(lab.dir.path().join("ws/gone"), "kept for later").unwrap();
    fs::set_permissions(lab.dir.path().join("ws/gone"), fs::Permissions::from_mode(0o755)).unwrap();
    // It died in the next one, and left the beginning of a temporary file.
    let path = lab.dir.path().canonicalize().unwrap().join("ws/a");
    fs::write(path.with_file_name(temp_name(path.to_str().unwrap())), "the fi").unwrap();
    let done = outcomes(&lab.undo(usize::MAX), &request("ref/r1/", "undo/1"));
    assert_eq!(done["gone"], UndoOutcome::Unchanged);
    assert_eq!(lab.files(), first);
}

#[test]
fn un2_a_kill_before_any_step_of_pruning_loses_no_copy_that_a_record_needs() {
    let limits = Limits { changes: 8, ..WIDE };
    let mut steps = 0;
    loop {
        let lab = Lab::new();
        lab.put("a", "0", 0o644);
        let undo = lab.undo(usize::MAX);
        for at in 1..=8 {
            change(&undo, &format!("ref/r{at}/1/0"), "a", Some(&at.to_string())).unwrap();
        }
        drop(undo);
        let dying = lab.undo_within(steps, limits);
        let is_made = change(&dying, "ref/r9/1/0", "a", Some("9")).is_ok();
        let last = if is_made { 9 } else { 8 };
        let again = lab.undo(usize::MAX);
        let steps_of = |run: usize| again.store.plan(&format!("ref/r{run}/"));
        for run in 1..=last {
            for step in steps_of(run) {
                let (sha256, _) = step.before.copy().unwrap();
                assert!(
                    again.store.open_copy(sha256).is_ok(),
                    "run {run}, killed before step {steps}"
                );
            }
        }
        let done = outcomes(&again, &request(&format!("ref/r{last}/"), "undo/1"));
        assert_eq!(done["a"], UndoOutcome::Undone, "the newest change stays");
        // 10 steps: 5 of the change, 5 and more of the pruning.
        if is_made && steps > 20 {
            assert!(steps_of(1).is_empty(), "the oldest went");
            return;
        }
        steps += 1;
    }
}

#[test]
fn un2_a_torn_record_and_copies_without_a_record_are_removed_at_the_start() {
    let lab = prepared();
    run(&lab.undo(usize::MAX)).unwrap();
    let copies = lab.copies();
    let log = lab.dir.path().join("undo/changes.jsonl");
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{whole}{{\"seq\":9,\"call\":\"ref/r")).unwrap();
    fs::write(lab.dir.path().join("undo/copies/.new-1"), "half").unwrap();
    let undo = lab.undo(usize::MAX);
    assert_eq!((lab.copies(), fs::read_to_string(&log).unwrap()), (copies, whole));
    change(&undo, "ref/r2/1/0", "a", Some("after the torn record")).unwrap();
    let again = lab.undo(usize::MAX);
    assert_eq!(
        outcomes(&again, &request("ref/r2/", "undo/1"))["a"],
        UndoOutcome::Undone
    );
}

#[test]
fn un3_a_file_that_was_changed_since_is_left_alone_unless_forced() {
    let lab = prepared();
    let undo = lab.undo(usize::MAX);
    run(&undo).unwrap();
    lab.put("a", "the owner's own words", 0o640);
    fs::remove_file(lab.dir.path().join("ws/new")).unwrap();
    let dry = UndoRequest {
        is_dry: true,
        ..request("ref/r1/", "undo/1")
    };
    let before = lab.files();
    let planned = outcomes(&undo, &dry);
    assert_eq!(lab.files(), before, "a dry run changes nothing");
    let expected = [
        ("a", UndoOutcome::Conflict),
        ("gone", UndoOutcome::Planned),
        ("link", UndoOutcome::Planned),
        ("new", UndoOutcome::Unchanged),
    ];
    assert_eq!(
        planned,
        expected.map(|(name, outcome)| (name.to_owned(), outcome)).into()
    );
    let done = outcomes(&undo, &request("ref/r1/", "undo/1"));
    assert_eq!((done["a"], done["gone"]), (UndoOutcome::Conflict, UndoOutcome::Undone));
    assert_eq!(lab.files()["a"].0, b"the owner's own words");
    let forced = UndoRequest {
        is_forced: true,
        ..request("ref/r1/", "undo/2")
    };
    assert_eq!(outcomes(&undo, &forced)["a"], UndoOutcome::Undone);
    assert_eq!(lab.files()["a"].0, b"the first a");
    outcomes(&undo, &request("undo/2", "undo/3"));
    assert_eq!(
        lab.files()["a"].0,
        b"the owner's own words",
        "a forced undo can be undone"
    );
}

#[test]
fn un3_a_change_of_another_program_between_two_calls_is_not_lost() {
    let lab = prepared();
    let undo = lab.undo(usize::MAX);
    change(&undo, "ref/r1/1/0", "a", Some("by the first call")).unwrap();
    lab.put("a", "by the owner", 0o640);
    change(&undo, "ref/r1/2/0", "a", Some("by the second call")).unwrap();
    let reply = undo.run(&request("ref/r1/", "undo/1")).unwrap();
    assert_eq!(reply.files[0].outcome, UndoOutcome::Conflict);
    assert_eq!(
        reply.files[0].problem.as_deref(),
        Some("it was also changed in between by something else")
    );
    assert_eq!(lab.files()["a"].0, b"by the second call");
}

#[test]
fn un3_a_deleted_file_comes_back_with_its_folder() {
    let lab = prepared();
    let folder = lab.dir.path().join("ws/folder");
    fs::create_dir(&folder).unwrap();
    lab.put("folder/f", "kept", 0o644);
    let undo = lab.undo(usize::MAX);
    change(&undo, "ref/r1/1/0", "folder/f", None).unwrap();
    change(&undo, "ref/r1/2/0", "folder/new", Some("made")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let done = outcomes(&undo, &request("ref/r1/", "undo/1"));
    assert_eq!(done["folder/f"], UndoOutcome::Undone);
    assert_eq!(done["folder/new"], UndoOutcome::Unchanged);
    assert_eq!(fs::read(folder.join("f")).unwrap(), b"kept");
}

#[test]
fn un2_a_file_of_more_than_256_mib_is_changed_without_a_copy() {
    let lab = prepared();
    let file = File::options().write(true).open(lab.dir.path().join("ws/a")).unwrap();
    file.set_len(256 * 1024 * 1024 + 1).unwrap();
    let undo = lab.undo(usize::MAX);
    change(&undo, "ref/r1/1/0", "a", Some("small")).unwrap();
    assert_eq!(outcomes(&undo, &request("ref/r1/", "undo/1"))["a"], UndoOutcome::NoCopy);
    assert_eq!(lab.copies(), 0);
}

/// Reading it would take hours.
#[test]
fn un3_a_file_of_another_size_is_not_read() {
    let lab = prepared();
    let undo = lab.undo(usize::MAX);
    change(&undo, "ref/r1/1/0", "a", Some("small")).unwrap();
    let file = File::options().write(true).open(lab.dir.path().join("ws/a")).unwrap();
    file.set_len(1 << 42).unwrap();
    assert_eq!(
        outcomes(&undo, &request("ref/r1/", "undo/1"))["a"],
        UndoOutcome::Conflict
    );
}

#[test]
fn un3_many_files_are_undone_in_several_requests() {
    let lab = Lab::new();
    let undo = lab.undo(usize::MAX);
    for at in 0..450 {
        change(&undo, "ref/r1/1/0", &format!("f{at}"), Some("new")).unwrap();
    }
    let mut next = request("ref/r1/", "undo/1");
    let mut counts = Vec::new();
    loop {
        let reply = undo.run(&next).unwrap();
        counts.push(reply.files.len());
        next.before_seq = reply.next;
        if reply.next.is_none() {
            break;
        }
    }
    assert_eq!(counts, [200, 200, 50]);
    assert!(lab.files().is_empty());
}

#[test]
fn un1_the_copies_are_private() {
    let lab = prepared();
    run(&lab.undo(usize::MAX)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = lab.dir.path().join("undo");
    assert_eq!((mode(&dir), mode(&dir.join("copies"))), (0o700, 0o700));
    assert_eq!(mode(&dir.join("changes.jsonl")), 0o600);
    for copy in fs::read_dir(dir.join("copies")).unwrap() {
        assert_eq!(mode(&copy.unwrap().path()), 0o600);
    }
}
