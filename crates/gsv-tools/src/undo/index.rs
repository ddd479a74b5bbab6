//! PURE. The recorded changes in memory: which copies they need, which of them are too old or too many, and what an undo of
//! some calls has to do. Has no clock and no files.

use std::collections::{HashMap, VecDeque};

use super::change::{Change, FileState};

/// How much is kept (UN2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) age_ms: u64,
    pub(super) changes: usize,
}

impl Limits {
    /// Room for later changes: without it every change at the limit would rewrite the record.
    fn lowered(self) -> Self {
        Self {
            bytes: self.bytes / 8 * 7,
            changes: self.changes / 8 * 7,
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Copy {
    users: usize,
    size: u64,
}

/// What an undo has to do with one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) path: String,
    /// The number of the last undone change of this path; steps are ordered by it, the newest first.
    pub(super) seq: u64,
    /// What the path held before the first undone change.
    pub(super) before: FileState,
    /// What the undone calls left there. Anything else is a later change.
    pub(super) left: Vec<FileState>,
    /// Another change came between the undone ones, and the undo would lose it.
    pub(super) is_mixed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    changes: VecDeque<Change>,
    copies: HashMap<String, Copy>,
    bytes: u64,
}

impl Index {
    pub(super) fn next_seq(&self) -> u64 {
        self.changes.back().map_or(1, |last| last.seq + 1)
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn needs(&self, sha256: &str) -> bool {
        self.copies.contains_key(sha256)
    }

    /// Changes come in the order of their numbers.
    pub(super) fn push(&mut self, change: Change) {
        if let Some((sha256, size)) = change.before.copy() {
            let copy = self.copies.entry(sha256.to_owned()).or_insert(Copy { users: 0, size });
            if copy.users == 0 {
                self.bytes += copy.size;
            }
            copy.users += 1;
        }
        self.changes.push_back(change);
    }

    pub(super) fn is_over(&self, now_ms: u64, limits: Limits) -> bool {
        let oldest = self.changes.front();
        self.bytes > limits.bytes
            || self.changes.len() > limits.changes
            || oldest.is_some_and(|oldest| oldest.at_ms.saturating_add(limits.age_ms) < now_ms)
    }

    /// Drops the oldest changes until the limits hold again. Returns the copies that no change needs any more. A change goes
    /// only after all older ones, so what stays can be undone.
    pub(super) fn prune(&mut self, now_ms: u64, limits: Limits) -> Vec<String> {
        let mut freed = Vec::new();
        let is_full = self.bytes > limits.bytes || self.changes.len() > limits.changes;
        let goal = if is_full { limits.lowered() } else { limits };
        while self.is_over(now_ms, goal) {
            let Some(oldest) = self.changes.pop_front() else {
                break;
            };
            let Some((sha256, _)) = oldest.before.copy() else {
                continue;
            };
            let Some(copy) = self.copies.get_mut(sha256) else {
                continue;
            };
            copy.users -= 1;
            if copy.users == 0 {
                self.bytes -= copy.size;
                self.copies.remove(sha256);
                freed.push(sha256.to_owned());
            }
        }
        freed
    }

    /// The steps of an undo, the newest first. `calls`: a call, or the beginning of several up to a `/`.
    pub(super) fn plan(&self, calls: &str) -> Vec<Step> {
        let mut steps: HashMap<&str, Step> = HashMap::new();
        for change in self.changes.iter().filter(|change| is_of(&change.call, calls)) {
            let Some(step) = steps.get_mut(change.path.as_str()) else {
                let first = Step {
                    path: change.path.clone(),
                    seq: change.seq,
                    before: change.before.clone(),
                    left: vec![change.after.clone()],
                    is_mixed: false,
                };
                steps.insert(&change.path, first);
                continue;
            };
            // A record may be of a change that was not made, so every state that the calls knew counts.
            let is_known = |state: &FileState| state.is_same(&change.before);
            step.is_mixed |= !is_known(&step.before) && !step.left.iter().any(is_known);
            step.left.push(change.after.clone());
            step.seq = change.seq;
        }
        let mut steps: Vec<Step> = steps.into_values().collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.seq));
        steps
    }
}

fn is_of(call: &str, calls: &str) -> bool {
    if calls.ends_with('/') {
        call.starts_with(calls)
    } else {
        call == calls
    }
}
