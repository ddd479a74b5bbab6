//! Measures, cuts, pads and wraps text in terminal columns. Pure.

use std::borrow::Cow;

use textwrap::WordSplitter;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts a text to `width` columns; an ellipsis marks the cut.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Cuts a line to `width` columns, counted character by character: terminals do not agree on characters that are joined.
pub fn fit(line: &str, width: usize) -> String {
    let mut used = 0;
    let mut out = String::new();
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width {
            while used + 1 > width {
                let Some(last) = out.pop() else { return out };
                used -= last.width().unwrap_or(0);
            }
            out.push('…');
            return out;
        }
        used += wide;
        out.push(c);
    }
    out
}

/// The spaces that pad `text` to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(columns(text)))
}

/// Breaks a text into lines of at most `width` columns: between words, and inside a word that is longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return Vec::new();
    }
    let options = textwrap::Options::new(width.max(1)).word_splitter(WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(&words, options);
    lines.into_iter().map(Cow::into_owned).collect()
}

/// Breaks lines that are wider than the terminal between words; the rest is indented below its beginning. A command in backquotes stays
/// whole, and so do lines that are to be copied or read exactly: a command alone, and quoted text (`| ...`), in which a line end counts.
pub fn reflow(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| reflow_line(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

/// Below it, nothing is gained.
const NARROWEST: usize = 20;

fn reflow_line(line: &str, width: usize) -> String {
    let Some(shown) = without_colour(line) else {
        return line.to_owned();
    };
    let text = shown.trim_start();
    let is_exact = text.starts_with("| ") || text.starts_with("gsv ");
    if is_exact || width < NARROWEST || columns(&shown) <= width {
        return line.to_owned();
    }
    let indent = " ".repeat(hanging(&shown, width));
    let mut out = String::new();
    let mut column = 0;
    for (gap, word) in words(line) {
        let wide = without_colour(word).map_or(0, |word| columns(&word));
        if column > 0 && column + gap.len() + wide > width && indent.len() + wide <= width {
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
        } else {
            out.push_str(gap);
            column += gap.len();
        }
        out.push_str(word);
        column += wide;
        // The terminal breaks what is longer than a line.
        if column > width {
            column %= width;
        }
    }
    out
}

/// Where the rest of a line begins: below the second column of `name  text`, else two columns further in.
fn hanging(shown: &str, width: usize) -> usize {
    let text = shown.trim_start();
    let start = shown.len() - text.len();
    let second = text.find("  ").and_then(|gap| {
        let rest = text[gap..].trim_start();
        let column = start + columns(&text[..text.len() - rest.len()]);
        (column <= width / 2).then_some(column)
    });
    second.unwrap_or_else(|| (start + 2).min(width / 2))
}

/// The words of a line, each with the spaces before it. What stands in backquotes is one word.
fn words(line: &str) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let text = rest.trim_start_matches(' ');
        let gap = &rest[..rest.len() - text.len()];
        let end = word_end(text);
        words.push((gap, &text[..end]));
        rest = &text[end..];
    }
    words
}

fn word_end(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..].find([' ', '`']) {
        let found = at + found;
        if text[found..].starts_with(' ') {
            return found;
        }
        let inner = text[found..].trim_start_matches('`');
        let opened = text.len() - inner.len();
        let closed = inner.find('`').filter(|_| opened == found + 1);
        at = closed.map_or(opened, |closed| opened + closed + 1);
    }
    text.len()
}

/// The text without its colours. None: it has other control characters, so nothing is known about its columns.
fn without_colour(text: &str) -> Option<String> {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(char::is_control) {
        shown.push_str(&rest[..at]);
        let code = rest[at..].strip_prefix("\u{1b}[")?;
        let end = code.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        rest = code[end..].strip_prefix('m')?;
    }
    shown.push_str(rest);
    Some(shown)
}

/// Counts the terminal rows of `text`, written from column 0 of a terminal with `width` columns. At least 1.
pub fn rows(text: &str, width: usize) -> usize {
    text.split('\n').map(|line| line_rows(line, width)).sum()
}

fn line_rows(line: &str, width: usize) -> usize {
    let width = width.max(2);
    let (mut rows, mut column) = (1, 0);
    for c in line.chars() {
        let wide = if c == '\t' {
            8 - column % 8
        } else {
            c.width().unwrap_or(0)
        };
        if column + wide > width {
            rows += 1;
            column = 0;
        }
        column += wide;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn wrapping_keeps_words_whole_where_it_can() {
        assert_eq!(wrap("one two  three\n", 7), ["one two", "three"]);
        assert_eq!(wrap("a abcdefgh b", 5), ["a", "abcde", "fgh b"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert!(wrap(" ", 4).is_empty());
    }

    #[test]
    fn ct15_long_lines_break_at_words_and_never_inside_a_command() {
        assert_eq!(reflow("short\nlines", 30), "short\nlines");
        assert_eq!(
            reflow(
                "  > `allow K7Q2A for 1h` (or 8h) allows calls like it; `gsv approval deny K7Q2A` denies it.",
                40
            ),
            "  > `allow K7Q2A for 1h` (or 8h) allows\n    calls like it;\n    `gsv approval deny K7Q2A` denies it."
        );
        assert_eq!(
            reflow("/model NAME   show the model, or use another one", 30),
            "/model NAME   show the model,\n              or use another\n              one"
        );
        assert_eq!(
            reflow("\u{1b}[2mone two three four five six\u{1b}[0m", 20),
            "\u{1b}[2mone two three four\n  five six\u{1b}[0m"
        );
        assert_eq!(
            reflow("a line ends with an open ``` as here", 20),
            "a line ends with an\n  open ``` as here"
        );
    }

    #[test]
    fn ct15_what_is_copied_or_read_exactly_is_left_to_the_terminal() {
        for exact in [
            "  | rm -rf one two three four five six seven",
            "  gsv join gsv1:abcdefghijklmnop --name laptop",
            "\r\u{1b}[Kone two three four five six seven",
            "12345678901234567890123456789012345678901234567890",
        ] {
            assert_eq!(reflow(exact, 30), exact);
        }
        let long = "Run `gsv config set providers.mine '{\"baseUrl\":1}'` now";
        assert_eq!(
            reflow(long, 30),
            "Run `gsv config set providers.mine '{\"baseUrl\":1}'` now"
        );
    }

    #[test]
    fn rows_follow_wrapping() {
        assert_eq!(rows("", 10), 1);
        assert_eq!(rows("0123456789", 10), 1);
        assert_eq!(rows("0123456789a", 10), 2);
        assert_eq!(rows("a\nb\n", 10), 3);
        assert_eq!(rows("日本語", 5), 2);
    }
}
