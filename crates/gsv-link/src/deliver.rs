//! `POST /hooks/{name}`: sends one delivery to a hook, as another service does. Uses no token, and never retries.

use std::time::Duration;

use gsv_protocol::types::HookTaken;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{HOST, USER_AGENT};

use crate::error::LinkError;
use crate::net::exchange::Kind;
use crate::net::target::Target;

const DELIVERY: Kind = Kind {
    method: "POST /hooks",
    noun: "delivery",
    acts: true,
};

/// One delivery, signed already.
pub struct Delivery<'a> {
    pub url: &'a str,
    /// The path at the gateway, such as `/hooks/gh`.
    pub path: &'a str,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub within: Duration,
}

impl Delivery<'_> {
    /// # Errors
    /// [`LinkError::Remote`] with the gateway's reason when it refuses the delivery; others when it can't be reached or understood.
    pub async fn send(self) -> Result<HookTaken, LinkError> {
        let (target, within) = (Target::parse(self.url)?, self.within);
        DELIVERY.exchange(&target, self.request(&target)?, within).await
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
            .map_err(|error| DELIVERY.bad_request(&error))
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
