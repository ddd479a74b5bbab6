//! From a gateway's address to an open connection.

pub mod dial;
pub mod refusal;
pub mod target;
