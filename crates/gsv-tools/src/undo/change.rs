//! One recorded change of a file: what was there before, and what is there after it. PURE; also the form on the disk.

use serde::{Deserialize, Serialize};

/// Why a file's content was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unkept {
    TooLarge,
    Unreadable,
    /// It has another name in one of GSV's own folders, or may have one.
    Private,
}

impl Unkept {
    /// Completes "its earlier content was not kept, because ...".
    pub fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "it is larger than 256 MiB",
            Self::Unreadable => "it can't be read",
            Self::Private => "it may be a file of GSV itself",
        }
    }
}

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileState {
    Absent,
    /// `mode`: permission bits; 0 where they are not known.
    File {
        sha256: String,
        size: u64,
        mode: u32,
    },
    Link {
        target: String,
    },
    Unkept {
        size: u64,
        why: Unkept,
    },
}

impl FileState {
    /// Whether both are known and hold the same content. Modes do not count.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { sha256: one, .. }, Self::File { sha256: two, .. })
            | (Self::Link { target: one }, Self::Link { target: two }) => one == two,
            _ => false,
        }
    }

    /// The copy that restoring this state needs: its hash and size.
    pub(super) fn copy(&self) -> Option<(&str, u64)> {
        match self {
            Self::File { sha256, size, .. } => Some((sha256, *size)),
            _ => None,
        }
    }
}

/// A record. Written before the change itself, so the change may not have been made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    /// Rises by one with each record.
    pub(super) seq: u64,
    /// The call, or the undo (`undo/...`), that made the change.
    pub(super) call: String,
    pub(super) at_ms: u64,
    /// Absolute, without links.
    pub(super) path: String,
    pub(super) before: FileState,
    pub(super) after: FileState,
}
