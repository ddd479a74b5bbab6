//! Notices a gateway that no longer answers although its process lives: its own code blocks it.
//!
//! It counts failed requests in a row, never a difference of clock times: while this machine sleeps, or while the supervisor
//! itself is stopped, no request is made, so that time does not count. `/health` is cheap: after its first answer it neither
//! writes nor wakes a session.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::health::{self, Health, Unhealthy};

/// How often the supervisor asks, and how many failed requests in a row mean that the gateway is blocked.
#[derive(Debug, Clone, Copy)]
pub struct Watchdog {
    /// The time from one request to the next, and the time limit of a request.
    pub every: Duration,
    pub failures: u32,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(10),
            failures: 6,
        }
    }
}

impl Watchdog {
    /// Returns when the gateway has not answered for `patience()`.
    pub async fn until_silent(&self, port: u16) {
        let mut failures = 0;
        let mut asked = Instant::now();
        while failures < self.failures {
            sleep(self.every.saturating_sub(asked.elapsed())).await;
            asked = Instant::now();
            let answer = health::check(port, self.every).await;
            failures = self.count(failures, &answer, asked.elapsed());
        }
    }

    /// How long a gateway is silent before it counts as blocked.
    pub fn patience(&self) -> Duration {
        self.every * self.failures
    }

    /// The failed requests in a row after one more request, which took so long.
    fn count(&self, failures: u32, answer: &Result<Health, Unhealthy>, took: Duration) -> u32 {
        match answer {
            // Any answer shows that the gateway's code runs.
            Ok(_) | Err(Unhealthy::Wrong(_) | Unhealthy::Refused(_) | Unhealthy::NewerState(_)) => 0,
            // This process itself did not run, so the gateway had no time to answer or this process none to listen.
            Err(_) if took >= self.every * 2 => 0,
            Err(Unhealthy::Closed | Unhealthy::Silent) => failures + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_gateway_is_blocked_after_60_seconds_without_any_answer() {
        let watchdog = Watchdog::default();
        assert_eq!((watchdog.every, watchdog.patience()), (SECOND * 10, SECOND * 60));
        let silent = Err(Unhealthy::Silent);
        assert_eq!(watchdog.count(5, &silent, SECOND * 10), 6);
        assert_eq!(watchdog.count(0, &Err(Unhealthy::Closed), Duration::ZERO), 1);
        let wrong = Err(Unhealthy::Wrong("with status 500".into()));
        let well = Ok(Health {
            ok: true,
            version: None,
        });
        for answer in [wrong, well] {
            assert_eq!(watchdog.count(5, &answer, SECOND), 0, "{answer:?}");
        }
    }

    #[test]
    fn time_in_which_the_supervisor_was_stopped_does_not_count() {
        let silent = Err(Unhealthy::Silent);
        assert_eq!(Watchdog::default().count(5, &silent, SECOND * 3600), 0);
    }
}
