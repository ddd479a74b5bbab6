//! One message and its answer, across lost connections: sent once by its id (SPEC.md C1), followed by its session's events,
//! caught up after a reconnect (C5). Decides nothing about looks.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use gsv_link::{LinkError, LinkEvent};
use gsv_protocol::events::{Chat, Session};
use gsv_protocol::methods::{ChatAbort, ChatSend, SessionSubscribe};
use gsv_protocol::types::{
    Attachment, ChatAbortParams, ChatEvent, ChatSendParams, ChatSendResult, MessageId, RunId, RunState, SessionEvent,
    SessionSubscribeParams, SessionSubscribeResult,
};
use gsv_protocol::{Event, errors};
use serde_json::Value;
use tokio::signal::unix::Signal;
use tokio::time::{Instant, sleep_until};
use ulid::Ulid;

use super::assembler::{Assembler, Ending, Show};
use super::conversation::{Conversation, closed, replayed};
use super::view::{View, line};
use crate::client::link_failure;
use crate::exit::{Exit, Failure, Outcome};

use crate::units::duration;

/// Silence after which a person is told that something still happens.
const NOTICE_AFTER: Duration = Duration::from_secs(15);
const NOTICE_AGAIN: Duration = Duration::from_secs(60);
/// A gateway that can't be reached for so long is not coming back for this turn.
const LOST_PATIENCE: Duration = Duration::from_secs(300);
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// Chat events that wait for a catch-up; a client that is further behind asks again.
const MAX_STASH: usize = 20_000;

type Answer<T> = Option<Pin<Box<dyn Future<Output = Result<T, LinkError>>>>>;

pub struct Request<'a> {
    pub message: &'a str,
    /// Uploaded already.
    pub files: Vec<Attachment>,
    pub timeout: Option<Duration>,
    pub verbose: bool,
}

pub struct Turn<'a> {
    conversation: &'a mut Conversation,
    assembler: Assembler,
    run: RunId,
    began: Instant,
    send: Answer<ChatSendResult>,
    /// The message is accepted.
    accepted: bool,
    /// Events were missed and have to be asked for.
    behind: bool,
    /// The link broke during this turn, or before it.
    broken: bool,
    sync: Answer<SessionSubscribeResult>,
    sync_from: Option<u64>,
    /// Live events that came during a catch-up.
    stash: Vec<ChatEvent>,
    abort: Answer<()>,
    abort_deadline: Option<Instant>,
    lost_since: Option<Instant>,
    notice_at: Instant,
}

impl<'a> Turn<'a> {
    pub fn new(conversation: &'a mut Conversation, request: &Request<'_>) -> Self {
        let run = RunId(Ulid::generate().to_string());
        let params = ChatSendParams {
            session_key: conversation.key(),
            message: request.message.to_owned(),
            run_id: Some(run.clone()),
            message_id: Some(MessageId(Ulid::generate().to_string())),
            attachments: (!request.files.is_empty()).then(|| request.files.clone()),
        };
        let link = conversation.link.clone();
        // The link sends it again after a reconnect, under the same id; its patience ends after ours.
        let send = async move { link.call_within::<ChatSend>(params, LOST_PATIENCE * 2).await };
        let now = Instant::now();
        Self {
            // A turn after a quiet loss of the link begins with a catch-up.
            behind: !conversation.connected,
            broken: !conversation.connected,
            conversation,
            assembler: Assembler::default(),
            run,
            began: now,
            send: Some(Box::pin(send)),
            accepted: false,
            sync: None,
            sync_from: None,
            stash: Vec::new(),
            abort: None,
            abort_deadline: None,
            lost_since: None,
            notice_at: now + NOTICE_AFTER,
        }
    }

