//! Runs one admitted call, from its acceptance to its stored result. A call starts at most once: the ledger records a
//! mutating call durably before its tool starts (P6, T2).

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gsv_link::ledger::{LedgerError, ProcessInfo};
use gsv_protocol::errors;
use gsv_protocol::methods::ToolResult;
use gsv_protocol::types::ToolPhase;
use gsv_tools::{CallContext, OnStarted, ToolError, ToolOutput};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::calls::CallEntry;
use crate::context::Context;
use crate::event::NodeEvent;
use crate::finish::Ended;
use crate::images::upload_image;
use crate::invocation::Invocation;
use crate::log::{Level, now_ms};
use crate::outcome::{KnownCommand, Outcome};
use crate::progress::Reached;
use crate::shared_ledger::Durability;

/// The tool that starts a process, and so reports its start itself.
const PROCESS_TOOL: &str = "Bash";
/// Time after the deadline in which a tool must end by itself.
const GRACE: Duration = Duration::from_secs(10);

const AGAIN: &str = "~again.";

/// The call id in an attempt's name.
pub fn call_of(attempt: &str) -> &str {
    match attempt.rsplit_once(AGAIN) {
        Some((call_id, time)) if !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()) => call_id,
        _ => attempt,
    }
}

/// An admitted call.
pub struct RunCall {
    pub context: Arc<Context>,
    pub invocation: Invocation,
    pub entry: CallEntry,
    pub mutating: bool,
    pub received: Instant,
    /// An earlier process of this node accepted the call and did not start it.
    pub is_accepted: bool,
    /// The call runs at once; else it waits for its slot.
    pub has_slot: bool,
}

impl RunCall {
    pub async fn run(self) {
        if !self.is_accepted
            && let Err(error) = self.accept().await
        {
            return self.unrecorded(&error).await;
        }
        let call_id = self.invocation.call_id.as_str();
        let phases = self.context.progress.phases_of(call_id);
        phases.reached.phase(ToolPhase::Accepted, None);
        let waited = if self.has_slot {
            Ok(())
        } else {
            self.wait_for_slot().await
        };
        let (outcome, session) = match waited {
            Ok(()) => self.with_slot(&phases.reached).await,
            Err(outcome) => (outcome, None),
        };
        drop(phases);
        let ended = Ended {
            call_id,
            tool: &self.invocation.tool,
            mutating: self.mutating,
            since: self.received,
            session,
        };
        self.context.finish(ended, outcome).await;
        // The entry is dropped only now: until the result is stored, a repeated invocation must find the call active.
    }

    /// The call id that the tool gets. That of a command differs after a restart: the supervisor of the earlier start may still write into the
    /// folder that the call id itself names.
    fn attempt_name(&self) -> String {
        let call_id = &self.invocation.call_id;
        if self.is_accepted && self.has_process() {
            format!("{call_id}{AGAIN}{}", now_ms())
        } else {
            call_id.clone()
        }
    }

    fn has_process(&self) -> bool {
        self.invocation.tool == PROCESS_TOOL
    }

    /// Records the acceptance before anything is started. One record also starts a call that runs at once and has no
    /// process; the start of a process makes all earlier records durable.
    async fn accept(&self) -> Result<(), LedgerError> {
        let (id, tool, mutating) = (
            self.invocation.call_id.clone(),
            self.invocation.tool.clone(),
            self.mutating,
        );
        let has_process = self.has_process();
        let durability = Durability::of(mutating && !(self.has_slot && has_process));
        let begin = self.has_slot && !has_process;
        let record = self.context.ledger.record(durability, move |ledger| {
            if begin {
                ledger.begin(now_ms(), &id, &tool, mutating)
            } else {
                ledger.accept(now_ms(), &id, &tool, mutating)
            }
        });
        record.await
    }

    /// The ledger could not record the call, so the call must not start.
    async fn unrecorded(&self, error: &LedgerError) {
        let call_id = self.invocation.call_id.as_str();
        if matches!(error, LedgerError::WrongState { .. }) {
            return;
        }
        self.context.log.call(Level::Error, &error.to_string(), call_id, &[]);
        let params = Outcome::not_recorded(error).into_params(call_id, None, &self.context.scrub);
        // Not kept: if the gateway does not get it, the gateway asks again.
        let answered = self
            .context
            .link
            .call_within::<ToolResult>(params, Duration::from_secs(30))
            .await;
        if answered.is_ok() {
            let id = call_id.to_owned();
            // The acceptance may have been written and not synced; the call was answered, so it must not stay open.
            let _ = self.context.ledger.with(move |ledger| ledger.forget(&id)).await;
        }
    }

