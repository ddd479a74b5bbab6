//! Typing while a run is under way: lines for the run, lines that wait, and Esc.

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION, delta, whole};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

/// A conversation at its prompt with a run under way.
fn in_a_run(args: &[&str]) -> (FakeGateway, Home, Terminal, Connection, String) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    at_work(gateway, home, args)
}

fn at_work(gateway: FakeGateway, home: Home, args: &[&str]) -> (FakeGateway, Home, Terminal, Connection, String) {
    let mut terminal = Terminal::gsv(&home, args);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.shows("› ");
    terminal.types("slow\r");
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "One.\n\nTw"));
    terminal.pictures("One.");
    (gateway, home, terminal, connection, run)
}

fn shown_to_run(message: &Value, run: &Value, seq: u64) -> Value {
    json!({
        "state": "status",
        "text": "The model now has your message: use tabs",
        "step": 2,
        "sessionSeq": seq,
        "steered": {"messageId": message, "runId": run},
    })
}

/// A message that waits is told which questions wait before it.
fn nothing_asked(connection: &mut Connection) {
    let list = connection.expect("approval.list");
    connection.answer(&list, &json!({"approvals": []}));
}

fn leave(mut terminal: Terminal) {
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn wb2_with_the_setting_enter_sends_a_line_to_the_run_once() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    home.gsv(["local-config", "set", "chat.enter", "steer"]).ok();
    let shown = home.gsv(["local-config", "get", "chat.enter"]).ok();
    assert_eq!(shown.stdout.trim(), "steer");
    home.gsv(["local-config", "set", "chat.enter", "now"]).failed(2);
    let (_gateway, _home, mut terminal, mut connection, run) = at_work(gateway, home, &["chat"]);
    terminal.types("use tabs\r");
    terminal.pictures("for the run: use tabs");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["whileBusy"], "steer");
    assert_eq!(request.params["message"], "use tabs");
    let (message, own) = (&request.params["messageId"], &request.params["runId"]);
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "steers": run}),
    );
    connection.chat(&run, &shown_to_run(message, own, 4));
    terminal.pictures("The model now has your message: use tabs");
    connection.chat(&run, &whole("final", 5, 2, 1, "Two, with tabs."));
    terminal.pictures("Two, with tabs.");
    // The next message is the next that is sent: the line was not sent again.
    terminal.types("next\r");
    let next = connection.expect("chat.send");
    assert_eq!(next.params["message"], "next");
    assert_eq!(next.params.get("whileBusy"), None);
    connection.answer(&next, &json!({"status": "command", "command": "x", "response": "fine"}));
    terminal.pictures("fine");
    leave(terminal);
}

#[test]
fn wb2_the_setting_counts_from_the_next_enter_in_a_chat_that_is_open() {
    let (_gateway, home, mut terminal, mut connection, run) = in_a_run(&["chat"]);
    terminal.types("first\r");
    terminal.pictures("queued: first");
    home.gsv(["local-config", "set", "chat.enter", "steer"]).ok();
    terminal.types("use tabs\r");
    terminal.pictures("for the run: use tabs");
    assert_eq!(connection.expect("chat.send").params["whileBusy"], "steer");
    home.gsv(["local-config", "set", "chat.enter", "queue"]).ok();
    terminal.types("third\r");
    terminal.pictures("queued: third");
    drop((terminal, run));
}

#[test]
fn wb1_a_message_that_waits_at_the_gateway_is_in_the_list() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["chat"]);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.shows("› ");
    terminal.types("and then this\r");
    let request = connection.expect("chat.send");
    let own = &request.params["runId"];
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "seq": 1}),
    );
    nothing_asked(&mut connection);
    terminal.pictures("queued behind another message");
    terminal.types("/queue\r");
    terminal.pictures("Ctrl-C takes it back: and then this");
    assert!(!terminal.picture().contains("No message waits."));
}

#[test]
fn wb3_a_line_that_the_run_has_not_had_is_followed_as_the_next_turn() {
    let (_gateway, _home, mut terminal, mut connection, run) = in_a_run(&["chat"]);
    terminal.types("/steer use tabs\r");
    terminal.pictures("for the run: use tabs");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["whileBusy"], "steer");
    let own = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "steers": run}),
    );
    connection.chat(&run, &whole("final", 2, 1, 1, "One.\n\nTwo."));
    terminal.pictures("Two.");
    // The same message under the same ids: the gateway answers as before, and tells what was missed.
    let again = connection.expect("chat.send");
    assert_eq!(again.params["messageId"], request.params["messageId"]);
    assert_eq!(again.params["runId"], request.params["runId"]);
    connection.answer(
        &again,
        &json!({"status": "started", "runId": own, "queued": true, "steers": run, "duplicate": true}),
    );
    let missed = connection.expect("session.subscribe");
    connection.answer(
        &missed,
        &json!({"sessionKey": SESSION, "seq": 3, "events": [], "state": "thinking"}),
    );
    nothing_asked(&mut connection);
    connection.chat(&own, &whole("final", 4, 1, 1, "With tabs then."));
    terminal.pictures("With tabs then.");
    leave(terminal);
}

