//! The prompt's editor: completion of commands, and lines that go on. Pure but for rustyline's traits.

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

/// What the gateway understands, and what this program does itself.
const COMMANDS: [(&str, &str); 13] = [
    ("/help", "what there is"),
    ("/status", "the session's state"),
    ("/stop", "stop the run"),
    ("/new", "start afresh"),
    ("/reset", "start afresh"),
    ("/compact ", "keep only the last messages"),
    ("/model ", "show or change the model"),
    ("/think ", "how long the model thinks"),
    ("/approve", "allow what is asked"),
    ("/deny", "refuse what is asked"),
    ("/attach ", "send a file with the next message"),
    ("/quit", "leave"),
    ("/exit", "leave"),
];
const LEVELS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

pub struct Editor;

impl Helper for Editor {}
impl Highlighter for Editor {}
impl Hinter for Editor {
    type Hint = String;
}

impl Completer for Editor {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>), ReadlineError> {
        if line.starts_with("/attach ") {
            return FilenameCompleter::new().complete(line, at, context);
        }
        Ok((0, candidates(line.get(..at).unwrap_or_default())))
    }
}

impl Validator for Editor {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult, ReadlineError> {
        Ok(if goes_on(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

fn candidates(typed: &str) -> Vec<Pair> {
    if !typed.starts_with('/') || typed.contains('\n') {
        return Vec::new();
    }
    if let Some(level) = typed.strip_prefix("/think ") {
        let levels = LEVELS.iter().filter(|name| name.starts_with(level));
        return levels
            .map(|name| Pair {
                display: (*name).to_owned(),
                replacement: format!("/think {name}"),
            })
            .collect();
    }
    COMMANDS
        .iter()
        .filter(|(name, _)| name.starts_with(typed))
        .map(|(name, about)| Pair {
            display: format!("{:10} {about}", name.trim_end()),
            replacement: (*name).to_owned(),
        })
        .collect()
}

/// Whether the gateway or this program takes it as a command; any other `/word` is text.
pub fn is_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    COMMANDS.iter().any(|(name, _)| name.trim_end() == word)
}

/// A backslash at the end, or a code fence that is not closed.
pub fn goes_on(input: &str) -> bool {
    let fences = input
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count();
    fences % 2 == 1 || (input.ends_with('\\') && !input.ends_with("\\\\"))
}

/// The message as it is sent: a backslash before a line end is only the way to type it.
pub fn message(input: &str) -> String {
    input.replace("\\\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed() {
        let names = |typed: &str| {
            candidates(typed)
                .into_iter()
                .map(|pair| pair.replacement)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("/st"), ["/status", "/stop"]);
        assert_eq!(names("/think m"), ["/think minimal", "/think medium"]);
        assert_eq!(names("hello /st"), Vec::<String>::new());
        assert_eq!(names("/").len(), 13);
        assert!(is_command("/compact 5") && is_command("/help"));
        assert!(!is_command("/etc/hosts is wrong") && !is_command("hi /help"));
    }

    #[test]
    fn a_backslash_or_an_open_fence_goes_on() {
        assert!(goes_on("one\\"));
        assert!(!goes_on("one\\\ntwo"));
        assert!(!goes_on("path\\\\"));
        assert!(goes_on("look:\n```sh\nls"));
        assert!(!goes_on("look:\n```sh\nls\n```"));
        assert_eq!(message("one\\\ntwo\n"), "one\ntwo");
    }
}
