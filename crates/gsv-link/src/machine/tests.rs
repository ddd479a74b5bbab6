//! The machine by examples, one rule a test.

use gsv_protocol::types::{ClientInfo, ConfigGetParams, ConfigSetParams, ConnectAuth, Mode};
use serde_json::{Value, json};

use super::backoff::backoff;
use super::*;

const CHUNK: Bytes = Bytes::from_static(b"\x01\0\0\0chunk");

#[test]
fn fr5_chunks_pass_both_ways_on_the_present_connection_alone() {
    let mut rig = Rig::new(true, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    assert!(matches!(rig.chunk(conn).as_slice(), [Output::Ignored { .. }]));
    assert_eq!(rig.feed(Input::SendChunk(CHUNK)), []);
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    assert_eq!(rig.chunk(conn), [Output::Chunk { frame: CHUNK }]);
    assert_eq!(rig.chunk(Conn(conn.0 + 1)), []);
    assert_eq!(
        rig.feed(Input::SendChunk(CHUNK)),
        [Output::SendChunk { conn, frame: CHUNK }]
    );
    rig.feed(Input::Closed {
        conn,
        code: None,
        reason: String::new(),
    });
    assert_eq!(rig.feed(Input::SendChunk(CHUNK)), []);
    assert_eq!(rig.chunk(conn), []);
}

/// A machine and its clock, driven by hand.
pub struct Rig {
    pub machine: Machine,
    pub now: Millis,
}

impl Rig {
    pub fn new(is_node: bool, reconnect: bool) -> Self {
        Self {
            machine: Machine::new(Config::new("ws://gateway/ws".into(), is_node, reconnect)),
            now: 1_000,
        }
    }

    pub fn feed(&mut self, input: Input) -> Vec<Output> {
        self.machine.handle(self.now, 0.5, input);
        std::iter::from_fn(|| self.machine.poll()).collect()
    }

    pub fn after(&mut self, ms: Millis) -> Vec<Output> {
        self.now += ms;
        self.feed(Input::Tick)
    }

    pub fn dial(&mut self) -> Conn {
        let out = if matches!(self.machine.phase, Phase::Idle) {
            self.feed(Input::Start)
        } else {
            self.run_to_dial()
        };
        match out.as_slice() {
            [Output::Dial { conn }] => *conn,
            other => panic!("{other:?}"),
        }
    }

    fn run_to_dial(&mut self) -> Vec<Output> {
        let at = self.machine.next_tick().unwrap();
        self.after(at - self.now)
    }

    pub fn up(&mut self) -> (Conn, Vec<Output>) {
        let conn = self.dial();
        let out = self.feed(Input::Opened {
            conn,
            connect: connect(),
        });
        assert!(
            matches!(out.as_slice(), [Output::Send { text, .. }] if text.contains("\"connect\"")),
            "{out:?}"
        );
        let mut out = self.text(
            conn,
            &json!({"type":"res","id":"hello","ok":true,"payload":{"type":"hello-ok","protocol":1}}),
        );
        assert!(matches!(out.remove(0), Output::Up { .. }));
        (conn, out)
    }

    pub fn chunk(&mut self, conn: Conn) -> Vec<Output> {
        self.feed(Input::Chunk { conn, frame: CHUNK })
    }

    pub fn text(&mut self, conn: Conn, frame: &Value) -> Vec<Output> {
        self.feed(Input::Text {
            conn,
            text: frame.to_string(),
        })
    }

    pub fn call(&mut self, key: u64, resend: bool) -> Vec<Output> {
        self.feed(Input::Call(new_call(key, resend, 30_000)))
    }

    fn refuse(&mut self, code: u32, reason: &str, retryable: bool) -> Vec<Output> {
        let conn = self.dial();
        self.feed(Input::Opened {
            conn,
            connect: connect(),
        });
        let error = json!({"code": code, "reason": reason, "message": "no", "retryable": retryable});
        self.text(conn, &json!({"type":"res","id":"hello","ok":false,"error":error}))
    }
}

/// The params of a client's `connect`.
pub fn connect() -> Box<ConnectParams> {
    Box::new(ConnectParams {
        min_protocol: 1,
        max_protocol: 1,
        client: ClientInfo {
            id: "test".into(),
            version: "1".into(),
            platform: "test".into(),
            mode: Mode::Client,
            channel: None,
            account_id: None,
        },
        tools: None,
        node_runtime: None,
        auth: None,
        resume: None,
        ledger: None,
        fingerprint: None,
    })
}

/// A call whose frame names its key.
pub fn new_call(key: u64, resend: bool, timeout_ms: Millis) -> NewCall {
    NewCall {
        key: CallKey(key),
        request: Box::new(Request::ConfigGet(ConfigGetParams {
            path: Some(key.to_string()),
        })),
        resend,
        timeout_ms,
    }
}

pub fn sent(out: &[Output]) -> Vec<Value> {
    let texts = out.iter().filter_map(|output| match output {
        Output::Send { text, .. } => Some(text),
        _ => None,
    });
    texts.filter_map(|text| serde_json::from_str(text).ok()).collect()
}
pub fn answers(out: &[Output]) -> Vec<(u64, String)> {
    let answers = out.iter().filter_map(|output| match output {
        Output::Answer { key, outcome } => Some((
            key.0,
            outcome
                .as_ref()
                .map_or_else(|error| error.reason().to_owned(), |json| json.as_str().to_owned()),
        )),
        _ => None,
    });
    answers.collect()
}
pub fn retry(out: &[Output]) -> Option<Millis> {
    out.iter().find_map(|output| match output {
        Output::Down { retry_in_ms, .. } => *retry_in_ms,
        _ => None,
    })
}
/// The first output closes the socket, with code 1000 and this reason.
fn closes(out: &[Output], why: &str) -> bool {
    matches!(out.first(), Some(Output::Close { code: 1000, reason, .. }) if reason == why)
}
pub fn stop_reason(out: &[Output]) -> Option<String> {
    match out.last() {
        Some(Output::Stopped { error }) => Some(error.as_ref().map_or("asked", |error| error.reason()).to_owned()),
        _ => None,
    }
}

#[test]
fn h1_connect_is_the_first_frame_and_calls_wait_for_hello() {
    let mut rig = Rig::new(false, true);
    assert_eq!(rig.call(1, false), vec![]);
    let (_, out) = rig.up();
    assert_eq!(
        sent(&out),
        vec![json!({"type":"req","id":"1","method":"config.get","params":{"path":"1"}})]
    );
}

#[test]
fn fr4_answers_may_come_in_any_order_and_each_reaches_its_call_once() {
    let mut rig = Rig::new(false, true);
    let (conn, _) = rig.up();
    let first = sent(&rig.call(1, false))[0]["id"].clone();
    let second = sent(&rig.call(2, false))[0]["id"].clone();
    assert_eq!(
        answers(&rig.text(conn, &json!({"type":"res","id":second,"ok":true,"payload":2}))),
        vec![(2, "2".into())]
    );
    assert_eq!(
        answers(&rig.text(conn, &json!({"type":"res","id":second,"ok":true,"payload":2}))),
        vec![]
    );
    let error = json!({"code":470,"reason":"tool.unknown","message":"no such tool"});
    assert_eq!(
        answers(&rig.text(conn, &json!({"type":"res","id":first,"ok":false,"error":error}))),
        vec![(1, "tool.unknown".into())]
    );
    assert_eq!(rig.machine.open_calls(), 0);
}

#[test]
fn after_a_broken_link_only_repeatable_calls_are_resent_with_the_same_content() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    let before = sent(&rig.call(1, true));
    rig.call(2, false);
    let out = rig.feed(Input::Closed {
        conn,
        code: None,
        reason: String::new(),
    });
    assert_eq!(answers(&out), vec![(2, "link.outcome_unknown".into())]);
    let (_, out) = rig.up();
    let again = sent(&out);
    assert_eq!(again.len(), 1);
    assert_eq!(
        (&again[0]["method"], &again[0]["params"]),
        (&before[0]["method"], &before[0]["params"])
    );
    assert_ne!(again[0]["id"], before[0]["id"]);
}

