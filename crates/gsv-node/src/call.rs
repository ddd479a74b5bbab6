//! What the gateway says of calls, and how a call is answered: from the ledger when it is known, by a [`Life`] when it is
//! new (T1).

use std::sync::Arc;

use gsv_link::ledger::{CallState, LedgerError};
use gsv_protocol::limits;
use gsv_protocol::types::{CallId, ToolInvokeEvent, ToolPhase};
use gsv_tools::{Effect, ToolError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::book::Durability;
use crate::invocation::{BadInvocation, Invocation};
use crate::life::Life;
use crate::log::{Level, now_ms};
use crate::outcome::Outcome;
use crate::shared::{Admission, Seat, Shared};

impl Shared {
    /// `tool.invoke`. Never waits.
    pub fn invoked(self: &Arc<Self>, event: ToolInvokeEvent) {
        let invocation = match Invocation::read(event, &self.id) {
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

    /// A `tool.invoke` that does not fit the contract.
    pub fn refuse_malformed(self: &Arc<Self>, call_id: Option<CallId>, problem: &str) {
        self.refuse_bad(BadInvocation::new(call_id, format!("the call is not valid: {problem}")));
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
                is_accepted,
            };
            life.run().await;
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

pub fn sentence(why: &str) -> String {
    format!("Nothing was run: {why}.")
}
