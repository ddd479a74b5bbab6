//! `gsv stop` and `gsv resume`: the run of one conversation, or everything.

use gsv_protocol::NoParams;
use gsv_protocol::methods::{ChatAbort, GatewayResume, GatewayStatus, GatewayStop};
use gsv_protocol::types::{ChatAbortParams, ConnectResult, StopState};

use super::context::Context;
use crate::args::Stop;
use crate::client::Client;
use crate::exit::Outcome;
use crate::units::time;

pub async fn stop(context: &Context, args: Stop) -> Outcome {
    if args.all {
        return everything(context).await;
    }
    let session_key = Context::session(args.session)?;
    let params = ChatAbortParams {
        session_key,
        run_id: None,
    };
    context
        .change::<ChatAbort>(params, |done| match (done.was_running, done.pending_tools_cancelled) {
            (false, _) => "Nothing was running.".to_owned(),
            (true, 0) => "Stopped.".to_owned(),
            (true, calls) => format!("Stopped, with {}.", counted(calls.into(), "tool call")),
        })
        .await
}

async fn everything(context: &Context) -> Outcome {
    let result = context.ask::<GatewayStop>(NoParams {}).await?;
    let mut lines = vec![format!(
        "Everything is stopped: {}.",
        counted(result.runs.len() as u64, "run")
    )];
    lines.extend(result.runs.iter().map(|run| match run.cancelled_calls {
        0 => format!("  {}", run.session_key),
        calls => format!("  {}, with {}", run.session_key, counted(calls.into(), "tool call")),
    }));
    if let Some(calls) = result.client_calls.filter(|calls| *calls > 0) {
        lines.push(format!("Called off for clients: {}.", counted(calls, "command")));
    }
    if result.pending > 0 {
        lines.push(format!(
            "No answer yet: {}. Nothing that they ask for is done.",
            counted(result.pending, "conversation")
        ));
    }
    lines.push("Messages wait. Go on with `gsv resume`.".to_owned());
    let words = lines.join("\n");
    context.out.done(&result, &words);
    Ok(())
}

pub async fn resume(context: &Context) -> Outcome {
    context
        .change::<GatewayResume>(NoParams {}, |done| match (done.was_stopped, done.sessions) {
            (false, _) => "Nothing was stopped.".to_owned(),
            (true, 0) => "GSV goes on. No conversation was held; jobs that wait begin now.".to_owned(),
            (true, held) => format!("GSV goes on. Held until now: {}.", counted(held, "conversation")),
        })
        .await
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// An older gateway knows no stop.
pub fn knows_stop(hello: Option<&ConnectResult>) -> bool {
    hello.is_some_and(|hello| hello.features.methods.iter().any(|method| method == "gateway.status"))
}

/// Whether everything is stopped. None also when the gateway does not say.
pub async fn stopped(client: &Client) -> Option<StopState> {
    if !knows_stop(client.hello().as_ref()) {
        return None;
    }
    client.call::<GatewayStatus>(NoParams {}).await.ok()?.stopped
}

pub fn stopped_words(state: &StopState) -> String {
    format!(
        "stopped since {}: messages wait. Go on with `gsv resume`",
        time(state.since)
    )
}
