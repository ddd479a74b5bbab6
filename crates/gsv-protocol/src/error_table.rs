//! The shape of a row of the error table. The rows are in [`crate::errors`].

use crate::types::ErrorShape;

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    Caller,
    Peer,
    Policy,
    Platform,
    Bug,
}

/// One row: what programs compare, and what a person reads when there is no more specific text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorReason {
    /// `noun.problem`.
    pub reason: &'static str,
    /// The number on the wire.
    pub code: u32,
    pub blame: Blame,
    pub retryable: bool,
    pub http: u16,
    /// Exit status of the command line.
    pub exit: u8,
    /// What happened.
    pub text: &'static str,
    /// What to do next.
    pub hint: &'static str,
}

impl ErrorReason {
    /// The error as it travels, with the table's texts.
    #[must_use]
    pub fn to_shape(&self) -> ErrorShape {
        self.with_message(self.text)
    }

    /// The error as it travels, with a more specific message and the table's hint.
    #[must_use]
    pub fn with_message(&self, message: impl Into<String>) -> ErrorShape {
        ErrorShape {
            code: self.code,
            reason: self.reason.to_owned(),
            message: message.into(),
            hint: Some(self.hint.to_owned()),
            details: None,
            retryable: self.retryable.then_some(true),
        }
    }
}