    async fn wait_for_slot(&self) -> Result<(), Outcome> {
        tokio::select! {
            biased;
            () = self.entry.cancel().cancelled() => Err(Outcome::cancelled_before_start("while it waited for others")),
            () = at(self.invocation.deadline) => Err(Outcome::late_before_start()),
            () = self.entry.slot() => Ok(()),
        }
    }

    /// Runs the tool while the call holds its slot. Also returns the session of the command, if the tool started one.
    async fn with_slot(&self, reached: &Reached) -> (Outcome, Option<String>) {
        let call_id = self.invocation.call_id.as_str();
        if self.entry.cancel().is_cancelled() {
            return (Outcome::cancelled_before_start("before its turn came"), None);
        }
        let is_begun = self.has_slot && !self.is_accepted;
        if !is_begun && !self.has_process() {
            let id = call_id.to_owned();
            let started = self
                .context
                .ledger
                .record(Durability::of(self.mutating), move |ledger| {
                    ledger.start(now_ms(), &id, None)
                })
                .await;
            if let Err(error) = started {
                return (Outcome::not_recorded(&error), None);
            }
        }
        let tool = &self.invocation.tool;
        self.context.tell(|| NodeEvent::CallStarted {
            call_id: call_id.to_owned(),
            tool: tool.clone(),
        });
        if !self.has_process() {
            self.context.calls.started(call_id, false);
            reached.phase(ToolPhase::Started, None);
        }
        let session = Arc::new(OnceLock::new());
        let context = CallContext {
            call_id: self.attempt_name(),
            progress: Some(self.context.progress.output_of(call_id)),
            cancel: self.entry.cancel().clone(),
            deadline: self.invocation.deadline,
            on_started: self
                .has_process()
                .then(|| self.on_started(Arc::clone(&session), reached.clone())),
        };
        let tools = Arc::clone(&self.context.tools);
        let (tool, args) = (self.invocation.tool.clone(), self.invocation.args.clone());
        let work = async move { tools.invoke(&tool, args, context).await };
        let outcome = self.guard(work).await;
        let uploaded = upload_image(outcome, call_id, &self.context.uploader);
        let outcome = tokio::select! {
            biased;
            outcome = uploaded => outcome,
            () = self.entry.cancel().cancelled() => Outcome::of(Err(ToolError::Cancelled { tail: None }), false),
        };
        self.entry.release_slot();
        (outcome, session.get().cloned())
    }

    /// Records the start durably before the command runs.
    fn on_started(&self, session: Arc<OnceLock<String>>, reached: Reached) -> OnStarted {
        let (context, call_id) = (Arc::clone(&self.context), self.invocation.call_id.clone());
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
                let started = context
                    .ledger
                    .record(Durability::Synced, move |ledger| {
                        ledger.start(now_ms(), &id, Some(&process))
                    })
                    .await;
                started.map_err(std::io::Error::other)?;
                if let Some(name) = name {
                    // Set once: a command starts once.
                    let _ = session.set(name);
                }
                context.calls.started(&call_id, true);
                reached.phase(ToolPhase::Started, Some(pid));
                Ok(())
            })
        })
    }

    /// Waits for the tool. Gives an outcome also when the tool panics or does not end.
    async fn guard(&self, work: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static) -> Outcome {
        // In a set, so that dropping this future ends the task.
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        let done = tokio::select! {
            done = tasks.join_next() => done,
            () = at(self.invocation.deadline.map(|deadline| deadline + GRACE)) => None,
        };
        let Some(done) = done else {
            return Outcome::unknown("the tool did not end in time", KnownCommand::default());
        };
        let is_late = self
            .invocation
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        match done {
            Ok(done) => Outcome::of(done, is_late),
            Err(error) => panicked(&error, self.mutating),
        }
    }
}

/// A tool that panicked. What it had changed by then is unknown.
fn panicked(error: &JoinError, mutating: bool) -> Outcome {
    let what = if error.is_panic() {
        "the tool panicked (a bug in gsv)"
    } else {
        "the tool was stopped"
    };
    if mutating {
        Outcome {
            reason: Some(&errors::TOOL_FAILED),
            ..Outcome::unknown(what, KnownCommand::default())
        }
    } else {
        Outcome::error(
            &errors::TOOL_FAILED,
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
    fn the_call_id_is_read_from_an_attempts_name() {
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
        let panic = tokio::spawn(async { panic!("a bug") }).await.unwrap_err();
        let outcome = panicked(&panic, false);
        assert_eq!(
            (outcome.kind, outcome.reason),
            (ToolOutcome::Error, Some(&errors::TOOL_FAILED))
        );
        let outcome = panicked(&panic, true);
        assert_eq!(
            (outcome.kind, outcome.reason),
            (ToolOutcome::Unknown, Some(&errors::TOOL_FAILED))
        );
    }
}
