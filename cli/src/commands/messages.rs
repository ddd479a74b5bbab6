//! A stored message as text: its blocks, its speaker, and how it looks in a terminal. Does not know where messages come from.

use serde_json::Value;

use crate::chat::calls::args_summary;
use crate::clean::{clean, one_line};
use crate::markdown::{self, Look};
use crate::output::{Output, Style};
use crate::units::time;

const RESULT_COLUMNS: usize = 100;

/// A string field, empty if there is none.
pub fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// When a message was stored, empty if it does not say.
pub fn time_of(message: &Value) -> String {
    message
        .get("timestamp")
        .and_then(Value::as_u64)
        .map(time)
        .unwrap_or_default()
}

/// The speaker, as a heading.
pub fn speaker(message: &Value) -> String {
    match text_at(message, "role") {
        "user" if is_summary(message) => "Summary".to_owned(),
        "user" if by_itself(&words(message)).is_some() => "GSV".to_owned(),
        "user" => "You".to_owned(),
        "assistant" => "Agent".to_owned(),
        "toolResult" => "Tool".to_owned(),
        "note" => noted(text_at(message, "kind")).to_owned(),
        "" => "?".to_owned(),
        other => one_line(other, 40),
    }
}

/// Whether this is something that happened beside the messages, such as a reminder.
pub fn is_note(message: &Value) -> bool {
    text_at(message, "role") == "note"
}

/// What a note reports, as a heading.
fn noted(kind: &str) -> &'static str {
    match kind {
        "late" => "Late result",
        "error" => "Run failed",
        "aborted" => "Run stopped",
        _ => "Note",
    }
}

/// Whether a compaction wrote this message in the place of older ones.
pub fn is_summary(message: &Value) -> bool {
    let blocks = blocks(message);
    let text = blocks.iter().find_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    text.is_some_and(|text| text.starts_with("[Summary made by GSV"))
}

/// What the gateway wrote to begin a run by itself: who wanted it (`job "Weather"`, `heartbeat`), and what for.
pub fn by_itself(text: &str) -> Option<(String, &str)> {
    let (head, wanted) = text
        .strip_prefix('[')?
        .split_once(" No person has written this just now.]\n")?;
    if head == "This is a heartbeat." {
        return Some(("heartbeat".to_owned(), wanted));
    }
    let (name, _) = head.strip_prefix("The job ")?.rsplit_once(" runs now")?;
    Some((format!("job {name}"), wanted))
}

/// A part of a message.
#[derive(Debug, PartialEq)]
pub enum Block {
    Text(String),
    Call {
        name: String,
        args: Value,
    },
    /// Anything that is not text, in a word.
    Other(String),
}

