//! Requests that wait while the gateway answers that it was asked too often: a client may send so many in a minute.

use std::time::Duration;

use gsv_protocol::errors;
use tokio::time::sleep;

use crate::exit::Outcome;

const PAUSE: Duration = Duration::from_secs(1);
/// More than the minute after which the gateway answers again.
const TRIES: u32 = 120;

pub async fn patiently<T, F: Future<Output = Outcome<T>>>(mut ask: impl FnMut() -> F) -> Outcome<T> {
    for _ in 1..TRIES {
        match ask().await {
            Err(failure) if failure.is(&errors::LIMIT_RATE) => sleep(PAUSE).await,
            done => return done,
        }
    }
    ask().await
}
