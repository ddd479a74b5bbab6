//! The only file that prints. Data goes to stdout, words to stderr; colour only on a terminal and without `NO_COLOR`.
//! It does not know the gateway.

#![allow(
    clippy::unused_self,
    reason = "only code that was given an output may print, even where the output makes no difference"
)]

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use serde::Serialize;

use crate::above::Above;
use crate::clean::{clean, one_line};
use crate::exit::{Exit, Failure};
use crate::table::Table;
use crate::width::reflow;

/// Columns assumed when the terminal doesn't say.
const DEFAULT_COLUMNS: usize = 80;
const DEFAULT_ROWS: usize = 24;
/// As many as the contract takes.
const WARNING_COLUMNS: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }
}

/// Where output goes and what it may look like.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// `--json`: data as JSON.
    pub json: bool,
    /// stdout is a terminal.
    pub tty: bool,
    /// It is one that can move its cursor, so that what is shown can be replaced.
    pub repaints: bool,
    colour_out: bool,
    colour_err: bool,
    /// stderr is a terminal.
    tty_err: bool,
    /// A line editor has the terminal: everything is printed above its line.
    above: Option<&'static Above>,
}

impl Output {
    pub fn detect(json: bool) -> Self {
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb;
        let tty = io::stdout().is_terminal();
        Self {
            json,
            tty,
            repaints: tty && !is_dumb,
            colour_out: colour && tty,
            colour_err: colour && io::stderr().is_terminal(),
            tty_err: io::stderr().is_terminal(),
            above: None,
        }
    }

    /// The same output without documents: what a step of a longer command says.
    pub const fn for_people(self) -> Self {
        Self { json: false, ..self }
    }

    /// The same output, printed above the line of an editor.
    pub const fn printed_above(self, above: &'static Above) -> Self {
        Self {
            above: Some(above),
            ..self
        }
    }

    /// No terminal, no colour.
    #[cfg(test)]
    pub const fn plain() -> Self {
        Self {
            json: false,
            tty: false,
            repaints: false,
            colour_out: false,
            colour_err: false,
            tty_err: false,
            above: None,
        }
    }

    pub const fn colour(self) -> bool {
        self.colour_out
    }

