//! The status line below the prompt, and its spinner.

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION, delta, whole};
use crate::common::terminal::Terminal;
use serde_json::json;

const ASKED: [&str; 2] = ["session.get", "nodes.list"];

/// Answers what the status line asks for, in any order.
fn tells(connection: &mut Connection, tokens: u64, cost: f64) {
    for _ in ASKED {
        let request = connection.request();
        match request.method.as_str() {
            "session.get" => connection.answer(
                &request,
                &json!({
                    "sessionId": "s", "sessionKey": SESSION, "createdAt": 1, "updatedAt": 1, "messageCount": 2, "settings": {},
                    "tokens": {"input": 1, "output": 1, "total": 2, "costUsd": cost}, "previousSessionIds": [],
                    "contextTokens": tokens, "contextWindow": 200_000, "model": {"provider": "p", "id": "big\u{1b}]0;x\u{7}-model"}
                }),
            ),
            "nodes.list" => {
                let node = |id: &str, online: bool| {
                    json!({"nodeId": id, "online": online, "hostCapabilities": [], "toolCapabilities": {}, "tools": []})
                };
                connection.answer(&request, &json!({"nodes": [node("laptop", true), node("pi", false)], "count": 2}));
            }
            other => panic!("{other} was not expected"),
        }
    }
}

fn opened(columns: u16, set: impl FnOnce(&mut std::process::Command)) -> (FakeGateway, Home, Terminal, Connection) {
    let gateway = FakeGateway::new().serving(&ASKED);
    let home = gateway.home();
    let mut command = home.command();
    command.arg("chat");
    set(&mut command);
    let terminal = Terminal::sized(command, columns, 40);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    tells(&mut connection, 2_000, 0.0);
    (gateway, home, terminal, connection)
}

/// The last row with text.
fn last_row(terminal: &Terminal) -> String {
    terminal
        .picture()
        .trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

#[test]
fn ct1_the_status_line_stands_below_the_prompt_and_follows_the_conversation() {
    let (_gateway, _home, mut terminal, mut connection) = opened(100, |_| {});
    terminal.pictures("big-model · main · cli:dm:main · laptop · context 1%");
    terminal.types("hello");
    terminal.pictures("› hello");
    assert_eq!(
        last_row(&terminal),
        "big-model · main · cli:dm:main · laptop · context 1%"
    );
    terminal.types("\r");
    let run = connection.started(1);
    connection.chat(&run, &whole("final", 2, 1, 1, "Good day."));
    tells(&mut connection, 50_000, 0.5);
    terminal.pictures("laptop · $0.50 · context 25%");
    let picture = terminal.picture();
    assert_eq!(
        picture.matches("big-model").count(),
        1,
        "only the present line: {picture}"
    );
    assert!(
        picture.contains("› hello\nGood day.\n") || picture.contains("› hello\n\nGood day."),
        "{picture}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct2_a_spinner_turns_from_enter_to_the_end_of_the_run() {
    let (_gateway, _home, mut terminal, mut connection) = opened(100, |_| {});
    terminal.pictures("context 1%");
    terminal.types("build\r");
    let request = connection.expect("chat.send");
    // The gateway has not answered yet.
    terminal.pictures("sending 0 s · big-model");
    let run = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(&request, &json!({"status": "started", "runId": run, "seq": 1}));
    terminal.pictures("thinking");
    // It turns although nothing arrives, and the line that is typed meanwhile stays.
    terminal.types("next");
    for frame in ["⠙", "⠸", "⠦"] {
        terminal.shows(frame);
    }
    terminal.pictures("› next");
    let call = json!({"callId": "c", "name": "laptop__Bash", "phase": "started", "args": {"command": "make"}});
    connection.chat(&run, &json!({"state": "tool", "sessionSeq": 2, "tool": call}));
    terminal.pictures("laptop__Bash 0 s");
    connection.chat(&run, &delta(2, 1, 0, "Built"));
    terminal.pictures("writing");
    // Esc keeps the line, and the status line stands once.
    terminal.types("\u{1b}");
    let abort = connection.expect_after(&ASKED, "chat.abort");
    terminal.pictures("stopping");
    connection.answer(
        &abort,
        &json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0}),
    );
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 3}));
    terminal.pictures("Stopped.");
    terminal.pictures("› next");
    let picture = terminal.picture();
    assert_eq!(picture.matches("big-model").count(), 1, "{picture}");
    assert_eq!(picture.matches("› next").count(), 1, "{picture}");
    terminal.types("\u{15}/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct1_the_line_fits_a_narrow_terminal_and_leaves_nothing_at_the_end() {
    let (_gateway, _home, mut terminal, _connection) = opened(38, |_| {});
    terminal.pictures("big-model · laptop · context 1%");
    terminal.types("\u{4}");
    let status = terminal.ended();
    assert_eq!(status, Some(0));
    assert!(!terminal.picture().contains("big-model"), "{}", terminal.picture());
}

#[test]
fn ct3_no_status_line_where_nothing_can_be_repainted_and_no_colour_without_colours() {
    let (_gateway, _home, terminal, _connection) = opened(100, |command| {
        command.env("NO_COLOR", "1");
    });
    terminal.shows("big-model · main");
    assert!(!terminal.rest().contains("\u{1b}[2m"), "{:?}", terminal.rest());

    let gateway = FakeGateway::new().serving(&ASKED);
    let home = gateway.home();
    let mut command = home.command();
    command.arg("chat");
    let mut terminal = Terminal::of_kind(command, "dumb");
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.types("hello\r");
    // Nothing is asked for a line that is not shown.
    let run = connection.started(1);
    connection.chat(&run, &whole("final", 2, 1, 1, "Good day."));
    let shown = terminal.shows("Good day.");
    assert!(!shown.contains("sending") && !shown.contains("thinking"), "{shown:?}");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    assert!(!format!("{shown}{}", terminal.rest()).contains('\u{1b}'), "{shown:?}");
}

#[test]
fn ct3_an_answer_where_nothing_can_be_repainted_is_written_once_without_codes() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["chat", "hello"]);
    let mut terminal = Terminal::of_kind(command, "dumb");
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "Good **day"));
    connection.chat(
        &run,
        &whole("final", 2, 1, 1, "Good **day**, here is one list:\n\n- one\n- two\n"),
    );
    assert_eq!(terminal.ended(), Some(0));
    let shown = terminal.rest();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert_eq!(shown.matches("Good").count(), 1, "{shown:?}");
}
