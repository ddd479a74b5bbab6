//! The first start of another version (rules UP1 to UP7): its state is copied before, put back when the start fails, and the copy is removed
//! after the next start that succeeded. Decides what a start does (`decide`, pure), and does it. A start with the same version reads one small
//! file twice.

use std::fs;

use super::layout::Layout;
use super::runtime;
use super::state_copy::{self, About};
use crate::exit::{OrFail, Outcome};
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
}

/// `last`: the version that was ready last. `begun`: the version that was started last, ready or not.
fn decide(now: &str, last: Option<&str>, begun: Option<&str>, copy: Option<&About>, has_state: bool) -> Step {
    match copy {
        Some(copy) if begun == Some(&copy.to) && last != Some(&copy.to) => {
            if copy.to == now {
                Step::Keep
            } else {
                Step::PutBack
            }
        }
        _ if last == Some(now) || !has_state => Step::Nothing,
        _ => Step::Copy,
    }
}

/// Before anything of the new version is written. The caller holds the turn lock, and no gateway runs. Returns what to tell.
pub fn before_start(layout: &Layout, version: &str) -> Outcome<Option<String>> {
    let mut last = last_start(layout);
    if last.as_deref() == Some(version) && !state_copy::leaves_trace(layout) {
        return Ok(None);
    }
    let mut is_back = state_copy::heal(layout)?;
    for _ in 0..2 {
        let copy = state_copy::find(layout);
        let begun = runtime::version_copied(layout);
        let has_state = state_copy::has_state(layout);
        match decide(version, last.as_deref(), begun.as_deref(), copy.as_ref(), has_state) {
            Step::Nothing | Step::Keep => break,
            Step::Copy => {
                state_copy::make(layout, last.as_deref(), version)?;
                break;
            }
            Step::PutBack => {
                is_back |= state_copy::put_back(layout)?;
                last = last_start(layout);
            }
        }
    }
    Ok(is_back.then(|| {
        format!(
            "the start of another version did not succeed, so the state from before it is back. The state of that start is in {}.",
            layout.failed_upgrade().display()
        )
    }))
}

/// The version that was ready last. Missing or damaged: another one than any.
fn last_start(layout: &Layout) -> Option<String> {
    let text = private_file::read_private(&layout.last_start(), "").ok()??;
    let version = text.trim();
    (!version.is_empty() && version.len() <= MAX_VERSION_BYTES).then(|| version.to_owned())
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
        let is_known = last_start(layout).as_deref() == Some(version);
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

    /// The gateway did not become ready, and its process has ended. Returns what happened to the state, and what to do.
    pub fn failed(&mut self, layout: &Layout) -> Option<(String, String)> {
        let Self::First { copied: Some(copy) } = std::mem::replace(self, Self::Usual) else {
            return None;
        };
        let from = copy.from.as_deref().map_or_else(
            || "the version that ran before".to_owned(),
            |from| format!("version {from}"),
        );
        Some(match state_copy::put_back(layout) {
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
            Err(failure) => (
                format!(
                    "It was the first start of version {}, and the state from before it could not be put back: {}",
                    copy.to, failure.message
                ),
                failure.next,
            ),
        })
    }
}

/// For `gsv update --rollback --with-state`: the state from before the last upgrade. Nothing runs.
pub fn undo(layout: &Layout) -> Outcome<bool> {
    if state_copy::find(layout).is_none() {
        state_copy::bring_back(layout)?;
    }
    let Some(About { from, .. }) = state_copy::find(layout) else {
        return Ok(false);
    };
    // First, so that no kill leaves the earlier state with the mark of the later version.
    match from {
        Some(from) => private_file::write(&layout.last_start(), from)?,
        None => fs::remove_file(layout.last_start()).or_fail("forget the version", "Run the command again.")?,
    }
    state_copy::put_back(layout)
}

/// The copy that `undo` would put back.
pub fn copied(layout: &Layout) -> Option<About> {
    state_copy::find(layout).or_else(|| state_copy::find_aside(layout))
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
