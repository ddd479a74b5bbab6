//! Opens connections to a gateway: a WebSocket, or a byte stream for HTTP. Handles TCP, TLS and the upgrade; knows no
//! frames.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gsv_protocol::codec::RECEIVED_BYTES;
use gsv_protocol::types::ErrorShape;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::net::pin;
use crate::net::refusal::refusal;
use crate::net::target::Target;
use crate::net::wrong_address;

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const BUFFER: usize = 16 * 1024;

#[derive(Debug)]
pub struct Failure {
    pub cause: String,
    /// The server's error, when it answered without opening a socket, or that of a certificate other than the pinned one.
    pub refusal: Option<Box<ErrorShape>>,
}

impl Failure {
    fn plain(cause: String) -> Self {
        Self { cause, refusal: None }
    }
}

/// Opens a WebSocket. Bounded by `within`. `token` goes with the upgrade, so that a gateway under a flood of strangers
/// admits its owner (H9); a gateway that does not know this ignores it.
pub async fn open_socket(target: &Target, token: Option<&str>, within: Duration) -> Result<Socket, Failure> {
    let plain = Failure::plain;
    let attempt = async {
        let stream = open_stream(target).await?;
        let mut request = target
            .uri
            .clone()
            .into_client_request()
            .map_err(|error| plain(error.to_string()))?;
        if let Some(bearer) = token.and_then(bearer) {
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(RECEIVED_BYTES))
            .max_frame_size(Some(RECEIVED_BYTES));
        tokio_tungstenite::client_async_with_config(request, stream, Some(config))
            .await
            .map(|(socket, _)| socket)
            .map_err(|error| explain(error, target))
    };
    tokio::time::timeout(within, attempt)
        .await
        .unwrap_or_else(|_| Err(plain(format!("no connection within {} s", within.as_secs()))))
}

/// `None`: no header can carry this token.
fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Opens a plain or encrypted byte stream to the server. Not bounded in time.
pub async fn open_stream(target: &Target) -> Result<MaybeTlsStream<TcpStream>, Failure> {
    let plain = Failure::plain;
    let stream = connect(target).await.map_err(|error| plain(error.to_string()))?;
    if !target.tls {
        return Ok(MaybeTlsStream::Plain(stream));
    }
    let name = ServerName::try_from(target.host.clone()).map_err(|error| plain(error.to_string()))?;
    let config = match target.pin {
        Some(fingerprint) => pin::config(fingerprint),
        None => tls(),
    };
    let encrypted = TlsConnector::from(config.map_err(plain)?).connect(name, stream).await;
    encrypted.map(MaybeTlsStream::Rustls).map_err(|error| Failure {
        refusal: pin::wrong_certificate(&error)
            .or_else(|| wrong_address::in_handshake(&error, target))
            .map(Box::new),
        cause: error.to_string(),
    })
}

/// A byte stream to any server, encrypted when its address says so, for a program that speaks HTTP over it.
///
/// # Errors
/// Why there is no connection, for a person.
pub async fn open_bytes(target: &Target, within: Duration) -> Result<MaybeTlsStream<TcpStream>, String> {
    match tokio::time::timeout(within, open_stream(target)).await {
        Ok(opened) => opened.map_err(|failure| failure.cause),
        Err(_) => Err(format!("no connection within {} s", within.as_secs())),
    }
}

async fn connect(target: &Target) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// TLS with the root certificates that are compiled into the program; built at the first encrypted connection.
fn tls() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let roots = RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?;
            Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
        })
        .clone()
}

fn explain(error: tungstenite::Error, target: &Target) -> Failure {
    match error {
        tungstenite::Error::Http(response) => {
            let (status, body) = (response.status(), response.into_body().unwrap_or_default());
            let cause = match status {
                StatusCode::OK => "a server answers there, but it is no gateway".into(),
                StatusCode::NOT_FOUND => "a server answers there, but it has no gateway at this path (HTTP 404)".into(),
                status => format!("the server answered HTTP {}", status.as_u16()),
            };
            Failure {
                refusal: refusal(status, &body).map(Box::new),
                cause,
            }
        }
        other => Failure {
            refusal: wrong_address::in_upgrade(&other, target).map(Box::new),
            cause: other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_the_token_is_not_shown_with_the_headers_of_a_request() {
        let shown = format!("{:?}", bearer("gsv_client_abc_0123456789abcdef"));
        assert!(!shown.contains("gsv_client"), "{shown}");
        assert!(bearer("line\nbreak").is_none());
    }

    #[tokio::test]
    async fn frames_leave_at_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        assert!(connect(&target).await.unwrap().nodelay().unwrap());
    }
}
