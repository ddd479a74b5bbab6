//! The connection to a gateway, from the side that dials: the pure [`machine`], a thin tokio driver ([`Link`]), and the
//! [`ledger`] in which a node records its calls.
//!
//! Never: knows tools or chats, prints anything, or keeps a token anywhere but in memory.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod deliver;
mod driver;
mod error;
mod join;
pub mod ledger;
mod link;
pub mod machine;
mod net;
mod options;
mod upload;

pub use deliver::Delivery;
pub use driver::handles::{Events, LinkEvent};
pub use error::LinkError;
pub use gsv_protocol::types::Mode;
pub use join::Join;
pub use link::Link;
pub use net::dial::open_bytes;
pub use net::http;
pub use net::pin::Fingerprint;
pub use net::target::Target;
pub use options::{AddressProvider, LedgerProvider, Options, ResumeProvider};
pub use tokio_tungstenite::tungstenite::Bytes;
pub use upload::Upload;
