//! What rustyline asks of its program: completion, lines that go on, and the painting of the prompt. When the prompt is painted,
//! the output that waits is painted above it, and the status line below it; the line editor is the only one that writes to the
//! terminal. To the editor the status line is a hint of one row, which is painted with its current text.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::board::Board;
use super::complete::{candidates, is_continued};
use crate::above::Above;

pub struct Editor {
    pub above: &'static Above,
    pub board: &'static Board,
    /// The current line: rustyline does not give back a line that Ctrl-C ended.
    pub line: Arc<Mutex<String>>,
}

impl Helper for Editor {}

impl Highlighter for Editor {
    /// The cursor is where the prompt begins, and the rows of the former prompt are cleared.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        let lines = self.above.take_lines();
        if lines.is_empty() {
            Cow::Borrowed(prompt)
        } else {
            Cow::Owned(lines + prompt)
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if hint == StatusRow.display() {
            Cow::Owned(format!("\n{}", self.board.paint()))
        } else {
            Cow::Borrowed(hint)
        }
    }
}

/// One row below the line. No key takes it into the line.
pub struct StatusRow;

impl Hint for StatusRow {
    fn display(&self) -> &'static str {
        "\n "
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Editor {
    type Hint = StatusRow;

    /// Is called at every change of the line.
    fn hint(&self, line: &str, _at: usize, _context: &Context<'_>) -> Option<StatusRow> {
        line.clone_into(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner));
        self.board.place().then_some(StatusRow)
    }
}

impl Completer for Editor {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>), ReadlineError> {
        if line.starts_with("/attach ") {
            return FilenameCompleter::new().complete(line, at, context);
        }
        Ok((0, candidates(line.get(..at).unwrap_or_default())))
    }
}

impl Validator for Editor {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult, ReadlineError> {
        Ok(if is_continued(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}
