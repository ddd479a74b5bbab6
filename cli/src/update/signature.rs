//! Who signed a release: Ed25519 in minisign's format. PURE. A program that was built with keys trusts these alone.

use minisign_verify::{PublicKey, Signature};

use crate::exit::{Failure, Outcome};

/// The keys of those who released this program, separated by commas.
const PINNED: Option<&str> = option_env!("GSV_RELEASE_PUBLIC_KEY");
const MAX_KEYS: usize = 4;

/// Whether a text is one to four public keys, separated by commas.
pub fn check(keys: &str) -> Result<(), &'static str> {
    let problem = "it is a public key of minisign: the second line of its .pub file, 56 characters (at most four, with commas between them)";
    let keys: Vec<_> = keys.split(',').collect();
    let valid = keys.len() <= MAX_KEYS && keys.iter().all(|key| PublicKey::from_base64(key.trim()).is_ok());
    if valid { Ok(()) } else { Err(problem) }
}

pub struct Keys(Vec<PublicKey>);

impl Keys {
    /// `configured`: of the local config, which counts only where none is built in.
    pub fn find(configured: Option<&str>) -> Outcome<Self> {
        Self::of(PINNED.filter(|keys| !keys.trim().is_empty()), configured)
    }

    fn of(pinned: Option<&str>, configured: Option<&str>) -> Outcome<Self> {
        let text = pinned.or(configured).unwrap_or_default();
        let keys: Vec<_> = text
            .split(',')
            .filter_map(|key| PublicKey::from_base64(key.trim()).ok())
            .collect();
        if keys.is_empty() {
            return Err(Failure::failed(
                "This program does not know whose releases to trust: it was built without a public key, and none is set.",
                "Get the key from those who publish the releases, then run `gsv local-config set update.key KEY`.",
            ));
        }
        Ok(Self(keys))
    }

    /// Fails unless one of the keys made the signature of these bytes.
    pub fn verify(&self, name: &str, content: &[u8], signature: &[u8]) -> Outcome {
        let signature = std::str::from_utf8(signature)
            .ok()
            .and_then(|text| Signature::decode(text).ok());
        let is_valid =
            signature.is_some_and(|signature| self.0.iter().any(|key| key.verify(content, &signature, false).is_ok()));
        if is_valid {
            return Ok(());
        }
        Err(Failure::failed(
            format!("The signature of {name} is not one of the keys that this program trusts. Nothing was replaced."),
            "Check the address of the releases, and ask those who publish them whether their key has changed.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // From minisign's own documentation (https://jedisct1.github.io/minisign/): the content is `test`.
    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
";

    #[test]
    fn up9_only_a_signature_of_a_trusted_key_over_the_same_bytes_counts() {
        let keys = Keys::of(None, Some(KEY)).unwrap();
        keys.verify("a file", b"test", SIGNATURE.as_bytes()).unwrap();
        for (content, signature) in [
            (&b"Test"[..], SIGNATURE.to_owned()),
            (b"test", SIGNATURE.replace("RUQf6", "RUQf7")),
            (b"test", SIGNATURE.replace("file:test", "file:other")),
            (b"test", String::new()),
            (b"", SIGNATURE.to_owned()),
        ] {
            let failure = keys.verify("a file", content, signature.as_bytes()).unwrap_err();
            assert!(failure.message.contains("Nothing was replaced"), "{}", failure.message);
        }
    }

    #[test]
    fn up9_a_built_in_key_is_trusted_alone_and_without_any_nothing_is() {
        let other = "RWRxgSGnRyGvMHVbsXJjVSVxHCmxGiRFmKkqQPJ1tNqx5lTjtZHzCDMv";
        assert!(check(KEY).is_ok() && check("").is_err() && check(&format!("{KEY}x")).is_err());
        let keys = Keys::of(Some(other), Some(KEY));
        assert!(
            keys.is_err() || keys.is_ok_and(|keys| keys.verify("a", b"test", SIGNATURE.as_bytes()).is_err()),
            "the configured key counts for nothing"
        );
        let both = Keys::of(Some(&format!("{KEY},{KEY}")), None).unwrap();
        both.verify("a", b"test", SIGNATURE.as_bytes()).unwrap();
        assert!(Keys::of(None, None).is_err_and(|failure| failure.next.contains("update.key")));
    }
}
