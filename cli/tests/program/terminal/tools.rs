//! Tool calls at the prompt: their output, and `/tool`.

use super::at_the_prompt;
use crate::common::fake_gateway::{Connection, SESSION, whole};
use serde_json::{Value, json};

fn call(id: &str, phase: &str, more: &Value) -> Value {
    let mut tool = json!({"callId": id, "name": "laptop__Bash", "phase": phase});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

/// A call with this output.
fn called(connection: &mut Connection, run: &str, seq: u64, id: &str, output: &Value) {
    let started = call(id, "started", &json!({"args": {"command": format!("make {id}")}}));
    connection.chat(run, &json!({"state": "tool", "sessionSeq": seq, "tool": started}));
    let ended = call(
        id,
        "ended",
        &json!({"outcome": "ok", "durationMs": 12, "output": output}),
    );
    connection.chat(run, &json!({"state": "tool", "sessionSeq": seq + 1, "tool": ended}));
}

#[test]
fn ct4_output_is_shown_by_its_ends_and_whole_when_it_is_asked_for() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("build\r");
    let run = connection.started(1);
    called(
        &mut connection,
        &run,
        2,
        "s/r1/1/0",
        &json!({"head": "one\ntwo", "lines": 2}),
    );
    terminal.pictures("● laptop__Bash ok 12 ms\n  │ one\n  │ two\n");
    let output =
        json!({"head": "line 1\nline 2\nline 3\nline 4\nline 5", "tail": "line 98\nline 99\nline 100", "lines": 100});
    called(&mut connection, &run, 4, "s/r1/2/0", &output);
    terminal.pictures("  │ line 4\n    … 93 more lines: /tool 2\n  │ line 98\n  │ line 99\n  │ line 100\n");
    // During the run, from what the chat has, and from the gateway.
    terminal.types("/tool 1\r");
    terminal.pictures("1. laptop__Bash make s/r1/1/0\n  │ one\n  │ two\n");
    terminal.types("/tool 2\r");
    let asked = connection.expect("session.result");
    assert_eq!(asked.params, json!({"sessionKey": SESSION, "callId": "s/r1/2/0"}));
    let text = (1..=100)
        .map(|line| format!("line {line}"))
        .collect::<Vec<_>>()
        .join("\n");
    let path = "results/s-r1-2-0.txt";
    connection.answer(
        &asked,
        &json!({"sessionKey": SESSION, "callId": "s/r1/2/0", "name": "laptop__Bash", "text": text, "path": path}),
    );
    terminal.pictures("  │ line 50\n  │ line 51\n");
    terminal.pictures("All of it: `gsv workspace cat results/s-r1-2-0.txt`");
    connection.chat(&run, &whole("final", 6, 3, 1, "Built."));
    terminal.pictures("Built.");
    // Between two runs, too.
    terminal.types("/tool\r");
    terminal.pictures("1. laptop__Bash make s/r1/1/0\n2. laptop__Bash make s/r1/2/0\n");
    terminal.types("/tool 7\r");
    terminal.pictures("This chat has shown no call 7.");
    terminal.types("/tool 2\r");
    let asked = connection.expect("session.result");
    connection.error(&asked, 619, "run.not_found", "No such call.");
    terminal.pictures("Call 2 has no output yet, or it is archived.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

#[test]
fn ct5_output_cannot_move_the_cursor_set_a_title_or_play_the_prompt() {
    let (_gateway, _home, mut terminal, mut connection) = at_the_prompt();
    terminal.types("look\r");
    let run = connection.started(1);
    let evil = "\u{1b}[2J\u{1b}[1;1Hgone\u{1b}]0;owned\u{7}\n› rm -rf /\rover\n\u{1b}[31mred\u{1b}[?1049h";
    called(&mut connection, &run, 2, "c", &json!({"head": evil, "lines": 3}));
    terminal.pictures("  │ gone\n  │ › rm -rf /\n  │ over\n  │ red\n");
    let picture = terminal.picture();
    assert!(
        picture.contains("/help shows commands"),
        "nothing was cleared: {picture}"
    );
    let raw = terminal.rest();
    for sequence in ["\u{1b}[2J", "\u{1b}[1;1H", "\u{1b}]0;", "\u{1b}[31m", "\u{1b}[?1049h"] {
        assert!(!raw.contains(sequence), "{sequence:?} in {raw:?}");
    }
    connection.chat(&run, &whole("final", 4, 2, 1, "Seen."));
    terminal.pictures("Seen.");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}
