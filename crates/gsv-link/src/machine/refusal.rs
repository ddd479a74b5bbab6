//! Which refusals only a person can mend. Nothing here decides what to do about them.

use gsv_protocol::errors;
use gsv_protocol::types::ErrorShape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Trying again soon may help.
    Passing,
    /// Trying again changes nothing until somebody acts.
    Final,
}

pub fn verdict(error: &ErrorShape) -> Verdict {
    if error.retryable == Some(true) {
        return Verdict::Passing;
    }
    let by_hand = error.reason.starts_with("auth.") || error.reason.starts_with("protocol.");
    // The reference gateway gives numbers only.
    let by_number = matches!(error.code, 101..=103 | 401 | 403);
    if by_hand || by_number {
        Verdict::Final
    } else {
        Verdict::Passing
    }
}

/// Close codes of the handshake (SPEC.md H1 to H8), for a gateway whose answer was lost or that gave none.
pub fn of_close_code(code: Option<u16>, reason: &str) -> Option<ErrorShape> {
    let row = match code? {
        4000 => errors::PROTOCOL_NOT_CONNECTED,
        4001 => errors::AUTH_REQUIRED,
        4002 => errors::PROTOCOL_VERSION,
        4003 => errors::AUTH_FORBIDDEN,
        _ => return None,
    };
    let message = if reason.trim().is_empty() {
        row.text.to_owned()
    } else {
        format!("{} ({})", row.text, reason.trim())
    };
    Some(row.with_message(message))
}

/// H4: the reason of a close 1000 that says a newer connection took over.
pub fn says_replaced(reason: &str) -> bool {
    reason.to_ascii_lowercase().contains("replaced")
}

/// A close in words.
pub fn describe_close(code: Option<u16>, reason: &str) -> String {
    match (code, reason.trim()) {
        (None, "") => "the connection broke".into(),
        (None, reason) => reason.into(),
        (Some(code), "") => format!("closed by the gateway ({code})"),
        (Some(code), reason) => format!("closed by the gateway ({code}: {reason})"),
    }
}
