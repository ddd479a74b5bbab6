//! The prompt. rustyline reads lines in a thread of its own, since it blocks; everything else happens here. While a run is
//! under way nobody reads the keyboard, and Ctrl-C stops the run, not the program.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;

use gsv_link::LinkEvent;
use gsv_protocol::Event;
use gsv_protocol::events::{Chat, Session};
use gsv_protocol::types::{ChatEvent, ChatState, SessionEvent};
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, ExternalPrinter};
use serde_json::Value;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc as queue;

use super::assembler::message_text;
use super::attach::{Chosen, choose, upload_all};
use super::complete::{Editor, is_command, message};
use super::conversation::{Conversation, replayed};
use super::turn::Request;
use super::view::View;
use crate::clean::clean;
use crate::client::Account;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, Style};
use crate::units::bytes;

const HISTORY_LINES: usize = 5_000;

enum Typed {
    Line(String),
    Interrupted,
    End,
    Broken(String),
}

type Printer = Box<dyn ExternalPrinter + Send>;

/// The reading thread's other end.
struct Prompt {
    ask: mpsc::Sender<()>,
    typed: queue::UnboundedReceiver<Typed>,
    /// Writes above the line that is being typed.
    printer: Option<Printer>,
}

/// What a conversation at the prompt needs beside the connection.
pub struct Talk<'a> {
    pub account: &'a Account,
    /// They go with the next message.
    pub files: Vec<Chosen>,
    pub verbose: bool,
    pub out: Output,
}

impl Talk<'_> {
    pub async fn run(mut self, conversation: &mut Conversation, history: PathBuf, interrupts: &mut Signal) -> Outcome {
        let out = self.out;
        let mut prompt = Prompt::open(history, out)?;
        out.aside(&format!(
            "{} · /help shows commands, Ctrl-D leaves",
            conversation.session
        ));
        self.list_files();
        conversation.follow().await;
        let mut view = View::new(out);
        let mut asked_to_leave = false;
        loop {
            let mut unfollowed = false;
            for event in conversation.catch_up() {
                unfollowed |= matches!(event, LinkEvent::Connected(_));
                beside(&event, |text| out.note(text));
            }
            let line = match prompt.read(conversation, unfollowed).await? {
                Typed::Line(line) => line,
                Typed::Interrupted if !asked_to_leave => {
                    asked_to_leave = true;
                    out.aside("(Ctrl-C again or Ctrl-D leaves)");
                    continue;
                }
                Typed::Interrupted | Typed::End => return Ok(()),
                Typed::Broken(why) => {
                    return Err(Failure::failed(
                        format!("The terminal can't be read: {why}."),
                        "Say it at once: `gsv chat MESSAGE`.",
                    ));
                }
            };
            asked_to_leave = false;
            let message = message(&line);
            match message.as_str() {
                "" => {}
                "/quit" | "/exit" => return Ok(()),
                text if text == "/attach" || text.starts_with("/attach ") => {
                    self.attach(text.strip_prefix("/attach").unwrap_or_default().trim());
                }
                text => {
                    if let Err(failure) = self.say(text, conversation, &mut view, interrupts).await {
                        if conversation.ended {
                            return Err(failure);
                        }
                        out.failure(&failure);
                    }
                }
            }
        }
    }

    /// The files stay chosen until they are uploaded, so that a message that failed before can be said again.
    async fn say(
        &mut self,
        text: &str,
        conversation: &mut Conversation,
        view: &mut View,
        interrupts: &mut Signal,
    ) -> Outcome {
        // Commands are answered at once; files wait for a message.
        let files = if is_command(text) {
            Vec::new()
        } else {
            let files = upload_all(self.account, &conversation.session, &self.files, self.out, interrupts).await?;
            self.files.clear();
            files
        };
        let request = Request {
            message: text,
            files,
            timeout: None,
            verbose: self.verbose,
        };
        conversation.turn(&request, view, interrupts).await
    }

    fn attach(&mut self, path: &str) {
        match path {
            "" if self.files.is_empty() => self.out.aside("no files; /attach FILE sends one with the next message"),
            "" => self.list_files(),
            "none" => {
                self.files.clear();
                self.out.aside("no files");
            }
            path => {
                let mut paths: Vec<PathBuf> = self.files.iter().map(|file| file.path.clone()).collect();
                paths.push(typed_path(path));
                match choose(&paths) {
                    Ok(files) => {
                        self.files = files;
                        self.list_files();
                    }
                    Err(failure) => self.out.failure(&failure),
                }
            }
        }
    }

    fn list_files(&self) {
        if self.files.is_empty() {
            return;
        }
        let names: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("{} ({})", clean(&file.name), bytes(file.size)))
            .collect();
        self.out.aside(&format!(
            "with the next message: {} · /attach none takes them back",
            names.join(", ")
        ));
    }
}

