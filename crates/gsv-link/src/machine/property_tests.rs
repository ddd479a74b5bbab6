//! In every order of inputs: each call is answered exactly once, calls that must not run twice are sent once, waits stay
//! in bounds, and the machine always waits for something.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::backoff::backoff;
use super::tests::{connect, new_call};
use super::*;

#[derive(Debug, Clone)]
enum Step {
    Call { resend: bool, timeout_ms: Millis },
    Forget(usize),
    Opened,
    DialFailed { refused: bool },
    Hello,
    Refuse { reason: usize },
    Answer { which: usize, ok: bool },
    AnswerAgain(usize),
    Event,
    Chunk { incoming: bool },
    Garbage(String),
    Close(Option<u16>),
    StaleText,
    Pause(bool),
    Wait(Millis),
    WaitForTick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 1u64..60_000).prop_map(|(resend, timeout_ms)| Step::Call { resend, timeout_ms }),
        1 => (0usize..8).prop_map(Step::Forget),
        4 => Just(Step::Opened),
        1 => any::<bool>().prop_map(|refused| Step::DialFailed { refused }),
        4 => Just(Step::Hello),
        1 => (0usize..4).prop_map(|reason| Step::Refuse { reason }),
        4 => (0usize..8, any::<bool>()).prop_map(|(which, ok)| Step::Answer { which, ok }),
        1 => (0usize..8).prop_map(Step::AnswerAgain),
        1 => Just(Step::Event),
        1 => any::<bool>().prop_map(|incoming| Step::Chunk { incoming }),
        1 => ".{0,40}".prop_map(Step::Garbage),
        2 => prop_oneof![Just(None), Just(Some(1000)), Just(Some(1006)), Just(Some(4001))].prop_map(Step::Close),
        1 => Just(Step::StaleText),
        1 => any::<bool>().prop_map(Step::Pause),
        3 => (0u64..40_000).prop_map(Step::Wait),
        4 => Just(Step::WaitForTick),
    ]
}

/// The machine's environment, which records what it sees.
struct World {
    machine: Machine,
    now: Millis,
    paused: bool,
    socket: Option<Conn>,
    greeted: bool,
    /// Frames on the current socket that no answer was given to: (frame id, call).
    unanswered: Vec<(String, u64)>,
    answered_ids: Vec<String>,
    all_ids: BTreeSet<String>,
    resend: BTreeMap<u64, bool>,
    contents: BTreeMap<u64, Value>,
    forgotten: BTreeSet<u64>,
    answers: BTreeMap<u64, u32>,
    sends: BTreeMap<u64, u32>,
    stopped: bool,
}

impl World {
    fn new(is_node: bool, reconnect: bool) -> Self {
        Self {
            machine: Machine::new(Config::new("ws://g/ws".into(), is_node, reconnect)),
            now: 0,
            paused: false,
            socket: None,
            greeted: false,
            unanswered: vec![],
            answered_ids: vec![],
            all_ids: BTreeSet::new(),
            resend: BTreeMap::new(),
            contents: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            answers: BTreeMap::new(),
            sends: BTreeMap::new(),
            stopped: false,
        }
    }

    fn feed(&mut self, jitter: f64, input: Input) {
        self.machine.handle(self.now, jitter, input);
        while let Some(output) = self.machine.poll() {
            assert!(
                !self.stopped || matches!(output, Output::Answer { .. }),
                "after the end: {output:?}"
            );
            self.see(output);
        }
        assert_eq!(self.machine.is_stopped(), self.stopped);
        let waits_for_reader = self.paused && self.greeted;
        if !self.stopped && !waits_for_reader {
            assert!(self.machine.next_tick().is_some(), "the machine waits for nothing");
        }
    }

