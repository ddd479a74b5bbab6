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
    fn rows_follow_wrapping() {
        assert_eq!(rows("", 10), 1);
        assert_eq!(rows("0123456789", 10), 1);
        assert_eq!(rows("0123456789a", 10), 2);
        assert_eq!(rows("a\nb\n", 10), 3);
        assert_eq!(rows("日本語", 5), 2);
    }
}
