//! A turn with questions about calls and limits.

use super::*;

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
    assert_eq!(
        failure.next,
        format!(
            "Answer with `gsv approval allow K7Q2A` or `gsv approval deny K7Q2A`. The answer of the run is then in `gsv session preview {SESSION}`."
        )
    );
}

#[test]
fn ap12_of_several_questions_each_has_its_own_code() {
    let mut followed = followed();
    let mut turn = start(&mut followed, None);
    turn.handle(accepted(1), seconds(1));
    let both = vec![waiting("K7Q2A"), waiting("ACDEF")];
    let effects = turn.handle(Input::Looked(Some("ACDEF".to_owned()), both), seconds(1));
    let Some(Effect::End(Err(failure))) = effects.last() else {
        panic!("{effects:?}")
    };
    assert!(
        failure
            .next
            .contains("Answer with `gsv approval allow K7Q2A` or `gsv approval deny K7Q2A`. Each question has its own code (`gsv approval list`)."),
        "{failure:?}"
    );
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
    let shown = turn.plays(chat(paused), 1);
    let effects = turn.handle(Input::Looked(Some("K7Q2A".to_owned()), Vec::new()), seconds(1));
    let decisions: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Resolve(params) => Some(params.decision),
            _ => None,
        })
        .collect();
    assert_eq!(decisions, [ApprovalAnswerKind::Deny]);
    assert_eq!(
        shown[0],
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
        assert_eq!(turn.plays(chat(paused), 1), ["look K7Q2A"]);
        let listed = Input::Looked(Some("K7Q2A".to_owned()), vec![waiting("K7Q2A")]);
        let effects = turn.handle(listed, seconds(1));
        assert_eq!(
            words(&effects)[0],
            format!("note K7Q2A asks for lap__Bash on lap: rm -rf build. It asked because: It runs a program. (r)")
        );
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
    assert_eq!(shown, ["note K7Q2A: allowed, its call goes on", "look all"]);
    assert_eq!(turn.plays(Input::Looked(None, Vec::new()), 3), [""; 0]);
    assert_eq!(turn.plays(delta(0, "On"), 4), ["text On"]);
}

fn queued() -> Input {
    sent(json!({"status": "started", "runId": "R", "seq": 1, "queued": true}))
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
        assert_eq!(turn.plays(chat(own), 3), ["look ACDEF"]);
        let listed = Input::Looked(Some("ACDEF".to_owned()), vec![waiting("ACDEF")]);
        assert_eq!(turn.plays(listed, 3)[1], format!("resolve ACDEF {decision}"));
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
    let withdrawing = "note withdrawing your message… (Ctrl-C again: do not wait for the end)";
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
