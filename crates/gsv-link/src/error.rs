//! The errors of a connection to the gateway. Every sentence is for a person and says what to do next. Never carries a
//! token.

use gsv_protocol::types::ErrorShape;
use gsv_protocol::{ErrorReason, errors};

/// An error of the connection, or one that the gateway answered with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The gateway answered the call with this error.
    #[error("{}", sentence(.0))]
    Remote(ErrorShape),
    /// The gateway does not let this program in.
    #[error("{}{}", refused_by(.error), sentence(.error))]
    Refused { error: ErrorShape },
    /// A newer connection with the same mode and id took over.
    #[error(
        "Another connection with the same id has replaced this one ({reason}). Stop the other one, or give one of them another id."
    )]
    Replaced { reason: String },
    /// No answer in time.
    #[error("The gateway did not answer `{method}` within {} s. {}", seconds(*.after_ms), after_timeout(*.uncertain))]
    Timeout {
        method: String,
        after_ms: u64,
        /// The request was sent, may have taken effect, and must not be repeated blindly.
        uncertain: bool,
    },
    /// The link ended before the call was sent, or before an answer to a call that may be repeated.
    #[error("The connection to the gateway is closed: {reason}.")]
    Closed { reason: String },
    /// The link broke after a call was sent that must not be sent twice.
    #[error(
        "The connection broke before `{method}` was answered, so it is not known whether it took effect. Check before you repeat it."
    )]
    OutcomeUnknown { method: String },
    /// No server answers at the address, or none that speaks this protocol.
    #[error(
        "The gateway at {url} can't be reached: {cause}. Is it running? Start it with `gsv up`, or set another address with `gsv local-config set url ...`."
    )]
    Unreachable { url: String, cause: String },
    /// The request does not fit a frame.
    #[error(
        "The request `{method}` has {bytes} bytes; a frame holds at most {limit}. Send less; `gsv chat --attach FILE` sends a file."
    )]
    TooLarge { method: String, bytes: usize, limit: usize },
    /// Too many calls wait for an answer.
    #[error("Too many calls ({limit}) wait for the gateway's answer. Wait for some to end.")]
    Busy { limit: usize },
    /// The address is not valid.
    #[error("`{url}` is not an address of a gateway: {why}. Write it like ws://host:port or https://host.")]
    BadUrl { url: String, why: String },
    /// The answer does not fit the contract.
    #[error(
        "The gateway answered `{method}` in a form that this version does not understand: {why}. Update the older side."
    )]
    BadAnswer { method: String, why: String },
    /// The request can't be written as a frame.
    #[error("The request `{method}` can't be written: {why}.")]
    BadRequest { method: String, why: String },
}

impl LinkError {
    /// What programs compare: the gateway's reason for errors that came from the gateway, else a row of the error table.
    pub fn reason(&self) -> &str {
        match (self.remote(), self.row()) {
            (Some(error), _) => &error.reason,
            (None, row) => row.map_or(errors::INTERNAL.reason, |row| row.reason),
        }
    }

    /// The row of the error table; `None` for a reason that a newer gateway added.
    fn row(&self) -> Option<&'static ErrorReason> {
        Some(match self {
            Self::Remote(error) | Self::Refused { error } => return ErrorReason::find(&error.reason),
            Self::Replaced { .. } => &errors::LINK_REPLACED,
            Self::Timeout { .. } => &errors::LINK_TIMEOUT,
            Self::Closed { .. } => &errors::LINK_CLOSED,
            Self::OutcomeUnknown { .. } => &errors::LINK_OUTCOME_UNKNOWN,
            Self::Unreachable { .. } => &errors::LINK_UNREACHABLE,
            Self::TooLarge { .. } => &errors::PROTOCOL_TOO_LARGE,
            Self::Busy { .. } => &errors::LINK_BUSY,
            Self::BadUrl { .. } => &errors::LINK_BAD_URL,
            Self::BadAnswer { .. } => &errors::LINK_BAD_ANSWER,
            Self::BadRequest { .. } => &errors::LINK_BAD_REQUEST,
        })
    }

    /// The gateway's error, when it is one.
    pub fn remote(&self) -> Option<&ErrorShape> {
        match self {
            Self::Remote(error) | Self::Refused { error } => Some(error),
            _ => None,
        }
    }

    /// Exit status for a command that failed with this: the table's; for a reason that the table lacks 3 (not allowed)
    /// when the connection was refused, else 1.
    pub fn exit_status(&self) -> u8 {
        match (self.row(), self) {
            (Some(row), _) => row.exit,
            (None, Self::Refused { .. }) => 3,
            (None, _) => 1,
        }
    }

    /// Whether the same request may succeed when it is made again, and may be made again without harm.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Remote(error) | Self::Refused { error } => error.retryable.unwrap_or(false),
            Self::Timeout { uncertain, .. } => !uncertain,
            _ => self.row().is_some_and(|row| row.retryable),
        }
    }
}

