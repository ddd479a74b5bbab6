//! The table of active calls: [`Admission`] behind a lock, and a handle to each call. Decides nothing itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gsv_tools::Cancel;
use tokio::sync::Notify;

use crate::admission::{Admission, Cancelled, Invoked, Known, Malformed};

#[derive(Default)]
pub struct Calls(Mutex<Table>);

#[derive(Default)]
struct Table {
    admission: Admission,
    handles: HashMap<String, Handle>,
}

#[derive(Clone, Default)]
struct Handle {
    cancel: Cancel,
    /// Notified once, when a queued call gets its slot.
    slot: Arc<Notify>,
}

impl Calls {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The gateway asks for a call. The entry comes with [`Invoked::Begin`] only. `known` is asked under the lock, so that
    /// a call that ends meanwhile is either active or on record.
    pub fn invoke(self: &Arc<Self>, call_id: &str, known: impl FnOnce() -> Known) -> (Invoked, Option<CallEntry>) {
        let mut table = self.table();
        let decision = table.admission.invoke(call_id, known());
        let entry = matches!(decision, Invoked::Begin { .. }).then(|| self.entry(&mut table, call_id));
        (decision, entry)
    }

    /// The gateway sent an invocation that cannot be read.
    pub fn malformed(&self, call_id: &str, known: impl FnOnce() -> Known) -> Malformed {
        self.table().admission.malformed(call_id, known())
    }

    /// The gateway cancels a call; an active one is told.
    pub fn cancel(&self, call_id: &str, known: impl FnOnce() -> Known) -> Cancelled {
        let table = self.table();
        let decision = table.admission.cancel(call_id, known());
        if decision == Cancelled::Signal
            && let Some(handle) = table.handles.get(call_id)
        {
            handle.cancel.cancel();
        }
        decision
    }

    /// Adds a command of an earlier process. `None` when it is active already.
    pub fn resume(self: &Arc<Self>, call_id: &str) -> Option<CallEntry> {
        let mut table = self.table();
        table.admission.resume(call_id).then(|| self.entry(&mut table, call_id))
    }

    /// The call's tool has started. `has_process`: its command outlives the node.
    pub fn started(&self, call_id: &str, has_process: bool) {
        self.table().admission.started(call_id, has_process);
    }

    /// Started calls that end with the node.
    pub fn short_calls(&self) -> usize {
        self.table().admission.short_calls()
    }

    fn entry(self: &Arc<Self>, table: &mut Table, call_id: &str) -> CallEntry {
        let handle = Handle::default();
        table.handles.insert(call_id.to_owned(), handle.clone());
        CallEntry {
            calls: Arc::clone(self),
            call_id: call_id.to_owned(),
            handle,
        }
    }
}

impl Table {
    fn grant(&self, next: Option<String>) {
        if let Some(handle) = next.and_then(|next| self.handles.get(&next)) {
            handle.slot.notify_one();
        }
    }
}

/// The entry of one active call. Dropping it removes the call.
pub struct CallEntry {
    calls: Arc<Calls>,
    call_id: String,
    handle: Handle,
}

impl CallEntry {
    pub fn cancel(&self) -> &Cancel {
        &self.handle.cancel
    }

    /// Waits until a queued call gets its slot.
    pub async fn slot(&self) {
        self.handle.slot.notified().await;
    }

    /// Passes the slot on to the next call in the queue.
    pub fn release_slot(&self) {
        let mut table = self.calls.table();
        let next = table.admission.release(&self.call_id);
        table.grant(next);
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        let mut table = self.calls.table();
        table.handles.remove(&self.call_id);
        let next = table.admission.leave(&self.call_id);
        table.grant(next);
    }
}
