//! The wire contract in Rust: generated types and tables, and the codec that turns messages into them.
//!
//! Generated from `protocol/src` by `npm run codegen`: [`types`], [`methods`], [`events`], [`errors`], [`limits`],
//! [`lookups`], [`HIDDEN`].
//! Hand-written: [`codec`] and the small traits and types that the generated code needs. Opens no socket, keeps no state,
//! logs nothing.

#[macro_use]
mod names;
mod error_table;
mod json;
mod no_params;
mod present;
mod unread_event;

pub mod codec;
pub mod errors;
pub mod events;
mod hidden;
pub mod limits;
pub mod lookups;
pub mod methods;
pub mod types;

pub use error_table::{Blame, ErrorReason};
pub use events::{Event, EventName};
pub use hidden::HIDDEN;
pub use json::Json;
pub use methods::{Method, Request};
pub use names::UnknownName;
pub use no_params::NoParams;
pub use unread_event::{MalformedEvent, UnknownEvent};
