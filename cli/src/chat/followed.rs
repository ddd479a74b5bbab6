//! The session that a conversation follows: its name, its connection, and the position in its log. Pure; sends nothing.

use std::collections::VecDeque;

use gsv_link::LinkEvent;
use gsv_protocol::codec::read_event;
use gsv_protocol::types::{ChatEvent, SessionEvent, SessionKey, SessionSubscribeParams};
use gsv_protocol::{Event, Json};
use serde::Deserialize;
use serde_json::Value;

use super::assembler::session_seq;
use crate::client::link_failure;
use crate::exit::Failure;

/// What a link tells about its session.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    Connected,
    /// The connection is lost and will be made again; with the reason.
    Lost(String),
    /// The link has ended for good.
    Ended(Failure),
    Chat(Box<ChatEvent>),
    Session(Box<SessionEvent>),
}

impl News {
    /// `None` for everything that a conversation does not use, also for events of a newer gateway. The link hands out no
    /// event after its last one: that is its end.
    /// `here`: the gateway is one of this machine.
    pub fn read(event: Option<LinkEvent>, here: bool) -> Option<Self> {
        match event {
            Some(LinkEvent::Connected(_)) => Some(Self::Connected),
            Some(LinkEvent::Disconnected { reason, .. }) if here => Some(Self::Lost(format!(
                "{reason}; if the gateway is stopped, start it in another terminal: `gsv up`"
            ))),
            Some(LinkEvent::Disconnected { reason, .. }) => Some(Self::Lost(reason)),
            Some(LinkEvent::Fatal(error)) => Some(Self::Ended(link_failure(&error))),
            Some(LinkEvent::Event { event, .. }) => Self::event(event),
            Some(_) => None,
            None => Some(Self::Ended(Failure::later(
                "The connection to the gateway ended.",
                "Check `gsv status`, then try again.",
            ))),
        }
    }

    fn event(event: Event) -> Option<Self> {
        match event {
            Event::Chat(event) => Some(Self::Chat(event)),
            Event::Session(event) => Some(Self::Session(event)),
            _ => None,
        }
    }

    /// An event from `session.subscribe`, which comes bare or in its frame.
    pub fn replayed(event: Value) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Replayed {
            Framed { event: String, payload: Value },
            Chat(Box<ChatEvent>),
            Session(Box<SessionEvent>),
        }
        match serde_json::from_value(event).ok()? {
            Replayed::Framed { event, payload } => Self::event(read_event(&event, Json::of(&payload).ok()?)),
            Replayed::Chat(event) => Some(Self::Chat(event)),
            Replayed::Session(event) => Some(Self::Session(event)),
        }
    }
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may hold with any"
)]
pub struct Followed {
    /// The key that the user gave.
    pub session: String,
    /// The key as the gateway spells it, once it is known. Events carry this one.
    canonical: Option<SessionKey>,
    /// The position in the log up to which everything was seen.
    pub last_seq: Option<u64>,
    pub connected: bool,
    /// The link has ended: no other message can be sent.
    pub ended: bool,
    /// The gateway is one of this machine.
    pub here: bool,
    /// Ask for the model's thoughts.
    pub thinking: bool,
    /// The answer of the last command, until the event that repeats it has come.
    pub confirmed: Option<String>,
    /// The last session events that were seen. The gateway sends each at least once, and several may share one position.
    seen: VecDeque<SessionEvent>,
}

const SEEN: usize = 64;

/// Whether an event only repeats the answer of a command.
pub fn confirms(event: &SessionEvent, answer: &str) -> bool {
    let text = event.text.as_deref().unwrap_or_default();
    !answer.is_empty() && text.starts_with(answer)
}

impl Followed {
    /// The next step of a message that waits for the resume. `resume`: what lets GSV go on.
    pub fn after_resume(&self, resume: &str) -> String {
        format!("{resume} The answer is then in `gsv session preview {}`.", self.session)
    }

    /// A session of a link that is connected.
    pub fn new(session: String) -> Self {
        Self {
            session,
            canonical: None,
            last_seq: None,
            connected: true,
            ended: false,
            here: false,
            thinking: false,
            confirmed: None,
            seen: VecDeque::new(),
        }
    }

    pub fn key(&self) -> SessionKey {
        SessionKey(self.session.clone())
    }

    /// A field of every request to this session: the gateway streams thoughts only as long as each request asks for them.
    pub fn asks_for_thoughts(&self) -> Option<bool> {
        self.thinking.then_some(true)
    }

