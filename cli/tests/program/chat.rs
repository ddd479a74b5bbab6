//! `gsv chat` against a gateway that the test plays.

use std::io::Read;
use std::process::Child;
use std::thread;

use crate::common::fake_gateway::{FakeGateway, SESSION, chat, delta, whole};
use crate::common::{Home, Run, finish, signal};
use serde_json::json;

fn start(home: &Home, args: &[&str]) -> Child {
    crate::common::start(home.command().arg("chat").args(args))
}

fn interrupt(child: &Child) {
    signal(child, "-INT");
}

/// Reads stdout until it ends with `text`.
fn read_until(child: &mut Child, text: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    let stdout = child.stdout.as_mut().unwrap();
    while !seen.ends_with(text.as_bytes()) {
        assert_eq!(
            stdout.read(&mut byte).unwrap(),
            1,
            "stdout ended after {:?}",
            String::from_utf8_lossy(&seen)
        );
        seen.push(byte[0]);
    }
    String::from_utf8(seen).unwrap()
}

#[test]
fn c4_text_is_shown_as_it_comes_and_once() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut child = start(&home, &["hello"]);
    let mut connection = gateway.accept();
    assert_eq!(connection.hello["client"]["mode"], "client");
    let run = connection.started(7);
    connection.chat(&run, &delta(1, 1, 0, "Hel"));
    assert_eq!(read_until(&mut child, "Hel"), "Hel", "before the run has ended");
    connection.chat(&run, &delta(1, 1, 3, "lo"));
    connection.chat("another-run", &whole("final", 8, 1, 1, "not for us"));
    connection.chat(&run, &whole("final", 9, 1, 1, "Hello, you"));
    let rest = finish(child).ok();
    assert_eq!(rest.stdout, "lo, you\n");
}

#[test]
fn tool_calls_are_shown_on_stderr_and_usage_when_asked() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["-v", "look"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &whole("partial", 2, 1, 1, "Let me look."));
    let tool = |phase: &str| json!({"callId": "c/1", "name": "laptop__Bash", "phase": phase, "args": {"command": "uname -a"}, "outcome": "ok", "durationMs": 12});
    connection.chat(
        &run,
        &json!({"state": "tool", "sessionSeq": 3, "step": 1, "tool": tool("started")}),
    );
    connection.chat(
        &run,
        &json!({"state": "tool", "sessionSeq": 4, "step": 1, "tool": tool("ended")}),
    );
    let mut end = whole("final", 5, 2, 1, "Linux.");
    end["usage"] = json!({"input": 1200, "output": 30, "total": 1230, "costUsd": 0.0042});
    connection.chat(&run, &end);
    let run = finish(child).ok();
    assert_eq!(run.stdout, "Let me look.\nLinux.\n");
    assert!(
        run.stderr
            .contains("● laptop__Bash uname -a …\n● laptop__Bash ok 12 ms\n"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("1,200 tokens in · 30 out · $0.0042"),
        "{}",
        run.stderr
    );
}

#[test]
fn c1_c5_after_a_reconnect_no_text_is_lost_or_repeated() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    let run = connection.started(7);
    connection.chat(&run, &delta(1, 1, 0, "One "));
    connection.chat(&run, &whole("partial", 8, 1, 1, "One two"));
    connection.chat(&run, &delta(2, 1, 0, "Thr"));
    assert_eq!(read_until(&mut child, "Thr"), "One two\nThr");
    connection.cut();

    let mut connection = gateway.accept();
    let sync = connection.expect("session.subscribe");
    assert_eq!(sync.params["afterSeq"], 7, "from one before the last event seen");
    // Live events that overtake the answer wait for it.
    connection.chat(&run, &delta(2, 2, 5, " fo"));
    let events = json!([chat(&run, &whole("partial", 8, 1, 1, "One two"))]);
    connection.answer(&sync, &json!({"sessionKey": SESSION, "seq": 8, "events": events, "state": "thinking", "runId": run, "step": 2, "attempt": 2, "text": "Three"}));
    connection.chat(&run, &delta(2, 2, 8, "ur"));
    connection.chat(&run, &whole("final", 9, 2, 2, "Three four"));
    connection.chat(&run, &whole("final", 9, 2, 2, "Three four"));
    let rest = finish(child).ok();
    assert_eq!(rest.stdout, "ee four\n");
    assert!(rest.stderr.contains("connection lost"), "{}", rest.stderr);
    assert!(rest.stderr.contains("connected again"), "{}", rest.stderr);
    assert!(rest.stderr.contains("resuming…"), "{}", rest.stderr);
}

