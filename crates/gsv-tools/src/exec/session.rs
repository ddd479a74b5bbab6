//! One command: its state, its output, waiting for its end, ending it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::ExecEvent;
use super::meta::{Ending, Folder, Meta, OUTPUT, REFUSED, STDIN};
use super::output::{Follow, Part, Tail, part, tail};
use super::report::{self, CommandInfo, CommandOutput, ListedCommand};
use super::state::{End, State};
use crate::error::ToolError;
use crate::limits;
use crate::tool::{CallContext, Progress};

pub(crate) type KillReason = Ending;

/// How the end is reported: by the waiting call, or, once that call was answered, by an event.
#[derive(Debug, Default)]
struct Duty {
    background: bool,
    ended: bool,
}

pub(crate) struct Session {
    pub(crate) folder: Folder,
    pub(crate) meta: Meta,
    duty: Mutex<Duty>,
    state: watch::Receiver<State>,
    kills: mpsc::Sender<Ending>,
    pub(super) events: Option<mpsc::Sender<ExecEvent>>,
}

/// Reports a start. A full queue drops it, because the end is reported in any case.
pub(super) fn tell(events: Option<&mpsc::Sender<ExecEvent>>, event: ExecEvent) {
    if let Some(events) = events {
        let _ = events.try_send(event);
    }
}

const BACKGROUND: &str = "background";

