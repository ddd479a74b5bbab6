//! One admitted call, from its acceptance to its stored result. It is started at most once: the ledger knows it durably
//! before anything that changes something is started (P6, T2).

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gsv_link::ledger::{LedgerError, ProcessInfo};
use gsv_protocol::methods::ToolResult;
use gsv_protocol::types::ToolPhase;
use gsv_tools::{CallContext, OnStarted, ToolError};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::book::Durability;
use crate::call::sentence;
use crate::images::moved_out;
use crate::invocation::Invocation;
use crate::log::{Level, now_ms};
use crate::outcome::Outcome;
use crate::shared::{Seat, Shared};

/// The tool whose start has a process, and which therefore says itself when it starts.
const PROCESS_TOOL: &str = "Bash";
/// A tool gets this long after its deadline to come to an end by itself.
const GRACE: Duration = Duration::from_secs(10);

const AGAIN: &str = "~again.";

/// The call of an attempt.
pub fn call_of(attempt: &str) -> &str {
    match attempt.rsplit_once(AGAIN) {
        Some((call_id, time)) if !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()) => call_id,
        _ => attempt,
    }
}

/// A call that was admitted.
pub struct Life<'a> {
    pub shared: &'a Arc<Shared>,
    pub invocation: Invocation,
    pub seat: Seat,
    pub mutating: bool,
    pub received: Instant,
    /// By an earlier process of this node, which did not start it.
    pub is_accepted: bool,
}

impl Life<'_> {
    pub async fn run(self) {
        let permit = Arc::clone(&self.shared.slots).try_acquire_owned().ok();
        if !self.is_accepted
            && let Err(error) = self.accept(permit.is_some()).await
        {
            return self.unrecorded(&error).await;
        }
        self.shared
            .tell_phase(&self.invocation.call_id, ToolPhase::Accepted, None);
        let waited = permit.is_none();
        let permit = match permit {
            Some(permit) => Ok(permit),
            None => self.wait_for_slot().await,
        };
        let (outcome, session) = match permit {
            Ok(permit) => self.with_slot(permit, waited || self.is_accepted).await,
            Err(outcome) => (outcome, None),
        };
        let Self {
            shared,
            invocation,
            seat,
            mutating,
            received,
            ..
        } = self;
        shared
            .finish(
                &invocation.call_id,
                &invocation.tool,
                mutating,
                outcome,
                received,
                session,
            )
            .await;
        // Only now: until the result is stored, a repetition must find the call here.
        drop(seat);
    }

    /// The name by which the tool knows this start. An earlier process may have been killed on the way to a start that never
    /// came about, and its supervisor may still be writing that down: it must not write it into the folder of this one.
    fn attempt_name(&self) -> String {
        let call_id = &self.invocation.call_id;
        if self.is_accepted {
            format!("{call_id}{AGAIN}{}", now_ms())
        } else {
            call_id.clone()
        }
    }

    fn has_process(&self) -> bool {
        self.invocation.tool == PROCESS_TOOL
    }

    /// Makes the acceptance durable before anything is started. What starts at once and has no process is started by the
    /// same record; a process makes everything up to its own start durable.
    async fn accept(&self, starts_at_once: bool) -> Result<(), LedgerError> {
        let (id, tool, mutating) = (
            self.invocation.call_id.clone(),
            self.invocation.tool.clone(),
            self.mutating,
        );
        let has_process = self.has_process();
        let durability = Durability::of(mutating && !(starts_at_once && has_process));
        let begin = starts_at_once && !has_process;
        let record = self.shared.book.record(durability, move |ledger| {
            if begin {
                ledger.begin(now_ms(), &id, &tool, mutating)
            } else {
                ledger.accept(now_ms(), &id, &tool, mutating)
            }
        });
        record.await
    }

    /// The disk does not take the call, so it must not be started.
    async fn unrecorded(&self, error: &LedgerError) {
        let call_id = self.invocation.call_id.as_str();
        if matches!(error, LedgerError::WrongState { .. }) {
            return;
        }
        self.shared.log_call(Level::Error, &error.to_string(), call_id, &[]);
        let outcome = Outcome::error("tool.io", sentence(&format!("{error}")));
        let params = outcome.into_params(call_id, None);
        // Not kept: if the gateway does not get it, it asks again.
        let answered = self
            .shared
            .link
            .call_within::<ToolResult>(params, Duration::from_secs(30))
            .await;
        if answered.is_ok() {
            let id = call_id.to_owned();
            // The acceptance may have been written and not synced; it was answered, so it must not stay open.
            let _ = self.shared.book.with(move |ledger| ledger.forget(&id)).await;
        }
    }

    async fn wait_for_slot(&self) -> Result<OwnedSemaphorePermit, Outcome> {
        tokio::select! {
            biased;
            () = self.seat.cancel.cancelled() => Err(Outcome::cancelled_before_start("while it waited for others")),
            () = at(self.invocation.deadline) => Err(Outcome::late_before_start()),
            permit = Arc::clone(&self.shared.slots).acquire_owned() => {
                permit.map_err(|_| Outcome::cancelled_before_start("the node is shutting down"))
            }
        }
    }

    /// Runs the tool while it holds a slot. Also gives the command's session, if there is one.
    async fn with_slot(&self, permit: OwnedSemaphorePermit, needs_start: bool) -> (Outcome, Option<String>) {
        let call_id = self.invocation.call_id.as_str();
        if self.seat.cancel.is_cancelled() {
            return (Outcome::cancelled_before_start("before its turn came"), None);
        }
        if needs_start && !self.has_process() {
            let id = call_id.to_owned();
            let started = self
                .shared
                .book
                .record(Durability::of(self.mutating), move |ledger| {
                    ledger.start(now_ms(), &id, None)
                })
                .await;
            if let Err(error) = started {
                return (Outcome::error("tool.io", sentence(&error.to_string())), None);
            }
        }
        if !self.has_process() {
            self.shared.mark_started(call_id, false);
            self.shared.tell_phase(call_id, ToolPhase::Started, None);
        }
        let session = Arc::new(OnceLock::new());
        let context = CallContext {
            call_id: self.attempt_name(),
            progress: Some(self.shared.progress_of(call_id)),
            cancel: self.seat.cancel.clone(),
            deadline: self.invocation.deadline,
            on_started: self.has_process().then(|| self.on_started(Arc::clone(&session))),
        };
        let tools = Arc::clone(&self.shared.tools);
        let (tool, args) = (self.invocation.tool.clone(), self.invocation.args.clone());
        let work = async move { tools.invoke(&tool, args, context).await };
        let outcome = self.guard(work).await;
        let moving = moved_out(outcome, call_id, &self.shared.uploader);
        let outcome = tokio::select! {
            biased;
            outcome = moving => outcome,
            () = self.seat.cancel.cancelled() => Outcome::of(Err(ToolError::Cancelled { tail: None }), false),
        };
        drop(permit);
        (outcome, session.get().cloned())
    }

    /// The proof of a start, durable before the command runs.
    fn on_started(&self, session: Arc<OnceLock<String>>) -> OnStarted {
        let (shared, call_id) = (Arc::clone(self.shared), self.invocation.call_id.clone());
        Box::new(move |info| {
            Box::pin(async move {
                let pid = info.pid;
                let name = info.spool.file_name().map(|name| name.to_string_lossy().into_owned());
                let process = ProcessInfo {
                    pid,
                    pgid: info.pgid,
                    boot_id: info.boot_id,
                    start_time: info.start_time,
                    spool: info.spool,
                };
                let id = call_id.clone();
                let started = shared
                    .book
                    .record(Durability::Synced, move |ledger| {
                        ledger.start(now_ms(), &id, Some(&process))
                    })
                    .await;
                started.map_err(std::io::Error::other)?;
                if let Some(name) = name {
                    // Set once: a command starts once.
                    let _ = session.set(name);
                }
                shared.mark_started(&call_id, true);
                shared.tell_phase(&call_id, ToolPhase::Started, Some(pid));
                Ok(())
            })
        })
    }

    /// Waits for the tool, whatever it does: break down, or not come to an end.
    async fn guard(&self, work: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Outcome {
        // In a set, so that it goes with whoever waits for it.
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        let done = tokio::select! {
            done = tasks.join_next() => done,
            () = at(self.invocation.deadline.map(|deadline| deadline + GRACE)) => None,
        };
        let Some(done) = done else {
            return Outcome::unknown("the tool did not come to an end in time", Value::Null);
        };
        let is_late = self
            .invocation
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        match done {
            Ok(done) => Outcome::of(done, is_late),
            Err(error) => broke_down(&error, self.mutating),
        }
    }
}

