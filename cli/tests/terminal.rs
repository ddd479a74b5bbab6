//! `gsv chat` on a terminal: the prompt, which is live during an answer, Markdown, and Ctrl-C.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot continue has failed"
)]

mod common;

use std::fs;

use common::fake_gateway::{Connection, FakeGateway, SESSION, delta, whole};
use common::terminal::Terminal;
use common::{Home, mode};
use serde_json::{Value, json};

/// A conversation at its prompt, and the gateway and the home that it needs.
fn at_the_prompt() -> (FakeGateway, Home, Terminal, Connection) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.shows("› ");
    (gateway, home, terminal, connection)
}

/// What a job or a reminder brought while no chat was open.
fn opened_later(question: &str, shown: &[&str], hidden: &str) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    let answers = |connection: &mut Connection, events: &[serde_json::Value]| {
        let asked = connection.expect("session.subscribe");
        let answer = json!({"sessionKey": SESSION, "seq": 9, "events": events, "state": "idle"});
        connection.answer(&asked, &answer);
        asked.params["afterSeq"].clone()
    };
    assert!(answers(&mut connection, &[]).is_null());
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "The job says:\n\n**Sunny**"}]});
    let note =
        json!({"sessionKey": SESSION, "kind": "note", "sessionSeq": 9, "text": "The job says:", "message": message});
    let events = [
        common::fake_gateway::chat("old", &whole("final", 3, 1, 1, "Seen long ago")),
        common::fake_gateway::chat("cron", &whole("final", 6, 1, 1, "Time to call")),
        note.clone(),
    ];
    assert_eq!(answers(&mut connection, &events), 0);
    for _ in 0..=usize::from(hidden.is_empty()) {
        answers_preview(&mut connection, question);
    }
    for text in shown {
        terminal.shows(text);
    }
    terminal.shows("› ");
    // It comes once, also when it is sent again.
    connection.event("session", &note);
    connection.event(
        "session",
        &json!({"sessionKey": SESSION, "kind": "note", "sessionSeq": 10, "text": "laptop is back"}),
    );
    let since = terminal.shows("laptop is back");
    assert!(!since.contains("Sunny"), "{since}");
    let picture = terminal.picture();
    assert!(
        !picture.contains("Seen long ago") && (hidden.is_empty() || !picture.contains(hidden)),
        "{picture}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
    drop(connection);
    // A chat that is opened again asks only for what came since.
    let terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    let answer = |connection: &mut Connection, events: &[serde_json::Value]| {
        let asked = connection.expect("session.subscribe");
        let answer = json!({"sessionKey": SESSION, "seq": 11, "events": events, "state": "idle"});
        connection.answer(&asked, &answer);
        asked.params["afterSeq"].clone()
    };
    assert!(answer(&mut connection, &[]).is_null());
    let later = json!({"sessionKey": SESSION, "kind": "note", "sessionSeq": 11, "text": "laptop left"});
    assert_eq!(answer(&mut connection, &[later]), 10);
    let again = terminal.shows("laptop left");
    assert!(!again.contains("Sunny") && !again.contains("is back"), "{again}");
}

#[test]
fn sc8_a_chat_that_is_opened_later_shows_what_jobs_brought() {
    let sunny = "The job says:\r\n\r\n\u{1b}[1mSunny";
    let reminder = "[The job \"Call\" runs now. No person has written this just now.]\nCall mum";
    opened_later(reminder, &["job \"Call\": Call mum", "Time to call", sunny], "");
    opened_later("hello", &[sunny], "Time to call");
}

