//! A conversation at the prompt: reads lines, sends them as messages, and shows what happens in the session between two
//! messages. While a run is under way the keyboard is not read, and Ctrl-C stops the run, not the program.

use std::path::PathBuf;

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams, ChatEvent};
use tokio::signal::unix::Signal;

use super::assembler::message_text;
use super::attach::{Chosen, choose, upload_all};
use super::complete::{HELP_HERE, is_command, message, unknown_command};
use super::conversation::{Answer, Conversation, answered};
use super::files::{files_of, line};
use super::followed::News;
use super::prompt::{Prompt, Typed};
use super::turn::{Approve, Request};
use super::view::{CONNECTED, View, lost};
use crate::ask::Hidden;
use crate::clean::{clean, one_line, visible};
use crate::client::Account;
use crate::commands::approval::{question, told};
use crate::commands::stop::stopped_words;
use crate::embedded::layout::Layout;
use crate::exit::{Exit, Outcome};
use crate::markdown::{self, Look};
use crate::output::{Output, Style};
use crate::units::{bytes, now_ms};

/// What a conversation at the prompt needs beside the connection.
pub struct Talk<'a> {
    pub account: &'a Account,
    /// Files for the next message.
    pub files: Vec<Chosen>,
    pub verbose: bool,
    pub approve: Approve,
    /// Calls that wait for a word, the first one shown last.
    pub waiting: Vec<ApprovalEntry>,
    pub out: Output,
}

impl Talk<'_> {
    pub async fn run(mut self, conversation: &mut Conversation, history: PathBuf, interrupts: &mut Signal) -> Outcome {
        let out = self.out;
        let mut prompt = Prompt::open(history, out)?;
        let session = &conversation.followed.session;
        out.aside(&format!("{session} · /help shows commands, Ctrl-D leaves"));
        if let Some(state) = conversation.stopped().await {
            out.warn(&format!("GSV is {}", stopped_words(&state)));
        }
        self.list_files();
        conversation.follow().await;
        let mut view = View::new(out);
        // Between two lines, keys wait for the prompt: shown in the middle of an answer, they would garble it.
        let _keys = Hidden::waiting()?;
        let mut asked_to_leave = false;
        let mut unknown: Option<String> = None;
        loop {
            let line = match self.read(&mut prompt, conversation).await? {
                Typed::Line(line) => line,
                Typed::Interrupted if !asked_to_leave => {
                    asked_to_leave = true;
                    out.aside("(Ctrl-C again or Ctrl-D leaves)");
                    continue;
                }
                _ => return Ok(()),
            };
            asked_to_leave = false;
            let mut text = message(&line);
            let asked = unknown.take();
            match (asked, text.to_lowercase().as_str()) {
                (Some(asked), "y" | "yes") => text = asked,
                (Some(_), "" | "n" | "no") => {
                    out.aside("not sent");
                    continue;
                }
                (None, "y" | "yes") if !self.waiting.is_empty() => {
                    self.answer(conversation, ApprovalAnswerKind::Allow).await;
                    continue;
                }
                (None, "n" | "no") if !self.waiting.is_empty() => {
                    self.answer(conversation, ApprovalAnswerKind::Deny).await;
                    continue;
                }
                // Any other line is a message of its own.
                _ => {
                    if let Some(question) = unknown_command(&text) {
                        out.note(&question);
                        unknown = Some(text);
                        continue;
                    }
                }
            }
            match text.as_str() {
                "" => {}
                "/quit" | "/exit" => return Ok(()),
                text if text == "/attach" || text.starts_with("/attach ") => {
                    self.attach(text.strip_prefix("/attach").unwrap_or_default().trim());
                }
                text => {
                    if let Err(failure) = self.say(text, conversation, &mut view, interrupts).await {
                        if failure.exit == Exit::Paused {
                            self.waiting = conversation.waiting(None).await;
                            self.show_waiting();
                            continue;
                        }
                        if conversation.followed.ended {
                            return Err(failure);
                        }
                        out.failure(&failure);
                    } else if text == "/help" {
                        out.line(HELP_HERE);
                    }
                }
            }
        }
    }

    /// The next line. Meanwhile shows what happens in the session.
    async fn read(&mut self, prompt: &mut Prompt, conversation: &mut Conversation) -> Outcome<Typed> {
        let mut missed: Answer<Vec<News>> = None;
        for news in conversation.catch_up() {
            if news == News::Connected {
                missed = Some(Box::pin(conversation.missed()));
            }
            let text = self.told(&news, conversation).await;
            text.inspect(|text| self.out.note(text));
        }
        prompt.ask()?;
        loop {
            let news = tokio::select! {
                typed = prompt.typed() => return typed,
                news = conversation.next_news() => vec![news?],
                mut news = answered(&mut missed) => {
                    news.retain(|news| conversation.followed.is_new(news));
                    news
                }
            };
            for news in news {
                if news == News::Connected {
                    missed = Some(Box::pin(conversation.missed()));
                }
                let text = self.told(&news, conversation).await;
                text.inspect(|text| prompt.print(text));
            }
        }
    }

    /// Unsolicited news as text. An answer that another client asked for is shown with its question.
    async fn told(&mut self, news: &News, conversation: &Conversation) -> Option<String> {
        let News::Chat(event) = news else { return headline(news) };
        if let ChatEvent::Paused {
            approval_id: Some(code),
            ..
        } = &**event
        {
            self.waiting = conversation.waiting(Some(code)).await;
            let now = now_ms();
            let mut lines: Vec<String> = self
                .waiting
                .iter()
                .rev()
                .flat_map(|entry| question(entry, now))
                .collect();
            let first = self.waiting.first()?;
            lines.push(format!(
                "{}: y allows this call once, n denies it",
                visible(&first.code)
            ));
            return Some(lines.join("\n"));
        }
        let ChatEvent::Final { message, .. } = &**event else {
            return headline(news);
        };
        let look = Look {
            width: self.out.size().0,
            colour: self.out.colour(),
        };
        let question = conversation.question().await;
        let question = question.map(|question| {
            let question = one_line(&question, look.width.saturating_sub(2));
            format!("{}\n", self.out.paint(Style::Dim, &format!("» {question}")))
        });
        let answer = markdown::render(&clean(&message_text(message)), look);
        let layout = Layout::find().ok();
        let files = files_of(message)
            .into_iter()
            .map(|file| format!("\n{}", line(&file, layout.as_ref())));
        let text = format!(
            "{}{}{}",
            question.unwrap_or_default(),
            answer.trim_end(),
            files.collect::<String>()
        );
        Some(text).filter(|text| !text.is_empty())
    }

    /// Shows the questions, and how to answer the first of them.
    fn show_waiting(&self) {
        let now = now_ms();
        for line in self.waiting.iter().rev().flat_map(|entry| question(entry, now)) {
            self.out.note(&line);
        }
        if let Some(first) = self.waiting.first() {
            let code = visible(&first.code);
            self.out.note(&format!(
                "{code}: y allows this call once, n denies it; the run waits meanwhile"
            ));
        }
    }

    /// Answers the question that was shown last, bound to what was shown.
    async fn answer(&mut self, conversation: &Conversation, decision: ApprovalAnswerKind) {
        let entry = self.waiting.remove(0);
        let params = ApprovalResolveParams {
            code: entry.code.clone(),
            decision,
            word: None,
            session_key: Some(entry.session_key),
            hash: Some(entry.hash),
        };
        match conversation
            .resolve(params)
            .await
            .and_then(|result| told(&entry.code, decision, &result))
        {
            Ok(words) => self.out.aside(&words),
            Err(failure) => self.out.failure(&failure),
        }
        self.waiting = conversation.waiting(None).await;
        self.show_waiting();
    }

    /// The files stay chosen until they are uploaded, so a message that failed before that can be sent again.
    async fn say(
        &mut self,
        text: &str,
        conversation: &mut Conversation,
        view: &mut View,
        interrupts: &mut Signal,
    ) -> Outcome {
        let mut files = Vec::new();
        // Commands are answered at once; files wait for a message.
        if !is_command(text) {
            let session = &conversation.followed.session;
            files = upload_all(self.account, session, &self.files, self.out, interrupts).await?;
            self.files.clear();
        }
        let request = Request {
            message: text.to_owned(),
            files,
            timeout: None,
            verbose: self.verbose,
            approve: self.approve,
        };
        conversation.turn(request, view, interrupts).await
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
        let names = self
            .files
            .iter()
            .map(|file| format!("{} ({})", clean(&file.name), bytes(file.size)));
        let names = names.collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            self.out
                .aside(&format!("with the next message: {names} · /attach none removes them"));
        }
    }
}

