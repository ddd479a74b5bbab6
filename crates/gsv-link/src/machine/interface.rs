//! The inputs, outputs and settings of the link's state machine.

use gsv_protocol::types::{ConnectParams, ConnectResult, ErrorShape};
use gsv_protocol::{Event, Json, Request};
use tokio_tungstenite::tungstenite::Bytes;

use crate::error::LinkError;

/// Milliseconds of a monotonic clock.
pub type Millis = u64;

/// Names a call for the driver; unique during the machine's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// One socket; numbers rise. Inputs about an earlier socket are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn(pub u64);

#[derive(Debug, Clone)]
pub struct Config {
    /// Shown in messages; without secrets.
    pub url: String,
    /// A node retries slowly where a client stops, until the gateway is repaired. A refused token stops it too.
    pub waits_for_repair: bool,
    pub reconnect: bool,
    /// From dialling to `hello-ok`.
    pub handshake_timeout_ms: Millis,
    pub ping_interval_ms: Millis,
    pub backoff_min_ms: Millis,
    pub backoff_max_ms: Millis,
    /// Wait after a refusal that only a person can fix.
    pub refused_retry_ms: Millis,
    pub max_open_calls: usize,
    pub frame_bytes: usize,
    /// Largest `connect` frame.
    pub hello_bytes: usize,
}

impl Config {
    /// The limits of the contract.
    pub fn new(url: String, is_node: bool, reconnect: bool) -> Self {
        use gsv_protocol::limits;
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            url,
            waits_for_repair: is_node,
            reconnect,
            handshake_timeout_ms: limits::CONNECT_TIMEOUT_MS,
            ping_interval_ms: limits::PING_INTERVAL_MS,
            backoff_min_ms: limits::RECONNECT_MIN_MS,
            backoff_max_ms: limits::RECONNECT_MAX_MS,
            refused_retry_ms: limits::RECONNECT_MAX_MS,
            max_open_calls: 1024,
            frame_bytes: bytes(limits::FRAME_BYTES),
            hello_bytes: bytes(if is_node {
                limits::UNAUTH_NODE_FRAME_BYTES
            } else {
                limits::UNAUTH_FRAME_BYTES
            }),
        }
    }
}

/// A call to make.
#[derive(Debug, Clone)]
pub struct NewCall {
    pub key: CallKey,
    pub request: Box<Request>,
    /// The request may be sent again after the link broke.
    pub resend: bool,
    pub timeout_ms: Millis,
}

#[derive(Debug, Clone)]
pub enum Input {
    Start,
    /// The socket is open; `connect` is the first request.
    Opened {
        conn: Conn,
        connect: Box<ConnectParams>,
    },
    /// Dialling failed. `refusal`: the gateway's error, when it answered over HTTP.
    DialFailed {
        conn: Conn,
        cause: String,
        refusal: Option<ErrorShape>,
    },
    Text {
        conn: Conn,
        text: String,
    },
    /// A binary frame arrived.
    Chunk {
        conn: Conn,
        frame: Bytes,
    },
    /// A binary frame to send. Without a connection it is dropped: the transfer that it belongs to has ended with the connection.
    SendChunk(Bytes),
    /// A frame arrived that only shows that the peer is alive.
    Alive {
        conn: Conn,
    },
    Closed {
        conn: Conn,
        code: Option<u16>,
        reason: String,
    },
    /// The driver does not read while the consumer of events is slow, so silence does not mean a dead gateway.
    Paused(bool),
    Call(NewCall),
    /// The caller no longer waits for the answer.
    Forget {
        key: CallKey,
    },
    Tick,
    Shutdown {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Dial; any earlier socket is gone.
    Dial {
        conn: Conn,
    },
    Send {
        conn: Conn,
        text: String,
    },
    SendChunk {
        conn: Conn,
        frame: Bytes,
    },
    Close {
        conn: Conn,
        code: u16,
        reason: String,
    },
    Answer {
        key: CallKey,
        outcome: Result<Json, LinkError>,
    },
    /// The gateway answered `connect`.
    Up {
        hello: Box<ConnectResult>,
    },
    /// The link is down. `retry_in_ms` is absent when the machine has stopped.
    Down {
        reason: String,
        retry_in_ms: Option<Millis>,
    },
    Event {
        event: Event,
        seq: Option<u64>,
    },
    /// A chunk of a transfer, with its number in front.
    Chunk {
        frame: Bytes,
    },
    /// A frame was ignored; for the log.
    Ignored {
        what: String,
    },
    /// The last output. `error` is absent after [`Input::Shutdown`].
    Stopped {
        error: Option<LinkError>,
    },
}

#[cfg(test)]
mod tests {
    use gsv_protocol::limits;

    use super::Config;

    #[test]
    fn only_a_node_may_send_its_tools_in_the_first_frame() {
        let bytes = |is_node| Config::new("ws://host/ws".into(), is_node, true).hello_bytes as u64;
        assert_eq!(
            (bytes(true), bytes(false)),
            (limits::UNAUTH_NODE_FRAME_BYTES, limits::UNAUTH_FRAME_BYTES)
        );
    }
}
