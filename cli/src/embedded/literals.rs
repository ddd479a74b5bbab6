//! Literals of workerd's configuration, which is text in Cap'n Proto's notation. Pure.

use std::fmt::Write;

/// Text literals, separated by commas.
pub fn texts<'a>(values: impl Iterator<Item = &'a str>) -> String {
    values.map(text).collect::<Vec<_>>().join(", ")
}

/// A Cap'n Proto text literal.
pub fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_escaped() {
        assert_eq!(text("a\"b\\c\nd é"), r#""a\"b\\c\x0ad é""#);
    }
}
