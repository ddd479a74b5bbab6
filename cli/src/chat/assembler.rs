//! Turns the events of one run into what to show, exactly once (SPEC.md C3 to C5). Pure.
//!
//! Deltas may be late, repeated, out of order or lost; log events may be replayed after a reconnect. The shown text is always
//! a prefix of the gateway's text, and in the end all of it: `partial.message` and `final.message` decide. A new attempt with
//! the same text continues the shown text; one with another text makes the view start again.

use std::collections::{BTreeMap, HashSet};
use std::mem::{Discriminant, discriminant};

use gsv_protocol::types::{ChatEvent, ChatMessage, ChatTool, ChatToolPhase, Usage};
use serde_json::Value;

use super::files::{SentFile, files_of};

/// Deltas that wait for an earlier one. Further ones are dropped; the log event has their text.
const MAX_PENDING: usize = 4_096;
/// In place of thoughts that were not sent.
const GAP: &str = "[…]\n";

#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// The text goes on.
    Text(String),
    /// The thoughts go on.
    Thinking(String),
    /// The shown part of this text is wrong; the text starts again.
    Restart,
    /// The text of this step is complete.
    EndOfText,
    /// The gateway repeats a model call.
    Resuming,
    Tool(ChatTool),
    /// The agent sends a file with its answer.
    File(SentFile),
    /// The run waits or continues, in words.
    Status(String),
    /// A call, or the run itself, waits for a word. An older gateway sends no code.
    Paused {
        text: String,
        code: Option<String>,
        about_limit: bool,
    },
    End(Ending),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Final {
        usage: Option<Usage>,
    },
    /// `hint`: the end of the message, when that is what to do.
    Error {
        message: String,
        reason: Option<String>,
        hint: Option<String>,
    },
    Aborted,
}

/// The identity of a log event.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EventKey {
    seq: u64,
    state: Discriminant<ChatEvent>,
    call: Option<(String, ChatToolPhase)>,
}

/// A position in a run: the model call and its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    step: u32,
    attempt: u32,
}

#[derive(Debug, Default)]
pub struct Assembler {
    seen: HashSet<EventKey>,
    at: Option<At>,
    /// Steps up to this one are complete.
    settled: Option<u32>,
    /// The text of the current attempt, up to the first gap.
    text: String,
    /// Its length in UTF-16 units, the unit of offsets.
    units: u64,
    /// The text that the view shows for this step. It equals `text` or begins with it.
    shown: String,
    /// Deltas after a gap, by offset.
    pending: BTreeMap<u64, String>,
    /// UTF-16 units of the thoughts of the current attempt.
    thought: u64,
    /// The last thought is not ended by a text.
    thinks: bool,
    ended: bool,
}

impl Assembler {
    /// Whether a log event was seen before. Events without a number are not in the log and are never replayed.
    pub fn is_repeated(&mut self, event: &ChatEvent) -> bool {
        let Some(seq) = session_seq(event) else { return false };
        let call = match event {
            ChatEvent::Tool { tool, .. } => Some((tool.call_id.0.clone(), tool.phase)),
            _ => None,
        };
        !self.seen.insert(EventKey {
            seq,
            state: discriminant(event),
            call,
        })
    }

