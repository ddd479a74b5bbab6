//! `GET /health` of a gateway on this machine. Never retries a single check; `until_ready` polls.

use std::time::Duration;

use gsv_link::http::{self, Broken};
use gsv_protocol::errors;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST};
use hyper::{Request, StatusCode};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const MAX_ANSWER_BYTES: usize = 64 * 1024;
const POLL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Health {
    pub ok: bool,
    #[serde(default)]
    pub version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unhealthy {
    /// No program listens on the port.
    Closed,
    /// There was no answer in time.
    Silent,
    /// A program answers, but it is not a healthy gateway.
    Wrong(String),
    /// The gateway answers with a problem of its own, in a sentence.
    Refused(String),
    /// A newer version has written the state, in a sentence.
    NewerState(String),
}

/// The contract's reason of `Unhealthy::NewerState`.
pub const NEWER_STATE: &str = errors::STORAGE_NEWER_VERSION.reason;

/// The part of a problem document (RFC 9457) that is shown.
#[derive(Deserialize)]
struct Problem {
    title: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    detail: Option<String>,
}

impl std::fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("nothing listens there"),
            Self::Silent => f.write_str("it does not answer"),
            Self::Wrong(what) => write!(f, "it answers {what}"),
            Self::Refused(why) | Self::NewerState(why) => f.write_str(why),
        }
    }
}

pub async fn check(port: u16, patience: Duration) -> Result<Health, Unhealthy> {
    timeout(patience, ask(port, "/health"))
        .await
        .unwrap_or(Err(Unhealthy::Silent))
}

/// Polls until the gateway is healthy, which with `opens_state` opens its tables and those of its bucket. The error is the sentence of state
/// that a newer version has written. The caller sets the time limit. Earlier versions answer as to any check.
pub async fn until_ready(port: u16, opens_state: bool) -> Result<Health, String> {
    let path = if opens_state { "/health?start" } else { "/health" };
    loop {
        let answer = timeout(Duration::from_secs(10), ask(port, path)).await;
        match answer.unwrap_or(Err(Unhealthy::Silent)) {
            Ok(health) => return Ok(health),
            Err(Unhealthy::NewerState(why)) => return Err(why),
            Err(_) => sleep(POLL).await,
        }
    }
}

/// Asks whether the gateway can use its state, on which it is the first of its version. The caller sets the time limit. Earlier versions
/// answer as to any check.
pub async fn check_state(port: u16) -> Result<(), Unhealthy> {
    ask(port, "/health?state").await.map(|_| ())
}

async fn ask(port: u16, path: &str) -> Result<Health, Unhealthy> {
    let wrong = |what: &str| Unhealthy::Wrong(what.to_owned());
    let socket = TcpStream::connect(("127.0.0.1", port))
        .await
        .map_err(|_| Unhealthy::Closed)?;
    let request = Request::get(path)
        .header(HOST, format!("127.0.0.1:{port}"))
        .header(ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| Unhealthy::Wrong(error.to_string()))?;
    let answer = http::send(socket, request).await.map_err(|broken| match broken {
        Broken::Opening(error) | Broken::Sent(error) if error.is_parse() => wrong("something that is not HTTP"),
        Broken::Opening(_) | Broken::Sent(_) => wrong("nothing and hangs up"),
    })?;
    let status = answer.status();
    let body = answer.whole(MAX_ANSWER_BYTES).await.ok();
    if status != StatusCode::OK {
        let problem = body.and_then(|body| serde_json::from_slice::<Problem>(&body).ok());
        return Err(match problem {
            Some(Problem { title, reason, detail }) => {
                let why = detail.unwrap_or(title);
                if reason.as_deref() == Some(NEWER_STATE) {
                    Unhealthy::NewerState(why)
                } else {
                    Unhealthy::Refused(why)
                }
            }
            None => wrong(&format!("with status {}", status.as_u16())),
        });
    }
    let health = body.and_then(|body| serde_json::from_slice::<Health>(&body).ok());
    match health {
        Some(health) if health.ok => Ok(health),
        Some(_) => Err(wrong("that it is not well")),
        None => Err(wrong("something that is not a gateway's")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    /// Checks a server that gives this one answer and hangs up.
    async fn answered(answer: &[u8]) -> Result<Health, Unhealthy> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                socket.read_buf(&mut request).await.unwrap();
            }
            socket.write_all(answer).await.unwrap();
        };
        tokio::join!(check(port, Duration::from_secs(10)), serve).0
    }

    #[tokio::test]
    async fn answers_are_read_with_a_length_and_in_chunks() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"ok\":true,\"version\":\"1.0\"}  ";
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"ok\"\r\n6\r\n:true}\r\n0\r\n\r\n";
        for (answer, version) in [(&plain[..], Some("1.0")), (chunked, None)] {
            let health = answered(answer).await.unwrap();
            assert_eq!((health.ok, health.version.as_deref()), (true, version));
        }
    }

    #[tokio::test]
    async fn any_other_answer_is_not_a_gateway() {
        for (wrong, says) in [
            (&b"SSH-2.0-OpenSSH\r\n\r\n"[..], "not HTTP"),
            (b"HTTP/1.1 404 Not Found\r\n\r\n", "status 404"),
            (b"HTTP/1.1 200 OK\r\n\r\n<html>", "not a gateway's"),
            (b"HTTP/1.1 200 OK\r\n\r\n{\"ok\":false}", "not well"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "not a gateway's",
            ),
            (b"", "hangs up"),
        ] {
            let error = answered(wrong).await.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[tokio::test]
    async fn p22_state_of_a_newer_version_is_told_from_other_problems() {
        let problem = |reason: &str| {
            let body = format!(r#"{{"title":"A title.","reason":"{reason}","detail":"A sentence."}}"#);
            let length = body.len();
            format!("HTTP/1.1 503 Service Unavailable\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let sentence = || "A sentence.".to_owned();
        for (reason, unhealthy) in [
            (NEWER_STATE, Unhealthy::NewerState(sentence())),
            ("internal", Unhealthy::Refused(sentence())),
        ] {
            assert_eq!(answered(problem(reason).as_bytes()).await, Err(unhealthy));
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_told_from_a_silent_program() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(check(port, Duration::from_millis(1)).await, Err(Unhealthy::Silent));
        // Bound and not listening, so that no other program gets the port.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = closed.local_addr().unwrap().port();
        assert_eq!(check(port, Duration::from_secs(10)).await, Err(Unhealthy::Closed));
    }
}
