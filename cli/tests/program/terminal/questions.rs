//! Questions of calls and limits at the prompt.

use super::{at_the_prompt, commanded};
use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION, whole};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

#[test]
fn ap12_a_question_that_arrives_during_an_answer_is_answered_with_y() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("build\r");
    let run = connection.started(1);
    let entry = json!({
        "code": "K7Q2A", "sessionKey": SESSION, "agentId": "main", "runId": run, "callId": "c", "tool": "lap__Bash", "nodeId": "lap",
        "text": "rm -rf build", "textBytes": 12, "why": "It runs a program.", "rule": "r", "hash": "h", "createdAt": 0,
        "expiresAt": 9_000_000_000_000_000_u64
    });
    connection.chat(
        &run,
        &json!({"state": "paused", "sessionSeq": 2, "text": "t", "approvalId": "K7Q2A", "callId": "c"}),
    );
    let list = connection.expect("approval.list");
    connection.answer(&list, &json!({"approvals": [entry]}));
    terminal.pictures("rm -rf build");
    terminal.pictures("K7Q2A: y allows this call once");
    terminal.pictures("K7Q2A: y or n?");
    terminal.types("y\r");
    let word = connection.expect("approval.resolve");
    assert_eq!(
        (&word.params["decision"], &word.params["hash"]),
        (&json!("allow"), &json!("h"))
    );
    connection.answer(&word, &json!({"outcome": "allowed"}));
    let list = connection.expect("approval.list");
    connection.answer(&list, &json!({"approvals": []}));
    terminal.pictures("allowed, its call goes on");
    connection.chat(&run, &whole("final", 3, 1, 1, "It is built."));
    terminal.pictures("It is built.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

/// A question of a run that another client began.
fn asked(more: &Value) -> Value {
    let mut entry = json!({
        "code": "K7Q2A", "sessionKey": SESSION, "agentId": "main", "runId": "before", "callId": "c", "tool": "lap__Bash", "nodeId": "lap",
        "text": "rm -rf build", "textBytes": 12, "why": "It runs a program.", "rule": "r", "hash": "h", "createdAt": 0,
        "expiresAt": 9_000_000_000_000_000_u64
    });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

/// A conversation that is opened while a question waits.
fn at_a_question(entry: &Value) -> (FakeGateway, Home, Terminal, Connection) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "acting", "runId": "before"}),
    );
    listed(&mut connection, &json!([entry]));
    (gateway, home, terminal, connection)
}

fn listed(connection: &mut Connection, entries: &Value) {
    let list = connection.expect("approval.list");
    connection.answer(&list, &json!({"approvals": entries}));
}

