//! What goes into the machine and what comes out, and the numbers it goes by.

use gsv_protocol::types::ErrorShape;
use serde_json::Value;

use super::Request;
use crate::error::LinkError;

/// Milliseconds of a monotonic clock.
pub type Millis = u64;

/// The driver's name for a request, unique for the life of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// One socket; numbers rise. Inputs that name another than the present one are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn(pub u64);

#[derive(Debug, Clone)]
pub struct Config {
    /// For messages; without secrets.
    pub url: String,
    /// A node never gives up: what a client takes as final, it tries again slowly.
    pub never_give_up: bool,
    pub reconnect: bool,
    /// From dialling to `hello-ok`.
    pub handshake_timeout_ms: Millis,
    pub ping_interval_ms: Millis,
    pub backoff_min_ms: Millis,
    pub backoff_max_ms: Millis,
    /// Wait after a refusal that only a person can mend.
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
            never_give_up: is_node,
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

#[derive(Debug, Clone)]
pub enum Input {
    Start,
    /// The socket is open; `connect` is the params of the first request.
    Opened {
        conn: Conn,
        connect: Value,
    },
    /// No socket. `refusal`: the other side said why, in HTTP.
    DialFailed {
        conn: Conn,
        cause: String,
        refusal: Option<ErrorShape>,
    },
    Text {
        conn: Conn,
        text: String,
    },
    /// Something came that says nothing but that the other side lives.
    Alive {
        conn: Conn,
    },
    Closed {
        conn: Conn,
        code: Option<u16>,
        reason: String,
    },
    /// The driver does not read while the consumer of events is slow: silence then says nothing about the other side.
    Paused(bool),
    Call(Request),
    /// Nobody waits for the answer any more.
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
    Close {
        conn: Conn,
        code: u16,
        reason: String,
    },
    Answer {
        key: CallKey,
        outcome: Result<Value, LinkError>,
    },
    /// `hello-ok`, as it came.
    Up {
        hello: Value,
    },
    /// There is no link. `retry_in_ms` is absent when none will be made.
    Down {
        reason: String,
        retry_in_ms: Option<Millis>,
    },
    Event {
        name: String,
        payload: Value,
        seq: Option<u64>,
    },
    /// A frame was ignored; for the log.
    Oddity {
        what: String,
    },
    /// The last output of all. No error: it was asked for.
    Stopped {
        error: Option<LinkError>,
    },
}
