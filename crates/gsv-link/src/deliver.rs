//! `POST /hooks/{name}`: sends one delivery to a hook, as another service does. Uses no token, and never retries.

use std::time::Duration;

use gsv_protocol::types::HookTaken;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{HOST, USER_AGENT};
use hyper_util::rt::TokioIo;

use crate::error::LinkError;
use crate::net::dial::open_stream;
use crate::net::refusal::refusal;
use crate::net::target::Target;

const METHOD: &str = "POST /hooks";
/// The longest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// One delivery, signed already.
pub struct Delivery<'a> {
    pub url: &'a str,
    /// Of the gateway, such as `/hooks/gh`.
    pub path: &'a str,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub within: Duration,
}

impl Delivery<'_> {
    /// # Errors
    /// [`LinkError::Remote`] with the gateway's reason when it refuses the delivery; others when it can't be reached or understood.
    pub async fn send(self) -> Result<HookTaken, LinkError> {
        let within = self.within;
        tokio::time::timeout(within, self.exchange()).await.unwrap_or_else(|_| {
            Err(LinkError::Timeout {
                method: METHOD.into(),
                after_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
                uncertain: true,
            })
        })
    }

    async fn exchange(self) -> Result<HookTaken, LinkError> {
        let target = Target::parse(self.url)?;
        let unreachable = |cause: String| LinkError::Unreachable {
            url: target.shown.clone(),
            cause,
        };
        let bad_answer = |why: String| LinkError::BadAnswer {
            method: METHOD.into(),
            why,
        };
        let stream = open_stream(&target).await.map_err(unreachable)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let request = self.request(&target)?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(|error| LinkError::Closed {
                reason: format!("the delivery broke off ({error})"),
            })?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await
                .map_err(|error| bad_answer(error.to_string()))?
                .to_bytes();
            if status.is_success() {
                return serde_json::from_slice(&body).map_err(|error| bad_answer(error.to_string()));
            }
            match refusal(status, &body) {
                Some(error) => Err(LinkError::Remote(error)),
                None => Err(bad_answer(format!("HTTP {}", status.as_u16()))),
            }
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // The connection ends by itself only when it broke; an answer that came before still counts.
            _ = connection => answer.await,
        }
    }

    fn request(self, target: &Target) -> Result<Request<Full<Bytes>>, LinkError> {
        let mut builder = Request::post(target.http_path(self.path))
            .header(HOST, target.authority())
            .header(USER_AGENT, concat!("gsv/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        builder
            .body(Full::new(Bytes::from(self.body)))
            .map_err(|error| LinkError::BadRequest {
                method: METHOD.into(),
                why: error.to_string(),
            })
    }
}

#[cfg(test)]
mod tests {
    use gsv_protocol::types::HookTakenStatus;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server for one request. Gives its address, and later what it was sent.
    async fn server(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/gsv/ws", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut got = Vec::new();
            while !got.ends_with(b"{\"a\":1}") {
                assert!(socket.read_buf(&mut got).await.unwrap() > 0);
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(got).unwrap()
        });
        (url, asked)
    }
    fn delivery(url: &str) -> Delivery<'_> {
        Delivery {
            url,
            path: "/hooks/gh",
            headers: vec![("webhook-id".to_owned(), "d1".to_owned())],
            body: "{\"a\":1}".to_owned(),
            within: Duration::from_secs(10),
        }
    }

    #[tokio::test]
    async fn hk12_a_delivery_is_sent_with_its_headers_and_without_a_token() {
        let (url, asked) = server("HTTP/1.1 202 Accepted\r\nContent-Length: 21\r\n\r\n{\"status\":\"accepted\"}").await;
        let taken = delivery(&url).send().await.unwrap();
        assert_eq!(taken.status, HookTakenStatus::Accepted);
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("POST /gsv/hooks/gh HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("webhook-id: d1\r\n"), "{asked}");
        assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
    }

    #[tokio::test]
    async fn hk2_a_refusal_keeps_the_gateways_reason() {
        let (url, _asked) =
            server("HTTP/1.1 401 Unauthorized\r\nContent-Length: 25\r\n\r\n{\"reason\":\"hook.refused\"}").await;
        let error = delivery(&url).send().await.unwrap_err();
        assert_eq!((error.reason(), error.exit_status()), ("hook.refused", 3));
    }
}
