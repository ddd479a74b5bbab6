//! The first start of another version (rules UP1 to UP7): its state is copied before, put back when the start fails, and the copy is removed
//! after the next start that succeeded. Decides what a start does (`decide`, pure), and does it. A start with the same version reads one small
//! file twice.

use std::fs;
use std::path::PathBuf;

use super::layout::Layout;
use super::runtime;
pub use super::state_copy::MOST_ROLLED_BACK;
use super::state_copy::{self, About, Kept, Why};
use crate::exit::{Failure, Outcome};
use crate::paths::shell;
use crate::private_file;

const MAX_VERSION_BYTES: usize = 128;

/// What precedes the start of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    /// The start of this version was interrupted, and may have converted a part of the state; the copy is older.
    Keep,
    Copy,
    /// The start of another version was interrupted.
    PutBack,
    /// Whether the start was interrupted is not known: the copy may be older than work of the person.
    Refuse,
}

/// What `last-start` says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    /// No version was ready yet, or one that knows nothing of marks.
    Missing,
    /// The version that was ready last.
    Ready(String),
    Damaged,
}

impl Mark {
    fn version(&self) -> Option<&str> {
        match self {
            Self::Ready(version) => Some(version),
            Self::Missing | Self::Damaged => None,
        }
    }

    fn is(&self, version: &str) -> bool {
        self.version() == Some(version)
    }

    /// The version of the copy's state was ready last, so the start of the next one did not get there.
    fn is_before(&self, copy: &About) -> bool {
        *self != Self::Damaged && self.version() == copy.from.as_deref()
    }
}

/// `begun`: the version that was started last, ready or not. A copy is put back, now or after a failure, only when both marks say that the
/// state after it has nothing but an interrupted start.
fn decide(now: &str, last: &Mark, begun: Option<&str>, copy: Option<&About>, has_state: bool) -> Step {
    match copy {
        Some(copy) if begun == Some(&copy.to) && !last.is(&copy.to) => {
            if !last.is_before(copy) {
                Step::Refuse
            } else if copy.to == now {
                Step::Keep
            } else {
                Step::PutBack
            }
        }
        _ if last.is(now) || !has_state => Step::Nothing,
        _ => Step::Copy,
    }
}

/// Before anything of the new version is written. The caller holds the command lock, and no gateway runs. Returns what to tell.
pub fn before_start(layout: &Layout, version: &str) -> Outcome<Option<String>> {
    let mut last = last_start(layout);
    if last.is(version) && !state_copy::leaves_trace(layout) {
        return Ok(None);
    }
    let mut kept = state_copy::heal(layout)?;
    for _ in 0..2 {
        last = last_start(layout);
        let copy = state_copy::find(layout);
        let begun = runtime::version_copied(layout);
        let has_state = state_copy::has_state(layout);
        match decide(version, &last, begun.as_deref(), copy.as_ref(), has_state) {
            Step::Nothing | Step::Keep => break,
            Step::Copy => {
                if last == Mark::Damaged {
                    // Best effort: while it is there, an interrupted start of this version is refused.
                    let _ = fs::remove_file(layout.last_start());
                }
                state_copy::make(layout, last.version(), version)?;
                break;
            }
            Step::PutBack => kept = state_copy::put_back(layout, Why::Failed)?,
            Step::Refuse => return Err(unknown(layout, copy.as_ref())),
        }
    }
    Ok(kept.map(|Kept { why, path }| match why {
        Why::Failed => format!(
            "the start of another version did not succeed, so the state from before it is back. The state of that start is in {}.",
            path.display()
        ),
        Why::Rollback => format!(
            "a rollback was interrupted, and is complete now: the state from before the update is back. What came since is in {}.",
            path.display()
        ),
    }))
}

fn unknown(layout: &Layout, copy: Option<&About>) -> Failure {
    let to = copy.map_or("", |copy| copy.to.as_str());
    Failure::failed(
        format!(
            "{} is damaged, so it is not known whether version {to} was ready on this state. Nothing was started, and no earlier state was put back.",
            layout.last_start().display()
        ),
        format!(
            "To go on with the state as it is, remove the copy from before version {to}: `rm -r {}`. To go back to that copy, run `gsv update --rollback --with-state`. Then run the command again.",
            shell(&layout.before_upgrade())
        ),
    )
}

fn last_start(layout: &Layout) -> Mark {
    let Ok(text) = private_file::read_private(&layout.last_start(), "") else {
        return Mark::Damaged;
    };
    match text.as_deref().map(str::trim) {
        None => Mark::Missing,
        Some(version) if !version.is_empty() && version.len() <= MAX_VERSION_BYTES => Mark::Ready(version.to_owned()),
        Some(_) => Mark::Damaged,
    }
}

