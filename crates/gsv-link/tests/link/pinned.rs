//! A link to real TLS servers with their own certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gsv_link::{Delivery, Fingerprint, Link, LinkError, LinkEvent, Mode, Options, Target};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;

const DEADLINE: Duration = Duration::from_secs(30);
const SECRET: &str = "gsv_client_abc_0123456789abcdef";

struct Server {
    address: String,
    pin: Fingerprint,
    /// Connections whose handshake succeeded.
    opened: Arc<AtomicUsize>,
}

/// A certificate, and a key: another one for a server that only copied the certificate.
fn server_config(wrong_key: bool) -> (ServerConfig, Fingerprint) {
    let pair = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["gsv".to_owned()])
        .unwrap()
        .self_signed(&pair)
        .unwrap();
    let der = certificate.der().clone();
    let pin = Fingerprint::of(&der);
    let key = if wrong_key {
        rcgen::KeyPair::generate().unwrap()
    } else {
        pair
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let signing = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let certified = rustls::sign::CertifiedKey::new(vec![der], signing);
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
    (config, pin)
}

/// Greets each WebSocket; answers each POST with `{}`.
async fn serve(wrong_key: bool, is_http: bool) -> Server {
    let (config, pin) = server_config(wrong_key);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                count.fetch_add(1, Ordering::SeqCst);
                if is_http {
                    let mut request = vec![0; 4096];
                    let _ = stream.read(&mut request).await;
                    let _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                        .await;
                    let _ = stream.flush().await;
                    return;
                }
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                let Some(Ok(Message::Text(text))) = socket.next().await else {
                    return;
                };
                let id = serde_json::from_str::<serde_json::Value>(&text).unwrap()["id"].clone();
                let hello = serde_json::json!({"type": "res", "id": id, "ok": true, "payload": {"type": "hello-ok", "protocol": 1}});
                let _ = socket.send(Message::text(hello.to_string())).await;
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    Server { address, pin, opened }
}

impl Server {
    fn options(&self, pin: Fingerprint) -> Options {
        Options {
            token: Some(SECRET.into()),
            ..Options::new(Target::pinned(&self.address, Some(pin)), Mode::Client, "test")
        }
    }
    async fn connect(&self, pin: Fingerprint) -> Result<(), LinkError> {
        let connected = tokio::time::timeout(DEADLINE, Link::connect(self.options(pin)))
            .await
            .unwrap();
        connected.map(drop)
    }
}

fn other() -> Fingerprint {
    Fingerprint::of(b"another certificate")
}

#[tokio::test]
async fn rm4_the_server_with_the_pinned_certificate_is_accepted_whatever_its_name_and_issuer() {
    let server = serve(false, false).await;
    server.connect(server.pin).await.unwrap();
}

#[tokio::test]
async fn rm4_any_other_certificate_is_refused_with_a_code_before_anything_is_sent() {
    let server = serve(false, false).await;
    let error = server.connect(other()).await.unwrap_err();
    assert_eq!((error.reason(), error.exit_status()), ("link.wrong_certificate", 3));
    assert!(
        error.to_string().contains("certificate") && !error.to_string().contains("refused the connection"),
        "{error}"
    );
    assert_eq!(
        server.opened.load(Ordering::SeqCst),
        0,
        "the handshake never ended, so no token was sent"
    );
}

#[tokio::test]
async fn rm4_a_copied_certificate_without_its_key_is_refused() {
    let server = serve(true, false).await;
    assert!(server.connect(server.pin).await.is_err());
    assert_eq!(server.opened.load(Ordering::SeqCst), 0);
}

async fn fails(address: String) -> LinkError {
    let options = Options::new(address, Mode::Client, "test");
    let connected = tokio::time::timeout(DEADLINE, Link::connect(options)).await;
    connected.unwrap().unwrap_err()
}

#[tokio::test]
async fn rm4_rm14_without_a_fingerprint_only_public_authorities_count_and_the_error_names_the_fingerprint() {
    let server = serve(false, false).await;
    let error = fails(format!("wss://{}", server.address)).await;
    assert_eq!(error.reason(), "link.wrong_certificate");
    let words = error.to_string();
    assert!(
        words.contains("no public authority") && words.contains("#sha256="),
        "{words}"
    );
    assert!(!words.contains("gsv up"), "{words}");
    assert_eq!(server.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn rm14_an_address_with_the_wrong_scheme_is_told_the_right_one() {
    let server = serve(false, false).await;
    let error = fails(format!("ws://{}", server.address)).await;
    assert_eq!((error.reason(), error.exit_status()), ("link.bad_url", 2));
    let words = error.to_string();
    assert!(words.contains(&format!("wss://{}/ws", server.address)), "{words}");

    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                .await;
        }
    });
    let error = fails(format!("wss://{address}")).await;
    assert_eq!((error.reason(), error.exit_status()), ("link.bad_url", 2));
    let words = error.to_string();
    assert!(words.contains(&format!(" ws://{address}/ws")), "{words}");
}

#[tokio::test]
async fn rm4_http_requests_pin_the_same_certificate() {
    let server = serve(false, true).await;
    let deliver = async |pin: Fingerprint| {
        let url = Target::pinned(&server.address, Some(pin));
        let delivery = Delivery {
            url: &url,
            path: "/hooks/test",
            headers: Vec::new(),
            body: "{}".into(),
            within: DEADLINE,
        };
        delivery.send().await
    };
    let refused = deliver(other()).await.unwrap_err();
    assert_eq!(refused.reason(), "link.wrong_certificate");
    assert_eq!(server.opened.load(Ordering::SeqCst), 0);
    let _ = deliver(server.pin).await;
    assert_eq!(server.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn rm4_a_node_that_meets_another_certificate_says_so_and_waits_for_the_right_one() {
    let server = serve(false, false).await;
    let options = Options {
        reconnect: true,
        mode: Mode::Node,
        ..server.options(other())
    };
    let (link, mut events) = Link::connect(options).await.unwrap();
    let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap();
    let LinkEvent::Disconnected { reason, retry_in } = event else {
        panic!("{event:?}");
    };
    assert!(reason.contains("another certificate") && retry_in.is_some(), "{reason}");
    link.close().await;
}
