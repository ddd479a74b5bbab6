//! Makes text from models, tools and files safe to show in a terminal (promises T19).
//!
//! Escape sequences are removed whole, other control characters are removed, and so is what changes the reading order
//! or hides text: bidirectional overrides, tag characters, zero-width no-break spaces. Line feeds and tabs stay. A
//! sequence that never ends hides nothing but the rest of its own line. Never allocates beyond its output.

use std::fmt::Write as _;

/// Where the cleaner is inside an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte (`ESC ( B`).
    Intermediate,
    /// After `ESC [` or U+009B, until the final byte.
    Csi,
    /// Inside OSC, DCS, SOS, PM or APC, until BEL or ST.
    Command,
    /// ESC inside a command string: `\` ends it.
    CommandEscape,
}

/// A cleaner for text that comes in pieces: the result does not depend on where it was cut.
#[derive(Debug, Clone, Default)]
pub struct Cleaner {
    state: State,
    after_return: bool,
}

impl Cleaner {
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.step(c, &mut out);
        }
        out
    }

    fn step(&mut self, c: char, out: &mut String) {
        let after_return = std::mem::take(&mut self.after_return);
        if c == '\n' || c == '\r' {
            // Every sequence ends with its line: an unterminated one can't swallow what follows.
            self.state = State::Text;
            self.after_return = c == '\r';
            if c == '\r' || !after_return {
                out.push('\n');
            }
            return;
        }
        self.state = match self.state {
            State::Text => match c {
                '\u{1b}' => State::Escape,
                '\u{9b}' => State::Csi,
                '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => State::Command,
                _ => {
                    if is_shown(c) {
                        out.push(c);
                    }
                    State::Text
                }
            },
            State::Escape => match c {
                '[' => State::Csi,
                ']' | 'P' | 'X' | '^' | '_' => State::Command,
                ' '..='/' => State::Intermediate,
                '\u{1b}' => State::Escape,
                '0'..='~' => State::Text,
                _ => return self.leave(c, out),
            },
            State::Intermediate => match c {
                ' '..='/' => State::Intermediate,
                '0'..='~' => State::Text,
                _ => return self.leave(c, out),
            },
            State::Csi => match c {
                ' '..='?' => State::Csi,
                '@'..='~' => State::Text,
                _ => return self.leave(c, out),
            },
            State::Command => match c {
                '\u{07}' | '\u{9c}' => State::Text,
                '\u{1b}' => State::CommandEscape,
                _ => State::Command,
            },
            State::CommandEscape => match c {
                '\\' => State::Text,
                '\u{1b}' => State::CommandEscape,
                _ => State::Command,
            },
        };
    }

    /// A character that can't belong to the sequence: the sequence is over, the character is text.
    fn leave(&mut self, c: char, out: &mut String) {
        self.state = State::Text;
        self.step(c, out);
    }
}

/// Cleans a whole text.
pub fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

/// Cleans a text for one line of at most `width` columns: white space runs become one space, what is too long is cut.
pub fn one_line(text: &str, width: usize) -> String {
    let cleaned = clean(text);
    let line = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::width::cut(&line, width)
}

/// One line for a person who must see what is hidden: what would be removed is written as its code point.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) {
            out.push(if c == '\t' { ' ' } else { c });
        } else if matches!(c, '\n' | '\r') {
            out.push(' ');
        } else {
            let _ = write!(out, "[U+{:04X}]", u32::from(c));
        }
    }
    out
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
    fn t19_escape_sequences_are_removed_whole() {
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
    fn t19_returns_become_lines_and_never_overwrite() {
        assert_eq!(clean("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(clean("\r\r\n\n"), "\n\n\n");
    }

    #[test]
    fn t19_an_unterminated_sequence_hides_only_its_line() {
        assert_eq!(clean("a\u{1b}]52;c;hidden\nshown"), "a\nshown");
        assert_eq!(clean("a\u{1b}[12\nshown"), "a\nshown");
    }

    #[test]
    fn t19_what_is_hidden_can_be_shown() {
        assert_eq!(visible("a\u{202e}b\u{1b}[31m"), "a[U+202E]b[U+001B][31m");
        assert_eq!(visible("tag\u{e0041}\tx\r\n"), "tag[U+E0041] x  ");
        assert_eq!(visible("é 日本 👩‍👩‍👧"), "é 日本 👩‍👩‍👧");
    }

    #[test]
    fn t19_one_line_folds_and_cuts() {
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
        fn t19_nothing_dangerous_is_left(text in nasty()) {
            let cleaned = clean(&text);
            prop_assert!(cleaned.chars().all(|c| c == '\n' || is_shown(c)));
            prop_assert_eq!(clean(&cleaned), cleaned);
        }

        #[test]
        fn t19_the_result_does_not_depend_on_the_pieces(text in nasty(), cuts in prop::collection::vec(0_usize..64, 0..6)) {
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
        fn t19_harmless_text_is_unchanged(text in "[a-zA-Z0-9 .,;äöüß日本\n\t]{0,80}") {
            prop_assert_eq!(clean(&text), text);
        }
    }
}