    pub async fn run(&mut self, request: &Request<'_>, view: &mut View, interrupts: &mut Signal) -> Outcome {
        let deadline = request.timeout.map(|timeout| self.began + timeout);
        loop {
            self.start_sync();
            let lost = self.lost_since.map(|since| since + LOST_PATIENCE);
            tokio::select! {
                // Answers first: what they say (which run is ours, what was missed) tells how to read the events.
                biased;
                _ = interrupts.recv() => self.interrupted(view)?,
                result = answered(&mut self.send) => {
                    self.send = None;
                    if self.sent(result, view)? {
                        return Ok(());
                    }
                }
                result = answered(&mut self.sync) => {
                    self.sync = None;
                    if let Some(ending) = self.synced(result, view)? {
                        return self.finish(ending, request, view);
                    }
                }
                result = answered(&mut self.abort) => {
                    self.abort = None;
                    result.map_err(|error| link_failure(&error))?;
                }
                () = at(deadline) => {
                    view.show(Show::EndOfText);
                    return Err(self.timed_out(request.timeout.unwrap_or_default()));
                }
                () = at(self.abort_deadline) => {
                    view.show(Show::EndOfText);
                    return Err(Failure::new(Exit::Interrupted, "The run did not confirm its end.", "Look at it with `gsv session stats`."));
                }
                () = at(lost) => {
                    view.show(Show::EndOfText);
                    let message = format!("The gateway at {} did not come back within {}.", self.conversation.url, duration(300_000));
                    return Err(Failure::new(Exit::TryLater, message, self.look()));
                }
                () = sleep_until(self.notice_at) => {
                    let waited = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    view.note(&format!("still waiting for the answer after {} (Ctrl-C stops the run)", duration(waited)));
                    self.notice_at = Instant::now() + NOTICE_AGAIN;
                }
                event = self.conversation.events.recv() => {
                    if let Some(ending) = self.link_event(event, view)? {
                        return self.finish(ending, request, view);
                    }
                }
            }
        }
    }

    fn link_event(&mut self, event: Option<LinkEvent>, view: &mut View) -> Outcome<Option<Ending>> {
        match event {
            Some(LinkEvent::Event { name, payload, .. }) => return Ok(self.event(&name, payload, view)),
            Some(LinkEvent::Connected(_)) => {
                self.conversation.connected = true;
                if self.lost_since.take().is_some() {
                    view.note("connected again");
                    view.json(&line::link("connected", None));
                }
                self.behind = true;
                self.broken = true;
                // An answer to a question that was asked on the old link is out of date.
                self.sync = None;
            }
            Some(LinkEvent::Disconnected { reason, .. }) => {
                self.conversation.connected = false;
                if self.lost_since.is_none() {
                    self.lost_since = Some(Instant::now());
                    view.note(&format!("connection lost ({reason}); trying again…"));
                    view.json(&line::link("lost", Some(&reason)));
                }
            }
            Some(LinkEvent::Fatal(error)) => {
                self.conversation.ended = true;
                return Err(link_failure(&error));
            }
            Some(_) => {}
            None => {
                self.conversation.ended = true;
                return Err(closed());
            }
        }
        Ok(None)
    }

    fn event(&mut self, name: &str, payload: Value, view: &mut View) -> Option<Ending> {
        match name {
            Chat::NAME => {
                // An event in a form of a newer gateway is ignored, as the contract wants it.
                let event: ChatEvent = serde_json::from_value(payload).ok()?;
                if self.behind || self.sync.is_some() {
                    if self.stash.len() < MAX_STASH {
                        self.stash.push(event);
                    }
                    return None;
                }
                self.chat(&event, view)
            }
            Session::NAME => {
                self.session_event(&payload, view);
                None
            }
            _ => None,
        }
    }

    fn session_event(&mut self, payload: &Value, view: &mut View) {
        let Ok(event) = serde_json::from_value::<SessionEvent>(payload.clone()) else {
            return;
        };
        if !self.conversation.concerns(&event.session_key.0) {
            return;
        }
        self.conversation.note_seq(event.session_seq);
        view.json(&line::session(payload));
        if let Some(text) = event.text.filter(|text| !text.trim().is_empty()) {
            view.note(&crate::clean::clean(&text));
        }
    }

