//! The link's machine with frames and times at its limits: answers that come late, early or twice, and the time at which a ping is due.

use serde_json::json;

use super::tests::{Rig, answers, connect, new_call, sent};
use super::*;

fn ping(conn: Conn) -> Vec<Output> {
    vec![Output::Send {
        conn,
        text: "ping".into(),
    }]
}
fn pong(conn: Conn) -> Input {
    Input::Text {
        conn,
        text: "pong".into(),
    }
}
fn failed(conn: Conn) -> Input {
    Input::DialFailed {
        conn,
        cause: "refused".into(),
        refusal: None,
    }
}

#[test]
fn fr6_a_ping_is_due_after_silence_of_either_side() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    rig.after(10_000);
    rig.call(1, true);
    rig.feed(pong(conn));
    assert_eq!(rig.after(19_999), vec![], "both sides spoke since the start");
    assert_eq!(rig.after(1), ping(conn));
}

#[test]
fn fr6_a_call_that_is_not_sent_does_not_put_a_ping_off() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    rig.after(10_000);
    rig.feed(pong(conn));
    rig.after(5_000);
    let large = NewCall {
        request: Box::new(Request::ConfigGet(gsv_protocol::types::ConfigGetParams {
            path: Some("x".repeat(1_100_000)),
        })),
        ..new_call(1, true, 30_000)
    };
    assert_eq!(
        answers(&rig.feed(Input::Call(large))),
        vec![(1, "protocol.too_large".into())]
    );
    assert_eq!(rig.after(5_000), ping(conn));
}

#[test]
fn fr6_any_frame_shows_that_the_gateway_is_alive() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    for round in 0..4 {
        assert_eq!(rig.after(20_000), ping(conn), "{round}");
        rig.feed(Input::Alive { conn });
    }
}

#[test]
fn fr6_silence_while_nothing_was_read_does_not_count() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    rig.after(20_000);
    rig.after(20_000);
    rig.feed(Input::Paused(true));
    rig.now += 60_000;
    rig.feed(Input::Paused(false));
    assert_eq!(rig.after(0), ping(conn), "a ping, and not the end");
}

#[test]
fn fr6_a_reader_that_was_not_paused_has_heard_nothing() {
    for (before, again) in [(false, false), (true, true)] {
        let mut rig = Rig::new(true, true);
        rig.up();
        rig.after(20_000);
        rig.after(20_000);
        rig.machine.paused = before;
        rig.feed(Input::Paused(again));
        rig.machine.paused = false;
        let out = rig.after(20_000);
        assert!(matches!(out.first(), Some(Output::Close { code: 4001, .. })), "{out:?}");
    }
}

#[test]
fn fr6_a_gateway_that_names_no_interval_is_pinged_at_the_usual_one() {
    for (said, want) in [
        (json!(0), 20_000),
        (json!(null), 20_000),
        (json!(5_000), 5_000),
        (json!(1), 1_000),
    ] {
        let mut rig = Rig::new(true, true);
        let conn = rig.dial();
        rig.feed(Input::Opened {
            conn,
            connect: connect(),
        });
        let hello = json!({"type":"hello-ok","protocol":1,"pingIntervalMs":said});
        rig.text(conn, &json!({"type":"res","id":"hello","ok":true,"payload":hello}));
        assert_eq!(rig.machine.next_tick(), Some(rig.now + want), "{said}");
    }
}

#[test]
fn a_failure_of_an_earlier_attempt_is_not_one_of_the_present() {
    let mut rig = Rig::new(true, true);
    let first = rig.dial();
    rig.feed(failed(first));
    let second = rig.dial();
    assert_eq!(rig.feed(failed(first)), vec![]);
    rig.feed(Input::Opened {
        conn: second,
        connect: connect(),
    });
    assert_eq!(rig.feed(failed(second)), vec![], "the socket is open");
}

#[test]
fn h1_an_event_before_hello_is_ignored() {
    let mut rig = Rig::new(true, true);
    let conn = rig.dial();
    rig.feed(Input::Opened {
        conn,
        connect: connect(),
    });
    let out = rig.text(conn, &json!({"type":"evt","event":"chat","payload":{}}));
    assert!(
        matches!(out.as_slice(), [Output::Ignored { what }] if what == "an event before hello-ok"),
        "{out:?}"
    );
}

#[test]
fn a_call_that_is_open_is_not_sent_a_second_time() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    assert_eq!(sent(&rig.call(1, true)).len(), 1);
    rig.after(10_000);
    rig.feed(pong(conn));
    assert_eq!(rig.call(1, true), vec![]);
    assert_eq!(rig.after(10_000), ping(conn), "nothing was sent for it");
}

#[test]
fn the_deadline_of_a_call_that_was_answered_does_not_hold_up_others() {
    let mut rig = Rig::new(true, true);
    let (conn, _) = rig.up();
    let id = sent(&rig.call(1, true))[0]["id"].clone();
    rig.call(2, true);
    rig.text(conn, &json!({"type":"res","id":id,"ok":true,"payload":1}));
    assert_eq!(answers(&rig.after(30_000)), vec![(2, "link.timeout".into())]);
}
