//! One file of `gsv cp` over a link that lasts. This program may be one of the ends: then it sends or receives as a node does, and says so
//! again on each new connection, so that the transfer goes on where it was.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use gsv_link::{Events, Link, LinkEvent};
use gsv_node::Ends;
use gsv_protocol::errors;
use gsv_protocol::methods::{TransferCancel, TransferCreate, TransferGet};
use gsv_protocol::types::{Transfer, TransferCancelParams, TransferGetParams, TransferKey};
use ring::digest::{Context, SHA256};
use tokio::sync::watch;

use super::copy_poll::Poll;
use super::copy_request::{CopyRequest, Endpoint, OWN, Search};
use crate::clean::one_line;
use crate::client::{Account, link_failure};
use crate::exit::{Failure, Outcome};
use crate::stop_signal::stop_signal;

const BUFFER: usize = 256 * 1024;
/// For the answer to a cancellation.
const CANCELLED: Duration = Duration::from_secs(3);

/// How a copy ended.
pub enum Copied {
    Now(Transfer),
    /// An earlier run of the same command has copied the same file, and it is still there.
    Already,
}

/// The connection of one command.
pub struct Session {
    link: Link,
    ends: Arc<Ends>,
    connects: watch::Receiver<u64>,
    broken: watch::Receiver<Option<Failure>>,
    /// The ids of its transfers, by their destinations.
    begun: Mutex<HashMap<String, TransferKey>>,
}

impl Session {
    /// `ends` gets the link.
    pub async fn open(account: &Account, ends: impl FnOnce(Link) -> Outcome<Arc<Ends>>) -> Outcome<Self> {
        let (link, events) = account.connect_lasting().await?;
        let ends = ends(link.clone())?;
        let (connected, mut connects) = watch::channel(0);
        let (failed, mut broken) = watch::channel(None);
        tokio::spawn(pump(events, account.clone(), Arc::clone(&ends), connected, failed));
        tokio::select! {
            // It also ends, with an error, when the link has given up.
            Ok(()) = connects.changed() => {}
            failure = lost(&mut broken) => return Err(failure),
        }
        Ok(Self {
            link,
            ends,
            connects,
            broken,
            begun: Mutex::default(),
        })
    }

    pub async fn close(&self) {
        self.ends.end().await;
        self.link.close().await;
    }

