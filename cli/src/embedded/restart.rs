//! Decides when to restart workerd after a crash, and when to give up. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// A gateway that was ready works, so it is restarted sooner.
const LONGEST_DELAY_AFTER_READY: Duration = Duration::from_secs(1);
/// So many crashes within the window, none of them after the gateway was ready, end the restarts.
pub const MOST_CRASHES: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    RetryIn(Duration),
    GiveUp,
}

#[derive(Debug, Default)]
pub struct RestartPolicy {
    crashes: VecDeque<Duration>,
    /// Crashes since the gateway was ready the last time.
    in_a_row: usize,
}

impl RestartPolicy {
    /// `now` is any clock that only goes forward.
    pub fn crashed(&mut self, now: Duration, was_ready: bool) -> Verdict {
        while self
            .crashes
            .front()
            .is_some_and(|then| now.saturating_sub(*then) >= WINDOW)
        {
            self.crashes.pop_front();
        }
        self.crashes.push_back(now);
        self.in_a_row = if was_ready { 0 } else { self.in_a_row + 1 };
        if self.crashes.len().min(self.in_a_row) >= MOST_CRASHES {
            return Verdict::GiveUp;
        }
        // No delay depends on more crashes than these.
        if self.crashes.len() > MOST_CRASHES {
            self.crashes.pop_front();
        }
        let longest = if was_ready {
            LONGEST_DELAY_AFTER_READY
        } else {
            LONGEST_DELAY
        };
        let before = u32::try_from(self.crashes.len() - 1).unwrap_or(u32::MAX);
        let doublings = match (before, was_ready) {
            // Runs wait for the gateway, and one crash is no series.
            (0, true) => return Verdict::RetryIn(Duration::ZERO),
            (_, true) => before - 1,
            (_, false) => before,
        };
        Verdict::RetryIn(FIRST_DELAY.saturating_mul(2_u32.saturating_pow(doublings)).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_a_limit_and_the_tenth_crash_is_the_last() {
        let mut policy = RestartPolicy::default();
        let mut now = Duration::ZERO;
        let mut delays = Vec::new();
        while let Verdict::RetryIn(delay) = policy.crashed(now, false) {
            delays.push(delay.as_millis());
            now += delay;
        }
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
        assert!(now < WINDOW);
    }

    #[test]
    fn p12_a_gateway_that_worked_is_restarted_however_often_it_is_killed() {
        let mut policy = RestartPolicy::default();
        for kill in 0..1_000 {
            let verdict = policy.crashed(Duration::from_secs(kill), true);
            assert!(
                matches!(verdict, Verdict::RetryIn(delay) if delay <= LONGEST_DELAY_AFTER_READY),
                "{kill}: {verdict:?}"
            );
        }
        // Once it no longer becomes ready, the usual number of crashes is enough.
        let mut restarts = 0;
        while policy.crashed(Duration::from_secs(1_000), false) != Verdict::GiveUp {
            restarts += 1;
        }
        assert_eq!(restarts, MOST_CRASHES - 1);
    }

    #[test]
    fn p12_after_a_crash_that_is_the_first_for_a_while_a_gateway_that_worked_is_restarted_at_once() {
        let mut policy = RestartPolicy::default();
        for crash in 0..100 {
            assert_eq!(policy.crashed(WINDOW * crash, true), Verdict::RetryIn(Duration::ZERO));
        }
        let mut delay = |second| match policy.crashed(WINDOW * 99 + Duration::from_secs(second), true) {
            Verdict::RetryIn(delay) => delay.as_millis(),
            Verdict::GiveUp => u128::MAX,
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(&mut delay), [100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn rare_crashes_before_the_gateway_was_ready_get_the_shortest_delay() {
        let mut policy = RestartPolicy::default();
        for crash in 0..100 {
            assert_eq!(policy.crashed(WINDOW * crash, false), Verdict::RetryIn(FIRST_DELAY));
        }
    }
}