/// The blocks of a message, without thoughts.
pub fn blocks(message: &Value) -> Vec<Block> {
    match message.get("content") {
        Some(Value::String(text)) => vec![Block::Text(text.clone())],
        Some(Value::Array(content)) => content.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

/// What the model thought before it wrote. Providers hide some of it.
pub fn thoughts(message: &Value) -> Vec<&str> {
    let content = message.get("content").and_then(Value::as_array);
    let thoughts = content
        .into_iter()
        .flatten()
        .filter(|block| text_at(block, "type") == "thinking");
    thoughts
        .map(|block| text_at(block, "thinking"))
        .filter(|text| !text.is_empty())
        .collect()
}

fn block(block: &Value) -> Option<Block> {
    Some(match text_at(block, "type") {
        "thinking" => return None,
        "text" => Block::Text(text_at(block, "text").to_owned()),
        "toolCall" => Block::Call {
            name: one_line(text_at(block, "name"), RESULT_COLUMNS),
            args: block.get("arguments").cloned().unwrap_or(Value::Null),
        },
        kind => {
            let mut words = if kind.is_empty() { "unknown" } else { kind }.to_owned();
            let names = ["filename", "r2Key", "mimeType"].map(|field| text_at(block, field));
            if let Some(name) = names.iter().find(|name| !name.is_empty()) {
                words = format!("{words}: {name}");
            }
            let transcript = text_at(block, "transcript");
            if !transcript.is_empty() {
                words = format!("{words} - {transcript}");
            }
            Block::Other(format!("[{words}]"))
        }
    })
}

/// A message as plain text.
pub fn words(message: &Value) -> String {
    let words = blocks(message).into_iter().map(|block| match block {
        Block::Text(words) | Block::Other(words) => words,
        Block::Call { name, args } => format!("[calls {name} {args}]"),
    });
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The message before the newest answer with this text: when answers come quickly, later messages are already there. Without such an
/// answer, the newest message of a person.
pub fn question_before(messages: &[Value], answer: Option<&str>) -> Option<String> {
    let compared = |text: &str| text.split_whitespace().collect::<String>();
    let is_it = |message: &Value, text: &str| {
        text_at(message, "role") == "assistant" && compared(&words(message)) == compared(text)
    };
    let at = answer.and_then(|text| messages.iter().rposition(|message| is_it(message, text)));
    let before = messages.get(..at.unwrap_or(messages.len())).unwrap_or_default();
    let asked = before.iter().rev().find(|message| text_at(message, "role") == "user");
    asked.map(words)
}

/// A message with its heading; the result of a tool in one line.
pub fn print(out: Output, message: &Value) {
    if text_at(message, "role") == "toolResult" {
        return out.line(&result_line(out, message));
    }
    let speaker = out.paint(Style::Bold, &speaker(message));
    let at = out.paint(Style::Dim, &time_of(message));
    out.line(format!("{speaker}  {at}").trim_end());
    for block in blocks(message) {
        match block {
            Block::Text(text) if text.trim().is_empty() => {}
            Block::Text(text) if out.tty => {
                let look = Look {
                    width: out.size().0,
                    colour: out.colour(),
                };
                out.piece(&markdown::render(&text, look));
            }
            Block::Text(text) => out.piece(&format!("{}\n", clean(&text).trim_end_matches('\n'))),
            Block::Call { name, args } => {
                let (mark, name) = (out.paint(Style::Cyan, "●"), out.paint(Style::Bold, &name));
                out.line(format!("{mark} {name} {}", args_summary(&args)).trim_end());
            }
            Block::Other(words) => out.line(&clean(&words)),
        }
    }
    out.line("");
}

/// `● laptop__Bash ok: first words`.
fn result_line(out: Output, message: &Value) -> String {
    let failed = message.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let (style, state) = if failed {
        (Style::Red, "failed")
    } else {
        (Style::Green, "ok")
    };
    let words = one_line(&words(message), RESULT_COLUMNS);
    let name = one_line(text_at(message, "toolName"), RESULT_COLUMNS);
    let colon = if words.is_empty() { "" } else { ": " };
    format!(
        "{} {} {}{colon}{}",
        out.paint(style, "●"),
        out.paint(Style::Bold, &name),
        out.paint(style, state),
        out.paint(Style::Dim, &words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_shown_with_its_own_question_also_when_others_have_come_since() {
        let said = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
        let messages = [
            said("user", "first"),
            said("assistant", "It is\none."),
            said("user", "second"),
            said("assistant", "two"),
            said("user", "third"),
        ];
        let question = |answer| question_before(&messages, answer);
        assert_eq!(question(Some("It is one.")).as_deref(), Some("first"));
        assert_eq!(question(Some("two")).as_deref(), Some("second"));
        assert_eq!(question(Some("an answer that is not there")).as_deref(), Some("third"));
        assert_eq!(question(None).as_deref(), Some("third"));
        assert_eq!(question_before(&[], Some("two")), None);
    }

    #[test]
    fn the_heading_of_a_note_says_what_it_reports() {
        for (kind, heading) in [
            ("note", "Note"),
            ("late", "Late result"),
            ("error", "Run failed"),
            ("aborted", "Run stopped"),
            ("newer", "Note"),
        ] {
            let note = json!({"role": "note", "kind": kind, "content": "Call the dentist."});
            assert_eq!((speaker(&note).as_str(), is_note(&note)), (heading, true));
            assert_eq!(words(&note), "Call the dentist.");
        }
    }

    #[test]
    fn a_message_is_made_of_blocks() {
        let message = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Look:"},
            {"type": "toolCall", "name": "laptop__Bash", "arguments": {"command": "ls"}},
            {"type": "image", "r2Key": "media/x/1.png", "filename": "cat.png"},
            {"type": "audio", "r2Key": "media/x/2.ogg", "transcript": "hello"}]});
        assert_eq!(
            blocks(&message),
            [
                Block::Text("Look:".to_owned()),
                Block::Call {
                    name: "laptop__Bash".to_owned(),
                    args: json!({"command": "ls"})
                },
                Block::Other("[image: cat.png]".to_owned()),
                Block::Other("[audio: media/x/2.ogg - hello]".to_owned()),
            ]
        );
        assert_eq!(
            words(&message),
            "Look:\n[calls laptop__Bash {\"command\":\"ls\"}]\n[image: cat.png]\n[audio: media/x/2.ogg - hello]"
        );
        assert_eq!(words(&json!({"role": "user", "content": "hi"})), "hi");
        assert_eq!(
            speaker(&json!({"role": "user", "content": "[Summary made by GSV, not ...]"})),
            "Summary"
        );
    }

    #[test]
    fn what_begins_by_itself_is_not_a_message_of_the_person() {
        let late = "[The job \"Call \"mum\"\" runs now, 5 min late: it was due at 2026-11-23 09:00 (UTC). No person has written this just now.]\nCall mum";
        assert_eq!(by_itself(late), Some(("job \"Call \"mum\"\"".to_owned(), "Call mum")));
        let beat = "[This is a heartbeat. No person has written this just now.]\nLook.";
        assert_eq!(by_itself(beat), Some(("heartbeat".to_owned(), "Look.")));
        assert_eq!(by_itself("[The job is done.]\nThanks"), None);
        assert_eq!(speaker(&json!({"role": "user", "content": late})), "GSV");
        assert_eq!(speaker(&json!({"role": "user", "content": "hello"})), "You");
    }

    #[test]
    fn th19_a_result_is_one_clean_line() {
        let message = json!({"role": "toolResult", "toolName": "lap__Bash\u{1b}[2J", "isError": true,
            "content": [{"type": "text", "text": "one\n\u{1b}[31mtwo"}]});
        assert_eq!(result_line(Output::plain(), &message), "● lap__Bash failed: one two");
    }
}
