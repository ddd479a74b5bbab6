//! What happens to a node, for the program that runs it. Carries no arguments, results or tokens.

use std::sync::Arc;
use std::time::Duration;

use gsv_protocol::types::ToolOutcome;

#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NodeEvent {
    Connected {
        /// Version of the gateway.
        gateway: String,
    },
    /// Also an attempt that failed.
    Disconnected {
        reason: String,
        /// `None`: the node does not try again.
        retry_in: Option<Duration>,
    },
    CallStarted {
        call_id: String,
        tool: String,
    },
    CallEnded {
        call_id: String,
        tool: String,
        outcome: ToolOutcome,
        /// A row of the error table.
        reason: Option<&'static str>,
        took: Duration,
    },
}

/// Gets the events in their order. Must return at once.
pub type EventSink = Arc<dyn Fn(NodeEvent) + Send + Sync>;
