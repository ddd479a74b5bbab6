//! A server that answers, but not at the address as it was written: with the wrong scheme, or without the fingerprint of its certificate
//! (rule RM14). It must not guess: each verdict follows from what the server has sent.

use gsv_protocol::errors;
use gsv_protocol::types::ErrorShape;
use rustls::{CertificateError, Error, InvalidMessage};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use crate::net::target::Target;

/// A failed TLS handshake. `None`: it failed for another reason.
pub fn in_handshake(error: &std::io::Error, target: &Target) -> Option<ErrorShape> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) if target.pin.is_none() => Some(ErrorShape {
            hint: Some(
                "Use the address with its fingerprint, `#sha256=...` at the end. Or make an invitation on the gateway's machine, `gsv invite client`, and run its line here."
                    .to_owned(),
            ),
            ..errors::LINK_WRONG_CERTIFICATE.with_message(format!(
                "A server answers at {}, with a certificate that no public authority has signed, so nothing was sent to it.",
                target.shown
            ))
        }),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => Some(other_scheme(target)),
        _ => None,
    }
}

/// A failed upgrade to a WebSocket. A server for TLS answers plain text with an alert, which is no HTTP, and ends the connection.
pub fn in_upgrade(error: &tungstenite::Error, target: &Target) -> Option<ErrorShape> {
    let is_no_http = matches!(error, tungstenite::Error::Protocol(ProtocolError::HttparseError(_)));
    (is_no_http && !target.tls).then(|| other_scheme(target))
}

fn other_scheme(target: &Target) -> ErrorShape {
    let (speaks, scheme, more) = if target.tls {
        ("without TLS", "ws", "")
    } else {
        (
            "with TLS",
            "wss",
            " A gateway with a certificate of its own needs `#sha256=...` at the end, as its `gsv join` line sets it.",
        )
    };
    ErrorShape {
        hint: Some(format!(
            "Write the address as {scheme}://{}{}.{more}",
            target.authority(),
            target.uri.path()
        )),
        ..errors::LINK_BAD_URL.with_message(format!("A server answers at {}, but {speaks}.", target.shown))
    }
}
