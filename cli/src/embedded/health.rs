//! `GET /health` of a gateway on this machine, over plain HTTP/1.1. Small on purpose: it must be quick, and it runs before
//! anything else does.

use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// No answer is that long.
const MAX_BYTES: u64 = 64 * 1024;
const POLL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Health {
    pub ok: bool,
    #[serde(default)]
    pub version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unhealthy {
    /// Nothing listens there.
    Closed,
    /// It did not answer in time.
    Silent,
    /// Something answers, but not a gateway that is well.
    Wrong(String),
}

impl std::fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("nothing listens there"),
            Self::Silent => f.write_str("it does not answer"),
            Self::Wrong(what) => write!(f, "it answers {what}"),
        }
    }
}

pub async fn check(port: u16, patience: Duration) -> Result<Health, Unhealthy> {
    timeout(patience, ask(port)).await.unwrap_or(Err(Unhealthy::Silent))
}

/// Asks until the answer is good. Ends only then: bound it from outside.
pub async fn until_ready(port: u16) -> Health {
    loop {
        match check(port, Duration::from_secs(10)).await {
            Ok(health) => return health,
            Err(_) => sleep(POLL).await,
        }
    }
}

async fn ask(port: u16) -> Result<Health, Unhealthy> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))
        .await
        .map_err(|_| Unhealthy::Closed)?;
    let request = format!(
        "GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    let broken = |_| Unhealthy::Wrong("nothing and hangs up".to_owned());
    socket.write_all(request.as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::new();
    socket.take(MAX_BYTES).read_to_end(&mut answer).await.map_err(broken)?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> Result<Health, Unhealthy> {
    let split = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = match split {
        Some(at) => (String::from_utf8_lossy(&answer[..at]).into_owned(), &answer[at + 4..]),
        None => return Err(Unhealthy::Wrong("something that is not HTTP".to_owned())),
    };
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let status = status
        .split_whitespace()
        .nth(1)
        .filter(|_| status.starts_with("HTTP/1."))
        .unwrap_or("something that is not HTTP");
    if status != "200" {
        return Err(Unhealthy::Wrong(crate::clean::one_line(
            &format!("with status {status}"),
            80,
        )));
    }
    let chunked = lines.any(|line| {
        line.split_once(':').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked")
        })
    });
    let body = if chunked { unchunk(body) } else { Some(body.to_vec()) };
    let health: Option<Health> = body.and_then(|body| serde_json::from_slice(&body).ok());
    match health {
        Some(health) if health.ok => Ok(health),
        Some(_) => Err(Unhealthy::Wrong("that it is not well".to_owned())),
        None => Err(Unhealthy::Wrong("something that is not a gateway's".to_owned())),
    }
}

fn unchunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(out);
        }
        body = body.get(end + 2..)?;
        out.extend_from_slice(body.get(..size)?);
        body = body.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_a_length_and_in_chunks() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n{\"ok\":true,\"version\":\"1.0\"}";
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"ok\"\r\n6\r\n:true}\r\n0\r\n\r\n";
        assert_eq!(
            parse(plain),
            Ok(Health {
                ok: true,
                version: Some("1.0".into())
            })
        );
        assert_eq!(
            parse(chunked),
            Ok(Health {
                ok: true,
                version: None
            })
        );
    }

    #[test]
    fn anything_else_is_not_a_gateway() {
        for wrong in [
            &b"SSH-2.0-OpenSSH\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n<html>",
            b"HTTP/1.1 200 OK\r\n\r\n{\"ok\":false}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"",
        ] {
            assert!(matches!(parse(wrong), Err(Unhealthy::Wrong(_))), "{wrong:?}");
        }
    }
}
