//! What JavaScript sees of the addon. Each function checks what it is given, and answers a mistake with a [`Problem`] instead of
//! an exception, because only `js/` knows how to make an error with a reason.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_node::{EventSink, Level, NodeConfig, NodeError, NodeEvent, StatusSink};
use gsv_protocol::{ErrorReason, errors};
use gsv_tools::{Tool, ToolDefinition, own};
use napi::Status;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use serde_json::Value;
use tokio::sync::watch;

use crate::host::{Host, Program, Start, Stop};
use crate::local::{self, Local, Refused};
use crate::own_tool::OwnTool;

/// Does not keep the program running; the promise of `run` does, until the node has ended.
type Callback<T> = ThreadsafeFunction<T, (), T, Status, false, true>;

#[napi(object)]
pub struct Options {
    pub id: String,
    pub url: String,
    pub token: Option<String>,
    pub workspace: String,
    pub state_dir: String,
    /// GSV's own folders, which no tool reaches.
    pub private: Vec<String>,
    /// Names of GSV's tools. Absent: all of them.
    pub only: Option<Vec<String>>,
    pub allow_outside: bool,
    pub home: String,
    pub config_dir: String,
    pub cache_dir: String,
    /// The program `gsv`.
    pub program: Option<String>,
}

#[napi(object)]
pub struct Definition {
    pub name: String,
    pub description: String,
    /// JSON.
    pub input_schema: String,
    pub idempotent: bool,
    pub timeout_ms: Option<u32>,
}

/// A mistake, or why a node has ended. `reason` is a row of the error table.
#[napi(object)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub reason: String,
    pub message: String,
    pub hint: Option<String>,
    pub retryable: bool,
}

#[napi(object)]
pub struct Happened {
    #[napi(ts_type = "\"connected\" | \"disconnected\" | \"call-started\" | \"call-ended\" | \"log\"")]
    pub kind: String,
    pub gateway: Option<String>,
    pub text: Option<String>,
    #[napi(ts_type = "\"info\" | \"warn\" | \"error\"")]
    pub level: Option<String>,
    pub retry_in_ms: Option<u32>,
    pub call_id: Option<String>,
    pub tool: Option<String>,
    #[napi(ts_type = "\"ok\" | \"error\" | \"cancelled\" | \"timeout\" | \"unknown\"")]
    pub outcome: Option<String>,
    pub reason: Option<String>,
    pub took_ms: Option<u32>,
}

impl Happened {
    fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            gateway: None,
            text: None,
            level: None,
            retry_in_ms: None,
            call_id: None,
            tool: None,
            outcome: None,
            reason: None,
            took_ms: None,
        }
    }
}

/// A call for a function.
#[napi(object)]
#[allow(clippy::struct_field_names, reason = "the contract's name for it")]
pub struct Call {
    pub number: u32,
    pub call_id: String,
    pub tool: String,
    /// JSON.
    pub args: String,
}

/// A call that has to end.
#[napi(object)]
pub struct Stopped {
    pub number: u32,
    #[napi(ts_type = "\"cancelled\" | \"late\" | \"closed\"")]
    pub why: String,
}

#[napi]
pub struct Addon {
    host: Arc<Host>,
    shutdown: watch::Sender<bool>,
    local: Local,
    state: Mutex<State>,
}

struct State {
    /// Taken when the node starts.
    config: Option<NodeConfig>,
    tools: Vec<Arc<dyn Tool>>,
}

#[napi]
impl Addon {
    #[napi(constructor)]
    pub fn new(options: Options) -> Self {
        let local = Local {
            home: PathBuf::from(&options.home),
            config_dir: PathBuf::from(&options.config_dir),
            cache_dir: PathBuf::from(&options.cache_dir),
            program: options.program.as_ref().map(PathBuf::from),
        };
        let state = State {
            config: Some(config(options)),
            tools: Vec::new(),
        };
        Self {
            host: Arc::default(),
            shutdown: watch::Sender::new(false),
            local,
            state: Mutex::new(state),
        }
    }

