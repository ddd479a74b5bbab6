//! Requests that wait for an answer. Each leaves the table exactly once: answered, timed out, failed or forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use gsv_protocol::codec::{CodecError, EncodedRequest};

use super::interface::{CallKey, Conn, Millis, NewCall, Output};
use crate::error::LinkError;

#[derive(Debug)]
struct Call {
    method: &'static str,
    encoded: EncodedRequest,
    /// May be sent again after the link broke.
    resend: bool,
    timeout_ms: Millis,
    deadline: Millis,
    /// The frame id under which it was sent on the current link.
    sent_as: Option<String>,
    ever_sent: bool,
}

#[derive(Debug)]
pub struct Calls {
    open: BTreeMap<CallKey, Call>,
    /// Not sent on the current link, oldest first.
    waiting: BTreeSet<CallKey>,
    by_id: HashMap<String, CallKey>,
    deadlines: BTreeSet<(Millis, CallKey)>,
    /// Never repeats, so that an id is unique on every link.
    next_id: u64,
    max_open: usize,
    frame_bytes: usize,
}

impl Calls {
    pub fn new(max_open: usize, frame_bytes: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            by_id: HashMap::new(),
            deadlines: BTreeSet::new(),
            next_id: 1,
            max_open,
            frame_bytes,
        }
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn next_deadline(&self) -> Option<Millis> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Adds a call. False when it was answered at once, with an error.
    pub fn add(&mut self, now: Millis, call: NewCall, out: &mut VecDeque<Output>) -> bool {
        let NewCall {
            key,
            request,
            resend,
            timeout_ms,
        } = call;
        if self.open.contains_key(&key) {
            return false;
        }
        let encoded = if self.open.len() >= self.max_open {
            Err(LinkError::Busy { limit: self.max_open })
        } else {
            EncodedRequest::new(&request, self.frame_bytes).map_err(|error| unsendable(request.method(), error))
        };
        let encoded = match encoded {
            Ok(encoded) => encoded,
            Err(error) => {
                out.push_back(Output::Answer {
                    key,
                    outcome: Err(error),
                });
                return false;
            }
        };
        let deadline = now.saturating_add(timeout_ms);
        self.deadlines.insert((deadline, key));
        self.waiting.insert(key);
        self.open.insert(
            key,
            Call {
                method: request.method(),
                encoded,
                resend,
                timeout_ms,
                deadline,
                sent_as: None,
                ever_sent: false,
            },
        );
        true
    }

    pub fn send_waiting(&mut self, conn: Conn, out: &mut VecDeque<Output>) {
        for key in std::mem::take(&mut self.waiting) {
            let Some(call) = self.open.get_mut(&key) else { continue };
            let id = self.next_id.to_string();
            self.next_id += 1;
            out.push_back(Output::Send {
                conn,
                text: call.encoded.frame(&id),
            });
            call.ever_sent = true;
            call.sent_as = Some(id.clone());
            self.by_id.insert(id, key);
        }
    }

    pub fn take_by_id(&mut self, id: &str) -> Option<CallKey> {
        let key = *self.by_id.get(id)?;
        self.remove(key).map(|_| key)
    }

    pub fn forget(&mut self, key: CallKey) {
        self.remove(key);
    }

    pub fn expire(&mut self, now: Millis, out: &mut VecDeque<Output>) {
        while let Some((at, key)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            // Each deadline is that of an open call.
            let Some(call) = self.remove(key) else { break };
            let uncertain = call.ever_sent && !call.resend;
            let error = LinkError::Timeout {
                method: call.method.to_owned(),
                after_ms: call.timeout_ms,
                uncertain,
            };
            out.push_back(Output::Answer {
                key,
                outcome: Err(error),
            });
        }
    }

    /// Calls that may be sent again wait for the next link; the outcome of the others is unknown.
    pub fn link_broke(&mut self, out: &mut VecDeque<Output>) {
        let sent: Vec<CallKey> = self
            .by_id
            .drain()
            .map(|(_, key)| key)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for key in sent {
            let Some(call) = self.open.get_mut(&key) else { continue };
            call.sent_as = None;
            if call.resend {
                self.waiting.insert(key);
            } else if let Some(call) = self.remove(key) {
                out.push_back(Output::Answer {
                    key,
                    outcome: Err(LinkError::OutcomeUnknown {
                        method: call.method.to_owned(),
                    }),
                });
            }
        }
    }

    /// The link has ended and does not come back.
    pub fn fail_all(&mut self, why: &LinkError, out: &mut VecDeque<Output>) {
        let empty = Self {
            next_id: self.next_id,
            ..Self::new(self.max_open, self.frame_bytes)
        };
        for (key, call) in std::mem::replace(self, empty).open {
            let uncertain = call.sent_as.is_some() && !call.resend;
            let error = if uncertain {
                LinkError::OutcomeUnknown {
                    method: call.method.to_owned(),
                }
            } else {
                why.clone()
            };
            out.push_back(Output::Answer {
                key,
                outcome: Err(error),
            });
        }
    }

    fn remove(&mut self, key: CallKey) -> Option<Call> {
        let call = self.open.remove(&key)?;
        self.waiting.remove(&key);
        self.deadlines.remove(&(call.deadline, key));
        if let Some(id) = &call.sent_as {
            self.by_id.remove(id);
        }
        Some(call)
    }
}

fn unsendable(method: &str, error: CodecError) -> LinkError {
    match error {
        CodecError::TooLarge { bytes, limit } => LinkError::TooLarge {
            method: method.to_owned(),
            bytes,
            limit,
        },
        error => LinkError::BadRequest {
            method: method.to_owned(),
            why: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_call;
    use super::*;

    #[test]
    fn nothing_is_left_of_a_call_that_was_answered_or_forgotten() {
        let mut calls = Calls::new(8, 1_000_000);
        let mut out = VecDeque::new();
        assert!(calls.add(0, new_call(1, true, 1_000), &mut out));
        calls.forget(CallKey(1));
        assert!(calls.waiting.is_empty(), "{calls:?}");
        assert!(calls.add(0, new_call(2, true, 1_000), &mut out));
        calls.send_waiting(Conn(1), &mut out);
        assert_eq!(calls.take_by_id("1"), Some(CallKey(2)));
        assert!(
            calls.open.is_empty() && calls.waiting.is_empty() && calls.by_id.is_empty() && calls.deadlines.is_empty(),
            "{calls:?}"
        );
    }
}
