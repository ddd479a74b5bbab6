//! From an address to an open WebSocket. Knows TCP, TLS and the upgrade; nothing of frames.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gsv_protocol::types::ErrorShape;
use gsv_protocol::{ErrorReason, errors};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{StatusCode, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, http};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream};

use crate::error::LinkError;

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Nothing on the wire is larger than a frame of 1 MiB; a gateway that sends more than this is broken.
const LARGEST_MESSAGE: usize = 8 * 1024 * 1024;
const BUFFER: usize = 16 * 1024;

#[derive(Debug)]
pub struct Failure {
    pub cause: String,
    /// What the server said instead of opening a socket.
    pub refusal: Option<ErrorShape>,
}

/// Where to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    host: String,
    port: u16,
    tls: bool,
    /// For messages: no query, where some put secrets.
    pub shown: String,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, LinkError> {
        let url = url.trim();
        let bad = |why: &str| LinkError::BadUrl {
            url: without_secrets(url),
            why: why.into(),
        };
        if url.is_empty() {
            return Err(bad("it is empty"));
        }
        let with_scheme = if url.contains("://") {
            url.to_owned()
        } else {
            format!("{}{url}", scheme_for_bare(url))
        };
        let uri: Uri = with_scheme.parse().map_err(|_| bad("it can't be read"))?;
        let tls = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            _ => return Err(bad("only ws, wss, http and https are known")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad(
                "names and passwords don't belong in an address; set the token instead",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        // `Authority` drops a port that it can't read; here that is an error.
        let port = match authority.as_str().get(authority.host().len()..).unwrap_or_default() {
            "" if tls => 443,
            "" => 80,
            rest => match rest.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
                Some(port) if port > 0 => port,
                _ => return Err(bad("the port is not valid")),
            },
        };
        let path = match uri.path() {
            "" | "/" => "/ws",
            path => path,
        };
        let scheme = if tls { "wss" } else { "ws" };
        let shown = format!("{scheme}://{authority}{path}");
        let full = uri
            .query()
            .map_or_else(|| shown.clone(), |query| format!("{shown}?{query}"));
        let uri = full.parse().map_err(|_| bad("it can't be read"))?;
        Ok(Self {
            uri,
            host,
            port,
            tls,
            shown,
        })
    }

    /// Opens the socket. Bounded by `within`.
    pub async fn open(&self, within: Duration) -> Result<Socket, Failure> {
        let plain = |cause: String| Failure { cause, refusal: None };
        let attempt = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port))
                .await
                .map_err(|error| plain(error.to_string()))?;
            stream.set_nodelay(true).map_err(|error| plain(error.to_string()))?;
            let connector = if self.tls {
                Connector::Rustls(tls().map_err(plain)?)
            } else {
                Connector::Plain
            };
            let request = self
                .uri
                .clone()
                .into_client_request()
                .map_err(|error| plain(error.to_string()))?;
            let config = WebSocketConfig::default()
                .read_buffer_size(BUFFER)
                .write_buffer_size(BUFFER)
                .max_message_size(Some(LARGEST_MESSAGE))
                .max_frame_size(Some(LARGEST_MESSAGE));
            tokio_tungstenite::client_async_tls_with_config(request, stream, Some(config), Some(connector))
                .await
                .map(|(socket, _)| socket)
                .map_err(explain)
        };
        tokio::time::timeout(within, attempt)
            .await
            .unwrap_or_else(|_| Err(plain(format!("no connection within {} s", within.as_secs()))))
    }
}

impl Target {
    /// A plain or encrypted byte stream to the same server, for HTTP.
    pub async fn dial(&self) -> Result<Box<dyn Stream>, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if !self.tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let encrypted = TlsConnector::from(tls()?).connect(name, stream).await;
        encrypted
            .map(|stream| Box::new(stream) as Box<dyn Stream>)
            .map_err(|error| error.to_string())
    }

    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or(self.host.as_str(), |authority| authority.as_str())
    }

    /// `/media` beside the socket's path: a gateway may live below a folder of its host.
    pub fn media_path(&self) -> String {
        let path = self.uri.path();
        format!("{}/media", path.strip_suffix("/ws").unwrap_or_default())
    }
}

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A bare `host[:port]`: plain on this machine, encrypted elsewhere.
fn scheme_for_bare(url: &str) -> &'static str {
    let host = url.split('/').next().unwrap_or_default();
    let local = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|prefix| host.starts_with(prefix));
    if local { "ws://" } else { "wss://" }
}

