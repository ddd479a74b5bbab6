//! A gateway that a test plays frame by frame. Blocking, in the thread of the test.

use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::{DEADLINE, Home};

pub const TOKEN: &str = "gsv_admin_abcdefghij_0000000000000000000000000000000000000000000000000000000000000000";
pub const SESSION: &str = "agent:main:cli:dm:main";

pub struct FakeGateway {
    listener: TcpListener,
    pub port: u16,
    time_zone: Option<&'static str>,
    methods: &'static [&'static str],
}

pub struct Connection {
    socket: WebSocket<TcpStream>,
    pub hello: Value,
}

#[derive(Debug)]
pub struct Request {
    pub id: String,
    pub method: String,
    pub params: Value,
}

impl FakeGateway {
    pub fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self {
            listener,
            port,
            time_zone: None,
            methods: &["skills.upload"],
        }
    }

    /// Says in its greeting that it serves these methods.
    pub fn serving(mut self, methods: &'static [&'static str]) -> Self {
        self.methods = methods;
        self
    }

    /// Names the owner's time zone in its greeting.
    pub fn in_zone(mut self, name: &'static str) -> Self {
        self.time_zone = Some(name);
        self
    }

    /// A home whose local config has the address of this gateway.
    pub fn home(&self) -> Home {
        let home = Home::new();
        home.write_config(&format!("url = \"{}\"\ntoken = \"{TOKEN}\"\n", self.url()));
        home
    }

    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/ws", self.port)
    }

    /// The next client. Its `connect` is read and not answered.
    pub fn greet(&self) -> (Connection, Request) {
        let deadline = Instant::now() + DEADLINE;
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) => assert!(Instant::now() < deadline, "no client connected"),
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let socket = tungstenite::accept(stream).unwrap();
        let mut connection = Connection {
            socket,
            hello: Value::Null,
        };
        let request = connection.expect("connect");
        connection.hello = request.params.clone();
        (connection, request)
    }

    /// The next client, accepted.
    pub fn accept(&self) -> Connection {
        let (mut connection, request) = self.greet();
        let features = json!({"methods": self.methods, "events": []});
        let mut server = json!({"version": env!("CARGO_PKG_VERSION"), "connectionId": "c1"});
        if let Some(zone) = self.time_zone {
            server["timeZone"] = json!(zone);
        }
        connection.answer(
            &request,
            &json!({"type": "hello-ok", "protocol": 1, "server": server, "features": features}),
        );
        connection
    }

    /// The next client, refused.
    pub fn refuse(&self, code: u32, reason: &str, message: &str, close: u16) {
        let (mut connection, request) = self.greet();
        connection.error(&request, code, reason, message);
        connection.close(close, reason);
    }
}

impl Connection {
    pub fn expect(&mut self, method: &str) -> Request {
        let request = self.request();
        assert_eq!(request.method, method, "{request:?}");
        request
    }

    /// The next request of this method, after others that may come before and are not answered.
    pub fn expect_after(&mut self, others: &[&str], method: &str) -> Request {
        loop {
            let request = self.request();
            if request.method == method {
                return request;
            }
            assert!(others.contains(&request.method.as_str()), "{request:?}");
        }
    }

    /// The next request, whatever it is.
    pub fn request(&mut self) -> Request {
        let deadline = Instant::now() + DEADLINE;
        loop {
            // The client's pings end no wait.
            assert!(Instant::now() < deadline, "no request was sent");
            match self.socket.read().unwrap() {
                Message::Text(text) if text.as_str() == "ping" => self.socket.send(Message::text("pong")).unwrap(),
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(frame["type"], "req", "{frame}");
                    let field = |name: &str| frame[name].as_str().unwrap().to_owned();
                    return Request {
                        id: field("id"),
                        method: field("method"),
                        params: frame["params"].clone(),
                    };
                }
                Message::Close(frame) => panic!("closed ({frame:?}) instead of a request"),
                _ => {}
            }
        }
    }

    pub fn send(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).unwrap();
    }

    pub fn answer(&mut self, request: &Request, payload: &Value) {
        self.send(&json!({"type": "res", "id": request.id, "ok": true, "payload": payload}));
    }

    pub fn error(&mut self, request: &Request, code: u32, reason: &str, message: &str) {
        let error = json!({"code": code, "reason": reason, "message": message});
        self.send(&json!({"type": "res", "id": request.id, "ok": false, "error": error}));
    }

    pub fn event(&mut self, name: &str, payload: &Value) {
        self.send(&json!({"type": "evt", "event": name, "payload": payload}));
    }

    /// A chat event of this test's session.
    pub fn chat(&mut self, run: &str, fields: &Value) {
        self.event("chat", &chat(run, fields));
    }

    /// Reads `chat.send`, answers that the run has started, and returns its id.
    pub fn started(&mut self, seq: u64) -> String {
        let request = self.expect("chat.send");
        let run = request.params["runId"].as_str().unwrap().to_owned();
        self.answer(
            &request,
            &json!({"status": "started", "runId": run, "queued": false, "seq": seq}),
        );
        run
    }

    pub fn close(mut self, code: u16, reason: &str) {
        let frame = tungstenite::protocol::CloseFrame {
            code: code.into(),
            reason: reason.to_owned().into(),
        };
        self.socket.close(Some(frame)).unwrap();
        // Until the other side has closed as well.
        while self.socket.read().is_ok() {}
    }

    /// Breaks the connection without a close frame.
    pub fn cut(self) {
        let stream = self.socket.get_ref();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    }
}

pub fn chat(run: &str, fields: &Value) -> Value {
    let mut event = json!({"runId": run, "sessionKey": SESSION});
    event
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    event
}

pub fn delta(step: u32, attempt: u32, offset: u64, text: &str) -> Value {
    json!({"state": "delta", "step": step, "attempt": attempt, "offset": offset, "text": text})
}

pub fn whole(state: &str, seq: u64, step: u32, attempt: u32, text: &str) -> Value {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    json!({"state": state, "sessionSeq": seq, "step": step, "attempt": attempt, "message": message})
}
