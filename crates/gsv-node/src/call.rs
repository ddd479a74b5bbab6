//! One call from the gateway's `tool.invoke` to its stored result. It is started at most once: the ledger knows it
//! durably before anything that changes something is started (P6, T1, T2).

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gsv_link::ledger::{CallState, LedgerError, ProcessInfo};
use gsv_protocol::limits;
use gsv_protocol::types::{ToolInvokeEvent, ToolPhase};
use gsv_tools::{CallContext, Effect, OnStarted, ToolError};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::book::Durability;
use crate::log::{Level, now_ms};
use crate::outcome::Outcome;
use crate::shared::{Admission, Seat, Shared};

/// The tool whose start has a process, and which therefore says itself when it starts.
const PROCESS_TOOL: &str = "Bash";
/// A tool gets this long after its deadline to come to an end by itself.
const GRACE: Duration = Duration::from_secs(10);
const ID_CHARS: usize = 128;

/// A call as it was asked for, checked.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub call_id: String,
    pub tool: String,
    pub args: Value,
    pub deadline: Option<Instant>,
}

/// Why an invocation is none. Without a call id nobody can be told.
#[derive(Debug, PartialEq, Eq)]
pub struct BadInvocation {
    pub call_id: Option<String>,
    pub why: String,
}

impl Invocation {
    /// `node_id`: some gateways leave it in front of the tool's name.
    pub fn read(payload: Value, node_id: &str) -> Result<Self, BadInvocation> {
        let call_id = payload
            .get("callId")
            .and_then(Value::as_str)
            .filter(|id| (1..=ID_CHARS).contains(&id.chars().count()))
            .map(str::to_owned);
        let bad = |why: String| BadInvocation {
            call_id: call_id.clone(),
            why,
        };
        let size = payload.get("args").map_or(0, |args| args.to_string().len());
        if size as u64 > limits::FRAME_BYTES {
            return Err(bad(format!(
                "the arguments have {size} bytes, at most {} are allowed; send less, or use a file",
                limits::FRAME_BYTES
            )));
        }
        let event: ToolInvokeEvent =
            serde_json::from_value(payload).map_err(|error| bad(format!("the call is not valid: {error}")))?;
        let Some(call_id) = call_id.clone() else {
            return Err(bad("the call id is not valid".into()));
        };
        if event.tool.chars().count() > ID_CHARS {
            return Err(bad("the tool's name is too long".into()));
        }
        let tool = event
            .tool
            .strip_prefix(node_id)
            .and_then(|rest| rest.strip_prefix("__"))
            .unwrap_or(&event.tool)
            .to_owned();
        let deadline = event
            .timeout_ms
            .filter(|ms| *ms > 0)
            .map(|ms| Instant::now() + Duration::from_millis(u64::from(ms)));
        Ok(Self {
            call_id,
            tool,
            args: Value::Object(event.args),
            deadline,
        })
    }
}

impl Shared {
    /// `tool.invoke`. Never waits.
    pub fn invoked(self: &Arc<Self>, payload: Value) {
        let invocation = match Invocation::read(payload, &self.id) {
            Ok(invocation) => invocation,
            Err(bad) => return self.refuse_bad(bad),
        };
        let call_id = invocation.call_id.as_str();
        match self.book.state(call_id) {
            Some(CallState::Finished | CallState::Released) => self.delivery.result(call_id),
            Some(CallState::Started) => match self.active(call_id) {
                Some(_) => self.tell_phase(call_id, ToolPhase::Started, None),
                None if self.delivery.has_unrecorded(call_id) => self.delivery.result(call_id),
                None => self.give_up(invocation.call_id),
            },
            known @ (None | Some(CallState::Accepted)) => match self.admit(call_id) {
                Admission::Admitted(seat) => self.begin(invocation, seat, known.is_some()),
                Admission::Known(active) => {
                    let phase = if active.started {
                        ToolPhase::Started
                    } else {
                        ToolPhase::Accepted
                    };
                    self.tell_phase(call_id, phase, None);
                }
                Admission::Full if known.is_some() => {
                    self.log_call(
                        Level::Warn,
                        "no room for an accepted call; it waits to be asked for again",
                        call_id,
                        &[],
                    );
                }
                Admission::Full => self.answer(invocation.call_id, invocation.tool, queue_full()),
            },
        }
    }

