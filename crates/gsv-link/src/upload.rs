//! `POST /media`: uploads a file to the gateway, with the link's address and token. Streams it, so that a file is never whole
//! in memory. Never retries.

use std::fmt::Write as _;
use std::io::Read;
use std::time::Duration;

use futures_util::stream;
use gsv_protocol::types::MediaUploaded;
use http_body_util::StreamBody;
use hyper::Request;
use hyper::body::{Bytes, Frame};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};

use crate::error::LinkError;
use crate::net::exchange::Kind;
use crate::net::target::Target;

const UPLOAD: Kind = Kind {
    method: "POST /media",
    noun: "upload",
    acts: false,
};
const CHUNK: usize = 64 * 1024;

/// One upload.
pub struct Upload<'a> {
    pub url: &'a str,
    pub token: Option<&'a str>,
    /// `sessionKey` or `callId`, and the other fields of the contract.
    pub query: &'a [(&'a str, &'a str)],
    pub content_type: &'a str,
    pub size: u64,
    /// At least `size` bytes; bytes beyond `size` are not sent.
    pub source: Box<dyn Read + Send + Sync>,
    /// Called with the number of bytes that were sent so far.
    pub progress: Box<dyn FnMut(u64) + Send + Sync>,
    /// The time for the whole upload.
    pub within: Duration,
}

