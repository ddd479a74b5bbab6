//! Drives a conversation: one link that follows one session over many turns and lost connections. Decides nothing: `turn`
//! does.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use gsv_link::{Events, Link, LinkError};
use gsv_protocol::NoParams;
use gsv_protocol::errors;
use gsv_protocol::methods::{
    ApprovalList, ApprovalResolve, ChatAbort, ChatSend, GatewayStatus, SessionPreview, SessionSubscribe,
};
use gsv_protocol::types::{
    ApprovalEntry, ApprovalListParams, ApprovalResolveParams, ApprovalResolveResult, ChatEvent, MessageId, RunState,
    SessionEventKind, SessionKey, SessionPreviewParams, StopState,
};
use tokio::signal::unix::Signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use ulid::Ulid;

use super::followed::{Followed, News};
use super::seen::Seen;
use super::turn::{Effect, Ids, Input, LOST_PATIENCE, Request, Steering, Turn};
use super::view::View;
use crate::client::{Account, link_failure, never_connected};
use crate::commands::messages::{by_itself, question_before};
use crate::commands::stop::knows_stop;
use crate::exit::Outcome;

/// Messages among which a run's question is looked for.
const QUESTION_AMONG: u8 = 50;
/// Positions of the log that are looked at when a conversation is opened, and news that are shown then.
const LEFT_AMONG: u64 = 60;
const LEFT_SHOWN: usize = 5;
const QUESTION_PATIENCE: Duration = Duration::from_secs(2);
/// A question that was announced is looked for so often, and after this pause.
const LISTED_TRIES: u8 = 12;
const LISTED_PAUSE: Duration = Duration::from_millis(250);

/// An answer that is on its way.
pub type Answer<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

pub struct Conversation {
    link: Link,
    events: Events,
    pub followed: Followed,
}

impl Conversation {
    /// Connects. Fails at once when the gateway cannot be reached.
    pub async fn open(account: &Account, session: String) -> Outcome<Self> {
        let (link, mut events) = account.connect_lasting().await?;
        loop {
            let event = events.recv().await;
            if let Some(failure) = event.as_ref().and_then(|event| never_connected(&account.url, event)) {
                return Err(failure);
            }
            match News::read(event) {
                Some(News::Connected) => break,
                Some(News::Ended(failure)) => return Err(failure),
                _ => {}
            }
        }
        let followed = Followed::new(session);
        Ok(Self { link, events, followed })
    }

    /// Whether everything is stopped. None also when the gateway does not say.
    pub async fn stopped(&self) -> Option<StopState> {
        if !knows_stop(self.link.hello().as_ref()) {
            return None;
        }
        self.link.call::<GatewayStatus>(NoParams {}).await.ok()?.stopped
    }

    pub async fn close(self) {
        self.link.close().await;
    }

    /// Sends a message and shows its answer until the run ends. Ctrl-C stops the run.
    pub async fn turn(&mut self, request: Request, view: &mut View, interrupts: &mut Signal) -> Outcome {
        let mut running = self.start(request, view);
        loop {
            let input = tokio::select! {
                biased;
                _ = interrupts.recv() => Input::Interrupted,
                input = running.next() => input,
            };
            if let Some(result) = running.handle(input, view) {
                return result;
            }
        }
    }

