//! A gateway that a test plays: it takes the connections of a node and answers as the test says.

use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::within;

pub struct Gateway {
    pub url: String,
    sockets: mpsc::UnboundedReceiver<TcpStream>,
}

impl Gateway {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let (sink, sockets) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                if sink.send(socket).is_err() {
                    break;
                }
            }
        });
        Self { url, sockets }
    }

    /// The next connection, after its `connect` request and before any answer.
    pub async fn knock(&mut self) -> Conn {
        let socket = within("a connection", self.sockets.recv()).await.unwrap();
        let mut conn = Conn::open(socket).await;
        let hello = conn.request("connect").await;
        conn.hello = hello.params;
        conn
    }

    /// The next connection, answered with hello-ok.
    pub async fn accept(&mut self) -> Conn {
        let mut conn = self.knock().await;
        conn.welcome();
        conn
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    pub id: String,
    pub method: String,
    pub params: Value,
}

enum Order {
    Send(Message),
    Drop,
}

/// One connection of a node. `tool.progress` is answered at once and recorded.
pub struct Conn {
    pub hello: Value,
    pub progress: Vec<Value>,
    orders: mpsc::UnboundedSender<Order>,
    requests: mpsc::UnboundedReceiver<Request>,
    set_aside: VecDeque<Request>,
    gone: Option<oneshot::Receiver<()>>,
}

impl Conn {
    async fn open(socket: TcpStream) -> Self {
        let socket = tokio_tungstenite::accept_async(socket).await.unwrap();
        let (orders, mut order_queue) = mpsc::unbounded_channel();
        let (request_sink, requests) = mpsc::unbounded_channel();
        let (gone_sink, gone) = oneshot::channel();
        tokio::spawn(async move {
            let _gone = gone_sink;
            let (mut sink, mut stream) = socket.split();
            loop {
                tokio::select! {
                    order = order_queue.recv() => match order {
                        Some(Order::Send(message)) => if sink.send(message).await.is_err() { break },
                        Some(Order::Drop) | None => break,
                    },
                    message = stream.next() => match message {
                        Some(Ok(Message::Text(text))) if text.as_str() == "ping" => {
                            let _ = sink.send(Message::text("pong")).await;
                        }
                        Some(Ok(Message::Text(text))) => {
                            let frame: Value = serde_json::from_str(&text).unwrap();
                            assert_eq!(frame["type"], "req", "a node only sends requests: {frame}");
                            let text = |name: &str| frame[name].as_str().unwrap().to_owned();
                            let request = Request { id: text("id"), method: text("method"), params: frame["params"].clone() };
                            if request.method == "tool.progress" {
                                let answer = json!({"type": "res", "id": request.id, "ok": true, "payload": {"ok": true}});
                                let _ = sink.send(Message::text(answer.to_string())).await;
                            }
                            if request_sink.send(request).is_err() { break }
                        }
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => break,
                    },
                }
            }
        });
        Self {
            hello: Value::Null,
            progress: vec![],
            orders,
            requests,
            set_aside: VecDeque::new(),
            gone: Some(gone),
        }
    }

    pub fn send_text(&self, text: &str) {
        self.orders.send(Order::Send(Message::text(text))).unwrap();
    }

    pub fn send(&self, frame: &Value) {
        self.send_text(&frame.to_string());
    }

    pub fn answer(&self, request: &Request, payload: Value) {
        self.send(&json!({"type": "res", "id": request.id, "ok": true, "payload": payload}));
    }

    pub fn refuse(&self, id: &str, code: u32, reason: &str, retryable: bool) {
        let error =
            json!({"code": code, "reason": reason, "message": format!("refused: {reason}"), "retryable": retryable});
        self.send(&json!({"type": "res", "id": id, "ok": false, "error": error}));
    }

