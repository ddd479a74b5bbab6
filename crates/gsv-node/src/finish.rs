//! The end of a call: its result is stored in the ledger, then sent.

use std::sync::Arc;

use gsv_tools::ToolError;
use serde_json::json;
use tokio::time::Instant;

use crate::context::Context;
use crate::event::NodeEvent;
use crate::log::{Level, now_ms};
use crate::outcome::Outcome;
use crate::shared_ledger::Durability;

/// A call to be finished.
pub struct Ended<'a> {
    pub call_id: &'a str,
    pub tool: &'a str,
    pub mutating: bool,
    pub since: Instant,
    /// The command's session, whose folder is not needed once the result is stored.
    pub session: Option<String>,
}

impl Context {
    /// Stores how a call ended, then sends it.
    pub async fn finish(&self, ended: Ended<'_>, outcome: Outcome) {
        let Ended {
            call_id,
            tool,
            mutating,
            since,
            session,
        } = ended;
        let took = since.elapsed();
        let duration = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let fields = [
            ("tool", json!(tool)),
            ("outcome", json!(outcome.kind)),
            ("reason", json!(outcome.reason.map(|row| row.reason))),
            ("durationMs", json!(duration)),
        ];
        self.log.call(Level::Info, "a call has ended", call_id, &fields);
        let (lost, runs_on) = (outcome.is_lost(), outcome.runs_on());
        let event = NodeEvent::CallEnded {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            outcome: outcome.kind,
            reason: outcome.reason.map(|row| row.reason),
            took,
        };
        let params = Arc::new(outcome.into_params(call_id, Some(duration), &self.scrub));
        let (id, stored) = (call_id.to_owned(), Arc::clone(&params));
        let stored = self
            .ledger
            .record(Durability::of(mutating), move |ledger| {
                ledger.finish(now_ms(), &id, lost, &*stored)
            })
            .await;
        match stored {
            Ok(()) => {
                self.delivery.result(call_id);
                // A command that runs on reports its end by event, from its folder.
                if let Some(session) = session.filter(|_| !runs_on) {
                    self.release_command(&session).await;
                }
            }
            Err(error) => {
                let message = format!("{error} The result is sent nevertheless.");
                self.log.call(Level::Error, &message, call_id, &[]);
                self.delivery.unrecorded(call_id, Arc::unwrap_or_clone(params));
            }
        }
        self.tell(|| event);
    }

    /// Tells the tools that the ledger has the command's result or end, so that they may remove its folder.
    pub async fn release_command(&self, session: &str) {
        match self.tools.release(session).await {
            Ok(()) | Err(ToolError::UnknownProcess { .. }) => {}
            Err(error) => {
                let fields = [("sessionId", json!(session))];
                self.log.write(Level::Warn, &error.to_string(), &fields);
            }
        }
    }
}
