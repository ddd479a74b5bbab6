//! The params of methods that take none.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// Params of a method that takes none: written as `{}`; anything that is read is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct NoParams {}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An option, because a frame may leave the params out.
        Option::<IgnoredAny>::deserialize(deserializer).map(|_| Self {})
    }
}