    /// Sends a message. Its answer is shown by `next` and `handle`, until `handle` gives the end.
    pub fn start(&mut self, request: Request, view: &mut View) -> Running<'_> {
        self.start_as(fresh(), request, view)
    }

    /// As `start`, for a message that may have been sent before, under these ids.
    pub fn start_as(&mut self, ids: Ids, request: Request, view: &mut View) -> Running<'_> {
        let key = self.followed.key();
        let (turn, effects) = Turn::start(&mut self.followed, request, ids);
        let mut running = Running {
            turn,
            link: self.link.clone(),
            events: &mut self.events,
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

    /// Follows the session before the first message. A gateway that refuses this shows less news, and chat works. Gives the questions
    /// that wait already.
    pub async fn follow(&mut self) -> Vec<ApprovalEntry> {
        let params = self.followed.subscription(None);
        let Ok(result) = self.link.call::<SessionSubscribe>(params).await else {
            return Vec::new();
        };
        self.followed.learn_name(&result.session_key);
        self.followed.note_seq(Some(result.seq));
        if result.state == Some(RunState::Acting) {
            self.waiting(None).await
        } else {
            Vec::new()
        }
    }

    /// Follows the session again after a reconnect between two turns. Gives the events since the last one that was seen.
    pub fn missed(&self) -> impl Future<Output = Vec<News>> + 'static {
        let link = self.link.clone();
        let params = self.followed.subscription(self.followed.last_seq);
        async move {
            let answer = link.call::<SessionSubscribe>(params).await;
            let events = answer.map(|answer| answer.events).unwrap_or_default();
            events.into_iter().filter_map(News::replayed).collect()
        }
    }

    /// The calls of this session that wait for a word.
    pub async fn waiting(&self, code: Option<&str>) -> Vec<ApprovalEntry> {
        waiting(&self.link, Some(self.followed.key()), code).await
    }

    pub async fn resolve(&self, params: ApprovalResolveParams) -> Outcome<ApprovalResolveResult> {
        resolved(&self.link, params).await.map_err(|error| link_failure(&error))
    }

    /// The message that this answer is about; without an answer, the last one. A gateway that does not reply must not delay an answer.
    pub async fn question(&self, answer: Option<&str>) -> Option<String> {
        let params = SessionPreviewParams {
            session_key: self.followed.key(),
            limit: Some(QUESTION_AMONG),
        };
        let asked = timeout(QUESTION_PATIENCE, self.link.call::<SessionPreview>(params)).await;
        let messages = asked.ok()?.ok()?.messages;
        question_before(&messages, answer)
    }

    /// What came since the last message of a person: an answer to a run that began by itself, and notes. Not what a chat of this machine
    /// has shown. Empty when it can't be asked.
    pub async fn since_left(&self, seen: &Seen) -> Vec<News> {
        let Some(seq) = self.followed.last_seq.filter(|seq| *seq > 0) else {
            return Vec::new();
        };
        let upto = seen.upto(seq);
        if upto == seq {
            return Vec::new();
        }
        let params = self
            .followed
            .subscription(Some(seq.saturating_sub(LEFT_AMONG).max(upto)));
        let Ok(Ok(answer)) = timeout(QUESTION_PATIENCE, self.link.call::<SessionSubscribe>(params)).await else {
            return Vec::new();
        };
        let mut since = Vec::new();
        for news in answer.events.into_iter().filter_map(News::replayed) {
            match &news {
                News::Chat(event) if matches!(**event, ChatEvent::Final { .. }) => since = vec![news],
                News::Chat(event) if matches!(**event, ChatEvent::Error { .. } | ChatEvent::Aborted { .. }) => {
                    since.clear();
                }
                News::Session(event) if event.kind == SessionEventKind::Note => since.push(news),
                _ => {}
            }
        }
        if matches!(since.first(), Some(News::Chat(_)))
            && self.question(None).await.is_none_or(|text| by_itself(&text).is_none())
        {
            since.remove(0);
        }
        let most = since.len().saturating_sub(LEFT_SHOWN);
        since.split_off(most)
    }

    /// Everything up to now was shown.
    pub fn note_seen(&self, seen: &Seen) {
        self.followed.last_seq.inspect(|seq| seen.note(*seq));
    }

    /// The news that arrived between two turns. Never waits.
    pub fn catch_up(&mut self) -> Vec<News> {
        let mut all = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            all.extend(News::read(Some(event)).filter(|news| self.followed.is_new(news)));
        }
        all
    }

    /// Waits for the next news. Fails when the link has ended.
    pub async fn next_news(&mut self) -> Outcome<News> {
        loop {
            let news = next(&mut self.events).await;
            let is_new = self.followed.is_new(&news);
            match news {
                News::Ended(failure) => return Err(failure),
                news if is_new => return Ok(news),
                _ => {}
            }
        }
    }
}

fn fresh() -> Ids {
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

impl Running<'_> {
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
            news = next(self.events) => Input::News(news),
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

    /// Whether a call waits for a word.
    pub fn asks(&self) -> bool {
        self.turn.asks()
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

/// The calls that wait. A question is announced in the session before the gateway lists it: one that is expected is waited for.
async fn waiting(link: &Link, session_key: Option<SessionKey>, code: Option<&str>) -> Vec<ApprovalEntry> {
    for _ in 0..LISTED_TRIES {
        let params = ApprovalListParams {
            session_key: session_key.clone(),
        };
        let Ok(result) = link.call::<ApprovalList>(params).await else {
            return Vec::new();
        };
        if code.is_none_or(|code| result.approvals.iter().any(|entry| entry.code == code)) {
            return result.approvals;
        }
        sleep(LISTED_PAUSE).await;
    }
    Vec::new()
}

async fn resolved(link: &Link, params: ApprovalResolveParams) -> Result<ApprovalResolveResult, LinkError> {
    for _ in 0..LISTED_TRIES {
        match link.call::<ApprovalResolve>(params.clone()).await {
            Err(error) if error.reason() == errors::APPROVAL_NOT_FOUND.reason => sleep(LISTED_PAUSE).await,
            result => return result,
        }
    }
    link.call::<ApprovalResolve>(params).await
}

async fn next(events: &mut Events) -> News {
    loop {
        if let Some(news) = News::read(events.recv().await) {
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
