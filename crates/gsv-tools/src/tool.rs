//! The interface of a tool: its definition, its effect, and the context of a call. Contains no tool.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::error::ToolError;
use crate::exec::StartInfo;
use crate::tool_output::ToolOutput;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The description of a tool for the model. `input_schema` is JSON Schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    /// True when every call of the tool may be repeated if its outcome is not known.
    pub idempotent: bool,
    /// How long a call may take, in place of the gateway's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
}

/// Whether a call may be repeated. A mutating call is started at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    ReadOnly,
    Mutating,
}

/// A piece of live output. Both streams of a command are merged, so `stream` is `output`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub stream: &'static str,
    pub chunk: String,
}

/// A cancellation flag. All clones share it; it is never reset.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn cancelled(&self) {
        // The sender lives as long as `self`, so waiting can't fail.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

/// Called before a command runs. The command runs only after this returned `Ok`, so the record that it stores (with
/// fsync) proves that the command may have started.
pub type OnStarted = Box<dyn FnOnce(StartInfo) -> BoxFuture<'static, io::Result<()>> + Send + Sync>;

/// The inputs of a call besides its arguments.
pub struct CallContext {
    pub call_id: String,
    pub progress: Option<mpsc::Sender<Progress>>,
    pub cancel: Cancel,
    pub deadline: Option<Instant>,
    pub on_started: Option<OnStarted>,
}

impl CallContext {
    pub fn new(call_id: impl Into<String>) -> Self {
        Self {
            call_id: call_id.into(),
            progress: None,
            cancel: Cancel::default(),
            deadline: None,
            on_started: None,
        }
    }
}

/// One tool. Implementations hold what they need; a call gets nothing else. Programs that run a node implement it for their own
/// tools. `invoke` ends soon after `cancel` and the deadline of its context; its answer says whether the call took effect.
pub trait Tool: Send + Sync {
    fn definition(&self) -> ToolDefinition;
    fn capabilities(&self) -> &'static [&'static str];
    fn effect(&self, args: &Value) -> Effect;
    fn invoke(&self, args: Value, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

/// Tells blocking work when to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    cancel: Cancel,
    until: std::time::Instant,
}

impl Stop {
    pub(crate) fn new(cancel: &Cancel, limit: Duration) -> Self {
        Self {
            cancel: cancel.clone(),
            until: std::time::Instant::now() + limit,
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        let late = std::time::Instant::now().checked_duration_since(self.until);
        self.cancel.is_cancelled() || late.is_some()
    }
}

/// Runs work that only reads, off the async threads. The caller gets an answer at the limit even if
/// the work hangs in a system call.
pub(crate) async fn read_only<T, F>(context: &CallContext, limit: Duration, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ToolError> + Send + 'static,
{
    let latest = Instant::now() + limit;
    let until = context.deadline.map_or(latest, |deadline| deadline.min(latest));
    let started = Instant::now();
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(ToolError::Cancelled { tail: None }),
        done = tokio::task::spawn_blocking(work) => done.unwrap_or_else(|error| Err(ToolError::Failed(format!("the tool was stopped: {error}")))),
        () = tokio::time::sleep_until(until) => Err(ToolError::Timeout { ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX) }),
    }
}

/// Runs work that changes something. It can be refused before it starts, never abandoned half-way: a deadline that
/// passes while the work runs means that its outcome is unknown.
pub(crate) async fn mutating<T, F>(context: &CallContext, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ToolError> + Send + 'static,
{
    if context.cancel.is_cancelled() {
        return Err(ToolError::Cancelled { tail: None });
    }
    let unknown = |why| ToolError::OutcomeUnknown {
        why,
        pid: None,
        started_at: None,
        tail: None,
    };
    let deadline = async {
        match context.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        done = tokio::task::spawn_blocking(work) => done.unwrap_or_else(|_| Err(unknown("the tool was stopped"))),
        () = deadline => Err(unknown("the file system did not answer in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p14_work_stops_when_it_is_cancelled_and_at_its_time_limit() {
        let cancel = Cancel::default();
        let long = Stop::new(&cancel, Duration::from_secs(1000));
        assert!(!long.is_due());
        assert!(Stop::new(&cancel, Duration::ZERO).is_due());
        cancel.cancel();
        assert!(long.is_due());
    }
}
