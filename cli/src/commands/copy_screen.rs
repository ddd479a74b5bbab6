//! Where `gsv cp` shows how far it is: one line of a terminal. Decides nothing.

use std::io::IsTerminal as _;

use super::context::Context;
use crate::output::Output;

/// Whether the terminal shows how far the copy is.
pub fn is_shown(context: &Context) -> bool {
    !context.out.json && std::io::stderr().is_terminal()
}

/// Shows how far the copy is, in the place of what was shown before.
pub fn show(out: Output, text: &str) {
    out.prompt(&format!("\r\u{1b}[K{text}"));
}