#[test]
fn a_conversation_at_the_prompt() {
    let (_gateway, home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("hello\r");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "hello");
    let run = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(&request, &json!({"status": "started", "runId": run, "seq": 1}));
    connection.chat(&run, &delta(1, 1, 0, "First.\n\nSome **bold"));
    terminal.shows("First.");
    connection.chat(&run, &whole("final", 2, 1, 1, "First.\n\nSome **bold** word"));
    terminal.shows("Some \u{1b}[1mbold\u{1b}[0m word");
    terminal.shows("› ");

    terminal.types("one\\\rtwo\r");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "one\ntwo");
    connection.answer(
        &request,
        &json!({"status": "command", "command": "x", "response": "fine"}),
    );
    terminal.shows("fine");
    terminal.shows("› ");

    terminal.types("/quit\r");
    terminal.ends_with(0);
    let history = home.state().join("history");
    assert!(fs::read_to_string(&history).unwrap().contains("hello"));
    assert_eq!(mode(&history), 0o600);
}

#[test]
fn commands_are_completed_at_the_prompt() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("/sta\t\r");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "/status");
    connection.error(&request, 442, "session.queue_full", "Too many messages wait.");
    terminal.shows("Too many messages wait.");
    terminal.shows("› ");
    terminal.types("\u{4}");
    terminal.ends_with(0);
}

#[test]
fn ctrl_c_at_the_prompt_leaves_only_the_second_time() {
    let (_gateway, _home, mut terminal, _connection) = at_the_prompt();
    terminal.types("\u{3}");
    terminal.shows("Ctrl-C again or Ctrl-D leaves");
    terminal.shows("› ");
    terminal.types("\u{3}");
    terminal.ends_with(0);
}

#[test]
fn p14_ctrl_c_during_a_run_stops_the_run_and_not_the_program() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("count\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "1 2 3\n\n4"));
    terminal.shows("1 2 3");
    terminal.interrupt();
    let abort = connection.expect("chat.abort");
    connection.answer(
        &abort,
        &json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0}),
    );
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    terminal.shows("Stopped.");
    terminal.shows("› ");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn th19_news_of_the_session_are_shown_above_the_prompt() {
    let (gateway, _home, mut terminal, mut connection) = at_the_prompt();
    connection.chat(
        "of-another-client",
        &whole("final", 1, 1, 1, "An answer\u{1b}[2J to another client"),
    );
    answers_preview(&mut connection, "Asked\u{1b}[2J elsewhere");
    terminal.shows("Asked elsewhere");
    terminal.shows("An answer to another client");
    let note = json!({"sessionKey": SESSION, "kind": "note", "text": "laptop has gone"});
    connection.event("session", &note);
    terminal.shows("laptop has gone");
    connection.cut();
    terminal.shows("connection lost");
    let mut connection = gateway.accept();
    terminal.shows("connected again");
    let missed = connection.expect("session.subscribe");
    let event = common::fake_gateway::chat("of-another-client", &whole("final", 2, 1, 1, "Said meanwhile"));
    connection.answer(
        &missed,
        &json!({"sessionKey": SESSION, "seq": 2, "events": [event], "state": "idle"}),
    );
    answers_preview(&mut connection, "Asked meanwhile");
    terminal.shows("Said meanwhile");
    terminal.types("still here\r");
    let request = connection.expect("chat.send");
    connection.answer(
        &request,
        &json!({"status": "command", "command": "x", "response": "yes"}),
    );
    terminal.shows("yes");
    terminal.shows("› ");
    terminal.types("\u{4}");
    terminal.ends_with(0);
}

fn commanded(connection: &mut Connection, message: &str, response: &str) {
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], message);
    let answer = json!({"status": "command", "command": "x", "response": response});
    connection.answer(&request, &answer);
}

/// The screen from the line with `first` on, without blank lines.
fn from_line(terminal: &Terminal, first: &str) -> Vec<String> {
    let picture = terminal.picture();
    let lines = picture.lines().skip_while(|line| !line.contains(first));
    let lines = lines.map(|line| line.trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

fn stopped(connection: &mut Connection, run: &str, seq: u64) {
    let abort = connection.expect("chat.abort");
    let answer = json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0});
    connection.answer(&abort, &answer);
    connection.chat(run, &json!({"state": "aborted", "sessionSeq": seq}));
}

