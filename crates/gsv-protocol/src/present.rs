//! How an optional field is read (absent is `None`, present must be a value of its type: null is not absence), and how a
//! secret field is shown.

use serde::{Deserialize, Deserializer};

/// For `#[serde(default, deserialize_with = "present")]`. An `Option<Value>` keeps an explicit null.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// What a secret looks like in debug output.
pub fn masked<T>(_secret: &T) -> &'static str {
    crate::HIDDEN
}
