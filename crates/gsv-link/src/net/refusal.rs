//! Reads the error of an HTTP answer: of a refused WebSocket upgrade or a refused upload.

use gsv_protocol::types::ErrorShape;
use gsv_protocol::{ErrorReason, Json, errors};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::http::StatusCode;

/// The readable fields of an error's body.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    reason: Json,
    message: Json,
    detail: Json,
    hint: Json,
}

/// The contract's error of an HTTP answer: from the body, else from the status. `None` when neither says why.
pub fn refusal(status: StatusCode, body: &[u8]) -> Option<ErrorShape> {
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &Json| field.read::<String>().ok();
    let by_status = match status.as_u16() {
        401 => Some(&errors::AUTH_REQUIRED),
        403 => Some(&errors::AUTH_ORIGIN),
        429 => Some(&errors::LIMIT_RATE),
        _ => None,
    };
    let row = text(&problem.reason)
        .as_deref()
        .and_then(ErrorReason::find)
        .or(by_status)?;
    let message = text(&problem.message).or_else(|| text(&problem.detail));
    let error = row.with_message(message.unwrap_or_else(|| row.text.to_owned()));
    Some(ErrorShape {
        hint: text(&problem.hint).or(error.hint),
        ..error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_the_error_of_a_refused_upgrade_is_read() {
        let closed = refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            br#"{"reason":"auth.not_configured","detail":"no token yet"}"#,
        )
        .unwrap();
        assert_eq!(
            (closed.reason.as_str(), closed.message.as_str()),
            ("auth.not_configured", "no token yet")
        );
        assert_eq!(
            refusal(StatusCode::UNAUTHORIZED, b"<html>").unwrap().reason,
            "auth.required"
        );
        assert_eq!(refusal(StatusCode::FORBIDDEN, b"").unwrap().reason, "auth.origin");
        assert_eq!(refusal(StatusCode::BAD_GATEWAY, b"{}"), None);
    }
}
