//! A conversation: one link that follows one session over many turns and lost connections. `running` drives each turn.

use std::future::Future;
use std::time::Duration;

use gsv_link::{Events, Link};
use gsv_protocol::NoParams;
use gsv_protocol::errors;
use gsv_protocol::methods::{GatewayStatus, SessionPreview, SessionSubscribe};
use gsv_protocol::types::{
    ApprovalEntry, ApprovalResolveParams, ApprovalResolveResult, ChatEvent, RunState, SessionEventKind,
    SessionPreviewParams, StopState,
};
use tokio::signal::unix::Signal;
use tokio::time::timeout;

use super::followed::{Followed, News};
use super::glance::glance;
use super::running::{Running, fresh, next, resolved, waiting};
use super::seen::Seen;
use super::status::Facts;
use super::turn::{Ids, Input, Request, Turn};
use super::view::View;
use crate::client::{Account, is_here, link_failure};
use crate::commands::messages::{by_itself, question_before};
use crate::commands::stop_state::{explain, knows_stop};
use crate::exit::{Failure, Outcome};

/// Messages among which a run's question is looked for.
const QUESTION_AMONG: u8 = 50;
/// Positions of the log that are looked at when a conversation is opened, and news that are shown then.
const LEFT_AMONG: u64 = 60;
const LEFT_SHOWN: usize = 5;
const QUESTION_PATIENCE: Duration = Duration::from_secs(2);

pub struct Conversation {
    link: Link,
    events: Events,
    pub url: String,
    pub followed: Followed,
}

impl Conversation {
    /// Connects. Fails at once when the gateway cannot be reached.
    pub async fn open(account: &Account, session: String) -> Outcome<Self> {
        let (link, mut events) = account.connect_lasting().await?;
        let here = is_here(&account.url);
        loop {
            let event = events.recv().await;
            if let Some(failure) = event.as_ref().and_then(|event| account.never_connected(event)) {
                return Err(failure);
            }
            match News::read(event, here) {
                Some(News::Connected) => break,
                Some(News::Ended(failure)) => return Err(failure),
                _ => {}
            }
        }
        let mut followed = Followed::new(session);
        followed.here = here;
        Ok(Self {
            link,
            events,
            url: account.url.clone(),
            followed,
        })
    }

    /// Whether everything is stopped. None also when the gateway does not say.
    pub async fn stopped(&self) -> Option<StopState> {
        if !knows_stop(self.link.hello().as_ref()) {
            return None;
        }
        self.link.call::<GatewayStatus>(NoParams {}).await.ok()?.stopped
    }

    pub fn link(&self) -> Link {
        self.link.clone()
    }

    /// The facts of the status line, from what they were.
    pub fn glance(&self, before: Facts) -> impl Future<Output = Facts> + 'static {
        glance(self.link.clone(), self.followed.key(), before)
    }

    pub async fn close(self) {
        self.link.close().await;
    }

    /// Sends a message and shows its answer until the run ends. Ctrl-C stops the run.
    pub async fn turn(&mut self, request: Request, view: &mut View, interrupts: &mut Signal) -> Outcome {
        let mut running = self.start(request, view);
        let result = loop {
            let input = tokio::select! {
                biased;
                _ = interrupts.recv() => Input::Interrupted,
                input = running.next() => input,
            };
            if let Some(result) = running.handle(input, view) {
                break result;
            }
        };
        match result {
            Err(failure) => Err(self.explained(failure).await),
            done => done,
        }
    }

    /// A restored copy and a home that was exported need more than a plain resume (rules BK23, MV14).
    async fn explained(&self, failure: Failure) -> Failure {
        if !failure.is(&errors::GATEWAY_STOPPED) {
            return failure;
        }
        match self.stopped().await {
            Some(state) => Failure {
                next: self.followed.after_resume(&explain(&state, &self.url).1),
                ..failure
            },
            None => failure,
        }
    }

    /// Sends a message. Its answer is shown by `next` and `handle`, until `handle` gives the end.
    pub fn start(&mut self, request: Request, view: &mut View) -> Running<'_> {
        self.start_as(fresh(), request, view)
    }

    /// As `start`, for a message that may have been sent before, under these ids.
    pub fn start_as(&mut self, ids: Ids, request: Request, view: &mut View) -> Running<'_> {
        let key = self.followed.key();
        let started = Turn::start(&mut self.followed, request, ids);
        Running::begin(started, self.link.clone(), &mut self.events, key, view)
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
            notes: None,
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
            all.extend(News::read(Some(event), self.followed.here).filter(|news| self.followed.is_new(news)));
        }
        all
    }

    /// Waits for the next news. Fails when the link has ended.
    pub async fn next_news(&mut self) -> Outcome<News> {
        loop {
            let news = next(&mut self.events, self.followed.here).await;
            let is_new = self.followed.is_new(&news);
            match news {
                News::Ended(failure) => return Err(failure),
                news if is_new => return Ok(news),
                _ => {}
            }
        }
    }
}
