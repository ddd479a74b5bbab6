//! `GET /health` of a deployed gateway. A new address takes a moment to be known everywhere, so it is asked for a while.

use std::time::{Duration, Instant};

use gsv_link::Target;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST};
use tokio::time::sleep;

use super::http::exchange;
use crate::embedded::health::Health;
use crate::exit::Failure;

const WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(500);

/// The version that answers; else what answers, for a person.
pub async fn check(target: &Target) -> Result<String, String> {
    let request = Request::get(target.http_path("/health"))
        .header(HOST, target.authority())
        .header(ACCEPT, "application/json")
        .body(Full::new(Bytes::new()))
        .map_err(|error| error.to_string())?;
    let (status, body) = exchange(target, request, WITHIN).await?;
    if !status.is_success() {
        return Err(format!("it answers with status {}", status.as_u16()));
    }
    match serde_json::from_slice::<Health>(&body) {
        Ok(health) if health.ok => Ok(health.version.unwrap_or_default()),
        Ok(_) => Err("it answers that it is not well".to_owned()),
        Err(_) => Err("what answers is not a gateway".to_owned()),
    }
}

/// Waits until this version answers.
pub async fn until(target: &Target, version: &str, patience: Duration) -> Result<(), Failure> {
    let deadline = Instant::now() + patience;
    loop {
        let problem = match check(target).await {
            Ok(answered) if answered == version => return Ok(()),
            Ok(answered) => format!("version {answered} answers"),
            Err(problem) => problem,
        };
        if Instant::now() >= deadline {
            return Err(Failure::later(
                format!(
                    "Everything is deployed, but {} does not answer as version {version} yet: {problem}.",
                    target.http_url("")
                ),
                "Look again in a moment: `gsv deploy status`. The log: `gsv deploy logs`.",
            ));
        }
        sleep(POLL).await;
    }
}
