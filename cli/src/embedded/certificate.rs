//! The gateway's own certificate for other machines: made once, kept with its key in one private file, known by its fingerprint.

use std::sync::Arc;

use gsv_link::Fingerprint;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::layout::Layout;
use crate::exit::{Failure, Outcome};
use crate::private_file;

const REPAIR: &str = "Put it back from a backup that was made with --with-secrets. Or remove it: the gateway then gets a new certificate at its next start, and each other machine must join again.";
/// It names no host, because clients compare the fingerprint only.
const NAME: &str = "gsv";

pub struct Certificate {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// The stored certificate, or a new one.
    pub fn ensure(layout: &Layout) -> Outcome<Self> {
        if let Some(found) = Self::read(layout)? {
            return Ok(found);
        }
        private_file::write(&layout.certificate(), generate()?)?;
        let made = Self::read(layout)?;
        made.ok_or_else(|| unusable(layout, "it was removed while it was made"))
    }

    /// `None`: there is none yet.
    pub fn read(layout: &Layout) -> Outcome<Option<Self>> {
        let Some(text) = private_file::read_private(&layout.certificate(), REPAIR)? else {
            return Ok(None);
        };
        let certificate = CertificateDer::from_pem_slice(text.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        let (Ok(certificate), Ok(key)) = (certificate, key) else {
            return Err(unusable(layout, "it has no certificate with its key"));
        };
        Ok(Some(Self { certificate, key }))
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// TLS of a server with this certificate.
    pub fn server(&self, layout: &Layout) -> Outcome<Arc<ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            });
        let config = config.map_err(|_| unusable(layout, "its key does not belong to its certificate"))?;
        Ok(Arc::new(config))
    }
}

fn unusable(layout: &Layout, why: &str) -> Failure {
    private_file::unusable(&layout.certificate(), why, REPAIR)
}

/// The key and the certificate as PEM.
fn generate() -> Outcome<String> {
    let make = || {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, NAME);
        let certificate = params.self_signed(&key)?;
        Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
    };
    make().map_err(|error: rcgen::Error| {
        Failure::failed(
            format!("The gateway's certificate could not be made: {error}."),
            "Try again.",
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn home() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout {
            home: dir.path().join("gsv"),
        };
        layout.ensure().unwrap();
        (dir, layout)
    }

    #[test]
    fn rm2_the_certificate_is_made_once_and_is_private() {
        let (_dir, layout) = home();
        assert!(Certificate::read(&layout).unwrap().is_none());
        let made = Certificate::ensure(&layout).unwrap();
        let again = Certificate::ensure(&layout).unwrap();
        assert_eq!(made.fingerprint(), again.fingerprint());
        made.server(&layout).unwrap();
        let meta = fs::metadata(layout.certificate()).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        let (_other, layout) = home();
        assert_ne!(Certificate::ensure(&layout).unwrap().fingerprint(), made.fingerprint());
    }

    #[test]
    fn rm2_a_damaged_or_public_certificate_is_refused_and_never_replaced() {
        let (_dir, layout) = home();
        Certificate::ensure(&layout).unwrap();
        let path = layout.certificate();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Certificate::ensure(&layout).is_err());
        private_file::write(&path, "half").unwrap();
        let failure = Certificate::ensure(&layout).err().unwrap();
        assert!(failure.next.contains("backup"), "{failure:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "half");
    }
}
