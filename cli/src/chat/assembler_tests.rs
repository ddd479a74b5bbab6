use super::*;
use gsv_protocol::types::SessionKey;
use proptest::prelude::*;
use serde_json::json;

fn event(value: &Value) -> ChatEvent {
    let mut whole = json!({"sessionKey": "agent:main:main", "runId": "r"});
    let fields = whole.as_object_mut().unwrap();
    fields.extend(value.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn delta(step: u32, attempt: u32, offset: u64, text: &str) -> ChatEvent {
    event(&json!({"state": "delta", "step": step, "attempt": attempt, "offset": offset, "text": text}))
}

fn whole(state: &str, seq: u64, step: u32, attempt: u32, text: &str) -> ChatEvent {
    event(
        &json!({"state": state, "sessionSeq": seq, "step": step, "attempt": attempt,
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}),
    )
}

/// A view: the finished texts and the open one.
#[derive(Default, Debug)]
struct Screen {
    texts: Vec<String>,
    open: String,
    restarts: usize,
    resumes: usize,
    ends: usize,
}

impl Screen {
    fn show(&mut self, shows: Vec<Show>) {
        for show in shows {
            match show {
                Show::Text(text) => {
                    assert!(!text.is_empty());
                    self.open.push_str(&text);
                }
                Show::Restart => {
                    self.open.clear();
                    self.restarts += 1;
                }
                Show::EndOfText => self.texts.push(std::mem::take(&mut self.open)),
                Show::Resuming => self.resumes += 1,
                Show::End(_) => self.ends += 1,
                Show::Thinking(_) | Show::Tool(_) | Show::File(_) | Show::Status(_) | Show::Paused { .. } => {}
            }
        }
    }

    fn take(&mut self, assembler: &mut Assembler, event: &ChatEvent) {
        if !assembler.is_repeated(event) {
            self.show(assembler.take(event));
        }
    }
}

fn play(events: &[ChatEvent]) -> Screen {
    let (mut screen, mut assembler) = (Screen::default(), Assembler::default());
    for event in events {
        screen.take(&mut assembler, event);
    }
    screen
}

#[test]
fn c4_deltas_continue_at_their_offset_and_the_final_adds_the_rest() {
    let screen = play(&[
        delta(1, 1, 0, "Hel"),
        delta(1, 1, 3, "lo"),
        whole("final", 5, 1, 1, "Hello, you"),
    ]);
    assert_eq!(
        (screen.texts, screen.restarts, screen.ends),
        (vec!["Hello, you".to_owned()], 0, 1)
    );
}

#[test]
fn c4_a_repeated_delta_adds_nothing_and_an_overlapping_one_only_its_end() {
    let screen = play(&[
        delta(1, 1, 0, "a😀b"),
        delta(1, 1, 0, "a😀b"),
        delta(1, 1, 3, "bc"),
        delta(1, 1, 5, "d"),
    ]);
    assert_eq!(screen.open, "a😀bcd");
}

#[test]
fn c4_a_new_attempt_with_the_same_text_continues_the_old_one() {
    let screen = play(&[
        delta(1, 1, 0, "Hello"),
        delta(1, 2, 0, "Hel"),
        delta(1, 2, 3, "lo wor"),
        whole("final", 5, 1, 2, "Hello world"),
    ]);
    assert_eq!(
        (screen.texts, screen.restarts, screen.resumes),
        (vec!["Hello world".to_owned()], 0, 1)
    );
}

#[test]
fn c4_a_new_attempt_with_another_text_replaces_it() {
    let screen = play(&[
        delta(1, 1, 0, "Hello"),
        delta(1, 2, 0, "Good"),
        delta(1, 1, 5, " late"),
        whole("final", 5, 1, 2, "Good day"),
    ]);
    assert_eq!((screen.texts, screen.restarts), (vec!["Good day".to_owned()], 1));
}

#[test]
fn c4_the_final_message_replaces_a_wrong_text() {
    let screen = play(&[delta(1, 1, 0, "Wrong"), whole("final", 5, 1, 1, "Right")]);
    assert_eq!((screen.texts, screen.restarts), (vec!["Right".to_owned()], 1));
    let screen = play(&[delta(1, 1, 0, "Right and more"), whole("final", 5, 1, 1, "Right")]);
    assert_eq!((screen.texts, screen.restarts), (vec!["Right".to_owned()], 1));
}

#[test]
fn c4_deltas_of_a_finished_step_are_ignored() {
    let screen = play(&[
        whole("partial", 3, 1, 1, "First"),
        delta(1, 1, 0, "First"),
        delta(1, 2, 0, "x"),
        delta(2, 1, 0, "Second"),
    ]);
    assert_eq!(
        (screen.texts, screen.open.as_str()),
        (vec!["First".to_owned()], "Second")
    );
}

#[test]
fn c3_several_events_of_one_log_row_are_each_taken_once() {
    let tool = |id: &str, phase: &str| {
        event(
            &json!({"state": "tool", "sessionSeq": 4, "tool": {"callId": id, "name": "laptop__Bash", "phase": phase}}),
        )
    };
    let mut assembler = Assembler::default();
    let events = [
        whole("partial", 4, 1, 1, ""),
        tool("a", "started"),
        tool("b", "started"),
        tool("a", "ended"),
    ];
    assert!(events.iter().all(|event| !assembler.is_repeated(event)));
    assert!(events.iter().all(|event| assembler.is_repeated(event)));
}

#[test]
fn c3_exactly_one_event_ends_a_run() {
    let screen = play(&[
        whole("final", 5, 1, 1, "x"),
        event(&json!({"state": "aborted", "sessionSeq": 6})),
        delta(2, 1, 0, "y"),
    ]);
    assert_eq!((screen.ends, screen.open.as_str()), (1, ""));
}

#[test]
fn a_gateway_that_names_no_steps_is_understood() {
    let bare = |state: &str, text: &str| {
        event(&json!({"state": state, "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}))
    };
    let screen = play(&[bare("partial", "one"), bare("partial", "two"), bare("final", "three")]);
    assert_eq!(screen.texts, ["one", "two", "three"]);
}

#[test]
fn a_step_without_text_shows_none() {
    let screen = play(&[whole("partial", 3, 1, 1, ""), whole("final", 5, 2, 1, "done")]);
    assert_eq!((screen.texts, screen.restarts), (vec!["done".to_owned()], 0));
}

#[test]
fn a_step_with_only_white_space_removes_nothing() {
    let screen = play(&[
        delta(1, 1, 0, "\n"),
        delta(2, 1, 0, "Hello"),
        whole("final", 5, 2, 1, "Hello"),
    ]);
    assert_eq!(
        (screen.texts, screen.restarts),
        (vec!["\n".to_owned(), "Hello".to_owned()], 0)
    );
}

#[test]
fn keys_of_sessions_are_opaque() {
    assert_eq!(
        delta(1, 1, 0, "").session_key(),
        &SessionKey("agent:main:main".to_owned())
    );
}

/// One attempt of a step: its text, cut into deltas.
fn deltas_of(step: u32, attempt: u32, text: &str, piece: usize) -> Vec<ChatEvent> {
    let chars: Vec<char> = text.chars().collect();
    let mut offset = 0;
    let mut out = Vec::new();
    for chunk in chars.chunks(piece.max(1)) {
        let chunk: String = chunk.iter().collect();
        out.push(delta(step, attempt, offset, &chunk));
        offset += chunk.encode_utf16().count() as u64;
    }
    out
}

#[derive(Debug, Clone)]
struct Step {
    text: String,
    /// Texts of failed attempts, and after how many deltas they failed.
    failed: Vec<(String, usize)>,
    piece: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let text = "[ab😀é\n]{0,12}";
    (text, prop::collection::vec((text, 0_usize..6), 0..3), 1_usize..4).prop_map(|(text, failed, piece)| Step {
        text,
        failed,
        piece,
    })
}

/// The events of a gateway: for each step the failed attempts, the good one, and the log event with the complete text.
fn script(steps: &[Step]) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let number = u32::try_from(index).unwrap() + 1;
        let mut attempt = 1;
        for (text, after) in &step.failed {
            events.extend(deltas_of(number, attempt, text, step.piece).into_iter().take(*after));
            attempt += 1;
        }
        events.extend(deltas_of(number, attempt, &step.text, step.piece));
        let state = if index + 1 == steps.len() { "final" } else { "partial" };
        events.push(whole(state, u64::from(number) * 2, number, attempt, &step.text));
    }
    events
}

proptest! {
    /// Deltas may be lost, repeated and delayed, log events replayed: each step's text is shown once, and complete.
    #[test]
    fn c1_to_c5_any_loss_replay_and_order_of_deltas_gives_each_text_exactly_once(
        steps in prop::collection::vec(step(), 1..4),
        fates in prop::collection::vec(0_u8..6, 64),
        rewinds in prop::collection::vec((0_usize..64, 0_usize..8), 0..4),
    ) {
        let script = script(&steps);
        let mut sent: Vec<ChatEvent> = Vec::new();
        let mut delayed: Vec<ChatEvent> = Vec::new();
        for (event, fate) in script.iter().zip(fates.iter().cycle()) {
            if matches!(event, ChatEvent::Delta { .. }) {
                match fate {
                    0 => continue,
                    1 => delayed.push(event.clone()),
                    2 => sent.extend([event.clone(), event.clone()]),
                    _ => sent.push(event.clone()),
                }
            } else {
                sent.push(event.clone());
            }
            if *fate == 3 {
                sent.append(&mut delayed);
            }
        }
        // A reconnect: some of what came before the cut comes again, log events and deltas alike.
        for (at, back) in rewinds {
            let at = at.min(sent.len());
            let again: Vec<ChatEvent> = sent[at.saturating_sub(back)..at].to_vec();
            sent.splice(at..at, again);
        }
        let screen = play(&sent);
        let expected: Vec<String> = steps.iter().map(|step| step.text.clone()).filter(|text| !text.is_empty()).collect();
        prop_assert_eq!(screen.texts, expected);
        prop_assert_eq!(screen.open, "");
        prop_assert_eq!(screen.ends, 1);
    }

    /// Without losses no text is removed, wherever it is cut.
    #[test]
    fn c4_an_undisturbed_run_never_restarts(texts in prop::collection::vec("[ab😀é\n]{1,12}", 1..4), piece in 1_usize..4) {
        let steps: Vec<Step> = texts.into_iter().map(|text| Step { text, failed: Vec::new(), piece }).collect();
        let screen = play(&script(&steps));
        prop_assert_eq!(screen.restarts, 0);
        prop_assert_eq!(screen.texts, steps.into_iter().map(|step| step.text).collect::<Vec<_>>());
    }

    /// A snapshot and the deltas around it give the text once.
    #[test]
    fn c4_a_snapshot_and_the_deltas_after_it_join(text in "[ab😀é\n]{0,20}", at in 0_usize..20, piece in 1_usize..4) {
        let deltas = deltas_of(1, 1, &text, piece);
        let at = at.min(deltas.len());
        let known: String = deltas[..at]
        .iter()
        .filter_map(|event| match event {
            ChatEvent::Delta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
        let mut screen = Screen::default();
        let mut assembler = Assembler::default();
        for event in &deltas[..at / 2] {
            screen.take(&mut assembler, event);
        }
        screen.show(assembler.snapshot(1, 1, &known));
        for event in &deltas[at / 2..] {
            screen.take(&mut assembler, event);
        }
        prop_assert_eq!(screen.open, text);
        prop_assert_eq!(screen.restarts, 0);
    }
}

fn thinking(step: u32, attempt: u32, offset: u64, text: &str) -> ChatEvent {
    event(&json!({"state": "thinking", "step": step, "attempt": attempt, "offset": offset, "text": text}))
}

/// The shown parts in short: what the model thinks with a `~`.
fn shown(events: &[ChatEvent]) -> Vec<String> {
    let mut assembler = Assembler::default();
    let shows = events
        .iter()
        .flat_map(|event| assembler.take(event))
        .collect::<Vec<_>>();
    let words = |show: Show| match show {
        Show::Thinking(text) => format!("~{text}"),
        Show::Text(text) => text,
        other => format!("{other:?}")
            .split([' ', '('])
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    shows.into_iter().map(words).collect()
}

#[test]
fn ct14_thoughts_are_shown_once_and_a_gap_has_a_mark() {
    let events = [
        thinking(1, 1, 0, "Hm"),
        thinking(1, 1, 1, "m, so"),
        thinking(1, 1, 0, "Hm"),
        thinking(1, 1, 20, "at last"),
        delta(1, 1, 0, "Two."),
        whole("final", 2, 1, 1, "Two."),
    ];
    assert_eq!(
        shown(&events),
        ["~Hm", "~, so", "~[…]\nat last", "Two.", "EndOfText", "End"]
    );
    // A new attempt thinks again; what comes late is of no use.
    let events = [
        thinking(1, 1, 0, "First"),
        thinking(1, 2, 0, "Second"),
        thinking(1, 1, 5, "late"),
        whole("final", 2, 1, 2, ""),
        thinking(1, 2, 6, "late"),
    ];
    assert_eq!(shown(&events), ["~First", "Resuming", "~Second", "EndOfText", "End"]);
}

#[test]
fn ct14_a_thought_ends_with_its_run() {
    let error = event(&json!({"state": "error", "sessionSeq": 2, "error": "x"}));
    assert_eq!(shown(&[thinking(1, 1, 0, "Hm"), error]), ["~Hm", "EndOfText", "End"]);
}
