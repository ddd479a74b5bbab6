//! Live progress of calls: phases, and the output of a command. Best effort: no tool waits for it, nothing is stored, and
//! a slow gateway or link drops it; the result holds everything.

use std::sync::Arc;
use std::time::Duration;

use gsv_link::Link;
use gsv_protocol::methods::ToolProgress;
use gsv_protocol::types::{ToolPhase, ToolProgressParams};
use gsv_tools::Progress;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::scrub::{Scrub, incomplete_token};
use crate::tasks::Tasks;

const CHUNK_BYTES: usize = 16 * 1024;
const PERIOD: Duration = Duration::from_millis(100);
/// A call that ends sooner reports only its result: more frames would take the gateway longer than the call itself.
const QUIET: Duration = Duration::from_millis(50);
/// More phases than one call reports.
const PHASES: usize = 4;
const ANSWER_TIME: Duration = Duration::from_secs(5);
const WAITING: usize = 8;
const CUT: &str = "[...]\n";

/// Sends the progress of calls. Cheap to clone.
#[derive(Clone)]
pub struct ProgressFeed {
    pub link: Link,
    pub online: watch::Receiver<bool>,
    pub tasks: Arc<Tasks>,
    pub scrub: Scrub,
}

impl ProgressFeed {
    /// The phases of a call that begins.
    pub fn phases_of(&self, call_id: &str) -> Phases {
        let (feed, call_id) = (self.clone(), call_id.to_owned());
        Phases::new(move |phase, pid| feed.phase(&call_id, phase, pid))
    }

    /// Reports that a call was accepted or started.
    pub fn phase(&self, call_id: &str, phase: ToolPhase, pid: Option<u32>) {
        self.send(ToolProgressParams {
            call_id: call_id.into(),
            phase,
            chunk: None,
            pid,
        });
    }

    /// A sink for a tool's live output.
    pub fn output_of(&self, call_id: &str) -> mpsc::Sender<Progress> {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.tasks.spawn(pump(self.clone(), call_id.to_owned(), receiver));
        sender
    }

    fn send(&self, params: ToolProgressParams) -> Option<JoinHandle<()>> {
        if !*self.online.borrow() {
            return None;
        }
        let link = self.link.clone();
        Some(tokio::spawn(async move {
            // Never resent: the next report and the result replace it.
            let _ = link.call_once::<ToolProgress>(params, ANSWER_TIME).await;
        }))
    }
}

/// The phases of one call, which are reported until this is dropped.
pub struct Phases {
    pub reached: Reached,
    reports: JoinHandle<()>,
}

/// Tells that a call has come to a phase. Cheap to clone.
#[derive(Clone)]
pub struct Reached(mpsc::Sender<(ToolPhase, Option<u32>)>);

impl Phases {
    fn new(report: impl Fn(ToolPhase, Option<u32>) + Send + 'static) -> Self {
        let (reached, mut next) = mpsc::channel(PHASES);
        let reports = tokio::spawn(async move {
            tokio::time::sleep(QUIET).await;
            while let Some((phase, pid)) = next.recv().await {
                report(phase, pid);
            }
        });
        Self {
            reached: Reached(reached),
            reports,
        }
    }
}

impl Reached {
    pub fn phase(&self, phase: ToolPhase, pid: Option<u32>) {
        let _ = self.0.try_send((phase, pid));
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        self.reports.abort();
    }
}

async fn pump(feed: ProgressFeed, call_id: String, mut receiver: mpsc::Receiver<Progress>) {
    let mut waiting = Waiting::default();
    let mut sent: Option<JoinHandle<()>> = None;
    // The first output is sent after the phases: they wait as long and began earlier, and the runtime has one thread.
    let mut period = tokio::time::interval_at(Instant::now() + QUIET, PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_free = sent.as_ref().is_none_or(JoinHandle::is_finished);
        tokio::select! {
            news = receiver.recv() => match news {
                Some(news) => waiting.add(&news.chunk),
                None => break,
            },
            _ = period.tick(), if waiting.is_ready() => {
                if is_free {
                    sent = feed.send(ToolProgressParams {
                        call_id: call_id.as_str().into(),
                        phase: ToolPhase::Output,
                        chunk: Some(feed.scrub.text(&waiting.take()).into_owned()),
                        pid: None,
                    });
                }
            }
        }
    }
}

/// The latest output that was not sent yet.
#[derive(Debug, Default)]
struct Waiting {
    text: String,
    was_cut: bool,
}

impl Waiting {
    /// Whether there is text besides the start of a token.
    fn is_ready(&self) -> bool {
        incomplete_token(&self.text) > 0
    }

    fn add(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        let room = CHUNK_BYTES - CUT.len();
        if self.text.len() > room {
            let mut from = self.text.len() - room;
            while !self.text.is_char_boundary(from) {
                from += 1;
            }
            self.text.drain(..from);
            self.was_cut = true;
        }
    }

    /// The text up to the start of a token whose rest has not arrived.
    fn take(&mut self) -> String {
        let rest = self.text.split_off(incomplete_token(&self.text));
        let text = std::mem::replace(&mut self.text, rest);
        if std::mem::take(&mut self.was_cut) {
            format!("{CUT}{text}")
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn p6_2_the_phases_of_a_short_call_are_not_reported() {
        let (told, mut reports) = mpsc::unbounded_channel();
        let begin = |told: mpsc::UnboundedSender<(ToolPhase, Option<u32>)>| {
            let phases = Phases::new(move |phase, pid| told.send((phase, pid)).unwrap());
            phases.reached.phase(ToolPhase::Accepted, None);
            phases
        };
        let short = begin(told.clone());
        tokio::time::sleep(QUIET / 2).await;
        drop(short);
        tokio::time::sleep(QUIET).await;
        assert!(reports.is_empty());
        let long = begin(told);
        assert_eq!(reports.recv().await, Some((ToolPhase::Accepted, None)));
        // A later phase does not wait.
        let reached = Instant::now();
        long.reached.phase(ToolPhase::Started, Some(7));
        assert_eq!(reports.recv().await, Some((ToolPhase::Started, Some(7))));
        assert_eq!(reached.elapsed(), Duration::ZERO);
        drop(long);
        assert_eq!(reports.recv().await, None);
    }

    #[test]
    fn a_flood_of_output_is_cut_visibly_to_its_newest_part() {
        let mut waiting = Waiting::default();
        waiting.add("first ");
        waiting.add("second");
        assert_eq!(waiting.take(), "first second");
        assert!(!waiting.is_ready());
        waiting.add("key gsv_admin_3f2a9c_0011");
        assert_eq!(waiting.take(), "key ");
        waiting.add("2233445566778899 next");
        assert_eq!(waiting.take(), "gsv_admin_3f2a9c_00112233445566778899 next");
        for _ in 0..10_000 {
            waiting.add("größer ");
        }
        let text = waiting.take();
        assert!(text.len() <= CHUNK_BYTES && text.starts_with(CUT) && text.ends_with("größer "));
    }

    #[test]
    fn output_that_just_fits_is_not_cut() {
        let most = format!("{} ", "x".repeat(CHUNK_BYTES - CUT.len() - 1));
        let mut waiting = Waiting::default();
        waiting.add(&most);
        assert_eq!(waiting.take(), most);
        waiting.add(&most);
        waiting.add("y ");
        assert_eq!(waiting.take(), format!("{CUT}{}y ", &most[2..]));
    }
}
