//! The line editor of `gsv chat`, which stays at the bottom of the terminal. rustyline blocks, so it runs in its own thread.
//! Output waits in `above` and is painted together with the prompt (see `editor`). rustyline's external printer only wakes the
//! editor: it would write over the typed line when a line has just ended, and in another order. Knows no gateway.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Event, EventContext, EventHandler, ExternalPrinter,
    KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use tokio::sync::mpsc as queue;
use tokio::time::timeout;
use unicode_width::UnicodeWidthChar;

use super::board::Board;
use super::editor::Editor;
use crate::above::Above;
use crate::ask::Hidden;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};

const HISTORY_LINES: usize = 5_000;
const MARK: &str = "› ";
/// Up and down again: rustyline paints its prompt after a printed line, and this line leaves no trace wherever the cursor is.
const WAKE: &str = "\u{1b}[A\n";
/// How often, and after which pause, the editor is told to end.
const CLOSE_TRIES: u8 = 20;
const CLOSE_PAUSE: Duration = Duration::from_millis(100);

/// How long the rest of a key's sequence may take after Esc.
const ESC_MS: u16 = 100;

/// Esc during an answer acts like Ctrl-C, which keeps the line. A second one, or one between two answers, does nothing.
struct Esc(Arc<AtomicBool>);

impl ConditionalEventHandler for Esc {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        Some(if self.0.swap(false, Ordering::Relaxed) {
            Cmd::Interrupt
        } else {
            Cmd::Noop
        })
    }
}

#[derive(Debug)]
pub enum Typed {
    Line(String),
    /// Ctrl-C, or Esc during an answer, with the line that was not complete.
    Interrupted(String),
    End,
    Broken(String),
}

pub struct Prompt {
    terminal: Output,
    out: Output,
    above: &'static Above,
    board: &'static Board,
    ask: mpsc::Sender<String>,
    typed: queue::UnboundedReceiver<Typed>,
    /// A line is being read.
    asked: bool,
    /// The next line begins with this text.
    begin: String,
    /// Whether Esc stops something.
    busy: Arc<AtomicBool>,
    /// Between two lines, keys wait for the next one. Not where the terminal itself reads lines.
    _keys: Option<Hidden>,
}

impl Prompt {
    pub fn open(history: PathBuf, terminal: Output) -> Outcome<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(|error| unusable(&error.to_string()))?
            .history_ignore_space(true)
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            // A key that begins like Esc sends the rest of its sequence at once.
            .keyseq_timeout(Some(ESC_MS))
            // Otherwise the prompt is painted without asking; what has a colour is decided here.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: rustyline::Editor<Editor, FileHistory> =
            rustyline::Editor::with_config(config).map_err(|error| unusable(&error.to_string()))?;
        let above: &'static Above = Box::leak(Box::default());
        let board: &'static Board = Box::leak(Box::new(Board::new(above, terminal)));
        let line = Arc::new(Mutex::new(String::new()));
        let helper = Editor {
            above,
            board,
            line: Arc::clone(&line),
        };
        editor.set_helper(Some(helper));
        let busy = Arc::new(AtomicBool::new(false));
        let esc = EventHandler::Conditional(Box::new(Esc(Arc::clone(&busy))));
        editor.bind_sequence(KeyEvent(KeyCode::Esc, Modifiers::NONE), esc);
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        // The file does not exist before the first conversation.
        let _ = editor.load_history(&history);
        // A terminal without cursor movement has no printer: there, output is written as it comes.
        let out = match editor.create_external_printer() {
            Ok(printer) => {
                board.set_live();
                thread::spawn(move || wake(printer, above));
                terminal.printed_above(above)
            }
            Err(_) => terminal,
        };
        let (ask, asked) = mpsc::channel::<String>();
        let (answers, typed) = queue::unbounded_channel();
        let mark = (MARK, terminal.paint(Style::Cyan, MARK));
        thread::spawn(move || {
            while let Ok(begin) = asked.recv() {
                let typed = match editor.readline_with_initial(&mark, (&begin, "")) {
                    Ok(line) => Typed::Line(line),
                    Err(ReadlineError::Interrupted) => {
                        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
                        Typed::Interrupted(std::mem::take(&mut line))
                    }
                    Err(ReadlineError::Eof) => Typed::End,
                    Err(error) => Typed::Broken(error.to_string()),
                };
                // Best effort: a history that cannot be written must not stop the conversation.
                let _ = editor.append_history(&history);
                if answers.send(typed).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            terminal,
            out,
            above,
            board,
            ask,
            typed,
            asked: false,
            begin: String::new(),
            busy,
            _keys: if board.is_live() {
                Some(Hidden::waiting()?)
            } else {
                None
            },
        })
    }