    /// Columns and rows of the terminal.
    pub fn size(self) -> (usize, usize) {
        rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0)
            .map_or((DEFAULT_COLUMNS, DEFAULT_ROWS), |size| {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            })
    }

    /// `text` in a style, for stdout.
    pub fn paint(self, style: Style, text: &str) -> String {
        painted(self.colour_out, style, text)
    }

    /// `text` in a style, for stderr.
    pub fn paint_note(self, style: Style, text: &str) -> String {
        painted(self.colour_err, style, text)
    }

    /// One line of our own making to stdout.
    pub fn line(self, text: &str) {
        self.write_out(&format!("{text}\n"));
    }

    /// Sentences of our own making to stdout: on a terminal, broken between words (CT15).
    pub fn sentences(self, text: &str) {
        let text = wrapped(text, self.tty.then(|| told_columns(io::stdout())).flatten());
        self.line(&text);
    }

    /// A piece of our own making to stdout, at once, without a line end.
    pub fn piece(self, text: &str) {
        self.write_out(text);
    }

    /// A file's or a tool's content to stdout: as it is into a pipe, cleaned on a terminal.
    pub fn content(self, text: &str) {
        if self.tty {
            let cleaned = clean(text);
            self.write_out(&cleaned);
            if !cleaned.is_empty() && !cleaned.ends_with('\n') {
                self.write_out("\n");
            }
        } else {
            self.write_out(text);
        }
    }

    /// A JSON document to stdout.
    pub fn json_document(self, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.content(&format!("{text}\n"));
    }

    /// One JSON value in one line to stdout.
    pub fn json_line(self, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        self.content(&format!("{text}\n"));
    }

    /// The result of a command: as JSON with `--json`, else as `plain` prints it.
    pub fn show<T: Serialize>(self, result: T, plain: impl FnOnce(T)) {
        if self.json {
            self.json_document(&result);
        } else {
            plain(result);
        }
    }

    /// The result of a command that changed something: as JSON on stdout with `--json`, else in words on stderr.
    pub fn done(self, result: &impl Serialize, words: &str) {
        self.show(result, |_| self.aside(words));
    }

    /// Whether all of it was shown: on a terminal, cells are cut to fit.
    pub fn table<const N: usize>(self, table: &Table<N>) -> bool {
        let whole = table.lines(None);
        let lines = if self.tty {
            table.lines(Some(self.size().0))
        } else {
            whole.clone()
        };
        for (i, line) in lines.iter().enumerate() {
            let style = if i == 0 { Some(Style::Bold) } else { None };
            self.line(&style.map_or_else(|| line.clone(), |style| self.paint(style, line)));
        }
        lines == whole
    }

    /// `key  value` lines of the fields that have a value, keys aligned.
    pub fn fields<N: AsRef<str>, V: Into<Option<String>>>(self, fields: impl IntoIterator<Item = (N, V)>) {
        let fields = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.into()?)));
        let fields: Vec<(N, String)> = fields.collect();
        let wide = fields.iter().map(|(name, _)| name.as_ref().len()).max().unwrap_or(0);
        for (name, value) in fields {
            let name = self.paint(Style::Dim, &format!("{:wide$}", name.as_ref()));
            self.line(&format!("{name}  {}", clean(&value).trim_end()));
        }
    }

    /// A note for a person, on stderr: on a terminal, broken between words (CT15).
    pub fn note(self, text: &str) {
        self.write_err(&format!("{}\n", wrapped(text, self.note_columns())));
    }

    /// A question to a person, on stderr; the answer is typed behind it.
    pub fn prompt(self, text: &str) {
        self.write_err(&wrapped(text, self.note_columns()));
    }

    fn note_columns(self) -> Option<usize> {
        if self.above.is_some() {
            return told_columns(io::stdout());
        }
        self.tty_err.then(|| told_columns(io::stderr())).flatten()
    }

    /// A piece of what another program says to a person, cleaned by the caller, on stderr.
    pub fn said(self, text: &str) {
        self.write_err(text);
    }

    /// A less important note.
    pub fn aside(self, text: &str) {
        self.note(&self.paint_note(Style::Dim, text));
    }

    pub fn warn(self, text: &str) {
        self.note(&format!("{} {text}", self.paint_note(Style::Yellow, "warning:")));
    }

    /// The warnings in an answer of the gateway. Each command that changes a setting shows them.
    pub fn warn_all(self, warnings: Option<&[String]>) {
        for warning in warnings.unwrap_or_default() {
            self.warn(&one_line(warning, WARNING_COLUMNS));
        }
    }

    pub fn failure(self, failure: &Failure) {
        let mut text = clean(&failure.message);
        if failure.exit != Exit::Interrupted {
            text = format!("{} {text}", self.paint_note(Style::Red, "error:"));
        }
        if let Some(reason) = &failure.reason {
            text.push_str(&self.paint_note(Style::Dim, &format!(" [{}]", clean(reason))));
        }
        for line in &failure.lines {
            text.push_str("\n  ");
            text.push_str(clean(line).trim_end());
        }
        if let Some(next) = failure.next_step() {
            text.push('\n');
            text.push_str(&self.paint_note(Style::Cyan, " next:"));
            text.push(' ');
            text.push_str(&clean(next));
        }
        self.note(&text);
    }

    fn write_out(self, text: &str) {
        match self.above {
            Some(above) => above.push(text),
            None => write_out(text),
        }
    }

    fn write_err(self, text: &str) {
        match self.above {
            Some(above) => above.push(text),
            None => write_err(text),
        }
    }
}

/// The columns of a terminal. None: it does not tell them, so nothing is broken.
fn told_columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn wrapped(text: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| text.to_owned(), |columns| reflow(text, columns))
}

/// A line for the parent process, on stdout. Best effort: the parent may be gone.
pub fn report_to_parent(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A line of a log, on stderr.
pub fn echo_log(line: &str) {
    write_err(&clean(line));
}

pub fn painted(on: bool, style: Style, text: &str) -> String {
    if on {
        format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
    } else {
        text.to_owned()
    }
}

fn write_out(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader is gone (`gsv ... | head`), so there is nothing left to do. Any other error is a lost answer.
        std::process::exit(i32::from(error.kind() != ErrorKind::BrokenPipe));
    }
}

fn write_err(text: &str) {
    // Without stderr there is no place to report that it is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
