//! A turn while the person types commands and messages for the run.

use super::*;

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
    let withdrawing = "note withdrawing your message… (Ctrl-C again: do not wait for the end)";
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
    let stopping = "note stopping… (Ctrl-C again: do not wait for the end)";
    assert_eq!(turn.plays(Input::Interrupted, 1), [stopping, "abort before"]);
}
