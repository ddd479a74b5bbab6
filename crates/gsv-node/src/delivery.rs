//! Brings results and events to the gateway and waits until it has them: oldest first, a few at once, again after every
//! reconnect, until they are acknowledged (T2, K18 to K20). What waits is in the ledger; this only remembers the order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gsv_link::LinkError;
use gsv_link::ledger::CallState;
use gsv_protocol::methods::{NodeExecEvent, ToolResult};
use gsv_protocol::types::{NodeExecEventParams, ToolOutcome, ToolResultParams};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::book::Durability;
use crate::log::{Level, now_ms};
use crate::outcome::Outcome;
use crate::shared::Shared;

const AT_ONCE: usize = 4;
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// After an answer that says "not now", or none at all.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Delivery {
    queues: Mutex<Queues>,
    wake: Notify,
}

#[derive(Default)]
struct Queues {
    online: bool,
    results: VecDeque<String>,
    events: VecDeque<String>,
    in_flight: HashSet<Item>,
    /// Results that the disk did not take. They are lost with the process, and then the call counts as unknown.
    unrecorded: HashMap<String, ToolResultParams>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Item {
    Result(String),
    Event(String),
}

/// The params of one delivery.
enum Params {
    Result(ToolResultParams),
    Event(NodeExecEventParams),
}

/// What became of one attempt.
enum Attempt {
    Done,
    /// Try again in a moment.
    Again,
    /// Trying again on this link makes no sense.
    Later,
}

impl Delivery {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of a call that has ended, or its remembered one, is to be sent (again).
    pub fn result(&self, call_id: &str) {
        let mut queues = self.queues();
        let item = Item::Result(call_id.to_owned());
        if !queues.in_flight.contains(&item) && !queues.results.iter().any(|waiting| waiting == call_id) {
            queues.results.push_back(call_id.to_owned());
        }
        drop(queues);
        self.wake.notify_one();
    }

    /// The same for a result that could not be recorded.
    pub fn unrecorded(&self, call_id: &str, params: ToolResultParams) {
        self.queues().unrecorded.insert(call_id.to_owned(), params);
        self.result(call_id);
    }

    pub fn has_unrecorded(&self, call_id: &str) -> bool {
        self.queues().unrecorded.contains_key(call_id)
    }

    pub fn event(&self, event_id: &str) {
        let mut queues = self.queues();
        if !queues.events.iter().any(|waiting| waiting == event_id)
            && !queues.in_flight.contains(&Item::Event(event_id.to_owned()))
        {
            queues.events.push_back(event_id.to_owned());
        }
        drop(queues);
        self.wake.notify_one();
    }

    /// There is a link. Everything unacknowledged is sent again, except what the link itself sends again.
    pub fn online(&self, unreleased: Vec<String>, events: Vec<String>) {
        let mut queues = self.queues();
        queues.online = true;
        let mut results: VecDeque<String> = unreleased.into();
        let mut also: Vec<String> = queues.results.drain(..).collect();
        also.extend(queues.unrecorded.keys().cloned());
        for call_id in also {
            if !results.contains(&call_id) {
                results.push_back(call_id);
            }
        }
        results.retain(|call_id| !queues.in_flight.contains(&Item::Result(call_id.clone())));
        queues.results = results;
        queues.events = events
            .into_iter()
            .filter(|id| !queues.in_flight.contains(&Item::Event(id.clone())))
            .collect();
        drop(queues);
        self.wake.notify_one();
    }

    pub fn offline(&self) {
        self.queues().online = false;
    }

    /// What may be sent now. Events go one by one, because their order tells a story.
    fn next(&self) -> Option<Item> {
        let mut queues = self.queues();
        if !queues.online {
            return None;
        }
        let event_under_way = queues.in_flight.iter().any(|item| matches!(item, Item::Event(_)));
        let results_under_way = queues.in_flight.len() - usize::from(event_under_way);
        let item = if results_under_way < AT_ONCE && !queues.results.is_empty() {
            queues.results.pop_front().map(Item::Result)
        } else if event_under_way {
            None
        } else {
            queues.events.pop_front().map(Item::Event)
        }?;
        queues.in_flight.insert(item.clone());
        Some(item)
    }

    fn ended(&self, item: &Item, again: bool) {
        let mut queues = self.queues();
        queues.in_flight.remove(item);
        if again {
            match item {
                Item::Result(id) => queues.results.push_front(id.clone()),
                Item::Event(id) => queues.events.push_front(id.clone()),
            }
        }
    }

