//! Transfers of files between this machine and the gateway (gateway/spec/transfer.md). Each attempt is a task that ends with the
//! connection; what it has received stays in a temporary file, and the next attempt goes on there. Nothing else is kept.

pub mod attempts;
mod receive;
mod send;
mod waiting;
mod window;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gsv_link::{Bytes, Link, LinkError, LinkEvent};
use gsv_protocol::codec::CHUNK_HEADER_BYTES;
use gsv_protocol::methods::{Method, TransferAlive};
use gsv_protocol::types::{TransferAliveParams, TransferEndEvent, TransferReceiveEvent, TransferSendEvent};
use gsv_protocol::{Event, errors};
use gsv_tools::beneath::{Beneath, Resolver, Scope};
use gsv_tools::transfer::{discard, is_id};
use gsv_tools::{ToolBox, ToolError};
use tokio::sync::mpsc;

use self::attempts::{Signal, Transfers};
use crate::log::{Level, Log};
use crate::tasks::Tasks;

const CALL_TIME: Duration = Duration::from_secs(30);
/// Between two tries of what the gateway refused because there were too many requests.
const AGAIN: Duration = Duration::from_millis(250);
/// They take more than a minute, and each limit of requests counts a minute at most.
const TRIES: u32 = 300;

/// The ends of transfers on this machine.
pub struct Ends {
    link: Link,
    files: Arc<Beneath>,
    tasks: Arc<Tasks>,
    attempts: Transfers,
    /// The log of a node. A program tells its user how the transfer ended.
    log: Option<Arc<Log>>,
    /// A node that does not offer the tools for files copies none either.
    offered: bool,
    /// The transfers of a program that is an end itself, by their ids. It takes part in no other.
    own: Option<Mutex<HashMap<String, Part>>>,
}

/// What a program does in a transfer of its own, whatever the gateway asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// It gives this file.
    Sends { path: String },
    /// It takes this file, and replaces one only if the user said so.
    Receives { path: String, replaces: bool },
}

impl Part {
    fn sends(&self, path: &str) -> bool {
        matches!(self, Self::Sends { path: own } if own == path)
    }

    fn receives(&self, path: &str) -> bool {
        matches!(self, Self::Receives { path: own, .. } if own == path)
    }

    fn may_replace(&self) -> bool {
        matches!(self, Self::Receives { replaces: true, .. })
    }
}

