//! How a conversation looks: on a terminal (Markdown, live), in a pipe (plain text), as JSON lines. Everything that came
//! from the gateway is cleaned before it is shown.

use gsv_protocol::types::{ChatEvent, ChatTool, ChatToolPhase, ToolOutcome, Usage};
use serde_json::{Value, json};

use super::assembler::Show;
use super::live::{Live, Screen};
use crate::clean::{Cleaner, clean, one_line};
use crate::output::{Output, Style};
use crate::units;

const ARGS_COLUMNS: usize = 72;

pub enum View {
    Live(Output, Live),
    Plain(Output, Box<Plain>),
    Json(Output),
}

impl View {
    pub fn new(out: Output) -> Self {
        if out.json {
            Self::Json(out)
        } else if out.tty {
            Self::Live(out, Live::default())
        } else {
            Self::Plain(out, Box::default())
        }
    }

    /// A chat event as it came, once. Only JSON shows events themselves.
    pub fn event(&self, event: &ChatEvent) {
        if let Self::Json(out) = self {
            let mut value = serde_json::to_value(event).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("type".to_owned(), Value::from("chat"));
            }
            out.json_line(&value);
        }
    }

    /// Anything else that a program may want to know.
    pub fn json(&self, value: &Value) {
        if let Self::Json(out) = self {
            out.json_line(value);
        }
    }

    pub fn show(&mut self, show: Show) {
        match show {
            Show::Text(text) => match self {
                Self::Live(out, live) => out.piece(&live.text(&text, screen(*out))),
                Self::Plain(out, plain) => plain.text(*out, &text),
                Self::Json(_) => {}
            },
            Show::Restart => match self {
                Self::Live(out, live) => {
                    let (paint, left) = live.restart(screen(*out));
                    out.piece(&paint);
                    if left {
                        out.aside("(the answer begins again)");
                    }
                }
                Self::Plain(out, plain) => plain.restart(*out),
                Self::Json(_) => {}
            },
            Show::EndOfText | Show::End(_) => self.end_text(),
            Show::Resuming => self.note("resuming…"),
            Show::Tool(tool) => self.tool(&tool),
            Show::Status(text) => self.note(&clean(&text)),
            Show::Paused(text) => self.note(&format!("waiting for your decision: {}", clean(&text))),
        }
    }

    fn end_text(&mut self) {
        match self {
            Self::Live(out, live) => out.piece(&live.end(screen(*out))),
            Self::Plain(out, plain) => plain.end(*out),
            Self::Json(_) => {}
        }
    }

    /// An answer that is not part of a run: what a command gave.
    pub fn answer(&mut self, text: &str) {
        self.show(Show::Text(text.to_owned()));
        self.show(Show::EndOfText);
    }

    /// Words beside the conversation, on stderr.
    pub fn note(&mut self, text: &str) {
        self.beside(|out| out.aside(text));
    }

    fn tool(&mut self, tool: &ChatTool) {
        if !matches!(self, Self::Json(_)) {
            self.beside(|out| out.note(&tool_line(out, tool)));
        }
    }

    /// Writes whole lines without disturbing a text that is being written.
    fn beside(&mut self, write: impl FnOnce(Output)) {
        match self {
            Self::Live(out, live) => {
                out.piece(&live.pause(screen(*out)));
                write(*out);
                out.piece(&live.resume());
            }
            Self::Plain(out, _) | Self::Json(out) => write(*out),
        }
    }

    pub fn usage(&mut self, usage: Option<&Usage>, took_ms: u64) {
        let mut parts = Vec::new();
        if let Some(usage) = usage {
            parts.push(format!("{} tokens in", units::grouped(usage.input)));
            if let Some(cached) = usage.cache_read.filter(|cached| *cached > 0) {
                parts.push(format!("{} cached", units::grouped(cached)));
            }
            parts.push(format!("{} out", units::grouped(usage.output)));
            if let Some(cost) = usage.cost_usd {
                parts.push(units::dollars(cost));
            }
        }
        parts.push(units::duration(took_ms));
        self.note(&parts.join(" · "));
    }
}

fn screen(out: Output) -> Screen {
    let (width, height) = out.size();
    Screen {
        width,
        height,
        colour: out.colour(),
    }
}