    fn see(&mut self, output: Output) {
        match output {
            Output::Dial { conn } => {
                assert_eq!(self.socket, None, "two sockets at once");
                self.socket = Some(conn);
                self.greeted = false;
            }
            Output::Send { conn, text } => {
                assert_eq!(self.socket, Some(conn), "sent on a socket that is gone");
                if let Ok(frame) = serde_json::from_str::<Value>(&text) {
                    self.see_frame(&frame);
                }
            }
            Output::Close { conn, .. } => {
                assert_eq!(self.socket, Some(conn));
                self.hang_up();
            }
            Output::Answer { key, outcome } => {
                assert!(!self.forgotten.contains(&key.0), "answered after it was forgotten");
                *self.answers.entry(key.0).or_default() += 1;
                assert_eq!(self.answers[&key.0], 1, "answered twice");
                if let Err(LinkError::OutcomeUnknown { .. }) = outcome {
                    assert!(!self.resend[&key.0] && self.sends.contains_key(&key.0));
                }
            }
            Output::Up { .. } => self.greeted = true,
            Output::Down { retry_in_ms, .. } => {
                self.hang_up();
                if let Some(wait) = retry_in_ms {
                    assert!((500..=30_000).contains(&wait), "{wait}");
                    assert_eq!(self.machine.next_tick().map(|at| at <= self.now + wait), Some(true));
                }
            }
            Output::SendChunk { conn, .. } => {
                assert!(self.greeted && self.socket == Some(conn), "a chunk before hello-ok");
            }
            Output::Chunk { .. } => assert!(self.greeted, "a chunk before hello-ok"),
            Output::Event { .. } | Output::Ignored { .. } => {}
            Output::Stopped { .. } => {
                self.hang_up();
                self.stopped = true;
            }
        }
    }

    fn see_frame(&mut self, frame: &Value) {
        let id = frame["id"].as_str().unwrap().to_owned();
        if id == "hello" {
            return;
        }
        assert!(self.greeted, "a call before hello-ok");
        assert!(self.all_ids.insert(id.clone()), "a frame id was used twice");
        let key: u64 = frame["params"]["path"].as_str().unwrap().parse().unwrap();
        assert!(
            !self.answers.contains_key(&key) && !self.forgotten.contains(&key),
            "sent after its end"
        );
        let mut content = frame.clone();
        content["id"] = Value::Null;
        assert_eq!(
            self.contents.entry(key).or_insert_with(|| content.clone()),
            &content,
            "sent again with another content"
        );
        *self.sends.entry(key).or_default() += 1;
        assert!(self.resend[&key] || self.sends[&key] == 1, "sent twice");
        self.unanswered.push((id, key));
    }

    fn hang_up(&mut self) {
        self.socket = None;
        self.greeted = false;
        self.unanswered.clear();
        self.answered_ids.clear();
    }

