//! A turn at a link that breaks, ends or is silent; and what the tests of questions and of typed lines share.

use super::*;
use gsv_link::LinkError;
use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, MessageId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[path = "turn_line_tests.rs"]
mod lines;
#[path = "turn_question_tests.rs"]
mod questions;

const SESSION: &str = "agent:main:main";

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn followed() -> Followed {
    Followed::new(SESSION.to_owned())
}

fn start(followed: &mut Followed, timeout: Option<Duration>) -> Turn<'_> {
    let request = Request {
        message: "go".to_owned(),
        files: Vec::new(),
        timeout,
        verbose: true,
        approve: Approve::Ask,
        while_busy: None,
        mode: None,
    };
    let ids = Ids::from("R", "M");
    let (turn, effects) = Turn::start(followed, request, ids);
    let [Effect::Send(params)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((params.message.as_str(), params.attachments.as_ref()), ("go", None));
    turn
}

fn sent(value: Value) -> Input {
    Input::Sent(Ok(read(value)))
}

fn accepted(seq: u64) -> Input {
    sent(json!({"status": "started", "runId": "R", "seq": seq}))
}

fn event(mut fields: Value) -> Value {
    let event = fields.as_object_mut().unwrap();
    event.entry("sessionKey").or_insert(json!(SESSION));
    event.entry("runId").or_insert(json!("R"));
    fields
}

fn chat(fields: Value) -> Input {
    Input::News(News::replayed(event(fields)).unwrap())
}

fn delta(offset: u64, text: &str) -> Input {
    chat(json!({"state": "delta", "step": 1, "attempt": 1, "offset": offset, "text": text}))
}

fn done(seq: u64, text: &str) -> Value {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    event(json!({"state": "final", "sessionSeq": seq, "step": 1, "attempt": 1, "message": message}))
}

fn caught_up(seq: u64, events: &[Value], more: &Value) -> Input {
    let mut answer = json!({"sessionKey": SESSION, "seq": seq, "events": events});
    answer
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Input::Subscribed(Ok(read(answer)))
}

fn lost() -> Input {
    Input::News(News::Lost("gone".to_owned()))
}

fn connected() -> Input {
    Input::News(News::Connected)
}

fn closed<T>() -> Result<T, LinkError> {
    Err(LinkError::Closed {
        reason: "gone".to_owned(),
    })
}

fn refused(reason: &str) -> LinkError {
    LinkError::Remote(read(json!({"code": 400, "message": "No.", "reason": reason})))
}

/// Effects in short words. Events that only `--json` shows are left out.
fn words(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Send(_) => Some("send".to_owned()),
        Effect::Subscribe(params) => Some(format!("subscribe {:?}", params.after_seq)),
        Effect::Abort(params) => Some(format!("abort {}", params.run_id.as_ref().unwrap().0)),
        Effect::End(Ok(())) => Some("end".to_owned()),
        Effect::End(Err(failure)) => Some(format!("end {}: {}", failure.exit.code(), failure.message)),
        Effect::Draw(Draw::Show(Show::Text(text))) => Some(format!("text {text}")),
        Effect::Draw(Draw::Show(show)) => Some(format!("{show:?}")),
        Effect::Draw(Draw::Note(text)) => Some(format!("note {text}")),
        Effect::Draw(Draw::Answer(text)) => Some(format!("answer {text}")),
        Effect::Draw(Draw::Session(event)) => Some(format!("session {}", event.text.as_deref().unwrap_or_default())),
        Effect::Draw(Draw::Lost(reason)) => Some(format!("lost {reason}")),
        Effect::Draw(Draw::Connected) => Some("connected".to_owned()),
        Effect::Draw(Draw::Usage(..)) => Some("usage".to_owned()),
        Effect::Look(code) => Some(format!("look {}", code.as_deref().unwrap_or("all"))),
        Effect::Command(params) => Some(format!("command {}", params.message)),
        Effect::Steer(_, params) => Some(format!("steer {}", params.message)),
        Effect::Draw(Draw::Question(entries)) => Some(format!("question {}", entries[0].code)),
        Effect::Resolve(params) => Some(format!("resolve {} {:?}", params.code, params.decision)),
        Effect::Draw(Draw::Sent(_) | Draw::Event(_)) => None,
    };
    effects.iter().filter_map(word).collect()
}

impl Turn<'_> {
    fn plays(&mut self, input: Input, now: u64) -> Vec<String> {
        words(&self.handle(input, seconds(now)))
    }
}

fn waiting(code: &str) -> ApprovalEntry {
    read(json!({
        "code": code, "sessionKey": SESSION, "agentId": "main", "runId": "R", "callId": "c", "tool": "lap__Bash", "nodeId": "lap",
        "text": "rm -rf build", "textBytes": 12, "why": "It runs a program.", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1
    }))
}

