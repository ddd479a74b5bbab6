//! Undoes calls of the file tools when the gateway asks (rules UN3 and UN4). The work is gsv-tools'; this reads the request and
//! reports the outcome. A request that is asked again after a lost report finds its files done.

use std::sync::Arc;
use std::time::Duration;

use gsv_protocol::methods::UndoReport;
use gsv_protocol::types::{CallId, UndoFile, UndoReportParams, UndoRequestEvent};
use gsv_tools::undo::{UndoAction, UndoOutcome, UndoReply, UndoRequest, UndoneFile};
use serde_json::json;

use crate::context::Context;
use crate::log::Level;

const REPORT_TIME: Duration = Duration::from_secs(30);
/// Characters of a path, which is shorter on every system.
const PATH_CHARS: usize = 8000;
/// Characters of a problem, so that a report fits a frame: a character is up to six bytes of JSON.
const PROBLEM_CHARS: usize = 500;

/// Answers a request for an undo.
pub async fn answer_undo(context: Arc<Context>, event: UndoRequestEvent) {
    let UndoRequestEvent {
        call_id,
        calls,
        undo_id,
        dry_run,
        force,
        before_seq,
    } = event;
    // Without a `/` at its end or several parts it could only be a mistake.
    if calls.len() < 3 || !calls.contains('/') || undo_id.is_empty() {
        return report(&context, refusal(call_id, "the request names no calls".into())).await;
    }
    let request = UndoRequest {
        calls,
        undo_id,
        is_dry: dry_run,
        is_forced: force,
        before_seq,
    };
    let tools = Arc::clone(&context.tools);
    let asked = request.clone();
    let done = tokio::task::spawn_blocking(move || tools.undo(&asked)).await;
    let params = match done {
        Ok(Ok(reply)) => {
            if !request.is_dry {
                let of = |outcome| reply.files.iter().filter(|file| file.outcome == outcome).count();
                let fields = [
                    ("calls", json!(request.calls)),
                    ("undo", json!(request.undo_id)),
                    ("undone", json!(of(UndoOutcome::Undone))),
                    ("files", json!(reply.files.len())),
                ];
                context.log.write(Level::Info, "calls were undone", &fields);
            }
            reported(call_id, reply)
        }
        Ok(Err(error)) => refusal(call_id, error.to_string()),
        Err(error) => refusal(call_id, format!("The undo was stopped: {error}")),
    };
    report(&context, params).await;
}

/// Answers a request that can't be read.
pub async fn refuse_undo(context: Arc<Context>, call_id: CallId, problem: String) {
    report(&context, refusal(call_id, problem)).await;
}

async fn report(context: &Context, params: UndoReportParams) {
    let sent = context.link.call_within::<UndoReport>(params, REPORT_TIME).await;
    if let Err(error) = sent {
        let text = format!("the report of an undo could not be sent: {error}");
        context.log.write(Level::Warn, &text, &[]);
    }
}

fn refusal(call_id: CallId, error: String) -> UndoReportParams {
    UndoReportParams {
        call_id,
        files: None,
        next: None,
        error: Some(error),
    }
}

fn reported(call_id: CallId, reply: UndoReply) -> UndoReportParams {
    UndoReportParams {
        call_id,
        files: Some(reply.files.into_iter().map(on_the_wire).collect()),
        next: reply.next,
        error: None,
    }
}

fn on_the_wire(file: UndoneFile) -> UndoFile {
    use gsv_protocol::types;
    let cut = |text: String, chars: usize| text.chars().take(chars).collect();
    UndoFile {
        path: cut(file.path, PATH_CHARS),
        action: match file.action {
            UndoAction::Rewrite => types::UndoAction::Rewrite,
            UndoAction::BringBack => types::UndoAction::BringBack,
            UndoAction::Remove => types::UndoAction::Remove,
        },
        outcome: match file.outcome {
            UndoOutcome::Planned => types::UndoOutcome::Planned,
            UndoOutcome::Undone => types::UndoOutcome::Undone,
            UndoOutcome::Unchanged => types::UndoOutcome::Unchanged,
            UndoOutcome::Conflict => types::UndoOutcome::Conflict,
            UndoOutcome::NoCopy => types::UndoOutcome::NoCopy,
            UndoOutcome::Failed => types::UndoOutcome::Failed,
        },
        problem: file.problem.map(|problem| cut(problem, PROBLEM_CHARS)),
    }
}