#[test]
fn c5_a_run_that_ended_during_the_outage_is_replayed() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    let run = connection.started(7);
    connection.chat(&run, &delta(1, 1, 0, "Ha"));
    read_until(&mut child, "Ha");
    connection.cut();
    let mut connection = gateway.accept();
    let sync = connection.expect("session.subscribe");
    let event = json!({"event": "chat", "payload": chat(&run, &whole("final", 8, 1, 1, "Half and whole"))});
    connection.answer(
        &sync,
        &json!({"sessionKey": SESSION, "seq": 8, "events": [event], "state": "idle"}),
    );
    assert_eq!(finish(child).ok().stdout, "lf and whole\n");
}

#[test]
fn c1_a_message_without_an_answer_is_sent_again_under_the_same_id() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    let first = connection.expect("chat.send");
    connection.cut();
    let mut connection = gateway.accept();
    let again = connection.expect("chat.send");
    assert_eq!(again.params, first.params);
    assert_eq!(again.params["messageId"].as_str().unwrap().len(), 26);
    let run = again.params["runId"].as_str().unwrap().to_owned();
    connection.answer(
        &again,
        &json!({"status": "started", "runId": run, "duplicate": true, "seq": 3}),
    );
    let sync = connection.expect("session.subscribe");
    assert_eq!(sync.params["afterSeq"], 2);
    let events = json!([chat(&run, &whole("final", 4, 1, 1, "Answered while you were away"))]);
    connection.answer(
        &sync,
        &json!({"sessionKey": SESSION, "seq": 4, "events": events, "state": "idle"}),
    );
    assert_eq!(finish(child).ok().stdout, "Answered while you were away\n");
}

#[test]
fn c5_events_that_are_too_old_for_a_replay_are_reported() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    connection.started(7);
    connection.cut();
    let mut connection = gateway.accept();
    let sync = connection.expect("session.subscribe");
    connection.error(&sync, 444, "session.snapshot_required", "Too old.");
    let run = finish(child).failed(1);
    assert!(
        run.stderr.contains("gsv session preview agent:main:cli:dm:main"),
        "{}",
        run.stderr
    );
}

#[test]
fn p10_a_failed_run_ends_with_the_reason_s_exit_status_and_the_next_step() {
    for (reason, status) in [
        ("model.auth", 1),
        ("model.overloaded", 4),
        ("internal", 70),
        ("made.up", 1),
    ] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let child = start(&home, &["go"]);
        let mut connection = gateway.accept();
        let run = connection.started(1);
        connection.chat(&run, &delta(1, 1, 0, "Par"));
        connection.chat(
            &run,
            &json!({"state": "error", "sessionSeq": 2, "error": "It went wrong.", "reason": reason}),
        );
        let run = finish(child).failed(status);
        assert_eq!(run.stdout, "Par\n");
        assert!(
            run.stderr.contains(&format!("error: It went wrong. [{reason}]")),
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.contains("next:"), reason != "made.up", "{}", run.stderr);
    }
}

#[test]
fn refusals_end_with_the_contract_s_exit_status() {
    for (code, reason, close, status) in [
        (401, "auth.required", 4001, 3),
        (403, "auth.forbidden", 4003, 3),
        (102, "protocol.version", 4002, 2),
    ] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let child = start(&home, &["go"]);
        gateway.refuse(code, reason, "No.", close);
        let run = finish(child).failed(status);
        assert!(run.stderr.contains(&format!("No. [{reason}]")), "{}", run.stderr);
        assert!(run.stderr.contains("next:"), "{}", run.stderr);
    }
}

