//! Opens connections to a gateway's address.

pub mod dial;
pub(crate) mod exchange;
pub mod http;
pub mod pin;
pub mod refusal;
pub mod target;
mod wrong_address;