    /// Adds a tool. Gives what is wrong with it.
    #[napi]
    pub fn add_tool(&self, definition: Definition) -> Option<Problem> {
        let name: String = definition.name.chars().take(80).collect();
        let refused = |problem: String| bad_tool(&format!("The tool {name:?} can't be offered: {problem}."));
        let mut state = self.state();
        if state.config.is_none() {
            return Some(refused(
                "the node has started, and told the gateway its tools".to_owned(),
            ));
        }
        if state.tools.len() >= own::TOOLS {
            return Some(refused(format!("a node has at most {} tools", own::TOOLS)));
        }
        if state.tools.iter().any(|tool| tool.definition().name == definition.name) {
            return Some(refused("another tool has this name".to_owned()));
        }
        let input_schema = match serde_json::from_str(&definition.input_schema) {
            Ok(schema) => schema,
            Err(error) => return Some(refused(format!("its input schema is not JSON: {error}"))),
        };
        let definition = ToolDefinition {
            name: definition.name,
            description: definition.description,
            input_schema,
            idempotent: definition.idempotent,
            timeout_ms: definition.timeout_ms,
        };
        match OwnTool::new(definition, Arc::clone(&self.host)) {
            Ok(tool) => {
                state.tools.push(Arc::new(tool));
                None
            }
            Err(problem) => Some(refused(problem)),
        }
    }

    /// Runs the node until `close`, or until it can't go on: gives the cause then. Keeps the program running.
    #[napi]
    pub async fn run(
        &self,
        #[napi(ts_arg_type = "(event: Happened) => void")] on_event: Callback<Happened>,
        #[napi(ts_arg_type = "(call: Call) => void")] on_call: Callback<Call>,
        #[napi(ts_arg_type = "(stopped: Stopped) => void")] on_stop: Callback<Stopped>,
    ) -> napi::Result<Option<Problem>> {
        let started = {
            let mut state = self.state();
            let own = std::mem::take(&mut state.tools);
            state.config.take().map(|config| NodeConfig { own, ..config })
        };
        let Some(config) = started else {
            return Ok(Some(problem(&errors::NODE_CLOSED, "The node was started before.")));
        };
        if gsv_node::is_inside_command() {
            return Ok(Some(problem(
                &errors::AUTH_AGENT_COMMAND,
                errors::AUTH_AGENT_COMMAND.text,
            )));
        }
        let local = self.local.clone();
        let applied =
            tokio::task::spawn_blocking(move || local::apply(config, &local, env!("CARGO_PKG_VERSION"))).await;
        let mut config = match applied {
            Ok(Ok(config)) => config,
            Ok(Err(Refused::Policy(message))) => return Ok(Some(problem(&errors::NODE_CANNOT_START, &message))),
            Ok(Err(Refused::Option(message))) => return Ok(Some(problem(&errors::NODE_BAD_OPTIONS, &message))),
            Err(error) => return Ok(Some(problem(&errors::NODE_CANNOT_START, &error.to_string()))),
        };
        let on_event = Arc::new(on_event);
        config.events = Some(event_sink(Arc::clone(&on_event)));
        self.host.attach(Arc::new(JavaScript { on_call, on_stop }));
        let mut asked = self.shutdown.subscribe();
        let shutdown = async move {
            // The sender is this object's.
            let _ = asked.wait_for(|asked| *asked).await;
        };
        let ended = gsv_node::run(config, status_sink(on_event), shutdown).await;
        self.host.detach();
        Ok(ended.err().map(|error| problem_of(&error)))
    }

    /// Asks the node to end; `run` then does.
    #[napi]
    pub fn close(&self) {
        self.shutdown.send_replace(true);
    }

