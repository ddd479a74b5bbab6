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

#[test]
fn f43_what_is_typed_during_an_answer_is_sent_after_it_in_order_and_nothing_is_shown_twice() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "The answer beg"));
    terminal.shows("The answer beg");
    terminal.types("one\rtwo\r");
    connection.chat(&run, &delta(1, 1, 14, "ins"));
    terminal.shows("ins");
    connection.chat(&run, &whole("final", 2, 1, 1, "The answer begins and **ends**."));
    commanded(&mut connection, "one", "first answer");
    commanded(&mut connection, "two", "second answer");
    terminal.pictures("second answer");
    let picture = terminal.picture();
    let lines: Vec<&str> = picture.lines().skip_while(|line| !line.contains("› slow")).collect();
    assert_eq!(
        lines[..6],
        [
            "› slow",
            "The answer begins and ends.",
            "› one",
            "first answer",
            "› two",
            "second answer"
        ],
        "{picture}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f43_ctrl_c_stops_the_run_and_keeps_what_was_typed_ahead() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "The answer"));
    terminal.shows("The answer");
    // The terminal throws waiting keys away at Ctrl-C; it signals no program here, because it is not the controlling terminal.
    terminal.types("one\rtw\u{3}");
    terminal.interrupt();
    let abort = connection.expect("chat.abort");
    connection.answer(
        &abort,
        &json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0}),
    );
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    commanded(&mut connection, "one", "first answer");
    terminal.shows("first answer");
    // The line that was not complete is at the prompt.
    terminal.types("o\r");
    commanded(&mut connection, "two", "second answer");
    terminal.shows("second answer");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f44_answers_of_commands_keep_their_columns_and_help_is_complete() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    terminal.types("/help\r");
    commanded(
        &mut connection,
        "/help",
        "/status            what it is doing\n/stop              stop the run",
    );
    terminal.shows("/status            what it is doing\r\n/stop              stop the run\r\n");
    for command in ["/attach FILE ", "/quit, /exit "] {
        terminal.shows(command);
    }
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn f44_an_unknown_command_is_sent_only_after_a_yes() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
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
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
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
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
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
