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
        let mut steps = self.store.plan(&request.calls).into_iter().filter(is_due);
        let due: Vec<Step> = steps.by_ref().take(limits::UNDO_FILES).collect();
        let next = steps.next().and(due.last()).map(|last| last.seq);
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
                Ok((rel, spot)) if !request.is_dry => match self.open(step) {
                    Ok(content) => due.push((at, rel, spot, content)),
                    Err((outcome, problem)) => (file.outcome, file.problem) = (outcome, Some(problem)),
                },
                Ok(_) => {}
                Err((outcome, problem)) => (file.outcome, file.problem) = (outcome, problem),
            }
            files.push(file);
        }
        let prepared = side_by_side(due, limits::UNDO_THREADS, |(at, rel, spot, content)| {
            let planned = self.record_of(&steps[at], &rel, &spot)?;
            let seen = spot.stat;
            Ok((planned, Ready { at, rel, seen, content }))
        });
        let (planned, ready): (Vec<_>, Vec<_>) = prepared
            .into_iter()
            .collect::<Result<Vec<_>, ToolError>>()?
            .into_iter()
            .unzip();
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

    /// Whether the file may be restored. `Err`: what becomes of it instead.
    #[allow(clippy::type_complexity, reason = "used once")]
    fn check(&self, step: &Step, is_forced: bool) -> Result<(RelPath, Spot), (UndoOutcome, Option<String>)> {
        let failed = |error: ToolError| (UndoOutcome::Failed, Some(error.to_string()));
        if let FileState::Unkept { why, .. } = &step.before {
            let problem = format!("its earlier content was not kept, because {}", why.words());
            return Err((UndoOutcome::NoCopy, Some(problem)));
        }
        let rel = self.files.parse(&step.path).map_err(failed)?;
        // A missing folder is made again for a deleted file; without one there is nothing to remove.
        let spot = match self.files.locate(&rel, Links::Keep, Parents::MustExist) {
            Err(ToolError::NotFound { .. }) if step.before == FileState::Absent => {
                return Err((UndoOutcome::Unchanged, None));
            }
            Err(ToolError::NotFound { .. }) => self.files.locate(&rel, Links::Keep, Parents::Create),
            found => found,
        };
        let spot = spot.map_err(failed)?;
        let target = self.files.target(&rel, &spot);
        let now = present(&target, &step.before, &step.left).map_err(failed)?;
        if now.is_same(&step.before) {
            return Err((UndoOutcome::Unchanged, None));
        }
        if is_forced {
            return Ok((rel, spot));
        }
        if step.is_mixed {
            let problem = "it was also changed in between by something else".to_owned();
            return Err((UndoOutcome::Conflict, Some(problem)));
        }
        if !step.left.iter().any(|left| left.is_same(&now)) {
            let problem = match now {
                FileState::Absent => "it was removed since",
                _ => "it was changed since",
            };
            return Err((UndoOutcome::Conflict, Some(problem.to_owned())));
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

    fn record_of(&self, step: &Step, rel: &RelPath, spot: &Spot) -> Result<Planned, ToolError> {
        let target = self.files.target(rel, spot);
        Ok(Planned {
            path: step.path.clone(),
            before: state_before(&self.files, &self.store, &target)?,
            after: step.before.clone(),
        })
    }
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
