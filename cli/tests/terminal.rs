//! `gsv chat` on a terminal: the prompt, Markdown, and Ctrl-C.

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
use serde_json::json;

/// A conversation at its prompt.
fn at_the_prompt(gateway: &FakeGateway, home: &Home) -> (Terminal, Connection) {
    let terminal = Terminal::gsv(home, &["chat"]);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.shows("› ");
    (terminal, connection)
}

#[test]
fn a_conversation_at_the_prompt() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    terminal.types("hello\r");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "hello");
    let run = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(&request, &json!({"status": "started", "runId": run, "seq": 1}));
    connection.chat(&run, &delta(1, 1, 0, "Some **bold"));
    terminal.shows("Some **bold");
    connection.chat(&run, &whole("final", 2, 1, 1, "Some **bold** word"));
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
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
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
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, _connection) = at_the_prompt(&gateway, &home);
    terminal.types("\u{3}");
    terminal.shows("Ctrl-C again or Ctrl-D leaves");
    terminal.shows("› ");
    terminal.types("\u{3}");
    terminal.ends_with(0);
}

#[test]
fn p14_ctrl_c_during_a_run_stops_the_run_and_not_the_program() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    terminal.types("count\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "1 2 3"));
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
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    connection.chat(
        "of-another-client",
        &whole("final", 1, 1, 1, "An answer\u{1b}[2J to another client"),
    );
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
