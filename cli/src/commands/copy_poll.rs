//! When `gsv cp` asks the gateway again how far a transfer is, and how long it goes on without an answer.

use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};

/// Short at first, because most files are small.
const FIRST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_millis(500);
/// A gateway that is started again in this time is waited for.
const RECONNECT_WITHIN: Duration = Duration::from_secs(120);

pub struct Poll {
    wait: Duration,
    answered_at: Instant,
}

impl Poll {
    pub fn new() -> Self {
        Self {
            wait: FIRST,
            answered_at: Instant::now(),
        }
    }

    /// The time until the next question.
    pub fn wait(&mut self) -> Duration {
        let wait = self.wait;
        self.wait = (wait * 2).min(MOST);
        wait
    }

    pub fn answered(&mut self) {
        self.answered_at = Instant::now();
    }

    /// Whether the gateway may be back soon: the transfer needs no answer to go on.
    pub fn goes_on_after(&self, failure: &Failure) -> bool {
        failure.exit == Exit::TryLater && self.answered_at.elapsed() < RECONNECT_WITHIN
    }
}