impl Session {
    pub(super) fn new(
        folder: Folder,
        meta: Meta,
        state: watch::Receiver<State>,
        kills: mpsc::Sender<Ending>,
        events: Option<mpsc::Sender<ExecEvent>>,
    ) -> Self {
        let background = meta.background || folder.file(BACKGROUND).exists();
        Self {
            folder,
            meta,
            duty: Mutex::new(Duty {
                background,
                ended: false,
            }),
            state,
            kills,
            events,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.meta.session_id
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn end(&self) -> Option<End> {
        if let State::Ended(end) = &*self.state.borrow() {
            Some(end.clone())
        } else {
            None
        }
    }

    fn duty(&self) -> std::sync::MutexGuard<'_, Duty> {
        self.duty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it runs in the sandbox of the node.
    pub(crate) fn is_confined(&self) -> bool {
        self.meta.sandbox.is_some()
    }

    /// Whether it may reach hosts that its call asked for.
    pub(crate) fn has_hosts(&self) -> bool {
        self.meta.escalation.has_hosts
    }

    pub(crate) fn is_background(&self) -> bool {
        self.duty().background
    }

    /// From now on the end is reported by event. False when it has ended already: then the call itself answers.
    fn to_background(&self) -> bool {
        let mut duty = self.duty();
        if duty.ended {
            return false;
        }
        duty.background = true;
        // The end cannot be reported before this, because the lock is held.
        tell(self.events.as_ref(), report::start_event(&self.meta));
        // Read by a restarted node.
        let _ = std::fs::write(self.folder.file(BACKGROUND), b"");
        true
    }

    /// The end is known. True when it has to be reported by event.
    pub(super) fn mark_ended(&self) -> bool {
        let mut duty = self.duty();
        duty.ended = true;
        duty.background
    }

    pub(crate) async fn tail(&self, chars: usize) -> Tail {
        let path = self.folder.file(OUTPUT);
        off(move || tail(&path, chars))
            .await
            .and_then(Result::ok)
            .unwrap_or_default()
    }

    /// Ends the command and waits for its end.
    pub(crate) async fn kill(&self, why: Ending) -> Result<End, ToolError> {
        // A full queue already holds a request to end it; a closed one means that it has ended.
        let _ = self.kills.try_send(why);
        let mut state = self.state.clone();
        let ended = state.wait_for(|state| *state != State::Running);
        match tokio::time::timeout(limits::KILL_GRACE * 2 + limits::KILL_TIME, ended).await {
            Ok(Ok(state)) => match &*state {
                State::Ended(end) => Ok(end.clone()),
                _ => Err(ToolError::KillFailed { pgid: self.meta.pgid }),
            },
            _ => Err(ToolError::KillFailed { pgid: self.meta.pgid }),
        }
    }

    /// The answer of a call that does not wait.
    pub(crate) async fn running(&self) -> CommandOutput {
        report::running(&self.meta, &self.tail(limits::TAIL_CHARS).await)
    }

    pub(crate) fn info(&self) -> CommandInfo {
        CommandInfo::of(&self.meta, &self.state())
    }

    pub(crate) fn listed(&self) -> ListedCommand {
        ListedCommand::of(&self.meta, &self.state())
    }

    pub(crate) async fn part(&self, offset: Option<u64>, limit: usize) -> Result<Part, ToolError> {
        let (path, is_over) = (self.folder.file(OUTPUT), self.end().is_some());
        off(move || part(&path, offset, limit, is_over))
            .await
            .unwrap_or_else(|| Err(std::io::ErrorKind::Other.into()))
            .map_err(|error| ToolError::io("read the command's output", error))
    }

    /// The pipe of its input, if it takes input.
    pub(crate) fn stdin(&self) -> Option<PathBuf> {
        self.folder.has_stdin().then(|| self.folder.file(STDIN))
    }

    async fn ended(&self) -> Option<End> {
        let mut state = self.state.clone();
        match state
            .wait_for(|state| matches!(state, State::Ended(_)))
            .await
            .as_deref()
        {
            Ok(State::Ended(end)) => Some(end.clone()),
            // The watcher is gone: the runtime is shutting down.
            _ => None,
        }
    }

    pub(super) async fn result(&self, end: &End) -> Result<CommandOutput, ToolError> {
        let output = self.tail(limits::BASH_OUTPUT_CHARS).await;
        report::ended(&self.meta, end, &self.refused().await, output)
    }

    /// The hosts that the proxy of the sandbox did not let it reach.
    pub(super) async fn refused(&self) -> Vec<String> {
        let file = self.folder.file(REFUSED);
        let text = off(move || std::fs::read_to_string(file)).await.and_then(Result::ok);
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits for the end, sends live output, obeys cancel and deadline. After `yield_at` it answers with the output so far.
    pub(crate) async fn follow(
        &self,
        context: &CallContext,
        yield_at: Option<Instant>,
    ) -> Result<CommandOutput, ToolError> {
        let live = LiveOutput::new(context.progress.clone(), &self.folder);
        let end = tokio::select! {
            biased;
            end = self.ended() => end,
            () = context.cancel.cancelled() => {
                let end = self.kill(Ending::Cancelled).await?;
                if end.ending == Some(Ending::Cancelled) {
                    return Err(ToolError::Cancelled { tail: Some(self.tail(limits::TAIL_CHARS).await.text) });
                }
                Some(end)
            }
            () = at(context.deadline) => Some(self.kill(Ending::Timeout).await?),
            () = at(yield_at) => {
                if self.to_background() {
                    return Ok(self.running().await);
                }
                self.ended().await
            }
            () = live.send() => None,
        };
        live.finish().await;
        let unknown = ToolError::OutcomeUnknown {
            why: "the node is shutting down",
            pid: Some(self.meta.pid),
            started_at: Some(self.meta.started_at),
            tail: None,
        };
        self.result(&end.ok_or(unknown)?).await
    }
}

/// A command of an earlier node that still runs.
pub struct RunningCall {
    pub(super) session: Arc<Session>,
}

impl RunningCall {
    pub fn session_id(&self) -> &str {
        self.session.id()
    }

    /// Whether the call that started it was answered with `running` already; then its end comes as an event.
    pub fn is_background(&self) -> bool {
        self.session.is_background()
    }

    /// Waits for the result, as the call that started the command would have.
    pub async fn wait(&self, context: CallContext) -> Result<CommandOutput, ToolError> {
        self.session.follow(&context, None).await
    }
}

/// Live output on its way to the caller.
struct LiveOutput {
    progress: Option<mpsc::Sender<Progress>>,
    follow: Option<Arc<Mutex<(Follow, String)>>>,
}

impl LiveOutput {
    fn new(progress: Option<mpsc::Sender<Progress>>, folder: &Folder) -> Self {
        let follow = progress.as_ref().and_then(|_| Follow::open(&folder.file(OUTPUT)).ok());
        Self {
            progress,
            follow: follow.map(|follow| Arc::new(Mutex::new((follow, String::new())))),
        }
    }

    /// Appends new output to the waiting text, which is kept until it is sent.
    async fn read(&self, last: bool) -> Option<()> {
        let follow = Arc::clone(self.follow.as_ref()?);
        off(move || {
            let mut guard = follow.lock().unwrap_or_else(PoisonError::into_inner);
            let (follow, waiting) = &mut *guard;
            let text = if last { follow.finish() } else { follow.next() };
            *waiting += &text.ok()?;
            Some(())
        })
        .await?
    }

    fn take(&self) -> Option<Progress> {
        let mut guard = self.follow.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = std::mem::take(&mut guard.1);
        (!chunk.is_empty()).then_some(Progress {
            stream: "output",
            chunk,
        })
    }

    /// Sends live output while it is polled; never returns.
    async fn send(&self) {
        let _ = self.send_while_open().await;
        std::future::pending::<()>().await;
    }

    async fn send_while_open(&self) -> Option<()> {
        let progress = self.progress.as_ref()?;
        loop {
            tokio::time::sleep(limits::SPOOL_POLL).await;
            let permit = progress.reserve().await.ok()?;
            self.read(false).await?;
            if let Some(live) = self.take() {
                permit.send(live);
            }
        }
    }

    async fn finish(&self) {
        let Some(progress) = &self.progress else { return };
        let _ = self.read(true).await;
        if let Some(live) = self.take() {
            // A caller that no longer reads still gets the result.
            let _ = progress.send_timeout(live, limits::KILL_GRACE).await;
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Runs file work off the async threads. `None` when it panicked or the runtime stopped.
pub(crate) async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::super::ExecEventKind;
    use super::*;

    fn session(dir: &std::path::Path, events: mpsc::Sender<ExecEvent>) -> Session {
        let meta = serde_json::json!({
            "sessionId": "s.1", "callId": "s/1", "pid": 7, "pgid": 7, "startTime": "1", "supervisorPid": 6,
            "supervisorStartTime": "1", "bootId": "b", "command": "make", "workdir": "/ws", "background": false,
            "startedAt": 1000, "startedUptimeMs": 1, "timeoutMs": 5,
        });
        let (_, state) = watch::channel(State::Running);
        let (kills, _) = mpsc::channel(1);
        Session::new(
            Folder::new(dir.to_owned()),
            serde_json::from_value(meta).unwrap(),
            state,
            kills,
            Some(events),
        )
    }

    #[test]
    fn w14_the_end_of_a_command_is_reported_once_by_its_call_or_by_an_event() {
        let dir = tempfile::tempdir().unwrap();
        let (events, mut told) = mpsc::channel(4);
        let waiting = session(dir.path(), events.clone());
        assert!(!waiting.mark_ended(), "the call that waits answers");
        assert!(!waiting.to_background(), "it has ended before its call was answered");
        assert!(told.try_recv().is_err() && !waiting.is_background());
        assert!(!session(dir.path(), events.clone()).is_background());

        let yielding = session(dir.path(), events.clone());
        assert!(yielding.to_background() && yielding.is_background());
        assert_eq!(told.try_recv().unwrap().event, ExecEventKind::Started);
        assert!(yielding.mark_ended(), "an event tells its end");
        assert!(session(dir.path(), events).is_background(), "a restarted node knows it");
    }
}