#[test]
fn ap12_a_question_that_waits_already_is_shown_when_the_chat_opens_and_y_answers_it() {
    let (_gateway, _home, mut terminal, mut connection) = at_a_question(&asked(&json!({})));
    terminal.pictures("rm -rf build");
    terminal.pictures("K7Q2A: y allows this call once, n denies it");
    terminal.pictures("K7Q2A: y or n?");
    // A command in between leaves the question as it is.
    terminal.types("/model\r");
    commanded(&mut connection, "/model", "The model is m.");
    terminal.pictures("The model is m.");
    terminal.types("y\r");
    let word = connection.expect("approval.resolve");
    assert_eq!(
        (&word.params["decision"], &word.params["hash"]),
        (&json!("allow"), &json!("h"))
    );
    connection.answer(&word, &json!({"outcome": "allowed"}));
    listed(&mut connection, &json!([]));
    terminal.pictures("allowed, its call goes on");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ap14_a_question_of_any_conversation_is_answered_with_its_code_and_never_becomes_a_message() {
    let (_gateway, _home, mut terminal, mut connection) = at_a_question(&asked(&json!({})));
    terminal.pictures("K7Q2A: y allows this call once, n denies it");
    // Of a hook's conversation, which a note of this one told of.
    terminal.types("allow m3x7c\r");
    let word = connection.expect("approval.resolve");
    assert_eq!(word.params, json!({"code": "M3X7C", "decision": "allow"}));
    connection.answer(&word, &json!({"outcome": "allowed"}));
    terminal.pictures("M3X7C: allowed");
    // The code of the question that is shown: bound to what was shown.
    terminal.types("deny K7Q2A use git\r");
    let word = connection.expect("approval.resolve");
    assert_eq!(
        (&word.params["decision"], &word.params["word"], &word.params["hash"]),
        (&json!("deny"), &json!("use git"), &json!("h"))
    );
    connection.answer(&word, &json!({"outcome": "denied"}));
    listed(&mut connection, &json!([]));
    // Words that only look like an answer are a message when the person says so.
    terminal.types("allow peace\r");
    // A code that no question here has is not tried again.
    let word = connection.expect("approval.resolve");
    connection.error(&word, 614, "approval.not_found", "No question has this code.");
    terminal.pictures("No call with the code PEACE waits for your word. Send it as a message?");
    terminal.types("y\r");
    assert_eq!(connection.expect("chat.send").params["message"], "allow peace");
}

#[test]
fn sp10_a_message_at_a_question_about_a_limit_is_sent_at_once_and_the_end_of_the_run_is_told() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("build\r");
    let run = connection.started(1);
    let about_limit = json!({
        "runId": run, "tool": "limit", "nodeId": null, "limit": true, "text": "Continue with 1 more step?",
        "why": "The run used up its 1 step.", "rule": "limits.stepsPerRun"
    });
    connection.chat(
        &run,
        &json!({"state": "paused", "sessionSeq": 2, "text": "t", "approvalId": "K7Q2A", "callId": "c", "limit": true}),
    );
    let mut entry = asked(&about_limit);
    entry.as_object_mut().unwrap().remove("nodeId");
    listed(&mut connection, &json!([entry]));
    terminal.pictures("Continue with 1 more step?");
    terminal.pictures("K7Q2A: y lets the run continue, n ends it; a message ends it too");
    terminal.pictures("K7Q2A: y or n?");
    terminal.types("do this instead\r");
    let next = connection.started(4);
    let ended =
        json!({"state": "error", "sessionSeq": 3, "reason": "budget.steps", "error": "The run used up its 1 step."});
    connection.chat(&run, &ended);
    terminal.pictures("the run before this message has ended: The run used up its 1 step.");
    connection.chat(&next, &whole("final", 5, 1, 1, "Done instead."));
    terminal.pictures("Done instead.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn sp10_the_owners_no_to_a_limit_is_one_calm_line() {
    let entry = asked(&json!({"tool": "limit", "limit": true, "text": "Continue with 1 more step?"}));
    let (_gateway, _home, mut terminal, mut connection) = at_a_question(&entry);
    terminal.pictures("K7Q2A: y or n?");
    terminal.types("n\r");
    let word = connection.expect("approval.resolve");
    connection.answer(&word, &json!({"outcome": "denied", "limit": true}));
    listed(&mut connection, &json!([]));
    let text = "The run used up its 1 step. Say \"continue\" to go on.";
    connection.chat(
        "before",
        &json!({"state": "error", "sessionSeq": 4, "reason": "budget.steps", "error": text}),
    );
    terminal.pictures("a run has ended: The run used up its 1 step.");
    let picture = terminal.picture();
    assert_eq!(picture.matches("used up its 1 step").count(), 1, "{picture}");
    assert!(
        !picture.contains("denied, nothing") && !picture.contains("failed"),
        "{picture}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ap12_a_wrong_answer_is_not_sent_and_the_next_line_answers() {
    let choices = json!([{"answer": "allow_session", "text": "t"}, {"answer": "allow_8h", "text": "t"}]);
    let (_gateway, _home, mut terminal, mut connection) = at_a_question(&asked(&json!({"choices": choices})));
    terminal.pictures("K7Q2A: y, s or n?");
    terminal.types("deny use yarn\r");
    terminal.pictures("Not sent. `deny` needs the code of the question");
    terminal.types("allow K7Q2A for 2h\r");
    terminal.pictures("Not sent. `2h` is not an answer to this question");
    terminal.types("y\r");
    // Nothing was sent before it.
    let word = connection.expect("approval.resolve");
    assert_eq!(word.params["decision"], json!("allow"));
    connection.answer(&word, &json!({"outcome": "allowed"}));
    listed(&mut connection, &json!([]));
    terminal.pictures("allowed, its call goes on");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}
