//! Requests that are sent again while the gateway refuses them because its client sends too many in a minute.

use std::time::Duration;

use gsv_protocol::errors;
use tokio::time::sleep;

use crate::exit::Outcome;
use crate::output::Output;

const PAUSE: Duration = Duration::from_secs(1);
/// Longer than the minute after which the gateway answers again.
const TRIES: u32 = 120;
/// A wait of fewer pauses is not told.
const TOLD_AFTER: u32 = 3;

pub async fn retry_rate_limited<T, F: Future<Output = Outcome<T>>>(out: Output, ask: impl FnMut() -> F) -> Outcome<T> {
    let tell = || out.aside("waiting: the gateway limits how many requests a client may send in a minute");
    retry(PAUSE, ask, tell).await
}

async fn retry<T, F: Future<Output = Outcome<T>>>(
    pause: Duration,
    mut ask: impl FnMut() -> F,
    mut tell: impl FnMut(),
) -> Outcome<T> {
    for refusals in 1..TRIES {
        match ask().await {
            Err(failure) if failure.is(&errors::LIMIT_RATE) => {}
            done => return done,
        }
        if refusals == TOLD_AFTER {
            tell();
        }
        sleep(pause).await;
    }
    ask().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Failure;

    fn refused() -> Failure {
        Failure::from_reason(errors::LIMIT_RATE.reason, "Too many requests.", true)
    }

    /// The result of requests of which this many are refused, how many were sent, and how often the wait was told.
    async fn after(refusals: u32) -> (Outcome<&'static str>, u32, u32) {
        let (mut sent, mut told) = (0, 0);
        let ask = || {
            sent += 1;
            let answer = if sent > refusals { Ok("done") } else { Err(refused()) };
            std::future::ready(answer)
        };
        let done = retry(Duration::ZERO, ask, || told += 1).await;
        (done, sent, told)
    }

    #[tokio::test]
    async fn mv18_a_request_at_the_rate_limit_is_sent_again_up_to_its_last_try() {
        let (done, sent, _) = after(TRIES - 1).await;
        assert_eq!((done.unwrap(), sent), ("done", TRIES));
        let (done, sent, _) = after(TRIES).await;
        assert!(done.unwrap_err().is(&errors::LIMIT_RATE));
        assert_eq!(sent, TRIES, "it ends");
    }

    #[tokio::test]
    async fn mv18_a_wait_of_some_seconds_is_told_once() {
        for (refusals, times) in [(0, 0), (TOLD_AFTER - 1, 0), (TOLD_AFTER, 1), (TOLD_AFTER + 20, 1)] {
            assert_eq!(after(refusals).await.2, times, "{refusals}");
        }
    }

    #[tokio::test]
    async fn mv18_other_failures_are_not_retried() {
        let mut sent = 0;
        let ask = || {
            sent += 1;
            std::future::ready(Err::<(), _>(Failure::failed("No.", "Stop.")))
        };
        assert_eq!(retry(Duration::ZERO, ask, || {}).await.unwrap_err().message, "No.");
        assert_eq!(sent, 1);
    }
}
