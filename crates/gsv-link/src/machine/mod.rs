//! The connection as a pure state machine: handshake, correlation of answers, keep-alive, reconnection, and the fate of
//! requests that a broken link leaves open. It has no socket, no clock and no randomness of its own: the driver passes
//! the time (milliseconds of a monotonic clock) and a number in `0..1` with every input, and carries out the outputs.
//!
//! It answers every call exactly once unless the call is forgotten, and never resends a call that must not run twice.

mod backoff;
mod calls;
mod ending;
mod interface;
mod refusal;

use std::collections::VecDeque;

use gsv_protocol::codec::{self, CodecError, EncodedRequest, Incoming};
use gsv_protocol::types::{ConnectParams, ErrorShape};
use gsv_protocol::{Event, Json, Request, errors, limits};

use tokio_tungstenite::tungstenite::Bytes;

use crate::error::LinkError;
use calls::Calls;
pub use interface::{CallKey, Config, Conn, Input, Millis, NewCall, Output};

#[derive(Debug)]
enum Phase {
    Idle,
    Dialing { conn: Conn, deadline: Millis },
    Greeting { conn: Conn, deadline: Millis },
    Ready(Ready),
    Waiting { until: Millis },
    Stopped { why: LinkError },
}
#[derive(Debug)]
struct Ready {
    conn: Conn,
    last_sent: Millis,
    last_heard: Millis,
    last_ping: Millis,
    unanswered: u8,
    ping_interval: Millis,
}
impl Ready {
    fn ping_at(&self) -> Millis {
        let base = if self.unanswered > 0 {
            self.last_ping
        } else {
            self.last_sent.min(self.last_heard)
        };
        base.saturating_add(self.ping_interval)
    }
}

/// Silence after this many pings ends the link.
const MISSES: u8 = 2;
/// Text frames outside JSON, which keep the link alive (SPEC.md FR6).
const PING: &str = "ping";
const PONG: &str = "pong";
const HELLO_ID: &str = "hello";
const CLOSE_NORMAL: u16 = 1000;
const CLOSE_SILENT: u16 = 4001;
const CLOSE_NO_HELLO: u16 = 4008;

#[derive(Debug)]
pub struct Machine {
    config: Config,
    phase: Phase,
    calls: Calls,
    paused: bool,
    next_conn: u64,
    /// Failures in a row.
    failures: u32,
    /// It has been connected, so the address is right.
    was_ready: bool,
    out: VecDeque<Output>,
}

impl Machine {
    pub fn new(config: Config) -> Self {
        Self {
            calls: Calls::new(config.max_open_calls, config.frame_bytes),
            config,
            phase: Phase::Idle,
            paused: false,
            next_conn: 1,
            failures: 0,
            was_ready: false,
            out: VecDeque::new(),
        }
    }

