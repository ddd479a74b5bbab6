//! `gsv chat` on a terminal: the prompt, Markdown, and what Ctrl-C does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use common::fake_gateway::{Connection, FakeGateway, SESSION, delta, whole};
use common::{Home, mode, wait_for};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        command.env("TERM", "xterm-256color");
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap());
        command.stderr(slave);
        let child = command.spawn().unwrap();
        // The command holds the terminal's other end; without it the screen would never end.
        drop(command);
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self {
            child,
            keyboard,
            screen,
        }
    }

    fn chat(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command();
        command.arg("chat").args(args);
        Self::start(command)
    }

    /// Waits until `text` is shown after what was shown before, and forgets all up to it.
    #[track_caller]
    fn shows(&self, text: &str) -> String {
        wait_for(
            &format!("showing {text:?} (shown is {:?})", self.screen.lock().unwrap()),
            || {
                let mut screen = self.screen.lock().unwrap();
                let at = screen.find(text)?;
                let rest = screen.split_off(at + text.len());
                Some(std::mem::replace(&mut *screen, rest))
            },
        )
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ends_with(mut self, code: i32) {
        let status = wait_for("its end", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(code), "{:?}", self.screen.lock().unwrap());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test it would wait for ever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A conversation at its prompt.
fn at_the_prompt(gateway: &FakeGateway, home: &Home) -> (Terminal, Connection) {
    let terminal = Terminal::chat(home, &[]);
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
    let id = terminal.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
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
fn what_happens_meanwhile_is_shown_above_the_prompt() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let (mut terminal, mut connection) = at_the_prompt(&gateway, &home);
    connection.chat(
        "of-another-client",
        &whole("final", 1, 1, 1, "An answer\u{1b}[2J to somebody else"),
    );
    terminal.shows("An answer to somebody else");
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

#[test]
fn without_colour_nothing_is_coloured() {
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
