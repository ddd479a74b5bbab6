//! Failures: one error type, and the exit status of each reason of the contract's table. Never prints; `output.rs` does.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use gsv_protocol::types::ErrorShape;
use gsv_protocol::{ErrorReason, errors};
use serde_json::Value;

/// Exit statuses. The contract's error table carries the same numbers per reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It was right and failed, such as for a name that does not exist.
    Failed = 1,
    /// The arguments or the input are wrong.
    Usage = 2,
    /// The token is missing, wrong, or may not do this.
    Auth = 3,
    /// The same command may work in a moment.
    TryLater = 4,
    /// A call of the agent waits for the owner's word; the run goes on after it.
    Paused = 5,
    /// It was started by a command of the agent, which has no authority of the owner's.
    AgentCommand = 6,
    /// GSV itself is at fault.
    Bug = 70,
    /// The user stopped it.
    Interrupted = 130,
}

impl Exit {
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// A status that this version does not know counts as plain failure.
    pub fn from_code(code: u8) -> Self {
        let known = [
            Self::Usage,
            Self::Auth,
            Self::TryLater,
            Self::Paused,
            Self::AgentCommand,
            Self::Bug,
            Self::Interrupted,
        ];
        known
            .into_iter()
            .find(|exit| exit.code() == code)
            .unwrap_or(Self::Failed)
    }
}

/// Why a command failed, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub exit: Exit,
    /// What happened, in a sentence.
    pub message: String,
    /// The next step for the user. Empty only if `message` contains it.
    pub next: String,
    /// The contract's reason, when the gateway sent one.
    pub reason: Option<String>,
    /// Further lines: the end of a log, a list.
    pub lines: Vec<String>,
    /// The gateway's details for programs.
    pub details: Option<Box<Value>>,
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            next: next.into(),
            reason: None,
            lines: Vec::new(),
            details: None,
        }
    }

    pub fn failed(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message, next)
    }

    pub fn later(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::TryLater, message, next)
    }

    pub fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, next)
    }

    pub fn with_lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// An error that the gateway answered with. An older gateway sends no hint; then the table's is shown.
    pub fn from_wire(error: &ErrorShape) -> Self {
        let failure = Self::from_reason(&error.reason, &error.message, error.retryable.unwrap_or(false));
        Self {
            details: error.details.clone().map(Box::new),
            next: error.hint.clone().unwrap_or(failure.next),
            ..failure
        }
    }

    /// The table gives the exit status, the next step and, in place of an empty message, its text. A reason that this
    /// version does not know counts as plain failure.
    pub fn from_reason(reason: &str, message: &str, retryable: bool) -> Self {
        let row = ErrorReason::find(reason);
        let exit = match row {
            Some(row) => Exit::from_code(row.exit),
            None if retryable => Exit::TryLater,
            None => Exit::Failed,
        };
        let message = match row {
            _ if !message.trim().is_empty() => message.to_owned(),
            Some(row) => row.text.to_owned(),
            None => format!("The gateway answered `{reason}`."),
        };
        Self {
            reason: Some(reason.to_owned()),
            ..Self::new(exit, message, row.map_or("", |row| row.hint))
        }
    }

    /// What to do next, unless the message says it already.
    pub fn next_step(&self) -> Option<&str> {
        let next = self.next.trim_end_matches('.');
        (!next.is_empty() && !self.message.contains(next)).then_some(self.next.as_str())
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "Stopped.", "")
    }

    /// Whether the gateway refused this token.
    pub fn is_refusal(&self) -> bool {
        self.exit == Exit::Auth
    }

    /// Whether the gateway has answered with it. Each such failure but `internal` says that it has not done what was asked for.
    pub fn is_answer(&self) -> bool {
        self.reason
            .as_deref()
            .is_some_and(|reason| !reason.starts_with("link."))
    }

    /// Whether the gateway may have done what was asked for, because its answer did not arrive.
    pub fn is_lost_answer(&self) -> bool {
        self.reason.is_some() && !self.is_answer() && !self.is(&errors::LINK_UNREACHABLE)
    }

    pub fn is(&self, row: &ErrorReason) -> bool {
        self.reason.as_deref() == Some(row.reason)
    }
}

