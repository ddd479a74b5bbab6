//! One HTTP request on a connection of its own. Knows neither Cloudflare nor the gateway, and never retries.

use std::time::Duration;

use gsv_link::Target;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(20);
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// The answer, or why there is none, for a person.
pub async fn exchange(
    target: &Target,
    request: Request<Full<Bytes>>,
    within: Duration,
) -> Result<(StatusCode, Bytes), String> {
    timeout(within, ask(target, request))
        .await
        .unwrap_or_else(|_| Err(format!("there was no answer within {} s", within.as_secs())))
}

async fn ask(target: &Target, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String> {
    let stream = gsv_link::open_bytes(target, CONNECT).await?;
    let answer = gsv_link::http::send(stream, request).await;
    let answer = answer.map_err(|_| "the connection broke".to_owned())?;
    let status = answer.status();
    let body = answer.whole(MAX_ANSWER_BYTES).await;
    Ok((status, body.map_err(|_| "the answer broke off".to_owned())?))
}
