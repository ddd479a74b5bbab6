//! What the node's tasks have in common, and the table of calls that are under way.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_link::Link;
use gsv_protocol::limits;
use gsv_tools::{Cancel, ToolBox};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::book::Book;
use crate::delivery::Delivery;
use crate::images::Uploader;
use crate::log::{Level, Log};

pub struct Shared {
    pub id: String,
    pub link: Link,
    pub book: Book,
    pub tools: Arc<ToolBox>,
    pub log: Arc<Log>,
    pub delivery: Delivery,
    pub uploader: Uploader,
    pub online: watch::Receiver<bool>,
    /// One place per call that runs.
    pub slots: Arc<Semaphore>,
    calls: Mutex<HashMap<String, Active>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A call that this process has taken on and not finished.
#[derive(Debug, Clone)]
pub struct Active {
    pub cancel: Cancel,
    pub started: bool,
    /// It goes on without the node.
    pub has_process: bool,
}

pub const RUNNING: usize = limit(limits::NODE_CONCURRENT_CALLS);
const WAITING: usize = limit(limits::NODE_QUEUED_CALLS);
const fn limit(value: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "limits of calls are small")]
    let value = value as usize;
    value
}

/// What came of asking for a place in the table.
pub enum Admission {
    Admitted(Seat),
    /// It is under way already.
    Known(Active),
    Full,
}

impl Shared {
    pub fn new(
        id: String,
        link: Link,
        book: Book,
        tools: Arc<ToolBox>,
        log: Arc<Log>,
        uploader: Uploader,
        online: watch::Receiver<bool>,
    ) -> Self {
        Self {
            id,
            link,
            book,
            tools,
            log,
            delivery: Delivery::default(),
            uploader,
            online,
            slots: Arc::new(Semaphore::new(RUNNING)),
            calls: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Active>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most 8 calls run and 32 wait (T8).
    pub fn admit(self: &Arc<Self>, call_id: &str) -> Admission {
        self.take_seat(call_id, RUNNING + WAITING)
    }

    /// For a call that runs already, whatever the limits say.
    pub fn readmit(self: &Arc<Self>, call_id: &str) -> Option<Seat> {
        match self.take_seat(call_id, usize::MAX) {
            Admission::Admitted(seat) => Some(seat),
            Admission::Known(_) | Admission::Full => None,
        }
    }

    fn take_seat(self: &Arc<Self>, call_id: &str, limit: usize) -> Admission {
        let mut calls = self.calls();
        if let Some(active) = calls.get(call_id) {
            return Admission::Known(active.clone());
        }
        if calls.len() >= limit {
            return Admission::Full;
        }
        let cancel = Cancel::default();
        calls.insert(
            call_id.to_owned(),
            Active {
                cancel: cancel.clone(),
                started: false,
                has_process: false,
            },
        );
        Admission::Admitted(Seat {
            shared: Arc::clone(self),
            call_id: call_id.to_owned(),
            cancel,
        })
    }

    pub fn active(&self, call_id: &str) -> Option<Active> {
        self.calls().get(call_id).cloned()
    }

    pub fn mark_started(&self, call_id: &str, has_process: bool) {
        if let Some(active) = self.calls().get_mut(call_id) {
            (active.started, active.has_process) = (true, has_process);
        }
    }

    /// Calls that are started and have no process that would outlive the node.
    pub fn active_short_calls(&self) -> usize {
        self.calls()
            .values()
            .filter(|active| active.started && !active.has_process)
            .count()
    }

    /// Runs something that ends with the node at the latest.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends everything that was started with [`Shared::spawn`].
    pub async fn end_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    pub fn is_online(&self) -> bool {
        *self.online.borrow()
    }

    pub fn log_call(&self, level: Level, message: &str, call_id: &str, fields: &[(&str, Value)]) {
        let mut all = vec![("callId", json!(call_id))];
        all.extend(fields.iter().cloned());
        self.log.write(level, message, &all);
    }
}

/// A place in the table of calls; free again when dropped.
pub struct Seat {
    shared: Arc<Shared>,
    call_id: String,
    pub cancel: Cancel,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.calls().remove(&self.call_id);
    }
}