/// A path as people type it: `~/` for their home, and quotes or backslashes around spaces, as completion writes them.
fn typed_path(path: &str) -> PathBuf {
    let bare = path.trim_matches('"').replace("\\ ", " ");
    match (bare.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(bare),
    }
}

/// Unsolicited news as text: a run that another client started, the link, the session.
fn headline(news: &News) -> Option<String> {
    let text = match news {
        News::Lost(reason) => lost(reason),
        News::Connected => CONNECTED.to_owned(),
        News::Ended(_) => String::new(),
        News::Session(event) => event.text.clone().unwrap_or_default(),
        News::Chat(event) => match &**event {
            ChatEvent::Final { message, .. } => message_text(message),
            ChatEvent::Error { error, .. } => {
                let why = error.as_deref().unwrap_or("the gateway gave no reason");
                format!("a run failed: {why}")
            }
            _ => String::new(),
        },
    };
    let text = clean(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn th19_news_between_two_messages_are_shown_in_one_clean_text() {
        let says = |event: serde_json::Value| headline(&News::replayed(event).unwrap());
        let text = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let chat = |state: &str, more: serde_json::Value| {
            let mut event = json!({"sessionKey": "s", "runId": "r", "state": state});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let done = chat("final", json!({"message": text("Done\u{1b}[2J.\n")}));
        assert_eq!(says(done).as_deref(), Some("Done."));
        assert_eq!(says(chat("delta", json!({"text": "Do"}))), None);
        let failed = chat("error", json!({"error": "No model."}));
        assert_eq!(says(failed).as_deref(), Some("a run failed: No model."));
        let note = json!({"sessionKey": "s", "kind": "note", "text": " laptop is back "});
        assert_eq!(says(note).as_deref(), Some("laptop is back"));
        assert_eq!(headline(&News::Connected).as_deref(), Some("connected again"));
    }

    #[test]
    fn paths_are_read_as_completion_writes_them() {
        assert_eq!(typed_path("a\\ b.txt"), PathBuf::from("a b.txt"));
        assert_eq!(typed_path("\"a b.txt\""), PathBuf::from("a b.txt"));
    }
}
