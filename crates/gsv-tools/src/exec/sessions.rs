//! All commands of a node: starts and finds them, recovers them after a restart, removes old ones.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};

use super::meta::{Exit, Folder, Meta, session_id};
use super::proxy::Proxy;
use super::session::{KillReason, Session, off, tell};
use super::start::{How, Spec, Started, login_shell, start};
use super::state::{End, State};
use super::watch::{Watch, is_alive};
use super::{ExecEvent, Reattached, RunningCall, Sandbox, Supervisor, host, report};
use crate::error::ToolError;
use crate::limits;
use crate::tool::OnStarted;

pub(crate) struct Sessions {
    spool: PathBuf,
    how: How,
    events: Option<mpsc::Sender<ExecEvent>>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Arc<Session>>,
    /// Slots of commands that are being started.
    starting: usize,
}

/// The slot of one start, free again when the start has succeeded or failed.
struct Slot<'a>(&'a Sessions);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.table().starting -= 1;
    }
}

/// The state of a command, read from its folder.
enum Found {
    Running(Meta),
    Ended(Meta, End),
    NeverStarted,
    Missing,
}

impl Sessions {
    pub(crate) fn new(
        spool: &Path,
        supervisor: Supervisor,
        shell: Option<PathBuf>,
        sandbox: Option<Sandbox>,
        events: Option<mpsc::Sender<ExecEvent>>,
    ) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(spool)?;
        // The folder may have existed; outputs are for this user only.
        std::fs::set_permissions(spool, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self {
            spool: spool.canonicalize()?,
            how: How {
                supervisor,
                shell: login_shell(shell),
                sandbox,
            },
            events,
            table: Mutex::default(),
        })
    }

    /// What its commands run in.
    pub(super) fn sandbox(&self) -> Option<&Sandbox> {
        self.how.sandbox.as_ref()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Session>, ToolError> {
        self.table()
            .sessions
            .get(id)
            .cloned()
            .ok_or_else(|| ToolError::UnknownProcess {
                id: crate::error::quote(id),
            })
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<_> = self.table().sessions.values().cloned().collect();
        all.sort_by(|one, other| (one.meta.started_at, one.id()).cmp(&(other.meta.started_at, other.id())));
        all
    }

    pub(crate) async fn start(&self, spec: Spec, on_started: Option<OnStarted>) -> Result<Arc<Session>, ToolError> {
        self.sweep().await;
        let _slot = self.take_slot().await?;
        let started = start(&self.spool, &self.how, spec, on_started).await?;
        let Started {
            folder,
            meta,
            child,
            proxy,
        } = started;
        if meta.background {
            tell(self.events.as_ref(), report::start_event(&meta));
        }
        Ok(self.adopt(folder, meta, Some(child), proxy))
    }

    async fn take_slot(&self) -> Result<Slot<'_>, ToolError> {
        let evicted = {
            let mut table = self.table();
            let mut evicted = None;
            if table.sessions.len() + table.starting >= limits::SESSIONS {
                let oldest = oldest_ended(&table).ok_or(ToolError::TooManyProcesses {
                    limit: limits::SESSIONS,
                })?;
                evicted = table.sessions.remove(&oldest);
            }
            table.starting += 1;
            evicted
        };
        let slot = Slot(self);
        if let Some(session) = evicted {
            off(move || session.folder.remove()).await;
        }
        Ok(slot)
    }

    fn adopt(
        &self,
        folder: Folder,
        meta: Meta,
        child: Option<tokio::process::Child>,
        proxy: Option<Proxy>,
    ) -> Arc<Session> {
        let (state, seen) = watch::channel(State::Running);
        let (kill, kills) = mpsc::channel(4);
        let session = Arc::new(Session::new(folder, meta, seen, kill, self.events.clone()));
        let watch = Watch {
            session: Arc::clone(&session),
            child,
            proxy,
            state,
            kills,
        };
        self.table()
            .sessions
            .insert(session.id().to_owned(), Arc::clone(&session));
        tokio::spawn(watch.run());
        session
    }

    fn adopt_ended(&self, folder: Folder, meta: Meta, end: End) -> Arc<Session> {
        let (_, seen) = watch::channel(State::Ended(end));
        let (kill, _) = mpsc::channel(1);
        let session = Arc::new(Session::new(folder, meta, seen, kill, self.events.clone()));
        self.table()
            .sessions
            .insert(session.id().to_owned(), Arc::clone(&session));
        session
    }

    /// Recovers a command of an earlier node from its folder.
    pub(crate) async fn reattach(&self, spool: &Path) -> Result<Reattached, ToolError> {
        let unknown = || ToolError::UnknownProcess {
            id: crate::error::quote(&spool.to_string_lossy()),
        };
        let name = spool.file_name().and_then(|name| name.to_str()).ok_or_else(unknown)?;
        let known = self.table().sessions.get(name).cloned();
        if let Some(session) = known {
            return self.describe(session).await;
        }
        let folder = Folder::new(self.spool.join(name));
        let looked = folder.clone();
        match off(move || look(&looked)).await.ok_or_else(unknown)? {
            Found::Running(meta) => Ok(Reattached::Running(RunningCall {
                session: self.adopt(folder, meta, None, None),
            })),
            Found::Ended(meta, end) => self.describe(self.adopt_ended(folder, meta, end)).await,
            Found::NeverStarted => Ok(Reattached::NeverStarted),
            Found::Missing => Ok(Reattached::Lost {
                pid: 0,
                tail: String::new(),
                started_at: 0,
            }),
        }
    }

    async fn describe(&self, session: Arc<Session>) -> Result<Reattached, ToolError> {
        let Some(end) = session.end() else {
            return Ok(Reattached::Running(RunningCall { session }));
        };
        if end.exit.is_some() {
            return Ok(Reattached::Finished(session.result(&end).await?));
        }
        let tail = session.tail(limits::TAIL_CHARS).await.text;
        Ok(Reattached::Lost {
            pid: session.meta.pid,
            tail,
            started_at: session.meta.started_at,
        })
    }

    /// Recovers all commands of an earlier node. Reports the ends of background ones that were never reported.
    pub(crate) async fn recover(&self) -> Result<usize, ToolError> {
        let spool = self.spool.clone();
        let found = off(move || folders(&spool))
            .await
            .unwrap_or(Ok(Vec::new()))
            .map_err(|error| ToolError::io("read the spool", error))?;
        let mut running = 0;
        for (folder, found) in found {
            let name = folder
                .path()
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            if self.table().sessions.contains_key(&name) {
                continue;
            }
            match found {
                Found::Running(meta) => {
                    running += 1;
                    self.adopt(folder, meta, None, None);
                }
                Found::Ended(meta, end) => {
                    let is_owed = !folder.is_released();
                    let session = self.adopt_ended(folder, meta, end.clone());
                    if let (true, true, Some(events)) = (is_owed, session.is_background(), &self.events) {
                        let tail = session.tail(limits::TAIL_CHARS).await.text;
                        let _ = events
                            .send(report::end_event(&session.meta, &end, &session.refused().await, tail))
                            .await;
                    }
                }
                Found::NeverStarted | Found::Missing => {
                    off(move || folder.remove()).await;
                }
            }
        }
        Ok(running)
    }

    /// Ends the background command of a call, without waiting for its end. False: the call has none that runs.
    pub(crate) fn end_background(&self, call_id: &str) -> bool {
        let Ok(session) = self.get(&session_id(call_id)) else {
            return false;
        };
        if session.end().is_some() || !session.is_background() {
            return false;
        }
        tokio::spawn(async move { session.kill(KillReason::Killed).await });
        true
    }

    /// Marks that the command's result or end event is stored elsewhere. Ignored while the command runs.
    pub(crate) async fn release(&self, id: &str) -> Result<(), ToolError> {
        let session = self.get(id)?;
        if session.end().is_none() {
            return Ok(());
        }
        off(move || session.folder.release())
            .await
            .unwrap_or(Ok(()))
            .map_err(|error| ToolError::io("mark the command as released", error))
    }

    /// Removes commands whose retention time is over.
    pub(crate) async fn sweep(&self) {
        let all = self.list();
        let old = off(move || {
            let now = host::now_ms();
            all.into_iter()
                .filter(|session| is_old(session, now))
                .collect::<Vec<_>>()
        })
        .await
        .unwrap_or_default();
        for session in old {
            self.table().sessions.remove(session.id());
            off(move || session.folder.remove()).await;
        }
    }
}

