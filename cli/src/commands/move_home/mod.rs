//! `gsv deploy export` and `gsv deploy import`: pages of a home, from a gateway into a file and from the file into another gateway (rules
//! MV8, MV14, MV15). Reads no record: only gateways do.

mod export;
mod import;

pub use self::export::run as export;
pub use self::import::run as import;

use std::time::Duration;

use gsv_protocol::{Method, errors};
use tokio::time::sleep;

use crate::client::Client;
use crate::exit::Outcome;

/// The gateway joins the pieces of a large file before it answers.
const PATIENCE: Duration = Duration::from_secs(600);
/// A client may send so many requests a minute, and a home has more pages.
const PAUSE: Duration = Duration::from_secs(1);

/// A request that waits while this connection has sent too many.
async fn ask<M: Method>(client: &Client, params: M::Params) -> Outcome<M::Result>
where
    M::Params: Clone,
{
    loop {
        match client.call_within::<M>(params.clone(), PATIENCE).await {
            Err(failure) if failure.is(&errors::LIMIT_RATE) => sleep(PAUSE).await,
            done => return done,
        }
    }
}
