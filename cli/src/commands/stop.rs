//! `gsv stop` and `gsv resume`: the run of one conversation, or everything.

use gsv_link::Target;
use gsv_protocol::methods::{ChatAbort, GatewayResume, GatewayStatus, GatewayStop};
use gsv_protocol::types::{ChatAbortParams, ConnectResult, GatewayResumeParams, StopState};
use gsv_protocol::{NoParams, errors};

use serde_json::json;
use tokio::task::spawn_blocking;

use super::context::Context;
use super::local::Local;
use super::own_gateway::is_own;
use crate::args::{Resume, Stop};
use crate::client::{Client, is_here, without_login};
use crate::embedded::channels::{self, Reload};
use crate::embedded::layout::Layout;
use crate::embedded::{record, start_stopped};
use crate::exit::{Exit, Failure, Outcome};
use crate::units::{counted, time};

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

pub async fn resume(context: &Context, args: Resume) -> Outcome {
    let params = GatewayResumeParams {
        exported: args.exported.then_some(true),
    };
    let mut is_copy = start_channels(context, args.exported).await?;
    let mut resumed = context.ask::<GatewayResume>(params.clone()).await;
    let is_refused = |failure: &Failure| failure.is(&errors::GATEWAY_RESTORED_COPY);
    if !is_copy && resumed.as_ref().is_err_and(is_refused) && mark_again(context)? {
        is_copy = start_channels(context, args.exported).await?;
        resumed = context.ask::<GatewayResume>(params).await;
    }
    if is_copy && resumed.as_ref().is_err_and(|failure| failure.reason.is_some()) {
        // The gateway has refused: this is a copy still.
        start_stopped::set(&Layout::find()?)?;
    }
    let done = resumed?;
    let words = match (done.was_stopped, done.sessions) {
        (false, _) => "Nothing was stopped.".to_owned(),
        (true, 0) => "Resumed. No conversation was waiting; jobs that wait start now.".to_owned(),
        (true, 1) => "Resumed. 1 conversation continues.".to_owned(),
        (true, held) => format!("Resumed. {held} conversations continue."),
    };
    context.out.done(&done, &words);
    if is_copy {
        context.out.warn(
            "this was a restored copy. If the gateway that it was copied from still runs, both act now: stop that one with `gsv stop --all` there.",
        );
    }
    Ok(())
}

/// A resume that ended right after it had removed the mark left a gateway that still has it. False: the gateway is not that of this folder.
fn mark_again(context: &Context) -> Outcome<bool> {
    let layout = Layout::find()?;
    if !is_own(&Local::look(&layout), &layout, &context.account()?.url, None) {
        return Ok(false);
    }
    start_stopped::set(&layout)?;
    Ok(true)
}

