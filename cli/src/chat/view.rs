//! Shows a conversation: on a terminal (live Markdown), above a line editor (finished lines), in a pipe (plain text), or as JSON
//! lines. Cleans everything that comes from the gateway. Decides nothing.

use std::time::Duration;

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, ChatTool, ChatToolPhase, ToolOutcome, Usage};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::assembler::{Show, message_text};
use super::board::Board;
use super::calls::{Calls, args_summary};
use super::files;
use super::lines::Lines;
use super::live::{Live, Screen};
use super::misread::{short_answers, takes};
use super::output_lines::collapsed;
use super::thoughts::Thoughts;
use super::turn::Draw;
use crate::clean::{Cleaner, clean, one_line, visible};
use crate::commands::approval_view::{Place, question};
use crate::embedded::layout::Layout;
use crate::exit::{Exit, Outcome};
use crate::markdown::{self, Look};
use crate::output::{Output, Style};
use crate::units;

const ARGS_COLUMNS: usize = 72;
/// What the machine says about a command begins with what happened; advice for the model follows.
const NOTE_COLUMNS: usize = 160;

pub struct View {
    kind: Kind,
    thoughts: Thoughts,
}

enum Kind {
    Live(Output, Live),
    Lines(Output, Box<AtPrompt>),
    Plain(Output, Box<Plain>),
    Json(Output),
}

/// What a conversation at its prompt has beside the text.
struct AtPrompt {
    lines: Lines,
    board: &'static Board,
    calls: Calls,
}

impl View {
    /// `thoughts`: what the model thinks is shown.
    pub fn new(out: Output, thoughts: bool) -> Self {
        let kind = if out.json {
            Kind::Json(out)
        } else if out.repaints {
            Kind::Live(out, Live::default())
        } else {
            Kind::Plain(out, Box::default())
        };
        Self {
            kind,
            thoughts: Thoughts::switched(thoughts),
        }
    }

    /// Above a line editor, by an output that prints there.
    pub fn above(out: Output, board: &'static Board, thoughts: bool) -> Self {
        let at_prompt = AtPrompt {
            lines: Lines::default(),
            board,
            calls: Calls::default(),
        };
        Self {
            kind: Kind::Lines(out, Box::new(at_prompt)),
            thoughts: Thoughts::switched(thoughts),
        }
    }

    /// The calls that were shown at the prompt.
    pub fn calls(&self) -> Option<&Calls> {
        match &self.kind {
            Kind::Lines(_, at_prompt) => Some(&at_prompt.calls),
            _ => None,
        }
    }

    pub const fn thoughts(&self) -> &Thoughts {
        &self.thoughts
    }

    pub fn show_thoughts(&mut self, on: bool) {
        self.thoughts.switch(on);
    }

    pub fn draw(&mut self, draw: Draw) {
        // The last column stays free: a full row would begin another one.
        let width = self.kind.out().size().0.saturating_sub(1);
        let ends = match &draw {
            // A status and a file stand beside a thought that goes on.
            Draw::Show(show) => !matches!(show, Show::Thinking(_) | Show::Status(_) | Show::File(_)),
            other => matches!(other, Draw::Sent(_)),
        };
        let rows = match &draw {
            Draw::Show(Show::Thinking(text)) => self.thoughts.take(text, width),
            _ if ends => self.thoughts.end(width),
            _ => Vec::new(),
        };
        self.kind.dim_rows(&rows);
        self.kind.draw(draw);
    }

    /// The last line of `--json`: how the command ended.
    pub fn ended(&self, result: &Outcome) {
        self.kind.ended(result);
    }
}

impl Kind {
    const fn out(&self) -> Output {
        match self {
            Self::Live(out, _) | Self::Lines(out, _) | Self::Plain(out, _) | Self::Json(out) => *out,
        }
    }

    fn dim_rows(&mut self, rows: &[String]) {
        if rows.is_empty() || matches!(self, Self::Json(_)) {
            return;
        }
        self.beside(|out| {
            for row in rows {
                out.note(&out.paint_note(Style::Dim, row));
            }
        });
    }