/// `● laptop__Bash uname -a …` when it starts, `● laptop__Bash ok 12 ms` when it has ended.
fn tool_line(out: Output, tool: &ChatTool) -> String {
    let name = out.paint_note(Style::Bold, &one_line(&tool.name, ARGS_COLUMNS));
    if tool.phase == ChatToolPhase::Started {
        let args = tool.args.as_ref().map(args_summary).unwrap_or_default();
        let dot = out.paint_note(Style::Cyan, "●");
        let space = if args.is_empty() { "" } else { " " };
        return format!("{dot} {name}{space}{args} …");
    }
    let (style, word) = match tool.outcome {
        None | Some(ToolOutcome::Ok) => (Style::Green, "ok"),
        Some(ToolOutcome::Error) => (Style::Red, "failed"),
        Some(ToolOutcome::Cancelled) => (Style::Yellow, "cancelled"),
        Some(ToolOutcome::Timeout) => (Style::Yellow, "timed out"),
        Some(ToolOutcome::Unknown) => (Style::Yellow, "outcome unknown"),
    };
    let mut line = format!("{} {name} {}", out.paint_note(style, "●"), out.paint_note(style, word));
    if let Some(ms) = tool.duration_ms {
        line.push_str(&out.paint_note(Style::Dim, &format!(" {}", units::duration(ms))));
    }
    let failed = !matches!(tool.outcome, None | Some(ToolOutcome::Ok));
    if let Some(preview) = tool
        .preview
        .as_deref()
        .filter(|preview| failed && !preview.trim().is_empty())
    {
        line.push_str(": ");
        line.push_str(&one_line(preview, ARGS_COLUMNS));
    }
    line
}

/// The value of the one argument that says what a call does; all of them when none does.
pub fn args_summary(args: &Value) -> String {
    const TELLING: [&str; 6] = ["command", "path", "pattern", "query", "url", "action"];
    let telling = TELLING.iter().find_map(|key| args.get(key).and_then(Value::as_str));
    match telling {
        Some(text) => one_line(text, ARGS_COLUMNS),
        None if args.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => one_line(&args.to_string(), ARGS_COLUMNS),
    }
}

/// Plain text into a pipe. It can't be taken back: a text that began wrongly is followed by the right one.
#[derive(Default)]
pub struct Plain {
    cleaner: Cleaner,
    inside_line: bool,
}

impl Plain {
    fn text(&mut self, out: Output, text: &str) {
        let text = self.cleaner.push(text);
        if !text.is_empty() {
            self.inside_line = !text.ends_with('\n');
            out.piece(&text);
        }
    }

    fn restart(&mut self, out: Output) {
        self.end(out);
        out.aside("The answer begins again; the text before this is void.");
    }

    fn end(&mut self, out: Output) {
        self.cleaner = Cleaner::default();
        if std::mem::take(&mut self.inside_line) {
            out.piece("\n");
        }
    }
}

/// The lines of `--json` that are not chat events.
pub mod line {
    use super::{Value, json};

    pub fn sent(result: &Value) -> Value {
        json!({ "type": "sent", "result": result })
    }

    pub fn link(state: &str, reason: Option<&str>) -> Value {
        json!({ "type": "link", "state": state, "reason": reason })
    }

    pub fn session(event: &Value) -> Value {
        json!({ "type": "session", "event": event })
    }

    pub fn end(status: &str, exit: u8, reason: Option<&str>, message: Option<&str>) -> Value {
        json!({ "type": "end", "status": status, "exit": exit, "reason": reason, "message": message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::types::CallId;

    fn tool(phase: ChatToolPhase) -> ChatTool {
        ChatTool {
            call_id: CallId("c".to_owned()),
            name: "laptop__Bash".to_owned(),
            phase,
            args: Some(json!({"command": "uname -a\u{1b}[31m"})),
            outcome: None,
            preview: None,
            duration_ms: None,
        }
    }

    fn quiet() -> Output {
        Output::plain()
    }

    #[test]
    fn t19_tool_lines_are_short_and_clean() {
        assert_eq!(
            tool_line(quiet(), &tool(ChatToolPhase::Started)),
            "● laptop__Bash uname -a …"
        );
        let mut ended = tool(ChatToolPhase::Ended);
        ended.outcome = Some(ToolOutcome::Ok);
        ended.duration_ms = Some(12);
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash ok 12 ms");
        ended.outcome = Some(ToolOutcome::Error);
        ended.preview = Some("no\n\u{1b}]0;x\u{7}such file".to_owned());
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash failed 12 ms: no such file");
    }

    #[test]
    fn arguments_without_a_telling_one_are_shown_whole() {
        assert_eq!(args_summary(&json!({"a": 1})), "{\"a\":1}");
        assert_eq!(args_summary(&json!({})), "");
    }
}
