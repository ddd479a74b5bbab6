//! How an optional field is read: absent is `None`, present must be a value of its type. Null is not absence.

use serde::{Deserialize, Deserializer};

/// For `#[serde(default, deserialize_with = "present")]`. An `Option<Value>` keeps an explicit null.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
