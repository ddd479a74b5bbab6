//! The node: starts ledger, tools and link, and dispatches the gateway's events.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use gsv_link::ledger::{Ledger, LedgerError};
use gsv_link::{Events, Link, LinkError, LinkEvent, Mode, Options};
use gsv_protocol::methods::LogsResult;
use gsv_protocol::types::{CallId, Capability, ConnectResult, LogsResultParams, NodeRuntime, ToolDefinition};
use gsv_protocol::{Event, EventName, MalformedEvent};
use gsv_tools::{Config, ExecEvent, ExecEventKind, Supervisor, ToolBox, beneath::Scope};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::calls::Calls;
use crate::context::Context;
use crate::delivery::Delivery;
use crate::error::NodeError;
use crate::images::Uploader;
use crate::log::{Level, Log, now_ms};
use crate::mask::Mask;
use crate::progress::ProgressFeed;
use crate::recover;
use crate::run_call::call_of;
use crate::shared_ledger::SharedLedger;
use crate::tasks::Tasks;

const SWEEP: Duration = Duration::from_secs(3600);
/// Calls that need no process get this long to end when the node is asked to.
const LAST_CALLS: Duration = Duration::from_secs(5);
const EVENTS: usize = 16;
const LOG_LINES: u16 = 200;
const LOG_LINES_MOST: u16 = 5000;

/// A node's settings.
#[derive(Clone)]
pub struct NodeConfig {
    /// The machine's name; the prefix of its tools.
    pub id: String,
    pub url: String,
    pub token: Option<String>,
    /// Must exist. What paths are relative to, and where they stay.
    pub workspace: PathBuf,
    /// For this node alone: `ledger/`, `calls/` and `node.log` are made in it.
    pub state_dir: PathBuf,
    /// Paths may leave the workspace.
    pub allow_outside: bool,
    pub version: String,
    pub supervisor: Supervisor,
}

impl NodeConfig {
    pub fn new(
        id: impl Into<String>,
        url: impl Into<String>,
        workspace: impl Into<PathBuf>,
        state_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            id: id.into(),
            url: url.into(),
            token: None,
            workspace: workspace.into(),
            state_dir: state_dir.into(),
            allow_outside: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            supervisor: Supervisor::default(),
        }
    }
}

/// Something a person at the terminal may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub level: Level,
    pub text: String,
}

/// Where [`Status`] goes. Must return at once.
pub type StatusSink = Arc<dyn Fn(Status) + Send + Sync>;

/// Runs a node until `shutdown` completes or it can't go on. Commands that still run then go on running, and are taken up
/// again by the next start with the same state folder; calls that wait are left to the gateway, which asks again.
///
/// # Errors
/// Whatever keeps it from starting; later, only that a newer node with the same id took over.
pub async fn run(
    config: NodeConfig,
    status: StatusSink,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    if !is_node_id(&config.id) {
        return Err(NodeError::BadId {
            id: config.id.chars().take(80).collect(),
        });
    }
    make_folder(&config.state_dir)?;
    let log_path = config.state_dir.join("node.log");
    let log = Log::open(log_path.clone(), Mask::new(config.token.clone()))
        .map_err(|source| NodeError::Folder { path: log_path, source })?;
    let reporter = Reporter {
        log: Arc::new(log),
        status,
    };
    let outcome = start(config, &reporter, shutdown).await;
    match &outcome {
        Ok(()) => reporter.report(Level::Info, "The node has stopped."),
        Err(error) => reporter.log.write(Level::Error, &error.to_string(), &[]),
    }
    outcome
}

/// Reports to the person and to the log.
struct Reporter {
    log: Arc<Log>,
    status: StatusSink,
}
impl Reporter {
    fn report(&self, level: Level, text: &str) {
        self.log.write(level, text, &[]);
        (self.status)(Status {
            level,
            text: text.to_owned(),
        });
    }
}

async fn start(
    config: NodeConfig,
    reporter: &Reporter,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    let log = Arc::clone(&reporter.log);
    let ledger_dir = config.state_dir.join("ledger");
    let opened = tokio::task::spawn_blocking(move || Ledger::open(&ledger_dir, now_ms())).await;
    let ledger = opened.unwrap_or_else(|error| {
        Err(LedgerError::Io {
            doing: "open",
            source: std::io::Error::other(error),
        })
    })?;
    let ledger = SharedLedger::new(ledger, Arc::clone(&log));
    let (exec_sink, exec_events) = mpsc::channel(EVENTS);
    let tools = Arc::new(ToolBox::new(Config {
        scope: if config.allow_outside {
            Scope::Anywhere
        } else {
            Scope::Workspace
        },
        supervisor: config.supervisor.clone(),
        events: Some(exec_sink),
        ..Config::new(&config.workspace, config.state_dir.join("calls"))
    })?);
    let survivors = recover::take_up(&ledger, &tools, &log).await;
    let (link, events) = Link::connect(options(&config, &tools, ledger.clone())).await?;
    let (online_sink, online) = watch::channel(false);
    let uploader = Uploader {
        url: config.url.clone(),
        token: config.token.clone(),
    };
    let tasks = Arc::new(Tasks::default());
    let context = Arc::new(Context {
        node_id: config.id.clone(),
        calls: Arc::new(Calls::default()),
        delivery: Arc::new(Delivery::new(link.clone(), ledger.clone(), Arc::clone(&log))),
        progress: ProgressFeed {
            link: link.clone(),
            online,
            tasks: Arc::clone(&tasks),
        },
        link,
        ledger,
        tools,
        log,
        uploader,
        tasks,
    });
    context.tasks.spawn(forward(Arc::clone(&context), exec_events));
    // Before any call, for it tidies up folders that a new call could be making.
    if let Err(error) = context.tools.recover().await {
        reporter.report(
            Level::Error,
            &format!("Background commands of an earlier start can't be taken up: {error}"),
        );
    }
    for survivor in survivors {
        context.follow(survivor);
    }
    context.tasks.spawn(Arc::clone(&context.delivery).run());
    reporter.report(
        Level::Info,
        &format!(
            "Node {} starts; its workspace is {}.",
            config.id,
            config.workspace.display()
        ),
    );
    let outcome = attend(&context, reporter, events, online_sink, shutdown).await;
    context.tasks.end().await;
    outcome
}