    /// The value of a function. `value`: JSON.
    #[allow(clippy::needless_pass_by_value, reason = "texts of JavaScript come as values")]
    #[napi]
    pub fn returned(&self, number: u32, value: String) {
        let value = serde_json::from_str::<Value>(&value);
        let answer = value.map_err(|error| format!("The tool has run, and its result can't be read: {error}"));
        self.host.answered(number, answer);
    }

    /// What a function threw.
    #[napi]
    pub fn threw(&self, number: u32, message: String) {
        self.host.answered(number, Err(message));
    }

    #[napi]
    pub fn progress(&self, number: u32, text: String) {
        self.host.progress(number, text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config(options: Options) -> NodeConfig {
    let only = options.only.map(BTreeSet::from_iter);
    NodeConfig {
        token: options.token,
        private: options.private.into_iter().map(PathBuf::from).collect(),
        allow_outside: options.allow_outside,
        only,
        ..NodeConfig::new(options.id, options.url, options.workspace, options.state_dir)
    }
}

struct JavaScript {
    on_call: Callback<Call>,
    on_stop: Callback<Stopped>,
}

impl Program for JavaScript {
    fn start(&self, start: Start) -> bool {
        let call = Call {
            number: start.number,
            call_id: start.call_id,
            tool: start.tool,
            args: start.args.to_string(),
        };
        self.on_call.call(call, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok
    }

    fn stop(&self, number: u32, stop: Stop) {
        let why = match stop {
            Stop::Cancelled => "cancelled",
            Stop::Late => "late",
            Stop::Closed => "closed",
        };
        let stopped = Stopped {
            number,
            why: why.to_owned(),
        };
        // A program that has ended needs no word.
        let _ = self.on_stop.call(stopped, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

fn millis(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn event_sink(on_event: Arc<Callback<Happened>>) -> EventSink {
    Arc::new(move |event| {
        if let Some(happened) = happened(event) {
            let _ = on_event.call(happened, ThreadsafeFunctionCallMode::NonBlocking);
        }
    })
}

fn happened(event: NodeEvent) -> Option<Happened> {
    Some(match event {
        NodeEvent::Connected { gateway } => Happened {
            gateway: Some(gateway),
            ..Happened::new("connected")
        },
        NodeEvent::Disconnected { reason, retry_in } => Happened {
            text: Some(reason),
            retry_in_ms: retry_in.map(millis),
            ..Happened::new("disconnected")
        },
        NodeEvent::CallStarted { call_id, tool } => Happened {
            call_id: Some(call_id),
            tool: Some(tool),
            ..Happened::new("call-started")
        },
        NodeEvent::CallEnded {
            call_id,
            tool,
            outcome,
            reason,
            took,
        } => Happened {
            call_id: Some(call_id),
            tool: Some(tool),
            outcome: Some(outcome.as_str().to_owned()),
            reason: reason.map(str::to_owned),
            took_ms: Some(millis(took)),
            ..Happened::new("call-ended")
        },
        _ => return None,
    })
}

fn status_sink(on_event: Arc<Callback<Happened>>) -> StatusSink {
    Arc::new(move |status| {
        let level = match status.level {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        let happened = Happened {
            level: Some(level.to_owned()),
            text: Some(status.text),
            ..Happened::new("log")
        };
        let _ = on_event.call(happened, ThreadsafeFunctionCallMode::NonBlocking);
    })
}

fn problem(row: &ErrorReason, message: &str) -> Problem {
    Problem {
        reason: row.reason.to_owned(),
        message: message.to_owned(),
        hint: Some(row.hint.to_owned()),
        retryable: row.retryable,
    }
}

fn bad_tool(message: &str) -> Problem {
    problem(&errors::NODE_BAD_TOOL, message)
}

fn problem_of(error: &NodeError) -> Problem {
    let reason = error.reason();
    let row = ErrorReason::find(reason);
    Problem {
        reason: reason.to_owned(),
        message: error.to_string(),
        hint: row.map(|row| row.hint.to_owned()),
        retryable: row.is_some_and(|row| row.retryable),
    }
}
