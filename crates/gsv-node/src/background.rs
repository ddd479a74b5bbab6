//! Events of background commands: from the tools into the ledger, which delivery reads.

use std::sync::Arc;

use gsv_tools::{ExecEvent, ExecEventKind};
use serde_json::json;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::log::{Level, now_ms};
use crate::run_call::call_of;

/// Stores each event in the ledger and queues it for delivery.
pub async fn store_events(context: Arc<Context>, mut events: mpsc::Receiver<ExecEvent>) {
    while let Some(mut event) = events.recv().await {
        event.call_id = call_of(&event.call_id).to_owned();
        let is_end = event.event != ExecEventKind::Started;
        let (id, session) = (event.event_id.clone(), event.session_id.clone());
        if let Some(tail) = &mut event.output_tail {
            *tail = context.scrub.text(tail).into_owned();
        }
        let payload = match serde_json::to_value(&event) {
            Ok(payload) => payload,
            Err(error) => {
                context
                    .log
                    .write(Level::Error, &error.to_string(), &[("eventId", json!(id))]);
                continue;
            }
        };
        let event_id = id.clone();
        let stored = context
            .ledger
            .with(move |ledger| match ledger.add_event(now_ms(), &event_id, &payload)? {
                // The end is reported once and must not be lost; a lost start is implied by the end.
                Some(commit) if is_end => commit.sync(),
                Some(commit) => {
                    commit.lazily();
                    Ok(())
                }
                None => Ok(()),
            });
        match stored.await {
            Ok(()) => {
                context.delivery.event(&id);
                if is_end {
                    context.release_command(&session).await;
                }
            }
            // The command's folder is not released, so the next start of the node reports the event.
            Err(error) => context
                .log
                .write(Level::Error, &error.to_string(), &[("eventId", json!(id))]),
        }
    }
}
