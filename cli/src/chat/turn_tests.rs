use super::*;
use gsv_link::LinkError;
use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry, MessageId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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
    let stopping = "note stopping… (a Ctrl-C now leaves the run alone)";
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

fn waiting(code: &str) -> ApprovalEntry {
    read(json!({
        "code": code, "sessionKey": SESSION, "agentId": "main", "runId": "R", "callId": "c", "tool": "lap__Bash", "nodeId": "lap",
        "text": "rm -rf build", "textBytes": 12, "why": "It runs a program.", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1
    }))
}

#[test]
fn ap12_a_question_ends_the_turn_with_5_and_shows_the_call_and_the_code() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.handle(accepted(1), seconds(1));
    let paused = json!({"state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A", "callId": "c"});
    let effects = turn.handle(chat(paused), seconds(1));
    assert!(effects.contains(&Effect::Look(Some("K7Q2A".to_owned()))), "{effects:?}");
    let effects = turn.handle(
        Input::Looked(Some("K7Q2A".to_owned()), vec![waiting("K7Q2A")]),
        seconds(1),
    );
    let Some(Effect::End(Err(failure))) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(failure.exit.code(), 5);
    assert!(
        failure.lines.iter().any(|line| line.contains("rm -rf build")),
        "{failure:?}"
    );
    assert!(failure.next.contains("gsv approval allow K7Q2A"), "{failure:?}");
}

#[test]
fn ap12_a_question_that_has_ended_since_does_not_end_the_turn() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.handle(accepted(1), seconds(1));
    let effects = turn.handle(
        Input::Looked(Some("K7Q2A".to_owned()), vec![waiting("ACDEF")]),
        seconds(1),
    );
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::End(_))),
        "{effects:?}"
    );
}

#[test]
fn sp10_approve_all_raises_no_limit_of_a_run() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.approve = Approve::All;
    turn.handle(accepted(1), seconds(1));
    let paused =
        json!({"state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A", "callId": "c", "limit": true});
    let effects = turn.handle(chat(paused), seconds(1));
    let decisions: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Resolve(params) => Some(params.decision),
            _ => None,
        })
        .collect();
    assert_eq!(decisions, [ApprovalAnswerKind::Deny]);
    assert_eq!(
        words(&effects)[0],
        "note K7Q2A: --approve all allows calls and raises no limit, so it is denied"
    );
}

#[test]
fn ap12_approve_never_denies_and_all_allows_without_ending_the_turn() {
    for (approve, decision) in [
        (Approve::Never, ApprovalAnswerKind::Deny),
        (Approve::All, ApprovalAnswerKind::Allow),
    ] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.approve = approve;
        turn.handle(accepted(1), seconds(1));
        let paused = json!({"state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A", "callId": "c"});
        let effects = turn.handle(chat(paused), seconds(1));
        let sent = effects.iter().find_map(|effect| match effect {
            Effect::Resolve(params) => Some((params.code.as_str(), params.decision)),
            _ => None,
        });
        assert_eq!(sent, Some(("K7Q2A", decision)));
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::End(_) | Effect::Look(_)))
        );
    }
}

fn typed(text: &str) -> Input {
    Input::Command(text.to_owned(), MessageId("C".to_owned()))
}

fn commanded(text: &str, response: &str) -> Input {
    let answer = json!({"status": "command", "command": "x", "response": response});
    Input::Commanded(text.to_owned(), Ok(read(answer)))
}

#[test]
fn f43_a_command_during_an_answer_acts_at_once_and_the_answer_goes_on() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    turn.plays(delta(0, "One"), 0);
    assert_eq!(turn.plays(typed("/model a/b"), 1), ["command /model a/b"]);
    // The event of the change may come before the answer or after it; it is shown once.
    let changed = |seq: u64| {
        let event = json!({"sessionKey": SESSION, "kind": "settings", "sessionSeq": seq, "text": "From now on: a/b."});
        Input::News(News::replayed(event).unwrap())
    };
    assert_eq!(turn.plays(changed(2), 1), [""; 0]);
    assert_eq!(
        turn.plays(commanded("/model a/b", "From now on: a/b."), 1),
        ["answer From now on: a/b."]
    );
    turn.plays(typed("/model a/b"), 2);
    turn.plays(commanded("/model a/b", "From now on: a/b."), 2);
    assert_eq!(turn.plays(changed(3), 2), [""; 0]);
    assert_eq!(turn.plays(changed(4), 2), ["session From now on: a/b."]);
    assert_eq!(turn.plays(delta(3, " two"), 3), ["text  two"]);
}

