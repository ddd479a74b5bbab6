//! The source of a transfer: announces a file, and sends it as fast as the window allows.

use std::sync::Arc;

use gsv_protocol::limits;
use gsv_protocol::methods::{TransferComplete, TransferMeta};
use gsv_protocol::types::{TransferCompleteParams, TransferMetaParams, TransferSendEvent};
use gsv_tools::ToolError;
use gsv_tools::beneath::GoesOn;
use gsv_tools::transfer::Source;
use tokio::sync::mpsc;

use super::Ends;
use super::attempts::Signal;
use super::waiting::while_alive;
use super::window::Outgoing;
use super::{on_disk, problem};

/// Chunks that are read before the socket takes them.
const AHEAD: usize = 2;

/// An error of a call means that the connection or the attempt is gone.
pub async fn run(ends: Arc<Ends>, event: TransferSendEvent, mut signals: mpsc::Receiver<Signal>) {
    let number = event.transfer_id;
    let files = Arc::clone(&ends.files);
    let allowed = ends.check_offered();
    let opened = on_disk(move || allowed.and_then(|()| Source::open(&files, &event.path))).await;
    let (error, reason) = opened.as_ref().err().map_or((None, None), problem);
    let meta = TransferMetaParams {
        transfer_id: number,
        size: opened.as_ref().map_or(0, Source::size),
        mime: None,
        error,
        reason,
        version: opened.as_ref().ok().map(Source::version),
    };
    let announced = ends.tell::<TransferMeta>(meta).await;
    let (Ok(source), Ok(_)) = (opened, announced) else {
        return;
    };
    let sent = match signals.recv().await {
        Some(Signal::Start { offset }) => send(&ends, number, source, offset, signals).await,
        _ => return,
    };
    let complete = match sent {
        Ok(None) => return,
        Ok(Some(sha256)) => TransferCompleteParams {
            transfer_id: number,
            sha256: Some(sha256),
            error: None,
            reason: None,
        },
        Err(failed) => {
            let (error, reason) = problem(&failed);
            TransferCompleteParams {
                transfer_id: number,
                sha256: None,
                error,
                reason,
            }
        }
    };
    let _ = ends.tell::<TransferComplete>(complete).await;
}

/// Sends the file from `offset` on, and gives its sha256. `None`: the attempt has ended.
async fn send(
    ends: &Arc<Ends>,
    number: u32,
    mut source: Source,
    offset: u64,
    mut signals: mpsc::Receiver<Signal>,
) -> Result<Option<String>, ToolError> {
    let Ok(mut window) = Outgoing::new(source.size(), offset) else {
        return Ok(None);
    };
    // As the window cuts them.
    let most = usize::try_from(limits::TRANSFER_CHUNK_BYTES).unwrap_or(usize::MAX);
    let skip = move |goes_on: &GoesOn<'_>| source.skip(offset, goes_on).map(|()| source);
    let mut source = match while_alive(|| ends.say_alive(number), &mut signals, skip).await {
        Ok(source) => source?,
        Err(_) => return Ok(None),
    };
    let (ahead, mut frames) = mpsc::channel(AHEAD);
    // The next chunks are read and hashed while the ones before wait for the socket.
    let reading = on_disk(move || {
        while let Some(frame) = source.frame(&number.to_le_bytes(), most)? {
            if ahead.blocking_send(frame).is_err() {
                return Ok(None);
            }
        }
        source.finish().map(Some)
    });
    let sending = async move {
        while !window.is_all_sent() {
            let room = window.room();
            // Between two chunks the gateway is heard, so that an attempt that has ended stops.
            let signal = if room == 0 {
                signals.recv().await
            } else {
                signals.try_recv().ok()
            };
            match signal {
                Some(Signal::Ack { offset }) if window.acked(offset).is_ok() => continue,
                None if room > 0 && !signals.is_closed() => {}
                _ => return false,
            }
            let Some(frame) = frames.recv().await else {
                return false;
            };
            if ends.link.send_chunk(frame).await.is_err() {
                return false;
            }
            window.sent(room);
        }
        true
    };
    let (read, is_sent) = tokio::join!(reading, sending);
    read.map(|sha256| sha256.filter(|_| is_sent))
}