#[test]
fn an_unreachable_gateway_is_an_error_at_once() {
    let home = Home::new();
    home.write_config(&format!(
        "url = \"ws://127.0.0.1:{}/ws\"\ntoken = \"t\"\n",
        crate::common::runtime::free_port()
    ));
    let run = home.gsv(["chat", "hello"]).failed(4);
    assert!(
        run.stderr.contains("be reached") && run.stderr.contains("gsv up"),
        "{}",
        run.stderr
    );
}

#[test]
fn p14_ctrl_c_stops_the_run() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut child = start(&home, &["count"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "1 2 3"));
    read_until(&mut child, "1 2 3");
    interrupt(&child);
    let abort = connection.expect("chat.abort");
    assert_eq!(abort.params["runId"], run.as_str());
    connection.answer(
        &abort,
        &json!({"ok": true, "wasRunning": true, "pendingToolsCancelled": 0}),
    );
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    let run = finish(child).failed(130);
    assert_eq!(run.stdout, "\n");
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["count"]);
    let mut connection = gateway.accept();
    connection.started(1);
    interrupt(&child);
    connection.expect("chat.abort");
    interrupt(&child);
    let run = finish(child).failed(130);
    assert!(run.stderr.contains("/stop"), "{}", run.stderr);
}

#[test]
fn after_a_timeout_the_user_learns_that_the_run_goes_on() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["--timeout", "200ms", "count"]);
    let mut connection = gateway.accept();
    connection.started(1);
    let run = finish(child).failed(4);
    assert!(
        run.stderr.contains("The run goes on") && run.stderr.contains("gsv session preview"),
        "{}",
        run.stderr
    );
}

#[test]
fn commands_answer_at_once() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let talk = |message: &str, result: serde_json::Value| -> Run {
        let child = start(&home, &[message]);
        let mut connection = gateway.accept();
        let request = connection.expect("chat.send");
        connection.answer(&request, &result);
        finish(child)
    };
    let run = talk(
        "/status",
        json!({"status": "command", "command": "status", "response": "idle"}),
    )
    .ok();
    assert_eq!(run.stdout, "idle\n");
    let run = talk(
        "/model x",
        json!({"status": "command", "command": "model", "error": "No such model. Try /model."}),
    )
    .failed(1);
    assert!(run.stderr.contains("No such model"), "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let run = talk(
        "/t:high",
        json!({"status": "directive-only", "response": "thinking: high"}),
    )
    .ok();
    assert_eq!(run.stdout, "thinking: high\n");
    talk(
        "go",
        json!({"status": "paused", "runId": "r", "response": "An approval is open."}),
    )
    .failed(4);
}

#[test]
fn th19_text_and_tool_lines_can_not_act_on_the_terminal() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "a\u{1b}]52;c;"));
    connection.chat(&run, &delta(1, 1, 8, "ZXZpbA==\u{7}b\u{202e}c\r"));
    let tool = json!({"callId": "c", "name": "x\u{1b}[2J", "phase": "started", "args": {"command": "rm\u{1b}[8m -rf"}});
    connection.chat(&run, &json!({"state": "tool", "sessionSeq": 2, "tool": tool}));
    connection.chat(
        &run,
        &json!({"state": "error", "sessionSeq": 3, "error": "bad\u{1b}[2J", "reason": "x\u{1b}y"}),
    );
    let run = finish(child).failed(1);
    assert_eq!(run.stdout, "abc\n");
    assert!(
        !run.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{:?}",
        run.stderr
    );
    assert!(run.stderr.contains("● x rm -rf …"), "{}", run.stderr);
}

#[test]
fn json_gives_one_event_a_line() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["--json", "go"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "Hi"));
    connection.chat(&run, &whole("final", 2, 1, 1, "Hi"));
    let lines = finish(child).ok().json_lines();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["sent", "chat", "chat", "end"]);
    assert_eq!(lines[2]["state"], "final");
    assert_eq!((&lines[3]["status"], &lines[3]["exit"]), (&json!("ok"), &json!(0)));
}

