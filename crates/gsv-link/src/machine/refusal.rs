//! Separates refusals that only a person can fix from temporary ones. Does not decide what follows.

use gsv_protocol::errors;
use gsv_protocol::types::ErrorShape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A retry may succeed soon.
    Temporary,
    /// A retry fails until a person repairs the gateway, or updates one side.
    Repairable,
    /// A retry with the same token fails for good.
    Final,
}

/// Judges an error that the gateway gave instead of `hello-ok`.
pub fn verdict(error: &ErrorShape) -> Verdict {
    let group = error.reason.split('.').next().unwrap_or_default();
    match group {
        _ if error.retryable == Some(true) => Verdict::Temporary,
        // No token exists there yet.
        _ if error.reason == errors::AUTH_NOT_CONFIGURED.reason => Verdict::Repairable,
        // Another server answers there for now, or the gateway has a new certificate or address.
        _ if is_of_address(error) => Verdict::Repairable,
        "auth" => Verdict::Final,
        "protocol" => Verdict::Repairable,
        _ => Verdict::Temporary,
    }
}

/// Whether the server that answers is not that of the address: it has another certificate, or does not speak as the scheme says.
pub fn is_of_address(error: &ErrorShape) -> bool {
    let rows = [errors::LINK_WRONG_CERTIFICATE, errors::LINK_BAD_URL];
    rows.iter().any(|row| row.reason == error.reason)
}

/// The error that a close code of the handshake stands for (SPEC.md H1 to H8), when no answer came before it.
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

/// Whether the reason of a close 1000 says that a newer connection took over (H4).
pub fn says_replaced(reason: &str) -> bool {
    reason.to_ascii_lowercase().contains("replaced")
}

/// Describes a close in words.
pub fn describe_close(code: Option<u16>, reason: &str) -> String {
    match (code, reason.trim()) {
        (None, "") => "the connection broke".into(),
        (None, reason) => reason.into(),
        (Some(code), "") => format!("closed by the gateway ({code})"),
        (Some(code), reason) => format!("closed by the gateway ({code}: {reason})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_of_the_handshake_has_the_tables_text_and_the_gateways_reason() {
        let said = |reason: &str| of_close_code(Some(4001), reason).unwrap().message;
        assert_eq!(said("  "), errors::AUTH_REQUIRED.text);
        assert_eq!(said(" no token "), format!("{} (no token)", errors::AUTH_REQUIRED.text));
        assert_eq!(of_close_code(Some(4999), "x"), None);
        assert_eq!(of_close_code(None, "x"), None);
    }
}
