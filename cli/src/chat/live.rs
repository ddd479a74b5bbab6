//! Markdown on a terminal while it arrives: complete blocks are rendered, and the open block is plain text below them until it
//! is complete. Pure: every method returns what to write. Between two calls nothing else may write to the terminal, except
//! after `pause`.

use std::fmt::Write;

use super::stable::stable_prefix;
use crate::clean::clean;
use crate::markdown::{Look, render};
use crate::width::rows;

#[derive(Debug, Clone, Copy)]
pub struct Screen {
    pub look: Look,
    pub height: usize,
}

#[derive(Debug, Default)]
pub struct Live {
    /// Source that is not rendered yet.
    open: String,
    /// Its plain text on the screen; the cursor is at the end.
    tail: String,
    /// The tail is longer than the screen and cannot be replaced: this block stays plain text.
    raw: bool,
    /// A part of this text is rendered.
    begun: bool,
}

impl Live {
    pub fn text(&mut self, text: &str, screen: Screen) -> String {
        self.open.push_str(text);
        let mut paint = String::new();
        let stable = stable_prefix(&self.open);
        if stable > 0 {
            let rest = self.open.split_off(stable);
            self.commit(&mut paint, screen);
            self.open = rest;
        }
        let tail = self.wanted();
        if let Some(more) = tail.strip_prefix(&self.tail) {
            paint.push_str(more);
        } else {
            self.wipe(&mut paint, screen);
            paint.push_str(&tail);
        }
        self.tail = tail;
        self.raw |= rows(&self.tail, screen.look.width) >= screen.height;
        paint
    }

    /// Removes the shown text. Also returns whether a part of it had to stay on the screen.
    pub fn restart(&mut self, screen: Screen) -> (String, bool) {
        let mut paint = String::new();
        self.wipe(&mut paint, screen);
        let left = self.raw || self.begun;
        *self = Self::default();
        (paint, left)
    }

    /// The text is complete.
    pub fn end(&mut self, screen: Screen) -> String {
        let mut paint = String::new();
        self.commit(&mut paint, screen);
        *self = Self::default();
        paint
    }

    /// Removes the open block, so that other lines can be written. `resume` shows it again below them.
    pub fn pause(&mut self, screen: Screen) -> String {
        let mut paint = String::new();
        if self.raw {
            paint.push('\n');
        } else {
            self.wipe(&mut paint, screen);
        }
        paint
    }

    pub fn resume(&mut self) -> String {
        if self.raw {
            return String::new();
        }
        self.tail = self.wanted();
        self.tail.clone()
    }

    /// The open source as plain text, after a blank line unless it is the first block.
    fn wanted(&self) -> String {
        let plain = clean(&self.open).replace('\t', "    ");
        let plain = plain.trim_matches('\n');
        if plain.is_empty() || !self.begun {
            plain.to_owned()
        } else {
            format!("\n{plain}")
        }
    }

    /// Renders the open source.
    fn commit(&mut self, paint: &mut String, screen: Screen) {
        if self.raw {
            let tail = self.wanted();
            paint.push_str(tail.strip_prefix(&self.tail).unwrap_or_default());
            paint.push('\n');
            self.begun = true;
        } else {
            self.wipe(paint, screen);
            let rendered = render(&self.open, screen.look);
            if !rendered.is_empty() {
                if std::mem::replace(&mut self.begun, true) {
                    paint.push('\n');
                }
                paint.push_str(&rendered);
            }
        }
        self.open.clear();
        self.tail.clear();
        self.raw = false;
    }

    /// Removes the tail from the screen and moves the cursor to its beginning. A tail that is too long stays.
    fn wipe(&mut self, paint: &mut String, screen: Screen) {
        if self.tail.is_empty() {
            return;
        }
        if self.raw {
            paint.push('\n');
        } else {
            paint.push('\r');
            let up = rows(&self.tail, screen.look.width) - 1;
            if up > 0 {
                let _ = write!(paint, "\u{1b}[{up}A");
            }
            paint.push_str("\u{1b}[J");
        }
        self.tail.clear();
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
