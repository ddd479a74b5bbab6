//! The state of one command.

use super::host;
use super::meta::{Ending, Exit, Folder, Meta};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// It still runs, long after KILL.
    Stuck,
    Ended(End),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// `None`: the command is gone and left no exit status.
    pub(crate) exit: Option<Exit>,
    pub(crate) ending: Option<Ending>,
    pub(crate) ended_at: u64,
    pub(crate) duration_ms: u64,
}

impl End {
    pub(crate) fn timed_out(&self) -> bool {
        self.ending == Some(Ending::Timeout)
    }

    /// Reads the end from the folder of a command that no longer runs.
    pub(super) fn read(folder: &Folder, meta: &Meta) -> Self {
        let (exit, ended_at) = folder
            .exit()
            .map_or_else(|| (None, host::now_ms()), |(exit, at)| (Some(exit), at));
        // The time of the exit file comes from the kernel's coarse clock, which is up to a tick behind the clock of the start.
        let ended_at = ended_at.max(meta.started_at);
        Self {
            exit,
            ending: folder.ending(),
            ended_at,
            duration_ms: ended_at - meta.started_at,
        }
    }
}
