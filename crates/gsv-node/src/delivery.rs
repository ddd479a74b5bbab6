//! Sends results and events to the gateway until it has acknowledged them: oldest first, again after every reconnect (T2,
//! K18 to K20). The ledger holds them; the [`Outbox`] holds the order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gsv_link::ledger::CallState;
use gsv_link::{Link, LinkError};
use gsv_protocol::methods::{NodeExecEvent, ToolResult};
use gsv_protocol::types::{NodeExecEventParams, ToolOutcome, ToolResultParams};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::log::{Level, Log, now_ms};
use crate::outbox::{Item, Outbox};
use crate::outcome::{KnownCommand, Outcome};
use crate::scrub::Scrub;
use crate::shared_ledger::{Durability, SharedLedger};

const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Wait after a failed attempt that may succeed on the same link.
const PAUSE: Duration = Duration::from_secs(2);

pub struct Delivery {
    outbox: Mutex<Outbox>,
    wake: Notify,
    link: Link,
    ledger: SharedLedger,
    log: Arc<Log>,
}

/// The params of one delivery.
enum Params {
    Result(ToolResultParams),
    Event(NodeExecEventParams),
}

/// The outcome of one attempt.
enum Attempt {
    Done,
    /// Try again after a pause.
    Again,
    /// Another attempt on this link would fail as well.
    Later,
}

impl Delivery {
    pub fn new(link: Link, ledger: SharedLedger, log: Arc<Log>) -> Self {
        Self {
            outbox: Mutex::default(),
            wake: Notify::new(),
            link,
            ledger,
            log,
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Outbox)) {
        change(&mut self.outbox());
        self.wake.notify_one();
    }

    /// Sends the result of a call that has ended (again).
    pub fn result(&self, call_id: &str) {
        self.change(|outbox| outbox.add(Item::Result(call_id.to_owned())));
    }

    /// Sends a result that the ledger could not store.
    pub fn unrecorded(&self, call_id: &str, params: ToolResultParams) {
        self.change(|outbox| outbox.add_unrecorded(call_id, params));
    }

    pub fn has_unrecorded(&self, call_id: &str) -> bool {
        self.outbox().unrecorded(call_id).is_some()
    }

    pub fn event(&self, event_id: &str) {
        self.change(|outbox| outbox.add(Item::Event(event_id.to_owned())));
    }

    /// The link is up. `results` and `events`: what the ledger holds for the gateway, oldest first.
    pub fn online(&self, results: Vec<String>, events: Vec<String>) {
        self.change(|outbox| outbox.online(results, events));
    }

    pub fn offline(&self) {
        self.outbox().offline();
    }

    /// Runs as long as the node does.
    pub async fn run(self: Arc<Self>) {
        let mut attempts = JoinSet::new();
        loop {
            while let Some(item) = self.next() {
                // Read one after the other, so that the items leave in order.
                let params = self.read(&item).await;
                let this = Arc::clone(&self);
                attempts.spawn(async move {
                    let attempt = match params {
                        Some(params) => this.deliver(&item, params).await,
                        None => Attempt::Done,
                    };
                    let again = matches!(attempt, Attempt::Again);
                    if again {
                        tokio::time::sleep(PAUSE).await;
                    }
                    this.outbox().ended(item, again);
                });
            }
            tokio::select! {
                () = self.wake.notified() => {}
                Some(_) = attempts.join_next() => {}
            }
        }
    }

    fn next(&self) -> Option<Item> {
        self.outbox().next()
    }

    /// The params to send. `None`: there is nothing to send.
    async fn read(&self, item: &Item) -> Option<Params> {
        match item {
            Item::Result(call_id) => {
                let unrecorded = self.outbox().unrecorded(call_id).cloned();
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
        match self.ledger.with(move |ledger| ledger.event(&id)).await {
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
        if let Err(error) = self.ledger.with(move |ledger| ledger.event_done(&id)).await {
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

    /// The params of `tool.result` as the ledger holds them. `None`: the call has no result.
    async fn stored_result(&self, call_id: &str) -> Option<ToolResultParams> {
        let id = call_id.to_owned();
        let found = self
            .ledger
            .with(move |ledger| Ok((ledger.state(&id), ledger.result(&id))))
            .await;
        match found {
            Ok((Some(CallState::Finished | CallState::Released), Ok(Some(params)))) => Some(params),
            Ok((Some(CallState::Finished | CallState::Released), Ok(None))) => {
                Some(gone(call_id, "its result is no longer kept"))
            }
            Ok((Some(CallState::Finished | CallState::Released), Err(error))) | Err(error) => {
                self.log.call(Level::Error, &error.to_string(), call_id, &[]);
                Some(gone(call_id, "its result can't be read any more"))
            }
            Ok(_) => None,
        }
    }

    /// Stores a result that the ledger could not store before.
    async fn record_late(&self, call_id: &str) {
        let Some(params) = self.outbox().take_unrecorded(call_id) else {
            return;
        };
        let id = call_id.to_owned();
        let lost = params.outcome == Some(ToolOutcome::Unknown);
        let recorded = self.ledger.record(Durability::Lazy, move |ledger| {
            ledger.finish(now_ms(), &id, lost, &params)
        });
        if let Err(error) = recorded.await {
            self.log.call(Level::Error, &error.to_string(), call_id, &[]);
        }
    }

    async fn release(&self, call_id: &str) {
        let id = call_id.to_owned();
        if let Err(error) = self.ledger.with(move |ledger| ledger.release(now_ms(), &id)).await {
            // It is sent once more after the next reconnect; the gateway recognises it.
            self.log.call(Level::Warn, &error.to_string(), call_id, &[]);
        }
    }
}

fn gone(call_id: &str, why: &str) -> ToolResultParams {
    Outcome::unknown(&format!("the call has ended, but {why}"), KnownCommand::default()).into_params(
        call_id,
        None,
        &Scrub::default(),
    )
}
