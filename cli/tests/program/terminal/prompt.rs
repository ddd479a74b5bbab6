//! The prompt of a chat.

use std::fs;

use super::{answers_preview, at_the_prompt};
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION, chat, delta, whole};
use crate::common::mode;
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

/// Answers a chat that follows the conversation. Returns from where on it asked.
fn followed(connection: &mut Connection, seq: u64, events: &[Value]) -> Value {
    let asked = connection.expect("session.subscribe");
    let answer = json!({"sessionKey": SESSION, "seq": seq, "events": events, "state": "idle"});
    connection.answer(&asked, &answer);
    asked.params["afterSeq"].clone()
}

/// What a job or a reminder brought while no chat was open.
fn opened_later(question: &str, shown: &[&str], hidden: &str) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    assert!(followed(&mut connection, 9, &[]).is_null());
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "The job says:\n\n**Sunny**"}]});
    let note =
        json!({"sessionKey": SESSION, "kind": "note", "sessionSeq": 9, "text": "The job says:", "message": message});
    let events = [
        chat("old", &whole("final", 3, 1, 1, "Seen long ago")),
        chat("cron", &whole("final", 6, 1, 1, "Time to call")),
        note.clone(),
    ];
    assert_eq!(followed(&mut connection, 9, &events), 0);
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
    assert!(followed(&mut connection, 11, &[]).is_null());
    let later = json!({"sessionKey": SESSION, "kind": "note", "sessionSeq": 11, "text": "laptop left"});
    assert_eq!(followed(&mut connection, 11, &[later]), 10);
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
    let event = chat("of-another-client", &whole("final", 2, 1, 1, "Said meanwhile"));
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
