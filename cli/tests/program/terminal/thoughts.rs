//! What the model thinks at the prompt, when it is asked for: `/thoughts` and `gsv chat --thoughts`.

use super::{at_the_prompt, prompt_of};
use crate::common::fake_gateway::{Connection, delta, whole};
use serde_json::{Value, json};

fn thinking(offset: u64, text: &str) -> Value {
    json!({"state": "thinking", "step": 1, "attempt": 1, "offset": offset, "text": text})
}

fn numbered(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|line| format!("reason {line}")).collect();
    lines.join("\n") + "\n"
}

/// The next message that the chat sends, answered. Gives its run and whether it asks for thoughts.
fn sent(connection: &mut Connection, seq: u64) -> (String, Value) {
    let send = connection.expect("chat.send");
    let run = send.params["runId"].as_str().unwrap().to_owned();
    connection.answer(&send, &json!({"status": "started", "runId": run, "seq": seq}));
    (run, send.params["thinking"].clone())
}

#[test]
fn ct12_thoughts_are_off_until_they_are_asked_for() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("hello\r");
    let (run, asks) = sent(&mut connection, 1);
    assert_eq!(asks, Value::Null);
    // A gateway that sends them nevertheless.
    connection.chat(&run, &thinking(0, "hidden reason\n"));
    connection.chat(&run, &whole("final", 2, 1, 1, "Hello."));
    terminal.pictures("Hello.");
    assert!(!terminal.picture().contains("hidden reason"));
    terminal.types("/thoughts\r");
    terminal.pictures("What the model thinks is not shown. `/thoughts on` shows it.");
    terminal.types("/thoughts 1\r");
    terminal.pictures("This chat keeps no thought 1.");

    terminal.types("/thoughts on\r");
    terminal.pictures("From now on: what the model thinks is shown");
    terminal.types("again\r");
    let (run, asks) = sent(&mut connection, 3);
    assert_eq!(asks, json!(true));
    connection.chat(&run, &thinking(0, "a reason\n"));
    connection.chat(&run, &whole("final", 4, 1, 1, "Again."));
    terminal.pictures("○ thinking\n  │ a reason\nAgain.");

    terminal.types("/thoughts off\r");
    terminal.pictures("From now on: what the model thinks is not shown.");
    terminal.types("last\r");
    let (run, asks) = sent(&mut connection, 5);
    assert_eq!(asks, Value::Null);
    connection.chat(&run, &whole("final", 6, 1, 1, "Last."));
    terminal.pictures("Last.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct14_a_long_thought_is_shown_by_its_ends_above_the_answer_and_whole_when_it_is_asked_for() {
    let (_gateway, _home, mut terminal, mut connection) = prompt_of(&["--thoughts"]);
    terminal.types("think\r");
    let (run, asks) = sent(&mut connection, 1);
    assert_eq!(asks, json!(true));
    let text = numbered(30);
    let (first, rest) = text.split_at(50);
    connection.chat(&run, &thinking(0, first));
    // While it thinks.
    terminal.pictures("○ thinking\n  │ reason 1\n  │ reason 2\n  │ reason 3\n  │ reason 4\n");
    connection.chat(&run, &thinking(50, rest));
    connection.chat(&run, &delta(1, 1, 0, "Done "));
    terminal.pictures("    … 23 more lines: /thoughts 1\n  │ reason 28\n  │ reason 29\n  │ reason 30\n");
    terminal.types("/thoughts 1\r");
    terminal.pictures("  │ reason 14\n  │ reason 15\n");
    connection.chat(&run, &whole("final", 2, 1, 1, "Done thinking."));
    terminal.pictures("Done thinking.");
    let raw = terminal.rest();
    assert!(raw.contains("\u{1b}[2m  │ reason 28\u{1b}[0m"), "{raw:?}");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct14_thoughts_cannot_move_the_cursor_set_a_title_or_play_the_prompt() {
    let (_gateway, _home, mut terminal, mut connection) = prompt_of(&["--thoughts"]);
    terminal.types("look\r");
    let (run, _) = sent(&mut connection, 1);
    let evil = "\u{1b}[2J\u{1b}[1;1Hgone\u{1b}]0;owned\u{7}\n› rm -rf /\rover\n\u{1b}[31mred\u{1b}[?1049h";
    connection.chat(&run, &thinking(0, evil));
    connection.chat(&run, &whole("final", 2, 1, 1, "Seen."));
    terminal.pictures("  │ gone\n  │ › rm -rf /\n  │ over\n  │ red\nSeen.");
    assert!(
        terminal.picture().contains("/help shows commands"),
        "nothing was cleared"
    );
    let raw = terminal.rest();
    for sequence in ["\u{1b}[2J", "\u{1b}[1;1H", "\u{1b}]0;", "\u{1b}[31m", "\u{1b}[?1049h"] {
        assert!(!raw.contains(sequence), "{sequence:?} in {raw:?}");
    }
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct12_asked_for_during_a_run_they_are_shown_from_then_on() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("think\r");
    let (run, asks) = sent(&mut connection, 1);
    assert_eq!(asks, Value::Null);
    terminal.types("/thoughts on\r");
    let subscribe = connection.expect("session.subscribe");
    assert_eq!(subscribe.params["thinking"], json!(true));
    connection.answer(
        &subscribe,
        &json!({"sessionKey": subscribe.params["sessionKey"], "seq": 1, "events": [], "state": "thinking", "runId": run, "step": 1, "attempt": 1}),
    );
    connection.chat(&run, &thinking(120, "the rest\n"));
    connection.chat(&run, &whole("final", 2, 1, 1, "Done."));
    terminal.pictures("○ thinking\n  │ […]\n  │ the rest\nDone.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}
