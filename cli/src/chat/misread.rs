//! Lines that begin as an answer to a question and are none. They are never sent to the agent: the person wanted to answer. Pure.

use gsv_protocol::types::{ApprovalAnswerKind, ApprovalEntry};

use super::decision::{Decision, is_code};
use crate::clean::one_line;
use crate::commands::approval_view::{choices, times};

/// After the sentence about such a line, at a prompt.
pub const SEND_IT: &str = "To send the line as a message: `/queue add TEXT`.";
/// Columns of a word of the line in the sentence about it.
const WORD_COLUMNS: usize = 24;

/// Whether this answer, which is given without a code, is taken by the question that was shown first.
pub fn takes(asked: &[ApprovalEntry], answer: ApprovalAnswerKind) -> bool {
    let offered = || asked.iter().take(1).flat_map(choices);
    match answer {
        ApprovalAnswerKind::Allow | ApprovalAnswerKind::Deny => !asked.is_empty(),
        longer => offered().any(|choice| choice.answer == longer),
    }
}

/// The answers without a code: `y, s or n`.
pub fn short_answers(asked: &[ApprovalEntry]) -> &'static str {
    if takes(asked, ApprovalAnswerKind::AllowSession) {
        "y, s or n"
    } else {
        "y or n"
    }
}

/// Why a line that begins as an answer is none, and which answers there are. None: it is a message, or an answer. `asked`: the questions
/// of this conversation, in the order in which they were shown.
pub fn problem(text: &str, asked: &[ApprovalEntry]) -> Option<String> {
    if Decision::read(text).is_some() {
        return None;
    }
    let mut words = text.split_whitespace();
    let verb = bare(words.next()?).to_lowercase();
    let second = words.next().map(bare);
    let rest = words.collect::<Vec<_>>().join(" ");
    let named = second.and_then(|word| asked.iter().find(|entry| entry.code.eq_ignore_ascii_case(word)));
    let what = match (verb.as_str(), asked) {
        ("allow" | "deny", []) => {
            let code = second.filter(|word| is_like_code(word))?;
            // Other words after it are a sentence.
            let is_time = rest
                .split(' ')
                .next()
                .is_some_and(|word| matches!(word, "" | "for" | "session" | "always" | "--always"));
            if !is_time && !is_code(code) {
                return None;
            }
            if is_code(code) {
                wrong_time(&rest, &code.to_uppercase(), None)
            } else {
                format!("No open question has the code {code}.")
            }
        }
        ("allow" | "deny", [first, ..]) => match (named, second) {
            (Some(entry), _) => wrong_time(&rest, &entry.code, Some(entry)),
            (None, Some(word)) if is_like_code(word) || word.len() > 3 && is_capital(word) => {
                format!("No open question has the code {}.", one_line(word, WORD_COLUMNS))
            }
            _ => format!("`{verb}` needs the code of the question: `{verb} {}`.", first.code),
        },
        ("gsv", [_, ..]) if second == Some("approval") => "`gsv approval` is a command for a terminal.".to_owned(),
        ("s" | "session", [_, ..]) if second.is_none() && !takes(asked, ApprovalAnswerKind::AllowSession) => {
            "This question offers no answer for the whole conversation.".to_owned()
        }
        ("a" | "always" | "all" | "ok" | "okay", [_, ..]) if second.is_none() => {
            format!("`{verb}` is no answer.")
        }
        ("y" | "yes" | "n" | "no" | "s", [_, ..]) => {
            format!("`{verb}` answers only on a line of its own, without other words.")
        }
        _ => return None,
    };
    let answers = named
        .or(asked.first())
        .map(|entry| format!(" {}", answers(entry, asked)))
        .unwrap_or_default();
    Some(format!("Not sent. {what}{answers}"))
}

fn offers_rule(entry: &ApprovalEntry) -> bool {
    let mut offered = choices(entry).iter();
    offered.any(|choice| choice.answer == ApprovalAnswerKind::AllowAlways)
}

/// All answers to a question, in one line. Those without a code are for the question that was shown first.
pub fn answers(entry: &ApprovalEntry, asked: &[ApprovalEntry]) -> String {
    let code = &entry.code;
    let times = times(entry);
    let times = if times.is_empty() {
        String::new()
    } else {
        format!(", `allow {code} for TIME` (TIME: {})", times.join(", "))
    };
    let always = if offers_rule(entry) {
        format!("; for good, in a terminal: `gsv approval allow {code} --always`")
    } else {
        String::new()
    };
    let is_first = asked.first().is_some_and(|first| first.code == *code);
    let short = is_first.then(|| format!("{}, ", short_answers(asked)));
    format!(
        "Answer {code} with {}`allow {code}`{times} or `deny {code} [WORD...]`{always}.",
        short.unwrap_or_default()
    )
}

/// `entry`: the question, where it is one of this conversation. The sentence with all its answers follows.
fn wrong_time(time: &str, code: &str, entry: Option<&ApprovalEntry>) -> String {
    let word = time.strip_prefix("for ").unwrap_or(time);
    let may_be = |offers: fn(&ApprovalEntry) -> bool| entry.is_none_or(offers);
    let all = if entry.is_some() {
        String::new()
    } else {
        format!(" Write `allow {code} for 1h`, `8h`, `30d` or `session`.")
    };
    match word {
        "" | "for" if may_be(|entry| !times(entry).is_empty()) => {
            format!("After `allow {code} for` the time is missing.{all}")
        }
        "always" | "--always" if may_be(offers_rule) => {
            format!("`always` is not an answer here. In a terminal, run: `gsv approval allow {code} --always`.")
        }
        _ => {
            let (word, to) = (
                if word.is_empty() { "for" } else { word },
                entry.map_or("", |_| " to this question"),
            );
            format!("`{}` is not an answer{to}.{all}", one_line(word, WORD_COLUMNS))
        }
    }
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| ",.:;!?`\"'".contains(c))
}

