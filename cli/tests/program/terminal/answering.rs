//! The prompt is live during an answer.

use super::{at_the_prompt, commanded, from_line, stopped};
use crate::common::fake_gateway::{delta, whole};
use serde_json::json;

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
        shown
            .replace("\r\n  ", " ")
            .contains("if the gateway is stopped, start it in another terminal: `gsv up`"),
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
