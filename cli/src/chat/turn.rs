//! One message and its answer, across lost connections: the message is sent once by its id (SPEC.md C1), its answer is read
//! from the session's events, and missed events are asked for after a reconnect (C5).
//!
//! PURE: time is an argument, counted from the beginning of the turn. `conversation` drives it: sends, waits and draws. `turn_io`
//! has its inputs and effects, `catch_up` the missed events, `beside` what a person does meanwhile.

use std::time::Duration;

use gsv_protocol::types::{ChatAbortParams, ChatEvent, ChatSendParams, PolicyMode, RunId, SessionEvent, WhileBusy};

use super::assembler::{Assembler, Ending, Show, session_seq};
use super::followed::{Followed, News, confirms};
use super::misread::short_answers;
use super::outcomes::{self, is_at_limit};
pub use super::turn_io::{Approve, Draw, Effect, Ids, Input, Request};
use crate::clean::clean;
use crate::client::link_failure;
use crate::exit::Outcome;
use beside::Beside;
use catch_up::CatchUp;
pub use steering::Steering;

/// Silence after which a person is told that the turn still waits.
const NOTICE_AFTER: Duration = Duration::from_secs(15);
const NOTICE_AGAIN: Duration = Duration::from_secs(60);
/// A turn ends when the gateway cannot be reached for so long.
pub const LOST_PATIENCE: Duration = Duration::from_secs(300);
/// A word about a call counts so long after its question was shown: before, the person was typing it for something else.
pub const READING: Duration = Duration::from_secs(1);
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// Chat events that wait for a catch-up. Further ones are dropped; the log events among them can be asked for again.
const MAX_STASH: usize = 20_000;

pub struct Turn<'a> {
    followed: &'a mut Followed,
    timeout: Option<Duration>,
    verbose: bool,
    approve: Approve,
    run: RunId,
    assembler: Assembler,
    /// The gateway has accepted the message.
    accepted: bool,
    /// Session events before the answer to the message: the answer may say the same.
    early: Option<Vec<SessionEvent>>,
    /// Events may have been missed: the connection was lost, or the message was accepted over an earlier one.
    gap: bool,
    catch_up: CatchUp,
    /// From where the latest catch-up was asked.
    asked_from: Option<u64>,
    /// Chat events that came during a catch-up.
    stash: Vec<ChatEvent>,
    abort_deadline: Option<Duration>,
    beside: Beside,
    lost_since: Option<Duration>,
    notice_at: Duration,
    effects: Vec<Effect>,
    /// Messages for this run that it has not been shown yet.
    steering: Vec<Steering>,
    /// The message is itself for the run that is followed, and this is its own run, in case that one ends before it has the message.
    own: Option<RunId>,
    while_busy: Option<WhileBusy>,
    mode: Option<PolicyMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    /// The answer is complete.
    Done,
}

impl<'a> Turn<'a> {
    pub const fn is_here(&self) -> bool {
        self.followed.here
    }

    /// The first effects send the message.
    pub fn start(followed: &'a mut Followed, request: Request, ids: Ids) -> (Self, Vec<Effect>) {
        let params = ChatSendParams {
            session_key: followed.key(),
            message: request.message,
            run_id: Some(ids.run.clone()),
            message_id: Some(ids.message),
            attachments: (!request.files.is_empty()).then_some(request.files),
            while_busy: request.while_busy,
            mode: request.mode,
            thinking: followed.asks_for_thoughts(),
        };
        // The connection may have been lost since the last turn.
        let gap = !followed.connected;
        followed.confirmed = None;
        let turn = Self {
            followed,
            timeout: request.timeout,
            verbose: request.verbose,
            approve: request.approve,
            run: ids.run,
            assembler: Assembler::default(),
            accepted: false,
            early: Some(Vec::new()),
            gap,
            catch_up: if gap { CatchUp::Due } else { CatchUp::Done },
            asked_from: None,
            stash: Vec::new(),
            abort_deadline: None,
            beside: Beside::default(),
            steering: Vec::new(),
            own: None,
            while_busy: request.while_busy,
            mode: request.mode,
            lost_since: None,
            notice_at: NOTICE_AFTER,
            effects: Vec::new(),
        };
        (turn, vec![Effect::Send(params)])
    }

    /// When `Wake` is due, unless something else happens before.
    pub fn wake_at(&self) -> Duration {
        if let Some(deadline) = self.beside.ends_at() {
            return deadline;
        }
        let deadlines = [
            self.timeout,
            self.abort_deadline,
            self.lost_deadline(),
            self.beside.counts_at,
        ];
        deadlines.into_iter().flatten().fold(self.notice_at, Duration::min)
    }

