//! Opens connections to a gateway's address.

pub mod dial;
pub mod refusal;
pub mod target;
