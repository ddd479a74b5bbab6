//! The traits that tie a method or event name to its types.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// One method of the contract. Implemented by the unit structs of [`crate::methods`].
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The answer may come after other frames.
    const DEFERRED: bool;
    /// Sending the same request again, after a lost answer, has no further effect.
    const IDEMPOTENT: bool;
    type Params: Serialize + DeserializeOwned;
    type Result: Serialize + DeserializeOwned;
}

/// One event of the contract. Implemented by the unit structs of [`crate::events`].
pub trait Event {
    /// The name on the wire.
    const NAME: &'static str;
    type Payload: Serialize + DeserializeOwned;
}

/// Params of a method that takes none: written as `{}`; whatever is read is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct NoParams {}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