#[test]
fn f43_stop_ends_the_turn_quietly_after_its_answer_whichever_comes_first() {
    for aborted_first in [true, false] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.plays(accepted(1), 0);
        turn.plays(typed("/stop"), 1);
        let aborted = chat(json!({"state": "aborted", "sessionSeq": 2}));
        if aborted_first {
            assert_eq!(turn.plays(aborted, 1), [""; 0]);
            assert_eq!(
                turn.plays(commanded("/stop", "Stopped."), 1),
                ["answer Stopped.", "end"]
            );
        } else {
            assert_eq!(turn.plays(commanded("/stop", "Stopped."), 1), ["answer Stopped."]);
            assert_eq!(turn.plays(aborted, 1), ["end"]);
        }
    }
}

#[test]
fn f43_the_end_of_an_answer_waits_for_its_commands_for_a_bounded_time() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    turn.plays(typed("/status"), 1);
    assert_eq!(
        turn.plays(chat(done(2, "Done.")), 2),
        ["text Done.", "EndOfText", "usage"]
    );
    assert_eq!(turn.wake_at(), seconds(12));
    assert_eq!(turn.plays(Input::Wake, 11), [""; 0]);
    assert_eq!(turn.plays(Input::Wake, 12), ["note a command got no answer", "end"]);
}

#[test]
fn ap12_at_the_prompt_a_question_is_answered_during_the_turn_bound_to_its_call() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.approve = Approve::Here;
    turn.plays(accepted(1), 0);
    let paused = json!({"state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A", "callId": "c"});
    assert_eq!(turn.plays(chat(paused), 1), ["look K7Q2A"]);
    let listed = Input::Looked(Some("K7Q2A".to_owned()), vec![waiting("K7Q2A")]);
    assert_eq!(turn.plays(listed, 1), ["question K7Q2A"]);
    assert!(turn.asks());
    // A word that is typed when the question appears was meant for something else.
    assert_eq!(
        turn.plays(Input::Decided(ApprovalAnswerKind::Allow), 1),
        ["note K7Q2A has only just come, so nothing was answered. Read it, then type y or n."]
    );
    assert_eq!(turn.wake_at(), seconds(2));
    assert_eq!(turn.plays(Input::Wake, 2), ["note K7Q2A: y or n?"]);
    let effects = turn.handle(Input::Decided(ApprovalAnswerKind::Allow), seconds(2));
    let [Effect::Resolve(params)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (params.decision, params.hash.as_deref()),
        (ApprovalAnswerKind::Allow, Some("h"))
    );
    assert!(!turn.asks());
    let resolved = Ok(read(json!({"outcome": "allowed"})));
    let shown = turn.plays(
        Input::Resolved("K7Q2A".to_owned(), ApprovalAnswerKind::Allow, resolved),
        3,
    );
    assert_eq!(shown, ["note K7Q2A: allowed, the agent goes on", "look all"]);
    assert_eq!(turn.plays(Input::Looked(None, Vec::new()), 3), [""; 0]);
    assert_eq!(turn.plays(delta(0, "On"), 4), ["text On"]);
}

fn queued() -> Input {
    sent(json!({"status": "started", "runId": "R", "seq": 1, "queued": true}))
}

/// A question of the run before.
fn earlier(code: &str) -> ApprovalEntry {
    ApprovalEntry {
        run_id: RunId("before".to_owned()),
        ..waiting(code)
    }
}

const BEHIND: [&str; 2] = ["note queued behind another message…", "look all"];

#[test]
fn ap12_a_message_behind_a_question_ends_with_5_and_says_what_waits_for_whom() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    assert_eq!(turn.plays(queued(), 0), BEHIND);
    assert_eq!(turn.plays(Input::Looked(None, Vec::new()), 0), [""; 0]);
    // The run before asks only now.
    let paused = json!({"runId": "before", "state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A"});
    assert_eq!(turn.plays(chat(paused), 0), ["look K7Q2A"]);
    let listed = Input::Looked(Some("K7Q2A".to_owned()), vec![earlier("K7Q2A")]);
    let effects = turn.handle(listed, seconds(1));
    let Some(Effect::End(Err(failure))) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(failure.exit.code(), 5);
    assert!(
        failure.message.starts_with("Your message is accepted and waits"),
        "{failure:?}"
    );
    assert!(
        failure.lines.iter().any(|line| line.contains("rm -rf build")),
        "{failure:?}"
    );
    assert!(failure.next.contains("`gsv approval allow K7Q2A`"), "{failure:?}");
    assert!(failure.next.contains("gsv session preview"), "{failure:?}");
}

