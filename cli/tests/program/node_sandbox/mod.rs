//! The sandbox of the built program's node.

mod commands;
mod machine;
mod shown;
mod start;
