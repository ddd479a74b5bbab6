//! What an earlier process of this node left behind: calls that were started and not finished (K15 to K17). Runs nothing
//! again.

use std::sync::Arc;

use gsv_link::ledger::KnownCall;
use gsv_tools::{CallContext, Reattached, RunningCall, ToolBox};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::book::{Book, Durability};
use crate::log::{Level, Log, now_ms};
use crate::outcome::{Outcome, known_of};
use crate::shared::{Seat, Shared};

/// A command that outlived the process that started it.
pub struct Survivor {
    pub call_id: String,
    pub tool: String,
    pub command: RunningCall,
}

/// Finds out what became of every started call, stores what has ended, and gives what runs still. Must be done before
/// the gateway is told what the ledger holds.
pub async fn take_up(book: &Book, tools: &ToolBox, log: &Log) -> Vec<Survivor> {
    let mut survivors = vec![];
    for call in book.look(gsv_link::ledger::Ledger::started) {
        let outcome = match fate(&call, tools).await {
            Fate::Ended(outcome) => outcome,
            Fate::Follow(command) => {
                log.write(
                    Level::Info,
                    "a command of an earlier start runs still",
                    &[("callId", json!(call.call_id))],
                );
                survivors.push(Survivor {
                    call_id: call.call_id,
                    tool: call.tool,
                    command,
                });
                continue;
            }
            Fate::Harmless => {
                let id = call.call_id.clone();
                if let Err(error) = book.with(move |ledger| ledger.forget(&id)).await {
                    log.write(Level::Error, &error.to_string(), &[("callId", json!(call.call_id))]);
                }
                continue;
            }
        };
        log.write(
            Level::Warn,
            "a call of an earlier start has ended",
            &[
                ("callId", json!(call.call_id)),
                ("outcome", json!(outcome.kind.as_str())),
            ],
        );
        let (id, lost) = (call.call_id.clone(), outcome.is_lost());
        let runs_on = outcome
            .result
            .as_ref()
            .and_then(|result| result.get("status"))
            .and_then(Value::as_str)
            == Some("running");
        let params = outcome.into_params(&call.call_id, None);
        match book
            .record(Durability::Synced, move |ledger| {
                ledger.finish(now_ms(), &id, lost, &params)
            })
            .await
        {
            Ok(()) => {
                if let Some(session) = session_of(&call).filter(|_| !runs_on) {
                    // A folder that is gone already needs no release.
                    let _ = tools.release(&session).await;
                }
            }
            Err(error) => log.write(Level::Error, &error.to_string(), &[("callId", json!(call.call_id))]),
        }
    }
    survivors
}

enum Fate {
    Ended(Outcome),
    Follow(RunningCall),
    /// It only read; when the gateway wants it still, it asks again.
    Harmless,
}

async fn fate(call: &KnownCall, tools: &ToolBox) -> Fate {
    let Some(process) = &call.process else {
        if !call.mutating {
            return Fate::Harmless;
        }
        let known = known_of(None, call.started_at, None).unwrap_or(Value::Null);
        return Fate::Ended(Outcome::unknown("the node was stopped while it ran", known));
    };
    match tools.reattach(&process.spool).await {
        Ok(Reattached::Running(command)) if command.is_background() => {
            let result = json!({"status": "running", "sessionId": command.session_id(), "pid": process.pid, "startedAt": call.started_at});
            Fate::Ended(Outcome::ok(result))
        }
        Ok(Reattached::Running(command)) => Fate::Follow(command),
        Ok(Reattached::Finished(value)) => Fate::Ended(Outcome::ok(value)),
        Ok(Reattached::NeverStarted) => {
            let error = "The node was stopped before the command was started; nothing was run. It may be called again.";
            Fate::Ended(Outcome::error("tool.failed", error))
        }
        Ok(Reattached::Lost { pid, tail, started_at }) => {
            let pid = if pid == 0 { process.pid } else { pid };
            let started_at = if started_at == 0 {
                call.started_at
            } else {
                Some(started_at)
            };
            let known = known_of(Some(pid), started_at, Some(&tail)).unwrap_or(Value::Null);
            Fate::Ended(Outcome::unknown(
                "the command is gone without a word, with the node or the machine",
                known,
            ))
        }
        Err(error) => Fate::Ended(Outcome::of(Err(error), false)),
    }
}

fn session_of(call: &KnownCall) -> Option<String> {
    let name = call.process.as_ref()?.spool.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

impl Shared {
    /// Waits for a command of an earlier process as its call would have (K16).
    pub fn follow(self: &Arc<Self>, survivor: Survivor) {
        let Some(seat) = self.readmit(&survivor.call_id) else {
            return;
        };
        self.mark_started(&survivor.call_id, true);
        let shared = Arc::clone(self);
        self.spawn(async move { shared.follow_to_end(survivor, seat).await });
    }

    async fn follow_to_end(self: Arc<Self>, survivor: Survivor, seat: Seat) {
        let Survivor { call_id, tool, command } = survivor;
        // It runs already, so it counts among those that run, but can't be made to wait.
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let context = CallContext {
            progress: Some(self.progress_of(&call_id)),
            cancel: seat.cancel.clone(),
            ..CallContext::new(call_id.as_str())
        };
        let since = Instant::now();
        let outcome = Outcome::of(command.wait(context).await, false);
        drop(slot);
        let session = command.session_id().to_owned();
        self.finish(&call_id, &tool, true, outcome, since, Some(session)).await;
        drop(seat);
    }
}
