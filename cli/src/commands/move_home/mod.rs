//! `gsv deploy export` and `gsv deploy import`: pages of a home, from a gateway into a file and from the file into another gateway (rules
//! MV8, MV14, MV15). Reads no record: only gateways do.

mod export;
mod import;

pub use self::export::run as export;
pub use self::import::run as import;

use std::time::Duration;

use gsv_protocol::Method;

use super::rate_limit::retry_rate_limited;
use crate::client::Client;
use crate::exit::Outcome;
use crate::output::Output;

/// The gateway joins the pieces of a large file before it answers.
const PATIENCE: Duration = Duration::from_secs(600);

/// A home has more pages than a client may send requests in a minute (rule MV18).
async fn ask<M: Method>(out: Output, client: &Client, params: M::Params) -> Outcome<M::Result>
where
    M::Params: Clone,
{
    retry_rate_limited(out, || client.call_within::<M>(params.clone(), PATIENCE)).await
}