#[test]
fn the_message_can_come_from_stdin() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv_with_stdin(["chat", "-s", "agent:main:work"], "from a pipe\n"));
        let mut connection = gateway.accept();
        let request = connection.expect("chat.send");
        assert_eq!(request.params["message"], "from a pipe\n");
        assert_eq!(request.params["sessionKey"], "agent:main:work");
        connection.answer(
            &request,
            &json!({"status": "command", "command": "x", "response": "ok"}),
        );
        run.join().unwrap().ok();
    });
    home.gsv_with_stdin(["chat"], "").failed(2);
}

/// The message that `gsv chat` sends with this on stdin.
fn sends(args: &[&str], input: &str) -> String {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv_with_stdin([&["chat"][..], args].concat(), input));
        let mut connection = gateway.accept();
        let request = connection.expect("chat.send");
        let answer = json!({"status": "command", "command": "x", "response": "ok"});
        connection.answer(&request, &answer);
        run.join().unwrap().ok();
        request.params["message"].as_str().unwrap().to_owned()
    })
}

#[test]
fn f45_stdin_is_used_beside_a_message_and_for_a_dash() {
    assert_eq!(sends(&["summarise"], "a text\n"), "summarise\n\na text\n");
    assert_eq!(sends(&["-"], "a text\n"), "a text\n");
    assert_eq!(sends(&["hello"], ""), "hello");
    assert_eq!(sends(&["/status"], "a text\n"), "/status");
}

#[test]
fn f53_a_message_may_have_several_words() {
    assert_eq!(sends(&["two", "words"], ""), "two words");
}

#[test]
fn c5_an_alias_of_a_session_is_followed_under_its_own_name() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["-s", "main", "go"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &delta(1, 1, 0, "Hi"));
    let note = json!({"sessionKey": SESSION, "kind": "note", "text": "laptop is back"});
    connection.event("session", &note);
    connection.chat(&run, &whole("final", 3, 1, 1, "Hi"));
    let run = finish(child).ok();
    assert_eq!(run.stdout, "Hi\n");
    assert!(run.stderr.contains("laptop is back"), "{}", run.stderr);
}

#[test]
fn events_of_a_newer_gateway_are_ignored() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["go"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &json!({"state": "singing", "sessionSeq": 2}));
    connection.event("weather", &json!({"sunny": true}));
    connection.chat(&run, &whole("final", 3, 1, 1, "ok"));
    assert_eq!(finish(child).ok().stdout, "ok\n");
}

#[test]
fn po8_the_mode_of_a_message_goes_with_it_and_a_refused_one_sends_nothing() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["--mode", "plan", "look"]);
    let mut connection = gateway.accept();
    let request = connection.expect("chat.send");
    assert_eq!(request.params["message"], "look");
    assert_eq!(request.params["mode"], "plan");
    let run = request.params["runId"].as_str().unwrap().to_owned();
    connection.answer(
        &request,
        &json!({"status": "started", "runId": run, "queued": false, "seq": 1, "directives": {"mode": "plan"}}),
    );
    connection.chat(&run, &whole("final", 2, 1, 1, "Done."));
    assert_eq!(finish(child).ok().stdout, "Done.\n");
}

#[test]
fn wb2_a_single_steer_is_for_the_run_under_way() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["/steer", "use", "tabs"]);
    let mut connection = gateway.accept();
    let request = connection.expect("chat.send");
    assert_eq!(
        (&request.params["message"], &request.params["whileBusy"]),
        (&json!("use tabs"), &json!("steer"))
    );
    drop(connection);
    signal(&child, "-KILL");
    finish(child);
}

