//! Moves the bytes of one connection between a command and a server, and answers what is refused.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep_until, timeout};

use super::PATIENCE;
use super::head::{HEAD_BYTES, Refusal};

/// A connection without a byte in either direction ends.
const IDLE: Duration = Duration::from_secs(600);

pub(super) fn too_long() -> Refusal {
    Refusal {
        status: 431,
        reason: "The head of the request is too long.".into(),
    }
}

/// The head, and what follows it. `None`: it is too long.
pub(super) async fn whole_head(stream: &mut UnixStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    loop {
        let known = head.len();
        // The buffer has a bound, so that what a program sends is read up to there and no further.
        let space = u64::try_from(HEAD_BYTES - known).unwrap_or_default();
        if space == 0 {
            return Ok(None);
        }
        if (&mut *stream).take(space).read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The end of the head may have begun in what was read before.
        let from = known.saturating_sub(3);
        let end = head
            .get(from..)
            .and_then(|new| new.windows(4).position(|part| part == b"\r\n\r\n"));
        if let Some(at) = end {
            let rest = head.split_off(from + at + 4);
            return Ok(Some((head, rest)));
        }
    }
}

pub(super) async fn answer(mut inside: UnixStream, refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, reason } = refusal;
    let text = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\nX-GSV-Reason: {reason}\r\n\r\nGSV: {reason}\n",
        if *status == 403 { "Forbidden" } else { "Not passed on" },
        reason.len() + 6,
    );
    timeout(PATIENCE, inside.write_all(text.as_bytes())).await??;
    inside.shutdown().await?;
    // A connection with unread bytes would be reset, and the answer lost.
    let mut rest = tokio::io::sink();
    let _ = timeout(
        Duration::from_secs(2),
        tokio::io::copy(&mut inside.take(1 << 20), &mut rest),
    )
    .await;
    Ok(())
}

pub(super) async fn tunnel(inside: UnixStream, mut outside: TcpStream, rest: &[u8]) -> io::Result<()> {
    let idle = Idle::new();
    idle.bounded(outside.write_all(rest)).await?;
    let (from_inside, to_inside) = inside.into_split();
    let (from_outside, to_outside) = outside.into_split();
    tokio::try_join!(idle.copy(from_inside, to_outside), idle.copy(from_outside, to_inside))?;
    Ok(())
}

/// Sends exactly one request. What follows its body is not read.
pub(super) async fn exchange(
    inside: UnixStream,
    mut outside: TcpStream,
    head: &[u8],
    rest: &[u8],
    body: u64,
) -> io::Result<()> {
    let idle = Idle::new();
    idle.bounded(outside.write_all(head)).await?;
    let first = usize::try_from(body).unwrap_or(usize::MAX).min(rest.len());
    let first = rest.get(..first).unwrap_or_default();
    idle.bounded(outside.write_all(first)).await?;
    let left = body.saturating_sub(u64::try_from(first.len()).unwrap_or(u64::MAX));
    let (from_inside, to_inside) = inside.into_split();
    let (from_outside, to_outside) = outside.into_split();
    let (mut body, mut to_outside) = (from_inside.take(left), to_outside);
    let send = async {
        // Its server may have answered already; the half that sends stays open until the answer has ended.
        let _ = idle.copy_only(&mut body, &mut to_outside).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = idle.copy(from_outside, to_inside) => answered,
        () = send => Ok(()),
    }
}

/// The time of the last byte of a connection.
struct Idle(Mutex<Instant>);

impl Idle {
    fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails when neither this work nor another one of the connection has moved a byte for too long.
    async fn bounded<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(work);
        loop {
            let until = *self.last() + IDLE;
            tokio::select! {
                done = &mut work => {
                    *self.last() = Instant::now();
                    return done;
                }
                () = sleep_until(until) => {
                    if *self.last() + IDLE <= Instant::now() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
            }
        }
    }

    async fn copy_only(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = self.bounded(from.read(&mut buffer)).await?;
            if count == 0 {
                return Ok(());
            }
            self.bounded(to.write_all(buffer.get(..count).unwrap_or_default()))
                .await?;
        }
    }

    /// With the end.
    async fn copy(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        self.copy_only(&mut from, &mut to).await?;
        to.shutdown().await
    }
}
