//! The destination of a transfer: writes chunks to a temporary file, which becomes the file when its checksum is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gsv_protocol::codec::CHUNK_HEADER_BYTES;
use gsv_protocol::methods::{TransferAccept, TransferAck, TransferDone};
use gsv_protocol::types::{TransferAcceptParams, TransferAckParams, TransferDoneParams, TransferReceiveEvent};
use gsv_tools::ToolError;
use gsv_tools::beneath::{Beneath, GoesOn};
use gsv_tools::transfer::{Destination, Offer, Offered, discard};
use tokio::sync::{mpsc, watch};

use super::Ends;
use super::attempts::Signal;
use super::waiting::{saying_alive, while_alive};
use super::window::Incoming;
use super::{on_disk, problem};

/// An error of a call means that the connection or the attempt is gone. The temporary file stays.
pub async fn run(ends: Arc<Ends>, event: TransferReceiveEvent, id: String, mut signals: mpsc::Receiver<Signal>) {
    let (number, size) = (event.transfer_id, event.size);
    let files = Arc::clone(&ends.files);
    let offer = Offer {
        path: event.path,
        id,
        size,
        sha256: event.sha256,
        replaces: event.force.unwrap_or(false),
    };
    let (opening, open_offer) = (Arc::clone(&ends), offer.clone());
    let open = move |goes_on: &GoesOn<'_>| {
        opening.check_offered()?;
        let is_wanted = || opening.may(Some(&open_offer.id), |part| part.receives(&open_offer.path));
        open_wanted(&opening.files, &open_offer, is_wanted, goes_on)
    };
    let offered = match while_alive(|| ends.say_alive(number), &mut signals, open).await {
        Ok(offered) => offered,
        Err(ended) => {
            if matches!(ended, Some(Signal::Abort)) {
                let _ = on_disk(move || discard(&files, &offer.path, &offer.id)).await;
            }
            return;
        }
    };
    let (error, reason) = offered.as_ref().err().map_or((None, None), problem);
    let accept = TransferAcceptParams {
        transfer_id: number,
        error,
        reason,
        offset: offered.as_ref().ok().map(|offered| match offered {
            Offered::Open(destination) => destination.offset(),
            Offered::Stored => size,
        }),
    };
    let accepted = ends.tell::<TransferAccept>(accept).await;
    let (Ok(offered), Ok(_)) = (offered, accepted) else {
        return;
    };
    let stored = match offered {
        Offered::Open(destination) => receive(&ends, number, size, destination, files, signals).await,
        Offered::Stored => match signals.recv().await {
            Some(Signal::End { sha256 }) if sha256 == offer.sha256 => Ok(offer.sha256),
            _ => Ok(None),
        },
    };
    let done = match stored {
        Ok(None) => return,
        Ok(Some(sha256)) => TransferDoneParams {
            transfer_id: number,
            bytes_written: size,
            sha256: Some(sha256),
            error: None,
            reason: None,
        },
        Err(failed) => {
            let (error, reason) = problem(&failed);
            TransferDoneParams {
                transfer_id: number,
                bytes_written: 0,
                sha256: None,
                error,
                reason,
            }
        }
    };
    let _ = ends.tell::<TransferDone>(done).await;
}

/// Opens the file that is offered. A program that leaves its transfer removes the temporary file: one that this makes after that is removed
/// here.
fn open_wanted(
    files: &Beneath,
    offer: &Offer,
    is_wanted: impl Fn() -> bool,
    goes_on: &GoesOn<'_>,
) -> Result<Offered, ToolError> {
    let offered = Destination::open(files, offer, goes_on)?;
    if is_wanted() {
        return Ok(offered);
    }
    if let Offered::Open(destination) = offered {
        destination.discard(files);
    }
    Err(ToolError::Cancelled { tail: None })
}

/// Takes the file, and gives its sha256 when it is stored. `None`: the attempt has ended; what it has stays for the next one, unless
/// the gateway says that the transfer has ended.
async fn receive(
    ends: &Arc<Ends>,
    number: u32,
    size: u64,
    destination: Box<Destination>,
    files: Arc<Beneath>,
    signals: mpsc::Receiver<Signal>,
) -> Result<Option<String>, ToolError> {
    let (acked, acks) = watch::channel(destination.offset());
    ends.tasks.spawn(acknowledge(Arc::clone(ends), number, acks));
    let storing = Arc::new(AtomicBool::new(false));
    let stores = Arc::clone(&storing);
    // One thread for the whole file: a thread for each chunk costs more than the write.
    let taken = on_disk(move || take(size, destination, &files, signals, &acked, &stores));
    // A disk may take minutes to store what it has only in memory.
    saying_alive(|| ends.say_alive(number), || storing.load(Ordering::Relaxed), taken).await
}

/// Blocks until the attempt has ended.
fn take(
    size: u64,
    mut destination: Box<Destination>,
    files: &Beneath,
    mut signals: mpsc::Receiver<Signal>,
    acked: &watch::Sender<u64>,
    storing: &AtomicBool,
) -> Result<Option<String>, ToolError> {
    let mut window = Incoming::new(size, destination.offset());
    loop {
        match signals.blocking_recv() {
            Some(Signal::Chunk(frame)) => {
                let Ok(due) = window.take(frame.len().saturating_sub(CHUNK_HEADER_BYTES)) else {
                    return Ok(None);
                };
                if let Err(error) = destination.write(&frame[CHUNK_HEADER_BYTES..]) {
                    destination.discard(files);
                    return Err(error);
                }
                if let Some(offset) = due {
                    acked.send_replace(offset);
                }
            }
            Some(Signal::End { sha256: Some(sha256) }) => {
                storing.store(true, Ordering::Relaxed);
                return destination.finish(files, &sha256).map(|()| Some(sha256));
            }
            Some(Signal::Abort) => {
                destination.discard(files);
                return Ok(None);
            }
            None | Some(Signal::End { sha256: None } | Signal::Start { .. } | Signal::Ack { .. }) => return Ok(None),
        }
    }
}

/// Tells the gateway how far the file is written: one call at a time, with the newest offset.
async fn acknowledge(ends: Arc<Ends>, number: u32, mut acks: watch::Receiver<u64>) {
    while acks.changed().await.is_ok() {
        let offset = *acks.borrow_and_update();
        let params = TransferAckParams {
            transfer_id: number,
            offset,
        };
        if ends.tell::<TransferAck>(params).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use gsv_tools::beneath::{Resolver, Scope};

    use super::*;

    #[test]
    fn tf13_a_copy_that_its_program_has_left_while_it_opens_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let files = Beneath::new(dir.path(), Scope::Workspace, Resolver::Auto).unwrap();
        let offer = Offer {
            path: "a".into(),
            id: "0".repeat(32),
            size: 1,
            sha256: None,
            replaces: false,
        };
        let left = || std::fs::read_dir(dir.path()).unwrap().count();
        let opened = open_wanted(&files, &offer, || false, &|| true);
        assert!(matches!(opened, Err(ToolError::Cancelled { .. })));
        assert_eq!(left(), 0);
        let opened = open_wanted(&files, &offer, || true, &|| true);
        assert!(matches!(opened, Ok(Offered::Open(_))));
        assert_eq!(left(), 1);
    }
}