fn typed(text: &str) -> Input {
    Input::Command(text.to_owned(), MessageId("C".to_owned()))
}

fn commanded(text: &str, response: &str) -> Input {
    let answer = json!({"status": "command", "command": "x", "response": response});
    Input::Commanded(text.to_owned(), Ok(read(answer)))
}

/// A question of the run before.
fn earlier(code: &str) -> ApprovalEntry {
    ApprovalEntry {
        run_id: RunId("before".to_owned()),
        ..waiting(code)
    }
}

fn steers(followed: &mut Followed) -> Turn<'_> {
    let mut turn = start(followed, None);
    turn.while_busy = Some(WhileBusy::Steer);
    let answer = json!({"status": "started", "runId": "R", "queued": true, "seq": 2, "steers": "before"});
    let note = "note the run under way gets it at its next step";
    assert_eq!(turn.plays(sent(answer), 0), [note, "look all"]);
    turn
}

#[test]
fn c5_after_a_reconnect_missed_events_are_asked_for_once_and_live_events_wait() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(7), 0);
    turn.plays(delta(0, "One"), 0);
    assert_eq!(turn.plays(lost(), 1), ["lost gone"]);
    assert_eq!(turn.plays(lost(), 1), [""; 0]);
    assert_eq!(turn.plays(connected(), 2), ["connected", "subscribe Some(6)"]);
    assert_eq!(turn.plays(delta(7, " three"), 2), [""; 0]);
    let answer = caught_up(
        8,
        &[],
        &json!({"state": "thinking", "runId": "R", "step": 1, "attempt": 1, "text": "One two"}),
    );
    assert_eq!(turn.plays(answer, 3), ["text  two", "text  three"]);
    assert_eq!(
        turn.plays(caught_up(9, &[done(9, "x")], &json!({})), 3),
        [""; 0],
        "not asked"
    );
}

#[test]
fn c5_a_catch_up_that_breaks_is_asked_again_over_the_next_connection() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(7), 0);
    turn.plays(lost(), 1);
    turn.plays(connected(), 1);
    turn.plays(lost(), 2);
    assert_eq!(turn.plays(Input::Subscribed(closed()), 2), [""; 0]);
    assert_eq!(turn.plays(connected(), 3), ["connected", "subscribe Some(6)"]);
}

#[test]
fn c5_a_gap_that_cannot_be_closed_fails() {
    for (answer, exit) in [
        (
            Input::Subscribed(Err(refused("session.snapshot_required"))),
            "end 1: The run went on",
        ),
        (caught_up(9, &[], &json!({"state": "idle"})), "end 1: The run went on"),
        (Input::Subscribed(Err(refused("internal"))), "end 70: No."),
    ] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.plays(accepted(7), 0);
        turn.plays(lost(), 1);
        turn.plays(connected(), 2);
        let end = turn.plays(answer, 3);
        assert!(end[1].starts_with(exit), "{end:?}");
    }
}

#[test]
fn c5_a_refused_catch_up_without_a_gap_only_leaves_the_position_unknown() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    let unknown = sent(json!({"status": "started", "runId": "R"}));
    assert_eq!(turn.plays(unknown, 0), ["subscribe None"]);
    assert_eq!(turn.plays(delta(0, "Hi"), 0), [""; 0]);
    assert_eq!(turn.plays(Input::Subscribed(Err(refused("internal"))), 1), ["text Hi"]);
}

#[test]
fn c1_a_message_accepted_over_an_earlier_connection_is_caught_up() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(lost(), 0);
    assert_eq!(turn.plays(connected(), 1), ["connected"], "no position to ask from yet");
    let duplicate = sent(json!({"status": "started", "runId": "R", "seq": 3, "duplicate": true}));
    assert_eq!(turn.plays(duplicate, 1), ["subscribe Some(2)"]);
}

#[test]
fn c1_a_duplicate_that_arrives_during_a_catch_up_asks_again() {
    let mut followed = followed();
    followed.note_seq(Some(5));
    let mut turn = start(&mut followed, None);
    turn.plays(lost(), 0);
    assert_eq!(turn.plays(connected(), 1), ["connected", "subscribe Some(4)"]);
    let duplicate = sent(json!({"status": "started", "runId": "R", "seq": 6, "duplicate": true}));
    assert_eq!(turn.plays(duplicate, 1), [""; 0]);
    let answer = caught_up(6, &[], &json!({"state": "thinking", "runId": "R"}));
    assert_eq!(turn.plays(answer, 1), ["subscribe Some(5)"]);
}

