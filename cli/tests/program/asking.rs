//! Commands on a terminal: codes that are drawn in place, secrets that are not shown, and questions.

use crate::common::channels;
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SECRET: &str = "MTAw.Fake-1.the-token-of-a-bot";
/// Black on white, whatever the terminal's colours are.
const QR: &str = "\u{1b}[38;5;16;48;5;231m";

fn answers(connection: &mut Connection, method: &str, answer: &Value) -> Value {
    let request = connection.expect(method);
    connection.answer(&request, answer);
    request.params
}

fn account(login: bool, more: &Value) -> Value {
    channels::accounts("x", &[channels::account(login, more)])
}

fn login(state: &str, more: &Value) -> Value {
    let mut login = json!({"state": state, "message": "Scan it within two minutes."});
    login.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"ok": true, "channel": "whatsapp", "accountId": "default", "message": login["message"], "login": login})
}

fn qr(text: &str) -> Value {
    login(
        "qr",
        &json!({"qr": format!("https://wa.me/settings/linked_devices#{text}"), "expiresAt": 9_000_000_000_000_000_u64}),
    )
}

/// `gsv channel whatsapp login` after its first question.
fn logging_in(gateway: &FakeGateway, terminal: &Terminal) -> Connection {
    let mut connection = gateway.accept();
    answers(&mut connection, "channel.status", &account(true, &json!({})));
    assert_eq!(terminal.rest(), "");
    connection
}

#[test]
fn a_qr_code_is_drawn_and_drawn_again_in_its_place() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let terminal = Terminal::gsv(&home, &["channel", "whatsapp", "login"]);
    let mut connection = logging_in(&gateway, &terminal);
    answers(&mut connection, "channel.login", &qr("ONE"));
    let first = terminal.shows("left · Ctrl-C leaves");
    let high = first.matches(QR).count();
    assert!(high > 15 && first.contains("Scan it"), "{first:?}");
    answers(&mut connection, "channel.login", &qr("TWO"));
    // Up to the first line that differs, and no further than the code is high.
    let again = terminal.shows("left · Ctrl-C leaves");
    let before = again.split_once("A\r").unwrap().0;
    let up: usize = before.rsplit_once('[').unwrap().1.parse().unwrap();
    assert!(up > high / 2 && up <= high + 3, "{up} of {high}: {again:?}");
    assert!(
        again.contains(QR) && again.contains("\u{1b}[K") && !again.contains("Scan it"),
        "{again:?}"
    );
    let done = json!({"connected": true, "authenticated": true, "extra": {"phone": "+31612345678", "name": "Anna"}});
    answers(&mut connection, "channel.login", &login("connecting", &json!({})));
    answers(&mut connection, "channel.login", &login("connected", &json!({})));
    answers(&mut connection, "channel.status", &account(true, &done));
    drop(connection);
    let end = terminal.shows("whatsapp is linked and connected as +31612345678 (Anna).");
    // The code is taken off the screen.
    assert!(end.contains("\u{1b}[J"), "{end:?}");
    terminal.ends_with(0);
}

#[test]
fn in_a_small_window_the_code_waits_until_the_window_is_larger() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["channel", "whatsapp", "login"]);
    let terminal = Terminal::sized(command, 40, 24);
    let mut connection = logging_in(&gateway, &terminal);
    answers(&mut connection, "channel.login", &qr(&"x".repeat(200)));
    let shown = terminal.shows("Ctrl-C leaves");
    assert!(!shown.contains(QR) && shown.contains("--phone"), "{shown:?}");
    terminal.resize(100, 60);
    answers(&mut connection, "channel.login", &qr(&"x".repeat(200)));
    let drawn = terminal.shows("Ctrl-C leaves");
    assert!(drawn.contains(QR), "{drawn:?}");
    drop(connection);
}

#[test]
fn ctrl_c_leaves_a_login_that_can_be_continued() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let terminal = Terminal::gsv(&home, &["channel", "whatsapp", "login", "--phone", "+31612345678"]);
    let mut connection = logging_in(&gateway, &terminal);
    let params = answers(
        &mut connection,
        "channel.login",
        &login("code", &json!({"code": "ABCDEFGH"})),
    );
    assert_eq!(params["phone"], "+31612345678");
    let shown = terminal.shows("Ctrl-C leaves");
    assert!(shown.contains("ABCD-EFGH") && shown.contains('█'), "{shown:?}");
    terminal.interrupt();
    drop(connection);
    terminal.shows("Continue it: `gsv channel whatsapp login`");
    terminal.ends_with(130);
}

#[test]
fn without_colour_a_code_has_none() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut command = home.command();
    command.args(["channel", "whatsapp", "login"]).env("NO_COLOR", "1");
    let terminal = Terminal::sized(command, 100, 60);
    let mut connection = logging_in(&gateway, &terminal);
    answers(&mut connection, "channel.login", &qr("ONE"));
    let shown = terminal.shows("Ctrl-C leaves");
    assert!(shown.contains('█') && !shown.contains("\u{1b}["), "{shown:?}");
    terminal.interrupt();
    drop(connection);
    terminal.ends_with(130);
}

