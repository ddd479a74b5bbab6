//! Talking to the agent. `assembler` and `turn` decide and are pure; `conversation` drives a turn over the link; `view` and
//! `live` draw; `interactive` and `prompt` are the conversation at a terminal; `attach` uploads files.

pub mod assembler;
pub mod attach;
pub mod complete;
pub mod conversation;
mod editor;
mod files;
pub mod followed;
mod headlines;
pub mod interactive;
mod lines;
pub mod live;
pub mod outcomes;
pub mod prompt;
mod said;
pub mod stable;
pub mod turn;
pub mod view;