/// A path as people type it: `~/` is their home; quotes around it, or backslashes before spaces, as completion writes them.
fn typed_path(path: &str) -> PathBuf {
    let bare = path.trim_matches('"').replace("\\ ", " ");
    match (bare.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(bare),
    }
}

impl Prompt {
    fn open(history: PathBuf, out: Output) -> Outcome<Self> {
        let broken = |error: ReadlineError| {
            Failure::failed(
                format!("The terminal can't be used: {error}."),
                "Say it at once: `gsv chat MESSAGE`.",
            )
        };
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(broken)?
            .history_ignore_space(true)
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: rustyline::Editor<Editor, FileHistory> =
            rustyline::Editor::with_config(config).map_err(broken)?;
        editor.set_helper(Some(Editor));
        // The first time there is none.
        let _ = editor.load_history(&history);
        let printer = editor
            .create_external_printer()
            .ok()
            .map(|printer| Box::new(printer) as Printer);
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
                // History is a convenience: that it can't be written must not stop a conversation.
                let _ = editor.append_history(&history);
                if answers.send(typed).is_err() {
                    return;
                }
            }
        });
        Ok(Self { ask, typed, printer })
    }

    /// The next line; meanwhile, shows what happens in the session.
    async fn read(&mut self, conversation: &mut Conversation, unfollowed: bool) -> Outcome<Typed> {
        let gone = || Typed::Broken("its reader has ended".to_owned());
        if self.ask.send(()).is_err() {
            return Ok(gone());
        }
        let mut missed: Option<Pin<Box<dyn Future<Output = Vec<Value>>>>> = None;
        if unfollowed {
            missed = Some(Box::pin(conversation.missed()));
        }
        loop {
            tokio::select! {
                typed = self.typed.recv() => return Ok(typed.unwrap_or_else(gone)),
                event = conversation.next_news() => {
                    let event = event?;
                    if matches!(event, LinkEvent::Connected(_)) {
                        missed = Some(Box::pin(conversation.missed()));
                    }
                    self.show(&event);
                }
                events = answered(&mut missed) => {
                    missed = None;
                    for event in events {
                        if let Some((name, payload)) = replayed(event) {
                            let event = LinkEvent::Event { name: name.to_owned(), payload, seq: None };
                            if let Some(event) = conversation.news(event) {
                                self.show(&event);
                            }
                        }
                    }
                }
            }
        }
    }

    fn show(&mut self, event: &LinkEvent) {
        beside(event, |text| {
            if let Some(printer) = &mut self.printer {
                // What can't be shown now is in the history.
                let _ = printer.print(format!("{text}\n"));
            }
        });
    }
}

async fn answered<T>(future: &mut Option<Pin<Box<dyn Future<Output = T>>>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// What happened without our asking: a run that somebody or something else started, the link, the session.
fn beside(event: &LinkEvent, mut show: impl FnMut(&str)) {
    match event {
        LinkEvent::Disconnected { reason, .. } => show(&format!("connection lost ({}); trying again…", clean(reason))),
        LinkEvent::Connected(_) => show("connected again"),
        LinkEvent::Event { name, payload, .. } if name == Chat::NAME => {
            let Ok(event) = serde_json::from_value::<ChatEvent>(payload.clone()) else {
                return;
            };
            match event.state {
                ChatState::Final => {
                    let text = event.message.as_ref().map(message_text).unwrap_or_default();
                    if !text.trim().is_empty() {
                        show(clean(&text).trim());
                    }
                }
                ChatState::Error => show(&format!(
                    "a run failed: {}",
                    clean(event.error.as_deref().unwrap_or("no reason was given"))
                )),
                _ => {}
            }
        }
        LinkEvent::Event { name, payload, .. } if name == Session::NAME => {
            if let Ok(event) = serde_json::from_value::<SessionEvent>(payload.clone())
                && let Some(text) = event.text.filter(|text| !text.trim().is_empty())
            {
                show(&clean(&text));
            }
        }
        _ => {}
    }
}