    fn chat(&mut self, event: &ChatEvent, view: &mut View) -> Option<Ending> {
        if event.run_id.as_ref() == Some(&self.run) {
            self.conversation.learn_name(&event.session_key);
        }
        if !self.conversation.concerns(&event.session_key.0) {
            return None;
        }
        self.conversation.note_seq(event.session_seq);
        if event.run_id.as_ref().is_some_and(|run| *run != self.run) || self.assembler.is_repeated(event) {
            return None;
        }
        view.event(event);
        let shows = self.assembler.take(event);
        self.show(shows, view)
    }

    fn show(&mut self, shows: Vec<Show>, view: &mut View) -> Option<Ending> {
        let mut ending = None;
        for show in shows {
            if let Show::End(end) = &show {
                ending = Some(end.clone());
            }
            self.notice_at = Instant::now() + NOTICE_AFTER;
            view.show(show);
        }
        ending
    }

    /// The gateway's answer to the message. Whether that was all.
    fn sent(&mut self, result: Result<ChatSendResult, LinkError>, view: &mut View) -> Outcome<bool> {
        let result = result.map_err(|error| link_failure(&error))?;
        view.json(&line::sent(&serde_json::to_value(&result).unwrap_or_default()));
        match result {
            ChatSendResult::Started {
                run_id,
                queued,
                duplicate,
                seq,
                ..
            } => {
                self.accepted = true;
                self.run = run_id;
                self.conversation.note_seq(seq);
                // Accepted on an earlier link: what happened since then was not seen.
                self.broken |= duplicate == Some(true);
                // Without a place in the log there would be nothing to catch up from, should the link break.
                self.behind |= duplicate == Some(true) || self.conversation.last_seq.is_none();
                if queued == Some(true) {
                    view.note("queued behind another message…");
                }
                Ok(false)
            }
            ChatSendResult::Command { error: Some(error), .. } => Err(Failure::failed(error, "")),
            ChatSendResult::Command { response, .. } | ChatSendResult::DirectiveOnly { response, .. } => {
                match response.filter(|response| !response.is_empty()) {
                    Some(response) => view.answer(&response),
                    None => view.note("done"),
                }
                Ok(true)
            }
            ChatSendResult::Paused { response, .. } => Err(Failure::new(
                Exit::TryLater,
                response,
                "Decide with `/approve` or `/deny`, then send the message again.",
            )),
        }
    }

    /// Asks for what was missed, once it is clear from where.
    fn start_sync(&mut self) {
        if !self.behind || !self.conversation.connected || self.sync.is_some() {
            return;
        }
        if self.conversation.last_seq.is_none() && !self.accepted {
            return;
        }
        self.behind = false;
        // From one before the last: several events may belong to one place, and the link may have broken between them.
        let from = self.conversation.last_seq.map(|seq| seq.saturating_sub(1));
        self.sync_from = from.or(self.broken.then_some(0));
        let params = SessionSubscribeParams {
            session_key: self.conversation.key(),
            after_seq: self.sync_from,
        };
        let link = self.conversation.link.clone();
        self.sync = Some(Box::pin(async move { link.call::<SessionSubscribe>(params).await }));
    }

