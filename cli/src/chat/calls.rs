//! The tool calls that a chat has shown, by number, for `/tool N`. Pure.

use std::collections::VecDeque;

use gsv_protocol::types::{CallId, ChatTool, ChatToolPhase, ToolOutput};
use serde_json::Value;

use crate::clean::one_line;

/// Calls that are remembered; older ones are in `gsv why`.
const MOST: usize = 200;
/// Calls that `/tool` lists.
pub const LISTED: usize = 20;
const ARGS_COLUMNS: usize = 72;

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub number: usize,
    pub id: CallId,
    /// The tool and its arguments, cleaned.
    pub words: String,
    /// Absent: it has not ended, or the gateway gives none.
    pub output: Option<ToolOutput>,
}

impl Call {
    /// All of the output, when the chat has it.
    pub fn text(&self) -> Option<&str> {
        let output = self.output.as_ref().filter(|output| output.tail.is_none())?;
        Some(&output.head)
    }
}

/// `/tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAsk {
    List,
    Show(usize),
    Unclear,
}

impl ToolAsk {
    pub fn read(words: &str) -> Self {
        match (words.is_empty(), words.parse()) {
            (true, _) => Self::List,
            (false, Ok(number)) => Self::Show(number),
            (false, Err(_)) => Self::Unclear,
        }
    }
}

#[derive(Debug, Default)]
pub struct Calls {
    calls: VecDeque<Call>,
    last: usize,
}

impl Calls {
    /// Takes note of a call that begins or has ended. Gives its number.
    pub fn note(&mut self, tool: &ChatTool) -> usize {
        let name = one_line(&tool.name, ARGS_COLUMNS);
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == tool.call_id) {
            if tool.phase == ChatToolPhase::Ended {
                call.output.clone_from(&tool.output);
            }
            return call.number;
        }
        let args = tool.args.as_ref().map(args_summary).unwrap_or_default();
        let gap = if args.is_empty() { "" } else { " " };
        self.last += 1;
        self.calls.push_back(Call {
            number: self.last,
            id: tool.call_id.clone(),
            words: format!("{name}{gap}{args}"),
            output: tool.output.clone(),
        });
        if self.calls.len() > MOST {
            self.calls.pop_front();
        }
        self.last
    }

    pub fn find(&self, number: usize) -> Option<&Call> {
        self.calls.iter().find(|call| call.number == number)
    }

    /// The last ones, in their order.
    pub fn listed(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().skip(self.calls.len().saturating_sub(LISTED))
    }
}

/// The value of the one argument that tells most about a call, else all arguments.
pub fn args_summary(args: &Value) -> String {
    const KNOWN: [&str; 7] = ["command", "path", "pattern", "query", "url", "action", "instructions"];
    let known = KNOWN.iter().find_map(|key| args.get(key).and_then(Value::as_str));
    match known {
        Some(text) => one_line(text, ARGS_COLUMNS),
        None if args.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => one_line(&args.to_string(), ARGS_COLUMNS),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    pub fn tool(phase: ChatToolPhase) -> ChatTool {
        ChatTool {
            call_id: CallId("c".to_owned()),
            name: "laptop__Bash".to_owned(),
            phase,
            args: Some(json!({"command": "uname -a\u{1b}[31m"})),
            outcome: None,
            preview: None,
            output: None,
            duration_ms: None,
            exit_code: None,
            note: None,
            signal: None,
        }
    }

    #[test]
    fn arguments_without_a_known_name_are_all_shown() {
        assert_eq!(args_summary(&json!({"a": 1})), "{\"a\":1}");
        assert_eq!(args_summary(&json!({})), "");
    }

    #[test]
    fn ct4_calls_are_numbered_in_order_and_keep_their_number() {
        let mut calls = Calls::default();
        let of = |id: usize, phase| ChatTool {
            call_id: CallId(id.to_string()),
            ..tool(phase)
        };
        assert_eq!(calls.note(&of(1, ChatToolPhase::Started)), 1);
        assert_eq!(calls.note(&of(2, ChatToolPhase::Started)), 2);
        let output = ToolOutput {
            head: "x".to_owned(),
            tail: None,
            lines: 1,
        };
        let ended = ChatTool {
            output: Some(output),
            ..of(1, ChatToolPhase::Ended)
        };
        assert_eq!(calls.note(&ended), 1);
        assert_eq!(calls.find(1).and_then(Call::text), Some("x"));
        assert_eq!(calls.find(2).and_then(Call::text), None);
        assert_eq!(calls.find(1).unwrap().words, "laptop__Bash uname -a");
        for id in 3..=MOST + 5 {
            calls.note(&of(id, ChatToolPhase::Started));
        }
        assert!(calls.find(5).is_none() && calls.find(6).is_some());
        assert_eq!(calls.listed().last().map(|call| call.number), Some(MOST + 5));
        assert_eq!(calls.listed().count(), LISTED);
    }

    #[test]
    fn ct4_a_number_is_asked_for() {
        assert_eq!(ToolAsk::read(""), ToolAsk::List);
        assert_eq!(ToolAsk::read("12"), ToolAsk::Show(12));
        for unclear in ["x", "1 2", "-1"] {
            assert_eq!(ToolAsk::read(unclear), ToolAsk::Unclear, "{unclear}");
        }
    }
}
