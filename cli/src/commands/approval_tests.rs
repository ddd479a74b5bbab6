//! How questions, answers and grants are shown, and what `gsv approval` says of each end of a question.

use super::*;
use gsv_protocol::types::{AgentId, CallId, NodeId, RunId, SessionKey, ToolName};

fn entry() -> ApprovalEntry {
    ApprovalEntry {
        code: "K7Q2A".to_owned(),
        session_key: SessionKey("agent:main:main".to_owned()),
        agent_id: AgentId("main".to_owned()),
        run_id: RunId("run-1".to_owned()),
        call_id: CallId("ref/r1/1/0".to_owned()),
        tool: ToolName("lap__Bash".to_owned()),
        node_id: Some(NodeId("lap".to_owned())),
        limit: None,
        event: None,
        text: "rm -rf build\nls\u{202e}".to_owned(),
        text_bytes: 17,
        text_sha256: None,
        why: "It runs a program.".to_owned(),
        rule: "rule:no-rm".to_owned(),
        hash: "h".to_owned(),
        choices: None,
        created_at: 0,
        expires_at: 1_800_000,
    }
}

#[test]
fn s13_a_question_shows_all_of_the_call_and_no_hidden_character() {
    assert_eq!(
        question(&entry(), 0, Place::Shell).join("\n"),
        "K7Q2A  lap__Bash on lap, for agent:main:main (30 min left)\n  It runs a program. (rule:no-rm)\n  | rm -rf build\n  | ls[U+202E]"
    );
    let long = ApprovalEntry {
        text_bytes: 1_000_017,
        text_sha256: Some("ab".to_owned()),
        ..entry()
    };
    let last = question(&long, 0, Place::Shell).pop().unwrap();
    assert!(
        last.contains("more are not shown; the whole has the sha256 ab, and `gsv session show "),
        "{last}"
    );
}

#[test]
fn sp10_a_question_about_a_limit_names_no_tool() {
    let entry = ApprovalEntry {
        tool: ToolName("limit".to_owned()),
        node_id: None,
        limit: Some(true),
        text: "Continue with another $1.00?".to_owned(),
        why: "The run used up its cost budget ($1.02 of $1.00).".to_owned(),
        rule: "limits.runCostUsd".to_owned(),
        ..entry()
    };
    assert_eq!(
        question(&entry, 0, Place::Shell),
        [
            "K7Q2A  a paused run, for agent:main:main (30 min left)",
            "  The run used up its cost budget ($1.02 of $1.00). (limits.runCostUsd)",
            "  | Continue with another $1.00?",
            "  > Allowed, the run continues. When `limits.runCostUsd` is raised, it goes on by itself. Denied, or with any other message to the conversation before that, it ends here; what it has done stays.",
        ]
    );
}

#[test]
fn gr1_a_question_names_the_answers_that_allow_more_and_exactly_what_they_allow() {
    assert_eq!(longer(&entry(), Place::Shell), Vec::<String>::new());
    let choice = |answer, text: &str| ApprovalChoice {
        answer,
        text: text.to_owned(),
    };
    let offered = ApprovalEntry {
        choices: Some(vec![
            choice(ApprovalAnswerKind::AllowSession, "`git push` on lap\u{202e}"),
            choice(ApprovalAnswerKind::Allow8h, "`git push` on lap\u{202e}"),
            choice(ApprovalAnswerKind::AllowAlways, "the rule {}"),
        ]),
        ..entry()
    };
    let lines = [
        "  > `gsv approval allow K7Q2A --for session` (or 8h) allows `git push` on lap[U+202E]",
        "  > `gsv approval allow K7Q2A --always` saves the rule {}",
    ];
    assert_eq!(longer(&offered, Place::Shell), lines);
    assert!(question(&offered, 0, Place::Shell).ends_with(&lines.map(ToOwned::to_owned)));
    // At a prompt the answers are what can be typed there.
    assert_eq!(
        longer(&offered, Place::Prompt),
        [
            "  > `allow K7Q2A for session` (or 8h) allows `git push` on lap[U+202E]",
            "  > in a terminal, `gsv approval allow K7Q2A --always` saves the rule {}",
        ]
    );
    assert!(not_offered(&entry()).message.contains("once only"));
    assert_eq!(
        not_offered(&entry()).next,
        "Allow it once with `gsv approval allow K7Q2A`."
    );
    let timed = ApprovalEntry {
        choices: Some(vec![
            choice(ApprovalAnswerKind::AllowSession, "x"),
            choice(ApprovalAnswerKind::Allow1h, "x"),
            choice(ApprovalAnswerKind::Allow8h, "x"),
        ]),
        ..entry()
    };
    assert_eq!(
        not_offered(&timed).next,
        "Allow it for longer with `gsv approval allow K7Q2A --for 1h` (or session, 8h), or once with `gsv approval allow K7Q2A`."
    );
    let told = told(
        "K7Q2A",
        ApprovalAnswerKind::Allow8h,
        &result(ApprovalOutcome::Allowed),
        0,
    );
    assert!(told.is_ok());
}

fn result(outcome: ApprovalOutcome) -> ApprovalResolveResult {
    ApprovalResolveResult {
        outcome,
        by: None,
        again: None,
        limit: None,
        event: None,
        ended_at: None,
        why: None,
    }
}

