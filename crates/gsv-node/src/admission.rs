//! PURE. Decides what happens to a call that the gateway asks for or cancels: run it now, queue it, answer it from the
//! ledger, or refuse it (SPEC.md T1, T7, T8). Has no clock, no tasks and no ledger of its own: the caller passes what the
//! ledger says, and carries the decisions out.

use std::collections::{HashMap, VecDeque};

use gsv_link::ledger::CallState;
use gsv_protocol::limits;

/// The most calls that run and wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub running_calls: usize,
    pub queued_calls: usize,
}

impl Default for Limits {
    /// The limits of the contract.
    fn default() -> Self {
        let calls = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            running_calls: calls(limits::NODE_CONCURRENT_CALLS),
            queued_calls: calls(limits::NODE_QUEUED_CALLS),
        }
    }
}

/// What the node has on record about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// `None`: the ledger does not know the call.
    pub ledger: Option<CallState>,
    /// The call has ended, and its result waits in memory because the ledger could not store it.
    pub is_unrecorded: bool,
}

/// How far an active call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Accepted,
    Started,
}

/// What to do with a call that the gateway asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invoked {
    /// Run it. `is_accepted`: the ledger holds its acceptance already, by an earlier process. `has_slot`: it runs at
    /// once; else it waits for [`Admission::release`] or [`Admission::leave`] to name it.
    Begin { is_accepted: bool, has_slot: bool },
    /// It is active: report how far it got.
    Report(Phase),
    /// It has ended: send its result again.
    SendResult,
    /// It was started, is not active, and has no result: its outcome is unknown.
    Lost,
    /// Answer that too many calls wait.
    Refuse,
    /// It is accepted already and no slot is free: the gateway will ask again.
    Postpone,
}

/// What to do with an invocation that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The call is new: answer that its arguments are not valid.
    Answer,
    SendResult,
    /// The call is known and open: its own result will answer.
    Ignore,
}

/// What to do with a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// Tell the active call.
    Signal,
    /// It was accepted by an earlier process and never started: store that it was cancelled.
    Finish,
    /// It is unknown or has ended.
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Queued,
    Running,
    /// Its tool has ended; the result is being stored.
    Ending,
}

#[derive(Debug)]
struct Active {
    place: Place,
    phase: Phase,
    /// Its command goes on without the node.
    has_process: bool,
}

/// The calls that this process has admitted and not finished.
#[derive(Debug, Default)]
pub struct Admission {
    limits: Limits,
    active: HashMap<String, Active>,
    /// Calls without a slot, oldest first.
    queue: VecDeque<String>,
    running: usize,
}

impl Admission {
    /// The gateway asks for a call.
    pub fn invoke(&mut self, call_id: &str, known: Known) -> Invoked {
        let active = self.active.get(call_id).map(|active| active.phase);
        match (known.ledger, active) {
            (Some(CallState::Finished | CallState::Released), _) => Invoked::SendResult,
            (Some(CallState::Started), Some(_)) => Invoked::Report(Phase::Started),
            (Some(CallState::Started), None) if known.is_unrecorded => Invoked::SendResult,
            (Some(CallState::Started), None) => Invoked::Lost,
            (None | Some(CallState::Accepted), Some(phase)) => Invoked::Report(phase),
            (None, None) if self.is_full() => Invoked::Refuse,
            (Some(CallState::Accepted), None) if self.is_full() => Invoked::Postpone,
            (ledger @ (None | Some(CallState::Accepted)), None) => Invoked::Begin {
                is_accepted: ledger.is_some(),
                has_slot: self.add(call_id),
            },
        }
    }

    /// The gateway sent an invocation of this call that cannot be read.
    pub fn malformed(&self, call_id: &str, known: Known) -> Malformed {
        match known.ledger {
            Some(CallState::Finished | CallState::Released) => Malformed::SendResult,
            None if !self.active.contains_key(call_id) => Malformed::Answer,
            _ => Malformed::Ignore,
        }
    }

    /// The gateway cancels a call.
    pub fn cancel(&self, call_id: &str, known: Known) -> Cancelled {
        if self.active.contains_key(call_id) {
            Cancelled::Signal
        } else if known.ledger == Some(CallState::Accepted) {
            Cancelled::Finish
        } else {
            Cancelled::Ignore
        }
    }

    /// Adds a command of an earlier process, which runs whatever the limits are. False when it is active already.
    pub fn resume(&mut self, call_id: &str) -> bool {
        if self.active.contains_key(call_id) {
            return false;
        }
        self.insert(call_id, Place::Running, Phase::Started, true);
        self.running += 1;
        true
    }

    /// The call's tool has started.
    pub fn started(&mut self, call_id: &str, has_process: bool) {
        if let Some(active) = self.active.get_mut(call_id) {
            active.phase = Phase::Started;
            active.has_process = has_process;
        }
    }

    /// The call's tool has ended. Gives the call that takes over its slot.
    #[must_use]
    pub fn release(&mut self, call_id: &str) -> Option<String> {
        let active = self.active.get_mut(call_id)?;
        if active.place != Place::Running {
            return None;
        }
        active.place = Place::Ending;
        self.running -= 1;
        self.promote()
    }

    /// The call is over: its result is stored, or it was not run. Gives the call that takes over its slot.
    #[must_use]
    pub fn leave(&mut self, call_id: &str) -> Option<String> {
        match self.active.remove(call_id)?.place {
            Place::Queued => {
                self.queue.retain(|waiting| waiting != call_id);
                None
            }
            Place::Ending => None,
            Place::Running => {
                self.running -= 1;
                self.promote()
            }
        }
    }

    /// Started calls that end with the node, because they have no process of their own.
    pub fn short_calls(&self) -> usize {
        let is_short = |active: &&Active| active.phase == Phase::Started && !active.has_process;
        self.active.values().filter(is_short).count()
    }

    fn is_full(&self) -> bool {
        self.active.len() >= self.limits.running_calls + self.limits.queued_calls
    }

    /// True when the call got a slot.
    fn add(&mut self, call_id: &str) -> bool {
        let has_slot = self.running < self.limits.running_calls;
        if has_slot {
            self.running += 1;
            self.insert(call_id, Place::Running, Phase::Accepted, false);
        } else {
            self.queue.push_back(call_id.to_owned());
            self.insert(call_id, Place::Queued, Phase::Accepted, false);
        }
        has_slot
    }

    fn insert(&mut self, call_id: &str, place: Place, phase: Phase, has_process: bool) {
        let active = Active {
            place,
            phase,
            has_process,
        };
        self.active.insert(call_id.to_owned(), active);
    }

    /// Gives a free slot to the oldest call in the queue.
    fn promote(&mut self) -> Option<String> {
        if self.running >= self.limits.running_calls {
            return None;
        }
        let next = self.queue.pop_front()?;
        if let Some(active) = self.active.get_mut(&next) {
            active.place = Place::Running;
            self.running += 1;
        }
        Some(next)
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