    fn synced(
        &mut self,
        result: Result<SessionSubscribeResult, LinkError>,
        view: &mut View,
    ) -> Outcome<Option<Ending>> {
        let result = match result {
            Ok(result) => result,
            Err(error) if error.reason() == errors::SESSION_SNAPSHOT_REQUIRED.reason => return Err(self.unreplayable()),
            // The link broke again: the next connection asks anew.
            Err(LinkError::Closed { .. } | LinkError::OutcomeUnknown { .. }) => {
                self.behind = true;
                return Ok(None);
            }
            Err(error) if self.broken => return Err(link_failure(&error)),
            // Nothing was missed; only the place in the log stays unknown.
            Err(_) => return Ok(self.unstash(view)),
        };
        for event in result.events {
            if let Some(ending) = self.replayed(event, view) {
                return Ok(Some(ending));
            }
        }
        self.conversation.note_seq(Some(result.seq));
        let ours = result.run_id.as_ref() == Some(&self.run);
        if let (true, Some(text)) = (ours, result.text.filter(|text| !text.is_empty())) {
            let at = |value: Option<u64>| u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX);
            let shows = self.assembler.snapshot(at(result.step), at(result.attempt), &text);
            self.show(shows, view);
        }
        if let Some(ending) = self.unstash(view) {
            return Ok(Some(ending));
        }
        // The log up to now does not have our end, and nothing runs.
        let idle = result.state == Some(RunState::Idle) && result.run_id.is_none();
        if self.accepted && idle && self.sync_from.is_some() {
            return Err(self.unreplayable());
        }
        Ok(None)
    }

    fn unstash(&mut self, view: &mut View) -> Option<Ending> {
        std::mem::take(&mut self.stash)
            .iter()
            .find_map(|event| self.chat(event, view))
    }

    /// A replayed event, bare or in its frame.
    fn replayed(&mut self, event: Value, view: &mut View) -> Option<Ending> {
        let (name, payload) = replayed(event)?;
        if name == Chat::NAME {
            return self.chat(&serde_json::from_value(payload).ok()?, view);
        }
        self.session_event(&payload, view);
        None
    }

    fn interrupted(&mut self, view: &mut View) -> Outcome {
        if self.abort_deadline.is_some() {
            view.show(Show::EndOfText);
            return Err(Failure::new(
                Exit::Interrupted,
                "Left; the run may go on.",
                "Stop it with `gsv chat /stop`.",
            ));
        }
        view.note("stopping… (Ctrl-C again leaves it running)");
        self.abort_deadline = Some(Instant::now() + ABORT_PATIENCE);
        let link = self.conversation.link.clone();
        let params = ChatAbortParams {
            session_key: self.conversation.key(),
            run_id: Some(self.run.clone()),
        };
        self.abort = Some(Box::pin(
            async move { link.call::<ChatAbort>(params).await.map(|_| ()) },
        ));
        Ok(())
    }

    fn finish(&self, ending: Ending, request: &Request<'_>, view: &mut View) -> Outcome {
        match ending {
            Ending::Final { usage } => {
                if request.verbose {
                    view.usage(
                        usage.as_ref(),
                        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    );
                }
                Ok(())
            }
            Ending::Error {
                message,
                reason: Some(reason),
            } => Err(Failure::from_reason(&reason, &message, false)),
            Ending::Error { message, reason: None } => Err(Failure::failed(
                if message.is_empty() {
                    "The run failed.".to_owned()
                } else {
                    message
                },
                self.look(),
            )),
            Ending::Aborted if self.abort_deadline.is_some() => Err(Failure::interrupted()),
            Ending::Aborted => Err(Failure::from_reason(
                errors::RUN_ABORTED.reason,
                errors::RUN_ABORTED.text,
                false,
            )),
        }
    }

    fn timed_out(&self, timeout: Duration) -> Failure {
        let waited = duration(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        if self.accepted {
            let next = format!(
                "{} To stop it: `gsv chat -s {} /stop`.",
                self.look(),
                self.conversation.session
            );
            return Failure::new(
                Exit::TryLater,
                format!("No answer within {waited}. The run goes on."),
                next,
            );
        }
        let message = format!("The gateway did not take the message within {waited}.");
        Failure::new(
            Exit::TryLater,
            message,
            "Check `gsv status`; sending the same words again makes a second message.",
        )
    }

    fn unreplayable(&self) -> Failure {
        Failure::failed(
            "The run went on while the connection was lost, and its events can't be replayed.",
            self.look(),
        )
    }

    fn look(&self) -> String {
        format!(
            "See what came of it: `gsv session preview {}`.",
            self.conversation.session
        )
    }
}

async fn answered<T>(answer: &mut Answer<T>) -> Result<T, LinkError> {
    match answer {
        Some(answer) => answer.await,
        None => pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