#[test]
fn ap12_approve_holds_for_the_run_of_its_own_message_and_only_for_it() {
    for (approve, decision) in [(Approve::Never, "Deny"), (Approve::All, "Allow")] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.approve = approve;
        assert_eq!(turn.plays(queued(), 0), BEHIND);
        let told = "note your message waits: the run before it asks K7Q2A (rm -rf build), and --approve answers for your message alone. Answer with `gsv approval allow K7Q2A` or `gsv approval deny K7Q2A`";
        assert_eq!(turn.plays(Input::Looked(None, vec![earlier("K7Q2A")]), 0), [told]);
        let paused = json!({"runId": "before", "state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A"});
        assert_eq!(turn.plays(chat(paused), 1), ["look K7Q2A"]);
        let again = Input::Looked(Some("K7Q2A".to_owned()), vec![earlier("K7Q2A")]);
        assert_eq!(
            turn.plays(again, 1),
            [""; 0],
            "it is said once, and no question of another run is answered"
        );
        turn.plays(chat(json!({"runId": "before", "state": "aborted", "sessionSeq": 4})), 2);
        turn.plays(delta(0, "Now"), 2);
        let own = json!({"state": "paused", "sessionSeq": 6, "text": "t", "approvalId": "ACDEF"});
        assert_eq!(turn.plays(chat(own), 3), [format!("resolve ACDEF {decision}")]);
    }
}

#[test]
fn ap12_approve_answers_no_question_of_a_run_that_has_not_been_shown_the_message() {
    let mut followed = followed();
    let mut turn = steers(&mut followed);
    turn.approve = Approve::Never;
    let delta = json!({"runId": "before", "state": "delta", "step": 1, "attempt": 1, "offset": 0, "text": "On.\n\n"});
    turn.plays(chat(delta), 0);
    let paused = json!({"runId": "before", "state": "paused", "sessionSeq": 3, "text": "t", "approvalId": "K7Q2A"});
    assert_eq!(turn.plays(chat(paused), 1), ["look K7Q2A"]);
    let listed = Input::Looked(Some("K7Q2A".to_owned()), vec![earlier("K7Q2A")]);
    assert!(turn.plays(listed, 1)[0].starts_with("note your message waits: the run before it asks K7Q2A"));
}

#[test]
fn po8_a_gateway_that_does_not_take_the_mode_of_a_message_is_told_to_stop_it() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.mode = Some(PolicyMode::Plan);
    let shown = turn.plays(accepted(1), 0);
    assert!(
        shown[0].starts_with("note This gateway is too old for the mode of one message"),
        "{shown:?}"
    );
    assert_eq!(shown[1], "abort R");
    let end = turn.plays(chat(json!({"state": "aborted", "sessionSeq": 2})), 1);
    assert!(end.last().is_some_and(|end| end.starts_with("end ")), "{end:?}");
    let mut followed = self::followed();
    let mut turn = start(&mut followed, None);
    turn.mode = Some(PolicyMode::Plan);
    let taken = json!({"status": "started", "runId": "R", "queued": false, "seq": 1, "directives": {"mode": "plan"}});
    assert!(
        !turn
            .plays(sent(taken), 0)
            .iter()
            .any(|effect| effect.starts_with("abort"))
    );
}

#[test]
fn ap12_at_the_prompt_a_question_before_the_message_is_shown_and_ctrl_c_says_what_remains() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.approve = Approve::Here;
    assert_eq!(turn.plays(queued(), 0), BEHIND);
    let listed = Input::Looked(None, vec![earlier("K7Q2A")]);
    assert_eq!(turn.plays(listed, 0), ["question K7Q2A"]);
    assert!(turn.asks() && !turn.gives_way());
    let withdrawing = "note withdrawing your message… (a Ctrl-C now leaves it in the queue)";
    assert_eq!(turn.plays(Input::Interrupted, 1), [withdrawing, "abort R"]);
    let aborted = chat(json!({"state": "aborted", "sessionSeq": 4}));
    let end = turn.plays(aborted, 2);
    let still = "end 130: Your message is withdrawn. The run before it still waits for your answer to K7Q2A.";
    assert_eq!(end.last().map(String::as_str), Some(still));
    // The question can still be answered.
    assert_eq!(turn.into_waiting().len(), 1);
}

#[test]
fn ap12_the_end_of_the_run_before_takes_its_questions_away() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.approve = Approve::Here;
    turn.plays(queued(), 0);
    turn.plays(Input::Looked(None, vec![earlier("K7Q2A")]), 0);
    turn.plays(chat(json!({"runId": "before", "state": "aborted", "sessionSeq": 3})), 1);
    assert!(!turn.asks());
}

