//! Columns: how wide text is in a terminal, and how to cut and pad it. Pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub fn columns(text: &str) -> usize {
    text.width()
}

/// At most `width` columns; what is cut off is shown by an ellipsis.
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

/// Spaces that bring `text` to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(columns(text)))
}

/// The lines of a text of at most `width` columns, broken between words, and inside those that are too long.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && columns(&line) + 1 + columns(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if columns(&line) + c.width().unwrap_or(0) > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Terminal rows that `text` covers when it is written from column 0 of a terminal `width` wide; at least 1.
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
