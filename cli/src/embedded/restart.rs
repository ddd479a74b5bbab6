//! When to start workerd again after it died, and when to give up. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// So many deaths within the window are no accident.
const MOST_CRASHES: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    RetryIn(Duration),
    GiveUp,
}

#[derive(Debug, Default)]
pub struct RestartPolicy {
    crashes: VecDeque<Duration>,
}

impl RestartPolicy {
    /// `now` is any clock that only goes forward.
    pub fn crashed(&mut self, now: Duration) -> Verdict {
        while self
            .crashes
            .front()
            .is_some_and(|then| now.saturating_sub(*then) >= WINDOW)
        {
            self.crashes.pop_front();
        }
        self.crashes.push_back(now);
        if self.crashes.len() >= MOST_CRASHES {
            return Verdict::GiveUp;
        }
        let doublings = u32::try_from(self.crashes.len() - 1).unwrap_or(u32::MAX);
        Verdict::RetryIn(
            FIRST_DELAY
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(LONGEST_DELAY),
        )
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
        while let Verdict::RetryIn(delay) = policy.crashed(now) {
            delays.push(delay.as_millis());
            now += delay;
        }
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
        assert!(now < WINDOW);
    }

    #[test]
    fn a_crash_now_and_then_is_always_mended_at_once() {
        let mut policy = RestartPolicy::default();
        for crash in 0..100 {
            assert_eq!(policy.crashed(WINDOW * crash), Verdict::RetryIn(FIRST_DELAY));
        }
    }
}
