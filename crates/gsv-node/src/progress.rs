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
use tokio::time::MissedTickBehavior;

use crate::scrub::{Scrub, incomplete_token};
use crate::tasks::Tasks;

const CHUNK_BYTES: usize = 16 * 1024;
const PERIOD: Duration = Duration::from_millis(100);
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

async fn pump(feed: ProgressFeed, call_id: String, mut receiver: mpsc::Receiver<Progress>) {
    let mut waiting = Waiting::default();
    let mut sent: Option<JoinHandle<()>> = None;
    let mut period = tokio::time::interval(PERIOD);
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
