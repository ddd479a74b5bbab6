//! Something in the workspace works against the undo: folders that are exchanged with links, files that grow while they are copied, names
//! that are taken, and paths that fill a report.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::keep::Keeper;
use super::restore::{Undo, UndoOutcome, UndoReply, UndoRequest, temp_name};
use super::store::UndoStore;
use crate::beneath::{Beneath, Resolver, Scope, Target};
use crate::error::ToolError;
use crate::write::WriteLock;

const NOW: u64 = 1_800_000_000_000;
const CALL: &str = "ref/r1/1/0";

struct Lab {
    _dir: TempDir,
    ws: PathBuf,
    copies: PathBuf,
    undo: Undo,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let ws = root.join("ws");
        fs::create_dir(&ws).unwrap();
        let undo = Undo {
            files: Arc::new(Beneath::new(&ws, Scope::Workspace, Resolver::Auto).unwrap()),
            store: Arc::new(UndoStore::open(&root.join("undo"), NOW).unwrap()),
            write_lock: Arc::new(WriteLock::default()),
        };
        Self {
            _dir: dir,
            ws,
            copies: root.join("undo/copies"),
            undo,
        }
    }

    /// `meanwhile`: what another program does between the look at the file and its copy.
    fn write(&self, name: &str, content: &str, meanwhile: impl Fn()) -> Result<(), ToolError> {
        let keeper = Keeper::new(Arc::clone(&self.undo.store));
        let rel = self.undo.files.parse(name)?;
        let mut keep = |target: &Target<'_>| {
            meanwhile();
            keeper
                .keep(&self.undo.files, CALL, target, Some(content.as_bytes()))
                .map(|_| ())
        };
        self.undo.files.write_after(&rel, content.as_bytes(), None, &mut keep)
    }

    fn delete(&self, name: &str) {
        let keeper = Keeper::new(Arc::clone(&self.undo.store));
        let rel = self.undo.files.parse(name).unwrap();
        let mut keep = |target: &Target<'_>| keeper.keep(&self.undo.files, CALL, target, None).map(|_| ());
        self.undo.files.remove_after(&rel, &mut keep).unwrap();
    }

    fn undo(&self, is_dry: bool, is_forced: bool) -> UndoReply {
        self.part(is_dry, is_forced, None)
    }

    fn part(&self, is_dry: bool, is_forced: bool, before_seq: Option<u64>) -> UndoReply {
        let request = UndoRequest {
            calls: CALL.to_owned(),
            undo_id: "undo/1".to_owned(),
            is_dry,
            is_forced,
            before_seq,
        };
        self.undo.run(&request).unwrap()
    }

    fn outcome(&self, is_dry: bool, is_forced: bool) -> UndoOutcome {
        self.undo(is_dry, is_forced).files[0].outcome
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.ws.join(name)).unwrap()
    }
}

#[test]
fn un3_a_plan_makes_no_folder_for_a_file_that_would_come_back() {
    let lab = Lab::new();
    fs::create_dir_all(lab.ws.join("a/b")).unwrap();
    fs::write(lab.ws.join("a/b/c"), "kept").unwrap();
    lab.delete("a/b/c");
    fs::remove_dir_all(lab.ws.join("a")).unwrap();
    assert_eq!(lab.outcome(true, false), UndoOutcome::Planned);
    assert!(!lab.ws.join("a").exists());
    assert_eq!(lab.outcome(false, false), UndoOutcome::Undone);
    assert_eq!(lab.read("a/b/c"), "kept");
}

#[test]
fn un3_a_folder_that_is_a_link_now_leads_an_undo_to_no_other_file() {
    for is_forced in [false, true] {
        let lab = Lab::new();
        for folder in ["a", "b"] {
            fs::create_dir(lab.ws.join(folder)).unwrap();
        }
        fs::write(lab.ws.join("a/file"), "first").unwrap();
        lab.write("a/file", "written", || {}).unwrap();
        fs::write(lab.ws.join("b/file"), "written").unwrap();
        fs::rename(lab.ws.join("a"), lab.ws.join("c")).unwrap();
        std::os::unix::fs::symlink("b", lab.ws.join("a")).unwrap();
        assert_eq!(lab.outcome(true, is_forced), UndoOutcome::Conflict);
        assert_eq!(lab.outcome(false, is_forced), UndoOutcome::Conflict);
        assert_eq!(
            (lab.read("b/file"), lab.read("c/file")),
            ("written".into(), "written".into())
        );
        // Also for a file that is to come back, where the link's target lacks it.
        fs::remove_file(lab.ws.join("b/file")).unwrap();
        assert_eq!(lab.outcome(false, is_forced), UndoOutcome::Conflict);
        assert!(!lab.ws.join("b/file").exists());
    }
}

#[test]
fn un1_of_a_file_that_changes_while_it_is_copied_nothing_is_kept_and_nothing_is_changed() {
    // Needs no space on the disk. Without a limit a copy of a larger one would fill the memory, or the disk.
    let big = |path: &PathBuf| {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(1 << 23)
            .unwrap();
    };
    for size in [10, 2 * 1024 * 1024] {
        let lab = Lab::new();
        let path = lab.ws.join("file");
        fs::write(&path, "x".repeat(size)).unwrap();
        let refused = lab.write("file", "written", || big(&path));
        assert!(matches!(refused, Err(ToolError::Changed { .. })), "{refused:?}");
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 23);
        assert_eq!(fs::read_dir(&lab.copies).unwrap().count(), 0);
        assert!(lab.undo(true, false).files.is_empty());
    }
}

#[test]
fn un3_a_folder_with_the_name_of_the_temporary_file_does_not_stop_an_undo() {
    let lab = Lab::new();
    fs::write(lab.ws.join("file"), "first").unwrap();
    lab.write("file", "written", || {}).unwrap();
    let temp = temp_name(&lab.ws.join("file").to_string_lossy());
    fs::create_dir_all(lab.ws.join(temp).join("full")).unwrap();
    assert_eq!(lab.outcome(false, false), UndoOutcome::Undone);
    assert_eq!(lab.read("file"), "first");
}

#[test]
fn un3_long_paths_are_reported_in_parts_that_fit_a_frame() {
    let lab = Lab::new();
    // Each character becomes six in JSON.
    let folder = ["\u{1}".repeat(250).as_str(); 14].join("/");
    fs::create_dir_all(lab.ws.join(&folder)).unwrap();
    for number in 0..90 {
        lab.write(&format!("{folder}/{number}"), "new", || {}).unwrap();
        // A conflict has a sentence too.
        fs::write(lab.ws.join(format!("{folder}/{number}")), "changed").unwrap();
    }
    let (mut before_seq, mut files) = (None, 0);
    loop {
        let reply = lab.part(false, false, before_seq);
        let bytes: usize = (reply.files.iter())
            .map(|file| serde_json::json!([file.path, file.problem]).to_string().len() + 100)
            .sum();
        assert!(bytes < 1024 * 1024, "{bytes} bytes for {} files", reply.files.len());
        files += reply.files.len();
        before_seq = reply.next;
        if before_seq.is_none() {
            break;
        }
    }
    assert_eq!(files, 90);
}
