//! The WebSocket of a link while it is open: writes the frames that wait, reads the next one, and does the closing handshake.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::machine::Conn;
use crate::net::dial::Socket;

/// Time for the closing handshake.
const CLOSE_TIME: Duration = Duration::from_secs(2);

pub struct Open {
    pub conn: Conn,
    pub sink: SplitSink<Socket, Message>,
    pub stream: SplitStream<Socket>,
    pub outgoing: VecDeque<Message>,
    /// Something was written and not flushed.
    pub dirty: bool,
}

impl Open {
    /// Writes waiting frames; returns only on an error. Dropping the future in between loses nothing.
    pub async fn write(
        sink: &mut SplitSink<Socket, Message>,
        outgoing: &mut VecDeque<Message>,
        dirty: &mut bool,
    ) -> tungstenite::Error {
        loop {
            let step = if outgoing.is_empty() {
                if !*dirty {
                    return pending().await;
                }
                let flushed = sink.flush().await;
                *dirty = false;
                flushed
            } else {
                match poll_fn(|context| sink.poll_ready_unpin(context)).await {
                    Ok(()) => {
                        *dirty = true;
                        outgoing
                            .pop_front()
                            .map_or(Ok(()), |frame| sink.start_send_unpin(frame))
                    }
                    Err(error) => Err(error),
                }
            };
            if let Err(error) = step {
                return error;
            }
        }
    }

    /// Writes the remaining frames and the close frame, then waits for the peer's close frame.
    pub async fn close(mut self, code: u16, reason: String) {
        let closing = async {
            while let Some(frame) = self.outgoing.pop_front() {
                self.sink.feed(frame).await?;
            }
            let frame = CloseFrame {
                code: code.into(),
                reason: cut(&reason, 120).into(),
            };
            self.sink.send(Message::Close(Some(frame))).await?;
            while let Some(Ok(_)) = self.stream.next().await {}
            Ok::<(), tungstenite::Error>(())
        };
        // Errors do not matter: the socket is dropped next.
        let _ = tokio::time::timeout(CLOSE_TIME, closing).await;
    }
}

/// At most `bytes` bytes, cut between characters.
fn cut(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
