//! What can go wrong on the way to the gateway, as one cloneable type: every sentence is meant for a person and says
//! what to do next. Never carries a token.

use gsv_protocol::types::ErrorShape;

/// An error of the connection, or one that the gateway answered with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The gateway answered the call with this error.
    #[error("{}", sentence(.0))]
    Remote(ErrorShape),
    /// The gateway does not let this program in.
    #[error("The gateway refused the connection: {}", sentence(.error))]
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
        /// It was sent and may have taken effect, and must not simply be sent again.
        uncertain: bool,
    },
    /// The link ended before the call was sent or answered; it had no effect that matters, or was never sent.
    #[error("The connection to the gateway is closed: {reason}.")]
    Closed { reason: String },
    /// The link broke after a call was sent that must not be sent twice.
    #[error(
        "The connection broke before `{method}` was answered, so it is not known whether it took effect. Look before you repeat it."
    )]
    OutcomeUnknown { method: String },
    /// Nobody there, or nobody who speaks this protocol.
    #[error(
        "The gateway at {url} can't be reached: {cause}. Is it running? Start it with `gsv up`, or set another address with `gsv local-config set url ...`."
    )]
    Unreachable { url: String, cause: String },
    /// The request does not fit a frame.
    #[error(
        "The request `{method}` has {bytes} bytes; a frame holds at most {limit}. Send less, or use `gsv cp` for files."
    )]
    TooLarge { method: String, bytes: usize, limit: usize },
    /// Too many calls wait for an answer.
    #[error("Too many calls ({limit}) wait for the gateway's answer. Wait for some to end.")]
    Busy { limit: usize },
    /// The address is not one.
    #[error("`{url}` is not an address of a gateway: {why}. It looks like ws://host:port or https://host.")]
    BadUrl { url: String, why: String },
    /// The answer does not fit the contract.
    #[error(
        "The gateway answered `{method}` in a form that this version does not understand: {why}. Update the older side."
    )]
    BadAnswer { method: String, why: String },
    /// What was to be sent is no JSON or does not fit the contract.
    #[error("The request `{method}` can't be written: {why}.")]
    BadRequest { method: String, why: String },
}

impl LinkError {
    /// What programs compare: the contract's reason for errors that came from the gateway, `link.*` for our own.
    pub fn reason(&self) -> &str {
        match self {
            Self::Remote(error) | Self::Refused { error } => &error.reason,
            Self::Replaced { .. } => "link.replaced",
            Self::Timeout { .. } => "link.timeout",
            Self::Closed { .. } => "link.closed",
            Self::OutcomeUnknown { .. } => "link.outcome_unknown",
            Self::Unreachable { .. } => "link.unreachable",
            Self::TooLarge { .. } => "protocol.too_large",
            Self::Busy { .. } => "link.busy",
            Self::BadUrl { .. } => "link.bad_url",
            Self::BadAnswer { .. } => "link.bad_answer",
            Self::BadRequest { .. } => "link.bad_request",
        }
    }

    /// The gateway's error, when it is one.
    pub fn remote(&self) -> Option<&ErrorShape> {
        match self {
            Self::Remote(error) | Self::Refused { error } => Some(error),
            _ => None,
        }
    }

    /// Exit status for a command that failed with this: the contract's for a known reason; 4 = try again later, 3 = not
    /// allowed, 2 = wrong use, 1 = anything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Remote(error) => known(&error.reason).map_or(1, |row| row.exit),
            Self::Refused { error } => known(&error.reason).map_or(3, |row| row.exit),
            Self::Timeout { .. } | Self::Closed { .. } | Self::Unreachable { .. } | Self::Busy { .. } => 4,
            Self::TooLarge { .. } | Self::BadUrl { .. } | Self::BadRequest { .. } => 2,
            Self::Replaced { .. } | Self::OutcomeUnknown { .. } | Self::BadAnswer { .. } => 1,
        }
    }

    /// Whether the same request may succeed when it is made again, and may be made again without harm.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Remote(error) | Self::Refused { error } => error.retryable.unwrap_or(false),
            Self::Timeout { uncertain, .. } => !uncertain,
            Self::Closed { .. } | Self::Unreachable { .. } | Self::Busy { .. } => true,
            _ => false,
        }
    }
}

fn known(reason: &str) -> Option<&'static gsv_protocol::ErrorReason> {
    gsv_protocol::ErrorReason::find(reason)
}
fn after_timeout(uncertain: bool) -> &'static str {
    if uncertain {
        "It may have taken effect all the same: look before you repeat it."
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
    let (message, hint) = match known(&error.reason) {
        _ if !error.message.trim().is_empty() => (error.message.clone(), error.hint.as_deref()),
        Some(row) => (row.text.to_owned(), Some(row.hint)),
        None => (format!("error {} without a text", error.code), None),
    };
    match hint {
        Some(hint) => format!("{message} {hint}"),
        None => message,
    }
}