fn options(config: &NodeConfig, tools: &ToolBox, ledger: SharedLedger) -> Options {
    let definitions = tools.definitions().into_iter().map(|tool| ToolDefinition {
        name: tool.name,
        description: tool.description,
        input_schema: if let Value::Object(schema) = tool.input_schema {
            schema
        } else {
            serde_json::Map::new()
        },
        idempotent: tool.idempotent.then_some(true),
        timeout_ms: None,
    });
    let capabilities = |names: &[&str]| {
        names
            .iter()
            .map(|name| Capability((*name).to_owned()))
            .collect::<Vec<_>>()
    };
    let by_tool = tools.tool_capabilities();
    let runtime = NodeRuntime {
        host_capabilities: capabilities(&tools.capabilities()),
        tool_capabilities: by_tool
            .into_iter()
            .map(|(tool, names)| (tool, capabilities(names)))
            .collect(),
    };
    Options {
        token: config.token.clone(),
        version: config.version.clone(),
        tools: Some(definitions.collect()),
        node_runtime: Some(runtime),
        ledger: Some(Arc::new(move || ledger.listing())),
        reconnect: true,
        ..Options::new(config.url.as_str(), Mode::Node, config.id.as_str())
    }
}

/// The loop. Nothing in it waits for the gateway or a tool.
async fn attend(
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
                reporter.report(Level::Info, "The node stops. Commands that run go on; the next start takes them up again.");
                online.send_replace(false);
                last_calls(context).await;
                context.link.close().await;
                return Ok(());
            }
            _ = sweep.tick() => {
                // Its notes go to the log; there is nothing else to fail.
                let _ = context.ledger.with(|ledger| { ledger.sweep(now_ms()); Ok(()) }).await;
            }
            event = events.recv() => match event {
                Some(LinkEvent::Connected(hello)) => connected(context, reporter, &online, &hello),
                Some(LinkEvent::Disconnected { reason, retry_in }) => {
                    online.send_replace(false);
                    context.delivery.offline();
                    if let Some(wait) = retry_in {
                        reporter.report(Level::Warn, &format!("Not connected: {reason} Trying again in {:.1} s.", wait.as_secs_f32()));
                    }
                }
                Some(LinkEvent::Event { event, .. }) => on_event(context, event),
                Some(LinkEvent::Ignored { what }) => reporter.log.write(Level::Warn, &format!("a frame was ignored: {what}"), &[]),
                Some(LinkEvent::Fatal(error)) => {
                    reporter.report(Level::Error, &error.to_string());
                    return Err(error.into());
                }
                Some(_) => {}
                None => return Err(LinkError::Closed { reason: "the link ended without a reason".into() }.into()),
            }
        }
    }
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
    reporter.report(
        Level::Info,
        &format!(
            "Connected as {} to gateway {}.{waiting}",
            context.node_id, hello.server.version
        ),
    );
}

fn on_event(context: &Arc<Context>, event: Event) {
    match event {
        Event::ToolInvoke(event) => context.invoked(*event),
        Event::ToolCancel(event) => context.cancelled(event.call_id.as_str(), &event.reason),
        Event::LogsGet(event) => send_log(context, event.call_id, event.lines),
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
        _ => {}
    }
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

/// Brings news of background commands into the ledger, from where they are delivered.
async fn forward(context: Arc<Context>, mut events: mpsc::Receiver<ExecEvent>) {
    while let Some(mut event) = events.recv().await {
        event.call_id = call_of(&event.call_id).to_owned();
        let is_end = event.event != ExecEventKind::Started;
        let (id, session) = (event.event_id.clone(), event.session_id.clone());
        let payload = match serde_json::to_value(&event) {
            Ok(payload) => payload,
            Err(error) => {
                context
                    .log
                    .write(Level::Error, &error.to_string(), &[("eventId", json!(id))]);
                continue;
            }
        };
        let event_id = id.clone();
        let stored = context
            .ledger
            .with(move |ledger| match ledger.add_event(now_ms(), &event_id, &payload)? {
                // The end is told once and must not be lost; a start is told again by the end.
                Some(commit) if is_end => commit.sync(),
                Some(commit) => {
                    commit.lazily();
                    Ok(())
                }
                None => Ok(()),
            });
        match stored.await {
            Ok(()) => {
                context.delivery.event(&id);
                if is_end {
                    context.release_command(&session).await;
                }
            }
            // Its command's folder is not released, so the next start tells it.
            Err(error) => context
                .log
                .write(Level::Error, &error.to_string(), &[("eventId", json!(id))]),
        }
    }
}

/// Lets short calls come to their end, so that their results are stored and not unknown.
async fn last_calls(context: &Context) {
    let idle = async {
        while context.calls.short_calls() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // What takes longer is unknown at the next start, if it changes something.
    let _ = tokio::time::timeout(LAST_CALLS, idle).await;
}

fn is_node_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    id.len() <= 64 && id.starts_with(is_plain) && id.chars().all(|c| is_plain(c) || matches!(c, '_' | '.' | '-'))
}

fn make_folder(path: &Path) -> Result<(), NodeError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| NodeError::Folder {
            path: path.to_owned(),
            source,
        })
}