/// A tool that panicked. What it had changed by then, nobody knows.
fn broke_down(error: &JoinError, mutating: bool) -> Outcome {
    let what = if error.is_panic() {
        "the tool broke down (a bug in gsv)"
    } else {
        "the tool was broken off"
    };
    if mutating {
        Outcome {
            reason: Some("tool.failed"),
            ..Outcome::unknown(what, Value::Null)
        }
    } else {
        Outcome::error(
            "tool.failed",
            format!("It failed: {what}. The node's log may say more."),
        )
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use gsv_protocol::types::ToolOutcome;

    use super::*;

    #[test]
    fn the_call_of_an_attempt_is_known() {
        for (attempt, call) in [
            ("a/b", "a/b"),
            ("a/b~again.123", "a/b"),
            ("a~again.", "a~again."),
            ("a~again.x", "a~again.x"),
        ] {
            assert_eq!(call_of(attempt), call);
        }
    }

    #[tokio::test]
    async fn a_tool_that_panics_fails_alone() {
        let panicked = tokio::spawn(async { panic!("a bug") }).await.unwrap_err();
        let outcome = broke_down(&panicked, false);
        assert_eq!(
            (outcome.kind, outcome.reason),
            (ToolOutcome::Error, Some("tool.failed"))
        );
        let outcome = broke_down(&panicked, true);
        assert_eq!(
            (outcome.kind, outcome.reason),
            (ToolOutcome::Unknown, Some("tool.failed"))
        );
    }
}