#[test]
fn a_call_has_a_deadline_whether_it_was_sent_or_not() {
    let mut rig = Rig::new(false, true);
    rig.call(1, false);
    assert_eq!(answers(&rig.after(30_000)), vec![(1, "link.timeout".into())]);
    let mut rig = Rig::new(false, true);
    let (conn, _) = rig.up();
    let id = sent(&rig.call(1, false))[0]["id"].clone();
    let out = rig.after(30_000);
    assert!(
        matches!(
            &out[0],
            Output::Answer {
                outcome: Err(LinkError::Timeout { uncertain: true, .. }),
                ..
            }
        ),
        "{out:?}"
    );
    assert_eq!(
        answers(&rig.text(conn, &json!({"type":"res","id":id,"ok":true}))),
        vec![]
    );
}

#[test]
fn fr6_silence_is_answered_with_pings_and_two_misses_close_the_link() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    let ping = vec![Output::Send {
        conn,
        text: "ping".into(),
    }];
    assert_eq!(rig.after(19_999), vec![]);
    assert_eq!(rig.after(1), ping);
    rig.feed(Input::Text {
        conn,
        text: "pong".into(),
    });
    assert_eq!(rig.after(20_000), ping);
    assert_eq!(rig.after(20_000), ping);
    let out = rig.after(20_000);
    assert!(matches!(&out[0], Output::Close { code: 4001, .. }), "{out:?}");
    assert!(retry(&out).is_some());
}

