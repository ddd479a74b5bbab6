//! Drives one message and its answer: sends, waits and draws. Decides nothing: `turn` does.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use gsv_link::{Events, Link, LinkError};
use gsv_protocol::errors;
use gsv_protocol::methods::{ApprovalList, ApprovalResolve, ChatAbort, ChatSend, SessionSubscribe};
use gsv_protocol::types::{
    ApprovalEntry, ApprovalListParams, ApprovalResolveParams, ApprovalResolveResult, MessageId, SessionKey,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use ulid::Ulid;

use super::followed::News;
use super::glance::glance;
use super::status::Facts;
use super::turn::{Effect, Ids, Input, LOST_PATIENCE, Steering, Turn};
use super::view::View;
use crate::commands::approval_view::in_order;
use crate::exit::Outcome;

/// A question that was announced is looked for so often, and after this pause.
const LISTED_TRIES: u8 = 12;
const LISTED_PAUSE: Duration = Duration::from_millis(250);

/// An answer that is on its way.
pub type Answer<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

pub fn fresh() -> Ids {
    Ids::from(Ulid::generate().to_string(), Ulid::generate().to_string())
}

/// A message and its answer under way.
pub struct Running<'a> {
    turn: Turn<'a>,
    link: Link,
    events: &'a mut Events,
    key: SessionKey,
    began: Instant,
    send: Answer<Input>,
    subscribe: Answer<Input>,
    abort: Answer<Input>,
    look: Answer<Input>,
    resolve: Answer<Input>,
    resolves: VecDeque<ApprovalResolveParams>,
    commands: JoinSet<Input>,
}

impl<'a> Running<'a> {
    /// Does what the turn begins with.
    pub fn begin(
        (turn, effects): (Turn<'a>, Vec<Effect>),
        link: Link,
        events: &'a mut Events,
        key: SessionKey,
        view: &mut View,
    ) -> Self {
        let mut running = Self {
            turn,
            link,
            events,
            key,
            began: Instant::now(),
            send: None,
            subscribe: None,
            abort: None,
            look: None,
            resolve: None,
            resolves: VecDeque::new(),
            commands: JoinSet::new(),
        };
        let _ = running.perform(effects, view);
        running
    }

    /// Waits for what happens next. Nothing is lost when it is dropped before.
    pub async fn next(&mut self) -> Input {
        if self.resolve.is_none()
            && let Some(params) = self.resolves.pop_front()
        {
            let link = self.link.clone();
            self.resolve = Some(Box::pin(async move {
                let (code, decision) = (params.code.clone(), params.decision);
                Input::Resolved(code, decision, resolved(&link, params).await)
            }));
        }
        let here = self.turn.is_here();
        tokio::select! {
            // Answers come first: they tell how to read the events (which run is ours, what was missed).
            biased;
            input = answered(&mut self.send) => input,
            input = answered(&mut self.subscribe) => input,
            input = answered(&mut self.abort) => input,
            Some(Ok(input)) = self.commands.join_next() => input,
            input = answered(&mut self.look) => input,
            input = answered(&mut self.resolve) => input,
            () = sleep_until(self.began + self.turn.wake_at()) => Input::Wake,
            news = next(self.events, here) => Input::News(news),
        }
    }

    /// Gives the end of the turn, after which nothing may be handed in.
    pub fn handle(&mut self, input: Input, view: &mut View) -> Option<Outcome> {
        let effects = self.turn.handle(input, self.began.elapsed());
        self.perform(effects, view)
    }

    /// Sends a command now, beside the run.
    pub fn command(&mut self, text: String, view: &mut View) -> Option<Outcome> {
        self.handle(Input::Command(text, MessageId(Ulid::generate().to_string())), view)
    }

    /// Sends a message for the run now.
    pub fn steer(&mut self, text: String, view: &mut View) -> Option<Outcome> {
        self.handle(Input::Steer(text, fresh()), view)
    }

    /// Messages for the run that it was not shown.
    pub fn take_steering(&mut self) -> Vec<Steering> {
        self.turn.take_steering()
    }

    /// The facts of the status line, from what they were.
    pub fn glance(&self, before: Facts) -> impl Future<Output = Facts> + 'static {
        glance(self.link.clone(), self.key.clone(), before)
    }

    /// Whether a call waits for a word.
    pub fn asks(&self) -> bool {
        self.turn.asks()
    }

    /// The calls that wait for a word, in the order in which they were shown.
    pub fn waiting(&self) -> &[ApprovalEntry] {
        self.turn.waiting()
    }

    /// Questions that were shown before and still wait.
    pub fn waits(&mut self, waiting: Vec<ApprovalEntry>) {
        self.turn.waits(waiting);
    }

    /// Whether the person has had the time to read the question.
    pub fn is_known(&self) -> bool {
        self.turn.is_known()
    }

    /// Whether the message waits at the gateway.
    pub fn is_behind(&self) -> bool {
        self.turn.is_behind()
    }

