//! One HTTP request on a connection of its own. Knows neither Cloudflare nor the gateway, and never retries.

use std::time::Duration;

use gsv_link::Target;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
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
    let broken = |_| "the connection broke".to_owned();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|_| "the answer broke off".to_owned())?;
        Ok((status, body.to_bytes()))
    };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The connection ended, perhaps right after the answer.
        _ = connection => answer.await,
    }
}