#[test]
fn a_slow_consumer_does_not_make_the_gateway_look_dead() {
    let mut rig = Rig::new(false, true);
    let (conn, _) = rig.up();
    rig.feed(Input::Paused(true));
    assert_eq!(rig.after(600_000), vec![]);
    rig.feed(Input::Paused(false));
    assert_eq!(
        rig.after(20_000),
        vec![Output::Send {
            conn,
            text: "ping".into()
        }]
    );
}

#[test]
fn no_hello_in_time_is_a_failure() {
    let mut rig = Rig::new(false, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    let out = rig.after(10_000);
    assert!(matches!(&out[0], Output::Close { code: 4008, .. }), "{out:?}");
    assert!(retry(&out).is_some());
    let mut rig = Rig::new(false, false);
    rig.dial();
    assert_eq!(stop_reason(&rig.after(10_000)).as_deref(), Some("link.unreachable"));
}

#[test]
fn h2_h3_h6_a_refused_token_stops_a_client_and_a_node() {
    for (code, reason) in [(401, "auth.required"), (403, "auth.forbidden"), (405, "auth.bound")] {
        for is_node in [false, true] {
            let out = Rig::new(is_node, true).refuse(code, reason, false);
            assert_eq!((stop_reason(&out).as_deref(), retry(&out)), (Some(reason), None));
            assert!(closes(&out, "refused"), "{out:?}");
        }
    }
}

#[test]
fn h2_h6_a_node_waits_for_a_gateway_that_has_to_be_repaired() {
    for (code, reason) in [(102, "protocol.version"), (503, "auth.not_configured")] {
        let out = Rig::new(false, true).refuse(code, reason, false);
        assert_eq!(stop_reason(&out).as_deref(), Some(reason));
        let out = Rig::new(true, true).refuse(code, reason, false);
        assert_eq!((stop_reason(&out), retry(&out)), (None, Some(30_000)), "{reason}");
    }
    for is_node in [false, true] {
        let out = Rig::new(is_node, true).refuse(429, "limit.rate", true);
        assert!(stop_reason(&out).is_none() && retry(&out).unwrap() < 30_000);
    }
}

#[test]
fn a_refusal_without_a_reason_is_known_by_its_code() {
    let mut rig = Rig::new(false, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    let out = rig.text(
        conn,
        &json!({"type":"res","id":"hello","ok":false,"error":{"code":401,"message":"Unauthorized"}}),
    );
    assert_eq!(stop_reason(&out).as_deref(), Some("auth.required"));
}

#[test]
fn a_close_code_of_the_handshake_is_a_refusal() {
    let mut rig = Rig::new(false, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    let out = rig.feed(Input::Closed {
        conn,
        code: Some(4003),
        reason: "bound".into(),
    });
    assert_eq!(stop_reason(&out).as_deref(), Some("auth.forbidden"));
}

#[test]
fn h4_a_replaced_node_stops_and_does_not_reconnect() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    rig.call(1, true);
    let out = rig.feed(Input::Closed {
        conn,
        code: Some(1000),
        reason: "Replaced by a newer connection".into(),
    });
    assert_eq!(stop_reason(&out).as_deref(), Some("link.replaced"));
    assert_eq!(answers(&out), vec![(1, "link.replaced".into())]);
    assert_eq!(rig.machine.next_tick(), None);
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    let out = rig.feed(Input::Closed {
        conn,
        code: Some(1000),
        reason: "going away".into(),
    });
    assert!(retry(&out).is_some());
}

#[test]
fn h6_another_protocol_version_is_refused() {
    let mut rig = Rig::new(false, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    let out = rig.text(
        conn,
        &json!({"type":"res","id":"hello","ok":true,"payload":{"type":"hello-ok","protocol":2}}),
    );
    assert_eq!(stop_reason(&out).as_deref(), Some("protocol.version"));
    assert!(closes(&out, "protocol version"), "{out:?}");
}

#[test]
fn p19_a_call_over_a_limit_is_answered_before_anything_is_sent() {
    let mut rig = Rig::new(false, true);
    rig.up();
    let big = |bytes: usize| NewCall {
        request: Box::new(Request::ConfigSet(ConfigSetParams {
            path: "p".into(),
            value: json!("x".repeat(bytes)),
        })),
        ..new_call(9, true, 1_000)
    };
    let longest_id = u64::MAX.to_string();
    let around = json!({"type":"req","id":longest_id,"method":"config.set","params":{"path":"p","value":""}});
    let room = 1_048_576 - around.to_string().len();
    assert_eq!(
        answers(&rig.feed(Input::Call(big(room + 1)))),
        vec![(9, "protocol.too_large".into())]
    );
    assert_eq!(sent(&rig.feed(Input::Call(big(room)))).len(), 1);
    for key in 100..100 + 1023 {
        rig.call(key, true);
    }
    assert_eq!(answers(&rig.call(5000, true)), vec![(5000, "link.busy".into())]);
}

#[test]
fn shutdown_answers_every_call_and_closes_the_socket() {
    let mut rig = Rig::new(false, true);
    let (conn, _) = rig.up();
    rig.call(1, true);
    rig.call(2, false);
    let out = rig.feed(Input::Shutdown { reason: "bye".into() });
    assert_eq!(
        out[0],
        Output::Close {
            conn,
            code: 1000,
            reason: "bye".into()
        }
    );
    assert_eq!(
        answers(&out),
        vec![(1, "link.closed".into()), (2, "link.outcome_unknown".into())]
    );
    assert_eq!(stop_reason(&out).as_deref(), Some("asked"));
    assert_eq!(answers(&rig.call(3, true)), vec![(3, "link.closed".into())]);
}

#[test]
fn g3_waits_grow_with_failures_and_are_short_after_each_working_link() {
    let mut rig = Rig::new(true, true);
    let mut waits = vec![];
    for _ in 0..9 {
        let conn = rig.dial();
        waits.extend(retry(&rig.feed(Input::DialFailed {
            conn,
            cause: "refused".into(),
            refusal: None,
        })));
    }
    assert_eq!(waits, vec![750, 1250, 2250, 4250, 8250, 15_250, 15_250, 15_250, 15_250]);
    for _ in 0..9 {
        let (conn, _) = rig.up();
        assert_eq!(
            retry(&rig.feed(Input::Closed {
                conn,
                code: None,
                reason: String::new()
            })),
            Some(750)
        );
    }
}

#[test]
fn w26_backoff_uses_the_whole_span() {
    assert_eq!(backoff(500, 30_000, 40, 0.0), 500);
    assert_eq!(backoff(500, 30_000, 40, 1.0), 30_000);
    assert_eq!(backoff(500, 30_000, 0, f64::NAN), 750);
}

#[test]
fn fr1_garbage_and_unexpected_frames_never_break_the_link() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    for text in [
        "",
        "{",
        "[1]",
        r#"{"type":"zap"}"#,
        r#"{"type":"req","id":"1","method":"x"}"#,
        r#"{"type":"res","id":"none","ok":false,"error":{"code":1,"message":"m"}}"#,
    ] {
        let out = rig.feed(Input::Text {
            conn,
            text: text.into(),
        });
        assert!(matches!(out.as_slice(), [Output::Ignored { .. }]), "{text}: {out:?}");
    }
    // The answer to a call that timed out.
    let late = rig.text(conn, &json!({"type":"res","id":"none","ok":true}));
    assert_eq!(late, vec![]);
    assert!(matches!(rig.machine.phase, Phase::Ready(_)));
}

#[test]
fn h8_an_oversized_connect_is_not_sent() {
    let mut rig = Rig::new(false, true);
    let conn = rig.dial();
    let out = rig.feed(Input::Opened {
        conn,
        connect: Box::new(ConnectParams {
            auth: Some(ConnectAuth {
                token: Some("x".repeat(5000)),
            }),
            ..*connect()
        }),
    });
    assert_eq!(stop_reason(&out).as_deref(), Some("protocol.bad_connect"));
    assert!(closes(&out, "bad connect"), "{out:?}");
    assert_eq!(sent(&out), Vec::<Value>::new());
}
