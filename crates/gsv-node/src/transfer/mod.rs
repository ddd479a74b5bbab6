//! Transfers of files between this machine and the gateway (gateway/spec/transfer.md). Each attempt is a task that ends with the
//! connection; what it has received stays in a temporary file, and the next attempt goes on there. Nothing else is kept.

pub mod attempts;
mod receive;
mod send;
mod window;

use std::sync::Arc;

use gsv_link::Bytes;
use gsv_protocol::types::{TransferEndEvent, TransferReceiveEvent, TransferSendEvent};
use gsv_tools::ToolError;
use gsv_tools::transfer::{discard, is_id};
use tokio::sync::mpsc;

use self::attempts::Signal;
use crate::context::Context;
use crate::log::Level;

/// Bytes of the number in front of a chunk.
const NUMBER: usize = 4;

pub fn on_send(context: &Arc<Context>, event: TransferSendEvent) {
    let id = event.id.as_ref().map(|id| id.as_str().to_owned());
    if let Some(signals) = begin(context, event.transfer_id, id) {
        context.tasks.spawn(send::run(Arc::clone(context), event, signals));
    }
}

pub fn on_receive(context: &Arc<Context>, event: TransferReceiveEvent) {
    let Some(id) = event
        .id
        .as_ref()
        .map(|id| id.as_str().to_owned())
        .filter(|id| is_id(id))
    else {
        let text = "a transfer without a valid id was ignored; the gateway is older than this node";
        return context.log.write(Level::Warn, text, &[]);
    };
    if let Some(signals) = begin(context, event.transfer_id, Some(id.clone())) {
        context
            .tasks
            .spawn(receive::run(Arc::clone(context), event, id, signals));
    }
}

fn begin(context: &Context, number: u32, id: Option<String>) -> Option<mpsc::Receiver<Signal>> {
    let begun = context.transfers.begin(number, id);
    if begun.is_none() {
        context
            .log
            .write(Level::Warn, "too many transfers at once; one was ignored", &[]);
    }
    begun
}

pub fn on_start(context: &Context, number: u32, offset: Option<u64>) {
    let offset = offset.unwrap_or(0);
    context.transfers.signal(number, Signal::Start { offset });
}

pub fn on_ack(context: &Context, number: u32, offset: u64) {
    context.transfers.signal(number, Signal::Ack { offset });
}

/// A chunk of an attempt that has ended is dropped.
pub fn on_chunk(context: &Context, frame: Bytes) {
    let Some(number) = frame.first_chunk::<NUMBER>() else {
        return;
    };
    context
        .transfers
        .signal(u32::from_le_bytes(*number), Signal::Chunk(frame));
}

pub fn on_end(context: &Arc<Context>, event: TransferEndEvent) {
    if event.error.is_none() {
        let sha256 = event.sha256;
        context.transfers.signal(event.transfer_id, Signal::End { sha256 });
        return;
    }
    if context.transfers.signal(event.transfer_id, Signal::Abort) {
        return;
    }
    // The transfer has ended while this machine was away.
    if let (Some(id), Some(path)) = (event.id, event.path)
        && is_id(id.as_str())
    {
        let ended = Arc::clone(context);
        context.tasks.spawn(async move {
            let files = Arc::clone(ended.tools.files());
            // A folder that is gone has no temporary file.
            let _ = tokio::task::spawn_blocking(move || discard(&files, &path, id.as_str())).await;
        });
    }
}

/// A node that does not offer the tools for files copies none either.
fn check_offered(context: &Context) -> Result<(), ToolError> {
    if context.tools.can_transfer() {
        return Ok(());
    }
    Err(ToolError::Failed("this node does not copy files".into()))
}

/// Runs work on a thread for the disk.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ToolError::Failed(format!("the copy was stopped: {error}"))))
}

/// The two texts of an error on the wire.
fn problem(error: &ToolError) -> (Option<String>, Option<String>) {
    (
        Some(error.to_string().chars().take(900).collect()),
        Some(error.reason().to_owned()),
    )
}
