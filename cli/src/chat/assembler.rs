//! From the events of one run to what is to be shown, exactly once (SPEC.md C3 to C5). Pure.
//!
//! Deltas may come late, twice, out of order, or not at all; log events may be replayed after a reconnect. What is shown
//! is always a beginning of what the gateway says, and in the end all of it: `partial.message` and `final.message` are the
//! truth. When a new attempt says the same again it is shown on from where the old one stopped; when it says something
//! else, the view is told to start again.

use std::collections::{BTreeMap, HashSet};

use gsv_protocol::types::{ChatEvent, ChatMessage, ChatState, ChatTool, ChatToolPhase, Usage};
use serde_json::Value;

/// Deltas that wait for an earlier one; more are dropped, and the log event brings their text.
const MAX_PENDING: usize = 4_096;

#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// Continues the text.
    Text(String),
    /// What was shown of the present text is void; it begins again.
    Restart,
    /// The text of this step is whole.
    EndOfText,
    /// The gateway began a model call anew.
    Resuming,
    Tool(ChatTool),
    /// The run waits, or goes on: a sentence.
    Status(String),
    /// The run waits for a decision.
    Paused(String),
    End(Ending),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Final { usage: Option<Usage> },
    Error { message: String, reason: Option<String> },
    Aborted,
}

/// What makes a log event the same one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EventKey {
    seq: u64,
    state: ChatState,
    call: Option<(String, ChatToolPhase)>,
}

/// A place in a run: which model call, and which try of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    step: u32,
    attempt: u32,
}

#[derive(Debug, Default)]
pub struct Assembler {
    seen: HashSet<EventKey>,
    at: Option<At>,
    /// Steps up to this one are whole.
    settled: Option<u32>,
    /// The present attempt's text, as far as it is known without a hole.
    text: String,
    /// Its length in UTF-16 units, in which offsets count.
    units: u64,
    /// What the view has of this step. Always either equal to `text`, or longer and beginning with it.
    shown: String,
    /// Deltas beyond a hole, by offset.
    pending: BTreeMap<u64, String>,
    ended: bool,
}

impl Assembler {
    /// Whether a log event was taken before. Events without a number are not of the log and never repeat by themselves.
    pub fn is_repeated(&mut self, event: &ChatEvent) -> bool {
        let Some(seq) = event.session_seq else { return false };
        let call = event.tool.as_ref().map(|tool| (tool.call_id.0.clone(), tool.phase));
        !self.seen.insert(EventKey {
            seq,
            state: event.state,
            call,
        })
    }

    /// One event of the run that has not been taken before.
    pub fn take(&mut self, event: &ChatEvent) -> Vec<Show> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        match event.state {
            ChatState::Delta => {
                let at = self.place(event);
                self.delta(at, event.offset, event.text.as_deref().unwrap_or_default(), &mut out);
            }
            ChatState::Partial => {
                let at = self.place(event);
                self.settle(at, event, &mut out);
            }
            ChatState::Final => {
                let at = self.place(event);
                self.settle(at, event, &mut out);
                self.end(
                    Ending::Final {
                        usage: event.usage.clone(),
                    },
                    &mut out,
                );
            }
            ChatState::Error => {
                let message = event.error.clone().or_else(|| event.text.clone()).unwrap_or_default();
                self.end(
                    Ending::Error {
                        message,
                        reason: event.reason.clone(),
                    },
                    &mut out,
                );
            }
            ChatState::Aborted => self.end(Ending::Aborted, &mut out),
            ChatState::Tool => out.extend(event.tool.clone().map(Show::Tool)),
            ChatState::Status => out.extend(words(event).map(Show::Status)),
            ChatState::Paused => out.push(Show::Paused(words(event).unwrap_or_default())),
        }
        out
    }

    /// The text of the model call under way, from `session.subscribe`.
    pub fn snapshot(&mut self, step: u32, attempt: u32, text: &str) -> Vec<Show> {
        let mut out = Vec::new();
        if !self.ended {
            self.delta(At { step, attempt }, Some(0), text, &mut out);
        }
        out
    }

    /// Gateways that name no step count one by themselves.
    fn place(&self, event: &ChatEvent) -> At {
        let next = self.settled.map_or(0, |settled| settled.saturating_add(1));
        let present = self.at.map_or(next, |at| at.step.max(next));
        let step = event.step.unwrap_or(present);
        let attempt = event
            .attempt
            .unwrap_or_else(|| self.at.filter(|at| at.step == step).map_or(0, |at| at.attempt));
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

    /// Moves on to a later place. What was shown of an unfinished one stays until it proves wrong.
    fn enter(&mut self, at: At, out: &mut Vec<Show>) {
        if self.at == Some(at) {
            return;
        }
        if self.at.is_some_and(|present| present.step == at.step) {
            out.push(Show::Resuming);
        } else if !self.shown.is_empty() && self.shown.trim().is_empty() {
            // A step that said nothing but white space has no event with its text.
            self.shown.clear();
            out.push(Show::EndOfText);
        }
        self.at = Some(at);
        self.text.clear();
        self.units = 0;
        self.pending.clear();
    }

    /// Adds what of `text`, which begins at `offset`, is new.
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
            // The new attempt says what is shown already.
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

    /// The whole text of a step, from a log event.
    fn settle(&mut self, at: At, event: &ChatEvent, out: &mut Vec<Show>) {
        if self.settled.is_some_and(|settled| at.step <= settled) {
            return;
        }
        let full = event
            .message
            .as_ref()
            .map(message_text)
            .or_else(|| event.text.clone())
            .unwrap_or_default();
        if let Some(rest) = full.strip_prefix(self.shown.as_str()) {
            if !rest.is_empty() {
                out.push(Show::Text(rest.to_owned()));
            }
        } else {
            out.push(Show::Restart);
            if !full.is_empty() {
                out.push(Show::Text(full.clone()));
            }
        }
        if !full.is_empty() {
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
        if !std::mem::take(&mut self.shown).is_empty() {
            out.push(Show::EndOfText);
        }
        self.ended = true;
        out.push(Show::End(ending));
    }
}

fn words(event: &ChatEvent) -> Option<String> {
    event
        .text
        .clone()
        .or_else(|| event.message.as_ref().map(message_text))
        .filter(|text| !text.trim().is_empty())
}

/// The text blocks of a message, one after the other.
pub fn message_text(message: &ChatMessage) -> String {
    let text = |block: &serde_json::Map<String, Value>| match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    message.content.iter().filter_map(text).collect()
}

/// `text` without its first `units` UTF-16 units. `None` when it is not that long, or the border is inside a character.
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
