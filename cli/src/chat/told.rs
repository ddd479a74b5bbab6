//! News at the prompt as text, and the answers to questions that they bring.

use gsv_protocol::errors;
use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams, ChatEvent};
use tokio::time::Instant;

use super::Talk;
use crate::chat::assembler::message_text;
use crate::chat::complete::message;
use crate::chat::conversation::Conversation;
use crate::chat::decision::Decision;
use crate::chat::files::{files_of, line};
use crate::chat::followed::News;
use crate::chat::headlines::headline;
use crate::chat::misread::answers;
use crate::chat::running::Answer;
use crate::chat::turn::READING;
use crate::chat::view::{asked, said, too_early};
use crate::clean::one_line;
use crate::commands::approval_view::{held, told};
use crate::commands::messages::by_itself;
use crate::embedded::layout::Layout;
use crate::markdown::Look;
use crate::output::Style;
use crate::units::now_ms;

fn is_end(news: &News) -> bool {
    matches!(news, News::Chat(event) if matches!(**event, ChatEvent::Final { .. } | ChatEvent::Error { .. } | ChatEvent::Aborted { .. }))
}

impl Talk<'_> {
    /// Shows news. After a reconnect, asks for those that were missed.
    pub(super) async fn tell(&mut self, news: &News, missed: &mut Answer<Vec<News>>, conversation: &Conversation) {
        // A machine that comes or goes is a note, and a setting that is changed elsewhere an event of the session.
        if matches!(news, News::Connected | News::Session(_)) || is_end(news) {
            self.board.note_stale();
        }
        if *news == News::Connected {
            *missed = Some(Box::pin(conversation.missed()));
        }
        let text = self.told(news, conversation).await;
        text.inspect(|text| self.out.note(text));
    }

    /// Unsolicited news as text. An answer that another client asked for is shown with its question.
    async fn told(&mut self, news: &News, conversation: &Conversation) -> Option<String> {
        let look = Look {
            width: self.out.size().0,
            colour: self.out.colour(),
        };
        let event = match news {
            News::Chat(event) => event,
            News::Session(event) => {
                let text = event
                    .message
                    .as_ref()
                    .map(|message| said(&message_text(message), Some(look)));
                return text.filter(|text| !text.is_empty()).or_else(|| headline(news));
            }
            _ => return headline(news),
        };
        if let ChatEvent::Final { .. } | ChatEvent::Error { .. } | ChatEvent::Aborted { .. } = &**event {
            self.waiting.retain(|entry| Some(&entry.run_id) != event.run_id());
        }
        if let ChatEvent::Paused {
            approval_id: Some(code),
            ..
        } = &**event
        {
            let waiting = conversation.waiting(Some(code)).await;
            self.asks(waiting);
            let lines = asked(&self.waiting);
            return (!lines.is_empty()).then(|| lines.join("\n"));
        }
        let ChatEvent::Final { message, .. } = &**event else {
            return headline(news);
        };
        let answer = message_text(message);
        let question = conversation.question(Some(&answer)).await;
        let question = question.map(|question| {
            let by_itself = by_itself(&question).map(|(who, wanted)| format!("{who}: {wanted}"));
            let question = one_line(&by_itself.unwrap_or(question), look.width.saturating_sub(2));
            format!("{}\n", self.out.paint(Style::Dim, &format!("» {question}")))
        });
        let answer = said(&answer, Some(look));
        let layout = Layout::find().ok();
        let files = files_of(message)
            .into_iter()
            .map(|file| format!("\n{}", line(&file, layout.as_ref())));
        let text = format!(
            "{}{}{}",
            question.unwrap_or_default(),
            answer,
            files.collect::<String>()
        );
        Some(text).filter(|text| !text.is_empty())
    }

    /// Shows the questions that wait.
    pub(super) fn ask_again(&mut self, waiting: Vec<ApprovalEntry>) {
        self.asks(waiting);
        for line in asked(&self.waiting) {
            self.out.note(&line);
        }
    }

    /// These calls wait for a word. They are shown in this order.
    pub(super) fn asks(&mut self, waiting: Vec<ApprovalEntry>) {
        self.counts_at = (!waiting.is_empty()).then(|| Instant::now() + READING);
        self.waiting = waiting;
    }

    /// Answers the question that was shown first, bound to what was shown.
    pub(super) async fn answer(&mut self, conversation: &Conversation, decision: ApprovalAnswerKind) {
        // The gateway may take its time; the next line can be typed meanwhile.
        let _ = self.prompt.ask();
        if self.counts_at.is_some_and(|at| Instant::now() < at) {
            return self.out.note(&too_early(&self.waiting));
        }
        let entry = self.waiting.remove(0);
        // The end of the run says it.
        let is_quiet = decision == ApprovalAnswerKind::Deny && entry.limit.is_some();
        held(&entry, decision).inspect(|text| self.out.aside(text));
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
            .and_then(|result| told(&entry.code, decision, &result, now_ms()))
        {
            Ok(_) if is_quiet => {}
            Ok(words) => self.out.aside(&words),
            Err(failure) => self.out.failure(&failure),
        }
        let waiting = conversation.waiting(None).await;
        self.ask_again(waiting);
    }
    /// Answers the question with a code. It may be of another conversation, such as that of a hook.
    pub(super) async fn decide(&mut self, conversation: &Conversation, line: &str, decision: Decision) {
        let _ = self.prompt.ask();
        let (code, answer) = (decision.code.clone(), decision.answer);
        let asked = self.waiting.iter().find(|entry| entry.code == code);
        let is_here = asked.is_some();
        let is_quiet = answer == ApprovalAnswerKind::Deny && asked.is_some_and(|entry| entry.limit.is_some());
        asked
            .and_then(|entry| held(entry, answer))
            .inspect(|text| self.out.aside(text));
        let params = decision.about(&mut self.waiting);
        match conversation
            .resolve(params)
            .await
            .and_then(|result| told(&code, answer, &result, now_ms()))
        {
            Ok(_) if is_quiet => {}
            Ok(words) => self.out.aside(&words),
            Err(failure) if failure.reason.as_deref() == Some(errors::APPROVAL_NOT_FOUND.reason) => {
                if let Some(first) = self.waiting.first() {
                    let text = format!(
                        "No open question has the code {code}. {}",
                        answers(first, &self.waiting)
                    );
                    return self.out.note(&text);
                }
                let problem = format!("No call with the code {code} waits for your word.");
                let question = self.reader.doubt(message(line), &problem);
                self.out.note(&question);
            }
            Err(failure) => self.out.failure(&failure),
        }
        if is_here {
            let waiting = conversation.waiting(None).await;
            self.ask_again(waiting);
        }
    }
}