    /// It was started here, its result could not be stored, and is not waiting to be sent either.
    fn give_up(self: &Arc<Self>, call_id: String) {
        self.log_call(
            Level::Error,
            "a call was asked for again whose result could not be stored",
            &call_id,
            &[],
        );
        let shared = Arc::clone(self);
        self.spawn(async move {
            let outcome = Outcome::unknown("its result could not be stored on the machine", Value::Null);
            shared.finish(&call_id, "", true, outcome, Instant::now(), None).await;
        });
    }

    fn refuse_bad(self: &Arc<Self>, bad: BadInvocation) {
        let Some(call_id) = bad.call_id else {
            let text = format!("a call without a call id was ignored: {}", bad.why);
            return self.log.write(Level::Warn, &text, &[]);
        };
        // What the ledger knows of it is the truth, whatever this frame looks like.
        match self.book.state(&call_id) {
            None if self.active(&call_id).is_none() => {
                self.answer(
                    call_id,
                    String::new(),
                    Outcome::error("tool.bad_args", sentence(&bad.why)),
                );
            }
            Some(CallState::Finished | CallState::Released) => self.delivery.result(&call_id),
            _ => {}
        }
    }

    /// Answers a call that is not run.
    fn answer(self: &Arc<Self>, call_id: String, tool: String, outcome: Outcome) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            let (id, name) = (call_id.clone(), tool.clone());
            let begun = shared
                .book
                .record(Durability::Lazy, move |ledger| {
                    ledger.begin(now_ms(), &id, &name, false)
                })
                .await;
            match begun {
                Err(LedgerError::WrongState { .. }) => {}
                _ => {
                    shared
                        .finish(&call_id, &tool, false, outcome, Instant::now(), None)
                        .await;
                }
            }
        });
    }

    fn begin(self: &Arc<Self>, invocation: Invocation, seat: Seat, is_accepted: bool) {
        let mutating = match self.tools.effect(&invocation.tool, &invocation.args) {
            Ok(effect) => effect == Effect::Mutating,
            Err(error) => {
                drop(seat);
                return self.answer_accepted(invocation, is_accepted, Outcome::of(Err(error), false));
            }
        };
        let shared = Arc::clone(self);
        self.spawn(async move {
            let life = Life {
                shared: &shared,
                invocation,
                seat,
                mutating,
                received: Instant::now(),
            };
            life.run(is_accepted).await;
        });
    }

    fn answer_accepted(self: &Arc<Self>, invocation: Invocation, is_accepted: bool, outcome: Outcome) {
        if !is_accepted {
            return self.answer(invocation.call_id, invocation.tool, outcome);
        }
        let shared = Arc::clone(self);
        self.spawn(async move {
            shared
                .finish(
                    &invocation.call_id,
                    &invocation.tool,
                    false,
                    outcome,
                    Instant::now(),
                    None,
                )
                .await;
        });
    }

    /// `tool.cancel` (T7).
    pub fn cancelled(self: &Arc<Self>, call_id: &str, reason: &str) {
        self.log_call(
            Level::Info,
            "the gateway cancels a call",
            call_id,
            &[("reason", json!(reason))],
        );
        if let Some(active) = self.active(call_id) {
            active.cancel.cancel();
            return;
        }
        // Accepted by an earlier process and not asked for since.
        if let Some(known) = self
            .book
            .look(|ledger| ledger.known(call_id))
            .filter(|known| known.state == CallState::Accepted)
        {
            let (shared, outcome) = (Arc::clone(self), Outcome::cancelled_before_start("by the gateway"));
            self.spawn(async move {
                shared
                    .finish(
                        &known.call_id,
                        &known.tool,
                        known.mutating,
                        outcome,
                        Instant::now(),
                        None,
                    )
                    .await;
            });
        }
    }

    /// Stores how a call ended, then sends it. `session`: the command whose folder is no longer needed then.
    pub async fn finish(
        self: &Arc<Self>,
        call_id: &str,
        tool: &str,
        mutating: bool,
        outcome: Outcome,
        since: Instant,
        session: Option<String>,
    ) {
        let duration = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (kind, reason, lost) = (outcome.kind, outcome.reason, outcome.is_lost());
        let fields = [
            ("tool", json!(tool)),
            ("outcome", json!(kind.as_str())),
            ("reason", json!(reason)),
            ("durationMs", json!(duration)),
        ];
        self.log_call(Level::Info, "a call has ended", call_id, &fields);
        // A result without an end of the command's own comes while it runs on.
        let runs_on = outcome
            .result
            .as_ref()
            .and_then(|result| result.get("status"))
            .and_then(Value::as_str)
            == Some("running");
        let params = outcome.into_params(call_id, Some(duration));
        let (id, stored) = (call_id.to_owned(), params.clone());
        match self
            .book
            .record(Durability::of(mutating), move |ledger| {
                ledger.finish(now_ms(), &id, lost, &stored)
            })
            .await
        {
            Ok(()) => {
                self.delivery.result(call_id);
                if let Some(session) = session.filter(|_| !runs_on) {
                    self.release_command(&session).await;
                }
            }
            Err(error) => {
                self.log_call(
                    Level::Error,
                    &format!("{error} The result is sent all the same."),
                    call_id,
                    &[],
                );
                self.delivery.unrecorded(call_id, params);
            }
        }
    }

    /// What a command owed is in the ledger.
    pub async fn release_command(&self, session: &str) {
        match self.tools.release(session).await {
            Ok(()) | Err(ToolError::UnknownProcess { .. }) => {}
            Err(error) => self
                .log
                .write(Level::Warn, &error.to_string(), &[("sessionId", json!(session))]),
        }
    }
}

