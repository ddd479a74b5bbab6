//! The link against a scripted server.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gsv_link::{Events, Link, LinkError, LinkEvent, Mode, Options};
use gsv_protocol::methods::{ChatSend, ConfigGet, NodesList, SessionReset, ToolResult};
use gsv_protocol::types::{ConfigGetParams, LedgerCall, LedgerCallState, NodeLedger};
use gsv_protocol::{Event, Method, NoParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

const DEADLINE: Duration = Duration::from_secs(30);
const SECRET: &str = "gsv_client_abc_0123456789abcdef";

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

struct Server {
    listener: TcpListener,
    url: String,
}
impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// The next connection and its `connect` request.
    async fn knock(&self) -> (Peer, Value) {
        let (socket, _) = within("a connection", self.listener.accept()).await.unwrap();
        let mut peer = Peer(tokio_tungstenite::accept_async(socket).await.unwrap());
        let hello = peer.request().await;
        assert_eq!(hello["method"], "connect");
        (peer, hello["params"].clone())
    }

    async fn accept(&self) -> Peer {
        let (mut peer, _) = self.knock().await;
        peer.welcome().await;
        peer
    }

    fn options(&self) -> Options {
        Options {
            token: Some(SECRET.into()),
            ..Options::new(self.url.as_str(), Mode::Client, "test")
        }
    }
}

struct Peer(WebSocketStream<TcpStream>);
impl Peer {
    async fn request(&mut self) -> Value {
        within("a request", async {
            loop {
                match self.0.next().await.unwrap().unwrap() {
                    Message::Text(text) if text.as_str() == "ping" => {}
                    Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                    Message::Close(_) => panic!("closed"),
                    _ => {}
                }
            }
        })
        .await
    }

    async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn welcome(&mut self) {
        let payload = json!({
            "type": "hello-ok", "protocol": 1, "server": {"version": "1", "connectionId": "c"},
            "features": {"methods": ["nodes.list"], "events": []}, "scopes": ["read"],
        });
        self.send(json!({"type": "res", "id": "hello", "ok": true, "payload": payload}))
            .await;
    }

    async fn answer(&mut self, request: &Value, payload: Value) {
        self.send(json!({"type": "res", "id": request["id"], "ok": true, "payload": payload}))
            .await;
    }

    async fn refuse(&mut self, request: &Value, error: Value) {
        self.send(json!({"type": "res", "id": request["id"], "ok": false, "error": error}))
            .await;
    }

    /// The code and reason of the other side's close.
    async fn closing(&mut self) -> (u16, String) {
        within("a close", async {
            loop {
                if let Message::Close(frame) = self.0.next().await.unwrap().unwrap() {
                    let frame = frame.unwrap();
                    return (frame.code.into(), frame.reason.as_str().to_owned());
                }
            }
        })
        .await
    }
}

type Outcome = tokio::task::JoinHandle<Result<(), LinkError>>;

fn call<M: Method<Params: Send, Result: Send> + 'static>(link: &Link, params: Value) -> Outcome {
    let (link, params) = (link.clone(), serde_json::from_value(params).unwrap());
    tokio::spawn(async move { link.call_within::<M>(params, DEADLINE).await.map(drop) })
}

fn once<M: Method<Params: Send, Result: Send> + 'static>(link: &Link, params: Value) -> Outcome {
    let (link, params) = (link.clone(), serde_json::from_value(params).unwrap());
    tokio::spawn(async move { link.call_once::<M>(params, DEADLINE).await.map(drop) })
}

/// A link and its server's side.
async fn linked() -> (Server, Link, Events, Peer) {
    let server = Server::start().await;
    let (linked, peer) = tokio::join!(Link::connect(server.options()), server.accept());
    let (link, events) = linked.unwrap();
    (server, link, events, peer)
}