    pub fn welcome(&mut self) {
        let hello = json!({
            "type": "hello-ok", "protocol": 1, "server": {"version": "9.9", "connectionId": "c1"},
            "features": {"methods": [], "events": []},
        });
        self.send(&json!({"type": "res", "id": "hello", "ok": true, "payload": hello}));
    }

    pub fn event(&self, name: &str, payload: Value) {
        self.send(&json!({"type": "evt", "event": name, "payload": payload}));
    }

    pub fn invoke(&self, call_id: &str, tool: &str, args: Value) {
        self.event("tool.invoke", json!({"callId": call_id, "tool": tool, "args": args}));
    }

    /// The next request that `wanted` accepts; others are kept for later.
    pub async fn request_where(&mut self, what: &str, wanted: impl Fn(&Request) -> bool) -> Request {
        if let Some(at) = self.set_aside.iter().position(&wanted) {
            return self.set_aside.remove(at).unwrap();
        }
        within(what, async {
            loop {
                let request = self
                    .requests
                    .recv()
                    .await
                    .unwrap_or_else(|| panic!("{what}: the connection ended"));
                if request.method == "tool.progress" {
                    self.progress.push(request.params.clone());
                }
                if wanted(&request) {
                    return request;
                }
                if request.method != "tool.progress" {
                    self.set_aside.push_back(request);
                }
            }
        })
        .await
    }

    pub async fn request(&mut self, method: &str) -> Request {
        self.request_where(method, |request| request.method == method).await
    }

    /// The next result, not acknowledged.
    pub async fn result(&mut self) -> Request {
        self.request("tool.result").await
    }

    /// The result of one call, not acknowledged.
    pub async fn result_of(&mut self, call_id: &str) -> Request {
        self.request_where(&format!("the result of {call_id}"), |request| {
            request.method == "tool.result" && request.params["callId"] == call_id
        })
        .await
    }

    pub fn ack(&self, request: &Request) {
        self.answer(request, json!({"ok": true}));
    }

    /// Runs a call to its acknowledged end.
    pub async fn run(&mut self, call_id: &str, tool: &str, args: Value) -> Value {
        self.invoke(call_id, tool, args);
        let result = self.result_of(call_id).await;
        self.ack(&result);
        result.params
    }

    /// Waits until a call is in a phase, and gives that report.
    pub async fn phase(&mut self, call_id: &str, phase: &str) -> Value {
        let is_it = |params: &Value| params["callId"] == call_id && params["phase"] == phase;
        if let Some(known) = self.progress.iter().find(|params| is_it(params)) {
            return known.clone();
        }
        self.request_where(&format!("{call_id} {phase}"), |request| {
            request.method == "tool.progress" && is_it(&request.params)
        })
        .await
        .params
    }

    /// Returns when the node has handled everything that was sent before, because it answers a request for log lines.
    pub async fn settle(&mut self) {
        self.event("logs.get", json!({"callId": "settle", "lines": 1}));
        let request = self
            .request_where("log lines", |request| {
                request.method == "logs.result" && request.params["callId"] == "settle"
            })
            .await;
        self.ack(&request);
    }

    /// Requests that arrived and that the test has not read.
    pub fn untaken(&mut self, method: &str) -> Vec<Request> {
        while let Ok(request) = self.requests.try_recv() {
            if request.method == "tool.progress" {
                self.progress.push(request.params);
            } else {
                self.set_aside.push_back(request);
            }
        }
        self.set_aside
            .iter()
            .filter(|request| request.method == method)
            .cloned()
            .collect()
    }

    pub fn close(&self, code: u16, reason: &str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.to_owned().into(),
        };
        self.orders.send(Order::Send(Message::Close(Some(frame)))).unwrap();
    }

    /// Cuts the connection.
    pub async fn cut(mut self) {
        self.orders.send(Order::Drop).unwrap();
        let _ = within("the end of the connection", self.gone.take().unwrap()).await;
    }

    pub fn listed(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.hello["ledger"]["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| (text(&call["callId"]), text(&call["state"])))
            .collect()
    }
}
