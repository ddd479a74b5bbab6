//! Recovers the calls that an earlier process of this node started and did not finish (K15 to K17). Never runs a call
//! again.

use std::sync::Arc;

use gsv_link::ledger::KnownCall;
use gsv_protocol::errors;
use gsv_tools::{
    CallContext, CommandOutput, Reattached, RunningCall, RunningCommand, RunningOutput, ToolBox, ToolOutput,
};
use serde_json::json;
use tokio::time::Instant;

use crate::calls::CallEntry;
use crate::context::Context;
use crate::finish::Ended;
use crate::log::{Level, Log, now_ms};
use crate::outcome::{KnownCommand, Outcome};
use crate::scrub::Scrub;
use crate::shared_ledger::{Durability, SharedLedger};

/// A command that outlived the process that started it.
pub struct Survivor {
    pub call_id: String,
    pub tool: String,
    pub command: RunningCall,
}

/// Checks every started call: stores the results of those that have ended, and returns those that still run. Must be done
/// before the ledger's list is sent to the gateway.
pub async fn recover(ledger: &SharedLedger, tools: &ToolBox, log: &Log, scrub: &Scrub) -> Vec<Survivor> {
    let mut survivors = vec![];
    for call in ledger.look(gsv_link::ledger::Ledger::started) {
        let outcome = match fate(&call, tools).await {
            Fate::Ended(outcome) => *outcome,
            Fate::Follow(command) => {
                log.write(
                    Level::Info,
                    "a command of an earlier start still runs",
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
                if let Err(error) = ledger.with(move |ledger| ledger.forget(&id)).await {
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
        let runs_on = outcome.runs_on();
        let params = outcome.into_params(&call.call_id, None, scrub);
        match ledger
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
    Ended(Box<Outcome>),
    Follow(RunningCall),
    /// It only read; the gateway asks again if it still wants the result.
    Harmless,
}

async fn fate(call: &KnownCall, tools: &ToolBox) -> Fate {
    let ended = |outcome| Fate::Ended(Box::new(outcome));
    let Some(process) = &call.process else {
        if !call.mutating {
            return Fate::Harmless;
        }
        let known = KnownCommand {
            started_at: call.started_at,
            ..KnownCommand::default()
        };
        return ended(Outcome::unknown("the node was stopped while it ran", known));
    };
    match tools.reattach(&process.spool).await {
        Ok(Reattached::Running(command)) if command.is_background() => {
            let command = RunningCommand::new(command.session_id(), process.pid, call.started_at);
            let running = RunningOutput { command, tail: None };
            ended(Outcome::ok(ToolOutput::Command(CommandOutput::Running(running))))
        }
        Ok(Reattached::Running(command)) => Fate::Follow(command),
        Ok(Reattached::Finished(output)) => ended(Outcome::ok(ToolOutput::Command(output))),
        Ok(Reattached::NeverStarted) => {
            let error = "The node was stopped before the command was started; nothing was run. It may be called again.";
            ended(Outcome::error(&errors::TOOL_FAILED, error))
        }
        Ok(Reattached::Lost { pid, tail, started_at }) => {
            let found = KnownCommand {
                pid: Some(pid),
                started_at: Some(started_at),
                tail: Some(tail),
            };
            ended(Outcome::unknown(
                "the command is gone and left no exit status, with the node or the machine",
                completed(found, process.pid, call.started_at),
            ))
        }
        Err(error) => ended(Outcome::of(Err(error), false)),
    }
}

fn session_of(call: &KnownCall) -> Option<String> {
    let name = call.process.as_ref()?.spool.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

impl Context {
    /// Waits for a command of an earlier process as its call would have (K16).
    pub fn follow(self: &Arc<Self>, survivor: Survivor) {
        if let Some(entry) = self.calls.resume(&survivor.call_id) {
            self.tasks.spawn(Arc::clone(self).follow_to_end(survivor, entry));
        }
    }

    async fn follow_to_end(self: Arc<Self>, survivor: Survivor, entry: CallEntry) {
        let Survivor { call_id, tool, command } = survivor;
        let context = CallContext {
            progress: Some(self.progress.output_of(&call_id)),
            cancel: entry.cancel().clone(),
            ..CallContext::new(call_id.as_str())
        };
        let since = Instant::now();
        let outcome = Outcome::of(command.wait(context).await.map(ToolOutput::Command), false);
        entry.release_slot();
        let ended = Ended {
            call_id: &call_id,
            tool: &tool,
            mutating: true,
            since,
            session: Some(command.session_id().to_owned()),
        };
        self.finish(ended, outcome).await;
    }
}

/// What a lost command's folder says, and the ledger's record where the folder says nothing (zero).
fn completed(found: KnownCommand, pid: u32, started_at: Option<u64>) -> KnownCommand {
    KnownCommand {
        pid: found.pid.filter(|pid| *pid > 0).or(Some(pid)),
        started_at: found.started_at.filter(|at| *at > 0).or(started_at),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_commands_folder_comes_before_the_ledger() {
        let known = |pid, started_at| KnownCommand {
            pid: Some(pid),
            started_at: Some(started_at),
            tail: Some("half".to_owned()),
        };
        assert_eq!(completed(known(7, 5), 8, Some(6)), known(7, 5));
        assert_eq!(completed(known(0, 0), 8, Some(6)), known(8, 6));
        assert_eq!(completed(known(0, 0), 8, None).started_at, None);
    }
}