fn queue_full() -> Outcome {
    let error = format!(
        "{} calls run and {} wait on this machine already; nothing was run. Wait for some to end.",
        limits::NODE_CONCURRENT_CALLS,
        limits::NODE_QUEUED_CALLS
    );
    Outcome::error("tool.queue_full", error)
}

fn sentence(why: &str) -> String {
    format!("Nothing was run: {why}.")
}

/// A call that was admitted.
struct Life<'a> {
    shared: &'a Arc<Shared>,
    invocation: Invocation,
    seat: Seat,
    mutating: bool,
    received: Instant,
}

impl Life<'_> {
    async fn run(self, is_accepted: bool) {
        let permit = Arc::clone(&self.shared.slots).try_acquire_owned().ok();
        if !is_accepted && let Err(error) = self.accept(permit.is_some()).await {
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
            Ok(permit) => self.with_slot(permit, waited || is_accepted).await,
            Err(outcome) => (outcome, None),
        };
        let Self {
            shared,
            invocation,
            seat,
            mutating,
            received,
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
            .call_json::<gsv_protocol::methods::ToolResult>(params, Duration::from_secs(30))
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
            call_id: call_id.to_owned(),
            progress: Some(self.shared.progress_of(call_id)),
            cancel: self.seat.cancel.clone(),
            deadline: self.invocation.deadline,
            on_started: self.has_process().then(|| self.on_started(Arc::clone(&session))),
        };
        let tools = Arc::clone(&self.shared.tools);
        let (tool, args) = (self.invocation.tool.clone(), self.invocation.args.clone());
        let work = async move { tools.invoke(&tool, args, context).await };
        let outcome = self.guard(work).await;
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
    fn an_invocation_is_checked_before_anything_is_done() {
        let good = json!({"callId": "a/r1/1/0", "tool": "Bash", "args": {"command": "ls"}, "timeoutMs": 5, "more": 1});
        let read = Invocation::read(good, "laptop").unwrap();
        assert_eq!(
            (read.call_id.as_str(), read.tool.as_str(), read.deadline.is_some()),
            ("a/r1/1/0", "Bash", true)
        );
        let named = json!({"callId": "a", "tool": "laptop__Bash", "args": {}});
        assert_eq!(Invocation::read(named, "laptop").unwrap().tool, "Bash");
        for (payload, call_id) in [
            (json!(null), None),
            (json!({"tool": "Bash", "args": {}}), None),
            (json!({"callId": "", "tool": "Bash", "args": {}}), None),
            (json!({"callId": "x".repeat(129), "tool": "Bash", "args": {}}), None),
            (json!({"callId": "a", "tool": "Bash", "args": [1]}), Some("a")),
            (json!({"callId": "a", "args": {}}), Some("a")),
            (json!({"callId": "a", "tool": "B".repeat(129), "args": {}}), Some("a")),
            (
                json!({"callId": "a", "tool": "Write", "args": {"content": "x".repeat(1_048_600)}}),
                Some("a"),
            ),
        ] {
            assert_eq!(
                Invocation::read(payload, "laptop").unwrap_err().call_id.as_deref(),
                call_id
            );
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