const FREE_SPACE: &str = "Free some space (`df -h` shows how full each disk is), then run the command again.";

/// Turns an I/O error into a failure that names what was being done.
pub trait OrFail<T> {
    fn or_fail(self, doing: impl Display, next: impl Into<String>) -> Outcome<T>;
}

impl<T> OrFail<T> for io::Result<T> {
    fn or_fail(self, doing: impl Display, next: impl Into<String>) -> Outcome<T> {
        self.map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Failure::failed(format!("The disk is full: GSV could not {doing}."), FREE_SPACE)
            }
            _ => Failure::failed(format!("Could not {doing}: {error}."), next),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use clap::Parser;
    use clap::error::ErrorKind as ArgError;
    use gsv_link::LinkError;

    #[test]
    fn p10_every_reason_of_the_contract_has_its_exit_status_and_a_next_step() {
        for row in errors::ERRORS {
            let own = Failure::from_reason(row.reason, row.text, row.retryable);
            let special = Failure::from_reason(row.reason, "Something special.", row.retryable);
            assert_eq!(
                (own.exit.code(), special.exit.code()),
                (row.exit, row.exit),
                "{}",
                row.reason
            );
            assert_eq!((own.message.as_str(), own.next.as_str()), (row.text, row.hint));
            assert_eq!(
                (special.message.as_str(), special.next.as_str()),
                ("Something special.", row.hint)
            );
            assert_eq!(Failure::from_reason(row.reason, " ", false), own);
        }
    }

    #[test]
    fn f48_the_next_step_does_not_repeat_the_message() {
        let says_it = format!("X is overloaded (HTTP 529). {}", errors::MODEL_OVERLOADED.hint);
        assert_eq!(
            Failure::from_reason("model.overloaded", &says_it, true).next_step(),
            None
        );
        let short = Failure::from_reason("model.overloaded", "X is overloaded.", true);
        assert_eq!(short.next_step(), Some(errors::MODEL_OVERLOADED.hint));
        assert_eq!(Failure::interrupted().next_step(), None);
    }

    #[test]
    fn p10_the_next_step_is_the_hint_of_the_answer_and_is_never_read_from_the_message() {
        let mut answer = errors::NODE_OFFLINE.with_message("The machine laptop is not connected. Start it.");
        assert_eq!(Failure::from_wire(&answer).next, errors::NODE_OFFLINE.hint);
        answer.hint = Some("Run `gsv node` on laptop.".into());
        assert_eq!(Failure::from_wire(&answer).next, "Run `gsv node` on laptop.");
        answer.hint = None;
        assert_eq!(Failure::from_wire(&answer).next, errors::NODE_OFFLINE.hint);
    }

    /// What the contract's table and the link say to a person.
    fn texts() -> Vec<String> {
        let (url, cause, method) = ("ws://h/ws".to_owned(), "refused".to_owned(), "chat.send".to_owned());
        let link = [
            LinkError::TooLarge {
                method: method.clone(),
                bytes: 2,
                limit: 1,
            },
            LinkError::OutcomeUnknown { method },
            LinkError::Unreachable { url, cause },
        ];
        let table = errors::ERRORS.iter().flat_map(|row| [row.text, row.hint]);
        table
            .map(str::to_owned)
            .chain(link.map(|error| error.to_string()))
            .collect()
    }

