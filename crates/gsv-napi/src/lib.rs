//! A node as an addon for Node.js: the JavaScript of `@gsv/node` is in `js/`, and this is what it stands on.
//!
//! Connects a node, hands its calls to JavaScript functions, and reports what happens. Never decides about a call: that is
//! gsv-node's, for these tools as for all others. Never: throws a token, or an error without a reason of the error table.

#![allow(
    unsafe_code,
    reason = "the code that napi-derive generates calls the C interface of Node.js"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod addon;
mod host;
mod local;
mod own_tool;
mod schema;