fn is_capital(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// A word that was meant as a code, not a word of a sentence.
fn is_like_code(word: &str) -> bool {
    let is_short = word.len() == 5 && is_capital(word);
    is_short || is_code(word) && word.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    pub fn asked(choices: &[&str]) -> Vec<ApprovalEntry> {
        let choices: Vec<_> = choices
            .iter()
            .map(|answer| json!({"answer": answer, "text": "t"}))
            .collect();
        let entry = json!({
            "code": "K7Q2A", "sessionKey": "agent:main:main", "agentId": "main", "runId": "R", "callId": "c", "tool": "lap__Bash",
            "text": "rm", "textBytes": 2, "why": "w", "rule": "r", "hash": "h", "createdAt": 0, "expiresAt": 1, "choices": choices,
        });
        vec![serde_json::from_value(entry).unwrap()]
    }

    #[test]
    fn ap12_a_line_that_begins_as_an_answer_and_is_none_says_what_was_wrong() {
        let all = asked(&["allow_session", "allow_1h", "allow_8h", "allow_30d", "allow_always"]);
        for (line, words) in [
            ("deny", "`deny` needs the code of the question: `deny K7Q2A`"),
            ("ALLOW", "`allow K7Q2A`"),
            ("allow for 8h", "needs the code"),
            ("deny use yarn", "needs the code"),
            ("allow K7Q2A for 2h", "`2h` is not an answer to this question."),
            (
                "allow k7q2a but only once",
                "`but only once` is not an answer to this question.",
            ),
            ("allow K7Q2A for", "the time is missing"),
            ("allow K7Q2A always", "`gsv approval allow K7Q2A --always`"),
            ("allow WRONGCODE for 8h", "No open question has the code WRONGCODE"),
            ("allow ABCDE for 8h", "No open question has the code ABCDE"),
            ("yes please", "on a line of its own"),
            ("No, use yarn", "on a line of its own"),
            ("y!", "on a line of its own"),
            ("gsv approval allow K7Q2A --for 1h", "a command for a terminal"),
        ] {
            let problem = problem(line, &all).unwrap_or_else(|| panic!("{line} is sent"));
            assert!(problem.contains(words), "{line}: {problem}");
            assert!(
                problem.contains("with y, s or n, `allow K7Q2A`, `allow K7Q2A for TIME` (TIME: session, 1h, 8h, 30d)"),
                "{problem}"
            );
        }
        for line in ["a", "always", "OK", "all"] {
            let problem = problem(line, &all).unwrap_or_else(|| panic!("{line} is sent"));
            assert!(
                problem.contains("is no answer. Answer K7Q2A with y, s or n"),
                "{problem}"
            );
        }
        for line in [
            "why?",
            "ok, but in the other folder",
            "note this",
            "allowed paths are /srv",
            "nope",
            "deny K7Q2A use yarn",
            "allow K7Q2A for 8h",
            "sure",
        ] {
            assert_eq!(problem(line, &all), None, "{line}");
        }
        let once = asked(&[]);
        let problem = problem("s", &once).unwrap();
        assert!(
            problem.contains("no answer for the whole conversation. Answer K7Q2A with y or n, `allow K7Q2A` or"),
            "{problem}"
        );
    }

    #[test]
    fn ap12_only_what_a_question_offers_is_named() {
        let once = asked(&[]);
        for (line, said) in [
            (
                "allow K7Q2A always",
                "`always` is not an answer to this question. Answer K7Q2A with y or n, `allow K7Q2A` or",
            ),
            ("allow K7Q2A for", "`for` is not an answer to this question."),
        ] {
            assert!(problem(line, &once).unwrap().contains(said), "{line}");
        }
        // It is an answer; the gateway says that the question does not offer it.
        assert_eq!(problem("allow K7Q2A for 1h", &once), None);
        // With several questions, the line means the one that it names; `y` would answer another one.
        let mut two = asked(&["allow_1h"]);
        two.extend(asked(&["allow_always"]).into_iter().map(|mut entry| {
            entry.code = "M3N4P".into();
            entry
        }));
        let problem = problem("allow m3n4p for 2h", &two).unwrap();
        assert_eq!(
            problem,
            "Not sent. `2h` is not an answer to this question. Answer M3N4P with `allow M3N4P` or `deny M3N4P [WORD...]`; for good, in a terminal: `gsv approval allow M3N4P --always`."
        );
    }

    #[test]
    fn ap12_without_a_question_only_a_line_with_a_code_is_no_message() {
        for line in [
            "allow ABCDE for 8h",
            "deny ABCDE",
            "allow k7q2a for 2h",
            "allow K7Q2A always",
        ] {
            let problem = problem(line, &[]);
            assert!(
                problem.is_some_and(|problem| problem.starts_with("Not sent. ")),
                "{line}"
            );
        }
        for line in [
            "allow",
            "deny",
            "yes please",
            "no",
            "allow guest",
            "allow peace talks",
            "deny HTTPS access to it",
            "allow WRONGCODE",
        ] {
            assert_eq!(problem(line, &[]), None, "{line}");
        }
    }
}