    fn draw(&mut self, draw: Draw) {
        if let Self::Lines(_, at_prompt) = self {
            at_prompt.board.note(&draw);
        }
        match draw {
            Draw::Sent(result) => self.json("sent", &json!({ "result": result })),
            Draw::Event(event) => self.json("chat", &event),
            Draw::Session(event) => {
                self.json("session", &json!({ "event": event }));
                match &event.message {
                    Some(message) => {
                        let is_plain = matches!(self, Self::Plain(..) | Self::Json(_));
                        self.beside(|out| {
                            out.note(&said(&message_text(message), (!is_plain).then(|| screen(out).look)));
                        });
                    }
                    None => {
                        if let Some(text) = event.text.filter(|text| !text.trim().is_empty()) {
                            self.note(&clean(&text));
                        }
                    }
                }
            }
            Draw::Lost(reason) => {
                self.note(&lost(&reason));
                self.json("link", &json!({ "state": "lost", "reason": reason }));
            }
            Draw::Connected => {
                self.note(CONNECTED);
                self.json("link", &json!({ "state": "connected", "reason": null }));
            }
            Draw::Show(show) => self.show(show),
            Draw::Answer(text) => self.answer(&text),
            Draw::Note(text) => self.note(&text),
            Draw::Question(waiting) => self.beside(|out| {
                for line in asked(&waiting) {
                    out.note(&line);
                }
            }),
            Draw::Usage(usage, took) => self.note(&usage_line(usage.as_ref(), took)),
        }
    }

    /// The last line of `--json`: how the command ended.
    fn ended(&self, result: &Outcome) {
        let failure = result.as_ref().err();
        let status = match failure.map(|failure| failure.exit) {
            None => "ok",
            Some(Exit::Interrupted) => "aborted",
            Some(_) => "error",
        };
        let line = json!({
            "status": status,
            "exit": failure.map_or(0, |failure| failure.exit.code()),
            "reason": failure.and_then(|failure| failure.reason.as_deref()),
            "message": failure.map(|failure| &failure.message),
        });
        self.json("end", &line);
    }

    /// A line of `--json`: an object with its `type`.
    fn json(&self, kind: &str, value: &impl Serialize) {
        if let Self::Json(out) = self {
            let mut line = Map::from_iter([("type".to_owned(), Value::from(kind))]);
            if let Ok(Value::Object(fields)) = serde_json::to_value(value) {
                line.extend(fields);
            }
            out.json_line(&line);
        }
    }

    fn show(&mut self, show: Show) {
        match show {
            Show::Text(text) => self.text(&text),
            Show::Restart => self.restart(),
            Show::EndOfText | Show::End(_) => self.end_text(),
            Show::Resuming => self.note("resuming…"),
            Show::Tool(tool) if !matches!(self, Self::Json(_)) => {
                let lines = self.tool_lines(&tool);
                self.beside(|out| {
                    for line in lines {
                        out.note(&line);
                    }
                });
            }
            Show::File(file) if !matches!(self, Self::Json(_)) => {
                self.note(&files::line(&file, Layout::find().ok().as_ref()));
            }
            // `View` shows what the model thinks.
            Show::Tool(_) | Show::File(_) | Show::Thinking(_) => {}
            Show::Status(text) => self.note(&clean(&text)),
            Show::Paused { text, .. } => self.note(&format!("waiting for your decision: {}", clean(&text))),
        }
    }

    /// The line about a call, and at the prompt what it gave.
    fn tool_lines(&mut self, tool: &ChatTool) -> Vec<String> {
        match self {
            Self::Lines(out, at_prompt) => {
                let number = at_prompt.calls.note(tool);
                let mut lines = vec![tool_line(*out, tool)];
                // The line about a call that failed has the reason already.
                let is_told = is_failed(tool) && tool.output.as_ref().is_some_and(|output| output.lines <= 1);
                if let (ChatToolPhase::Ended, Some(output), false) = (tool.phase, &tool.output, is_told) {
                    // The last column stays free: a full row would begin another one.
                    let width = out.size().0.saturating_sub(1);
                    let shown = collapsed(output, number, width);
                    lines.extend(shown.iter().map(|line| out.paint_note(Style::Dim, line)));
                }
                lines
            }
            Self::Live(out, _) | Self::Plain(out, _) | Self::Json(out) => vec![tool_line(*out, tool)],
        }
    }

    fn text(&mut self, text: &str) {
        match self {
            Self::Live(out, live) => out.piece(&live.text(text, screen(*out))),
            Self::Lines(out, at_prompt) => out.piece(&at_prompt.lines.text(text, screen(*out).look)),
            Self::Plain(out, plain) => plain.text(*out, text),
            Self::Json(_) => {}
        }
    }

    /// The answer of a command has its own columns: it is not Markdown.
    fn answer(&self, text: &str) {
        match self {
            Self::Live(out, _) | Self::Lines(out, _) | Self::Plain(out, _) => {
                out.sentences(clean(text).trim_end_matches('\n'));
            }
            Self::Json(_) => {}
        }
    }

    fn restart(&mut self) {
        match self {
            Self::Live(out, live) => {
                let (paint, is_left_over) = live.restart(screen(*out));
                out.piece(&paint);
                if is_left_over {
                    out.aside(AGAIN);
                }
            }
            Self::Lines(out, at_prompt) => {
                if at_prompt.lines.restart() {
                    out.aside(AGAIN);
                }
            }
            Self::Plain(out, plain) => plain.restart(*out),
            Self::Json(_) => {}
        }
    }

