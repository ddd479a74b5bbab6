//! Bash: one command, run by the login shell. Confines the directory in which the command starts; what the command may do is
//! the sandbox's matter.

use std::sync::Arc;
use std::time::Duration;

use gsv_sandbox::Profile;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args;
use crate::beneath::Beneath;
use crate::error::{ToolError, quote};
use crate::exec::{Asked, Sessions, Spec};
use crate::limits;
use crate::temporary::{Problem, problem};
use crate::tool::{BoxFuture, CallContext, Effect, Tool, ToolDefinition, read_only};
use crate::tool_output::ToolOutput;

pub(crate) struct Bash {
    pub(crate) files: Arc<Beneath>,
    pub(crate) sessions: Arc<Sessions>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    command: String,
    workdir: Option<String>,
    timeout: Option<u64>,
    background: Option<bool>,
    yield_ms: Option<u64>,
    sandbox: Option<Asked>,
    hosts: Option<Vec<String>>,
}

impl Tool for Bash {
    fn definition(&self) -> ToolDefinition {
        let mut definition = ToolDefinition {
            name: "Bash".into(),
            description: format!(
                "Runs a command on this machine with the login shell, in the workspace. Output and errors are merged; the last {} characters are kept. \
                A long command runs in the background with `background` (at once; it then takes input from Process) or `yieldMs` (when it has not ended by then); \
                control it with Process. Every command is ended after `timeout`, in the background too: set a large one for servers. \
                The user can undo what Write, Edit and Delete change, but not what a command changes.{}",
                limits::BASH_OUTPUT_CHARS,
                confined(&self.sessions)
            ),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": "Shell command"},
                    "workdir": {"type": "string", "description": "Directory to start in, the workspace by default"},
                    "timeout": {"type": "integer", "minimum": 1, "maximum": limits::BASH_TIMEOUT_MAX_MS, "description": format!("Milliseconds, {} by default", limits::BASH_TIMEOUT_MS)},
                    "background": {"type": "boolean", "description": "Answer at once, report the end later"},
                    "yieldMs": {"type": "integer", "minimum": 0, "description": "Go to the background when it is not done after this many milliseconds"}
                },
                "required": ["command"]
            }),
            idempotent: false,
            timeout_ms: None,
        };
        offer_leaving(
            &mut definition.input_schema,
            &self.sessions,
            "`off`: outside the sandbox",
            "`workspace+net`: in it, with `hosts`",
            "first",
        );
        offer_hosts(&mut definition.input_schema, &self.sessions);
        definition
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["shell.exec"]
    }

    fn effect(&self, _args: &Value) -> Effect {
        Effect::Mutating
    }

    fn invoke(&self, args: Value, mut context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (spec, yield_ms) = self.spec(args::parse(args)?, &context).await?;
            let started = Instant::now();
            let session = self.sessions.start(spec, context.on_started.take()).await?;
            if session.is_background() {
                return Ok(ToolOutput::Command(session.running().await));
            }
            let yield_at = yield_ms.map(|ms| started + Duration::from_millis(ms));
            session.follow(&context, yield_at).await.map(ToolOutput::Command)
        })
    }
}

/// What the model has to know about the sandbox.
fn confined(sessions: &Sessions) -> String {
    let network = match (sessions.profile(), sessions.listed()) {
        (Profile::WorkspaceNet, listed @ [_, ..]) => {
            let names: Vec<String> = listed.iter().map(ToString::to_string).collect();
            format!("reach these hosts by http and https: {}", names.join(", "))
        }
        _ if sessions.forbids_hosts() => "have no network, because the owner of the machine wants that".to_owned(),
        _ => "have no network".to_owned(),
    };
    let confined = match sessions.profile() {
        Profile::Off => return String::new(),
        Profile::Workspace | Profile::WorkspaceNet => format!(
            " Commands run in a sandbox: they write only the workspace and $TMPDIR, do not see credentials, and {network}."
        ),
        Profile::Strict => format!(
            " Commands run in a sandbox: they read only the workspace and the system, write only the workspace and $TMPDIR, and {network}."
        ),
    };
    let hosts = if sessions.may_ask_hosts() {
        " For a command that needs a host, set `sandbox` to `workspace+net` and name it in `hosts`."
    } else {
        ""
    };
    let leave = if sessions.may_leave() {
        " Only for a command that needs more, set `sandbox` to `off`."
    } else {
        ""
    };
    format!("{confined}{hosts}{leave}")
}