#[test]
fn c5_a_turn_after_a_quiet_loss_of_the_connection_begins_with_a_catch_up() {
    let mut followed = followed();
    followed.note_seq(Some(5));
    followed.note_link(&News::Lost("gone".to_owned()));
    let mut turn = start(&mut followed, None);
    assert_eq!(turn.plays(connected(), 0), ["subscribe Some(4)"]);
}

#[test]
fn p10_a_failed_run_ends_with_its_reason() {
    for (error, effect) in [
        (
            json!({"error": "It broke.", "reason": "model.overloaded"}),
            "end 4: It broke.",
        ),
        (json!({"error": "It broke."}), "end 1: It broke."),
        (json!({}), "end 1: The run failed."),
    ] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.plays(accepted(1), 0);
        let mut failed = json!({"state": "error", "sessionSeq": 2});
        failed
            .as_object_mut()
            .unwrap()
            .extend(error.as_object().unwrap().clone());
        assert_eq!(turn.plays(chat(failed), 1), ["EndOfText", effect]);
    }
}

#[test]
fn p14_ctrl_c_aborts_the_run_and_a_second_one_leaves() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    let stopping = "note stopping… (Ctrl-C again: do not wait for the end)";
    assert_eq!(turn.plays(Input::Interrupted, 1), [stopping, "abort R"]);
    assert_eq!(turn.wake_at(), seconds(6));
    assert_eq!(turn.plays(Input::Aborted(Ok(())), 1), [""; 0]);
    let aborted = chat(json!({"state": "aborted", "sessionSeq": 2}));
    assert_eq!(turn.plays(aborted, 2), ["EndOfText", "end 130: Stopped."]);

    let mut turn = start(&mut followed, None);
    turn.plays(Input::Interrupted, 1);
    let left = turn.plays(Input::Interrupted, 1);
    assert_eq!(left, ["EndOfText", "end 130: Stopped waiting; the run may go on."]);

    let mut turn = start(&mut followed, None);
    turn.plays(Input::Interrupted, 1);
    let unconfirmed = turn.plays(Input::Wake, 6);
    assert_eq!(
        unconfirmed[1],
        "end 130: The gateway did not confirm that the run stopped."
    );
}

#[test]
fn a_run_that_another_client_stopped_is_a_failure() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    let end = turn.plays(chat(json!({"state": "aborted", "sessionSeq": 2})), 1);
    assert!(end[1].starts_with("end ") && !end[1].starts_with("end 130"), "{end:?}");
}

#[test]
fn deadlines_are_told_by_wake_at_and_end_the_turn() {
    let mut followed = followed();
    let mut turn = start(&mut followed, Some(seconds(5)));
    assert_eq!(turn.wake_at(), seconds(5));
    let late = turn.plays(Input::Wake, 5);
    assert_eq!(late[1], "end 4: The gateway did not accept the message within 5.0 s.");

    let mut turn = start(&mut followed, Some(seconds(5)));
    turn.plays(accepted(1), 0);
    assert_eq!(
        turn.plays(Input::Wake, 5)[1],
        "end 4: No answer within 5.0 s. The run goes on."
    );

    let mut turn = start(&mut followed, None);
    turn.plays(lost(), 2);
    assert_eq!(
        turn.plays(Input::Wake, 301),
        ["note still waiting for the answer after 5 min 1 s (Ctrl-C stops the run)"]
    );
    assert_eq!(turn.wake_at(), seconds(302));
    let gone = turn.plays(Input::Wake, 302);
    assert_eq!(gone[1], "end 4: The gateway did not come back within 5 min.");
}

#[test]
fn silence_is_explained_and_an_event_ends_it() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    assert_eq!(turn.wake_at(), seconds(15));
    assert_eq!(turn.plays(Input::Wake, 14), [""; 0]);
    assert_eq!(turn.plays(Input::Wake, 15).len(), 1);
    assert_eq!(turn.wake_at(), seconds(75));
    turn.plays(delta(0, "Hi"), 20);
    assert_eq!(turn.wake_at(), seconds(35));
}

#[test]
fn notes_of_this_session_are_shown_and_of_others_not() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    let note = |key: &str| {
        let event = json!({"sessionKey": key, "kind": "note", "sessionSeq": 4, "text": "laptop is back"});
        Input::News(News::replayed(event).unwrap())
    };
    assert_eq!(turn.plays(note(SESSION), 0), ["session laptop is back"]);
    assert_eq!(turn.plays(note("other"), 0), [""; 0]);
    // The gateway sends an event of the log at least once.
    assert_eq!(turn.plays(note(SESSION), 0), [""; 0]);
}

#[test]
fn the_end_of_the_link_ends_the_turn() {
    let mut followed = followed();
    let end = start(&mut followed, None).plays(Input::News(News::read(None, false).unwrap()), 0);
    assert_eq!(end, ["EndOfText", "end 4: The connection to the gateway ended."]);
    assert!(followed.ended);
}
