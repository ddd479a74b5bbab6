//! Requests that the chat sends beside a running turn: commands that act at once, and answers to questions. Pure. A turn that is over
//! still waits a moment for the answers of these requests.

use std::mem;
use std::time::Duration;

use gsv_link::LinkError;
use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams, ApprovalResolveResult, ChatEvent, ChatSendParams,
    ChatSendResult, MessageId,
};

use super::{Approve, Draw, Effect, Goes, Input, READING, Turn};
use crate::chat::decision::Decision;
use crate::chat::followed::News;
use crate::chat::outcomes::{self, is_at_limit};
use crate::chat::view::{now_answer, too_early};
use crate::clean::{clean, visible};
use crate::client::link_failure;
use crate::commands::approval_view::{answered_for_you, held, told};
use crate::exit::Outcome;
use crate::units::now_ms;

/// How long the end of a turn waits for the answers of its commands.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Beside {
    /// Commands without an answer.
    open: usize,
    /// The message waits behind another run.
    pub(super) behind: bool,
    /// One of them stops the run.
    pub(super) stops: bool,
    /// Calls that wait for a word, in the order in which they were shown.
    pub(super) waiting: Vec<ApprovalEntry>,
    /// From when on a word counts for the questions that were shown. None: it does, and the person was told so.
    pub(super) counts_at: Option<Duration>,
    /// The question about a limit that the person has denied: the end of the run is the answer to it.
    pub(super) kept: Option<String>,
    /// Questions that `--approve` answers as soon as they are looked up, and whether each is about a limit.
    by_option: Vec<(String, bool)>,
    /// Questions of the runs before the message that the person was told about.
    told: Vec<String>,
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

    /// The calls that wait for a word, in the order in which they were shown.
    pub fn waiting(&self) -> &[ApprovalEntry] {
        &self.beside.waiting
    }

    /// Questions that were shown before the turn and still wait.
    pub fn waits(&mut self, waiting: Vec<ApprovalEntry>) {
        self.beside.waiting = waiting;
    }

    /// Whether the person has had the time to read the question.
    pub fn is_known(&self) -> bool {
        self.beside.counts_at.is_none()
    }

    /// Whether a message ends the run that waits, as one from elsewhere does (SP10).
    pub fn gives_way(&self) -> bool {
        let is_about_limit = self.beside.waiting.first().is_some_and(|entry| entry.limit.is_some());
        is_about_limit && self.is_known()
    }

    /// Whether the message waits at the gateway, behind another one or a question.
    pub const fn is_behind(&self) -> bool {
        self.beside.behind
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
            while_busy: None,
            mode: None,
            thinking: self.followed.asks_for_thoughts(),
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
            Ok(ChatSendResult::Started { steers: Some(_), .. }) => Ok("the run gets it at its next step".to_owned()),
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

    /// What a live event of another run of the conversation means for this message.
    pub(super) fn of_another_run(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Paused {
                approval_id: Some(code),
                ..
            } if self.beside.behind => self.effects.push(Effect::Look(Some(code.clone()))),
            ChatEvent::Final { .. } | ChatEvent::Error { .. } | ChatEvent::Aborted { .. } => {
                let has_ended = |entry: &ApprovalEntry| Some(&entry.run_id) == event.run_id();
                self.beside.waiting.retain(|entry| !has_ended(entry));
                if let ChatEvent::Error { error, reason, .. } = event
                    && is_at_limit(reason.as_deref())
                {
                    let why = clean(error.as_deref().unwrap_or_default());
                    self.note(&format!("the run before this message has ended: {why}"));
                }
            }
            _ => {}
        }
    }

    pub(super) fn paused(&mut self, code: String, about_limit: bool) {
        // A run that has not been shown the message yet is that of another message.
        if matches!(self.approve, Approve::Ask | Approve::Here) || self.own.is_some() {
            self.effects.push(Effect::Look(Some(code)));
            return;
        }
        if about_limit && self.approve == Approve::All {
            let code = visible(&code);
            self.note(&format!(
                "{code}: --approve all allows calls and raises no limit, so it is denied"
            ));
        }
        // The look finds what is asked, which the person is told with the answer.
        self.effects.push(Effect::Look(Some(code.clone())));
        self.beside.by_option.push((code, about_limit));
    }

    /// Answers the questions that `--approve` decides, also those that can't be found: the gateway knows best whether they wait.
    fn decide_by_option(&mut self, waiting: &[ApprovalEntry]) {
        for (code, about_limit) in mem::take(&mut self.beside.by_option) {
            let decision = self.decision(about_limit);
            let entry = waiting.iter().find(|entry| entry.code == code);
            if let Some(entry) = entry {
                self.note(&answered_for_you(entry));
            }
            self.effects.push(Effect::Resolve(ApprovalResolveParams {
                code,
                decision,
                word: None,
                session_key: Some(self.followed.key()),
                hash: entry.map(|entry| entry.hash.clone()),
            }));
        }
    }

    /// `--approve all` is about calls: no answer without a person raises what a run may cost.
    fn decision(&self, about_limit: bool) -> ApprovalAnswerKind {
        match self.approve {
            Approve::All if !about_limit => ApprovalAnswerKind::Allow,
            Approve::All | Approve::Ask | Approve::Here | Approve::Never => ApprovalAnswerKind::Deny,
        }
    }

    pub(super) fn resolved(
        &mut self,
        code: &str,
        decision: ApprovalAnswerKind,
        result: Result<ApprovalResolveResult, LinkError>,
    ) {
        let words = result
            .map_err(|error| link_failure(&error))
            .and_then(|result| told(code, decision, &result, now_ms()));
        match words {
            // The end of the run says it.
            Ok(_) if self.beside.kept.is_some() => {}
            Ok(words) => self.note(&words),
            // An answer that someone else gave first is no failure of this turn.
            Err(failure) => {
                self.beside.kept = None;
                self.note(&failure.message);
            }
        }
        if self.approve == Approve::Here {
            self.effects.push(Effect::Look(None));
        }
    }

    pub(super) fn looked(&mut self, code: Option<&str>, waiting: Vec<ApprovalEntry>, now: Duration) -> Outcome<Goes> {
        self.decide_by_option(&waiting);
        // A question that was announced may have ended since.
        let is_there = |code| waiting.iter().any(|entry| entry.code == code);
        if code.is_some_and(|code| !is_there(code)) {
            return Ok(Goes::On);
        }
        match self.approve {
            Approve::Here => {}
            Approve::Ask if self.beside.behind && !waiting.is_empty() => {
                return Err(outcomes::behind(&self.followed.session, &waiting));
            }
            Approve::Never | Approve::All if self.beside.behind || self.own.is_some() => {
                self.waits_behind(&waiting);
                return Ok(Goes::On);
            }
            Approve::Ask if code.is_some() => return Err(outcomes::paused(&self.followed.session, &waiting)),
            _ => return Ok(Goes::On),
        }
        if !waiting.is_empty() {
            self.draw(Draw::Question(waiting.clone()));
            self.beside.counts_at = Some(now + READING);
        }
        self.beside.waiting = waiting;
        Ok(Goes::On)
    }

    /// `--approve` is the answer for this message alone. The turn stays for it, and says what it waits for.
    fn waits_behind(&mut self, waiting: &[ApprovalEntry]) {
        for entry in waiting {
            if !self.beside.told.contains(&entry.code) {
                self.beside.told.push(entry.code.clone());
                let text = outcomes::waits_behind(entry);
                self.note(&text);
            }
        }
    }

    /// The person has had the time to read the question.
    pub(super) fn counts(&mut self, now: Duration) {
        if self.beside.counts_at.is_some_and(|at| now >= at) {
            self.beside.counts_at = None;
            now_answer(&self.beside.waiting).inspect(|text| self.note(text));
        }
    }

    /// With its code, the word counts at once.
    pub(super) fn decided_about(&mut self, decision: Decision) {
        let asked = self.beside.waiting.iter().find(|entry| entry.code == decision.code);
        let is_kept = decision.answer == ApprovalAnswerKind::Deny && asked.is_some_and(|entry| entry.limit.is_some());
        let holds = asked.and_then(|entry| held(entry, decision.answer));
        self.beside.kept = is_kept.then(|| visible(&decision.code));
        holds.inspect(|text| self.note(text));
        let params = decision.about(&mut self.beside.waiting);
        self.effects.push(Effect::Resolve(params));
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
        let is_kept = decision == ApprovalAnswerKind::Deny && entry.limit.is_some();
        self.beside.kept = is_kept.then(|| visible(&entry.code));
        held(&entry, decision).inspect(|text| self.note(text));
        self.effects.push(Effect::Resolve(ApprovalResolveParams {
            code: entry.code,
            decision,
            word: None,
            session_key: Some(entry.session_key),
            hash: Some(entry.hash),
        }));
    }
}
