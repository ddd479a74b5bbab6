//! What is known of an event that cannot be read as one of the contract.

use crate::json::Json;

/// An event whose name a newer peer knows. Readers ignore it (SPEC.md FR2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    pub name: String,
}

/// An event of the contract with a payload that does not fit. `N` is the event's name.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedEvent<N> {
    pub name: N,
    pub payload: Json,
    /// What does not fit, without the payload's content.
    pub problem: String,
}
