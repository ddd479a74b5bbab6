//! JSON text of a value whose type the reader of a frame does not know yet: read once, into its type, where it is used.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Valid JSON text. Its debug output shows only the size, because the text may hold a secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Writes a value as JSON.
    ///
    /// # Errors
    /// serde's, for values that JSON cannot express.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Reads the text as a type.
    ///
    /// # Errors
    /// serde's, when the text does not fit the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Reads the text as a type, or gives the type's default when it does not fit.
    pub fn read_or_default<T: DeserializeOwned + Default>(&self) -> T {
        self.read().unwrap_or_default()
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl Default for Json {
    /// `null`, which stands for an absent value.
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.as_str().len())
    }
}