#[tokio::test]
async fn a_call_gives_its_typed_result() {
    let (_server, link, mut events, mut peer) = linked().await;
    assert!(
        matches!(within("hello", events.recv()).await, Some(LinkEvent::Connected(hello)) if hello.server.version == "1")
    );
    assert_eq!(link.hello().unwrap().scopes, Some(vec!["read".into()]));
    let server = async {
        let request = peer.request().await;
        assert_eq!(
            (&request["method"], &request["params"]),
            (&json!("nodes.list"), &json!({}))
        );
        peer.answer(&request, json!({"nodes": [], "count": 0, "later": true}))
            .await;
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": "none"})).await;
        let request = peer.request().await;
        peer.refuse(&request, json!({"code": 404, "message": "no such thing"}))
            .await;
    };
    let client = async {
        assert_eq!(link.call::<NodesList>(NoParams {}).await.unwrap().count, 0);
        assert!(matches!(
            link.call::<NodesList>(NoParams {}).await,
            Err(LinkError::BadAnswer { .. })
        ));
        let error = link.call::<NodesList>(NoParams {}).await.unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.reason(), error.exit_status()),
            ("no such thing", "unknown", 1)
        );
    };
    tokio::join!(server, client);
    link.close().await;
    assert!(matches!(
        link.call::<NodesList>(NoParams {}).await,
        Err(LinkError::Closed { .. })
    ));
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_then_forgotten() {
    let (_server, link, _events, mut peer) = linked().await;
    let error = link
        .call_within::<NodesList>(NoParams {}, Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, LinkError::Timeout { method, uncertain: false, .. } if method == "nodes.list"),
        "{error}"
    );
    // A late answer is ignored, and so is the answer to a call whose future was dropped.
    let late = peer.request().await;
    peer.answer(&late, json!({"nodes": [], "count": 1})).await;
    let given_up = tokio::time::timeout(Duration::from_millis(50), link.call::<NodesList>(NoParams {})).await;
    assert!(given_up.is_err());
    let second = peer.request().await;
    peer.answer(&second, json!({"nodes": [], "count": 2})).await;
    let (third, ()) = tokio::join!(link.call::<NodesList>(NoParams {}), async {
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": [], "count": 3})).await;
    });
    assert_eq!(third.unwrap().count, 3);
}

#[tokio::test]
async fn h2_a_refusal_says_what_to_do_and_does_not_show_the_token() {
    let server = Server::start().await;
    let (refused, ()) = tokio::join!(Link::connect(server.options()), async {
        let (mut peer, hello) = server.knock().await;
        assert_eq!(hello["auth"]["token"], SECRET);
        let error = json!({"code": 401, "reason": "auth.required", "message": ""});
        peer.send(json!({"type": "res", "id": "hello", "ok": false, "error": error}))
            .await;
    });
    let error = refused.map(drop).unwrap_err();
    assert!(matches!(&error, LinkError::Refused { .. }) && error.exit_status() == 3);
    assert!(error.to_string().contains("gsv invite client") && !error.to_string().contains(SECRET));
    assert!(!format!("{:?}", server.options()).contains(SECRET));
}

