//! Process: shows commands that Bash started, writes to their input and ends them. Starts none.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gsv_sandbox::Profile;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args;
use crate::bash::offer_leaving;
use crate::error::{ToolError, quote};
use crate::exec::{Asked, CommandInfo, CommandStatus, KillReason, ListedCommand, Session, Sessions};
use crate::limits;
use crate::tool::{BoxFuture, CallContext, Effect, Tool, ToolDefinition};
use crate::tool_output::ToolOutput;

const STDIN_LOOK: Duration = Duration::from_millis(5);

pub(crate) struct Process {
    pub(crate) sessions: Arc<Sessions>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Poll,
    Log,
    Write,
    Submit,
    Kill,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    action: Action,
    session_id: Option<String>,
    data: Option<String>,
    offset: Option<u64>,
    limit: Option<u64>,
    sandbox: Option<Asked>,
}

impl Tool for Process {
    fn definition(&self) -> ToolDefinition {
        let mut definition = ToolDefinition {
            name: "Process".into(),
            description: "Controls commands that Bash started, until 30 minutes after their end. `list` lists them; `poll` shows the status of one; `log` reads its output \
                (the end, or from byte `offset` on; continue at `nextOffset`); `write` sends `data` to a background one, `submit` adds a line end; `kill` ends it."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["list", "poll", "log", "write", "submit", "kill"]},
                    "sessionId": {"type": "string", "description": "The command; required for all actions but `list`"},
                    "data": {"type": "string", "description": "Input for `write` and `submit`"},
                    "offset": {"type": "integer", "minimum": 0, "description": "Byte of the output to start at, for `log` and `poll`"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": limits::LOG_MAX_BYTES, "description": "Bytes of output at most, 50000 by default"}
                },
                "required": ["action"]
            }),
            idempotent: false,
            timeout_ms: None,
        };
        offer_leaving(
            &mut definition.input_schema,
            &self.sessions,
            "`off`: for a command that runs outside the sandbox",
            "`workspace+net`: for one with hosts",
            "before it gets input",
        );
        definition
    }

    fn capabilities(&self) -> &'static [&'static str] {
        &["shell.exec"]
    }

    fn effect(&self, args: &Value) -> Effect {
        #[derive(Deserialize)]
        struct Asked {
            action: Action,
        }
        match Asked::deserialize(args).map(|asked| asked.action) {
            Ok(Action::List | Action::Poll | Action::Log) => Effect::ReadOnly,
            _ => Effect::Mutating,
        }
    }

    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = args::parse(args)?;
            let limit = args::bounded("limit", args.limit, limits::LOG_BYTES, limits::LOG_MAX_BYTES)?;
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled { tail: None });
            }
            if args.sandbox == Some(Asked::ReadOnly) {
                return Err(ToolError::bad_args("sandbox", "`read-only` is for Bash"));
            }
            self.sessions.sweep().await;
            if args.action == Action::List {
                let sessions: Vec<ListedCommand> = self
                    .sessions
                    .list()
                    .iter()
                    .filter(|session| session.is_background())
                    .map(|session| session.listed())
                    .collect();
                return ToolOutput::json(&List {
                    count: sessions.len(),
                    sessions,
                });
            }
            let id = args
                .session_id
                .as_deref()
                .ok_or_else(|| ToolError::bad_args("sessionId", "it is required for this action"))?;
            let session = self.sessions.get(id)?;
            match args.action {
                Action::Write | Action::Submit
                    if self.is_outside(&session) && !self.sessions.leaves(args.sandbox)? =>
                {
                    Err(ToolError::bad_args(
                        "sandbox",
                        "the command runs outside the sandbox; to give it input, repeat the call with `sandbox` set to `off`, which the user is asked about",
                    ))
                }
                Action::Write | Action::Submit if session.has_hosts() && args.sandbox != Some(Asked::Hosts) => {
                    Err(ToolError::bad_args(
                        "sandbox",
                        "the command may reach hosts that the user has allowed for it; to give it input, repeat the call with `sandbox` set to `workspace+net`, which the user is asked about",
                    ))
                }
                // The gateway judges what a call gives by its arguments: output that others may have written must be known as such.
                Action::Poll | Action::Log if self.is_outside(&session) && args.sandbox.is_none() => {
                    Err(ToolError::bad_args(
                        "sandbox",
                        "the command runs outside the sandbox, so others may have written its output; to read it, repeat the call with `sandbox` set to `off`",
                    ))
                }
                Action::Poll | Action::Log if session.has_hosts() && args.sandbox.is_none() => {
                    Err(ToolError::bad_args(
                        "sandbox",
                        "the command may reach hosts, so others may have written its output; to read it, repeat the call with `sandbox` set to `workspace+net`",
                    ))
                }
                Action::List | Action::Poll => poll(&session, args.offset, limit).await,
                Action::Log => log(&session, args.offset, limit).await,
                Action::Write | Action::Submit => send(&session, args.data, args.action == Action::Submit).await,
                Action::Kill => {
                    if session.end().is_none() {
                        session.kill(KillReason::Killed).await?;
                    }
                    if (self.is_outside(&session) || session.has_hosts()) && args.sandbox.is_none() {
                        return ToolOutput::json(&Killed {
                            session_id: session.id().to_owned(),
                            status: session.info().status(),
                        });
                    }
                    poll(&session, None, limit).await
                }
            }
        })
    }
}

