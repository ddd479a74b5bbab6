//! Serves the calls that the gateway asks for and cancels. [`crate::admission`] decides; this carries its decisions out.

use std::sync::Arc;

use gsv_link::ledger::LedgerError;
use gsv_protocol::types::{CallId, ToolInvokeEvent, ToolPhase};
use gsv_tools::Effect;
use serde_json::json;
use tokio::time::Instant;

use crate::admission::{Cancelled, Invoked, Known, Malformed, Phase};
use crate::calls::CallEntry;
use crate::context::Context;
use crate::finish::Ended;
use crate::invocation::{BadInvocation, Invocation};
use crate::log::{Level, now_ms};
use crate::outcome::{KnownCommand, Outcome};
use crate::run_call::RunCall;
use crate::shared_ledger::Durability;

impl Context {
    fn known(&self, call_id: &str) -> Known {
        Known {
            ledger: self.ledger.state(call_id),
            is_unrecorded: self.delivery.has_unrecorded(call_id),
        }
    }

    /// `tool.invoke`. Never waits.
    pub fn invoked(self: &Arc<Self>, event: ToolInvokeEvent) {
        let invocation = match Invocation::read(event, &self.node_id) {
            Ok(invocation) => invocation,
            Err(bad) => return self.refuse(bad),
        };
        let call_id = invocation.call_id.as_str();
        let (decision, entry) = self.calls.invoke(call_id, || self.known(call_id));
        match decision {
            Invoked::Begin { is_accepted, has_slot } => {
                if let Some(entry) = entry {
                    self.begin(invocation, entry, is_accepted, has_slot);
                }
            }
            Invoked::Report(phase) => {
                let phase = match phase {
                    Phase::Accepted => ToolPhase::Accepted,
                    Phase::Started => ToolPhase::Started,
                };
                self.progress.phase(call_id, phase, None);
            }
            Invoked::SendResult => self.delivery.result(call_id),
            Invoked::Lost => {
                let message = "a call was asked for again whose result could not be stored";
                self.log.call(Level::Error, message, call_id, &[]);
                let outcome =
                    Outcome::unknown("its result could not be stored on the machine", KnownCommand::default());
                self.finish_later(invocation.call_id, String::new(), true, outcome);
            }
            Invoked::Refuse => self.answer(invocation.call_id, invocation.tool, Outcome::queue_full()),
            Invoked::Postpone => {
                let message = "no slot for an accepted call; it waits until the gateway asks for it again";
                self.log.call(Level::Warn, message, call_id, &[]);
            }
        }
    }

    /// A `tool.invoke` that does not fit the contract.
    pub fn refuse_malformed(self: &Arc<Self>, call_id: Option<CallId>, problem: &str) {
        self.refuse(BadInvocation::new(call_id, format!("the call is not valid: {problem}")));
    }

    fn refuse(self: &Arc<Self>, bad: BadInvocation) {
        let Some(call_id) = bad.call_id else {
            let text = format!("a call without a call id was ignored: {}", bad.why);
            return self.log.write(Level::Warn, &text, &[]);
        };
        match self.calls.malformed(&call_id, || self.known(&call_id)) {
            Malformed::Answer => self.answer(call_id, String::new(), Outcome::bad_args(&bad.why)),
            Malformed::SendResult => self.delivery.result(&call_id),
            Malformed::Ignore => {}
        }
    }

    fn begin(self: &Arc<Self>, invocation: Invocation, entry: CallEntry, is_accepted: bool, has_slot: bool) {
        let mutating = match self.tools.effect(&invocation.tool, &invocation.args) {
            Ok(effect) => effect == Effect::Mutating,
            Err(error) => {
                drop(entry);
                let (call_id, tool) = (invocation.call_id, invocation.tool);
                let outcome = Outcome::of(Err(error), false);
                return if is_accepted {
                    self.finish_later(call_id, tool, false, outcome);
                } else {
                    self.answer(call_id, tool, outcome);
                };
            }
        };
        let run = RunCall {
            context: Arc::clone(self),
            invocation,
            entry,
            mutating,
            received: Instant::now(),
            is_accepted,
            has_slot,
        };
        self.tasks.spawn(run.run());
    }

    /// Answers a call that is not run.
    fn answer(self: &Arc<Self>, call_id: String, tool: String, outcome: Outcome) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let (id, name) = (call_id.clone(), tool.clone());
            let begun = this
                .ledger
                .record(Durability::Lazy, move |ledger| {
                    ledger.begin(now_ms(), &id, &name, false)
                })
                .await;
            if !matches!(begun, Err(LedgerError::WrongState { .. })) {
                this.finish(ended(&call_id, &tool, false), outcome).await;
            }
        });
    }

    fn finish_later(self: &Arc<Self>, call_id: String, tool: String, mutating: bool, outcome: Outcome) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.finish(ended(&call_id, &tool, mutating), outcome).await;
        });
    }

    /// `tool.cancel` (T7).
    pub fn cancelled(self: &Arc<Self>, call_id: &str, reason: &str) {
        let fields = [("reason", json!(reason))];
        self.log
            .call(Level::Info, "the gateway cancels a call", call_id, &fields);
        match self.calls.cancel(call_id, || self.known(call_id)) {
            Cancelled::Signal => {}
            // The call is over; a command that it left in the background is not.
            Cancelled::Ignore => {
                self.tools.end_background(call_id);
            }
            Cancelled::Finish => {
                if let Some(known) = self.ledger.look(|ledger| ledger.known(call_id)) {
                    let outcome = Outcome::cancelled_before_start("by the gateway");
                    self.finish_later(known.call_id, known.tool, known.mutating, outcome);
                }
            }
        }
    }
}

fn ended<'a>(call_id: &'a str, tool: &'a str, mutating: bool) -> Ended<'a> {
    Ended {
        call_id,
        tool,
        mutating,
        since: Instant::now(),
        session: None,
    }
}
