//! `gsv chat`. `assembler` and `turn` decide and are pure (`turn_io` has the inputs and outputs of a turn); `conversation` drives a
//! turn over the link; `view` and `live` draw; `interactive` and `prompt` are the chat at a terminal; `picked` holds the files that
//! were chosen there, and `attach` uploads them.

pub mod assembler;
pub mod attach;
mod board;
pub mod calls;
pub mod complete;
pub mod conversation;
pub mod decision;
mod editor;
mod files;
pub mod followed;
pub mod glance;
mod headlines;
pub mod interactive;
mod lines;
pub mod live;
mod misread;
pub mod notify;
pub mod outcomes;
mod output_lines;
mod picked;
pub mod prompt;
pub mod running;
pub mod said;
pub mod seen;
pub mod stable;
mod status;
pub mod thoughts;
pub mod turn;
mod turn_io;
pub mod view;