impl Process {
    /// It was allowed outside the sandbox: input is more of the same, and its output may be of others.
    fn is_outside(&self, session: &Session) -> bool {
        self.sessions.profile() != Profile::Off && !session.is_confined()
    }
}

#[derive(Serialize)]
struct List {
    count: usize,
    sessions: Vec<ListedCommand>,
}

/// One command. `output_bytes`: the length of its whole output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Poll {
    #[serde(flatten)]
    info: CommandInfo,
    tail: String,
    output_bytes: u64,
    #[serde(flatten)]
    part: Option<OutputPart>,
}

/// A command outside the sandbox or with hosts, without its output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Killed {
    session_id: String,
    status: CommandStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    session_id: String,
    status: CommandStatus,
    output_bytes: u64,
    #[serde(flatten)]
    part: OutputPart,
}

/// Bytes `offset` to `next_offset` of a command's output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputPart {
    output: String,
    offset: u64,
    next_offset: u64,
    truncated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    session_id: String,
    status: CommandStatus,
    /// Bytes.
    written: usize,
}

async fn poll(session: &Session, offset: Option<u64>, limit: usize) -> Result<ToolOutput, ToolError> {
    let info = session.info();
    let tail = session.tail(limits::TAIL_CHARS).await;
    let (output_bytes, part) = match offset {
        Some(_) => {
            let (output_bytes, part) = output_part(session, offset, limit).await?;
            (output_bytes, Some(part))
        }
        None => (tail.bytes, None),
    };
    ToolOutput::json(&Poll {
        info,
        tail: tail.text,
        output_bytes,
        part,
    })
}

async fn log(session: &Session, offset: Option<u64>, limit: usize) -> Result<ToolOutput, ToolError> {
    let status = session.info().status();
    let (output_bytes, part) = output_part(session, offset, limit).await?;
    ToolOutput::json(&Log {
        session_id: session.id().to_owned(),
        status,
        output_bytes,
        part,
    })
}

/// The length of the whole output in bytes, and a part of it.
async fn output_part(session: &Session, offset: Option<u64>, limit: usize) -> Result<(u64, OutputPart), ToolError> {
    let part = session.part(offset, limit).await?;
    let shown = OutputPart {
        truncated: part.next < part.bytes || part.offset > offset.unwrap_or(0),
        output: part.text,
        offset: part.offset,
        next_offset: part.next,
    };
    Ok((part.bytes, shown))
}

async fn send(session: &Session, data: Option<String>, submit: bool) -> Result<ToolOutput, ToolError> {
    let mut data = match data {
        Some(data) => data,
        None if submit => String::new(),
        None => return Err(ToolError::bad_args("data", "it is required for this action")),
    };
    if submit {
        data.push('\n');
    }
    if data.is_empty() || data.len() > limits::STDIN_BYTES {
        return Err(ToolError::bad_args("data", "must be from 1 to 65536 bytes"));
    }
    let refused = |why| ToolError::NoStdin {
        id: quote(session.id()),
        why,
    };
    if session.end().is_some() {
        return Err(refused("it has ended"));
    }
    let Some(path) = session.stdin() else {
        return Err(refused("it was not started with background: true"));
    };
    let written = tokio::task::spawn_blocking(move || feed(&path, data.as_bytes()))
        .await
        .map_err(|error| ToolError::Failed(format!("the tool was stopped: {error}")))?
        .map_err(|errno| match errno {
            Errno::NXIO | Errno::PIPE => refused("it has closed its input"),
            errno => ToolError::io("write to the command's input", errno),
        })?;
    ToolOutput::json(&Sent {
        session_id: session.id().to_owned(),
        status: session.info().status(),
        written,
    })
}

/// Writes into the pipe while there is room; a command that reads nothing gets no more than the pipe holds.
/// Waits briefly for a command that has just started and has not opened its input yet.
fn feed(path: &Path, data: &[u8]) -> rustix::io::Result<usize> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let until = Instant::now() + limits::STDIN_TIME;
    let pipe = loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NXIO | Errno::INTR) if has_time(until) => std::thread::sleep(STDIN_LOOK),
            other => break other?,
        }
    };
    let mut written = 0;
    while written < data.len() {
        match rustix::io::write(&pipe, &data[written..]) {
            Ok(bytes) => written += bytes,
            Err(Errno::AGAIN | Errno::INTR) if has_time(until) => std::thread::sleep(STDIN_LOOK),
            Err(Errno::AGAIN | Errno::INTR) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(written)
}

fn has_time(until: Instant) -> bool {
    !until.saturating_duration_since(Instant::now()).is_zero()
}
