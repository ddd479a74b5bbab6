//! Talking to the agent. `assembler` and `turn` decide and are pure; `conversation` drives a turn over the link; `view` and
//! `live` draw; `interactive` and `prompt` are the conversation at a terminal; `attach` uploads files.

pub mod assembler;
pub mod attach;
pub mod complete;
pub mod conversation;
mod files;
pub mod followed;
pub mod interactive;
pub mod live;
pub mod outcomes;
pub mod prompt;
pub mod stable;
pub mod turn;
pub mod view;