    /// Runs as long as the node does.
    pub async fn run(shared: Arc<Shared>) {
        let this = &shared.delivery;
        let mut under_way = JoinSet::new();
        loop {
            while let Some(item) = this.next() {
                // Read here, one after the other, so that they leave in order.
                let params = shared.read(&item).await;
                let shared = Arc::clone(&shared);
                under_way.spawn(async move {
                    let attempt = match params {
                        Some(params) => shared.deliver(&item, params).await,
                        None => Attempt::Done,
                    };
                    let again = matches!(attempt, Attempt::Again);
                    if again {
                        tokio::time::sleep(PAUSE).await;
                    }
                    shared.delivery.ended(&item, again);
                });
            }
            tokio::select! {
                () = this.wake.notified() => {}
                Some(_) = under_way.join_next() => {}
            }
        }
    }
}

impl Shared {
    /// The params to send. `None`: there is nothing to send.
    async fn read(&self, item: &Item) -> Option<Params> {
        match item {
            Item::Result(call_id) => {
                let unrecorded = self.delivery.queues().unrecorded.get(call_id).cloned();
                let params = match unrecorded {
                    Some(params) => Some(params),
                    None => self.stored_result(call_id).await,
                };
                params.map(Params::Result)
            }
            Item::Event(event_id) => self.stored_event(event_id).await.map(Params::Event),
        }
    }

    async fn deliver(&self, item: &Item, params: Params) -> Attempt {
        let answer = match params {
            Params::Result(params) => {
                let answer = self.link.call_within::<ToolResult>(params, ANSWER_TIME).await;
                answer.map(drop)
            }
            Params::Event(params) => {
                let answer = self.link.call_within::<NodeExecEvent>(params, ANSWER_TIME).await;
                answer.map(drop)
            }
        };
        match (answer, item) {
            (Ok(()), Item::Result(call_id)) => {
                self.record_late(call_id).await;
                self.release(call_id).await;
                Attempt::Done
            }
            (Ok(()), Item::Event(event_id)) => {
                self.event_done(event_id).await;
                Attempt::Done
            }
            (Err(error), Item::Result(id)) => self.failed("a result", id, &error),
            (Err(error), Item::Event(id)) => self.failed("an event", id, &error),
        }
    }

    async fn stored_event(&self, event_id: &str) -> Option<NodeExecEventParams> {
        let id = event_id.to_owned();
        match self.book.with(move |ledger| ledger.event(&id)).await {
            Ok(event) => event,
            Err(error) => {
                self.log
                    .write(Level::Error, &error.to_string(), &[("eventId", json!(event_id))]);
                None
            }
        }
    }

    async fn event_done(&self, event_id: &str) {
        let id = event_id.to_owned();
        if let Err(error) = self.book.with(move |ledger| ledger.event_done(&id)).await {
            self.log
                .write(Level::Error, &error.to_string(), &[("eventId", json!(event_id))]);
        }
    }

    fn failed(&self, what: &str, id: &str, error: &LinkError) -> Attempt {
        let attempt = match error {
            LinkError::Remote(shape) if shape.retryable != Some(true) => Attempt::Later,
            LinkError::TooLarge { .. } | LinkError::BadRequest { .. } => Attempt::Later,
            _ => Attempt::Again,
        };
        let level = if matches!(attempt, Attempt::Later) {
            Level::Error
        } else {
            Level::Warn
        };
        self.log.write(
            level,
            &format!("the gateway did not take {what}: {error}"),
            &[("id", json!(id))],
        );
        attempt
    }

    /// Params of `tool.result` as the ledger has them. `None`: there is nothing to tell.
    async fn stored_result(&self, call_id: &str) -> Option<ToolResultParams> {
        let id = call_id.to_owned();
        let found = self
            .book
            .with(move |ledger| Ok((ledger.state(&id), ledger.result(&id))))
            .await;
        match found {
            Ok((Some(CallState::Finished | CallState::Released), Ok(Some(params)))) => Some(params),
            Ok((Some(CallState::Finished | CallState::Released), Ok(None))) => {
                Some(gone(call_id, "its result is no longer kept"))
            }
            Ok((Some(CallState::Finished | CallState::Released), Err(error))) | Err(error) => {
                self.log_call(Level::Error, &error.to_string(), call_id, &[]);
                Some(gone(call_id, "its result can't be read any more"))
            }
            Ok(_) => None,
        }
    }

    /// The disk may take now what it did not take then.
    async fn record_late(&self, call_id: &str) {
        let Some(params) = self.delivery.queues().unrecorded.remove(call_id) else {
            return;
        };
        let id = call_id.to_owned();
        let lost = params.outcome == Some(ToolOutcome::Unknown);
        let recorded = self.book.record(Durability::Lazy, move |ledger| {
            ledger.finish(now_ms(), &id, lost, &params)
        });
        if let Err(error) = recorded.await {
            self.log_call(Level::Error, &error.to_string(), call_id, &[]);
        }
    }

    async fn release(&self, call_id: &str) {
        let id = call_id.to_owned();
        if let Err(error) = self.book.with(move |ledger| ledger.release(now_ms(), &id)).await {
            // It will be sent once more after the next reconnect, and be recognised there.
            self.log_call(Level::Warn, &error.to_string(), call_id, &[]);
        }
    }
}

fn gone(call_id: &str, why: &str) -> ToolResultParams {
    Outcome::unknown(&format!("the call has ended, but {why}"), Value::Null).into_params(call_id, None)
}