/// Answers every connection with these bytes of HTTP.
async fn http(answer: &'static str) -> Options {
    let server = Server::start().await;
    let options = server.options();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = server.listener.accept().await {
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    options
}

#[tokio::test]
async fn an_address_without_a_gateway_gives_a_clear_error() {
    let closed_port = Link::connect(Options::new("ws://127.0.0.1:1", Mode::Client, "test"))
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(&closed_port, LinkError::Unreachable { url, .. } if url == "ws://127.0.0.1:1/ws")
            && closed_port.exit_status() == 4
    );
    assert!(closed_port.to_string().contains("gsv up"));
    let page = http("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let error = Link::connect(page).await.map(drop).unwrap_err();
    assert!(
        matches!(&error, LinkError::Unreachable { cause, .. } if cause.contains("no gateway")),
        "{error}"
    );
    let body = r#"{"reason":"auth.not_configured","message":"No token is set up."}"#;
    let closed: &'static str = format!(
        "HTTP/1.1 503 Unavailable\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .leak();
    let error = Link::connect(http(closed).await).await.map(drop).unwrap_err();
    assert_eq!((error.reason(), error.exit_status()), ("auth.not_configured", 3));
}

#[tokio::test]
async fn connecting_to_a_silent_server_times_out() {
    let server = Server::start().await;
    let options = Options {
        connect_timeout: Duration::from_millis(200),
        ..server.options()
    };
    // Silent after the upgrade, and silent before it.
    let (silent, _peer) = tokio::join!(Link::connect(options.clone()), server.knock());
    assert!(matches!(silent.map(drop), Err(LinkError::Unreachable { .. })));
    let mute = within("the end", Link::connect(options)).await;
    assert!(matches!(mute.map(drop), Err(LinkError::Unreachable { .. })));
}

#[tokio::test]
async fn wss_starts_with_a_tls_handshake() {
    let server = Server::start().await;
    let url = server.url.replace("ws://", "wss://");
    let (outcome, first) = tokio::join!(Link::connect(Options::new(url, Mode::Client, "test")), async {
        let (mut socket, _) = server.listener.accept().await.unwrap();
        let mut first = [0; 3];
        socket.read_exact(&mut first).await.unwrap();
        first
    });
    // A TLS handshake record (RFC 8446, 5.1).
    assert_eq!(first[..2], [0x16, 0x03]);
    assert!(matches!(outcome.map(drop), Err(LinkError::Unreachable { .. })));
}

#[tokio::test]
async fn after_a_reconnect_repeatable_calls_are_resent_and_the_others_fail() {
    let server = Server::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let ledger = move || {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        NodeLedger {
            calls: vec![LedgerCall {
                call_id: format!("c{number}"),
                state: LedgerCallState::Finished,
            }],
        }
    };
    let options = Options {
        reconnect: true,
        ledger: Some(Arc::new(ledger)),
        ..server.options()
    };
    let (link, mut events) = Link::connect(options).await.unwrap();
    let (mut peer, hello) = server.knock().await;
    assert_eq!(hello["ledger"]["calls"][0]["callId"], "c0");
    peer.welcome().await;
    let mut calls = vec![];
    let mut first = vec![];
    for call in [
        call::<ToolResult>(&link, json!({"callId": "x"})),
        call::<ChatSend>(&link, json!({"sessionKey": "s", "message": "m", "messageId": "1"})),
        call::<ChatSend>(&link, json!({"sessionKey": "s", "message": "m"})),
        call::<SessionReset>(&link, json!({"sessionKey": "s"})),
        once::<ToolResult>(&link, json!({"callId": "y"})),
    ] {
        calls.push(call);
        first.push(peer.request().await);
    }
    drop(peer);
    let (mut peer, hello) = server.knock().await;
    assert_eq!(hello["ledger"]["calls"][0]["callId"], "c1");
    peer.welcome().await;
    let results = [json!({"ok": true}), json!({"status": "started", "runId": "r"})];
    for (before, result) in first.iter().zip(results) {
        let again = peer.request().await;
        assert_eq!(
            (&again["method"], &again["params"]),
            (&before["method"], &before["params"])
        );
        peer.answer(&again, result).await;
    }
    let mut outcomes = vec![];
    for call in calls {
        outcomes.push(within("an answer", call).await.unwrap());
    }
    assert!(outcomes[0].is_ok() && outcomes[1].is_ok(), "{outcomes:?}");
    assert!(
        outcomes[2..]
            .iter()
            .all(|outcome| matches!(outcome, Err(LinkError::OutcomeUnknown { .. }))),
        "{outcomes:?}"
    );
    let mut seen = vec![];
    for _ in 0..3 {
        seen.push(within("an event", events.recv()).await.unwrap());
    }
    assert!(
        matches!(
            &seen[..],
            [
                LinkEvent::Connected(_),
                LinkEvent::Disconnected { retry_in: Some(_), .. },
                LinkEvent::Connected(_)
            ]
        ),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_link_that_does_not_reconnect_ends_with_its_connection() {
    let (_server, link, mut events, peer) = linked().await;
    drop(peer);
    let mut last = None;
    while let Some(event) = within("the end", events.recv()).await {
        last = Some(event);
    }
    assert!(matches!(last, Some(LinkEvent::Fatal(LinkError::Closed { .. }))));
    assert!(matches!(
        link.call::<NodesList>(NoParams {}).await,
        Err(LinkError::Closed { .. })
    ));
}

#[tokio::test]
async fn a_slow_consumer_slows_the_gateway_and_loses_nothing() {
    const EVENTS: usize = 4000;
    let (_server, link, mut events, mut peer) = linked().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let pad = "x".repeat(10_000);
    let sender = tokio::spawn(async move {
        for number in 0..EVENTS {
            peer.send(
                json!({"type": "evt", "event": "logs.get", "payload": {"callId": number.to_string(), "pad": pad}, "seq": number}),
            )
            .await;
            counter.store(number + 1, Ordering::SeqCst);
        }
        peer
    });
    // The consumer does not read: the server can send no more although no error stops it. Paused time advances only when no task
    // can go on, so a sleep ends at a halt; the kernel may still hold bytes between the two sockets, so several must agree.
    tokio::time::pause();
    let (mut before, mut halts) = (0, 0);
    while halts < 100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = sent.load(Ordering::SeqCst);
        halts = if now > 0 && now == before { halts + 1 } else { 0 };
        before = now;
    }
    tokio::time::resume();
    assert!(
        before < EVENTS,
        "all events were taken although the consumer did not read"
    );
    let mut next = 0;
    while next < EVENTS {
        match within("an event", events.recv()).await.unwrap() {
            LinkEvent::Event {
                event: Event::LogsGet(event),
                seq,
            } => {
                assert_eq!(
                    (event.call_id.as_str(), seq),
                    (next.to_string().as_str(), Some(next as u64))
                );
                next += 1;
            }
            LinkEvent::Connected(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let mut peer = sender.await.unwrap();
    let (answer, ()) = tokio::join!(link.call::<NodesList>(NoParams {}), async {
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": [], "count": 0})).await;
    });
    assert!(answer.is_ok());
}

#[tokio::test]
async fn calls_work_without_a_consumer_of_events() {
    let (_server, link, events, mut peer) = linked().await;
    drop(events);
    for number in 0..1000 {
        peer.send(json!({"type": "evt", "event": "chat", "payload": number}))
            .await;
    }
    let (answer, ()) = tokio::join!(link.call::<NodesList>(NoParams {}), async {
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": [], "count": 0})).await;
    });
    assert!(answer.is_ok());
}

#[tokio::test]
async fn closing_sends_waiting_frames_and_a_close_frame() {
    let (_server, link, events, mut peer) = linked().await;
    let call = call::<ConfigGet>(&link, json!({"path": "x".repeat(100_000)}));
    tokio::task::yield_now().await;
    let closer = tokio::spawn(async move { link.close().await });
    assert_eq!(peer.request().await["method"], "config.get");
    assert_eq!(peer.closing().await.0, 1000);
    within("close", closer).await.unwrap();
    assert!(matches!(call.await.unwrap(), Err(LinkError::Closed { .. })));
    drop(events);
}

#[tokio::test]
async fn frames_that_the_gateway_has_not_read_are_written_before_the_close_frame() {
    // More than the kernel holds between two sockets.
    const FRAMES: usize = 24;
    let (_server, link, _events, mut peer) = linked().await;
    let mut calls = vec![];
    for _ in 0..FRAMES {
        calls.push(call::<ConfigGet>(&link, json!({"path": "x".repeat(1_000_000)})));
    }
    tokio::task::yield_now().await;
    let closer = tokio::spawn(async move { link.close().await });
    for call in calls {
        let outcome = within("the end of a call", call).await.unwrap();
        assert!(matches!(outcome, Err(LinkError::Closed { .. })), "{outcome:?}");
    }
    let mut frames = 0;
    let read = async {
        while let Message::Text(_) = peer.0.next().await.unwrap().unwrap() {
            frames += 1;
        }
    };
    within("the close frame", read).await;
    assert_eq!(frames, FRAMES);
    drop(peer);
    within("close", closer).await.unwrap();
}

#[tokio::test]
async fn closing_waits_for_the_close_frame_of_the_gateway() {
    let (_server, link, _events, mut peer) = linked().await;
    let closer = tokio::spawn(async move { link.close().await });
    assert_eq!(peer.closing().await.0, 1000);
    // Its answer leaves with the next read or write.
    assert!(!closer.is_finished(), "the socket is open");
    while within("the end", peer.0.next()).await.is_some() {}
    within("close", closer).await.unwrap();
}

#[tokio::test]
async fn a_link_closes_when_its_last_handle_is_dropped() {
    let (_server, link, mut events, mut peer) = linked().await;
    let clone = link.clone();
    drop(link);
    let (answer, ()) = tokio::join!(clone.call::<NodesList>(NoParams {}), async {
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": [], "count": 0})).await;
    });
    assert!(answer.is_ok());
    drop(clone);
    assert_eq!(peer.closing().await.0, 1000);
    drop(peer);
    while within("the end", events.recv()).await.is_some() {}
}

#[tokio::test]
async fn p19_a_request_that_is_too_large_fails_alone() {
    let (_server, link, _events, mut peer) = linked().await;
    let error = link
        .call::<ConfigGet>(ConfigGetParams {
            path: Some("x".repeat(1_100_000)),
        })
        .await
        .unwrap_err();
    assert_eq!((error.reason(), error.exit_status()), ("protocol.too_large", 2));
    let (answer, ()) = tokio::join!(link.call::<NodesList>(NoParams {}), async {
        let request = peer.request().await;
        peer.answer(&request, json!({"nodes": [], "count": 0})).await;
    });
    assert!(answer.is_ok());
}

#[tokio::test]
#[expect(clippy::result_large_err, reason = "the type of the callback is the library's")]
async fn h9_f13_the_token_goes_with_the_upgrade() {
    let server = Server::start().await;
    let sent = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&sent);
    let greet = async {
        let (socket, _) = within("a connection", server.listener.accept()).await.unwrap();
        let look = |request: &Request, response: Response| {
            *seen.lock().unwrap() = request.headers().get("authorization").cloned();
            Ok(response)
        };
        let mut peer = Peer(tokio_tungstenite::accept_hdr_async(socket, look).await.unwrap());
        let hello = peer.request().await;
        peer.welcome().await;
        hello
    };
    let (linked, hello) = tokio::join!(Link::connect(server.options()), greet);
    linked.unwrap();
    assert_eq!(hello["params"]["auth"]["token"], SECRET);
    let header = sent.lock().unwrap().take().unwrap();
    assert_eq!(header.to_str().unwrap(), format!("Bearer {SECRET}"));
}
