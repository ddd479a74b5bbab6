//! The messages between a link's handles, its driver and the consumer of its events.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gsv_protocol::types::ConnectResult;
use gsv_protocol::{Event, Json};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Bytes;

use crate::error::LinkError;
use crate::machine::{CallKey, NewCall};

/// An event of a link. Events come in order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LinkEvent {
    Connected(ConnectResult),
    /// `retry_in` is absent when no other attempt follows.
    Disconnected {
        reason: String,
        retry_in: Option<Duration>,
    },
    Event {
        event: Event,
        seq: Option<u64>,
    },
    /// A chunk of a transfer, with its number in front: [`gsv_protocol::limits::TRANSFER_CHUNK_BYTES`] and 4 bytes at most.
    Chunk(Bytes),
    /// A frame was ignored; for a log.
    Ignored {
        what: String,
    },
    /// The last event of a link that ended by itself.
    Fatal(LinkError),
}

/// The events of one link. `None` after the last.
pub type Events = mpsc::Receiver<LinkEvent>;

pub enum Command {
    Call {
        call: NewCall,
        answer: oneshot::Sender<Result<Json, LinkError>>,
    },
    Chunk(Bytes),
    Forget(CallKey),
    Close,
}

/// State that all handles of a link share.
#[derive(Debug, Default)]
pub struct Shared {
    pub next_key: AtomicU64,
    pub hello: Mutex<Option<ConnectResult>>,
    pub stopped: OnceLock<LinkError>,
}

impl Shared {
    /// The gateway's last greeting.
    pub fn hello(&self) -> Option<ConnectResult> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_hello(&self, hello: ConnectResult) {
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = Some(hello);
    }
}