    fn end_text(&mut self) {
        match self {
            Self::Live(out, live) => out.piece(&live.end(screen(*out))),
            Self::Lines(out, at_prompt) => out.piece(&at_prompt.lines.end(screen(*out).look)),
            Self::Plain(out, plain) => plain.end(*out),
            Self::Json(_) => {}
        }
    }

    /// A note beside the conversation, on stderr.
    fn note(&mut self, text: &str) {
        self.beside(|out| out.aside(text));
    }

    /// Writes whole lines without disturbing the text that is being written.
    fn beside(&mut self, write: impl FnOnce(Output)) {
        match self {
            Self::Live(out, live) => {
                out.piece(&live.pause(screen(*out)));
                write(*out);
                out.piece(&live.resume());
            }
            Self::Lines(out, _) | Self::Plain(out, _) | Self::Json(out) => write(*out),
        }
    }
}

/// The questions that wait, and how the first one is answered at the prompt.
pub fn asked(waiting: &[ApprovalEntry]) -> Vec<String> {
    let now = units::now_ms();
    let questions = waiting.iter().flat_map(|entry| question(entry, now, Place::Prompt));
    questions.chain(how_to_answer(waiting)).collect()
}
fn how_to_answer(waiting: &[ApprovalEntry]) -> Option<String> {
    let first = waiting.first()?;
    let code = visible(&first.code);
    Some(if first.limit.is_some() {
        format!("{code}: y lets the run continue, n ends it; a message ends it too and is sent at once")
    } else {
        let longer = if takes(waiting, ApprovalAnswerKind::AllowSession) {
            ", s calls like it in this conversation"
        } else {
            ""
        };
        let others = if waiting.len() > 1 {
            "; the others are answered by their codes"
        } else {
            ""
        };
        format!(
            "{code}: y allows this call once{longer}, n denies it, `deny {code} WORDS` denies it and tells the agent why; the run waits meanwhile{others}"
        )
    })
}
/// Shown when a word at the prompt counts.
pub fn now_answer(waiting: &[ApprovalEntry]) -> Option<String> {
    Some(format!(
        "{}: {}?",
        visible(&waiting.first()?.code),
        short_answers(waiting)
    ))
}
/// The word was typed before the question could be read.
pub fn too_early(waiting: &[ApprovalEntry]) -> String {
    let code = waiting.first().map(|first| visible(&first.code)).unwrap_or_default();
    format!(
        "{code} has only just come, so nothing was answered. Read it, then type {}.",
        short_answers(waiting)
    )
}

/// An answer of the agent beside the conversation: Markdown, or its source where nothing renders it.
pub fn said(text: &str, look: Option<Look>) -> String {
    let text = clean(text);
    let shown = look.map_or_else(|| text.clone(), |look| markdown::render(&text, look));
    shown.trim_end().to_owned()
}

const AGAIN: &str = "(the answer begins again)";
pub const CONNECTED: &str = "connected again";

pub fn lost(reason: &str) -> String {
    format!("connection lost ({}); reconnecting…", clean(reason))
}

fn usage_line(usage: Option<&Usage>, took: Duration) -> String {
    let mut parts = Vec::new();
    if let Some(usage) = usage {
        parts.push(format!("{} tokens in", units::grouped(usage.input)));
        if let Some(cached) = usage.cache_read.filter(|cached| *cached > 0) {
            parts.push(format!("{} cached", units::grouped(cached)));
        }
        parts.push(format!("{} out", units::grouped(usage.output)));
        // A model without a known price counts as 0, which is not its price.
        parts.extend(usage.cost_usd.filter(|cost| *cost > 0.0).map(units::dollars));
    }
    parts.push(units::duration(units::millis(took)));
    parts.join(" · ")
}

fn screen(out: Output) -> Screen {
    let (width, height) = out.size();
    let colour = out.colour();
    let look = Look { width, colour };
    Screen { look, height }
}

