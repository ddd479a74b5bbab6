//! The connection to a gateway, from the side that dials: the pure [`machine`], a thin tokio driver ([`Link`]), and the
//! [`ledger`] in which a node remembers its calls.
//!
//! Never: knows what a tool or a chat is, prints anything, or keeps a token anywhere but in memory.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod driver;
mod error;
pub mod ledger;
pub mod machine;
mod upload;
mod wire;

pub use driver::{Events, Link, LinkEvent, Options};
pub use error::LinkError;
pub use gsv_protocol::types::Mode;
pub use upload::Upload;