    /// The commands in a text.
    fn commands(text: &str) -> impl Iterator<Item = &str> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .filter(|command| command.starts_with("gsv "))
    }

    #[test]
    fn f3_p10_every_command_and_variable_that_an_error_names_exists() {
        let variables = include_str!("../../gateway/src/platform/env.ts");
        let mut checked = 0;
        for text in texts() {
            for command in commands(&text) {
                assert!(
                    !command.contains('<'),
                    "`{command}`: a shell reads `<` as a file; write names in capitals"
                );
                for piped in command.split(" | ") {
                    // The ids of agents have no capitals.
                    let words = piped.split(' ').map(|word| if word == "ID" { "id" } else { word });
                    if let Err(error) = crate::args::Cli::try_parse_from(words) {
                        let shown = matches!(error.kind(), ArgError::DisplayHelp | ArgError::DisplayVersion);
                        assert!(shown, "`{command}`: {error}");
                    }
                }
                checked += 1;
            }
            let is_variable =
                |word: &&str| word.contains('_') && word.chars().all(|c| c == '_' || c.is_ascii_uppercase());
            for word in text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(is_variable)
            {
                // This program's own, or a line of the file with the keys of a cluster's bucket.
                let is_known = word == "GSV_HOME" || crate::embedded::cluster::LINES.contains(&word);
                assert!(is_known || variables.contains(&format!(" {word}?:")), "{word}: {text}");
            }
        }
        assert!(checked > 20, "{checked}");
    }

    /// The lines of the gateway's sources without comments, with their files.
    fn gateway_lines() -> Vec<(PathBuf, String)> {
        let mut lines = Vec::new();
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/src"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy();
                if path.is_dir() {
                    folders.push(path);
                } else if name.ends_with(".ts") && !name.ends_with(".test.ts") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
                    lines.extend(code.map(|line| (path.clone(), line.replace('\\', ""))));
                }
            }
        }
        lines
    }

    #[test]
    fn f3_every_command_that_a_text_of_the_gateway_names_exists() {
        let mut checked = 0;
        let mut missing = Vec::new();
        for (path, line) in gateway_lines() {
            for (at, _) in line.match_indices("`gsv ") {
                let text = line[at + 1..].split('`').next().unwrap_or_default();
                for command in text.split(" && ") {
                    // A value that the text puts in is one word.
                    let command = command
                        .split("${")
                        .enumerate()
                        .fold(String::new(), |whole, (part, text)| {
                            let rest = if part == 0 {
                                text
                            } else {
                                text.split_once('}').map_or("", |(_, rest)| rest)
                            };
                            whole + if part == 0 { "" } else { "x" } + rest
                        });
                    checked += 1;
                    let Err(error) = crate::args::Cli::try_parse_from(command.split(' ')) else {
                        continue;
                    };
                    if matches!(error.kind(), ArgError::InvalidSubcommand | ArgError::UnknownArgument) {
                        missing.push(format!("{}: `{command}`", path.display()));
                    }
                }
            }
        }
        assert_eq!(missing, [""; 0]);
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn f4_no_error_advises_typing_a_secret_as_an_argument() {
        let mut checked = 0;
        for text in texts() {
            for command in commands(&text) {
                let sets_secret = command.contains(" set apiKeys.") || command.contains(" set token ");
                assert!(!sets_secret || command.ends_with(" -"), "{command}");
                checked += usize::from(sets_secret);
            }
        }
        assert!(checked >= 2, "{checked}");
    }

    #[test]
    fn p10_a_full_disk_is_named_with_what_to_do() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let full: io::Result<()> = Err(io::Error::from(kind));
            let failure = full.or_fail("write /x", "Check it.").unwrap_err();
            assert!(failure.message.starts_with("The disk is full"), "{}", failure.message);
            assert!(failure.next.contains("df -h"), "{}", failure.next);
        }
        let other: io::Result<()> = Err(io::Error::from(ErrorKind::PermissionDenied));
        assert_eq!(other.or_fail("write /x", "Check it.").unwrap_err().next, "Check it.");
    }

    #[test]
    fn a_reason_of_a_newer_gateway_is_a_plain_failure() {
        assert_eq!(Failure::from_reason("new.thing", "New.", false).exit, Exit::Failed);
        assert_eq!(Failure::from_reason("new.thing", "New.", true).exit, Exit::TryLater);
        assert!(
            Failure::from_reason("new.thing", "", false)
                .message
                .contains("new.thing")
        );
    }
}
