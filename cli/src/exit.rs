//! How the program ends: one error type, and the exit status that goes with each reason of the contract's table.
//! It never prints; `output.rs` does.

use std::fmt::Display;
use std::io;

use gsv_protocol::ErrorReason;
use gsv_protocol::types::ErrorShape;
use serde_json::Value;

/// Exit statuses. The contract's error table carries the same numbers per reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It was tried and did not work.
    Failed,
    /// The arguments or the input are wrong.
    Usage,
    /// The token is missing, wrong, or may not do this.
    Auth,
    /// It may work in a moment.
    TryLater,
    /// GSV itself is at fault.
    Bug,
    /// The user stopped it.
    Interrupted,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Auth => 3,
            Self::TryLater => 4,
            Self::Bug => 70,
            Self::Interrupted => 130,
        }
    }

    pub const fn from_code(code: u8) -> Self {
        match code {
            2 => Self::Usage,
            3 => Self::Auth,
            4 => Self::TryLater,
            70 => Self::Bug,
            130 => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}

/// Why a command did not do what was asked, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub exit: Exit,
    /// What happened, a sentence.
    pub message: String,
    /// What the person can do about it. Empty only when `message` says it already.
    pub next: String,
    /// The contract's reason, when the gateway sent one.
    pub reason: Option<String>,
    /// Further lines shown as they are: the end of a log, a list.
    pub lines: Vec<String>,
    /// What the gateway said for programs.
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

    pub fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, next)
    }

    pub fn with_lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// An error that the gateway answered with. The table gives the exit status and, when the message is its own, the
    /// next step; a reason that this version does not know counts as plain failure.
    pub fn from_wire(error: &ErrorShape) -> Self {
        Self {
            details: error.details.clone().map(Box::new),
            ..Self::from_reason(&error.reason, &error.message, error.retryable.unwrap_or(false))
        }
    }

    pub fn from_reason(reason: &str, message: &str, retryable: bool) -> Self {
        let row = ErrorReason::find(reason);
        let exit = match row {
            Some(row) => Exit::from_code(row.exit),
            None if retryable => Exit::TryLater,
            None => Exit::Failed,
        };
        let text = row.map_or("", |row| row.text);
        let message = if message.trim().is_empty() { text } else { message };
        let next = if message == text || text.is_empty() || !says_what_to_do(text) {
            ""
        } else {
            text
        };
        Self {
            exit,
            message: if message.is_empty() {
                format!("The gateway answered `{reason}`.")
            } else {
                message.to_owned()
            },
            next: next.to_owned(),
            reason: Some(reason.to_owned()),
            lines: Vec::new(),
            details: None,
        }
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "Stopped.", "")
    }

    /// Whether the gateway answered, and did not let us in.
    pub fn is_refusal(&self) -> bool {
        self.exit == Exit::Auth
    }

    pub fn is(&self, row: &ErrorReason) -> bool {
        self.reason.as_deref() == Some(row.reason)
    }
}

/// A table text that has a second sentence tells the next step in it.
fn says_what_to_do(text: &str) -> bool {
    text.trim_end_matches('.').contains(". ") || text.contains("; ")
}

/// Turns an I/O error into a failure that names what was being done.
pub trait OrFail<T> {
    fn or_fail(self, doing: impl Display, next: impl Into<String>) -> Outcome<T>;
}

impl<T> OrFail<T> for io::Result<T> {
    fn or_fail(self, doing: impl Display, next: impl Into<String>) -> Outcome<T> {
        self.map_err(|error| Failure::failed(format!("Could not {doing}: {error}."), next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsv_protocol::errors::ERRORS;

    #[test]
    fn p10_every_reason_of_the_contract_has_its_exit_status_and_a_next_step() {
        for row in ERRORS {
            let own = Failure::from_reason(row.reason, row.text, row.retryable);
            let special = Failure::from_reason(row.reason, "Something special.", row.retryable);
            assert_eq!(
                (own.exit.code(), special.exit.code()),
                (row.exit, row.exit),
                "{}",
                row.reason
            );
            assert_eq!((own.message.as_str(), own.next.as_str()), (row.text, ""), "said once");
            assert!(special.next.is_empty() || special.next == row.text);
            assert_eq!(Failure::from_reason(row.reason, " ", false).message, row.text);
        }
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