/// Adds the argument `sandbox`, where calls may use it. `asked`: when the user is.
pub(crate) fn offer_leaving(schema: &mut Value, sessions: &Sessions, off: &str, hosts: &str, asked: &str) {
    if let Some(properties) = schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .filter(|_| sessions.may_leave())
    {
        let (profiles, text): (&[&str], String) = if sessions.may_ask_hosts() {
            (
                &["workspace+net", "off"],
                format!("{off}; {hosts}; the user is asked {asked}"),
            )
        } else {
            (&["off"], format!("{off}; the user is asked {asked}"))
        };
        properties.insert(
            "sandbox".into(),
            json!({"type": "string", "enum": profiles, "description": text}),
        );
    }
}

/// Adds the argument `hosts`, where calls may use it.
fn offer_hosts(schema: &mut Value, sessions: &Sessions) {
    if let Some(properties) = schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .filter(|_| sessions.may_ask_hosts())
    {
        properties.insert(
            "hosts".into(),
            json!({
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 260},
                "minItems": 1,
                "maxItems": limits::HOSTS,
                "description": "Hosts that the command needs by http or https, as in [\"example.org\", \"*.npmjs.org\", \"example.org:8080\"]"
            }),
        );
    }
}

impl Bash {
    async fn spec(&self, args: Args, context: &CallContext) -> Result<(Spec, Option<u64>), ToolError> {
        if args.command.trim().is_empty() {
            return Err(ToolError::bad_args("command", "it is empty"));
        }
        if args.command.contains('\0') {
            return Err(ToolError::bad_args("command", "it has a NUL in it"));
        }
        if args.command.len() > limits::COMMAND_BYTES {
            return Err(ToolError::bad_args(
                "command",
                format!(
                    "it is longer than {} bytes; write a script with Write and run that",
                    limits::COMMAND_BYTES
                ),
            ));
        }
        let timeout_ms = match args.timeout {
            Some(ms) if !(1..=limits::BASH_TIMEOUT_MAX_MS).contains(&ms) => {
                return Err(ToolError::bad_args(
                    "timeout",
                    format!("must be from 1 to {} milliseconds", limits::BASH_TIMEOUT_MAX_MS),
                ));
            }
            timeout => timeout.unwrap_or(limits::BASH_TIMEOUT_MS),
        };
        if args.yield_ms.is_some_and(|ms| ms > limits::BASH_TIMEOUT_MAX_MS) {
            return Err(ToolError::bad_args(
                "yieldMs",
                format!("must be at most {} milliseconds", limits::BASH_TIMEOUT_MAX_MS),
            ));
        }
        let outside = self.sessions.leaves(args.sandbox)?;
        let changes_nothing = self.sessions.reads_only(args.sandbox)?;
        let temporary = self.sessions.temporary(outside);
        let roots = self.sessions.roots();
        let rel = self.files.parse(args.workdir.as_deref().unwrap_or("."))?;
        let files = Arc::clone(&self.files);
        let command = args.command.clone();
        let workdir = read_only(context, limits::START_TIME, move || {
            let refused = problem(&command, &temporary, &roots).map(|problem| match problem {
                Problem::Link(path) => format!(
                    "a link on the way of {} leads out of the folder for temporary files; delete the link itself, or name the folder that it leads to",
                    quote(&path)
                ),
                Problem::Workspace(path) => format!(
                    "{} is in a folder that the user is asked about, or has one in it; go there, and name what to delete without the folder for temporary files",
                    quote(&path)
                ),
            });
            if let Some(refused) = refused {
                return Err(ToolError::bad_args("command", refused));
            }
            let dir = match files.open_dir(&rel) {
                Err(ToolError::NotFound { path }) if files.open_file(&rel).is_ok() => {
                    return Err(ToolError::NotADirectory { path });
                }
                dir => dir?,
            };
            let path = files.real_path(&dir, &rel);
            if path.is_dir() {
                Ok(path)
            } else {
                Err(ToolError::NotADirectory {
                    path: quote(&files.show(&rel)),
                })
            }
        })
        .await?;
        let hosts = self.sessions.hosts(args.sandbox, args.hosts.as_deref())?;
        let background = args.background == Some(true);
        let spec = Spec {
            call_id: context.call_id.clone(),
            command: args.command,
            workdir,
            timeout_ms,
            background,
            outside,
            hosts,
            read_only: changes_nothing,
        };
        Ok((spec, args.yield_ms))
    }
}