    /// Copies one file. `moved` is told of each look.
    pub async fn copy(&self, wanted: &CopyRequest, skips: bool, moved: impl Fn(&Transfer)) -> Outcome<Copied> {
        let (mut connects, mut broken) = (self.connects.clone(), self.broken.clone());
        connects.mark_unchanged();
        let (id, before) = self.current(wanted).await?;
        let before = before.filter(|_| skips);
        // On this machine, the checksum tells whether an earlier run has copied it.
        let is_here = matches!(wanted.destination, Endpoint::Local(_)) && is_still_there(wanted, before.as_ref()).await;
        if is_here && wanted.names_content() {
            return Ok(Copied::Already);
        }
        let begun = self.begin(wanted, &id).await;
        let mut seen = match begun {
            Err(failure) if failure.is(&errors::FILE_EXISTS) && is_still_there(wanted, before.as_ref()).await => {
                return Ok(Copied::Already);
            }
            begun => begun?,
        };
        let mut poll = Poll::new();
        while seen.ended_at.is_none() {
            moved(&seen);
            let again = tokio::select! {
                changed = connects.changed() => changed.is_ok(),
                () = tokio::time::sleep(poll.wait()) => false,
                failure = lost(&mut broken) => return Err(failure),
            };
            let answer = if again {
                self.create(wanted, &id).await
            } else {
                self.get(&id).await
            };
            match answer {
                Ok(transfer) => {
                    poll.answered();
                    seen = transfer;
                }
                // The transfer waits for this end.
                Err(failure) if poll.goes_on_after(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        moved(&seen);
        self.ends.leave(id.as_str());
        let Some(failure) = failure_of(&seen) else {
            let is_same = is_here && before.is_some_and(|before| before.sha256 == seen.sha256);
            return Ok(if is_same { Copied::Already } else { Copied::Now(seen) });
        };
        self.clear(wanted, &id).await;
        if failure.is(&errors::FILE_EXISTS) && is_still_there(wanted, before.as_ref()).await {
            return Ok(Copied::Already);
        }
        Err(failure)
    }

    /// The person does not want it any more. True: the gateway has ended it or never began it; else it ends by itself, after some minutes
    /// without progress.
    pub async fn cancel(&self, wanted: &CopyRequest) -> bool {
        let begun = lock(&self.begun).get(wanted.destination.shown()).cloned();
        let id = match begun {
            Some(id) => id,
            None => match self.current(wanted).await {
                Ok((id, _)) => id,
                Err(_) => return false,
            },
        };
        // From now on this end takes no part, so that what it has left can be removed without an answer, too.
        self.ends.leave(id.as_str());
        self.clear(wanted, &id).await;
        let params = TransferCancelParams { id: id.clone() };
        let answer = self.link.call::<TransferCancel>(params).await;
        self.clear(wanted, &id).await;
        is_cancelled(&answer.map_err(|error| link_failure(&error)))
    }

    /// Makes a folder of a copy to this machine, below the folder that it goes to. An error says why it can't be made.
    pub async fn make_folder(&self, path: String) -> Result<(), String> {
        let ends = Arc::clone(&self.ends);
        let made = tokio::task::spawn_blocking(move || ends.make_folder(&path)).await;
        made.map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())
    }

    /// Begins the transfer, or goes on with the one that an earlier run of this command has begun.
    async fn begin(&self, wanted: &CopyRequest, id: &TransferKey) -> Outcome<Transfer> {
        lock(&self.begun).insert(wanted.destination.shown().to_owned(), id.clone());
        if let Some(part) = wanted.part() {
            self.ends.take_part(id.as_str(), part);
        }
        self.create(wanted, id).await
    }

    /// The first transfer of this command that has not ended, and an earlier one that was successful. Ended ones are listed for a day, so
    /// they are those before it: they are found with few questions. A question without an answer tells nothing: an ended transfer that is
    /// taken for a new one would count as copied.
    async fn current(&self, wanted: &CopyRequest) -> Outcome<(TransferKey, Option<Transfer>)> {
        let mut before = None;
        let mut search = Search::default();
        while let Some(nth) = search.next() {
            let id = wanted.id(nth);
            let ended = match self.get(&id).await {
                Ok(known) if known.ended_at.is_some() => {
                    if known.reason.is_none() {
                        before = Some(known);
                    }
                    self.clear(wanted, &id).await;
                    true
                }
                Ok(_) => false,
                Err(failure) if failure.is(&errors::TRANSFER_UNKNOWN) => false,
                Err(failure) => return Err(failure),
            };
            search.seen(nth, ended);
        }
        Ok((wanted.id(search.found()), before))
    }

    async fn create(&self, wanted: &CopyRequest, id: &TransferKey) -> Outcome<Transfer> {
        let called = self.link.call::<TransferCreate>(wanted.params(id.clone())).await;
        called
            .map(|created| created.transfer)
            .map_err(|error| link_failure(&error))
    }

    async fn get(&self, id: &TransferKey) -> Outcome<Transfer> {
        let called = self
            .link
            .call::<TransferGet>(TransferGetParams { id: id.clone() })
            .await;
        called.map(|got| got.transfer).map_err(|error| link_failure(&error))
    }

    /// Removes the temporary file of a copy to this machine that has ended without success.
    async fn clear(&self, wanted: &CopyRequest, id: &TransferKey) {
        if let Endpoint::Local(path) = &wanted.destination {
            let (ends, id, path) = (Arc::clone(&self.ends), id.clone(), path.clone());
            let _ = tokio::task::spawn_blocking(move || ends.clear(id.as_str(), &path)).await;
        }
    }
}

/// Whether the gateway has ended a transfer, or never begins it.
pub fn is_cancelled<T>(answer: &Outcome<T>) -> bool {
    match answer {
        Ok(_) => true,
        Err(failure) => failure.is(&errors::TRANSFER_UNKNOWN),
    }
}

/// What becomes of a copy whose cancellation was not confirmed.
pub enum Unconfirmed {
    /// This program is an end of it, so the gateway ends it after five minutes without progress.
    EndsByItself,
    /// The gateway goes on with it alone, to this destination.
    GoesOn { destination: String },
}

/// Tells the gateway that a copy is not wanted any more. A second signal ends the wait, and a gateway that does not answer is
/// waited for only a moment.
pub async fn stopped(cancelled: impl Future<Output = bool>, otherwise: Unconfirmed) -> Failure {
    let is_ended = tokio::select! {
        ended = tokio::time::timeout(CANCELLED, cancelled) => ended.unwrap_or(false),
        () = stop_signal() => false,
    };
    let interrupted = Failure::interrupted();
    if is_ended {
        return interrupted;
    }
    let (goes_on, next) = match otherwise {
        Unconfirmed::EndsByItself => (
            "for up to five minutes",
            "The same command goes on where it was stopped.".to_owned(),
        ),
        Unconfirmed::GoesOn { destination } => (
            "to its end",
            format!(
                "Before you copy again, look whether {} is complete there.",
                one_line(&destination, 200)
            ),
        ),
    };
    Failure {
        message: format!("Stopped. The gateway did not confirm it, so the copy may go on {goes_on}."),
        next,
        ..interrupted
    }
}

/// Why a transfer failed. `None`: it did not. The tools of a machine write for the agent: for a person, the end that it is about is named,
/// where the reason tells it. Their other texts say what to do by themselves.
pub fn failure_of(transfer: &Transfer) -> Option<Failure> {
    let reason = transfer.reason.as_deref()?;
    let failure = Failure::from_reason(reason, transfer.problem.as_deref().unwrap_or(""), false);
    let shown = |end: &str| one_line(end.trim_start_matches(OWN), 200);
    // The size comes from the source: without it, the source has failed.
    let (message, next) = if failure.is(&errors::PATH_NOT_FOUND) && transfer.size_bytes.is_none() {
        let next = "Check the path. On a machine it begins in the folder that the agent works in: `gsv nodes list` shows the machines.";
        (format!("{} does not exist.", shown(&transfer.source)), next)
    } else if failure.is(&errors::FILE_EXISTS) {
        let next = "Choose another destination, or replace the file with `--force`.";
        (format!("{} exists already.", shown(&transfer.destination)), next)
    } else if failure.is(&errors::PATH_OUTSIDE_WORKSPACE) && failed_end(transfer).starts_with(OWN) {
        // In one text, because a list of failures shows no next steps.
        let message = format!(
            "{} is outside of the folder, most likely behind a link. Remove the link, or copy to another folder.",
            shown(failed_end(transfer))
        );
        (message, "")
    } else if ["tool.", "path.", "file."]
        .iter()
        .any(|family| reason.starts_with(family))
    {
        (failure.message.clone(), "")
    } else {
        return Some(failure);
    };
    Some(Failure {
        message,
        next: next.to_owned(),
        ..failure
    })
}

/// The end that has most likely refused: the size comes from the source.
fn failed_end(transfer: &Transfer) -> &str {
    match transfer.size_bytes {
        None => &transfer.source,
        Some(_) => &transfer.destination,
    }
}

/// Whether the file that an earlier run has copied is there as it was. Of a file on another machine it is known only that there is one.
async fn is_still_there(wanted: &CopyRequest, earlier: Option<&Transfer>) -> bool {
    let Some(earlier) = earlier else { return false };
    match (&wanted.destination, &earlier.sha256) {
        (Endpoint::Local(path), Some(sha256)) => {
            let (path, sha256) = (path.clone(), sha256.clone());
            let same =
                tokio::task::spawn_blocking(move || sha256_of(&path).is_ok_and(|found| found == sha256.as_str()));
            same.await.unwrap_or(false)
        }
        _ => true,
    }
}

fn sha256_of(path: &str) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hash = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(HEXLOWER.encode(hash.finish().as_ref())),
            read => hash.update(&buffer[..read]),
        }
    }
}

pub fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands what the link reports to the ends. Never waits for an answer.
async fn pump(
    mut events: Events,
    account: Account,
    ends: Arc<Ends>,
    connected: watch::Sender<u64>,
    failed: watch::Sender<Option<Failure>>,
) {
    while let Some(event) = events.recv().await {
        let failure = match &event {
            LinkEvent::Connected(_) => {
                connected.send_modify(|count| *count += 1);
                None
            }
            event if *connected.borrow() == 0 => account.never_connected(event),
            LinkEvent::Fatal(error) => Some(link_failure(error)),
            _ => None,
        };
        if let Some(failure) = failure {
            failed.send_replace(Some(failure));
            return;
        }
        ends.handle(event);
    }
}

/// Waits until the link can't go on.
async fn lost(broken: &mut watch::Receiver<Option<Failure>>) -> Failure {
    loop {
        if let Some(failure) = broken.borrow_and_update().clone() {
            return failure;
        }
        if broken.changed().await.is_err() {
            return Failure::later(
                "The connection to the gateway is closed.",
                "Run the same command again.",
            );
        }
    }
}
