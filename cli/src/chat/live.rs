//! Markdown on a terminal while it is being written: whole blocks are rendered for good, the open one is shown as plain
//! text below them and replaced when it is whole. Pure: every method gives what to write. Between two calls nothing else
//! may write to the terminal, except after `pause`.

use std::fmt::Write;

use super::stable::stable_prefix;
use crate::clean::clean;
use crate::markdown::{Look, render};
use crate::width::rows;

#[derive(Debug, Clone, Copy)]
pub struct Screen {
    pub width: usize,
    pub height: usize,
    pub colour: bool,
}

#[derive(Debug, Default)]
pub struct Live {
    /// Source that is not rendered for good.
    open: String,
    /// What is on the screen for it; the cursor is at its end.
    tail: String,
    /// The tail has grown beyond the screen and can't be replaced: this block stays as it is.
    raw: bool,
    /// Some of this text is rendered for good.
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
        self.raw |= rows(&self.tail, screen.width) >= screen.height;
        paint
    }

    /// What was shown is void. Whether some of it could not be taken off the screen.
    pub fn restart(&mut self, screen: Screen) -> (String, bool) {
        let mut paint = String::new();
        self.wipe(&mut paint, screen);
        let left = self.raw || self.begun;
        *self = Self::default();
        (paint, left)
    }

    /// The text is whole.
    pub fn end(&mut self, screen: Screen) -> String {
        let mut paint = String::new();
        self.commit(&mut paint, screen);
        *self = Self::default();
        paint
    }

    /// Makes room for a line of something else. `resume` brings the open block back below it.
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

    /// The open source as plain text, a blank line before it unless it is the first.
    fn wanted(&self) -> String {
        let plain = clean(&self.open).replace('\t', "    ");
        let plain = plain.trim_matches('\n');
        if plain.is_empty() || !self.begun {
            plain.to_owned()
        } else {
            format!("\n{plain}")
        }
    }

    /// Writes the open source for good.
    fn commit(&mut self, paint: &mut String, screen: Screen) {
        if self.raw {
            let tail = self.wanted();
            paint.push_str(tail.strip_prefix(&self.tail).unwrap_or_default());
            paint.push('\n');
            self.begun = true;
        } else {
            self.wipe(paint, screen);
            let rendered = render(
                &self.open,
                Look {
                    width: screen.width,
                    colour: screen.colour,
                },
            );
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

    /// Takes the tail off the screen, the cursor to where it began; one that is too long stays and is left behind.
    fn wipe(&mut self, paint: &mut String, screen: Screen) {
        if self.tail.is_empty() {
            return;
        }
        if self.raw {
            paint.push('\n');
        } else {
            paint.push('\r');
            let up = rows(&self.tail, screen.width) - 1;
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
