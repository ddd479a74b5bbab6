//! The code of an invitation, one word that can be pasted: addresses, the certificate's fingerprint and the secret, with a checksum, so that
//! a typing error is told from a wrong secret. PURE.

use data_encoding::BASE64URL_NOPAD;
use gsv_link::{Fingerprint, Target};
use gsv_protocol::errors;
use gsv_protocol::types::InviteKind;
use ring::digest::{SHA256, digest};

use crate::exit::{Failure, Outcome};

const PREFIX: &str = "gsv1-";
const VERSION: u8 = 1;
const PIN_BYTES: usize = 32;
const SECRET_BYTES: usize = 32;
const CHECK_BYTES: usize = 4;
pub const MAX_ADDRESSES: usize = 8;
const MAX_ADDRESS_BYTES: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinCode {
    pub kind: InviteKind,
    /// `HOST:PORT`; the port is 443 when it is missing.
    pub addresses: Vec<String>,
    /// Absent: a public authority has signed the server's certificate.
    pub pin: Option<Fingerprint>,
    pub secret: String,
}

impl JoinCode {
    /// At most `MAX_ADDRESSES` are written.
    pub fn write(&self) -> String {
        let mut bytes = vec![
            VERSION,
            u8::from(self.kind == InviteKind::Node),
            u8::from(self.pin.is_some()),
        ];
        bytes.extend(self.pin.iter().flat_map(|pin| *pin.bytes()));
        bytes.extend(self.secret.bytes());
        for address in self.addresses.iter().take(MAX_ADDRESSES) {
            bytes.push(u8::try_from(address.len().min(MAX_ADDRESS_BYTES)).unwrap_or(u8::MAX));
            bytes.extend(address.bytes().take(MAX_ADDRESS_BYTES));
        }
        let check = digest(&SHA256, &bytes);
        bytes.extend(&check.as_ref()[..CHECK_BYTES]);
        format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
    }

    pub fn read(text: &str) -> Outcome<Self> {
        let text = text.trim();
        let Some(text) = text.strip_prefix(PREFIX) else {
            return Err(bad(&format!("This is not a join code: one begins with `{PREFIX}`.")));
        };
        let damaged = || bad("The join code has a typing error, or a part of it is missing.");
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| damaged())?;
        let split = bytes.len().checked_sub(CHECK_BYTES).ok_or_else(damaged)?;
        let (bytes, check) = bytes.split_at(split);
        if &digest(&SHA256, bytes).as_ref()[..CHECK_BYTES] != check {
            return Err(damaged());
        }
        let mut rest = Reader(bytes);
        if rest.byte() != Some(VERSION) {
            return Err(Failure {
                next: "Update gsv on this machine, then run the command again.".to_owned(),
                ..bad("The join code was made by a newer version of gsv.")
            });
        }
        Self::parts(&mut rest).ok_or_else(damaged)
    }

    fn parts(rest: &mut Reader) -> Option<Self> {
        let kind = match rest.byte()? {
            0 => InviteKind::Client,
            1 => InviteKind::Node,
            _ => return None,
        };
        let pin = match rest.byte()? {
            0 => None,
            1 => Some(Fingerprint::from_bytes(rest.take(PIN_BYTES)?.try_into().ok()?)),
            _ => return None,
        };
        let secret = rest.text(SECRET_BYTES)?;
        let mut addresses = Vec::new();
        while let Some(length) = rest.byte() {
            let address = rest.text(usize::from(length))?;
            if Target::parse(&Target::pinned(&address, pin)).ok()?.authority() != address {
                return None;
            }
            addresses.push(address);
        }
        ((1..=MAX_ADDRESSES).contains(&addresses.len())).then_some(Self {
            kind,
            addresses,
            pin,
            secret,
        })
    }

    /// The addresses with the fingerprint, in the order in which they are tried.
    pub fn urls(&self) -> Vec<String> {
        let url = |address: &String| Target::pinned(address, self.pin);
        self.addresses.iter().map(url).collect()
    }
}

fn bad(message: &str) -> Failure {
    Failure::from_reason(errors::INVITE_BAD_CODE.reason, message, false)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    fn text(&mut self, count: usize) -> Option<String> {
        let text = std::str::from_utf8(self.take(count)?).ok()?;
        text.chars().all(|c| c.is_ascii_graphic()).then(|| text.to_owned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    fn code() -> JoinCode {
        JoinCode {
            kind: InviteKind::Node,
            addresses: vec![
                "192.168.1.7:8788".into(),
                "[2001:db8::1]:8788".into(),
                "gsv.example.org".into(),
            ],
            pin: Some(Fingerprint::of(b"certificate")),
            secret: "abcdefgh234567abcdefgh234567abcd".into(),
        }
    }

    #[test]
    fn rm10_a_code_is_one_plain_word_that_reads_back() {
        for code in [
            code(),
            JoinCode {
                kind: InviteKind::Client,
                pin: None,
                ..code()
            },
        ] {
            let text = code.write();
            assert!(
                text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'),
                "{text}"
            );
            assert_eq!(JoinCode::read(&format!(" {text}\n")).unwrap(), code);
        }
        assert!(code().urls()[0].starts_with("wss://192.168.1.7:8788/ws#sha256="));
    }

    #[test]
    fn rm10_every_wrong_or_missing_character_is_named_as_a_typing_error() {
        let text = code().write();
        for at in 0..text.len() {
            let other = if &text[at..=at] == "A" { "B" } else { "A" };
            for wrong in [
                format!("{}{other}{}", &text[..at], &text[at + 1..]),
                format!("{}{}", &text[..at], &text[at + 1..]),
                text[..at].to_owned(),
            ] {
                let failure = JoinCode::read(&wrong).unwrap_err();
                assert_eq!(failure.reason.as_deref(), Some("invite.bad_code"), "{wrong}");
            }
        }
    }

    #[test]
    fn rm10_a_code_of_another_version_or_with_other_parts_is_refused() {
        let encode = |mut bytes: Vec<u8>| {
            let check = digest(&SHA256, &bytes);
            bytes.extend(&check.as_ref()[..CHECK_BYTES]);
            format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
        };
        let newer = JoinCode::read(&encode(vec![2, 0])).unwrap_err();
        assert!(newer.next.contains("Update gsv"), "{newer:?}");
        let head = |address: &str| {
            let mut bytes = vec![1, 0, 0];
            bytes.extend([b'a'; SECRET_BYTES]);
            bytes.push(u8::try_from(address.len()).unwrap());
            bytes.extend(address.bytes());
            bytes
        };
        assert!(JoinCode::read(&encode(head("host:1"))).is_ok());
        for bad in ["host/path", "u@host", "host#x", "host:99999", "a b", ""] {
            assert!(JoinCode::read(&encode(head(bad))).is_err(), "{bad}");
        }
        assert!(JoinCode::read(&encode(vec![1, 0, 0])).is_err(), "no secret");
    }
}
