//! Watches one command until it ends: its deadline, requests to end it, the size of its output. One task per command.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval, sleep, sleep_until, timeout, timeout_at};

use super::meta::{EXIT, Ending, Meta, OUTPUT};
use super::output::{Trimmed, trim};
use super::proxy::Proxy;
use super::session::{Session, off};
use super::state::{End, State};
use super::tree::Tree;
use super::{host, report};
use crate::limits;

pub(super) struct Watch {
    pub(super) session: Arc<Session>,
    /// The supervisor, when this node started it.
    pub(super) child: Option<Child>,
    /// Its way to the network, when this node started it.
    pub(super) proxy: Option<Proxy>,
    pub(super) state: watch::Sender<State>,
    pub(super) kills: mpsc::Receiver<Ending>,
}

impl Watch {
    pub(super) async fn run(mut self) {
        let is_ours = self.child.is_some();
        let meta = &self.session.meta;
        let left = meta
            .timeout_ms
            .saturating_sub(host::uptime_ms().saturating_sub(meta.started_uptime_ms));
        let deadline = sleep_until(Instant::now() + Duration::from_millis(left));
        tokio::pin!(deadline);
        let mut is_late = false;
        let mut look = interval(limits::SPOOL_POLL * 2);
        loop {
            let why = tokio::select! {
                biased;
                () = exited(&mut self.child, &self.session) => break,
                () = &mut deadline, if !is_late => {
                    is_late = true;
                    Ending::Timeout
                }
                Some(why) = self.kills.recv() => why,
                _ = look.tick() => {
                    let output = self.session.folder.file(OUTPUT);
                    match off(move || trim(&output)).await {
                        Some(Ok(Trimmed::Flood)) => Ending::Flood,
                        _ => continue,
                    }
                }
            };
            if self.end_tree(why).await {
                break;
            }
            self.state.send_replace(State::Stuck);
        }
        drop(self.proxy.take());
        let (folder, meta) = (self.session.folder.clone(), self.session.meta.clone());
        let Some(mut end) = off(move || End::read(&folder, &meta)).await else {
            return;
        };
        let since = host::uptime_ms().saturating_sub(self.session.meta.started_uptime_ms);
        end.duration_ms = duration_ms(is_ours, since, &end);
        let is_background = self.session.mark_ended();
        self.state.send_replace(State::Ended(end.clone()));
        if let (true, Some(events)) = (is_background, &self.session.events) {
            let tail = self.session.tail(limits::TAIL_CHARS).await.text;
            // On an error the receiver is gone: the folder stays unreleased, so the next node reports it.
            let _ = events
                .send(report::end_event(
                    &self.session.meta,
                    &end,
                    &self.session.refused().await,
                    tail,
                ))
                .await;
        }
    }

    /// TERM to all processes of the command, then KILL after the grace period. Returns when all of them have ended; false when
    /// one still runs after the time for that.
    async fn end_tree(&mut self, why: Ending) -> bool {
        let pgid = self.session.meta.pgid;
        let (folder, meta) = (self.session.folder.clone(), self.session.meta.clone());
        let tree = off(move || {
            if folder.ending().is_none() && folder.exit().is_none() {
                folder.write_ending(why);
            }
            let mut tree = Tree::of(&folder, &meta);
            tree.signal(Signal::TERM);
            host::signal_group(pgid, Signal::TERM);
            tree
        })
        .await;
        let gone = async {
            while host::group_exists(pgid) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let is_stubborn = timeout(limits::KILL_GRACE, gone).await.is_err();
        let until = Instant::now() + limits::KILL_TIME;
        let killed = off(move || {
            let mut tree = tree?;
            let is_over = tree.end(until.into_std());
            if is_stubborn {
                host::signal_group(pgid, Signal::KILL);
            }
            tree.wake_supervisor();
            Some(is_over)
        });
        let is_over = killed.await.flatten() == Some(true);
        timeout_at(until, exited(&mut self.child, &self.session)).await.is_ok() && is_over
    }
}

/// `is_ours`: this node has seen the start and the end, so the clock that never jumps tells; `since`: the time on it from the start on.
fn duration_ms(is_ours: bool, since: u64, end: &End) -> u64 {
    if is_ours { since } else { end.duration_ms }
}

/// Waits until the exit is written, or both processes are gone. May be dropped and called again.
async fn exited(child: &mut Option<Child>, session: &Arc<Session>) {
    if let Some(running) = child {
        // An error means that the child was reaped elsewhere; the checks below find its end.
        let _ = running.wait().await;
        *child = None;
    }
    loop {
        let session = Arc::clone(session);
        if off(move || is_over(&session)).await != Some(false) {
            return;
        }
        sleep(limits::SPOOL_POLL).await;
    }
}

fn is_over(session: &Session) -> bool {
    session.folder.file(EXIT).exists() || !is_alive(&session.meta)
}

/// Whether the command or its supervisor still runs, and not a later process with the same pid.
pub(super) fn is_alive(meta: &Meta) -> bool {
    meta.boot_id == host::boot_id()
        && [
            (meta.supervisor_pid, &meta.supervisor_start_time),
            (meta.pid, &meta.start_time),
        ]
        .into_iter()
        .any(|(pid, start)| host::start_time(pid).as_ref() == Some(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_2_the_time_that_a_command_took_is_measured_by_the_node_that_has_seen_all_of_it() {
        let end = End {
            exit: None,
            ending: None,
            ended_at: 1_000,
            duration_ms: 700,
        };
        assert_eq!(duration_ms(true, 500, &end), 500);
        assert_eq!(duration_ms(false, 90_000, &end), 700, "the node was down when it ended");
    }
}
