//! `gsv session` on a terminal: choose one of the last conversations by its number or by a part of its name, and open it. The choice is
//! pure.

use std::io::{self, BufRead};

use gsv_protocol::types::SessionEntry;

use super::chat;
use super::context::Context;
use super::last_sessions::last;
use crate::args::Chat;
use crate::ask;
use crate::clean::one_line;
use crate::exit::{Failure, Outcome};
use crate::output::Style;
use crate::units::{ago, now_ms};
use crate::width::{columns, fit};

const SHOWN: u8 = 20;
const TRIES: usize = 5;
const NAME_COLUMNS: usize = 48;

pub async fn run(context: &Context) -> Outcome {
    let out = context.out;
    if !out.tty || !ask::is_possible(out) {
        return Err(Failure::usage(
            "Not a terminal: nothing can be chosen here.",
            "List the conversations with `gsv session list`, and open one with `gsv chat -s KEY`.",
        ));
    }
    let sessions = last(context, SHOWN, None).await?;
    if sessions.is_empty() {
        out.aside("No conversations yet. Start one: `gsv chat hello`.");
        return Ok(());
    }
    let now = now_ms();
    let width = out.size().0.saturating_sub(1);
    for (index, session) in sessions.iter().enumerate() {
        let name = one_line(name(session), NAME_COLUMNS);
        let gap = " ".repeat(NAME_COLUMNS.saturating_sub(columns(&name)).min(width / 2));
        let line = format!("{:>3}. {name}{gap}  {}", index + 1, ago(session.last_active_at, now));
        out.note(&fit(&line, width));
    }
    for _ in 0..TRIES {
        out.prompt(&format!(
            "{} ",
            out.paint_note(Style::Bold, "Open which one (number or part of a name) [1]:")
        ));
        let mut typed = String::new();
        if io::stdin().lock().read_line(&mut typed).unwrap_or(0) == 0 {
            return Ok(());
        }
        match choose(typed.trim(), &sessions) {
            Chosen::One(at) => {
                let session = sessions[at].session_key.clone();
                return chat::run(context, Chat::prompt(Some(session))).await;
            }
            Chosen::Unknown => out.note("No conversation of the list has this number or name. Ctrl-D leaves."),
            Chosen::Several(count) => out.note(&format!(
                "{count} conversations match. Type more of the name, or a number."
            )),
        }
    }
    Err(Failure::usage(
        "No conversation was chosen.",
        "Open one with `gsv chat -s KEY`; `gsv session list` shows the keys.",
    ))
}

/// The label, else the key.
fn name(session: &SessionEntry) -> &str {
    let label = session.label.as_deref().filter(|label| !label.trim().is_empty());
    label.unwrap_or(session.session_key.as_str())
}

#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    One(usize),
    Unknown,
    Several(usize),
}

/// A number of the list, a whole name, or a part of exactly one name.
fn choose(typed: &str, sessions: &[SessionEntry]) -> Chosen {
    if typed.is_empty() {
        return Chosen::One(0);
    }
    let names = |session: &SessionEntry| {
        [
            name(session).to_lowercase(),
            session.session_key.as_str().to_lowercase(),
        ]
    };
    let wanted = typed.to_lowercase();
    if let Some(at) = sessions.iter().position(|session| names(session).contains(&wanted)) {
        return Chosen::One(at);
    }
    if let Ok(number) = typed.parse::<usize>() {
        let at = number.checked_sub(1).filter(|at| *at < sessions.len());
        return at.map_or(Chosen::Unknown, Chosen::One);
    }
    let is_like = |session: &SessionEntry| names(session).iter().any(|name| name.contains(&wanted));
    let found: Vec<usize> = (0..sessions.len()).filter(|at| is_like(&sessions[*at])).collect();
    match found.as_slice() {
        [] => Chosen::Unknown,
        [at] => Chosen::One(*at),
        several => Chosen::Several(several.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::types::SessionKey;

    fn session(key: &str, label: Option<&str>) -> SessionEntry {
        SessionEntry {
            session_key: SessionKey(key.to_owned()),
            created_at: 1,
            last_active_at: 2,
            label: label.map(str::to_owned),
            mode: None,
            mode_until: None,
        }
    }

    #[test]
    fn ct8_a_conversation_is_chosen_by_number_name_or_part_of_a_name() {
        let sessions = [
            session("agent:main:main", None),
            session("agent:main:cli:dm:a", Some("Boat trip")),
            session("agent:main:cli:dm:b", Some("Boat repair")),
            session("agent:main:cli:dm:c", Some("2")),
        ];
        assert_eq!(choose("", &sessions), Chosen::One(0));
        assert_eq!(choose("3", &sessions), Chosen::One(2));
        assert_eq!(
            choose("2", &sessions),
            Chosen::One(3),
            "a whole name comes before a number"
        );
        assert_eq!(choose("boat TRIP", &sessions), Chosen::One(1));
        assert_eq!(choose("repair", &sessions), Chosen::One(2));
        assert_eq!(choose("agent:main:main", &sessions), Chosen::One(0));
        assert_eq!(choose("boat", &sessions), Chosen::Several(2));
        for unknown in ["0", "5", "train"] {
            assert_eq!(choose(unknown, &sessions), Chosen::Unknown, "{unknown}");
        }
    }
}