/// What the supervisor does when the gateway is ready, or does not become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfStart {
    /// The same version was ready before, and there is no copy.
    Usual,
    /// The same version was ready before; the copy of its first start has done its duty.
    AfterUpgrade,
    /// The first start of this version on this state. `from`: absent without a copy, which a new home has not.
    First { copied: Option<About> },
}

impl OfStart {
    pub fn look(layout: &Layout, version: &str) -> Self {
        let is_known = last_start(layout).is(version);
        match (is_known, state_copy::leaves_trace(layout)) {
            (true, false) => Self::Usual,
            (true, true) => Self::AfterUpgrade,
            (false, _) => Self::First {
                copied: state_copy::find(layout).filter(|copy| copy.to == version),
            },
        }
    }

    /// Whether the state must be looked at before the gateway counts as ready.
    pub fn is_upgrade(&self) -> bool {
        matches!(self, Self::First { copied: Some(_) })
    }

    /// The gateway is ready. Returns a fault, which ends nothing.
    pub fn succeeded(&mut self, layout: &Layout, version: &str) -> Option<String> {
        match std::mem::replace(self, Self::Usual) {
            Self::Usual => None,
            Self::AfterUpgrade => state_copy::remove(layout)
                .err()
                .map(|error| format!("the copy of the state from before the upgrade is not removed: {error}")),
            Self::First { .. } => {
                state_copy::forget_aside(layout);
                let failure = private_file::write(&layout.last_start(), version).err()?;
                // Without the mark the next start would take this one for interrupted, and might put an old state back.
                let removed = state_copy::remove(layout);
                let also = removed.err().map(|error| format!(" {error}")).unwrap_or_default();
                Some(format!("the version is not stored: {}{also}", failure.message))
            }
        }
    }

    /// A newer version has written the state, and the process that refused it has ended. Returns what happened and what to do when what this
    /// version may have changed before can't be undone.
    pub fn refused(&mut self, layout: &Layout) -> Option<(String, String)> {
        let Self::First { copied: Some(copy) } = std::mem::replace(self, Self::Usual) else {
            return None;
        };
        let failure = state_copy::put_back(layout, Why::Failed).err()?;
        Some((not_put_back(&copy, &failure), failure.next))
    }

    /// The gateway did not become ready, and its process has ended. Returns what happened to the state, and what to do.
    pub fn failed(&mut self, layout: &Layout) -> Option<(String, String)> {
        let Self::First { copied: Some(copy) } = std::mem::replace(self, Self::Usual) else {
            return None;
        };
        let from = copy.from.as_deref().map_or_else(
            || "the version that ran before".to_owned(),
            |from| format!("version {from}"),
        );
        Some(match state_copy::put_back(layout, Why::Failed) {
            Ok(_) => (
                format!(
                    "It was the first start of version {}, so the state from before it is back. The state of the failed start is kept in {}.",
                    copy.to,
                    layout.failed_upgrade().display()
                ),
                format!(
                    "Go on with {from}: `gsv update --rollback`, or install it again as you did before; then `gsv up`."
                ),
            ),
            Err(failure) => (not_put_back(&copy, &failure), failure.next),
        })
    }
}

fn not_put_back(copy: &About, failure: &Failure) -> String {
    format!(
        "It was the first start of version {}, and the state from before it could not be put back: {}",
        copy.to, failure.message
    )
}

/// For `gsv update --rollback --with-state`: the state from before the last upgrade. Nothing runs. Returns where the other state is; `None`:
/// there is no copy.
pub fn undo(layout: &Layout) -> Outcome<Option<PathBuf>> {
    check_undo(layout)?;
    if state_copy::find(layout).is_none() {
        state_copy::bring_back(layout)?;
    }
    Ok(state_copy::put_back(layout, Why::Rollback)?.map(|kept| kept.path))
}

/// Refuses a rollback that would keep one state more than there may be: each is the person's work, so none is removed for another one.
pub fn check_undo(layout: &Layout) -> Outcome {
    let kept = state_copy::rolled_back(layout);
    let Some(first) = kept.first().filter(|_| kept.len() >= MOST_ROLLED_BACK) else {
        return Ok(());
    };
    Err(Failure::failed(
        format!(
            "The states of {MOST_ROLLED_BACK} earlier rollbacks are kept, and GSV removes none of them by itself. Nothing was changed."
        ),
        format!(
            "Remove one that you no longer need, such as the first: `rm -r {}`. Then run the command again.",
            shell(first)
        ),
    )
    .with_lines(kept.iter().map(|path| path.display().to_string()).collect()))
}

/// The copy that `undo` would put back.
pub fn copied(layout: &Layout) -> Option<About> {
    state_copy::find(layout).or_else(|| state_copy::find_aside(layout))
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
