//! The handle of a link: calls methods, and closes the connection. The tokio task behind it is the driver.
//!
//! Every queue is bounded. While the consumer of [`Events`] is slow, the socket is not read, and the gateway slows down. So the
//! loop that takes events must not wait for the answer to a call.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gsv_protocol::types::ConnectResult;
use gsv_protocol::{Json, Method, Request};
use tokio::sync::{mpsc, oneshot, watch};

use crate::driver::Driver;
use crate::driver::handles::{Command, Events, Shared};
use crate::error::LinkError;
use crate::machine::{CallKey, NewCall};
use crate::net::target::Target;
use crate::options::Options;

/// Calls that wait to be taken by the driver.
const COMMANDS: usize = 64;
/// Events that wait to be taken by the consumer.
const EVENTS: usize = 256;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// For methods whose answer waits for a tool on some machine.
const DEFERRED_TIMEOUT: Duration = Duration::from_secs(330);

/// A connection to a gateway. Clones share it; it closes when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Link {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    ended: watch::Receiver<bool>,
}
impl Link {
    /// With `reconnect` it returns at once and [`Events`] report the connection; without, it returns after the first
    /// `hello-ok`.
    ///
    /// # Errors
    /// A bad address; without `reconnect` also an unreachable gateway or a refusal.
    pub async fn connect(options: Options) -> Result<(Self, Events), LinkError> {
        let target = Target::parse(&options.url)?;
        let reconnect = options.reconnect;
        let shared = Arc::new(Shared::default());
        let (commands, command_queue) = mpsc::channel(COMMANDS);
        let (event_sink, events) = mpsc::channel(EVENTS);
        let (first, first_hello) = oneshot::channel();
        let (ended_sink, ended) = watch::channel(false);
        let driver = Driver::new(options, target, command_queue, event_sink, first, Arc::clone(&shared));
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
            first_hello.await.map_err(|_| link.why_stopped())?;
        }
        Ok((link, events))
    }

    /// Calls a method of the contract. After a reconnect the request is sent again if the contract says that this is
    /// harmless; else the call fails with [`LinkError::OutcomeUnknown`].
    ///
    /// # Errors
    /// The gateway's error, or why no answer came.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, LinkError> {
        self.call_within::<M>(params, if M::DEFERRED { DEFERRED_TIMEOUT } else { CALL_TIMEOUT })
            .await
    }

    /// [`Link::call`] with another time to wait.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub async fn call_within<M: Method>(&self, params: M::Params, timeout: Duration) -> Result<M::Result, LinkError> {
        let request = M::request(params);
        let resend = M::IDEMPOTENT && has_own_key(&request);
        self.exchange::<M>(request, resend, timeout).await
    }

    /// [`Link::call_within`], but never sent twice.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub async fn call_once<M: Method>(&self, params: M::Params, timeout: Duration) -> Result<M::Result, LinkError> {
        self.exchange::<M>(M::request(params), false, timeout).await
    }

    /// Sends a binary frame: a chunk of a transfer with its number in front. Waits while many frames wait for the socket. Without a
    /// connection the frame is dropped.
    ///
    /// # Errors
    /// The link has ended.
    pub async fn send_chunk(&self, frame: Vec<u8>) -> Result<(), LinkError> {
        let sent = self.commands.send(Command::Chunk(frame.into())).await;
        sent.map_err(|_| self.why_stopped())
    }

    /// The gateway's last greeting.
    pub fn hello(&self) -> Option<ConnectResult> {
        self.shared.hello()
    }

    /// Closes with code 1000, fails open calls, and returns when the socket is closed or 2 s have passed.
    pub async fn close(&self) {
        if self.commands.send(Command::Close).await.is_ok() {
            // An error means that the driver has ended already.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
        }
    }

    async fn exchange<M: Method>(
        &self,
        request: Request,
        resend: bool,
        timeout: Duration,
    ) -> Result<M::Result, LinkError> {
        let answer = self.send(request, resend, timeout).await?;
        answer.read().map_err(|error| LinkError::BadAnswer {
            method: M::NAME.into(),
            why: error.to_string(),
        })
    }

    async fn send(&self, request: Request, resend: bool, timeout: Duration) -> Result<Json, LinkError> {
        let key = CallKey(self.shared.next_key.fetch_add(1, Ordering::Relaxed));
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let method = request.method();
        let call = NewCall {
            key,
            request: Box::new(request),
            resend,
            timeout_ms,
        };
        let (answer, answered) = oneshot::channel();
        // The queue is short and its reader never waits for long, but the deadline holds even if it does.
        match tokio::time::timeout(timeout, self.commands.send(Command::Call { call, answer })).await {
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
        let _forgotten = Abandoned {
            key,
            commands: &self.commands,
        };
        answered.await.unwrap_or_else(|_| Err(self.why_stopped()))
    }

    fn why_stopped(&self) -> LinkError {
        self.shared.stopped.get().cloned().unwrap_or_else(|| LinkError::Closed {
            reason: "it was closed".into(),
        })
    }
}

/// `chat.send` is safe to repeat only under a key that the caller chose (SPEC.md C2).
fn has_own_key(request: &Request) -> bool {
    match request {
        Request::ChatSend(params) => params.message_id.is_some() || params.run_id.is_some(),
        _ => true,
    }
}

/// Tells the driver when the future of a call is dropped. A call that was answered is not known there any more.
struct Abandoned<'a> {
    key: CallKey,
    commands: &'a mpsc::Sender<Command>,
}
impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        // When the queue is full, the call's deadline removes it.
        let _ = self.commands.try_send(Command::Forget(self.key));
    }
}
