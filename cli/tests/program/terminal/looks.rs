//! What a chat looks like: columns, confirmations, Markdown, colours.

use super::{answers_preview, at_the_prompt, commanded, prompt_in};
use crate::common::Home;
use crate::common::fake_gateway::{FakeGateway, SESSION, whole};
use crate::common::terminal::Terminal;
use serde_json::json;

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
    for command in [
        "/attach FILE ",
        "y, s, n ",
        "/quit, /exit ",
        "are sent when it has ended",
    ] {
        terminal.shows(command);
    }
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct15_help_and_questions_break_between_words_on_a_narrow_terminal() {
    let (_gateway, _home, mut terminal, mut connection) = prompt_in(&[], 60);
    terminal.types("/help\r");
    commanded(
        &mut connection,
        "/help",
        "/model NAME        use another model; `/model default`: the configured one",
    );
    terminal
        .shows("/model NAME        use another model; `/model default`: the\r\n                   configured one\r\n");
    terminal.shows(
        "/attach FILE       send a file with the next message\r\n                   (`/attach none`: no files)\r\n",
    );
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
    terminal.types("/xyz\r");
    terminal.shows("There is no command `/xyz`. Send it as a message?");
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