    /// Whether a message ends the run that waits.
    pub fn gives_way(&self) -> bool {
        self.turn.gives_way()
    }

    /// The calls that still wait for a word.
    pub fn into_waiting(self) -> Vec<ApprovalEntry> {
        self.turn.into_waiting()
    }

    fn perform(&mut self, effects: Vec<Effect>, view: &mut View) -> Option<Outcome> {
        for effect in effects {
            let link = self.link.clone();
            match effect {
                // The link sends it again after a reconnect, under the same id; the turn gives up first.
                Effect::Send(params) => {
                    self.send = Some(Box::pin(async move {
                        Input::Sent(link.call_within::<ChatSend>(params, LOST_PATIENCE * 2).await)
                    }));
                }
                Effect::Subscribe(params) => {
                    self.subscribe = Some(Box::pin(async move {
                        Input::Subscribed(link.call::<SessionSubscribe>(params).await)
                    }));
                }
                Effect::Abort(params) => {
                    self.abort = Some(Box::pin(async move {
                        Input::Aborted(link.call::<ChatAbort>(params).await.map(drop))
                    }));
                }
                Effect::Command(params) => {
                    self.commands.spawn(async move {
                        let text = params.message.clone();
                        let answer = link.call_within::<ChatSend>(params, LOST_PATIENCE).await;
                        Input::Commanded(text, answer)
                    });
                }
                Effect::Steer(id, params) => {
                    self.commands.spawn(async move {
                        let answer = link.call_within::<ChatSend>(params, LOST_PATIENCE).await;
                        Input::Steered(id, answer)
                    });
                }
                Effect::Look(code) => {
                    let key = Some(self.key.clone());
                    self.look = Some(Box::pin(async move {
                        let waiting = waiting(&link, key, code.as_deref()).await;
                        Input::Looked(code, waiting)
                    }));
                }
                Effect::Resolve(params) => self.resolves.push_back(params),
                Effect::Draw(draw) => view.draw(draw),
                Effect::End(result) => return Some(result),
            }
        }
        None
    }
}

/// Questions about calls. No run waits for one about an event, so it pauses no conversation.
fn about_calls(mut approvals: Vec<ApprovalEntry>) -> Vec<ApprovalEntry> {
    approvals.retain(|entry| entry.event.is_none());
    approvals
}

/// The calls that wait. A question is announced in the session before the gateway lists it: one that is expected is waited for.
pub async fn waiting(link: &Link, session_key: Option<SessionKey>, code: Option<&str>) -> Vec<ApprovalEntry> {
    for _ in 0..LISTED_TRIES {
        let params = ApprovalListParams {
            session_key: session_key.clone(),
        };
        let Ok(result) = link.call::<ApprovalList>(params).await else {
            return Vec::new();
        };
        if code.is_none_or(|code| result.approvals.iter().any(|entry| entry.code == code)) {
            return in_order(about_calls(result.approvals));
        }
        sleep(LISTED_PAUSE).await;
    }
    Vec::new()
}

/// A question of this conversation may not be listed yet: it is tried again. A code without a conversation was typed here, so it is
/// answered at once.
pub async fn resolved(link: &Link, params: ApprovalResolveParams) -> Result<ApprovalResolveResult, LinkError> {
    let tries = if params.session_key.is_some() { LISTED_TRIES } else { 0 };
    for _ in 0..tries {
        match link.call::<ApprovalResolve>(params.clone()).await {
            Err(error) if error.reason() == errors::APPROVAL_NOT_FOUND.reason => sleep(LISTED_PAUSE).await,
            result => return result,
        }
    }
    link.call::<ApprovalResolve>(params).await
}

/// `here`: the gateway is one of this machine.
pub async fn next(events: &mut Events, here: bool) -> News {
    loop {
        if let Some(news) = News::read(events.recv().await, here) {
            return news;
        }
    }
}

/// Waits for an answer, once. Without one, waits forever.
pub async fn answered<T>(answer: &mut Answer<T>) -> T {
    let Some(future) = answer else {
        return pending().await;
    };
    let value = future.await;
    *answer = None;
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ev7_a_question_about_an_event_pauses_no_conversation() {
        let entry = |more: serde_json::Value| -> ApprovalEntry {
            let mut entry = json!({
                "code": "K7Q2A", "sessionKey": "agent:main:main", "agentId": "main", "runId": "R", "callId": "c", "tool": "emit_event",
                "text": "Send?", "textBytes": 5, "why": "w", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1
            });
            let more = more.as_object().unwrap().clone();
            entry.as_object_mut().unwrap().extend(more);
            serde_json::from_value(entry).unwrap()
        };
        let codes: Vec<String> = about_calls(vec![entry(json!({"event": "e1"})), entry(json!({"code": "B"}))])
            .into_iter()
            .map(|entry| entry.code)
            .collect();
        assert_eq!(codes, ["B"]);
    }
}