    /// Takes one event of the run that was not seen before.
    pub fn take(&mut self, event: &ChatEvent) -> Vec<Show> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        match event {
            ChatEvent::Delta {
                text,
                step,
                attempt,
                offset,
                ..
            } => {
                let at = self.place(*step, *attempt);
                self.delta(at, *offset, text, &mut out);
            }
            ChatEvent::Thinking {
                text,
                step,
                attempt,
                offset,
                ..
            } => {
                let at = self.place(*step, *attempt);
                self.thinking(at, *offset, text, &mut out);
            }
            ChatEvent::Partial {
                message, step, attempt, ..
            } => {
                let at = self.place(*step, *attempt);
                self.settle(at, &message_text(message), &mut out);
            }
            ChatEvent::Final {
                message,
                usage,
                step,
                attempt,
                ..
            } => {
                let at = self.place(*step, *attempt);
                self.settle(at, &message_text(message), &mut out);
                out.extend(files_of(message).into_iter().map(Show::File));
                self.end(Ending::Final { usage: usage.clone() }, &mut out);
            }
            ChatEvent::Error {
                error, reason, hint, ..
            } => {
                let message = error.clone().unwrap_or_default();
                let (reason, hint) = (reason.clone(), hint.clone());
                self.end(Ending::Error { message, reason, hint }, &mut out);
            }
            ChatEvent::Aborted { .. } => self.end(Ending::Aborted, &mut out),
            ChatEvent::Tool { tool, .. } => out.push(Show::Tool(tool.clone())),
            ChatEvent::Status { text, .. } if text.trim().is_empty() => {}
            ChatEvent::Status { text, .. } => out.push(Show::Status(text.clone())),
            ChatEvent::Paused {
                text,
                approval_id,
                limit,
                ..
            } => out.push(Show::Paused {
                text: text.clone().unwrap_or_default(),
                code: approval_id.clone(),
                about_limit: limit.unwrap_or_default(),
            }),
        }
        out
    }

    /// Takes the text of the current model call, from `session.subscribe`.
    pub fn snapshot(&mut self, step: u32, attempt: u32, text: &str) -> Vec<Show> {
        let mut out = Vec::new();
        if !self.ended {
            self.delta(At { step, attempt }, Some(0), text, &mut out);
        }
        out
    }

    /// For a gateway that names no steps, counts them.
    fn place(&self, step: Option<u32>, attempt: Option<u32>) -> At {
        let next = self.settled.map_or(0, |settled| settled.saturating_add(1));
        let present = self.at.map_or(next, |at| at.step.max(next));
        let step = step.unwrap_or(present);
        let attempt = attempt.unwrap_or_else(|| self.at.filter(|at| at.step == step).map_or(0, |at| at.attempt));
        At { step, attempt }
    }

    fn delta(&mut self, at: At, offset: Option<u64>, text: &str, out: &mut Vec<Show>) {
        if self.settled.is_some_and(|settled| at.step <= settled) || self.at.is_some_and(|present| at < present) {
            return;
        }
        self.enter(at, out);
        let offset = offset.unwrap_or(self.units);
        if offset > self.units {
            if self.pending.len() < MAX_PENDING {
                let known = self.pending.entry(offset).or_default();
                if known.len() < text.len() {
                    text.clone_into(known);
                }
            }
            return;
        }
        self.append(offset, text, out);
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() <= self.units) {
            let (offset, text) = entry.remove_entry();
            self.append(offset, &text, out);
        }
    }

    /// Thoughts are sent once. Where a part was not, a mark stands in its place.
    fn thinking(&mut self, at: At, offset: Option<u64>, text: &str, out: &mut Vec<Show>) {
        if self.settled.is_some_and(|settled| at.step <= settled) || self.at.is_some_and(|present| at < present) {
            return;
        }
        self.enter(at, out);
        let offset = offset.unwrap_or(self.thought);
        let gap = if offset > self.thought { GAP } else { "" };
        self.thought = self.thought.max(offset);
        let Some(new) = skip_units(text, self.thought - offset).filter(|new| !new.is_empty()) else {
            return;
        };
        self.thought += new.encode_utf16().count() as u64;
        self.thinks = true;
        out.push(Show::Thinking(format!("{gap}{new}")));
    }

    /// Moves on to a later position. The text of an unfinished one stays on the screen until it proves wrong.
    fn enter(&mut self, at: At, out: &mut Vec<Show>) {
        if self.at == Some(at) {
            return;
        }
        if self.at.is_some_and(|present| present.step == at.step) {
            out.push(Show::Resuming);
        } else if !self.shown.is_empty() && self.shown.trim().is_empty() {
            // A step with nothing but white space has no event with its text.
            self.shown.clear();
            out.push(Show::EndOfText);
        }
        self.at = Some(at);
        self.text.clear();
        self.units = 0;
        self.thought = 0;
        self.pending.clear();
    }

    /// Adds the new part of `text`, which begins at `offset`.
    fn append(&mut self, offset: u64, text: &str, out: &mut Vec<Show>) {
        let Some(new) = skip_units(text, self.units - offset) else {
            return;
        };
        if new.is_empty() {
            return;
        }
        let from = self.text.len();
        self.text.push_str(new);
        self.units += new.encode_utf16().count() as u64;
        let ahead = &self.shown.as_bytes()[from..];
        if ahead.starts_with(new.as_bytes()) {
            // The new attempt repeats the shown text.
        } else if let Some(rest) = new.as_bytes().strip_prefix(ahead) {
            let rest = new[new.len() - rest.len()..].to_owned();
            self.shown.push_str(&rest);
            out.push(Show::Text(rest));
        } else {
            self.text.clone_into(&mut self.shown);
            out.push(Show::Restart);
            out.push(Show::Text(self.text.clone()));
        }
    }

    /// Takes the complete text of a step, from a log event.
    fn settle(&mut self, at: At, full: &str, out: &mut Vec<Show>) {
        if self.settled.is_some_and(|settled| at.step <= settled) {
            return;
        }
        if let Some(rest) = full.strip_prefix(self.shown.as_str()) {
            if !rest.is_empty() {
                out.push(Show::Text(rest.to_owned()));
            }
        } else {
            out.push(Show::Restart);
            if !full.is_empty() {
                out.push(Show::Text(full.to_owned()));
            }
        }
        if std::mem::take(&mut self.thinks) || !full.is_empty() {
            out.push(Show::EndOfText);
        }
        self.settled = Some(at.step);
        self.at = Some(at);
        self.text.clear();
        self.units = 0;
        self.shown.clear();
        self.pending.clear();
    }

    fn end(&mut self, ending: Ending, out: &mut Vec<Show>) {
        let thinks = std::mem::take(&mut self.thinks);
        if !std::mem::take(&mut self.shown).is_empty() || thinks {
            out.push(Show::EndOfText);
        }
        self.ended = true;
        out.push(Show::End(ending));
    }
}

/// The event's place in the session's log; `None` for events that are not of the log.
pub fn session_seq(event: &ChatEvent) -> Option<u64> {
    match event {
        ChatEvent::Delta { .. } | ChatEvent::Thinking { .. } => None,
        ChatEvent::Status { session_seq, .. }
        | ChatEvent::Partial { session_seq, .. }
        | ChatEvent::Tool { session_seq, .. }
        | ChatEvent::Paused { session_seq, .. }
        | ChatEvent::Final { session_seq, .. }
        | ChatEvent::Error { session_seq, .. }
        | ChatEvent::Aborted { session_seq, .. } => *session_seq,
    }
}

/// The text blocks of a message, joined.
pub fn message_text(message: &ChatMessage) -> String {
    let text = |block: &serde_json::Map<String, Value>| match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    message.content.iter().filter_map(text).collect()
}

/// `text` without its first `units` UTF-16 units. `None` when it is shorter, or when the cut is inside a character.
fn skip_units(text: &str, units: u64) -> Option<&str> {
    let mut left = units;
    for (at, c) in text.char_indices() {
        if left == 0 {
            return Some(&text[at..]);
        }
        left = left.checked_sub(c.len_utf16() as u64)?;
    }
    (left == 0).then_some("")
}

#[cfg(test)]
#[path = "assembler_tests.rs"]
mod tests;