impl Ends {
    /// The ends of a node: it takes part in every transfer whose file its tools may reach.
    pub fn of_node(link: Link, tools: &ToolBox, tasks: Arc<Tasks>, log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            link,
            files: Arc::clone(tools.files()),
            tasks,
            attempts: Transfers::default(),
            log: Some(log),
            offered: tools.can_transfer(),
            own: None,
        })
    }

    /// The ends of a program: its own transfers. Their paths are absolute, or relative to the folder; `inside` keeps them in it.
    ///
    /// # Errors
    /// The folder can't be opened.
    pub fn of_program(link: Link, folder: &Path, inside: bool) -> io::Result<Arc<Self>> {
        let scope = if inside { Scope::Workspace } else { Scope::Anywhere };
        Ok(Arc::new(Self {
            link,
            files: Arc::new(Beneath::new(folder, scope, Resolver::Auto)?),
            tasks: Arc::default(),
            attempts: Transfers::default(),
            log: None,
            offered: true,
            own: Some(Mutex::default()),
        }))
    }

    /// Tells the gateway something about an attempt. Again while there are too many requests: without it, the attempt would hang for minutes.
    async fn tell<M: Method>(&self, params: M::Params) -> Result<M::Result, LinkError>
    where
        M::Params: Clone,
    {
        for _ in 1..TRIES {
            match self.link.call_once::<M>(params.clone(), CALL_TIME).await {
                Err(error) if error.reason() == errors::LIMIT_RATE.reason => tokio::time::sleep(AGAIN).await,
                told => return told,
            }
        }
        self.link.call_once::<M>(params, CALL_TIME).await
    }

    /// Tells the gateway that this end goes on reading. An older gateway knows no such method, and an answer that is lost changes nothing.
    fn say_alive(self: &Arc<Self>, number: u32) {
        let ends = Arc::clone(self);
        self.tasks.spawn(async move {
            let params = TransferAliveParams { transfer_id: number };
            let _ = ends.link.call_once::<TransferAlive>(params, CALL_TIME).await;
        });
    }

    fn check_offered(&self) -> Result<(), ToolError> {
        if self.offered {
            return Ok(());
        }
        Err(ToolError::Failed("this node does not copy files".into()))
    }

    /// This program asks for this transfer.
    pub fn take_part(&self, id: &str, part: Part) {
        if let Some(own) = &self.own {
            own.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(id.to_owned(), part);
        }
    }

    /// The transfer has ended for this program: from now on the gateway gets nothing of it and writes nothing.
    pub fn leave(&self, id: &str) {
        if let Some(own) = &self.own {
            own.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
    }

    /// Makes a folder below the one that the ends of a program keep to. Blocks.
    ///
    /// # Errors
    /// A link leads out of that folder, or the disk refuses it.
    pub fn make_folder(&self, path: &str) -> Result<(), ToolError> {
        self.files.make_folder(&self.files.parse(path)?)
    }

    /// Removes what an earlier attempt of an ended transfer has left here. Blocks.
    pub fn clear(&self, id: &str, path: &str) {
        // A folder that is gone has no temporary file.
        let _ = discard(&self.files, path, id);
    }

    /// Everything about transfers that the link reports; the rest is left alone.
    pub fn handle(self: &Arc<Self>, event: LinkEvent) {
        match event {
            LinkEvent::Disconnected { .. } => self.offline(),
            LinkEvent::Chunk(frame) => self.on_chunk(frame),
            LinkEvent::Event { event, .. } => {
                self.on_event(event);
            }
            _ => {}
        }
    }

    /// The connection is gone, and every attempt with it.
    pub fn offline(&self) {
        self.attempts.offline();
    }

    /// Ends all attempts, and waits for what they do on the disk.
    pub async fn end(&self) {
        self.attempts.offline();
        self.tasks.end().await;
    }

    /// An event that is not about transfers comes back.
    pub fn on_event(self: &Arc<Self>, event: Event) -> Option<Event> {
        match event {
            Event::TransferSend(event) => self.on_send(*event),
            Event::TransferReceive(event) => self.on_receive(*event),
            Event::TransferStart(event) => {
                let offset = event.offset.unwrap_or(0);
                self.attempts.signal(event.transfer_id, Signal::Start { offset });
            }
            Event::TransferAck(event) => {
                let offset = event.offset;
                self.attempts.signal(event.transfer_id, Signal::Ack { offset });
            }
            Event::TransferEnd(event) => self.on_end(*event),
            other => return Some(other),
        }
        None
    }

    /// A chunk of an attempt that has ended is dropped.
    pub fn on_chunk(&self, frame: Bytes) {
        let Some(number) = frame.first_chunk::<CHUNK_HEADER_BYTES>() else {
            return;
        };
        self.attempts.signal(u32::from_le_bytes(*number), Signal::Chunk(frame));
    }

    fn on_send(self: &Arc<Self>, event: TransferSendEvent) {
        let id = event.id.as_ref().map(|id| id.as_str().to_owned());
        if !self.may(id.as_deref(), |part| part.sends(&event.path)) {
            return;
        }
        if let Some(signals) = self.begin(event.transfer_id, id) {
            self.tasks.spawn(send::run(Arc::clone(self), event, signals));
        }
    }

    fn on_receive(self: &Arc<Self>, mut event: TransferReceiveEvent) {
        let Some(id) = event
            .id
            .as_ref()
            .map(|id| id.as_str().to_owned())
            .filter(|id| is_id(id))
        else {
            return self.warn("a transfer without a valid id was ignored; the gateway is older than this node");
        };
        if !self.may(Some(&id), |part| part.receives(&event.path)) {
            return;
        }
        // Only the user of a program says that it may replace a file.
        if !self.may(Some(&id), Part::may_replace) {
            event.force = None;
        }
        if let Some(signals) = self.begin(event.transfer_id, Some(id.clone())) {
            self.tasks.spawn(receive::run(Arc::clone(self), event, id, signals));
        }
    }

    fn on_end(self: &Arc<Self>, event: TransferEndEvent) {
        if event.error.is_none() {
            let sha256 = event.sha256;
            self.attempts.signal(event.transfer_id, Signal::End { sha256 });
            return;
        }
        if self.attempts.signal(event.transfer_id, Signal::Abort) {
            return;
        }
        // The transfer has ended while this machine was away.
        if let (Some(id), Some(path)) = (event.id, event.path)
            && is_id(id.as_str())
            && self.may(Some(id.as_str()), |part| part.receives(&path))
        {
            let ended = Arc::clone(self);
            self.tasks.spawn(async move {
                let _ = tokio::task::spawn_blocking(move || ended.clear(id.as_str(), &path)).await;
            });
        }
    }

    /// A gateway gets no file of a program's user, and writes none, that the program did not name for this.
    fn may(&self, id: Option<&str>, is_its_part: impl Fn(&Part) -> bool) -> bool {
        let Some(own) = &self.own else { return true };
        let own = own.lock().unwrap_or_else(PoisonError::into_inner);
        id.and_then(|id| own.get(id)).is_some_and(is_its_part)
    }

    fn begin(&self, number: u32, id: Option<String>) -> Option<mpsc::Receiver<Signal>> {
        let begun = self.attempts.begin(number, id);
        if begun.is_none() {
            self.warn("too many transfers at once; one was ignored");
        }
        begun
    }

    fn warn(&self, text: &str) {
        if let Some(log) = &self.log {
            log.write(Level::Warn, text, &[]);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::Part;

    #[test]
    fn tf13_a_program_gives_only_its_source_and_writes_only_its_destination() {
        let sends = Part::Sends { path: "/a".into() };
        assert!(sends.sends("/a") && !sends.sends("/b") && !sends.receives("/a") && !sends.may_replace());
        let receives = |replaces| Part::Receives {
            path: "/a".into(),
            replaces,
        };
        assert!(receives(false).receives("/a") && !receives(false).receives("/b") && !receives(false).sends("/a"));
        assert!(receives(true).may_replace() && !receives(false).may_replace());
    }
}
