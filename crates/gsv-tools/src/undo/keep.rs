//! Keeps what a file is before a tool changes it (UN1). When that fails, the change must not be made.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::FileType;

use super::change::{FileState, Unkept};
use super::store::{Planned, UndoStore, sha256_of};
use crate::beneath::{Beneath, Target, kind_of, mode_of};
use crate::error::{ToolError, quote};
use crate::limits;

/// Whether a change can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// The tools keep nothing at all, and their user knows it.
    Off,
    No(&'static str),
}

impl Kept {
    /// For the result of the call, when the change can't be undone.
    pub(crate) fn note(self) -> Option<String> {
        match self {
            Self::Yes | Self::Off => None,
            Self::No(why) => Some(format!(
                "This change can't be undone: the earlier content was not kept, because {why}."
            )),
        }
    }
}

/// Keeps nothing when the node has no folder for copies.
#[derive(Clone, Default)]
pub(crate) struct Keeper(Option<Arc<UndoStore>>);

impl Keeper {
    pub(crate) fn new(store: Arc<UndoStore>) -> Self {
        Self(Some(store))
    }

    /// Call it right before the change. `content`: what the file will hold; `None`: it is removed.
    pub(crate) fn keep(
        &self,
        files: &Beneath,
        call: &str,
        target: &Target<'_>,
        content: Option<&[u8]>,
    ) -> Result<Kept, ToolError> {
        let Some(store) = &self.0 else {
            return Ok(Kept::Off);
        };
        let Some(path) = target.path.to_str() else {
            return Ok(Kept::No("its path is not valid Unicode"));
        };
        let failed = |error: std::io::Error| cannot_keep(&target.path, error);
        let before = state_before(files, store, target)?;
        let after = content.map_or(FileState::Absent, |content| FileState::File {
            sha256: sha256_of(content),
            size: content.len() as u64,
            mode: 0,
        });
        let kept = match &before {
            FileState::Unkept { why, .. } => Kept::No(why.words()),
            _ => Kept::Yes,
        };
        let planned = Planned {
            path: path.to_owned(),
            before,
            after,
        };
        store.record(call, now_ms(), vec![planned], true).map_err(failed)?;
        Ok(kept)
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn cannot_keep(path: &Path, error: std::io::Error) -> ToolError {
    let path = quote(&path.to_string_lossy());
    ToolError::io(
        format!("keep the earlier content of {path}, so nothing was changed"),
        error,
    )
}

fn is_too_large(size: u64) -> bool {
    size > limits::UNDO_FILE_BYTES
}

/// What the target holds, with a copy of its content.
pub(super) fn state_before(files: &Beneath, store: &UndoStore, target: &Target<'_>) -> Result<FileState, ToolError> {
    let Some(stat) = target.stat else {
        return Ok(FileState::Absent);
    };
    if kind_of(stat) == FileType::Symlink {
        return Ok(match target.read_link() {
            Some(target) => FileState::Link { target },
            None => FileState::Unkept {
                size: 0,
                why: Unkept::Unreadable,
            },
        });
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let unkept = |why| Ok(FileState::Unkept { size, why });
    if is_too_large(size) {
        return unkept(Unkept::TooLarge);
    }
    if !files.is_public_file(stat) {
        return unkept(Unkept::Private);
    }
    let Ok(file) = target.open() else {
        return unkept(Unkept::Unreadable);
    };
    // The name may lead to another file than the one that was looked at.
    let failed = |error| cannot_keep(&target.path, error);
    let is_seen = target.is_seen(&file).map_err(failed)?;
    let kept = if is_seen {
        store.add_copy(&file, size).map_err(failed)?
    } else {
        None
    };
    let Some(sha256) = kept else {
        return Err(ToolError::Changed {
            path: quote(&target.path.to_string_lossy()),
        });
    };
    Ok(FileState::File {
        sha256,
        size,
        mode: mode_of(stat) & 0o777,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn un2_a_file_of_256_mib_is_kept_and_no_larger_one() {
        assert!(!is_too_large(256 * 1024 * 1024));
        assert!(is_too_large(256 * 1024 * 1024 + 1));
    }
}