fn without_secrets(url: &str) -> String {
    let cut = url.split(['?', '#']).next().unwrap_or_default();
    let shown = match (cut.find("://"), cut.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://...{}", &cut[..scheme], &cut[at..]),
        (None, Some(at)) => format!("...{}", &cut[at..]),
        _ => cut.to_owned(),
    };
    shown.chars().take(200).collect()
}

/// The certificates that come with the program; built once, at the first encrypted connection.
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

fn explain(error: tungstenite::Error) -> Failure {
    match error {
        tungstenite::Error::Http(response) => {
            let (status, body) = (response.status(), response.into_body().unwrap_or_default());
            let cause = match status {
                StatusCode::OK => "something answers there, but it is no gateway".into(),
                StatusCode::NOT_FOUND => {
                    "something answers there, but it has no gateway at this path (HTTP 404)".into()
                }
                status => format!("the server answered HTTP {}", status.as_u16()),
            };
            Failure {
                refusal: refusal(status, &body),
                cause,
            }
        }
        other => Failure {
            cause: other.to_string(),
            refusal: None,
        },
    }
}

/// The contract's error of an HTTP answer: what the body says, else what the status means.
pub fn refusal(status: http::StatusCode, body: &[u8]) -> Option<ErrorShape> {
    let said: Option<Value> = serde_json::from_slice(body).ok();
    let field = |name: &str| said.as_ref().and_then(|said| said.get(name)).and_then(Value::as_str);
    let by_status = match status.as_u16() {
        401 => Some(&errors::AUTH_REQUIRED),
        403 => Some(&errors::AUTH_ORIGIN),
        429 => Some(&errors::LIMIT_RATE),
        _ => None,
    };
    let row = field("reason").and_then(ErrorReason::find).or(by_status)?;
    let message = field("message").or_else(|| field("detail")).unwrap_or(row.text);
    Some(ErrorShape {
        hint: Some(field("hint").unwrap_or(row.hint).to_owned()),
        ..row.with_message(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Target::parse(url).map_or_else(|error| format!("{}: {error}", error.reason()), |target| target.shown)
    }

    #[test]
    fn every_spelling_of_an_address_leads_to_ws() {
        for (given, want) in [
            ("ws://127.0.0.1:8787", "ws://127.0.0.1:8787/ws"),
            ("http://localhost:8787/", "ws://localhost:8787/ws"),
            ("https://gsv.example.com", "wss://gsv.example.com/ws"),
            ("wss://gsv.example.com/other", "wss://gsv.example.com/other"),
            ("localhost:8787", "ws://localhost:8787/ws"),
            ("gsv.example.com", "wss://gsv.example.com/ws"),
            ("http://[::1]:99", "ws://[::1]:99/ws"),
            ("https://host/ws?key=secret", "wss://host/ws"),
        ] {
            assert_eq!(shown(given), want, "{given}");
        }
        let media = |url: &str| Target::parse(url).unwrap().media_path();
        assert_eq!(media("ws://127.0.0.1:8787"), "/media");
        assert_eq!(media("https://host/gsv/ws"), "/gsv/media");
        assert_eq!(Target::parse("http://[::1]:99").unwrap().host, "::1");
        assert_eq!(Target::parse("https://a").unwrap().port, 443);
    }

    #[test]
    fn bad_addresses_are_refused_without_repeating_secrets() {
        for given in [
            "",
            "ftp://host",
            "ws://",
            "ws://u:hunter2@host/ws",
            "ws://host:99999",
            "ws://host:0",
            "ws://host:",
            "not a url",
        ] {
            let said = shown(given);
            assert!(said.starts_with("link.bad_url"), "{given}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn the_body_of_a_refused_upgrade_is_understood_h2() {
        let closed = refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            br#"{"reason":"auth.not_configured","detail":"no token yet"}"#,
        )
        .unwrap();
        assert_eq!(
            (closed.reason.as_str(), closed.message.as_str()),
            ("auth.not_configured", "no token yet")
        );
        assert_eq!(
            refusal(StatusCode::UNAUTHORIZED, b"<html>").unwrap().reason,
            "auth.required"
        );
        assert_eq!(refusal(StatusCode::FORBIDDEN, b"").unwrap().reason, "auth.origin");
        assert_eq!(refusal(StatusCode::BAD_GATEWAY, b"{}"), None);
    }
}
