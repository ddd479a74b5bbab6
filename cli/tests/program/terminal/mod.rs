//! `gsv chat` on a terminal: the prompt, which is live during an answer, Markdown, and Ctrl-C.

mod answering;
mod comfort;
mod looks;
mod prompt;
mod questions;
mod status;
mod thoughts;
mod tools;

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION};
use crate::common::terminal::Terminal;
use serde_json::json;

/// A conversation at its prompt, and the gateway and the home that it needs.
fn at_the_prompt() -> (FakeGateway, Home, Terminal, Connection) {
    prompt_of(&[])
}

/// The same, of `gsv chat` with these options.
fn prompt_of(options: &[&str]) -> (FakeGateway, Home, Terminal, Connection) {
    prompt_in(options, 100)
}

/// The same, on a terminal of this many columns.
fn prompt_in(options: &[&str], columns: u16) -> (FakeGateway, Home, Terminal, Connection) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.arg("chat").args(options);
    let terminal = Terminal::sized(command, columns, 60);
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    connection.answer(
        &follow,
        &json!({"sessionKey": SESSION, "seq": 0, "events": [], "state": "idle"}),
    );
    terminal.shows("› ");
    (gateway, home, terminal, connection)
}

fn commanded(connection: &mut Connection, message: &str, response: &str) {
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], message);
    let answer = json!({"status": "command", "command": "x", "response": response});
    connection.answer(&request, &answer);
}

/// The screen from the line with `first` on, without blank lines and the status line.
fn from_line(terminal: &Terminal, first: &str) -> Vec<String> {
    let picture = terminal.picture();
    let lines = picture.lines().skip_while(|line| !line.contains(first));
    let lines = lines.map(|line| line.trim_end().to_owned());
    lines
        .filter(|line| !line.is_empty() && !line.ends_with("main · cli:dm:main"))
        .collect()
}

fn stopped(connection: &mut Connection, run: &str, seq: u64) {
    let abort = connection.expect("chat.abort");
    let answer = json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0});
    connection.answer(&abort, &answer);
    connection.chat(run, &json!({"state": "aborted", "sessionSeq": seq}));
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
