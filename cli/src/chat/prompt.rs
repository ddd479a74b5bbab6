//! The line editor of `gsv chat`. rustyline blocks, so it runs in its own thread; news are printed above the line that is
//! being typed. Knows no gateway.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, ExternalPrinter};
use tokio::sync::mpsc as queue;

use super::complete::Editor;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};

const HISTORY_LINES: usize = 5_000;

pub enum Typed {
    Line(String),
    Interrupted,
    End,
    Broken(String),
}

pub struct Prompt {
    ask: mpsc::Sender<()>,
    typed: queue::UnboundedReceiver<Typed>,
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl Prompt {
    pub fn open(history: PathBuf, out: Output) -> Outcome<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(|error| unusable(&error.to_string()))?
            .history_ignore_space(true)
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: rustyline::Editor<Editor, FileHistory> =
            rustyline::Editor::with_config(config).map_err(|error| unusable(&error.to_string()))?;
        editor.set_helper(Some(Editor));
        // The file does not exist before the first conversation.
        let _ = editor.load_history(&history);
        let printer = editor
            .create_external_printer()
            .ok()
            .map(|printer| Box::new(printer) as _);
        let (ask, asked) = mpsc::channel::<()>();
        let (answers, typed) = queue::unbounded_channel();
        let mark = ("› ", out.paint(Style::Cyan, "› "));
        thread::spawn(move || {
            while asked.recv().is_ok() {
                let typed = match editor.readline(&mark) {
                    Ok(line) => Typed::Line(line),
                    Err(ReadlineError::Interrupted) => Typed::Interrupted,
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
        Ok(Self { ask, typed, printer })
    }

    /// Begins to read a line. `typed` gives it.
    pub fn ask(&self) -> Outcome {
        self.ask.send(()).map_err(|_| unusable("its reader has ended"))
    }

    /// Waits for the line that was asked for.
    pub async fn typed(&mut self) -> Outcome<Typed> {
        match self.typed.recv().await {
            Some(Typed::Broken(why)) => Err(unusable(&why)),
            Some(typed) => Ok(typed),
            None => Err(unusable("its reader has ended")),
        }
    }

    /// Prints a line above the one that is being typed.
    pub fn print(&mut self, text: &str) {
        if let Some(printer) = &mut self.printer {
            // Best effort: the session's history has it too.
            let _ = printer.print(format!("{text}\n"));
        }
    }
}

fn unusable(why: &str) -> Failure {
    Failure::failed(
        format!("The terminal cannot be read: {why}."),
        "Send one message without the prompt: `gsv chat MESSAGE`.",
    )
}
