//! One HTTP request on a connection of its own, which ends with the answer. Knows no server, sets no time limit, and never retries.

use std::error::Error;

use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The stream carries no HTTP, and the request was not sent.
    #[error("{0}")]
    Opening(hyper::Error),
    /// The request was sent, at least in part.
    #[error("{0}")]
    Sent(hyper::Error),
}

/// An answer whose content is still on its way.
pub struct Answer {
    response: Response<Incoming>,
    /// Serves the connection; ends when the answer is dropped.
    _connection: JoinSet<()>,
}

/// Sends a request. Dropping the future or the answer closes the connection.
///
/// # Errors
/// [`Broken`] when the connection ended before the head of the answer, or carried something else.
pub async fn send<S, B>(stream: S, request: Request<B>) -> Result<Answer, Broken>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Broken::Opening)?;
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        // The request has the same error.
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(Broken::Sent)?;
    Ok(Answer {
        response,
        _connection: serving,
    })
}

impl Answer {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next part of the content; `None` at its end.
    ///
    /// # Errors
    /// Why the content broke off.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            match self.response.body_mut().frame().await? {
                Err(error) => return Some(Err(error.to_string())),
                Ok(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }

    /// The whole content.
    ///
    /// # Errors
    /// It broke off, or is larger than `max_bytes`.
    pub async fn whole(self, max_bytes: usize) -> Result<Bytes, String> {
        // The connection is served until the last byte.
        let Self { response, _connection } = self;
        let content = Limited::new(response.into_body(), max_bytes).collect().await;
        content.map(Collected::to_bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Empty;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    /// A server that has read the head of a request, and the client's end.
    async fn asked(answer: &[u8]) -> (DuplexStream, Result<Answer, Broken>) {
        let (client, mut server) = duplex(64 * 1024);
        let request = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
        let serve = async {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                server.read_buf(&mut head).await.unwrap();
            }
            server.write_all(answer).await.unwrap();
        };
        let (sent, ()) = tokio::join!(send(client, request), serve);
        (server, sent)
    }

    #[tokio::test]
    async fn an_answer_is_read_in_parts_or_as_a_whole_and_never_beyond_its_limit() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";
        let (_server, sent) = asked(answer).await;
        assert_eq!(sent.unwrap().whole(4).await.unwrap(), "abcd");
        let (_server, sent) = asked(answer).await;
        assert!(sent.unwrap().whole(3).await.is_err());
        let (_server, sent) = asked(answer).await;
        let mut parts = sent.unwrap();
        assert_eq!(parts.next().await.unwrap().unwrap(), "abcd");
        assert!(parts.next().await.is_none());
    }

    #[tokio::test]
    async fn what_is_no_http_is_named_so() {
        let (_server, sent) = asked(b"SSH-2.0-OpenSSH\r\n\r\n").await;
        assert!(matches!(sent, Err(Broken::Sent(error)) if error.is_parse()));
    }

    #[tokio::test]
    async fn a_dropped_answer_closes_its_connection() {
        let (mut server, sent) = asked(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
        drop(sent.unwrap());
        assert_eq!(server.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    }
}
