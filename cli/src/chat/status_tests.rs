use gsv_protocol::types::{CallId, ChatTool, ChatToolPhase};
use proptest::prelude::*;

use super::*;

fn facts() -> Facts {
    Facts {
        agent: "main".to_owned(),
        session: "cli:dm:main".to_owned(),
        model: Some("claude-sonnet-5".to_owned()),
        mode: None,
        machines: Some(vec!["laptop".to_owned(), "pi".to_owned()]),
        cost_usd: Some(0.25),
        context_tokens: Some(68_000),
        context_window: Some(200_000),
    }
}

fn idle() -> Status {
    Status {
        facts: facts(),
        ..Status::default()
    }
}

fn tool(id: &str, phase: ChatToolPhase) -> Draw {
    Draw::Show(Show::Tool(ChatTool {
        call_id: CallId(id.to_owned()),
        name: format!("{id}__Bash"),
        phase,
        ..crate::chat::calls::tests::tool(phase)
    }))
}

#[test]
fn ct1_a_wide_line_shows_everything_that_is_known() {
    let line = idle().line(Duration::ZERO, 100);
    assert_eq!(
        line,
        "claude-sonnet-5 · main · cli:dm:main · laptop, pi · $0.25 · context 34%"
    );
    let unknown = Status::default().line(Duration::ZERO, 100);
    assert_eq!(unknown, "");
}

#[test]
fn ct1_a_narrow_line_keeps_what_matters_most() {
    let status = idle();
    assert_eq!(
        status.line(Duration::ZERO, 60),
        "claude-sonnet-5 · main · laptop, pi · $0.25 · context 34%"
    );
    assert_eq!(status.line(Duration::ZERO, 40), "claude-sonnet-5 · $0.25 · 34%");
    assert_eq!(status.line(Duration::ZERO, 26), "claude-sonnet-5 · 34%");
    assert_eq!(status.line(Duration::ZERO, 12), "34%");
    // Who forgets that everything runs is asked nothing.
    let mut open = idle();
    open.facts.mode = Some("mode full".to_owned());
    assert_eq!(open.line(Duration::ZERO, 40), "mode full · claude-sonnet-5 · 34%");
    assert_eq!(open.line(Duration::ZERO, 12), "mode full");
    let mut busy = idle();
    busy.begin();
    assert_eq!(busy.line(Duration::from_secs(3), 30), "⠋ sending 3 s · 34%");
    assert_eq!(busy.line(Duration::from_secs(3), 8), "⠋ sendi…");
}

#[test]
fn ct2_the_spinner_says_what_the_run_does() {
    let mut status = idle();
    let words = |status: &Status| {
        let line = status.line(Duration::from_millis(12_300), 100);
        line.split(BETWEEN).next().unwrap_or_default().to_owned()
    };
    status.note(&Draw::Show(Show::Text("x".to_owned())));
    assert!(!status.is_busy(), "news without a run do not begin one");
    status.begin();
    assert_eq!(words(&status), "⠸ sending 12 s");
    status.note(&Draw::Show(Show::Text("x".to_owned())));
    assert_eq!(words(&status), "⠸ writing 12 s");
    status.note(&tool("laptop", ChatToolPhase::Started));
    assert_eq!(words(&status), "⠸ laptop__Bash 12 s");
    status.note(&tool("pi", ChatToolPhase::Started));
    assert_eq!(words(&status), "⠸ 2 calls 12 s");
    status.note_asking(true);
    assert_eq!(words(&status), "? waits for your word");
    status.note(&tool("laptop", ChatToolPhase::Ended));
    assert_eq!(words(&status), "? waits for your word");
    status.note_asking(false);
    assert_eq!(words(&status), "⠸ pi__Bash 12 s");
    status.note(&tool("pi", ChatToolPhase::Ended));
    assert_eq!(words(&status), "⠸ thinking 12 s");
    status.note_stopping();
    assert_eq!(words(&status), "⠸ stopping 12 s");
    assert!(status.take_stale() && !status.take_stale());
    status.end();
    assert_eq!(words(&status), "claude-sonnet-5");
}

proptest! {
    #[test]
    fn ct1_no_line_is_wider_than_it_may_be_and_none_acts_on_the_terminal(
        model in any::<String>(),
        session in "[a-z日本👩‍👧\u{301}\u{1b}\\[2J\n]{0,60}",
        machines in prop::collection::vec("[a-z👩\u{200d}🚀\u{7}]{0,40}", 0..4),
        width in 0_usize..120,
        seconds in 0_u64..1_000_000,
        is_busy in any::<bool>(),
        call in any::<String>(),
    ) {
        let facts = Facts { model: Some(model), session, machines: Some(machines), ..facts() };
        let mut status = Status { facts, ..Status::default() };
        if is_busy {
            status.begin();
            status.note(&tool(&call, ChatToolPhase::Started));
        }
        let line = status.line(Duration::from_secs(seconds), width);
        prop_assert!(cells(&line) <= width, "{line:?}");
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        prop_assert_eq!(crate::clean::clean(&line), line);
    }
}
