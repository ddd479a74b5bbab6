//! The node's loop: hands the events of the link to the parts that serve them, until the node is asked to stop or can't go
//! on. Nothing in it waits for the gateway or for a tool.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use gsv_link::{Events, LinkError, LinkEvent};
use gsv_protocol::methods::LogsResult;
use gsv_protocol::types::{CallId, ConnectResult, LogsResultParams};
use gsv_protocol::{Event, EventName, MalformedEvent};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::connection::Connection;
use crate::context::Context;
use crate::error::NodeError;
use crate::event::NodeEvent;
use crate::log::{Level, now_ms};
use crate::report::Reporter;
use crate::show::answer_show;
use crate::undo::{answer_undo, refuse_undo};

const SWEEP: Duration = Duration::from_secs(3600);
/// When the node is asked to stop, calls without a process get this long to end.
const LAST_CALLS: Duration = Duration::from_secs(5);
const LOG_LINES: u16 = 200;
const LOG_LINES_MOST: u16 = 5000;

pub async fn dispatch(
    context: &Arc<Context>,
    reporter: &Reporter,
    mut events: Events,
    online: watch::Sender<bool>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    let mut shutdown = pin!(shutdown);
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut shutdown => {
                reporter.report(Level::Info, "The node stops. Running commands go on, and the next start of the node finds them again.");
                online.send_replace(false);
                last_calls(context).await;
                context.link.close().await;
                return Ok(());
            }
            _ = sweep.tick() => {
                // Its notes go to the log; there is nothing else to fail.
                let _ = context.ledger.with(|ledger| { ledger.sweep(now_ms()); Ok(()) }).await;
                sweep_undo(context);
            }
            event = events.recv() => match event {
                Some(LinkEvent::Connected(hello)) => connected(context, reporter, &online, &hello),
                Some(LinkEvent::Disconnected { reason, retry_in }) => {
                    online.send_replace(false);
                    context.delivery.offline();
                    context.transfers.offline();
                    context.tell(|| NodeEvent::Disconnected { reason: reason.clone(), retry_in });
                    if let Some(wait) = retry_in {
                        let text = not_connected(&reason, wait);
                        reporter.connection(Level::Warn, &text, &Connection::Down { reason });
                    }
                }
                Some(LinkEvent::Event { event, .. }) => on_event(context, event),
                Some(LinkEvent::Chunk(frame)) => context.transfers.on_chunk(frame),
                Some(LinkEvent::Ignored { what }) => reporter.log.write(Level::Warn, &format!("a frame was ignored: {what}"), &[]),
                Some(LinkEvent::Fatal(error)) => {
                    // What to do about a refused token depends on who started the node.
                    let text = match &error {
                        LinkError::Refused { error } => format!("The gateway refused the connection: {}", error.message),
                        error => error.to_string(),
                    };
                    reporter.report(Level::Error, &text);
                    return Err(error.into());
                }
                Some(_) => {}
                None => return Err(LinkError::Closed { reason: "the link ended without a reason".into() }.into()),
            }
        }
    }
}

/// Some reasons are whole sentences, and others are not.
fn not_connected(reason: &str, wait: Duration) -> String {
    let reason = reason.trim_end();
    let stop = if reason.ends_with(['.', '!', '?']) { "" } else { "." };
    format!(
        "Not connected: {reason}{stop} Trying again in {:.1} s.",
        wait.as_secs_f32()
    )
}

fn connected(context: &Arc<Context>, reporter: &Reporter, online: &watch::Sender<bool>, hello: &ConnectResult) {
    online.send_replace(true);
    let (unreleased, events) = context
        .ledger
        .look(|ledger| (ledger.unreleased(), ledger.pending_events()));
    let waiting = match unreleased.len() {
        0 => String::new(),
        1 => " One result waits to be delivered.".to_owned(),
        some => format!(" {some} results wait to be delivered."),
    };
    context.delivery.online(unreleased, events);
    context.tell(|| NodeEvent::Connected {
        gateway: hello.server.version.clone(),
    });
    let text = format!(
        "Connected as {} to gateway {}.{waiting}",
        context.node_id, hello.server.version
    );
    reporter.connection(Level::Info, &text, &Connection::Up);
}

fn on_event(context: &Arc<Context>, event: Event) {
    let Some(event) = context.transfers.on_event(event) else {
        return;
    };
    match event {
        Event::ToolInvoke(event) => context.invoked(*event),
        Event::ToolCancel(event) => context.cancelled(event.call_id.as_str(), &event.reason),
        Event::LogsGet(event) => send_log(context, event.call_id, event.lines),
        Event::UndoRequest(event) => context.tasks.spawn(answer_undo(Arc::clone(context), *event)),
        Event::NotifyShow(event) => context.tasks.spawn(answer_show(Arc::clone(context), *event)),
        Event::Malformed(event) => malformed(context, &event),
        // For clients, or of a newer gateway (FR2).
        _ => {}
    }
}

/// An event for this node that does not fit the contract. When its call id can be read, the gateway gets an answer.
fn malformed(context: &Arc<Context>, event: &MalformedEvent<EventName>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct OfCall {
        call_id: CallId,
    }
    let call_id = event.payload.read::<OfCall>().ok().map(|of| of.call_id);
    match (event.name, call_id) {
        (EventName::ToolInvoke, call_id) => context.refuse_malformed(call_id, &event.problem),
        (EventName::ToolCancel, Some(call_id)) => context.cancelled(call_id.as_str(), ""),
        (EventName::LogsGet, Some(call_id)) => send_log(context, call_id, None),
        (EventName::UndoRequest, Some(call_id)) => {
            let problem = event.problem.clone();
            context.tasks.spawn(refuse_undo(Arc::clone(context), call_id, problem));
        }
        _ => {}
    }
}

/// Copies that are too old are removed, also on a node without further changes.
fn sweep_undo(context: &Arc<Context>) {
    let swept = Arc::clone(context);
    context.tasks.spawn(async move {
        let tools = Arc::clone(&swept.tools);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tools.sweep_undo()).await {
            swept.log.write(Level::Warn, &error.to_string(), &[]);
        }
    });
}

fn send_log(context: &Arc<Context>, call_id: CallId, lines: Option<u16>) {
    let lines = lines.unwrap_or(LOG_LINES).clamp(1, LOG_LINES_MOST);
    context
        .tasks
        .spawn(answer_log(Arc::clone(context), call_id, usize::from(lines)));
}

async fn answer_log(context: Arc<Context>, call_id: CallId, lines: usize) {
    let log = Arc::clone(&context.log);
    let tail = tokio::task::spawn_blocking(move || log.tail(lines))
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let params = match tail {
        Ok(tail) => LogsResultParams {
            call_id,
            lines: Some(tail.lines),
            truncated: Some(tail.truncated),
            error: None,
        },
        Err(error) => LogsResultParams {
            call_id,
            lines: None,
            truncated: None,
            error: Some(format!("The node's log can't be read: {error}")),
        },
    };
    let sent = context
        .link
        .call_within::<LogsResult>(params, Duration::from_secs(20))
        .await;
    if let Err(error) = sent {
        context
            .log
            .write(Level::Warn, &format!("log lines could not be sent: {error}"), &[]);
    }
}

/// Waits for calls without a process, so that their results are stored and their outcomes known.
async fn last_calls(context: &Context) {
    let idle = async {
        while context.calls.short_calls() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A changing call that takes longer has an unknown outcome at the next start.
    let _ = tokio::time::timeout(LAST_CALLS, idle).await;
}
