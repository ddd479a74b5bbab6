//! Makes text from models, tools and files safe to show in a terminal (promises TH19).
//!
//! Removes escape sequences, other control characters, and characters that change the reading order or hide text:
//! bidirectional overrides, tag characters, zero-width no-break spaces. Line feeds and tabs stay. A sequence that never
//! ends hides only the rest of its own line.

use std::fmt::Write as _;

use vte::{Parser, Perform};

/// A cleaner for text that comes in pieces: the result does not depend on where the text was cut.
#[derive(Default)]
pub struct Cleaner {
    parser: Parser,
    after_return: bool,
}

impl Cleaner {
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = Shown(String::with_capacity(text.len()));
        for c in text.chars() {
            let after_return = std::mem::replace(&mut self.after_return, c == '\r');
            match c {
                '\n' | '\r' => {
                    // An unterminated sequence must not swallow the next line.
                    self.parser = Parser::new();
                    if c == '\r' || !after_return {
                        shown.0.push('\n');
                    }
                }
                // The parser knows only the 7-bit form of a C1 control: ESC and a letter.
                '\u{80}'..='\u{9f}' => {
                    let letter = u8::try_from(c).unwrap_or_default() - 0x40;
                    self.parser.advance(&mut shown, &[0x1b, letter]);
                }
                _ => self.parser.advance(&mut shown, c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        shown.0
    }
}

/// Collects what a terminal would print, and drops everything that it would act on.
struct Shown(String);

impl Perform for Shown {
    fn print(&mut self, c: char) {
        if is_shown(c) {
            self.0.push(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.0.push('\t');
        }
    }
}

/// Cleans a whole text.
pub fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

/// Cleans a text for one line of at most `width` columns: each run of white space becomes one space.
pub fn one_line(text: &str, width: usize) -> String {
    let cleaned = clean(text);
    let line = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::width::cut(&line, width)
}

/// A cell of a table: one line in which nothing is hidden, so that no name looks like another one, or like several cells.
pub fn cell(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One line that shows hidden characters: `clean` would remove them, here they are written as code points.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        let is_seen = is_shown(c) && !is_blank(c) && !(before.is_ascii() && joins(c));
        before = c;
        if is_seen {
            out.push(if c == '\t' { ' ' } else { c });
        } else if matches!(c, '\n' | '\r') {
            out.push(' ');
        } else {
            let _ = write!(out, "[U+{:04X}]", u32::from(c));
        }
    }
    out
}

/// Letters and fillers that show nothing, or only a blank. In a text of an agent they may be meant (`U+2800` in pictures of Braille signs).
const fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{2d7f}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fffc}'
            | '\u{16fe4}'
            | '\u{1d159}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Joins or changes the sign before it, in scripts and emoji. After an ASCII character it shows nothing.
const fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

fn is_shown(c: char) -> bool {
    match c {
        '\t' => true,
        _ if c.is_control() => false,
        // Direction marks, embeddings, overrides and isolates; invisible separators; tags; annotations.
        '\u{061c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn th19_escape_sequences_are_removed_whole() {
        for (dirty, expected) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}]52;c;ZXZpbA==\u{7}b", "ab"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("a\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("\u{9b}2Jx", "x"),
            ("\u{1b}(Bx", "x"),
            ("\u{1b}Pq#0;2\u{1b}\\x", "x"),
            ("\u{1b}cx", "x"),
            ("a\u{8}\u{7}\u{0}b", "ab"),
            ("user\u{202e}gpj.exe", "usergpj.exe"),
            ("\u{2066}x\u{2069}", "x"),
            ("tags\u{e0041}\u{e007f}", "tags"),
            ("tab\tstays", "tab\tstays"),
            ("é 日本 👩‍👩‍👧", "é 日本 👩‍👩‍👧"),
        ] {
            assert_eq!(clean(dirty), expected, "{dirty:?}");
        }
    }

    #[test]
    fn th19_returns_become_lines_and_never_overwrite() {
        assert_eq!(clean("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(clean("\r\r\n\n"), "\n\n\n");
    }

    #[test]
    fn th19_an_unterminated_sequence_hides_only_its_line() {
        assert_eq!(clean("a\u{1b}]52;c;hidden\nshown"), "a\nshown");
        assert_eq!(clean("a\u{1b}[12\nshown"), "a\nshown");
    }

    #[test]
    fn th19_hidden_characters_can_be_made_visible() {
        assert_eq!(visible("a\u{202e}b\u{1b}[31m"), "a[U+202E]b[U+001B][31m");
        assert_eq!(visible("tag\u{e0041}\tx\r\n"), "tag[U+E0041] x  ");
        assert_eq!(visible("é 日本 👩‍👩‍👧 ❤\u{fe0f}"), "é 日本 👩‍👩‍👧 ❤\u{fe0f}");
        assert_eq!(
            visible("a\u{2800}\u{3164}\u{ad}\u{1d159}\u{fe0f}b\u{200d}"),
            "a[U+2800][U+3164][U+00AD][U+1D159]\u{fe0f}b[U+200D]"
        );
        assert_eq!(cell("SOUL\u{200b}.md\n \u{1b}[2Jx"), "SOUL[U+200B].md [U+001B][2Jx");
    }

    #[test]
    fn th19_one_line_folds_and_cuts() {
        assert_eq!(one_line("a\n  b\tc", 80), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    fn nasty() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\u{1b}"),
            Just("["),
            Just("]"),
            Just("52;c;"),
            Just("\u{7}"),
            Just("\u{9b}"),
            Just("\\"),
            Just("\r"),
            Just("\n"),
            Just("m"),
            Just("\u{202e}"),
            Just("x y"),
            Just("é"),
            Just("\u{9c}"),
            Just("("),
        ];
        prop_oneof![
            prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat()),
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn th19_nothing_dangerous_is_left(text in nasty()) {
            let cleaned = clean(&text);
            prop_assert!(cleaned.chars().all(|c| c == '\n' || is_shown(c)));
            prop_assert_eq!(clean(&cleaned), cleaned);
        }

        #[test]
        fn th19_the_result_does_not_depend_on_the_pieces(text in nasty(), cuts in prop::collection::vec(0_usize..64, 0..6)) {
            let chars: Vec<char> = text.chars().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            cuts.sort_unstable();
            cuts.push(chars.len());
            let mut cleaner = Cleaner::default();
            let mut out = String::new();
            let mut from = 0;
            for cut in cuts {
                let piece: String = chars[from..cut].iter().collect();
                out.push_str(&cleaner.push(&piece));
                from = cut;
            }
            prop_assert_eq!(out, clean(&text));
        }

        #[test]
        fn th19_harmless_text_is_unchanged(text in "[a-zA-Z0-9 .,;äöüß日本\n\t]{0,80}") {
            prop_assert_eq!(clean(&text), text);
        }
    }
}