#[test]
fn s5_a_typed_token_is_not_shown_and_the_terminal_is_restored() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let off = account(false, &json!({"error": "There is no bot token. Make a bot."}));
    let mut terminal = Terminal::gsv(&home, &["channel", "discord", "start"]);
    let mut connection = gateway.accept();
    answers(&mut connection, "channel.status", &off);
    drop(connection);
    terminal.shows("There is no bot token. Make a bot.\r\n");
    terminal.shows("Token of discord (it is not shown; Enter alone: keep the current one): ");
    assert!(!terminal.echoes());
    // A cleared line, and a character that is deleted again.
    terminal.types(&format!("wrong\u{15}{SECRET}é\u{7f}\r"));
    let mut connection = gateway.accept();
    let params = answers(
        &mut connection,
        "channel.start",
        &json!({"ok": true, "channel": "discord", "accountId": "default"}),
    );
    assert_eq!(params, json!({"channel": "discord", "config": {"token": SECRET}}));
    let on = json!({"connected": true, "authenticated": true, "extra": {"bot": "helper"}});
    answers(&mut connection, "channel.status", &account(false, &on));
    drop(connection);
    let shown = terminal.shows("discord is connected as helper");
    assert!(!shown.contains("MTAw") && !shown.contains("wrong"), "{shown:?}");
    assert!(terminal.echoes());
    terminal.ends_with(0);

    // Ctrl-C: nothing is sent, and the terminal is restored.
    let mut terminal = Terminal::gsv(&home, &["channel", "discord", "start"]);
    let mut connection = gateway.accept();
    answers(&mut connection, "channel.status", &off);
    drop(connection);
    terminal.shows("(it is not shown");
    terminal.types("MTAw\u{3}");
    terminal.shows("Stopped.");
    assert!(terminal.echoes() && !terminal.rest().contains("MTAw"));
    terminal.ends_with(130);
}

#[test]
fn f4_a_key_that_is_typed_is_not_shown() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let mut terminal = Terminal::gsv(&home, &["config", "set", "apiKeys.anthropic", "-"]);
    terminal.shows("apiKeys.anthropic (it is not shown): ");
    assert!(!terminal.echoes());
    terminal.types("sk-secret\r");
    let mut connection = gateway.accept();
    let params = answers(
        &mut connection,
        "config.set",
        &json!({"ok": true, "path": "apiKeys.anthropic"}),
    );
    assert_eq!(params, json!({"path": "apiKeys.anthropic", "value": "sk-secret"}));
    drop(connection);
    let shown = terminal.shows("apiKeys.anthropic is set");
    assert!(!shown.contains("sk-secret"), "{shown:?}");
    terminal.ends_with(0);
}

/// Asks the same twice: a no does nothing, a yes does it.
fn asks(args: &[&str], question: &str, look: (&str, &Value), act: (&str, &Value, &str)) {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    for (key, code) in [("\r", 1), ("n\r", 1), ("y\r", 0)] {
        let mut terminal = Terminal::gsv(&home, args);
        let mut connection = gateway.accept();
        answers(&mut connection, look.0, look.1);
        drop(connection);
        terminal.shows(question);
        terminal.types(key);
        if code == 0 {
            let mut connection = gateway.accept();
            answers(&mut connection, act.0, act.1);
            drop(connection);
            terminal.shows(act.2);
        }
        terminal.ends_with(code);
    }
}

#[test]
fn s6_the_owner_is_approved_only_after_a_yes() {
    let pairs = json!({"pairs": {"whatsapp:a": {"channel": "whatsapp", "senderId": "a", "senderName": "Owner\u{202e}", "requestedAt": 1,
        "firstMessage": "hi\u{1b}[2J", "code": "K7Q2AB", "waiting": 1}}});
    asks(
        &["pair", "approve", "whatsapp", "K7Q2AB", "--owner"],
        "Owner[U+202E] (a) on whatsapp gets your own access: messages from there join your own conversation,\r\n  with your notes and memory, and the agent uses your machines for them.\r\nTheir first message: hi[U+001B][2J\r\nIs this you?",
        ("pair.list", &pairs),
        (
            "pair.approve",
            &json!({"approved": true, "senderId": "a", "role": "owner"}),
            "a is approved on whatsapp as you; 1 waiting message goes",
        ),
    );
}

#[test]
fn a_logout_happens_only_after_a_yes() {
    let on = json!({"connected": true, "authenticated": true, "extra": {"phone": "+31612345678"}});
    asks(
        &["channel", "whatsapp", "logout"],
        "Log out whatsapp (+31612345678)? Its keys are deleted, and it must be linked with the phone again.",
        ("channel.status", &account(true, &on)),
        (
            "channel.logout",
            &json!({"ok": true, "channel": "whatsapp", "accountId": "default"}),
            "whatsapp is logged out",
        ),
    );
}

#[test]
fn sk4_a_skill_is_approved_only_after_a_yes() {
    let skill = json!({
        "name": "mail", "description": "Reads mail", "location": "agents/main/skills/mail/SKILL.md", "always": false, "eligible": true,
        "eligibleHosts": [], "reasons": [], "scope": "agent", "state": "changed", "sha256": SHA
    });
    asks(
        &["skills", "approve", "mail"],
        "May the agent use this skill?",
        (
            "skills.show",
            &json!({"skill": skill, "content": "# Mail\n", "files": ["SKILL.md"]}),
        ),
        ("skills.approve", &json!({"skill": skill}), "skill mail is approved"),
    );
}

#[test]
fn in_a_narrow_window_reasons_are_repeated_in_full() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let why = "Discord does not accept the bot's token any more. Make a new one, and start the channel.";
    let mut command = home.command();
    command.args(["channel", "list"]);
    let terminal = Terminal::sized(command, 60, 24);
    let mut connection = gateway.accept();
    let bound = json!({"channels": [], "count": 0, "bound": ["discord"]});
    answers(&mut connection, "channels.list", &bound);
    let failing = json!({"error": why, "extra": {"started": true}});
    answers(&mut connection, "channel.status", &account(false, &failing));
    drop(connection);
    terminal.shows("…");
    terminal.shows(why);
    terminal.ends_with(0);
}