#[test]
fn wb4_esc_stops_the_run_and_keeps_the_line() {
    let (_gateway, _home, mut terminal, mut connection, run) = in_a_run(&["chat"]);
    terminal.types("later\rhalf\u{1b}");
    let request = connection.expect("chat.abort");
    assert_eq!(request.params["runId"], run);
    connection.answer(
        &request,
        &json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0}),
    );
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "later");
    connection.answer(
        &request,
        &json!({"status": "command", "command": "x", "response": "fine"}),
    );
    terminal.pictures("fine");
    terminal.pictures("› half");
    // Keys that begin like Esc are still keys.
    terminal.types("\u{1b}[D\u{1b}[DX");
    terminal.pictures("› haXlf");
    terminal.types("\u{5}\u{15}");
    leave(terminal);
}

#[test]
fn wb1_lines_that_wait_are_listed_removed_and_edited() {
    let (_gateway, _home, mut terminal, mut connection, run) = in_a_run(&["chat", "--steer"]);
    for text in ["first", "second", "third"] {
        terminal.types(&format!("/queue add {text}\r"));
        terminal.pictures(&format!("queued: {text}"));
    }
    terminal.types("/queue\r");
    terminal.pictures("2. second");
    terminal.pictures("3. third");
    terminal.types("/queue drop 1\r");
    terminal.pictures("removed: first");
    terminal.types("/queue drop 7\r");
    terminal.pictures("No message 7 waits.");
    terminal.types("/queue edit 2\r");
    terminal.pictures("› third");
    // Where Enter steers, the changed line is for the run.
    terminal.types(" thing\r");
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "third thing");
    assert_eq!(request.params["whileBusy"], "steer");
    let (message, own) = (&request.params["messageId"], &request.params["runId"]);
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "steers": run}),
    );
    connection.chat(&run, &shown_to_run(message, own, 2));
    connection.chat(&run, &whole("final", 3, 2, 1, "Done."));
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "second");
    connection.answer(
        &request,
        &json!({"status": "command", "command": "x", "response": "fine"}),
    );
    terminal.pictures("fine");
    leave(terminal);
}

#[test]
fn wb2_one_message_for_the_run_prints_the_answer_of_that_run() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    home.gsv(["chat", "--interrupt", "--steer", "x"]).failed(2);
    let mut command = home.command();
    command.args(["chat", "--steer", "use", "tabs"]);
    let chat = crate::common::start(&mut command);
    let mut connection = gateway.accept();
    let request = connection.expect("chat.send");
    assert_eq!(request.params["whileBusy"], "steer");
    let (message, own) = (&request.params["messageId"], &request.params["runId"]);
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "steers": "run-before"}),
    );
    let position = connection.expect("session.subscribe");
    connection.answer(
        &position,
        &json!({"sessionKey": SESSION, "seq": 3, "events": [], "state": "acting"}),
    );
    nothing_asked(&mut connection);
    connection.chat("run-before", &shown_to_run(message, own, 4));
    connection.chat("run-before", &whole("final", 5, 2, 1, "With tabs."));
    let run = crate::common::finish(chat).ok();
    assert_eq!(run.stdout.trim(), "With tabs.");
}

#[test]
fn wb3_one_message_for_a_run_that_ends_before_prints_its_own_answer() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["chat", "--steer", "use", "tabs"]);
    let chat = crate::common::start(&mut command);
    let mut connection = gateway.accept();
    let request = connection.expect("chat.send");
    let own = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": true, "steers": "run-before"}),
    );
    let position = connection.expect("session.subscribe");
    connection.answer(
        &position,
        &json!({"sessionKey": SESSION, "seq": 3, "events": [], "state": "thinking"}),
    );
    nothing_asked(&mut connection);
    connection.chat("run-before", &whole("final", 4, 1, 1, "Without."));
    connection.chat(&own, &whole("final", 6, 1, 1, "With tabs."));
    let run = crate::common::finish(chat).ok();
    assert!(run.stdout.trim().ends_with("With tabs."), "{}", run.stdout);
}

#[test]
fn wb4_one_message_in_the_place_of_a_run() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["chat", "--interrupt", "stop", "that"]);
    let chat = crate::common::start(&mut command);
    let mut connection = gateway.accept();
    let request = connection.expect("chat.send");
    assert_eq!(request.params["whileBusy"], "interrupt");
    let own = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(
        &request,
        &json!({"status": "started", "runId": own, "queued": false, "seq": 7, "interrupted": "run-before"}),
    );
    connection.chat(&own, &whole("final", 8, 1, 1, "Stopped, and on."));
    let run = crate::common::finish(chat).ok();
    assert_eq!(run.stdout.trim(), "Stopped, and on.");
}
