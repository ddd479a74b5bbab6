//! The tokio driver around the pure machine: one task per link, which owns the socket. Runs on a current-thread runtime
//! as well as on a many-threaded one.
//!
//! Everything is bounded. When the consumer of [`Events`] is slow, the socket is not read, so the gateway feels it; for
//! the same reason a consumer must not wait for an answer to a call in the place where it takes events out.

pub(crate) mod dial;
mod run;
mod socket;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gsv_protocol::Method;
use gsv_protocol::types::{ConnectResult, Mode, NodeLedger, NodeRuntime, ResumePoint, ToolDefinition};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::LinkError;
use crate::machine::{CallKey, Request};

/// Calls that wait to be taken by the driver.
const COMMANDS: usize = 64;
/// Events that wait to be taken by the consumer.
const EVENTS: usize = 256;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// For methods whose answer waits for a tool on some machine.
const DEFERRED_TIMEOUT: Duration = Duration::from_secs(330);
/// A closing link gets this long to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);

/// Called at each connect: the unreleased calls of a node.
pub type LedgerProvider = Arc<dyn Fn() -> NodeLedger + Send + Sync>;
/// Called at each connect: the sessions to follow again. Those that do not fit the first frame are left out, last first.
pub type ResumeProvider = Arc<dyn Fn() -> Vec<ResumePoint> + Send + Sync>;

/// How to connect, and as what.
#[derive(Clone)]
pub struct Options {
    /// `ws://`, `wss://`, `http://`, `https://` or `host[:port]`; an empty path becomes `/ws`.
    pub url: String,
    pub token: Option<String>,
    pub mode: Mode,
    pub id: String,
    pub version: String,
    pub platform: String,
    pub tools: Option<Vec<ToolDefinition>>,
    pub node_runtime: Option<NodeRuntime>,
    pub ledger: Option<LedgerProvider>,
    pub resume: Option<ResumeProvider>,
    /// False: the first lost or refused connection ends the link.
    pub reconnect: bool,
    /// From dialling to `hello-ok`.
    pub connect_timeout: Duration,
}

impl Options {
    /// A client of this platform that does not reconnect.
    pub fn new(url: impl Into<String>, mode: Mode, id: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            mode,
            id: id.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: std::env::consts::OS.to_owned(),
            tools: None,
            node_runtime: None,
            ledger: None,
            resume: None,
            reconnect: false,
            connect_timeout: Duration::from_millis(gsv_protocol::limits::CONNECT_TIMEOUT_MS),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field(
                "url",
                &dial::Target::parse(&self.url).map_or_else(|_| "(not a url)".to_owned(), |target| target.shown),
            )
            .field("mode", &self.mode)
            .field("id", &self.id)
            .field("reconnect", &self.reconnect)
            .finish_non_exhaustive()
    }
}

/// What happens on a link, in order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LinkEvent {
    Connected(ConnectResult),
    /// `retry_in` is absent when no other attempt will be made.
    Disconnected {
        reason: String,
        retry_in: Option<Duration>,
    },
    Event {
        name: String,
        payload: Value,
        seq: Option<u64>,
    },
    /// A frame was ignored. For a log; nothing to act on.
    Oddity {
        what: String,
    },
    /// The last event of a link that ended by itself.
    Fatal(LinkError),
}

/// The events of one link. `None` after the last.
pub type Events = mpsc::Receiver<LinkEvent>;

enum Command {
    Call {
        request: Request,
        answer: oneshot::Sender<Result<Value, LinkError>>,
    },
    Forget(CallKey),
    Close,
}

/// A connection to a gateway. Clones share it; it closes when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Link {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    ended: watch::Receiver<bool>,
}
#[derive(Debug, Default)]
struct Shared {
    next_key: AtomicU64,
    hello: Mutex<Option<ConnectResult>>,
    stopped: OnceLock<LinkError>,
}