#[test]
fn ap14_a_single_answer_to_a_question_is_no_message() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["allow K7Q2A"]);
    let mut connection = gateway.accept();
    let word = connection.expect("approval.resolve");
    assert_eq!(word.params, json!({"code": "K7Q2A", "decision": "allow"}));
    connection.answer(&word, &json!({"outcome": "allowed"}));
    let said = finish(child).ok();
    assert!(said.stderr.contains("K7Q2A: allowed"), "{}", said.stderr);
}

#[test]
fn ap12_a_single_message_that_begins_as_an_answer_is_not_sent_while_a_question_is_open() {
    let question = json!({
        "code": "K7Q2A", "sessionKey": SESSION, "agentId": "main", "runId": "r", "callId": "c", "tool": "laptop__Bash",
        "text": "rm -rf build", "textBytes": 12, "why": "w", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1
    });
    for words in ["y", "No", "yes, all of them"] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let child = start(&home, &[words]);
        let mut connection = gateway.accept();
        let list = connection.expect("approval.list");
        assert_eq!(list.params, json!({"sessionKey": SESSION}));
        connection.answer(&list, &json!({"approvals": [question]}));
        let said = finish(child).failed(5).stderr;
        for part in [
            "was not sent",
            "rm -rf build",
            "`gsv approval allow K7Q2A`",
            "`gsv chat -`",
        ] {
            assert!(said.contains(part), "{words}: {part}: {said}");
        }
    }
    // Without a question it is a message.
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let child = start(&home, &["yes"]);
    let mut connection = gateway.accept();
    let list = connection.expect("approval.list");
    connection.answer(&list, &json!({"approvals": []}));
    drop(connection);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &whole("final", 2, 1, 1, "Good."));
    assert_eq!(finish(child).ok().stdout, "Good.\n");
}

#[test]
fn f44_a_single_command_of_the_prompt_or_an_unknown_one_is_refused_with_what_to_do() {
    let home = Home::new();
    for (words, next) in [
        ("/quit", "Open one: `gsv chat`."),
        ("/exit", "Open one: `gsv chat`."),
        ("/queue", "Open one: `gsv chat`."),
        ("/queue drop 1", "Open one: `gsv chat`."),
        ("/attach x", "gsv chat --attach FILE MESSAGE"),
        ("/stauts", "Did you mean `/status`?"),
        ("/foo bar", "pipe it in: `gsv chat -`"),
    ] {
        let run = home.gsv(["chat", words]).failed(2);
        assert!(run.stderr.contains(next), "{words}: {}", run.stderr);
    }
}

#[test]
fn st5_a_message_whose_run_a_stop_of_everything_ended_says_how_to_go_on() {
    let gateway = FakeGateway::new().serving(&["gateway.status"]);
    let home = gateway.home();
    let child = start(&home, &["count"]);
    let mut connection = gateway.accept();
    let run = connection.started(1);
    connection.chat(&run, &json!({"state": "aborted", "sessionSeq": 2}));
    let status = connection.expect("gateway.status");
    let stopped = json!({"since": 1, "by": "cli"});
    connection.answer(&status, &json!({"version": "1", "stopped": stopped}));
    let said = finish(child).failed(1).stderr;
    assert!(said.contains("Go on with `gsv resume`"), "{said}");
}

#[test]
fn mv14_a_message_to_a_gateway_whose_home_was_exported_says_what_lets_it_go_on() {
    let gateway = FakeGateway::new().serving(&["gateway.status"]);
    let home = gateway.home();
    let child = start(&home, &["hello"]);
    let mut connection = gateway.accept();
    let sent = connection.expect("chat.send");
    let run = sent.params["runId"].clone();
    connection.answer(
        &sent,
        &json!({"status": "started", "runId": run, "queued": true, "seq": 1, "stopped": true}),
    );
    let status = connection.expect("gateway.status");
    let stopped = json!({"since": 1, "by": "cli", "exportedAt": 2});
    connection.answer(&status, &json!({"version": "1", "stopped": stopped}));
    let said = finish(child).failed(4).stderr;
    assert!(
        said.contains("Its home was exported at") && said.contains("gsv session preview"),
        "{said}"
    );
}
