//! The name of a channel, safe to be part of file names and of workerd's configuration.

use std::fmt;

use serde::{Deserialize, Serialize};

const MAX_BYTES: usize = 63;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The binding under which the gateway finds the channel.
    pub fn binding(&self) -> String {
        format!("CHANNEL_{}", self.0.to_ascii_uppercase())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len() <= MAX_BYTES && is_word(&text, u8::is_ascii_lowercase) {
            Ok(Self(text))
        } else {
            Err("a channel's name consists of a-z, 0-9 and _, and begins with a letter")
        }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// A letter, then letters, digits and `_`.
pub fn is_word(text: &str, is_letter: impl Fn(&u8) -> bool) -> bool {
    text.as_bytes().first().is_some_and(&is_letter)
        && text
            .bytes()
            .all(|byte| is_letter(&byte) || byte.is_ascii_digit() || byte == b'_')
}