/// The program itself refuses a server whose certificate or protocol is not that of the address.
fn refused_by(error: &ErrorShape) -> &'static str {
    let own = [errors::LINK_WRONG_CERTIFICATE, errors::LINK_BAD_URL];
    if own.iter().any(|row| row.reason == error.reason) {
        ""
    } else {
        "The gateway refused the connection: "
    }
}

fn after_timeout(uncertain: bool) -> &'static str {
    if uncertain {
        "It may still have taken effect: check before you repeat it."
    } else {
        "Check `gsv status`, then try again."
    }
}
fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        (ms / 1000).to_string()
    } else {
        format!("{}.{}", ms / 1000, ms % 1000 / 100)
    }
}

/// The gateway's message and hint, else the table's texts for the reason.
fn sentence(error: &ErrorShape) -> String {
    let (message, hint) = match ErrorReason::find(&error.reason) {
        _ if !error.message.trim().is_empty() => (error.message.clone(), error.hint.as_deref()),
        Some(row) => (row.text.to_owned(), Some(row.hint)),
        None => (format!("error {} without a text", error.code), None),
    };
    match hint {
        Some(hint) => format!("{message} {hint}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(after_ms: u64, uncertain: bool) -> LinkError {
        LinkError::Timeout {
            method: "chat.send".into(),
            after_ms,
            uncertain,
        }
    }
    fn remote(reason: &str, message: &str, hint: Option<&str>) -> ErrorShape {
        ErrorShape {
            code: 599,
            reason: reason.into(),
            message: message.into(),
            hint: hint.map(Into::into),
            retryable: None,
            details: None,
        }
    }

    #[test]
    fn p6_a_timeout_says_whether_the_request_may_have_taken_effect() {
        assert_eq!(
            timeout(10_000, true).to_string(),
            "The gateway did not answer `chat.send` within 10 s. It may still have taken effect: check before you repeat it."
        );
        assert_eq!(
            timeout(1_500, false).to_string(),
            "The gateway did not answer `chat.send` within 1.5 s. Check `gsv status`, then try again."
        );
        assert!(!timeout(1, true).is_retryable() && timeout(1, false).is_retryable());
    }

    #[test]
    fn an_error_of_the_gateway_keeps_its_words_and_has_the_tables_where_it_has_none() {
        let said = |error| LinkError::Remote(error).to_string();
        assert_eq!(
            said(remote("storage.full", "Full.", Some("Free some."))),
            "Full. Free some."
        );
        assert_eq!(said(remote("storage.full", "Full.", None)), "Full.");
        let row = errors::STORAGE_FULL;
        assert_eq!(
            said(remote("storage.full", " ", None)),
            format!("{} {}", row.text, row.hint)
        );
        assert_eq!(said(remote("newer.reason", "", None)), "error 599 without a text");
    }

    #[test]
    fn an_unknown_reason_has_an_exit_status() {
        let unknown = || remote("newer.reason", "", None);
        assert_eq!(LinkError::Remote(unknown()).exit_status(), 1);
        assert_eq!(LinkError::Refused { error: unknown() }.exit_status(), 3);
        assert_eq!(
            LinkError::Remote(remote("storage.full", "", None)).exit_status(),
            errors::STORAGE_FULL.exit
        );
    }
}