/// Lets the channels of a restored copy run: before the resume, because what waits for them leaves with it (rule BK23). False: it is none.
/// `exported`: the person has said that the home is live nowhere else.
async fn start_channels(context: &Context, exported: bool) -> Outcome<bool> {
    let layout = Layout::find()?;
    if !start_stopped::is_set(&layout) {
        return Ok(false);
    }
    let url = context.account()?.url;
    if !is_own(&Local::look(&layout), &layout, &url, None) {
        return Err(Failure::failed(
            format!(
                "{} has a restored copy, and the local config is for the gateway at {}, so nothing was resumed.",
                layout.home.display(),
                without_login(&url)
            ),
            format!(
                "Start the copy, which stores its address: `{}`. Then run the command again.",
                start_stopped::up_command(&layout)
            ),
        ));
    }
    // Only who may operate this gateway changes it, and nothing is changed for a resume that it would refuse.
    let status = context.ask::<GatewayStatus>(NoParams {}).await?;
    let is_exported = status.stopped.is_some_and(|state| state.exported_at.is_some());
    if is_exported && !exported {
        return Err(Failure::from_reason(errors::GATEWAY_EXPORTED.reason, "", false));
    }
    start_stopped::remove(&layout)?;
    let place = layout.clone();
    let reloaded = spawn_blocking(move || channels::reload(&place)).await;
    let reloaded = reloaded.unwrap_or_else(|error| {
        let message = format!("Waiting for the gateway failed: {error}.");
        Err(Failure::new(Exit::Bug, message, "Run it again."))
    });
    if !matches!(reloaded, Ok(Reload::Done { .. })) {
        start_stopped::set(&layout)?;
    }
    let Reload::Done { warnings, .. } = reloaded? else {
        return Err(Failure::failed(
            "The gateway runs without its supervisor, which would start the channels, so nothing was resumed.",
            format!(
                "Run `{}`, then the same command again.",
                start_stopped::up_command(&layout)
            ),
        ));
    };
    for warning in &warnings {
        context.out.warn(warning);
    }
    Ok(true)
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

/// What the gateway names as the one who has stopped a restored copy.
const RESTORE: &str = "gsv restore";

/// The folder of the gateway that runs at this address on this machine.
fn layout_at(url: &str) -> Option<Layout> {
    // A tunnel to another machine has an address of this machine, too, and no record.
    let here = Target::parse(url).ok().filter(|_| is_here(url))?;
    record::home_on(here.port).map(|home| Layout { home })
}

/// The command that lets GSV go on, as texts name it.
const RESUME: &str = "`gsv resume";

/// A text that names `gsv resume`, for the gateway at this address: without its folder, that command does not let a restored copy go on
/// (rule BK23).
pub fn naming_copy(text: &str, url: &str) -> String {
    if !text.contains(RESUME) {
        return text.to_owned();
    }
    let copy = layout_at(url).filter(start_stopped::is_set);
    copy.map_or_else(|| text.to_owned(), |copy| naming(text, &copy))
}

fn naming(text: &str, copy: &Layout) -> String {
    text.replace(RESUME, &format!("`{}", start_stopped::resume_command(copy)))
}

/// As `failure_at`, for what a command of this context ends with.
pub fn failure_naming_copy(context: &Context, failure: Failure) -> Failure {
    if !failure.message.contains(RESUME) && !failure.next.contains(RESUME) {
        return failure;
    }
    match context.account() {
        Ok(account) => failure_at(&account.url, failure),
        Err(_) => failure,
    }
}

/// As `naming_copy`, for a failure.
pub fn failure_at(url: &str, failure: Failure) -> Failure {
    Failure {
        message: naming_copy(&failure.message, url),
        next: naming_copy(&failure.next, url),
        ..failure
    }
}

/// What to do about a restored copy. `url`: the gateway's address, which tells the copy's folder on this machine.
fn resume_copy(url: &str) -> String {
    let command = match layout_at(url) {
        Some(copy) => format!("`{}`", start_stopped::resume_command(&copy)),
        None => "`gsv resume` on its machine".to_owned(),
    };
    format!(
        "The gateway that it was copied from may still run and get your messages. Only when that one is gone for good: {command}."
    )
}

/// A state that was restored beside its gateway: when both act, everything is done twice.
fn is_restored_copy(state: &StopState) -> bool {
    state.by == RESTORE
}

/// What is stopped, for a sentence that begins with what GSV is, and what to do about it.
pub fn explain(state: &StopState, url: &str) -> (String, String) {
    let stopped = format!("stopped since {}: messages wait", time(state.since));
    if is_restored_copy(state) {
        return (format!("a restored copy, {stopped}"), resume_copy(url));
    }
    let next = state
        .exported_at
        .map_or_else(|| "Go on with `gsv resume`.".to_owned(), resume_exported);
    (stopped, naming_copy(&next, url))
}

/// What to do about a gateway whose home was exported (rule MV14).
fn resume_exported(at: u64) -> String {
    format!(
        "Its home was exported at {}. If it was imported elsewhere, go on there and keep this one stopped. Only when it is live nowhere else: `gsv resume --exported`.",
        time(at)
    )
}

/// For a job that is queued.
pub fn jobs_wait(state: &StopState, url: &str) -> String {
    let words = format!(
        "GSV is stopped since {}, so the job does not begin. Go on with `gsv resume`.",
        time(state.since)
    );
    naming_copy(&words, url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mv14_the_stop_of_a_gateway_whose_home_was_exported_says_so() {
        let state = StopState {
            since: 0,
            by: "token:first".to_owned(),
            exported_at: Some(60_000),
        };
        let (_, says) = explain(&state, "wss://gateway.example/ws");
        assert!(says.contains("Its home was exported at "), "{says}");
        assert!(says.ends_with("live nowhere else: `gsv resume --exported`."), "{says}");
    }

    #[test]
    fn bk23_every_text_with_the_command_names_the_folder_of_a_copy() {
        let copy = Layout {
            home: "/home/me/my copy".into(),
        };
        assert_eq!(
            naming("Go on with `gsv resume`, or `gsv resume --exported`.", &copy),
            "Go on with `GSV_HOME='/home/me/my copy' gsv resume`, or `GSV_HOME='/home/me/my copy' gsv resume --exported`."
        );
        let text = "Go on with `gsv resume`.";
        for url in ["wss://gateway.example/ws", "ws://127.0.0.1:1/ws"] {
            assert_eq!(naming_copy(text, url), text);
        }
    }

    #[test]
    fn st5_each_kind_of_stop_says_what_is_stopped_and_what_to_do() {
        let explained = |by: &str, exported_at| {
            let state = StopState {
                since: 0,
                by: by.to_owned(),
                exported_at,
            };
            explain(&state, "wss://gateway.example/ws")
        };
        let stopped = "stopped since 1970-01-01 00:00:00 UTC: messages wait";
        assert_eq!(
            explained("client", None),
            (stopped.to_owned(), "Go on with `gsv resume`.".to_owned())
        );
        let (found, next) = explained("client", Some(60_000));
        assert_eq!(found, stopped);
        assert!(next.starts_with("Its home was exported at "), "{next}");
        let (found, next) = explained(RESTORE, Some(60_000));
        assert_eq!(found, format!("a restored copy, {stopped}"));
        assert!(next.starts_with("The gateway that it was copied from"), "{next}");
    }

    #[test]
    fn bk23_a_copy_on_another_machine_is_resumed_there() {
        let state = StopState {
            since: 0,
            by: RESTORE.to_owned(),
            exported_at: None,
        };
        let (_, says) = explain(&state, "wss://gateway.example/ws");
        assert!(says.ends_with("gone for good: `gsv resume` on its machine."), "{says}");
        // As over a tunnel: no gateway of this machine is known to have the address.
        assert!(resume_copy("ws://127.0.0.1:1/ws").ends_with("`gsv resume` on its machine."));
    }
}