    /// What to do next, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// The latest time for the next [`Input::Tick`].
    pub fn next_tick(&self) -> Option<Millis> {
        let phase = match &self.phase {
            Phase::Dialing { deadline, .. } | Phase::Greeting { deadline, .. } => Some(*deadline),
            Phase::Waiting { until } => Some(*until),
            Phase::Ready(ready) if !self.paused => Some(ready.ping_at()),
            Phase::Idle | Phase::Ready(_) | Phase::Stopped { .. } => None,
        };
        [phase, self.calls.next_deadline()].into_iter().flatten().min()
    }

    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped { .. })
    }

    /// Open requests, sent or not.
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// `jitter` is a fresh random number in `0..1`.
    pub fn handle(&mut self, now: Millis, jitter: f64, input: Input) {
        self.calls.expire(now, &mut self.out);
        match input {
            Input::Start => {
                if matches!(self.phase, Phase::Idle) {
                    self.dial(now);
                }
            }
            Input::Opened { conn, connect } => self.opened(now, jitter, conn, *connect),
            Input::DialFailed { conn, cause, refusal } => {
                if self.current() == Some(conn) && matches!(self.phase, Phase::Dialing { .. }) {
                    match refusal {
                        Some(error) => self.refused(now, jitter, error),
                        None => self.unreachable(now, jitter, cause),
                    }
                }
            }
            Input::Text { conn, text } => {
                if self.current() == Some(conn) {
                    self.heard(now);
                    self.text(now, jitter, &text);
                }
            }
            Input::Chunk { conn, frame } => {
                if self.current() == Some(conn) {
                    self.heard(now);
                    self.chunk(frame);
                }
            }
            Input::SendChunk(frame) => {
                if let Phase::Ready(ready) = &mut self.phase {
                    ready.last_sent = now;
                    let conn = ready.conn;
                    self.out.push_back(Output::SendChunk { conn, frame });
                }
            }
            Input::Alive { conn } => {
                if self.current() == Some(conn) {
                    self.heard(now);
                }
            }
            Input::Closed { conn, code, reason } => {
                if self.current() == Some(conn) {
                    self.closed(now, jitter, code, reason);
                }
            }
            Input::Paused(paused) => {
                if self.paused && !paused {
                    self.heard(now);
                }
                self.paused = paused;
            }
            Input::Call(call) => self.call(now, call),
            Input::Forget { key } => self.calls.forget(key),
            Input::Tick => self.tick(now, jitter),
            Input::Shutdown { reason } => self.shutdown(reason),
        }
    }

    fn current(&self) -> Option<Conn> {
        match &self.phase {
            Phase::Dialing { conn, .. } | Phase::Greeting { conn, .. } => Some(*conn),
            Phase::Ready(ready) => Some(ready.conn),
            Phase::Idle | Phase::Waiting { .. } | Phase::Stopped { .. } => None,
        }
    }

    fn dial(&mut self, now: Millis) {
        let conn = Conn(self.next_conn);
        self.next_conn += 1;
        self.phase = Phase::Dialing {
            conn,
            deadline: now.saturating_add(self.config.handshake_timeout_ms),
        };
        self.out.push_back(Output::Dial { conn });
    }

    fn opened(&mut self, now: Millis, jitter: f64, opened: Conn, connect: ConnectParams) {
        let Phase::Dialing { conn, deadline } = self.phase else {
            return;
        };
        if conn != opened {
            return;
        }
        match EncodedRequest::new(&Request::Connect(connect), self.config.hello_bytes) {
            Ok(encoded) => {
                self.phase = Phase::Greeting { conn, deadline };
                let text = encoded.frame(HELLO_ID);
                self.out.push_back(Output::Send { conn, text });
            }
            Err(error) => {
                let why = match error {
                    CodecError::TooLarge { bytes, limit } => format!("it has {bytes} bytes, a gateway takes {limit}"),
                    error => error.to_string(),
                };
                self.close(conn, CLOSE_NORMAL, "bad connect");
                let row = errors::PROTOCOL_BAD_CONNECT;
                self.refused(now, jitter, row.with_message(format!("{} {why}.", row.text)));
            }
        }
    }

    fn heard(&mut self, now: Millis) {
        if let Phase::Ready(ready) = &mut self.phase {
            ready.last_heard = now;
            ready.unanswered = 0;
        }
    }

    fn text(&mut self, now: Millis, jitter: f64, text: &str) {
        match text {
            PONG => {}
            PING => {
                if let Phase::Ready(ready) = &mut self.phase {
                    ready.last_sent = now;
                    self.out.push_back(Output::Send {
                        conn: ready.conn,
                        text: PONG.into(),
                    });
                }
            }
            _ => match codec::decode(text) {
                Ok(Incoming::Answer { id, outcome }) => self.answered(now, jitter, &id, outcome),
                Ok(Incoming::Event { event, seq }) => self.event(event, seq),
                Ok(Incoming::Request) => self.ignore("a request from the gateway".into()),
                Err(error) => self.ignore(error.to_string()),
            },
        }
    }

    fn answered(&mut self, now: Millis, jitter: f64, id: &str, outcome: Result<Json, ErrorShape>) {
        match (outcome, &self.phase) {
            (Ok(hello), Phase::Greeting { conn, .. }) if id == HELLO_ID => {
                let conn = *conn;
                self.greeted(now, jitter, conn, &hello);
            }
            // Before hello-ok only `connect` was sent, so a refusal answers it, whatever its id.
            (Err(error), Phase::Greeting { conn, .. }) => {
                let conn = *conn;
                self.close(conn, CLOSE_NORMAL, "refused");
                self.refused(now, jitter, error);
            }
            // An unknown id belongs to a call that timed out or was forgotten meanwhile.
            (outcome, _) => match (self.calls.take_by_id(id), outcome) {
                (Some(key), outcome) => self.out.push_back(Output::Answer {
                    key,
                    outcome: outcome.map_err(LinkError::Remote),
                }),
                (None, Err(error)) => self.ignore(format!(
                    "an error that belongs to no request: {} {}",
                    error.reason, error.message
                )),
                (None, Ok(_)) => {}
            },
        }
    }

    fn event(&mut self, event: Event, seq: Option<u64>) {
        if matches!(self.phase, Phase::Greeting { .. }) {
            self.ignore("an event before hello-ok".into());
        } else {
            self.out.push_back(Output::Event { event, seq });
        }
    }

    fn chunk(&mut self, frame: Bytes) {
        if matches!(self.phase, Phase::Ready(_)) {
            self.out.push_back(Output::Chunk { frame });
        } else {
            self.ignore("a binary frame before hello-ok".into());
        }
    }

    fn ignore(&mut self, what: String) {
        self.out.push_back(Output::Ignored { what });
    }

    fn greeted(&mut self, now: Millis, jitter: f64, conn: Conn, hello: &Json) {
        let hello = codec::read_greeting(hello);
        if u64::from(hello.protocol) != limits::PROTOCOL_VERSION {
            let said = match hello.protocol {
                0 => "no version at all".to_owned(),
                version => format!("version {version}"),
            };
            let message = format!(
                "The gateway answered with {said}; this program speaks version {}.",
                limits::PROTOCOL_VERSION
            );
            self.close(conn, CLOSE_NORMAL, "protocol version");
            self.refused(now, jitter, errors::PROTOCOL_VERSION.with_message(message));
            return;
        }
        let ping_interval = match hello.ping_interval_ms {
            Some(wanted) if wanted > 0 => u64::from(wanted).clamp(1000, self.config.ping_interval_ms),
            _ => self.config.ping_interval_ms,
        };
        self.was_ready = true;
        self.phase = Phase::Ready(Ready {
            conn,
            last_sent: now,
            last_heard: now,
            last_ping: now,
            unanswered: 0,
            ping_interval,
        });
        self.out.push_back(Output::Up { hello: Box::new(hello) });
        self.calls.send_waiting(conn, &mut self.out);
    }

    fn call(&mut self, now: Millis, call: NewCall) {
        if let Phase::Stopped { why } = &self.phase {
            self.out.push_back(Output::Answer {
                key: call.key,
                outcome: Err(why.clone()),
            });
            return;
        }
        if self.calls.add(now, call, &mut self.out)
            && let Phase::Ready(ready) = &mut self.phase
        {
            ready.last_sent = now;
            let conn = ready.conn;
            self.calls.send_waiting(conn, &mut self.out);
        }
    }

    fn tick(&mut self, now: Millis, jitter: f64) {
        match &mut self.phase {
            Phase::Dialing { conn, deadline } | Phase::Greeting { conn, deadline } if *deadline <= now => {
                let conn = *conn;
                self.close(conn, CLOSE_NO_HELLO, "no hello-ok in time");
                let seconds = self.config.handshake_timeout_ms / 1000;
                self.unreachable(now, jitter, format!("no greeting within {seconds} s"));
            }
            Phase::Waiting { until } if *until <= now => self.dial(now),
            Phase::Ready(ready) if !self.paused && ready.ping_at() <= now => {
                let conn = ready.conn;
                if ready.unanswered >= MISSES {
                    self.close(conn, CLOSE_SILENT, "no answer to pings");
                    self.lost(now, jitter, "the gateway does not answer pings".into());
                } else {
                    ready.unanswered += 1;
                    ready.last_ping = now;
                    ready.last_sent = now;
                    self.out.push_back(Output::Send {
                        conn,
                        text: PING.into(),
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod boundary_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