#[test]
fn ap6_an_allowance_that_came_too_late_says_why() {
    let late = ApprovalResolveResult {
        why: Some("Not run: laptop is not connected.".to_owned()),
        ..result(ApprovalOutcome::Void)
    };
    let failure = told("7D2NT", ApprovalAnswerKind::Allow, &late, 0).unwrap_err();
    assert!(
        failure
            .message
            .contains("no longer be made. The agent is told: Not run: laptop is not connected.")
    );
}

#[test]
fn ev7_a_question_about_an_event_names_it_and_its_answers_say_what_becomes_of_it() {
    let event = ApprovalEntry {
        event: Some("0".repeat(32)),
        ..entry()
    };
    assert!(question(&event, 0, Place::Shell)[0].starts_with(&format!("K7Q2A  the event {}, for", "0".repeat(32))));
    let about = |outcome| ApprovalResolveResult {
        event: Some(true),
        ..result(outcome)
    };
    let said = |decision, outcome| told("K7Q2A", decision, &about(outcome), 0).unwrap();
    assert_eq!(
        said(ApprovalAnswerKind::Allow, ApprovalOutcome::Allowed),
        "K7Q2A: approved, the event goes to its handler"
    );
    assert_eq!(
        said(ApprovalAnswerKind::Deny, ApprovalOutcome::Denied),
        "K7Q2A: rejected, the event will not be handled"
    );
}

#[test]
fn p15_an_answer_that_came_too_late_is_a_failure_that_says_what_counts() {
    let (allow, deny) = (ApprovalAnswerKind::Allow, ApprovalAnswerKind::Deny);
    assert!(told("K7Q2A", allow, &result(ApprovalOutcome::Allowed), 0).is_ok());
    let before = |outcome| ApprovalResolveResult {
        by: Some("client:phone token:t1".to_owned()),
        ended_at: Some(0),
        ..result(outcome)
    };
    let now = 5 * 60_000;
    let denied = told("K7Q2A", allow, &before(ApprovalOutcome::Denied), now).unwrap_err();
    assert_eq!(
        denied.message,
        "K7Q2A was denied before (5 min ago, by client:phone (token t1)), so this answer changes nothing."
    );
    let again = ApprovalResolveResult {
        again: Some("ACDEF".to_owned()),
        ..result(ApprovalOutcome::AskedAgain)
    };
    let again = told("K7Q2A", allow, &again, now).unwrap_err();
    assert!(again.next.contains("gsv approval show ACDEF"));
    for outcome in [
        ApprovalOutcome::Expired,
        ApprovalOutcome::Withdrawn,
        ApprovalOutcome::Void,
    ] {
        assert!(told("K7Q2A", deny, &result(outcome), now).is_err());
    }
    // The same answer once more is no failure, and no second allowance either.
    for (decision, outcome, word) in [
        (allow, ApprovalOutcome::Allowed, "allowed"),
        (deny, ApprovalOutcome::Denied, "denied"),
    ] {
        assert_eq!(
            told("K7Q2A", decision, &before(outcome), now).unwrap(),
            format!("K7Q2A was {word} before (5 min ago, by client:phone (token t1)); this answer changes nothing")
        );
    }
}

#[test]
fn sp10_an_answer_about_a_limit_has_its_own_words() {
    let about_limit = |outcome| ApprovalResolveResult {
        limit: Some(true),
        ..result(outcome)
    };
    let said = |decision, outcome| told("K7Q2A", decision, &about_limit(outcome), 0).unwrap();
    assert_eq!(
        said(ApprovalAnswerKind::Allow, ApprovalOutcome::Allowed),
        "K7Q2A: allowed, the run continues"
    );
    assert_eq!(
        said(ApprovalAnswerKind::Deny, ApprovalOutcome::Denied),
        "K7Q2A: denied, the run ends here, and what it has done stays"
    );
    let entry = ApprovalEntry {
        limit: Some(true),
        rule: "limits.stepsPerRun".to_owned(),
        ..entry()
    };
    let longer = not_offered(&entry);
    assert_eq!(
        longer.message,
        "K7Q2A is about a limit: the answer counts for this run only."
    );
    assert!(longer.next.contains("raise `limits.stepsPerRun`"), "{longer:?}");
}

#[test]
fn ap12_questions_are_in_the_order_of_their_calls() {
    let asked = |code: &str, call: &str, at: u64| ApprovalEntry {
        code: code.to_owned(),
        call_id: CallId(call.to_owned()),
        created_at: at,
        ..entry()
    };
    let event = ApprovalEntry {
        event: Some("e".to_owned()),
        ..asked("EEEEE", "a", 0)
    };
    let shown = in_order(vec![
        event,
        asked("AAAAA", "ref/r1/1/10", 5),
        asked("CCCCC", "ref/r1/1/2", 5),
        asked("DDDDD", "ref/r1/0/7", 4),
    ]);
    let codes: Vec<_> = shown.iter().map(|entry| entry.code.as_str()).collect();
    assert_eq!(codes, ["DDDDD", "CCCCC", "AAAAA", "EEEEE"]);
}
