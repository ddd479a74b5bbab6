//! The wire contract in Rust: generated types and tables, and the codec that turns text and binary messages into them.
//!
//! Generated from `protocol/src` by `npm run codegen`: [`types`], [`methods`], [`events`], [`errors`], [`limits`].
//! Hand-written: [`codec`] and the small traits the generated code needs. Opens no socket, keeps no state, logs nothing.

#[macro_use]
mod names;
mod error_table;
mod method;
mod present;

pub mod codec;
pub mod errors;
pub mod events;
pub mod limits;
pub mod methods;
pub mod types;

pub use codec::{CodecError, decode_chunk, decode_frame, encode_chunk, encode_frame};
pub use error_table::{Blame, ErrorReason};
pub use method::{Event, Method, NoParams};
pub use types::Frame;