fn about_limit(code: &str) -> ApprovalEntry {
    ApprovalEntry {
        limit: Some(true),
        ..waiting(code)
    }
}

#[test]
fn sp10_the_owners_own_no_ends_the_turn_with_one_calm_line() {
    for resolved_first in [true, false] {
        let mut followed = followed();
        let mut turn = start(&mut followed, None);
        turn.approve = Approve::Here;
        turn.plays(accepted(1), 0);
        turn.plays(Input::Looked(None, vec![about_limit("K7Q2A")]), 0);
        assert!(!turn.gives_way(), "it has only just come");
        turn.plays(Input::Wake, 1);
        assert!(turn.gives_way());
        let resolve = turn.plays(Input::Decided(ApprovalAnswerKind::Deny), 1);
        assert_eq!(resolve, ["resolve K7Q2A Deny"]);
        let result = Ok(read(json!({"outcome": "denied", "limit": true})));
        let resolved = Input::Resolved("K7Q2A".to_owned(), ApprovalAnswerKind::Deny, result);
        if resolved_first {
            assert_eq!(turn.plays(resolved, 1), ["look all"]);
        }
        let error =
            json!({"state": "error", "sessionSeq": 3, "reason": "budget.steps", "error": "It used up its 1 step."});
        assert_eq!(
            turn.plays(chat(error), 1),
            ["note K7Q2A: denied. It used up its 1 step.", "end"]
        );
    }
}

#[test]
fn sp10_the_sender_of_the_message_that_ends_a_paused_run_is_told() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.waits(vec![about_limit("K7Q2A")]);
    turn.plays(accepted(4), 0);
    assert!(!turn.asks(), "the run that waited has given way");
    let error = json!({"runId": "before", "state": "error", "sessionSeq": 3, "reason": "budget.steps", "error": "Its 1 step is used up."});
    assert_eq!(
        turn.plays(chat(error), 0),
        ["note the run before this message has ended: Its 1 step is used up."]
    );
}

#[test]
fn sp10_the_error_of_a_run_at_its_limit_says_once_what_to_do() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.plays(accepted(1), 0);
    let text = "The run used up its 1 step. Say \"continue\" to go on, or raise `limits.stepsPerRun`.";
    let error = json!({"state": "error", "sessionSeq": 2, "reason": "budget.steps", "error": text});
    let effects = turn.handle(chat(error), seconds(1));
    let Some(Effect::End(Err(failure))) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!((failure.message.as_str(), failure.next_step()), (text, None));
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
fn wb6_a_message_for_a_run_that_waits_for_a_word_ends_with_5() {
    let mut followed = followed();
    let mut turn = steers(&mut followed);
    let end = turn.plays(Input::Looked(None, vec![earlier("K7Q2A")]), 1);
    let words = "end 5: Your message is accepted and waits: the run before it needs your answer first.";
    assert_eq!(end.last().map(String::as_str), Some(words));
}

#[test]
fn wb9_ctrl_c_takes_a_message_for_the_run_back_and_the_run_goes_on() {
    let mut followed = followed();
    let mut turn = steers(&mut followed);
    turn.plays(Input::Looked(None, Vec::new()), 0);
    let delta = json!({"runId": "before", "state": "delta", "step": 1, "attempt": 1, "offset": 0, "text": "On.\n\n"});
    turn.plays(chat(delta), 0);
    let withdrawing = "note withdrawing your message… (a Ctrl-C now leaves it in the queue)";
    assert_eq!(turn.plays(Input::Interrupted, 1), [withdrawing, "abort R"]);
    let end = turn.plays(chat(json!({"state": "aborted", "sessionSeq": 4})), 2);
    let words = "end 130: Your message is withdrawn. The run before it goes on.";
    assert_eq!(end.last().map(String::as_str), Some(words));
}

#[test]
fn wb2_ctrl_c_stops_the_run_that_has_had_the_message() {
    let mut followed = followed();
    let mut turn = steers(&mut followed);
    turn.plays(Input::Looked(None, Vec::new()), 0);
    let shown = json!({"messageId": "M", "runId": "R"});
    let status =
        json!({"runId": "before", "state": "status", "text": "t", "step": 2, "sessionSeq": 4, "steered": shown});
    turn.plays(chat(status), 1);
    let stopping = "note stopping… (a Ctrl-C now leaves the run alone)";
    assert_eq!(turn.plays(Input::Interrupted, 1), [stopping, "abort before"]);
}
