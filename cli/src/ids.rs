//! Ids that this program makes: of messages and runs. Time first, then randomness, so that they sort and never repeat.

use ring::rand::{SecureRandom, SystemRandom};

use crate::units::now_ms;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A ULID: 48 bits of time, 80 bits of randomness, 26 characters.
pub fn ulid() -> String {
    let mut random = [0_u8; 10];
    if SystemRandom::new().fill(&mut random).is_err() {
        // Good enough for an id: nothing secret hangs on it.
        fastrand::fill(&mut random);
    }
    let mut bytes = [0_u8; 16];
    bytes[..6].copy_from_slice(&now_ms().to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    let value = u128::from_be_bytes(bytes);
    (0..26)
        .rev()
        .map(|place| char::from(CROCKFORD[usize::try_from(value >> (place * 5) & 31).unwrap_or(0)]))
        .collect()
}

/// A random UUID (version 4).
pub fn uuid() -> String {
    let mut bytes = [0_u8; 16];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        fastrand::fill(&mut bytes);
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let value = u128::from_be_bytes(bytes);
    let hex = format!("{value:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_have_the_form_of_a_ulid() {
        let (one, two) = (ulid(), ulid());
        assert_ne!(one, two);
        assert_eq!(one.len(), 26);
        assert!(one.bytes().all(|byte| CROCKFORD.contains(&byte)));
        let (one_uuid, two_uuid) = (uuid(), uuid());
        assert_ne!(one_uuid, two_uuid);
        assert_eq!((one_uuid.len(), &one_uuid[14..15], &one_uuid[8..9]), (36, "4", "-"));
        assert_eq!(&one[..1], "0", "48 bits of time fill the first ten characters");
    }
}