#[test]
fn f43_what_is_typed_during_an_answer_is_shown_as_it_is_typed_and_stays_after_it() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTw"));
    terminal.pictures("One.");
    terminal.types("half a l");
    terminal.pictures("› half a l");
    connection.chat(&run, &whole("final", 2, 1, 1, "One.\n\nTwo."));
    terminal.pictures("Two.");
    assert_eq!(from_line(&terminal, "› slow"), ["› slow", "One.", "Two.", "› half a l"]);
    terminal.types("ine\r");
    commanded(&mut connection, "half a line", "fine");
    terminal.pictures("fine");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_messages_that_are_typed_during_an_answer_are_sent_after_it_in_order_and_nothing_is_shown_twice() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "It begins.\n\nIt g"));
    terminal.pictures("It begins.");
    terminal.types("one\r");
    terminal.pictures("queued: one");
    terminal.types("two\r\r");
    terminal.pictures("queued: two");
    connection.chat(&run, &delta(1, 1, 16, "oes on.\n\nIt"));
    terminal.pictures("It goes on.");
    let answer = "It begins.\n\nIt goes on.\n\nIt **ends**.";
    connection.chat(&run, &whole("final", 2, 1, 1, answer));
    let second = connection.started(3);
    connection.chat(&second, &whole("final", 4, 1, 1, "First answer."));
    let third = connection.started(5);
    connection.chat(&third, &whole("final", 6, 1, 1, "Second answer."));
    terminal.pictures("Second answer.");
    terminal.types("x");
    terminal.pictures("› x");
    assert_eq!(
        from_line(&terminal, "› slow"),
        [
            "› slow",
            "It begins.",
            "queued: one",
            "(sent when the answer has ended, by this chat only; `/queue` changes it)",
            "queued: two",
            "It goes on.",
            "It ends.",
            "› one",
            "First answer.",
            "› two",
            "Second answer.",
            "› x",
        ]
    );
    terminal.types("\u{15}/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_stop_acts_during_the_answer() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTwo"));
    terminal.pictures("One.");
    terminal.types("after\r/stop\r");
    commanded(&mut connection, "/stop", "Stopped.");
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    commanded(&mut connection, "after", "And on.");
    terminal.pictures("And on.");
    let lines = from_line(&terminal, "› slow");
    assert_eq!(
        lines.iter().filter(|line| line.contains("Stopped.")).count(),
        1,
        "{lines:?}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_ctrl_c_stops_the_run_and_keeps_the_line_that_is_not_complete() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTwo"));
    terminal.pictures("One.");
    terminal.types("one\rtw\u{3}");
    stopped(&mut connection, &run, 2);
    commanded(&mut connection, "one", "first answer");
    terminal.pictures("first answer");
    terminal.pictures("› tw");
    let picture = terminal.picture();
    assert_eq!(picture.matches("› tw").count(), 1, "{picture}");
    terminal.types("o\r");
    commanded(&mut connection, "two", "second answer");
    terminal.pictures("second answer");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_leaving_during_an_answer_says_what_goes_on_and_what_was_not_sent() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTwo"));
    terminal.pictures("One.");
    assert!(!terminal.echoes());
    terminal.types("never\r\u{4}");
    let shown = terminal.shows("not sent: never");
    assert!(shown.contains("The run goes on."), "{shown:?}");
    // The terminal is as it was: keys are shown, and pasted text is not marked.
    let (on, off) = (shown.matches("[?2004h").count(), shown.matches("[?2004l").count());
    assert_eq!(off, on + 1, "{shown:?}");
    terminal.child.wait().unwrap();
    assert!(terminal.echoes());
    terminal.ends_with(0);
}