/// `● laptop__Bash uname -a …` for a call that starts, `● laptop__Bash ok 12 ms` for one that has ended.
fn tool_line(out: Output, tool: &ChatTool) -> String {
    let name = out.paint_note(Style::Bold, &one_line(&tool.name, ARGS_COLUMNS));
    if tool.phase == ChatToolPhase::Started {
        let args = tool.args.as_ref().map(args_summary).unwrap_or_default();
        let dot = out.paint_note(Style::Cyan, "●");
        let space = if args.is_empty() { "" } else { " " };
        return format!("{dot} {name}{space}{args} …");
    }
    let (style, word) = match tool.outcome {
        None | Some(ToolOutcome::Ok) => match (tool.exit_code, tool.signal.as_deref()) {
            (None | Some(0), None) => (Style::Green, "ok".to_owned()),
            (_, Some(signal)) => (Style::Yellow, format!("ended by {}", one_line(signal, ARGS_COLUMNS))),
            (Some(code), None) => (Style::Yellow, format!("exit status {code}")),
        },
        Some(ToolOutcome::Error) => (Style::Red, "failed".to_owned()),
        Some(ToolOutcome::Cancelled) => (Style::Yellow, "cancelled".to_owned()),
        Some(ToolOutcome::Timeout) => (Style::Yellow, "timed out".to_owned()),
        Some(ToolOutcome::Unknown) => (Style::Yellow, "outcome unknown".to_owned()),
    };
    let mut line = format!("{} {name} {}", out.paint_note(style, "●"), out.paint_note(style, &word));
    if let Some(ms) = tool.duration_ms {
        line.push_str(&out.paint_note(Style::Dim, &format!(" {}", units::duration(ms))));
    }
    let failed = is_failed(tool);
    if let Some(preview) = tool
        .preview
        .as_deref()
        .filter(|preview| failed && !preview.trim().is_empty())
    {
        line.push_str(": ");
        line.push_str(&one_line(preview, ARGS_COLUMNS));
    }
    if let Some(note) = tool.note.as_deref().filter(|note| !note.trim().is_empty()) {
        line.push_str(": ");
        line.push_str(&one_line(note, NOTE_COLUMNS));
    }
    line
}

fn is_failed(tool: &ChatTool) -> bool {
    !matches!(tool.outcome, None | Some(ToolOutcome::Ok))
}

/// Plain text for a pipe. It cannot be taken back: after a false start the whole answer follows.
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
        out.aside("The answer begins again; ignore the text before this line.");
    }

    fn end(&mut self, out: Output) {
        self.cleaner = Cleaner::default();
        if std::mem::take(&mut self.inside_line) {
            out.piece("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::calls::tests::tool;

    fn quiet() -> Output {
        Output::plain()
    }

    #[test]
    fn th19_tool_lines_are_short_and_clean() {
        assert_eq!(
            tool_line(quiet(), &tool(ChatToolPhase::Started)),
            "● laptop__Bash uname -a …"
        );
        let mut ended = tool(ChatToolPhase::Ended);
        ended.outcome = Some(ToolOutcome::Ok);
        ended.duration_ms = Some(12);
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash ok 12 ms");
        ended.exit_code = Some(2);
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash exit status 2 12 ms");
        ended.exit_code = None;
        ended.signal = Some("SIGKILL".to_owned());
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash ended by SIGKILL 12 ms");
        ended.note = Some("limit.memory: it used too much\u{1b}[2J".to_owned());
        assert_eq!(
            tool_line(quiet(), &ended),
            "● laptop__Bash ended by SIGKILL 12 ms: limit.memory: it used too much"
        );
        ended.note = None;
        ended.outcome = Some(ToolOutcome::Error);
        ended.preview = Some("no\n\u{1b}]0;x\u{7}such file".to_owned());
        assert_eq!(tool_line(quiet(), &ended), "● laptop__Bash failed 12 ms: no such file");
    }

    #[test]
    fn ap12_at_the_prompt_the_first_question_is_shown_first_and_names_what_can_be_typed() {
        let mut two = crate::chat::misread::tests::asked(&["allow_1h", "allow_8h"]);
        two.extend(crate::chat::misread::tests::asked(&[]).into_iter().map(|mut entry| {
            entry.code = "M3N4P".into();
            entry
        }));
        let lines = asked(&two);
        assert!(lines[0].starts_with("K7Q2A  "), "{lines:?}");
        assert!(
            lines.contains(&"  > `allow K7Q2A for 1h` (or 8h) allows t".to_owned()),
            "{lines:?}"
        );
        assert!(!lines.iter().any(|line| line.contains("gsv approval")), "{lines:?}");
        assert_eq!(
            lines.last().map(String::as_str),
            Some(
                "K7Q2A: y allows this call once, n denies it, `deny K7Q2A WORDS` denies it and tells the agent why; the run waits meanwhile; the others are answered by their codes"
            )
        );
    }

    #[test]
    fn f48_an_unknown_price_is_not_shown_as_zero() {
        let usage = |cost: f64| Usage {
            input: 1_200,
            output: 5,
            cache_read: None,
            cache_write: None,
            total: 1_205,
            cost_usd: Some(cost),
        };
        let line = |cost: f64| usage_line(Some(&usage(cost)), Duration::from_secs(2));
        assert!(!line(0.0).contains('$'), "{}", line(0.0));
        assert!(line(0.25).contains('$'), "{}", line(0.25));
    }
}