impl Link {
    /// With `reconnect` it returns at once and [`Events`] tell the rest; without, it returns after the first `hello-ok`.
    ///
    /// # Errors
    /// A bad address; without `reconnect` also whatever kept the link from coming about.
    pub async fn connect(options: Options) -> Result<(Self, Events), LinkError> {
        let target = dial::Target::parse(&options.url)?;
        let reconnect = options.reconnect;
        let shared = Arc::new(Shared::default());
        let (commands, command_queue) = mpsc::channel(COMMANDS);
        let (event_sink, events) = mpsc::channel(EVENTS);
        let (first, first_hello) = oneshot::channel();
        let (ended_sink, ended) = watch::channel(false);
        let driver = run::Driver::new(options, target, command_queue, event_sink, first, Arc::clone(&shared));
        tokio::spawn(async move {
            driver.run().await;
            ended_sink.send_replace(true);
        });
        let link = Self {
            commands,
            shared,
            ended,
        };
        if !reconnect {
            first_hello.await.unwrap_or_else(|_| Err(link.why_stopped()))?;
        }
        Ok((link, events))
    }

    /// Calls a method of the contract. After a reconnect the request is sent again if the contract says that this is
    /// harmless; else the call fails with [`LinkError::OutcomeUnknown`].
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, LinkError> {
        self.call_within::<M>(params, if M::DEFERRED { DEFERRED_TIMEOUT } else { CALL_TIMEOUT })
            .await
    }

    /// [`Link::call`] with another time to wait.
    pub async fn call_within<M: Method>(&self, params: M::Params, timeout: Duration) -> Result<M::Result, LinkError> {
        let params = serde_json::to_value(params).map_err(|error| LinkError::BadRequest {
            method: M::NAME.into(),
            why: error.to_string(),
        })?;
        let idempotent = M::IDEMPOTENT && has_own_key(M::NAME, &params);
        let answer = self.request(M::NAME, Some(params), idempotent, timeout).await?;
        serde_json::from_value(answer).map_err(|error| LinkError::BadAnswer {
            method: M::NAME.into(),
            why: error.to_string(),
        })
    }

    /// Calls a method of the contract with params that are JSON already, and gives the answer as it came.
    pub async fn call_json<M: Method>(&self, params: Value, timeout: Duration) -> Result<Value, LinkError> {
        let idempotent = M::IDEMPOTENT && has_own_key(M::NAME, &params);
        self.request(M::NAME, Some(params), idempotent, timeout).await
    }

    /// Calls a method by name. Never sent twice.
    pub async fn call_raw(&self, method: &str, params: Option<Value>, timeout: Duration) -> Result<Value, LinkError> {
        self.request(method, params, false, timeout).await
    }

    /// What the gateway said last when it let us in.
    pub fn hello(&self) -> Option<ConnectResult> {
        self.shared.hello.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says goodbye (close 1000), fails what is open, and returns when the socket is closed or 2 s have passed.
    pub async fn close(&self) {
        if self.commands.send(Command::Close).await.is_ok() {
            // The sender goes away only with the driver, which is an end as well.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
        }
    }

    async fn request(
        &self,
        method: &str,
        params: Option<Value>,
        idempotent: bool,
        timeout: Duration,
    ) -> Result<Value, LinkError> {
        let key = CallKey(self.shared.next_key.fetch_add(1, Ordering::Relaxed));
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let request = Request {
            key,
            method: method.to_owned(),
            params,
            idempotent,
            timeout_ms,
        };
        let (answer, answered) = oneshot::channel();
        // The queue is short and its reader never waits for long, but the deadline holds even if it does.
        match tokio::time::timeout(timeout, self.commands.send(Command::Call { request, answer })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.why_stopped()),
            Err(_) => {
                return Err(LinkError::Timeout {
                    method: method.to_owned(),
                    after_ms: timeout_ms,
                    uncertain: false,
                });
            }
        }
        let abandoned = Abandoned {
            key,
            commands: &self.commands,
            armed: true,
        };
        let outcome = answered.await.unwrap_or_else(|_| Err(self.why_stopped()));
        abandoned.disarm();
        outcome
    }

    fn why_stopped(&self) -> LinkError {
        self.shared.stopped.get().cloned().unwrap_or_else(|| LinkError::Closed {
            reason: "it was closed".into(),
        })
    }
}

/// `chat.send` is safe to repeat only under a key that the caller chose (SPEC.md C2).
fn has_own_key(method: &str, params: &Value) -> bool {
    method != "chat.send" || params.get("messageId").or_else(|| params.get("runId")).is_some()
}

/// Tells the driver when the future of a call is dropped before its end.
struct Abandoned<'a> {
    key: CallKey,
    commands: &'a mpsc::Sender<Command>,
    armed: bool,
}
impl Abandoned<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}
impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.armed {
            // A full queue loses nothing: the call's deadline removes it.
            let _ = self.commands.try_send(Command::Forget(self.key));
        }
    }
}
