//! A connection that follows one session, over many turns and lost links. Knows where in the session's log it is; shows
//! nothing.

use gsv_link::{Events, Link, LinkEvent};
use gsv_protocol::Event;
use gsv_protocol::events::{Chat, Session};
use gsv_protocol::methods::SessionSubscribe;
use gsv_protocol::types::{SessionKey, SessionSubscribeParams};
use serde_json::Value;
use tokio::signal::unix::Signal;

use super::turn::{Request, Turn};
use super::view::View;
use crate::client::{Account, link_failure, never_connected};
use crate::exit::{Exit, Failure, Outcome};

pub struct Conversation {
    pub link: Link,
    pub events: Events,
    pub url: String,
    /// As it was asked for.
    pub session: String,
    /// As the gateway names it, once it has; events carry this name.
    canonical: Option<String>,
    /// The latest log event seen, or the place of our own latest message.
    pub last_seq: Option<u64>,
    pub connected: bool,
    /// No further turn is possible.
    pub ended: bool,
}

impl Conversation {
    /// Connects; a gateway that isn't there is an error at once.
    pub async fn open(account: &Account, session: String) -> Outcome<Self> {
        let (link, mut events) = account.connect_lasting().await?;
        loop {
            match events.recv().await {
                Some(LinkEvent::Connected(_)) => break,
                Some(event) => {
                    if let Some(failure) = never_connected(&account.url, &event) {
                        return Err(failure);
                    }
                }
                None => return Err(closed()),
            }
        }
        Ok(Self {
            link,
            events,
            url: account.url.clone(),
            session,
            canonical: None,
            last_seq: None,
            connected: true,
            ended: false,
        })
    }

    pub async fn close(self) {
        self.link.close().await;
    }

    /// Sends a message and shows its answer until the run ends.
    pub async fn turn(&mut self, request: &Request<'_>, view: &mut View, interrupts: &mut Signal) -> Outcome {
        Turn::new(self, request).run(request, view, interrupts).await
    }

    /// Follows the session before anything is said in it. A gateway that can't do that shows less, and works.
    pub async fn follow(&mut self) {
        let params = SessionSubscribeParams {
            session_key: self.key(),
            after_seq: None,
        };
        if let Ok(result) = self.link.call::<SessionSubscribe>(params).await {
            self.learn_name(&result.session_key);
            self.note_seq(Some(result.seq));
        }
    }

    /// The events since the last one that was seen, and following again; for after a reconnect between two turns.
    pub fn missed(&self) -> impl Future<Output = Vec<Value>> + 'static {
        let link = self.link.clone();
        let params = SessionSubscribeParams {
            session_key: self.key(),
            after_seq: self.last_seq,
        };
        async move {
            let answer = link.call::<SessionSubscribe>(params).await;
            answer.map(|answer| answer.events).unwrap_or_default()
        }
    }

    /// What happened between two turns and is news. Never waits.
    pub fn catch_up(&mut self) -> Vec<LinkEvent> {
        let mut news = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            news.extend(self.news(event));
        }
        news
    }

    /// The next news, for a prompt that waits. Fails when the link has ended for good.
    pub async fn next_news(&mut self) -> Outcome<LinkEvent> {
        loop {
            let event = self.events.recv().await.ok_or_else(closed)?;
            if let LinkEvent::Fatal(error) = &event {
                self.ended = true;
                return Err(link_failure(error));
            }
            if let Some(event) = self.news(event) {
                return Ok(event);
            }
        }
    }

    /// An event, unless it is another session's or was seen before: log events may be handed over twice.
    pub fn news(&mut self, event: LinkEvent) -> Option<LinkEvent> {
        match &event {
            LinkEvent::Connected(_) => self.connected = true,
            LinkEvent::Disconnected { .. } => self.connected = false,
            LinkEvent::Fatal(_) => self.ended = true,
            LinkEvent::Event { payload, .. } => {
                let seq = payload.get("sessionSeq").and_then(Value::as_u64);
                let key = payload.get("sessionKey").and_then(Value::as_str);
                if !key.is_some_and(|key| self.concerns(key)) || seq.is_some() && seq <= self.last_seq {
                    return None;
                }
                self.note_seq(seq);
            }
            _ => {}
        }
        Some(event)
    }

    /// Whether an event's session is this one.
    pub fn concerns(&self, session: &str) -> bool {
        self.canonical.as_deref().unwrap_or(&self.session) == session
    }

    pub fn learn_name(&mut self, session: &SessionKey) {
        if self.canonical.is_none() {
            self.canonical = Some(session.0.clone());
        }
    }

    pub fn note_seq(&mut self, seq: Option<u64>) {
        self.last_seq = self.last_seq.max(seq);
    }

    pub fn key(&self) -> SessionKey {
        SessionKey(self.session.clone())
    }
}

/// Name and payload of an event from `session.subscribe`, which may come bare or in its frame.
pub fn replayed(event: Value) -> Option<(&'static str, Value)> {
    let (named, payload) = match (event.get("event").and_then(Value::as_str), event.get("payload")) {
        (Some(name), Some(payload)) => (Some(name == Chat::NAME), payload.clone()),
        _ => (None, event),
    };
    if named.unwrap_or_else(|| payload.get("state").is_some()) {
        return Some((Chat::NAME, payload));
    }
    payload.get("kind").is_some().then_some((Session::NAME, payload))
}

pub fn closed() -> Failure {
    Failure::new(
        Exit::TryLater,
        "The connection to the gateway ended.",
        "Check `gsv status`, then try again.",
    )
}