    #[expect(clippy::too_many_lines, reason = "one arm per step")]
    fn take(&mut self, jitter: f64, step: Step) {
        let text = |conn, frame: Value| Input::Text {
            conn,
            text: frame.to_string(),
        };
        match (step, self.socket) {
            (Step::Call { resend, timeout_ms }, _) => {
                let key = self.resend.len() as u64;
                self.resend.insert(key, resend);
                self.feed(jitter, Input::Call(new_call(key, resend, timeout_ms)));
            }
            (Step::Forget(which), _) => {
                let open: Vec<u64> = self
                    .resend
                    .keys()
                    .filter(|key| !self.answers.contains_key(key) && !self.forgotten.contains(key))
                    .copied()
                    .collect();
                if let Some(key) = open.get(which) {
                    // Deadlines that are due are answered before the machine hears of it.
                    self.feed(jitter, Input::Tick);
                    if !self.answers.contains_key(key) {
                        self.forgotten.insert(*key);
                        self.feed(jitter, Input::Forget { key: CallKey(*key) });
                    }
                }
            }
            (Step::Opened, Some(conn)) => self.feed(
                jitter,
                Input::Opened {
                    conn,
                    connect: connect(),
                },
            ),
            (Step::DialFailed { refused }, Some(conn)) => {
                let refusal = refused.then(|| gsv_protocol::errors::AUTH_REQUIRED.to_shape());
                self.feed(
                    jitter,
                    Input::DialFailed {
                        conn,
                        cause: "no".into(),
                        refusal,
                    },
                );
            }
            (Step::Hello, Some(conn)) => {
                self.feed(
                    jitter,
                    text(
                        conn,
                        json!({"type":"res","id":"hello","ok":true,"payload":{"type":"hello-ok","protocol":1}}),
                    ),
                );
            }
            (Step::Refuse { reason }, Some(conn)) if !self.greeted => {
                let (code, reason) = [
                    (401, "auth.required"),
                    (429, "limit.rate"),
                    (405, "auth.bound"),
                    (500, "internal"),
                ][reason];
                let error = json!({"code": code, "reason": reason, "message": "no", "retryable": code == 429});
                self.feed(
                    jitter,
                    text(conn, json!({"type":"res","id":"hello","ok":false,"error":error})),
                );
            }
            (Step::Answer { which, ok }, Some(conn)) if which < self.unanswered.len() => {
                let (id, _) = self.unanswered.remove(which);
                self.answered_ids.push(id.clone());
                let frame = if ok {
                    json!({"type":"res","id":id,"ok":true,"payload":1})
                } else {
                    json!({"type":"res","id":id,"ok":false,"error":{"code":500,"message":"x"}})
                };
                self.feed(jitter, text(conn, frame));
            }
            (Step::AnswerAgain(which), Some(conn)) => {
                if let Some(id) = self.answered_ids.get(which).cloned() {
                    self.feed(jitter, text(conn, json!({"type":"res","id":id,"ok":true})));
                }
            }
            (Step::Event, Some(conn)) => {
                self.feed(jitter, text(conn, json!({"type":"evt","event":"chat","payload":{}})));
            }
            (Step::Chunk { incoming: true }, Some(conn)) => {
                let frame = Bytes::from_static(b"1234x");
                self.feed(jitter, Input::Chunk { conn, frame });
            }
            (Step::Chunk { .. }, _) => self.feed(jitter, Input::SendChunk(Bytes::from_static(b"1234x"))),
            (Step::Garbage(garbage), Some(conn)) => self.feed(jitter, Input::Text { conn, text: garbage }),
            (Step::Close(code), Some(conn)) => {
                let reason = if code == Some(1000) {
                    "replaced by a newer connection"
                } else {
                    ""
                };
                self.feed(
                    jitter,
                    Input::Closed {
                        conn,
                        code,
                        reason: reason.into(),
                    },
                );
            }
            (Step::StaleText, _) => self.feed(jitter, text(Conn(0), json!({"type":"res","id":"1","ok":true}))),
            (Step::Pause(paused), _) => {
                self.paused = paused;
                self.feed(jitter, Input::Paused(paused));
            }
            (Step::Wait(ms), _) => {
                self.now += ms;
                self.feed(jitter, Input::Tick);
            }
            (Step::WaitForTick, _) => {
                if let Some(at) = self.machine.next_tick() {
                    self.now = self.now.max(at);
                    self.feed(jitter, Input::Tick);
                    assert!(
                        self.machine.next_tick().is_none_or(|next| next > self.now),
                        "a tick that changes nothing"
                    );
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_exactly_once(
        is_node in any::<bool>(), reconnect in any::<bool>(), steps in prop::collection::vec((step(), 0.0f64..1.0), 1..120)
    ) {
        let mut world = World::new(is_node, reconnect);
        world.feed(0.5, Input::Start);
        for (step, jitter) in steps {
            world.take(jitter, step);
        }
        world.feed(0.5, Input::Shutdown { reason: "end".into() });
        for key in world.resend.keys() {
            let answers = world.answers.get(key).copied().unwrap_or(0);
            prop_assert_eq!(answers, u32::from(!world.forgotten.contains(key)), "call {}", key);
        }
        prop_assert_eq!(world.machine.open_calls(), 0);
        prop_assert_eq!(world.machine.next_tick(), None);
    }

    /// When the gateway is reachable again, the node connects and its calls are answered.
    #[test]
    fn p12_a_node_always_comes_back(steps in prop::collection::vec((step(), 0.0f64..1.0), 1..80)) {
        let mut world = World::new(true, true);
        world.feed(0.5, Input::Start);
        for (step, jitter) in steps {
            world.take(jitter, step);
        }
        prop_assume!(!world.stopped);
        world.take(0.5, Step::Pause(false));
        for _ in 0..8 {
            if world.greeted {
                break;
            }
            world.take(0.5, Step::Opened);
            world.take(0.5, Step::Hello);
            if !world.greeted {
                world.take(0.5, Step::WaitForTick);
            }
        }
        // Calls with deadlines may take ticks away, so the bound is generous.
        for _ in 0..200 {
            if world.greeted {
                break;
            }
            world.take(0.5, Step::WaitForTick);
            world.take(0.5, Step::Opened);
            world.take(0.5, Step::Hello);
        }
        prop_assert!(world.greeted);
        world.take(0.5, Step::Call { resend: false, timeout_ms: 1000 });
        let last = world.unanswered.len() - 1;
        world.take(0.5, Step::Answer { which: last, ok: true });
        let key = world.resend.len() as u64 - 1;
        prop_assert_eq!(world.answers.get(&key), Some(&1));
    }

    #[test]
    fn waits_stay_in_bounds(failures in any::<u32>(), jitter in any::<f64>()) {
        let wait = backoff(500, 30_000, failures, jitter);
        prop_assert!((500..=30_000).contains(&wait));
    }
}
