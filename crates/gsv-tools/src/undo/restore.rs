//! Undoes calls on this node: the newest change first, each file only when it still is what the calls left (UN3). An undo is
//! recorded as the tools' changes are, so it can be undone (UN4). Repeating an interrupted undo finishes it: a file that has
//! its earlier content already is left alone.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use super::change::{FileState, Unkept};
use super::index::Step;
use super::keep::{cannot_keep, now_ms, state_before};
use super::side_by_side::side_by_side;
use super::store::{Planned, UndoStore, sha256_of, sha256_of_file};
use crate::beneath::{Beneath, Content, Links, Parents, RelPath, Spot, Target, kind_of};
use crate::error::ToolError;
use crate::limits;
use crate::write::WriteLock;

/// Which calls are undone, and how.
#[derive(Debug, Clone)]
pub struct UndoRequest {
    /// A call's id, or the beginning of several up to a `/`.
    pub calls: String,
    /// Names the undo, so that it can be undone itself.
    pub undo_id: String,
    /// Only says what would happen.
    pub is_dry: bool,
    /// Also restores files that were changed since.
    pub is_forced: bool,
    /// Goes on after a request before: its [`UndoReply::next`].
    pub before_seq: Option<u64>,
}

/// What an undo does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoAction {
    /// Restores the earlier content.
    Rewrite,
    /// Restores a deleted file.
    BringBack,
    /// Removes a file that the calls made.
    Remove,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoOutcome {
    /// A dry run: it would be undone.
    Planned,
    Undone,
    /// It has its earlier content already.
    Unchanged,
    /// It was changed since, and is left alone.
    Conflict,
    /// No copy was kept, or the copy is gone.
    NoCopy,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneFile {
    /// Relative to the workspace when it is inside, else absolute.
    pub path: String,
    pub action: UndoAction,
    pub outcome: UndoOutcome,
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReply {
    pub files: Vec<UndoneFile>,
    /// There is more: ask again with this as `before_seq`.
    pub next: Option<u64>,
}

/// Undoes calls. Shares the lock of the tools, so that no tool changes a file between a check and its restore.
pub(crate) struct Undo {
    pub(crate) files: Arc<Beneath>,
    pub(crate) store: Arc<UndoStore>,
    pub(crate) write_lock: Arc<WriteLock>,
}

/// A path with its name in its folder; `None`: the folder is missing.
type Found = (RelPath, Option<Spot>);

/// A file that is about to be restored.
struct Ready {
    at: usize,
    rel: RelPath,
    seen: Option<Stat>,
    content: Content,
}

impl Undo {
    /// At most [`limits::UNDO_FILES`] files. `Err`: nothing more could be recorded. The caller does not hear of the files that are
    /// done; a repeated request finds them unchanged.
    pub(crate) fn run(&self, request: &UndoRequest) -> Result<UndoReply, ToolError> {
        let is_due = |step: &Step| request.before_seq.is_none_or(|before| step.seq < before);
        let mut steps = self.store.plan(&request.calls).into_iter().filter(is_due).peekable();
        let (mut due, mut bytes) = (Vec::new(), 0);
        let fits = |step: &Step, bytes: usize| bytes == 0 || bytes + report_bytes(step) <= limits::UNDO_REPORT_BYTES;
        while due.len() < limits::UNDO_FILES
            && let Some(step) = steps.next_if(|step| fits(step, bytes))
        {
            bytes += report_bytes(&step);
            due.push(step);
        }
        let next = steps.next().and(due.last()).map(|last: &Step| last.seq);
        let mut files = Vec::with_capacity(due.len());
        for batch in due.chunks(limits::UNDO_BATCH) {
            files.extend(self.write_lock.run(|| self.batch(batch, request))?);
        }
        Ok(UndoReply { files, next })
    }

    pub(crate) fn sweep(&self) -> Result<(), ToolError> {
        let swept = self.write_lock.run(|| self.store.sweep(now_ms()));
        swept.map_err(|error| ToolError::io("remove old copies of changed files", error))
    }

    fn batch(&self, steps: &[Step], request: &UndoRequest) -> Result<Vec<UndoneFile>, ToolError> {
        let (mut files, mut due) = (Vec::new(), Vec::new());
        for (at, step) in steps.iter().enumerate() {
            let mut file = UndoneFile {
                path: self.show(&step.path),
                action: action_of(step),
                outcome: UndoOutcome::Planned,
                problem: None,
            };
            match self.check(step, request.is_forced) {
                Ok(found) if !request.is_dry => match self.open(step) {
                    Ok(content) => due.push((at, found, content)),
                    Err((outcome, problem)) => (file.outcome, file.problem) = (outcome, Some(problem)),
                },
                Ok(_) => {}
                Err((outcome, problem)) => (file.outcome, file.problem) = (outcome, problem),
            }
            files.push(file);
        }
        let prepared = side_by_side(due, limits::UNDO_THREADS, |(at, (rel, spot), content)| {
            let planned = self.record_of(&steps[at], &rel, spot.as_ref());
            let seen = spot.and_then(|spot| spot.stat);
            (at, planned.map(|planned| (planned, Ready { at, rel, seen, content })))
        });
        let (mut planned, mut ready) = (Vec::new(), Vec::new());
        for (at, prepared) in prepared {
            match prepared {
                Ok((record, file)) => {
                    planned.push(record);
                    ready.push(file);
                }
                // Another program changes it right now. That stops no other file.
                Err(error @ ToolError::Changed { .. }) => {
                    (files[at].outcome, files[at].problem) = (UndoOutcome::Conflict, Some(error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        self.store
            .record(&request.undo_id, now_ms(), planned, false)
            .map_err(|error| cannot_keep(self.files.workspace(), error))?;
        let restored = side_by_side(ready, limits::UNDO_THREADS, |ready| {
            let temp = temp_name(&steps[ready.at].path);
            let put = self
                .files
                .put_back(&ready.rel, ready.seen.as_ref(), ready.content, &temp);
            (ready.at, put)
        });
        for (at, put) in restored {
            let file = &mut files[at];
            match put {
                Ok(()) => file.outcome = UndoOutcome::Undone,
                Err(error @ ToolError::Changed { .. }) => {
                    (file.outcome, file.problem) = (UndoOutcome::Conflict, Some(error.to_string()));
                }
                Err(error) => (file.outcome, file.problem) = (UndoOutcome::Failed, Some(error.to_string())),
            }
        }
        Ok(files)
    }

    fn show(&self, path: &str) -> String {
        self.files
            .parse(path)
            .map_or_else(|_| path.to_owned(), |rel| self.files.show(&rel))
    }

    /// Whether the file may be restored, with its name; without one its folder is missing and is made again. `Err`: what becomes of it
    /// instead. Makes nothing.
    fn check(&self, step: &Step, is_forced: bool) -> Result<Found, (UndoOutcome, Option<String>)> {
        let failed = |error: ToolError| (UndoOutcome::Failed, Some(error.to_string()));
        let conflict = |problem: &str| Err((UndoOutcome::Conflict, Some(problem.to_owned())));
        if let FileState::Unkept { why, .. } = &step.before {
            let problem = format!("its earlier content was not kept, because {}", why.words());
            return Err((UndoOutcome::NoCopy, Some(problem)));
        }
        let rel = self.files.parse(&step.path).map_err(failed)?;
        let spot = match self.files.locate(&rel, Links::Keep, Parents::MustExist) {
            // Without its folder there is nothing to remove.
            Err(ToolError::NotFound { .. }) if step.before == FileState::Absent => {
                return Err((UndoOutcome::Unchanged, None));
            }
            Err(ToolError::NotFound { .. }) => None,
            found => Some(found.map_err(failed)?),
        };
        // The record names a file and no link. Through a link an undo would change another file.
        if !self.files.is_without_links(&rel, spot.as_ref()) {
            return conflict("a folder of its path is a link or a file now");
        }
        let now = match &spot {
            None => FileState::Absent,
            Some(spot) => present(&self.files.target(&rel, spot), &step.before, &step.left).map_err(failed)?,
        };
        if now.is_same(&step.before) {
            return Err((UndoOutcome::Unchanged, None));
        }
        if is_forced {
            return Ok((rel, spot));
        }
        if step.is_mixed {
            return conflict("it was also changed in between by something else");
        }
        if !step.left.iter().any(|left| left.is_same(&now)) {
            return conflict(match now {
                FileState::Absent => "it was removed since",
                _ => "it was changed since",
            });
        }
        Ok((rel, spot))
    }

    fn open(&self, step: &Step) -> Result<Content, (UndoOutcome, String)> {
        match &step.before {
            FileState::File { sha256, mode, .. } => {
                let gone = |error| (UndoOutcome::NoCopy, format!("its copy can't be read: {error}"));
                let from = self.store.open_copy(sha256).map_err(gone)?;
                Ok(Content::File { from, mode: *mode })
            }
            FileState::Link { target } => Ok(Content::Link { target: target.clone() }),
            FileState::Absent => Ok(Content::Nothing),
            FileState::Unkept { why, .. } => Err((UndoOutcome::NoCopy, why.words().to_owned())),
        }
    }

    fn record_of(&self, step: &Step, rel: &RelPath, spot: Option<&Spot>) -> Result<Planned, ToolError> {
        let before = match spot {
            Some(spot) => state_before(&self.files, &self.store, &self.files.target(rel, spot))?,
            None => FileState::Absent,
        };
        Ok(Planned {
            path: step.path.clone(),
            before,
            after: step.before.clone(),
        })
    }
}

/// What a file takes in a report at most: a character of its path becomes up to six, and its problem is a sentence.
fn report_bytes(step: &Step) -> usize {
    6 * step.path.len() + limits::UNDO_PROBLEM_BYTES
}

/// The same for each undo of a path, so that a repeated undo removes what an interrupted one has left.
pub(super) fn temp_name(path: &str) -> String {
    format!(".gsv-undo-{}.tmp", &sha256_of(path.as_bytes())[..16])
}

fn action_of(step: &Step) -> UndoAction {
    match (&step.before, step.left.last()) {
        (FileState::Absent, _) => UndoAction::Remove,
        (_, Some(FileState::Absent)) => UndoAction::BringBack,
        _ => UndoAction::Rewrite,
    }
}

/// What the path holds now. A file whose size is none of the expected ones is not read.
fn present(target: &Target<'_>, before: &FileState, left: &[FileState]) -> Result<FileState, ToolError> {
    let Some(stat) = target.stat else {
        return Ok(FileState::Absent);
    };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let other = FileState::Unkept {
        size,
        why: Unkept::Unreadable,
    };
    match kind_of(stat) {
        FileType::Symlink => Ok(target.read_link().map_or(other, |target| FileState::Link { target })),
        FileType::RegularFile => {
            let is_expected = |state: &FileState| state.copy().is_some_and(|(_, expected)| expected == size);
            if !is_expected(before) && !left.iter().any(is_expected) {
                return Ok(other);
            }
            let mut file = target
                .open()
                .map_err(|error| unreadable(target.path.as_path(), error))?;
            let hashed = sha256_of_file(&mut file);
            let (sha256, size) = hashed.map_err(|error| unreadable(target.path.as_path(), error))?;
            Ok(FileState::File { sha256, size, mode: 0 })
        }
        _ => Err(ToolError::Failed(
            "there is a directory or a device now; move it away first".into(),
        )),
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> ToolError {
    ToolError::io(format!("read {}", path.display()), error)
}