fn is_old(session: &Session, now: u64) -> bool {
    let Some(end) = session.end() else { return false };
    is_over(now.saturating_sub(end.ended_at), session.folder.is_released())
}

/// Whether a command that ended this long ago is removed.
fn is_over(age_ms: u64, is_released: bool) -> bool {
    age_ms > retention_ms(is_released)
}

/// How long an ended command is kept.
fn retention_ms(is_released: bool) -> u64 {
    if is_released {
        limits::SESSION_RETENTION_MS
    } else {
        limits::SESSION_UNRELEASED_MS
    }
}

/// The ended command to remove first at the limit: a released one, else one that had time to be stored.
fn oldest_ended(table: &Table) -> Option<String> {
    let now = host::now_ms();
    let ended = table
        .sessions
        .values()
        .filter_map(|session| Some((session.end()?.ended_at, session)));
    ended
        .map(|(ended_at, session)| (!session.folder.is_released(), ended_at, session))
        .filter(|(owes, ended_at, _)| may_go(now.saturating_sub(*ended_at), *owes))
        .min_by_key(|(owes, ended_at, _)| (*owes, *ended_at))
        .map(|(_, _, session)| session.id().to_owned())
}

/// Whether an ended command may be removed at the limit. `owes`: its result was not stored yet.
fn may_go(age_ms: u64, owes: bool) -> bool {
    !owes || age_ms > limits::SESSION_EVICT_MS
}

fn look(folder: &Folder) -> Found {
    if !folder.path().is_dir() {
        return Found::Missing;
    }
    // Written before the gate can open.
    let Some(meta) = folder.meta() else {
        return Found::NeverStarted;
    };
    let ran = |end: End| {
        if end.exit == Some(Exit::NeverRan) {
            Found::NeverStarted
        } else {
            Found::Ended(meta.clone(), end)
        }
    };
    if folder.exit().is_none() && is_alive(&meta) {
        return Found::Running(meta);
    }
    // Read again: it may have ended between the two checks.
    ran(End::read(folder, &meta))
}

fn folders(spool: &Path) -> io::Result<Vec<(Folder, Found)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(spool)? {
        let folder = Folder::new(entry?.path());
        let state = look(&folder);
        found.push((folder, state));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p12_a_command_whose_result_is_stored_elsewhere_is_kept_for_less_time() {
        assert_eq!(retention_ms(true), limits::SESSION_RETENTION_MS);
        assert_eq!(retention_ms(false), limits::SESSION_UNRELEASED_MS);
        for is_released in [false, true] {
            let most = retention_ms(is_released);
            assert_eq!(
                (is_over(most, is_released), is_over(most + 1, is_released)),
                (false, true)
            );
        }
    }

    #[test]
    fn p12_at_the_limit_a_command_goes_when_its_result_is_stored_or_had_time_for_that() {
        let most = limits::SESSION_EVICT_MS;
        assert_eq!(
            [may_go(0, false), may_go(most, true), may_go(most + 1, true)],
            [true, false, true]
        );
    }
}
