//! A pinned certificate: the server must have exactly the certificate with this fingerprint. Names, issuers and dates of the
//! certificate do not count, because the fingerprint came from the gateway itself.

use std::fmt;
use std::sync::Arc;

use gsv_protocol::errors;
use gsv_protocol::types::ErrorShape;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

const BYTES: usize = 32;

/// The SHA-256 of a certificate (DER).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; BYTES]);

impl Fingerprint {
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref());
        Self(bytes)
    }

    /// Reads 64 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 2 * BYTES || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * at..2 * at + 2)?;
            if pair.starts_with('+') {
                return None;
            }
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes))
    }

    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// In the same time, wherever the first difference is.
    fn is_of(self, certificate: &[u8]) -> bool {
        let found = Self::of(certificate);
        let differences = self.0.iter().zip(found.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        differences == 0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.fingerprint.is_of(end_entity) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            ))
        }
    }

    // The signatures prove that the server has the certificate's key, so they are always checked.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// TLS that accepts this certificate and no other.
pub fn config(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Pinned {
        fingerprint,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The error of a handshake that this verifier ended. `None`: it failed for another reason.
pub fn wrong_certificate(error: &std::io::Error) -> Option<ErrorShape> {
    let cause = error.get_ref()?.downcast_ref::<Error>()?;
    let is_ours = matches!(
        cause,
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
    );
    is_ours.then(|| errors::LINK_WRONG_CERTIFICATE.with_message(errors::LINK_WRONG_CERTIFICATE.text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rm4_a_fingerprint_is_64_hex_digits() {
        let text = "00".repeat(31) + "fE";
        let read = Fingerprint::parse(&text).unwrap();
        assert_eq!(read.to_string(), text.to_lowercase());
        for bad in [
            "",
            "00",
            &text[1..],
            &format!("{text}0"),
            &"zz".repeat(32),
            &"+0".repeat(32),
            &"é".repeat(32),
        ] {
            assert_eq!(Fingerprint::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn rm4_only_the_same_certificate_has_the_fingerprint() {
        let pin = Fingerprint::of(b"certificate");
        assert!(pin.is_of(b"certificate"));
        assert!(!pin.is_of(b"certificatf") && !pin.is_of(b""));
        let mut other = *pin.bytes();
        other[31] ^= 1;
        assert!(!Fingerprint::from_bytes(other).is_of(b"certificate"));
    }
}