    /// The last effect of a turn is `End`; nothing may be handed in after it.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        if self.beside.is_ending() {
            self.step_at_the_end(input, now);
            return std::mem::take(&mut self.effects);
        }
        match self.step(input, now) {
            Ok(Goes::On) => self.ask_for_missed(),
            Ok(Goes::Done) => self.end(Ok(()), now),
            Err(failure) => {
                self.show_early("");
                self.draw(Draw::Show(Show::EndOfText));
                self.end(Err(failure), now);
            }
        }
        std::mem::take(&mut self.effects)
    }

    fn step(&mut self, input: Input, now: Duration) -> Outcome<Goes> {
        match input {
            Input::News(news) => self.news(news, now),
            Input::Sent(result) => self.sent(result.map_err(|error| link_failure(&error))?),
            Input::Subscribed(result) => self.subscribed(result, now),
            Input::Aborted(result) => result.map(|()| Goes::On).map_err(|error| link_failure(&error)),
            Input::Looked(code, waiting) => self.looked(code.as_deref(), waiting, now),
            Input::Command(text, id) => {
                self.command(text, id);
                Ok(Goes::On)
            }
            Input::Commanded(text, result) => {
                self.commanded(&text, result);
                Ok(Goes::On)
            }
            Input::Steer(text, ids) => {
                self.steer(text, ids);
                Ok(Goes::On)
            }
            Input::Steered(id, result) => {
                self.steered(&id, result);
                Ok(Goes::On)
            }
            Input::Thoughts(on) => {
                self.followed.thinking = on;
                if on {
                    // The message was sent without asking for them.
                    self.catch_up = self.catch_up.again();
                }
                Ok(Goes::On)
            }
            Input::Decided(decision) => {
                self.decided(decision, now);
                Ok(Goes::On)
            }
            Input::DecidedAbout(decision) => {
                self.decided_about(decision);
                Ok(Goes::On)
            }
            Input::Resolved(code, decision, result) => {
                self.resolved(&code, decision, result);
                Ok(Goes::On)
            }
            Input::Interrupted => self.interrupted(now),
            Input::Wake => self.wake(now),
        }
    }

    fn news(&mut self, news: News, now: Duration) -> Outcome<Goes> {
        self.followed.note_link(&news);
        if let News::Chat(event) = &news
            && event.run_id().is_some_and(|run| *run != self.run)
            && self.followed.concerns(event.session_key())
        {
            self.of_another_run(event);
        }
        match news {
            News::Chat(event) if self.catch_up != CatchUp::Done => {
                if self.stash.len() < MAX_STASH {
                    self.stash.push(*event);
                }
            }
            News::Chat(event) => return self.chat(*event, now),
            News::Session(event) => return Ok(self.session_event(event)),
            News::Connected => {
                if self.lost_since.take().is_some() {
                    self.draw(Draw::Connected);
                }
                // An answer over the old connection would be out of date.
                self.catch_up = CatchUp::Due;
                self.gap = true;
            }
            News::Lost(reason) => {
                if self.lost_since.is_none() {
                    self.lost_since = Some(now);
                    self.draw(Draw::Lost(reason));
                }
            }
            News::Ended(failure) => return Err(failure),
        }
        Ok(Goes::On)
    }

    fn session_event(&mut self, event: Box<SessionEvent>) -> Goes {
        if self.followed.concerns(&event.session_key) {
            self.followed.note_seq(event.session_seq);
            if self.followed.is_repeated(&event) {
                return Goes::On;
            }
            if self.early.is_none() && self.followed.repeats_an_answer(&event) {
                return Goes::On;
            }
            match &mut self.early {
                Some(early) => early.push(*event),
                None => self.draw(Draw::Session(event)),
            }
        }
        Goes::On
    }

    /// Shows the events that waited for the answer, unless they only repeat it. Returns whether one of them did.
    fn show_early(&mut self, answer: &str) -> bool {
        let mut repeated = false;
        for event in self.early.take().unwrap_or_default() {
            if confirms(&event, answer) {
                repeated = true;
            } else {
                self.draw(Draw::Session(Box::new(event)));
            }
        }
        repeated
    }

    fn chat(&mut self, event: ChatEvent, now: Duration) -> Outcome<Goes> {
        let is_ours = event.run_id() == Some(&self.run);
        if is_ours {
            self.followed.learn_name(event.session_key());
        }
        if !self.followed.concerns(event.session_key()) {
            return Ok(Goes::On);
        }
        self.followed.note_seq(session_seq(&event));
        if is_ours && !matches!(event, ChatEvent::Aborted { .. }) {
            self.beside.behind = false;
        }
        self.note_steered(&event);
        let is_another_run = event.run_id().is_some() && !is_ours;
        if is_another_run || self.assembler.is_repeated(&event) {
            return Ok(Goes::On);
        }
        let shows = self.assembler.take(&event);
        self.draw(Draw::Event(Box::new(event)));
        self.show(shows, now)
    }

    fn show(&mut self, shows: Vec<Show>, now: Duration) -> Outcome<Goes> {
        for show in shows {
            self.notice_at = now + NOTICE_AFTER;
            match show {
                Show::End(_) if self.own.is_some() => self.has_own_run(),
                Show::End(Ending::Final { usage }) => {
                    if self.verbose {
                        self.draw(Draw::Usage(usage, now));
                    }
                    return Ok(Goes::Done);
                }
                Show::End(Ending::Error { message, reason, .. })
                    if self.beside.kept.is_some() && is_at_limit(reason.as_deref()) =>
                {
                    let code = self.beside.kept.take().unwrap_or_default();
                    self.note(&format!("{code}: denied. {}", clean(&message)));
                    return Ok(Goes::Done);
                }
                Show::End(Ending::Error { message, reason, hint }) => {
                    return Err(outcomes::run_failed(
                        &self.followed.session,
                        message,
                        reason,
                        hint.as_deref(),
                    ));
                }
                // The answer of the command says so.
                Show::End(Ending::Aborted) if self.beside.stops => return Ok(Goes::Done),
                Show::End(Ending::Aborted) if self.beside.behind && self.abort_deadline.is_some() => {
                    return Err(outcomes::withdrawn(&self.followed.session, &self.beside.waiting));
                }
                Show::End(Ending::Aborted) => return Err(outcomes::aborted(self.abort_deadline.is_some())),
                Show::Paused {
                    code: Some(code),
                    about_limit,
                    ..
                } => self.paused(code, about_limit),
                show => {
                    if matches!(show, Show::Text(_)) {
                        // The model goes on, so its calls have ended.
                        self.beside.waiting.clear();
                    }
                    self.draw(Draw::Show(show));
                }
            }
        }
        Ok(Goes::On)
    }

    fn interrupted(&mut self, now: Duration) -> Outcome<Goes> {
        if self.abort_deadline.is_some() {
            return Err(outcomes::left());
        }
        self.withdraws();
        self.note(if self.beside.behind {
            "withdrawing your message… (Ctrl-C again: do not wait for the end)"
        } else {
            "stopping… (Ctrl-C again: do not wait for the end)"
        });
        self.abort_deadline = Some(now + ABORT_PATIENCE);
        self.effects.push(Effect::Abort(ChatAbortParams {
            session_key: self.followed.key(),
            run_id: Some(self.run.clone()),
        }));
        Ok(Goes::On)
    }

    fn lost_deadline(&self) -> Option<Duration> {
        self.lost_since.map(|since| since + LOST_PATIENCE)
    }

    fn wake(&mut self, now: Duration) -> Outcome<Goes> {
        let is_over = |deadline: Option<Duration>| deadline.is_some_and(|deadline| now >= deadline);
        let session = &self.followed.session;
        if let Some(timeout) = self.timeout.filter(|timeout| now >= *timeout) {
            return Err(outcomes::timed_out(session, timeout, self.accepted));
        }
        if is_over(self.abort_deadline) {
            return Err(outcomes::abort_unconfirmed(session));
        }
        if is_over(self.lost_deadline()) {
            return Err(outcomes::lost(session, LOST_PATIENCE));
        }
        self.counts(now);
        if now >= self.notice_at {
            self.notice_at = now + NOTICE_AGAIN;
            let waited = outcomes::words(now);
            self.note(&if self.beside.waiting.is_empty() {
                format!("still waiting for the answer after {waited} (Ctrl-C stops the run)")
            } else {
                format!(
                    "a question waits for your word: {}",
                    short_answers(&self.beside.waiting)
                )
            });
        }
        Ok(Goes::On)
    }

    fn draw(&mut self, draw: Draw) {
        self.effects.push(Effect::Draw(draw));
    }

    fn note(&mut self, text: &str) {
        self.draw(Draw::Note(text.to_owned()));
    }
}

#[path = "beside.rs"]
mod beside;
#[path = "catch_up.rs"]
mod catch_up;
#[path = "sent.rs"]
mod sent;
#[path = "steering.rs"]
mod steering;

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
