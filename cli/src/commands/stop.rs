//! `gsv stop`: the run of one conversation, or everything.

use gsv_protocol::methods::{ChatAbort, GatewayStop};
use gsv_protocol::types::ChatAbortParams;
use gsv_protocol::{NoParams, errors};
use serde_json::json;

use super::context::Context;
use super::stop_state::naming_copy;
use crate::args::Stop;
use crate::exit::Outcome;
use crate::units::counted;

const NOTHING: &str = "Nothing was running. To stop the gateway itself: `gsv down`.";

pub async fn stop(context: &Context, args: Stop) -> Outcome {
    if args.all {
        return everything(context).await;
    }
    let named = args.session.named();
    let is_named = named.is_some();
    let session_key = Context::session(named)?;
    let params = ChatAbortParams {
        session_key,
        run_id: None,
    };
    let stopped = context
        .change::<ChatAbort>(params, |done| {
            let stopped = match (done.was_running, done.pending_tools_cancelled) {
                (false, _) => NOTHING.to_owned(),
                (true, 0) => "Stopped.".to_owned(),
                (true, calls) => format!(
                    "Stopped, with {} cancelled.",
                    counted(calls.into(), "tool call", "tool calls")
                ),
            };
            match done.waiting.filter(|_| done.was_running) {
                None | Some(0) => stopped,
                Some(1) => format!("{stopped} 1 queued message is read next."),
                Some(count) => format!(
                    "{stopped} {} are read next.",
                    counted(count.into(), "queued message", "queued messages")
                ),
            }
        })
        .await;
    match stopped {
        // The usual conversation has had no message yet.
        Err(failure) if !is_named && failure.is(&errors::SESSION_NOT_FOUND) => {
            let result = json!({ "ok": true, "wasRunning": false, "pendingToolsCancelled": 0 });
            context.out.done(&result, NOTHING);
            Ok(())
        }
        stopped => stopped,
    }
}

async fn everything(context: &Context) -> Outcome {
    let result = context.ask::<GatewayStop>(NoParams {}).await?;
    let mut lines = vec![format!(
        "Everything is stopped: {}.",
        counted(result.runs.len() as u64, "run", "runs")
    )];
    lines.extend(result.runs.iter().map(|run| match run.cancelled_calls {
        0 => format!("  {}", run.session_key),
        calls => format!(
            "  {}, with {}",
            run.session_key,
            counted(calls.into(), "tool call", "tool calls")
        ),
    }));
    if let Some(calls) = result.client_calls.filter(|calls| *calls > 0) {
        let what = match calls {
            1 => "command or copy",
            _ => "commands or copies",
        };
        lines.push(format!("Ended {calls} {what} that clients had started."));
    }
    if result.pending > 0 {
        lines.push(format!(
            "No answer yet: {}. Nothing that they ask for is done.",
            counted(result.pending, "conversation", "conversations")
        ));
    }
    let url = context.account()?.url;
    lines.push(naming_copy("Messages wait. Go on with `gsv resume`.", &url));
    let words = lines.join("\n");
    context.out.done(&result, &words);
    Ok(())
}