#[test]
fn p10_a_chat_whose_gateway_stops_says_how_to_start_it() {
    let (gateway, _home, mut terminal, connection) = at_the_prompt();
    drop((connection, gateway));
    let shown = terminal.shows("reconnecting…");
    assert!(
        shown.contains("if the gateway is stopped, start it in another terminal: `gsv up`"),
        "{shown:?}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_a_chat_that_is_ended_from_outside_says_what_was_not_sent() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTwo"));
    terminal.pictures("One.");
    terminal.types("first\rsecond\r");
    let shown = terminal.shows("queued: second");
    let hint = "sent when the answer has ended, by this chat only";
    assert_eq!(shown.matches(hint).count(), 1, "once: {shown:?}");
    terminal.signal("-TERM");
    terminal.shows("The run goes on.");
    terminal.shows("not sent: first");
    terminal.shows("not sent: second");
    terminal.child.wait().unwrap();
    assert!(terminal.echoes());
    terminal.ends_with(0);
}

#[test]
fn f43_a_chat_between_two_answers_ends_at_a_signal() {
    let (_gateway, _home, mut terminal, _connection) = at_the_prompt();
    terminal.signal("-TERM");
    terminal.child.wait().unwrap();
    assert!(terminal.echoes());
    terminal.ends_with(0);
}

#[test]
fn f43_a_message_that_the_queue_has_no_place_for_stays_in_the_editor() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTwo"));
    terminal.pictures("One.");
    for number in 1..=20 {
        terminal.types(&format!("m{number}\r"));
        terminal.pictures(&format!("queued: m{number}"));
    }
    terminal.types("too many\r");
    terminal.pictures("20 messages wait already.");
    terminal.pictures("› too many");
    terminal.types("\u{15}/quit\r");
    terminal.shows("not sent: m1");
    terminal.shows("not sent: m20");
    terminal.ends_with(0);
}

