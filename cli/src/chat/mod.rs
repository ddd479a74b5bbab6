//! Talking to the agent. `assembler` and `turn` decide and are pure (`turn_io` is what goes in and out); `conversation` drives a
//! turn over the link; `view` and `live` draw; `interactive` and `prompt` are the conversation at a terminal; `picked` chooses
//! files there and `attach` uploads them.

pub mod assembler;
pub mod attach;
pub mod complete;
pub mod conversation;
pub mod decision;
mod editor;
mod files;
pub mod followed;
mod headlines;
pub mod interactive;
mod lines;
pub mod live;
pub mod outcomes;
mod picked;
pub mod prompt;
pub mod running;
pub mod said;
pub mod seen;
pub mod stable;
pub mod turn;
mod turn_io;
pub mod view;