impl Upload<'_> {
    /// # Errors
    /// [`LinkError::Remote`] with the gateway's reason when it refuses the file; others when it can't be reached or understood.
    pub async fn send(self) -> Result<MediaUploaded, LinkError> {
        let (target, within) = (Target::parse(self.url)?, self.within);
        UPLOAD.exchange(&target, self.request(&target)?, within).await
    }

    fn request(self, target: &Target) -> Result<Request<Body>, LinkError> {
        let mut builder = Request::post(format!("{}?{}", target.media_path(), query(self.query)))
            .header(HOST, target.authority())
            .header(USER_AGENT, concat!("gsv/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, self.content_type)
            .header(CONTENT_LENGTH, self.size);
        if let Some(token) = self.token {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        builder
            .body(body(self.source, self.size, self.progress))
            .map_err(|error| UPLOAD.bad_request(&error))
    }
}

type Chunk = Result<Frame<Bytes>, std::io::Error>;
type Body = StreamBody<std::pin::Pin<Box<dyn futures_util::Stream<Item = Chunk> + Send + Sync>>>;

fn body(source: Box<dyn Read + Send + Sync>, size: u64, progress: Box<dyn FnMut(u64) + Send + Sync>) -> Body {
    let source = source.take(size);
    let chunks = stream::unfold(
        (source, progress, 0u64),
        |(mut source, mut progress, sent)| async move {
            let mut chunk = vec![0; CHUNK];
            match source.read(&mut chunk) {
                Ok(0) => None,
                Ok(read) => {
                    chunk.truncate(read);
                    let sent = sent + read as u64;
                    progress(sent);
                    Some((Ok(Frame::data(Bytes::from(chunk))), (source, progress, sent)))
                }
                Err(error) => Some((Err(error), (source, progress, sent))),
            }
        },
    );
    StreamBody::new(Box::pin(chunks))
}

/// RFC 3986: everything but unreserved characters is percent-encoded.
fn query(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                // Writing to a string can't fail.
                let _: Result<(), std::fmt::Error> = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server for one request. Gives its address, and later the head and the body of the request.
    async fn server(answer: &'static str) -> (String, tokio::task::JoinHandle<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut got = Vec::new();
            let end = loop {
                if let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") {
                    break at + 4;
                }
                assert!(socket.read_buf(&mut got).await.unwrap() > 0);
            };
            let head = String::from_utf8(got[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                })
                .unwrap();
            let length: usize = length.parse().unwrap();
            while got.len() < end + length && socket.read_buf(&mut got).await.unwrap() > 0 {}
            socket.write_all(answer.as_bytes()).await.unwrap();
            (head, got[end..].to_vec())
        });
        (url, asked)
    }
    fn upload<'a>(url: &'a str, query: &'a [(&'a str, &'a str)], bytes: Vec<u8>) -> Upload<'a> {
        Upload {
            url,
            token: Some("gsv_secret"),
            query,
            content_type: "image/png",
            size: bytes.len() as u64,
            source: Box::new(std::io::Cursor::new(bytes)),
            progress: Box::new(|_| {}),
            within: Duration::from_secs(10),
        }
    }
    const STORED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n43\r\n{\"r2Key\":\"media/s/u.png\",\"mimeType\":\"image/png\",\"sizeBytes\":200000,\r\nf\r\n\"sha256\":\"abc\"}\r\n0\r\n\r\n";

    #[tokio::test]
    async fn p5_6_a_file_is_sent_unchanged_and_progress_is_reported() {
        let (url, asked) = server(STORED).await;
        let bytes: Vec<u8> = (0..200_000u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let fields = [("sessionKey", "agent:main:x"), ("filename", "ü b&c.png")];
        let answer = Upload {
            progress: Box::new(move |sent| sink.lock().unwrap().push(sent)),
            ..upload(&url, &fields, bytes.clone())
        }
        .send()
        .await
        .unwrap();
        assert_eq!((answer.r2_key.as_str(), answer.size_bytes), ("media/s/u.png", 200_000));
        let (head, body) = asked.await.unwrap();
        assert!(
            head.starts_with("POST /media?sessionKey=agent%3Amain%3Ax&filename=%C3%BC%20b%26c.png HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("authorization: Bearer gsv_secret\r\n"), "{head}");
        assert_eq!(body, bytes);
        assert_eq!(told.lock().unwrap().last(), Some(&200_000));
    }

    #[tokio::test]
    async fn a_refusal_keeps_the_gateways_reason_message_and_hint() {
        let (url, _asked) = server("HTTP/1.1 413 Too Large\r\nContent-Type: application/problem+json\r\nContent-Length: 74\r\n\r\n{\"reason\":\"file.too_large\",\"detail\":\"At most 5 bytes.\",\"hint\":\"Split it.\"}").await;
        let error = upload(&url, &[], vec![1; 10]).send().await.unwrap_err();
        assert_eq!(
            (error.reason(), error.to_string().as_str()),
            ("file.too_large", "At most 5 bytes. Split it.")
        );
        assert_eq!(error.exit_status(), 1);
    }

    #[tokio::test]
    async fn a_401_without_a_body_is_auth_required() {
        let (url, _asked) = server("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
        let error = upload(&url, &[], vec![1]).send().await.unwrap_err();
        assert_eq!(error.reason(), "auth.required");
        assert!(!error.to_string().contains("gsv_secret"));
    }

    #[tokio::test]
    async fn no_server_a_foreign_server_and_a_silent_server_give_different_errors() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let silent = Upload {
            within: Duration::from_millis(50),
            ..upload(&url, &[], vec![1])
        };
        assert_eq!(silent.send().await.unwrap_err().reason(), "link.timeout");
        drop(listener);
        assert_eq!(
            upload(&url, &[], vec![1]).send().await.unwrap_err().reason(),
            "link.unreachable"
        );
        let (url, _asked) = server("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").await;
        assert_eq!(
            upload(&url, &[], vec![1]).send().await.unwrap_err().reason(),
            "link.bad_answer"
        );
        let (url, _asked) = server("").await;
        assert_eq!(
            upload(&url, &[], vec![1]).send().await.unwrap_err().reason(),
            "link.closed"
        );
    }

    #[tokio::test]
    async fn a_source_that_ends_early_is_an_error() {
        let (url, _asked) = server(STORED).await;
        let short = Upload {
            size: 100,
            ..upload(&url, &[], vec![1; 10])
        };
        assert_eq!(short.send().await.unwrap_err().reason(), "link.closed");
    }
}
