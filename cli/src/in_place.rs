//! A block of lines that is redrawn in its own place. Pure: every method returns what to write. Between two calls nothing else
//! may write to the terminal, except after `wipe`.

use std::fmt::Write;

use crate::clean::clean;
use crate::width::rows;

/// The cursor is below the block, at the beginning of a line.
#[derive(Debug, Default)]
pub struct InPlace {
    lines: Vec<String>,
    width: usize,
}

impl InPlace {
    /// Replaces the lines. They must fit into the terminal.
    pub fn show(&mut self, lines: Vec<String>, width: usize) -> String {
        let mut paint = String::new();
        if width == self.width && lines.len() == self.lines.len() {
            // Only changed lines are written, so that nothing flickers.
            let Some(first) = lines.iter().zip(&self.lines).position(|(new, old)| new != old) else {
                return paint;
            };
            let _ = write!(paint, "\u{1b}[{}A", lines.len() - first);
            for (new, old) in lines.iter().zip(&self.lines).skip(first) {
                if new != old {
                    let _ = write!(paint, "\r{new}\u{1b}[K");
                }
                paint.push_str("\r\n");
            }
        } else {
            paint = self.wipe(width);
            for line in &lines {
                paint.push_str(line);
                paint.push_str("\r\n");
            }
        }
        self.lines = lines;
        self.width = width;
        paint
    }

    /// Removes the block from the screen. The width of the terminal may have changed.
    pub fn wipe(&mut self, width: usize) -> String {
        let up: usize = self.lines.iter().map(|line| rows(&clean(line), width)).sum();
        self.lines.clear();
        if up == 0 {
            String::new()
        } else {
            format!("\r\u{1b}[{up}A\u{1b}[J")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn only_changed_lines_are_redrawn() {
        let mut block = InPlace::default();
        assert_eq!(block.show(lines(&["a", "b", "c"]), 80), "a\r\nb\r\nc\r\n");
        assert_eq!(block.show(lines(&["a", "b", "c"]), 80), "");
        assert_eq!(block.show(lines(&["a", "B", "c"]), 80), "\u{1b}[2A\rB\u{1b}[K\r\n\r\n");
        assert_eq!(block.show(lines(&["x"]), 80), "\r\u{1b}[3A\u{1b}[Jx\r\n");
        assert_eq!(block.wipe(80), "\r\u{1b}[1A\u{1b}[J");
        assert_eq!(block.wipe(80), "");
    }

    #[test]
    fn wrapped_lines_of_a_narrower_terminal_are_counted() {
        let mut block = InPlace::default();
        block.show(lines(&["\u{1b}[1m0123456789\u{1b}[0m", "b"]), 80);
        assert_eq!(block.show(lines(&["a", "b"]), 5), "\r\u{1b}[3A\u{1b}[Ja\r\nb\r\n");
    }
}
