//! The first admin token. This file keeps only its sha256; the token itself goes to the local config and nowhere else.

use std::path::Path;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::sealing_key::SealingKeys;
use crate::exit::{Exit, Failure, Outcome};
use crate::private_file;
use crate::units::now_ms;

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_CHARS: usize = 10;
const SECRET_BYTES: usize = 32;
const REPAIR: &str = "Run `gsv up --new-token` to make another first token; other tokens and conversations stay.";

/// `bootstrap.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    pub token_id: String,
    /// Hex.
    pub sha256: String,
    pub created_at: u64,
}

/// A new token. It has no `Debug`, so it cannot get into a log.
pub struct NewToken {
    pub token: String,
    pub bootstrap: Bootstrap,
}

impl NewToken {
    pub fn generate() -> Outcome<Self> {
        let mut bytes = [0_u8; ID_CHARS + SECRET_BYTES];
        fill(&mut bytes)?;
        let (id, secret) = bytes.split_at(ID_CHARS);
        Ok(Self::of(id, secret))
    }

    /// The same on every machine of a cluster (rule CL4).
    pub fn of_cluster(keys: &SealingKeys) -> Outcome<Self> {
        let id = keys.first("id of the first admin token")?;
        let (id, _) = id.split_at(ID_CHARS);
        Ok(Self::of(id, &keys.first("first admin token")?))
    }

    fn of(id: &[u8], secret: &[u8]) -> Self {
        let token_id: String = id
            .iter()
            .map(|byte| char::from(BASE32[usize::from(byte % 32)]))
            .collect();
        let token = format!("gsv_admin_{token_id}_{}", HEXLOWER.encode(secret));
        let sha256 = sha256_hex(token.as_bytes());
        Self {
            token,
            bootstrap: Bootstrap {
                token_id,
                sha256,
                created_at: now_ms(),
            },
        }
    }
}

impl Bootstrap {
    pub fn read(path: &Path) -> Outcome<Option<Self>> {
        let Some(text) = private_file::read_private(path, REPAIR)? else {
            return Ok(None);
        };
        let parsed = serde_json::from_str(&text).ok();
        let is_whole =
            |found: &Self| found.sha256.len() == 64 && found.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        match parsed.filter(is_whole) {
            Some(found) => Ok(Some(found)),
            None => Err(private_file::unusable(
                path,
                "it does not hold the hash of a token",
                REPAIR,
            )),
        }
    }

    pub fn write(&self, path: &Path) -> Outcome {
        private_file::write(path, serde_json::to_string_pretty(self).unwrap_or_default())
    }
}

/// Random bytes, in hex.
pub fn random_hex(count: usize) -> Outcome<String> {
    let mut bytes = vec![0; count];
    fill(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

fn fill(bytes: &mut [u8]) -> Outcome {
    SystemRandom::new().fill(bytes).map_err(|_| {
        let message = "The system gave no random bytes.";
        Failure::new(Exit::Bug, message, "Check that /dev/urandom works.")
    })
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn s4_tokens_have_the_contract_format_and_differ() {
        let (one, two) = (NewToken::generate().unwrap(), NewToken::generate().unwrap());
        assert_ne!(one.token, two.token);
        let parts: Vec<&str> = one.token.split('_').collect();
        assert_eq!(parts[..2], ["gsv", "admin"]);
        assert_eq!((parts[2].len(), parts[3].len(), parts.len()), (10, 64, 4));
        assert!(parts[2].bytes().all(|byte| BASE32.contains(&byte)));
        assert_eq!(one.bootstrap.sha256, sha256_hex(one.token.as_bytes()));
    }

    #[test]
    fn s4_only_the_hash_is_stored_and_a_damaged_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bootstrap.json");
        assert_eq!(Bootstrap::read(&path).unwrap(), None);
        let new = NewToken::generate().unwrap();
        new.bootstrap.write(&path).unwrap();
        assert_eq!(Bootstrap::read(&path).unwrap(), Some(new.bootstrap));
        let secret = new.token.rsplit('_').next().unwrap().to_owned();
        assert!(!fs::read_to_string(&path).unwrap().contains(&secret));
        fs::write(&path, "{}").unwrap();
        assert!(Bootstrap::read(&path).unwrap_err().next.contains("--new-token"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Bootstrap::read(&path).unwrap_err().next.contains("chmod 600"));
    }
}