#[test]
fn f43_at_a_high_rate_each_line_is_printed_once_and_keys_are_not_lost() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("many\r");
    let run = connection.started(1);
    let mut text = "```\n".to_owned();
    connection.chat(&run, &delta(1, 1, 0, &text));
    for number in 0..500 {
        let line = format!("line <{number}>\n");
        connection.chat(&run, &delta(1, 1, text.len() as u64, &line));
        text.push_str(&line);
        if number % 5 == 0 {
            terminal.types("k");
        }
        if number % 100 == 0 {
            terminal.types("\u{7f}q\r");
        }
    }
    connection.chat(&run, &whole("final", 2, 1, 1, &text));
    let mut shown = String::new();
    for answer in 0..5 {
        let request = connection.expect("chat.send");
        let typed = request.params["message"].as_str().unwrap().to_owned();
        let keys = if answer == 0 {
            "q".to_owned()
        } else {
            "k".repeat(19) + "q"
        };
        assert_eq!(typed, keys);
        let response = format!("answer <{answer}>");
        connection.answer(
            &request,
            &json!({"status": "command", "command": "x", "response": response}),
        );
        shown.push_str(&terminal.shows(&response));
    }
    for number in 0..500 {
        assert_eq!(shown.matches(&format!("line <{number}>")).count(), 1, "{number}");
    }
    terminal.types("\u{15}/quit\r");
    terminal.ends_with(0);
}

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
    terminal.pictures("allowed, the agent goes on");
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
    terminal.pictures("allowed, the agent goes on");
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
    for _ in 0..13 {
        let word = connection.expect("approval.resolve");
        connection.error(&word, 614, "approval.not_found", "No question has this code.");
    }
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
fn f44_answers_of_commands_keep_their_columns_and_help_is_complete() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("/help\r");
    commanded(
        &mut connection,
        "/help",
        "/status            what it is doing\n/stop              stop the run",
    );
    terminal.shows("/status            what it is doing\r\n/stop              stop the run\r\n");
    for command in ["/attach FILE ", "y, n ", "/quit, /exit ", "are sent when it has ended"] {
        terminal.shows(command);
    }
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f44_an_unknown_command_is_sent_only_after_a_yes() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    for answer in ["", "n"] {
        terminal.types("/stauts now\r");
        terminal.shows("There is no command `/stauts`. Did you mean `/status`? Send it as a message?");
        terminal.types(&format!("{answer}\r"));
        terminal.shows("not sent");
    }
    terminal.types("/stauts now\r");
    terminal.shows("Send it as a message?");
    terminal.types("y\r");
    commanded(&mut connection, "/stauts now", "fine");
    terminal.shows("fine");
    // Another line than an answer is a message of its own; a path is no command.
    terminal.types("/foo\r");
    terminal.shows("There is no command `/foo`. Send it as a message?");
    terminal.types("/etc/hosts is wrong\r");
    commanded(&mut connection, "/etc/hosts is wrong", "indeed");
    terminal.shows("indeed");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f47_a_confirmation_is_shown_once() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    let text = "From now on: the model demo/demo.";
    let event = |seq: u64| json!({"sessionKey": SESSION, "kind": "settings", "text": text, "sessionSeq": seq});
    // The event of the change may come before the answer of the command, or after it.
    terminal.types("/model demo/demo\r");
    let request = connection.expect("chat.send");
    connection.event("session", &event(1));
    let answer = json!({"status": "command", "command": "model", "response": text});
    connection.answer(&request, &answer);
    terminal.shows(text);
    terminal.types("/model demo/demo\r");
    commanded(&mut connection, "/model demo/demo", text);
    connection.event("session", &event(2));
    let note = json!({"sessionKey": SESSION, "kind": "note", "text": "laptop has gone", "sessionSeq": 3});
    connection.event("session", &note);
    terminal.pictures("laptop has gone");
    assert_eq!(
        terminal.picture().matches("From now on").count(),
        2,
        "{}",
        terminal.picture()
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f47_an_answer_to_another_terminal_is_shown_with_its_question_and_as_markdown() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    connection.chat("elsewhere", &whole("final", 3, 1, 1, "It is **blue**."));
    answers_preview(&mut connection, "What colour is the boat?");
    terminal.shows("What colour is the boat?");
    terminal.shows("It is \u{1b}[1mblue\u{1b}[0m.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

/// Answers the request for the question of a run.
fn answers_preview(connection: &mut Connection, question: &str) {
    let request = connection.expect("session.preview");
    let messages = json!([
        {"role": "user", "content": question},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "x", "arguments": {}}]},
        {"role": "toolResult", "toolName": "x", "content": []},
    ]);
    connection.answer(
        &request,
        &json!({"sessionKey": SESSION, "sessionId": "s", "messageCount": 3, "messages": messages}),
    );
}

#[test]
fn no_color_switches_colours_off() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["chat", "hi"]).env("NO_COLOR", "1");
    let terminal = Terminal::start(command);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &whole("final", 2, 1, 1, "# Head\n\n**bold**"));
    let shown = terminal.shows("bold\r\n");
    assert!(shown.contains("Head") && !shown.contains("[1m"), "{shown:?}");
    terminal.ends_with(0);
}

#[test]
fn s20_a_token_on_the_command_line_gets_a_warning_on_a_terminal_only() {
    const TOKEN: &str = "gsv_client_abcdefghij_0123456789abcdef";
    let home = Home::new();
    let terminal = Terminal::gsv(&home, &["--token", TOKEN, "version"]);
    let shown = terminal.shows("gsv local-config set token -");
    assert!(shown.contains("history") && !shown.contains(TOKEN), "{shown}");
    terminal.ends_with(0);
    assert_eq!(home.gsv(["--token", TOKEN, "version"]).ok().stderr, "");
    let mut command = home.command();
    command.arg("version").env("GSV_TOKEN", TOKEN);
    let quiet = Terminal::start(command);
    assert!(!quiet.shows("gsv ").contains("history"));
    quiet.ends_with(0);
}
