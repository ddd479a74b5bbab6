//! Lines of several rows, the sign after a long answer, colours of code, the choice of a conversation, and the first chat.

use super::at_the_prompt;
use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway, SESSION, whole};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

fn listed(connection: &mut Connection, sessions: &[(&str, Option<&str>)]) -> Value {
    let request = connection.expect("sessions.list");
    let entry = |(key, label): &(&str, Option<&str>)| json!({"sessionKey": key, "createdAt": 1, "lastActiveAt": 2, "label": label});
    let mut entries: Vec<Value> = sessions.iter().map(entry).collect();
    for entry in &mut entries {
        entry.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    connection.answer(&request, &json!({"sessions": entries, "count": sessions.len()}));
    request.params
}

fn followed(gateway: &FakeGateway) -> (Connection, Value) {
    let mut connection = gateway.accept();
    let follow = connection.expect("session.subscribe");
    let key = follow.params["sessionKey"].clone();
    connection.answer(
        &follow,
        &json!({"sessionKey": key, "seq": 0, "events": [], "state": "idle"}),
    );
    (connection, key)
}

#[test]
fn ct10_alt_enter_begins_another_line_of_the_message() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("one\u{1b}\rtwo");
    terminal.pictures("› one\ntwo");
    terminal.types("\r");
    assert_eq!(connection.expect("chat.send").params["message"], "one\ntwo");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct7_the_bell_rings_after_a_long_answer_and_not_after_a_command() {
    let (_gateway, home, mut terminal, mut connection) = at_the_prompt();
    home.gsv(["local-config", "set", "chat.notifyAfter", "0s"]).ok();
    terminal.types("/model\r");
    super::commanded(&mut connection, "/model", "The model is m.");
    terminal.shows("The model is m.");
    terminal.types("hello\r");
    let run = connection.started(1);
    connection.chat(&run, &whole("final", 2, 1, 1, "Good day."));
    let before = terminal.shows("\u{7}");
    assert!(
        before.contains("Good day.") && !before.contains("\u{1b}]9"),
        "{before:?}"
    );
    home.gsv(["local-config", "set", "chat.notify", "osc9"]).ok();
    terminal.types("again\r");
    let run = connection.started(3);
    connection.chat(&run, &whole("final", 4, 1, 1, "Once more."));
    terminal.shows("\u{1b}]9;GSV: the answer is complete\u{7}");
    let wrong = home.gsv(["local-config", "set", "chat.notify", "siren"]).failed(2);
    assert!(wrong.stderr.contains("osc9"), "{}", wrong.stderr);
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct6_code_of_a_known_language_has_colours_and_other_code_one() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("code\r");
    let run = connection.started(1);
    connection.chat(
        &run,
        &whole("final", 2, 1, 1, "```rust\nlet a = 1;\n```\n\n```text\nlet b = 2;\n```"),
    );
    terminal.shows("  \u{1b}[35mlet\u{1b}[0m a = \u{1b}[33m1\u{1b}[0m;");
    terminal.shows("\u{1b}[36m  let b = 2;\u{1b}[0m");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct8_a_chat_goes_on_with_the_conversation_that_was_active_last() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["chat", "--continue"]);
    let mut asked = gateway.accept();
    listed(
        &mut asked,
        &[
            ("agent:main:cron:x", None),
            ("agent:main:discord:dm:7", None),
            ("agent:work:cli:dm:boat", None),
        ],
    );
    let (_connection, key) = followed(&gateway);
    assert_eq!(key, "agent:work:cli:dm:boat");
    terminal.pictures("agent:work:cli:dm:boat");
    terminal.types("/quit\r");
    terminal.ends_with(0);
    // Of one agent, and its usual conversation when there is none.
    let mut terminal = Terminal::gsv(&home, &["chat", "-c", "--agent", "work"]);
    let mut asked = gateway.accept();
    assert_eq!(listed(&mut asked, &[])["agentId"], "work");
    let (_connection, key) = followed(&gateway);
    assert_eq!(key, "agent:work:cli:dm:main");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct8_a_conversation_is_chosen_from_a_list_by_its_name() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["session"]);
    let mut asked = gateway.accept();
    listed(
        &mut asked,
        &[
            (SESSION, None),
            ("agent:main:cli:dm:b", Some("Boat\u{1b}[2J trip")),
            ("agent:main:cli:dm:c", Some("Boat repair")),
        ],
    );
    let picture = terminal.pictures("Open which one");
    assert!(
        picture.contains("  1. agent:main:cli:dm:main") && picture.contains("  2. Boat trip"),
        "{picture}"
    );
    terminal.types("boat\n");
    terminal.pictures("2 conversations match.");
    terminal.types("trip\n");
    let (_connection, key) = followed(&gateway);
    assert_eq!(key, "agent:main:cli:dm:b");
    terminal.types("/quit\r");
    terminal.ends_with(0);
    let piped = home.gsv(["session"]).failed(2);
    assert!(piped.stderr.contains("gsv session list"), "{}", piped.stderr);
}

#[test]
fn ct11_the_first_chat_offers_setup_and_a_no_leaves_everything_as_it_is() {
    let home = Home::new();
    let mut terminal = Terminal::gsv(&home, &["chat"]);
    terminal.pictures("GSV is not set up on this machine yet.");
    terminal.types("n\n");
    terminal.pictures("Later: `gsv setup`.");
    terminal.pictures("No token for the gateway is set.");
    terminal.ends_with(3);
    assert!(!home.state().join("gateway").exists());
    // Not for a message, and not without a terminal.
    for args in [&["chat", "hello"][..], &["chat"]] {
        let run = home.gsv(args);
        assert!(!run.stderr.contains("not set up on this machine"), "{run:?}");
    }
    let terminal = Terminal::gsv(&home, &["chat", "hello"]);
    terminal.pictures("No token for the gateway is set.");
    assert!(!terminal.picture().contains("not set up on this machine"));
    terminal.ends_with(3);
}
