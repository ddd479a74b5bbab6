//! What a person does while a turn is under way: commands that act at once, and answers to questions. Pure. A turn that is over
//! still waits a moment for the answers of its commands.

use std::mem;
use std::time::Duration;

use gsv_link::LinkError;
use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams, ChatSendParams, ChatSendResult, MessageId,
};

use super::{Approve, Draw, Effect, Goes, Input, READING, Turn};
use crate::chat::followed::News;
use crate::chat::outcomes;
use crate::chat::view::{how_to_answer, too_early};
use crate::client::link_failure;
use crate::exit::Outcome;

/// How long the end of a turn waits for the answers of its commands.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Beside {
    /// Commands without an answer.
    open: usize,
    /// One of them stops the run.
    pub(super) stops: bool,
    /// Calls that wait for a word, the one that was shown last first.
    pub(super) waiting: Vec<ApprovalEntry>,
    /// From when on a word counts for the question that was shown last. None: it does, and the person was told so.
    pub(super) counts_at: Option<Duration>,
    /// The turn is over; it ends after the answers, or at this time.
    ending: Option<(Outcome, Duration)>,
}

impl Beside {
    pub(super) const fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    pub(super) fn ends_at(&self) -> Option<Duration> {
        self.ending.as_ref().map(|(_, deadline)| *deadline)
    }
}

impl Turn<'_> {
    /// Whether a call waits for a word.
    pub fn asks(&self) -> bool {
        !self.beside.waiting.is_empty()
    }

    /// The calls that still wait for a word.
    pub fn into_waiting(self) -> Vec<ApprovalEntry> {
        self.beside.waiting
    }

    pub(super) fn end(&mut self, result: Outcome, now: Duration) {
        if self.beside.open > 0 && !self.followed.ended {
            self.beside.ending = Some((result, now + ANSWER_PATIENCE));
        } else {
            self.effects.push(Effect::End(result));
        }
    }

    /// The run is over: only the answers of the commands count.
    pub(super) fn step_at_the_end(&mut self, input: Input, now: Duration) {
        let is_late = self.beside.ends_at().is_some_and(|deadline| now >= deadline);
        match input {
            Input::Commanded(text, result) => self.commanded(&text, result),
            Input::Command(text, id) => self.command(text, id),
            Input::News(news) => {
                self.followed.note_link(&news);
                if let News::Session(event) = news {
                    self.session_event(event);
                }
            }
            Input::Interrupted => self.beside.open = 0,
            Input::Wake if is_late => {
                self.note("a command got no answer");
                self.beside.open = 0;
            }
            _ => {}
        }
        if (self.beside.open == 0 || self.followed.ended)
            && let Some((result, _)) = mem::take(&mut self.beside.ending)
        {
            self.show_early("");
            self.effects.push(Effect::End(result));
        }
    }

    pub(super) fn command(&mut self, message: String, id: MessageId) {
        let mut words = message.split_whitespace();
        self.beside.stops |= words.next().is_some_and(|word| word.eq_ignore_ascii_case("/stop"));
        self.beside.open += 1;
        // An event before the answer may say the same.
        self.early.get_or_insert_default();
        self.effects.push(Effect::Command(ChatSendParams {
            session_key: self.followed.key(),
            message,
            run_id: None,
            message_id: Some(id),
            attachments: None,
        }));
    }

    pub(super) fn commanded(&mut self, text: &str, result: Result<ChatSendResult, LinkError>) {
        self.beside.open = self.beside.open.saturating_sub(1);
        let answer = match result {
            Ok(ChatSendResult::Command { error: Some(error), .. } | ChatSendResult::Paused { response: error, .. }) => {
                Err(error)
            }
            Ok(ChatSendResult::Command { response, .. } | ChatSendResult::DirectiveOnly { response, .. }) => {
                Ok(response.unwrap_or_default())
            }
            Ok(ChatSendResult::Started { .. }) => Err(format!(
                "the gateway took it as a message; its answer is in `gsv session preview {}`",
                self.followed.session
            )),
            Err(error) => Err(link_failure(&error).message),
        };
        let said = answer.as_deref().unwrap_or_default();
        let is_repeated = self.show_early(said);
        if !self.accepted && self.beside.ending.is_none() || self.beside.open > 0 {
            self.early = Some(Vec::new());
        }
        match answer {
            Ok(answer) if answer.is_empty() => self.note("done"),
            Ok(answer) => {
                if !is_repeated {
                    self.followed.confirmed = Some(answer.clone());
                }
                self.draw(Draw::Answer(answer));
            }
            Err(why) => {
                self.beside.stops = false;
                self.note(&format!("{text}: {why}"));
            }
        }
    }

    pub(super) fn looked(&mut self, code: Option<&str>, waiting: Vec<ApprovalEntry>, now: Duration) -> Outcome<Goes> {
        // A question that was announced may have ended since.
        let is_there = |code| waiting.iter().any(|entry| entry.code == code);
        if code.is_some_and(|code| !is_there(code)) {
            return Ok(Goes::On);
        }
        if self.approve == Approve::Ask {
            return Err(outcomes::paused(&waiting));
        }
        if !waiting.is_empty() {
            self.draw(Draw::Question(waiting.clone()));
            self.beside.counts_at = Some(now + READING);
        }
        self.beside.waiting = waiting;
        Ok(Goes::On)
    }

    /// The person has had the time to read the question.
    pub(super) fn counts(&mut self, now: Duration) {
        if self.beside.counts_at.is_some_and(|at| now >= at) {
            self.beside.counts_at = None;
            how_to_answer(&self.beside.waiting).inspect(|text| self.note(text));
        }
    }

    /// The word is bound to the call that was shown. A word that came at once was meant for something else.
    pub(super) fn decided(&mut self, decision: ApprovalAnswerKind, now: Duration) {
        if self.beside.waiting.is_empty() {
            return;
        }
        if self.beside.counts_at.is_some_and(|at| now < at) {
            let text = too_early(&self.beside.waiting);
            return self.note(&text);
        }
        let entry = self.beside.waiting.remove(0);
        self.effects.push(Effect::Resolve(ApprovalResolveParams {
            code: entry.code,
            decision,
            word: None,
            session_key: Some(entry.session_key),
            hash: Some(entry.hash),
        }));
    }
}