    /// Asks for the events after a position.
    pub fn subscription(&self, after_seq: Option<u64>) -> SessionSubscribeParams {
        SessionSubscribeParams {
            session_key: self.key(),
            after_seq,
            thinking: self.asks_for_thoughts(),
        }
    }

    /// Keeps the state of the link up to date.
    pub fn note_link(&mut self, news: &News) {
        match news {
            News::Connected => self.connected = true,
            News::Lost(_) => self.connected = false,
            News::Ended(_) => (self.connected, self.ended) = (false, true),
            News::Chat(_) | News::Session(_) => {}
        }
    }

    /// Takes note of news between two messages. Returns whether they are worth showing: events of another session are not,
    /// nor log events that were seen before.
    pub fn is_new(&mut self, news: &News) -> bool {
        self.note_link(news);
        let (key, seq) = match news {
            News::Chat(event) => (event.session_key(), session_seq(event)),
            News::Session(event) => (&event.session_key, event.session_seq),
            _ => return true,
        };
        let is_new = self.concerns(key) && (seq.is_none() || seq > self.last_seq);
        if is_new {
            self.note_seq(seq);
            if let News::Session(event) = news {
                self.is_repeated(event);
            }
        }
        is_new && !self.is_confirmation(news)
    }

    fn is_confirmation(&mut self, news: &News) -> bool {
        let News::Session(event) = news else { return false };
        self.repeats_an_answer(event)
    }

    /// Whether an event only repeats the answer of the last command. It does so once.
    pub fn repeats_an_answer(&mut self, event: &SessionEvent) -> bool {
        self.confirmed.take_if(|answer| confirms(event, answer)).is_some()
    }

    /// Whether an event's session is this one.
    pub fn concerns(&self, session: &SessionKey) -> bool {
        self.canonical
            .as_ref()
            .map_or(session.0 == self.session, |key| key == session)
    }

    pub fn learn_name(&mut self, session: &SessionKey) {
        self.canonical.get_or_insert_with(|| session.clone());
    }

    /// Whether an event of the log has come before.
    pub fn is_repeated(&mut self, event: &SessionEvent) -> bool {
        if event.session_seq.is_none() {
            return false;
        }
        let is_seen = self.seen.contains(event);
        if !is_seen {
            self.seen.push_back(event.clone());
            if self.seen.len() > SEEN {
                self.seen.pop_front();
            }
        }
        is_seen
    }

    pub fn note_seq(&mut self, seq: Option<u64>) {
        self.last_seq = self.last_seq.max(seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn note(key: &str, seq: u64) -> Value {
        json!({"sessionKey": key, "kind": "note", "sessionSeq": seq, "text": "x"})
    }

    #[test]
    fn c5_replayed_events_come_bare_or_in_a_frame() {
        let chat = json!({"sessionKey": "s", "state": "delta", "text": "x"});
        assert!(matches!(News::replayed(chat.clone()), Some(News::Chat(_))));
        let framed = json!({"event": "chat", "payload": chat});
        assert!(matches!(News::replayed(framed), Some(News::Chat(_))));
        assert!(matches!(News::replayed(note("s", 1)), Some(News::Session(_))));
        assert_eq!(News::replayed(json!({"event": "weather", "payload": {}})), None);
        assert_eq!(News::replayed(json!({"sessionKey": "s", "state": "singing"})), None);
    }

    #[test]
    fn c5_a_log_event_is_news_once_and_only_in_its_session() {
        let mut followed = Followed::new("main".to_owned());
        let news = |key: &str, seq: u64| News::replayed(note(key, seq)).unwrap();
        assert!(followed.is_new(&news("main", 3)));
        assert!(!followed.is_new(&news("main", 3)));
        assert!(!followed.is_new(&news("other", 4)));
        followed.learn_name(&SessionKey("agent:main:main".to_owned()));
        followed.learn_name(&SessionKey("late".to_owned()));
        assert!(!followed.is_new(&news("main", 4)));
        assert!(followed.is_new(&news("agent:main:main", 4)));
        assert_eq!(followed.last_seq, Some(4));
    }

    #[test]
    fn the_end_of_the_link_ends_the_conversation() {
        let mut followed = Followed::new("main".to_owned());
        assert!(followed.is_new(&News::Lost("x".to_owned())) && !followed.connected && !followed.ended);
        assert!(followed.is_new(&News::Connected) && followed.connected);
        assert!(followed.is_new(&News::read(None, false).unwrap()) && followed.ended);
    }
}