    /// Output above the line that is being typed.
    pub const fn output(&self) -> Output {
        self.out
    }

    /// The status line below the line that is being typed.
    pub const fn board(&self) -> &'static Board {
        self.board
    }

    /// Begins to read a line, unless one is being read. `typed` gives it.
    pub fn ask(&mut self) -> Outcome {
        if !self.asked {
            self.above.set_open(true);
            let begin = std::mem::take(&mut self.begin);
            self.ask.send(begin).map_err(|_| unusable("its reader has ended"))?;
            self.asked = true;
        }
        Ok(())
    }

    /// Waits for the next line. When it is dropped before, the line stays, and the next call waits for it.
    pub async fn typed(&mut self) -> Outcome<Typed> {
        self.ask()?;
        let typed = self.typed.recv().await;
        self.above.set_open(false);
        self.asked = false;
        // The editor takes the status line away with a line that is complete, and leaves it below one that was interrupted.
        if self.board.take_shown() && matches!(typed, Some(Typed::Interrupted(_))) {
            self.above.erase(1);
        }
        match typed {
            Some(Typed::Broken(why)) => Err(unusable(&why)),
            Some(typed) => Ok(typed),
            None => Err(unusable("its reader has ended")),
        }
    }

    /// Sends the terminal a sequence that shows nothing. Where nothing can be repainted, nothing is sent.
    pub fn sign(&self, sign: &'static str) {
        if self.board.is_live() {
            self.above.sign(sign);
        }
    }

    /// Shows a message as if it had just been typed.
    pub fn echo(&self, text: &str) {
        self.out.line(&format!("{}{text}", self.out.paint(Style::Cyan, MARK)));
    }

    /// Takes the line that was just read off the screen.
    pub fn erase(&self, line: &str) {
        if !self.out.repaints {
            return;
        }
        let (columns, rows) = self.terminal.size();
        if let Some(taken) = rows_of(&format!("{MARK}{line}"), columns).filter(|taken| *taken < rows) {
            self.above.erase(taken);
        }
    }

    /// The next line begins with this text, which is then changed and sent like any other.
    pub fn begin_with(&mut self, text: String) {
        self.begin = text;
    }

    /// An answer is under way: Esc stops it, once.
    pub fn set_busy(&self, is_busy: bool) {
        self.busy.store(is_busy, Ordering::Relaxed);
    }

    /// Puts the line that was just read back into the editor.
    pub fn keep(&mut self, line: String) {
        self.erase(&line);
        self.begin = line;
    }

    /// Ends the editor, which restores the terminal, and prints what waits.
    pub async fn close(mut self) {
        for _ in 0..CLOSE_TRIES {
            if !self.asked {
                break;
            }
            // The editor ends at Ctrl-C only.
            let _ = kill_process(getpid(), Signal::INT);
            self.asked = timeout(CLOSE_PAUSE, self.typed.recv()).await.is_err();
        }
        self.terminal.piece(&self.above.take_all());
    }
}

/// Calls the editor when lines wait.
fn wake(mut printer: impl ExternalPrinter, above: &'static Above) {
    loop {
        above.wait();
        if printer.print(WAKE.to_owned()).is_err() {
            return;
        }
    }
}

/// The rows that the editor fills with a line, counted as it counts them. None for characters whose width terminals do not agree on.
fn rows_of(line: &str, columns: usize) -> Option<usize> {
    let (mut rows, mut column) = (1, 0);
    for c in line.chars() {
        if c == '\n' {
            rows += 1;
            column = 0;
            continue;
        }
        let wide = c.width().filter(|wide| *wide > 0)?;
        column += wide;
        if column > columns {
            rows += 1;
            column = wide;
        }
    }
    Some(if column == columns { rows + 1 } else { rows })
}

fn unusable(why: &str) -> Failure {
    Failure::failed(
        format!("The terminal cannot be read: {why}."),
        "Send one message without the prompt: `gsv chat MESSAGE`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f43_the_rows_of_a_typed_line_are_counted_as_the_editor_counts_them() {
        assert_eq!(rows_of("› ", 10), Some(1));
        assert_eq!(rows_of("› 1234567", 10), Some(1));
        assert_eq!(rows_of("› 12345678", 10), Some(2), "the editor ends a full row");
        assert_eq!(rows_of("› 12345678\n", 10), Some(2));
        assert_eq!(rows_of("› 日本語日本", 10), Some(2));
        assert_eq!(rows_of("› one\\\ntwo", 10), Some(2));
        assert_eq!(rows_of("e\u{301}", 10), None);
        assert_eq!(rows_of("👩\u{200d}🚀", 10), None);
    }
}
