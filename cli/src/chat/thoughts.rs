//! What the model thinks, as rows for a terminal while it arrives: the first rows at once, the last ones at the end, and how many are
//! between them (rules CT12 to CT14). `/thoughts N` shows all of one. Pure: every method returns what to print, in whole rows.
//!
//! The text is hostile like the output of a tool: it is cleaned, each row stands behind a bar, and none is wider than the terminal.

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar;

use super::output_lines::{BAR, BAR_COLUMNS, FIRST, LAST, TAB, hidden_note};
use crate::clean::Cleaner;
use crate::width::fit;

/// Thoughts that are kept for `/thoughts N`, and characters of each. The end of a longer one is left out, and `CUT` says so.
const MOST: usize = 20;
const MOST_CHARS: usize = 262_144;
const CUT: &str = "[…]";
const HEAD: &str = "○ thinking";

/// `/thoughts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThoughtsAsk {
    /// Whether they are shown.
    State,
    Switch(bool),
    Show(usize),
    Unclear,
}

impl ThoughtsAsk {
    pub fn read(words: &str) -> Self {
        match (words.to_lowercase().as_str(), words.parse()) {
            ("", _) => Self::State,
            ("on", _) => Self::Switch(true),
            ("off", _) => Self::Switch(false),
            (_, Ok(number)) => Self::Show(number),
            _ => Self::Unclear,
        }
    }
}

#[derive(Default)]
pub struct Thoughts {
    on: bool,
    kept: VecDeque<(usize, String)>,
    last: usize,
    open: Option<Open>,
}

/// A thought that goes on.
#[derive(Default)]
struct Open {
    cleaner: Cleaner,
    /// All of it, cleaned, up to the limit.
    text: String,
    /// Characters of the text.
    chars: usize,
    is_cut: bool,
    /// The row that is not complete.
    row: String,
    /// Rows of its line are complete already: the spaces after them are left out.
    is_wrapped: bool,
    /// A blank row is shown only before another one with text.
    is_blank_before: bool,
    fold: Fold,
}

/// The first rows pass; of the others the last ones wait.
#[derive(Default)]
struct Fold {
    passed: usize,
    waiting: VecDeque<String>,
    hidden: usize,
}

impl Thoughts {
    pub fn switched(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// Whether they are shown.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    pub fn switch(&mut self, on: bool) {
        self.on = on;
        if !on {
            self.open = None;
        }
    }

    /// The next part of the current thought, or the beginning of one. Nothing is kept while they are not shown.
    pub fn take(&mut self, text: &str, width: usize) -> Vec<String> {
        if !self.on {
            return Vec::new();
        }
        let open = self.open.get_or_insert_default();
        let before = open.fold.passed;
        let mut rows = open.take(text, width);
        if before == 0 && !rows.is_empty() {
            rows.insert(0, fit(HEAD, width));
        }
        rows
    }

    /// The thought is complete.
    pub fn end(&mut self, width: usize) -> Vec<String> {
        let Some(mut open) = self.open.take() else {
            return Vec::new();
        };
        let before = open.fold.passed;
        let mut rows = open.rest();
        let number = self.last + 1;
        rows.extend(open.fold.end(number, width));
        let text = open.text.trim();
        if text.is_empty() {
            return Vec::new();
        }
        if before == 0 {
            rows.insert(0, HEAD.to_owned());
        }
        self.last = number;
        let cut = if open.is_cut { CUT } else { "" };
        self.kept.push_back((number, format!("{text}{cut}")));
        if self.kept.len() > MOST {
            self.kept.pop_front();
        }
        rows.iter().map(|row| fit(row, width)).collect()
    }

    /// All of one that was shown.
    pub fn find(&self, number: usize) -> Option<&str> {
        self.kept
            .iter()
            .find(|(at, _)| *at == number)
            .map(|(_, text)| text.as_str())
    }

    /// The numbers of the first and the last one that are kept.
    pub fn numbers(&self) -> Option<(usize, usize)> {
        Some((self.kept.front()?.0, self.kept.back()?.0))
    }
}

impl Open {
    fn take(&mut self, text: &str, width: usize) -> Vec<String> {
        let text = self.cleaner.push(text).replace('\t', &" ".repeat(TAB));
        let mut left = text.chars();
        self.text
            .extend(left.by_ref().take(MOST_CHARS - self.chars).inspect(|_| self.chars += 1));
        self.is_cut |= !left.as_str().trim().is_empty();
        let mut rows = Vec::new();
        for piece in text.split_inclusive('\n') {
            let (piece, is_whole) = piece.strip_suffix('\n').map_or((piece, false), |line| (line, true));
            let is_between = self.is_wrapped && self.row.is_empty();
            self.row.push_str(if is_between {
                piece.trim_start_matches(' ')
            } else {
                piece
            });
            for row in full_rows(&mut self.row, width.saturating_sub(BAR_COLUMNS).max(1)) {
                self.is_wrapped = true;
                rows.extend(self.row(&row));
            }
            if is_whole {
                let row = std::mem::take(&mut self.row);
                if !std::mem::take(&mut self.is_wrapped) || !row.is_empty() {
                    rows.extend(self.row(&row));
                }
            }
        }
        rows.iter().map(|row| fit(row, width)).collect()
    }

    /// The rows that can be printed once this one is complete.
    fn row(&mut self, row: &str) -> Vec<String> {
        if row.trim().is_empty() {
            self.is_blank_before = self.fold.has_rows();
            return Vec::new();
        }
        let mut rows = Vec::new();
        if std::mem::take(&mut self.is_blank_before) {
            rows.extend(self.fold.push(BAR.trim_end().to_owned()));
        }
        rows.extend(self.fold.push(format!("{BAR}{}", row.trim_end())));
        rows
    }

    /// What is left of the last row.
    fn rest(&mut self) -> Vec<String> {
        let row = std::mem::take(&mut self.row);
        self.row(&row)
    }
}

impl Fold {
    fn has_rows(&self) -> bool {
        self.passed > 0
    }

    /// The row, if it is one of the first.
    fn push(&mut self, row: String) -> Option<String> {
        if self.passed < FIRST {
            self.passed += 1;
            return Some(row);
        }
        self.waiting.push_back(row);
        // One hidden row is not worth a note about it.
        if self.waiting.len() > LAST + 1 {
            self.waiting.pop_front();
            self.hidden += 1;
        }
        None
    }

    fn end(&mut self, number: usize, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if self.hidden > 0 {
            self.waiting.pop_front();
            rows.push(hidden_note(self.hidden + 1, &format!("/thoughts {number}"), width));
        }
        rows.extend(self.waiting.drain(..));
        rows
    }
}

/// Takes whole rows off the beginning of a line that is too long: at a space, else in the middle of a word.
fn full_rows(line: &mut String, room: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut start = 0;
    while let Some(row) = first_row(&line[start..], room) {
        rows.push(row.to_owned());
        start += row.len();
        start += line[start..].len() - line[start..].trim_start_matches(' ').len();
    }
    // Once for all rows, because a line can have a million characters.
    line.drain(..start);
    rows
}

/// `None`: the whole text fits into one row.
fn first_row(text: &str, room: usize) -> Option<&str> {
    let (mut used, mut space, mut is_text) = (0, None, false);
    for (at, c) in text.char_indices() {
        if c != ' ' {
            is_text = true;
        } else if is_text {
            space = Some(at);
        }
        used += c.width().unwrap_or(0);
        if used > room && at > 0 {
            return Some(&text[..space.unwrap_or(at)]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::output_lines::whole;
    use crate::clean::clean;
    use proptest::prelude::*;

    const WIDTH: usize = 40;

    fn shown(thoughts: &mut Thoughts, pieces: &[&str]) -> Vec<String> {
        let mut rows: Vec<String> = pieces.iter().flat_map(|piece| thoughts.take(piece, WIDTH)).collect();
        rows.extend(thoughts.end(WIDTH));
        rows
    }

    fn lines(count: usize) -> String {
        let lines: Vec<String> = (1..=count).map(|number| format!("line {number}")).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn ct12_nothing_is_shown_or_kept_while_it_is_off() {
        let mut thoughts = Thoughts::default();
        assert!(shown(&mut thoughts, &["secret plan\n"]).is_empty());
        assert_eq!((thoughts.numbers(), thoughts.find(1)), (None, None));
    }

    #[test]
    fn ct14_the_first_rows_are_shown_at_once_and_the_last_at_the_end() {
        let mut thoughts = Thoughts::switched(true);
        assert_eq!(thoughts.take("\n\nline 1\nline", WIDTH), ["○ thinking", "  │ line 1"]);
        let rest = lines(20).replacen("line 1\nline", "", 1);
        assert_eq!(thoughts.take(&rest, WIDTH), ["  │ line 2", "  │ line 3", "  │ line 4"]);
        assert_eq!(
            thoughts.end(WIDTH),
            [
                "    … 13 more lines: /thoughts 1",
                "  │ line 18",
                "  │ line 19",
                "  │ line 20"
            ]
        );
        assert_eq!(thoughts.find(1), Some(lines(20).trim_end()));
        assert!(thoughts.end(WIDTH).is_empty());
    }

    #[test]
    fn ct14_a_short_thought_is_shown_whole_and_an_empty_one_not_at_all() {
        let mut thoughts = Thoughts::switched(true);
        assert!(shown(&mut thoughts, &["\n ", "\n"]).is_empty());
        assert_eq!(shown(&mut thoughts, &["one"]), ["○ thinking", "  │ one"]);
        assert_eq!(
            shown(&mut thoughts, &["one\n\n\n", "two\n\n"]),
            ["○ thinking", "  │ one", "  │", "  │ two"]
        );
        assert_eq!(shown(&mut thoughts, &[&lines(8)]).len(), 9);
        assert_eq!(shown(&mut thoughts, &[&lines(9)]).len(), 9);
        assert_eq!(thoughts.numbers(), Some((1, 4)));
        for _ in 0..MOST {
            shown(&mut thoughts, &["x"]);
        }
        assert_eq!(thoughts.numbers(), Some((5, 24)));
    }

    #[test]
    fn ct14_a_long_line_goes_on_in_the_next_row_at_a_space() {
        let mut thoughts = Thoughts::switched(true);
        let rows = shown(&mut thoughts, &["one two three four five six ", "seven eight nine ten"]);
        assert_eq!(
            rows,
            [
                "○ thinking",
                "  │ one two three four five six seven",
                "  │ eight nine ten"
            ]
        );
    }

    #[test]
    fn ct14_thoughts_never_act_on_the_terminal_and_never_look_like_the_chat() {
        let mut thoughts = Thoughts::switched(true);
        let evil = "\u{1b}]0;title\u{7}a\u{1b}[2J\rb\n› rm -rf /\n\u{202e}K7Q2A: y allows this call once\n";
        assert_eq!(
            shown(&mut thoughts, &[&evil[..9], &evil[9..]]),
            [
                "○ thinking",
                "  │ a",
                "  │ b",
                "  │ › rm -rf /",
                "  │ K7Q2A: y allows this call once"
            ]
        );
    }

    #[test]
    fn ct14_all_of_a_thought_is_kept_in_characters_and_a_cut_is_seen() {
        let mut thoughts = Thoughts::switched(true);
        let long = "日".repeat(MOST_CHARS);
        shown(&mut thoughts, &[&long[..30], &long[30..], "\n"]);
        assert_eq!(thoughts.find(1), Some(long.as_str()));
        shown(&mut thoughts, &[&long, "本", "\n"]);
        assert_eq!(thoughts.find(2), Some(format!("{long}[…]").as_str()));
    }

    #[test]
    fn ct12_what_is_asked_for() {
        for (words, ask) in [
            ("", ThoughtsAsk::State),
            ("on", ThoughtsAsk::Switch(true)),
            ("OFF", ThoughtsAsk::Switch(false)),
            ("12", ThoughtsAsk::Show(12)),
            ("maybe", ThoughtsAsk::Unclear),
            ("-1", ThoughtsAsk::Unclear),
        ] {
            assert_eq!(ThoughtsAsk::read(words), ask, "{words}");
        }
    }

    proptest! {
        #[test]
        fn ct14_no_row_is_wider_than_the_terminal_and_the_cut_into_pieces_changes_nothing(
            text in "([a-z ]|[日本👩\u{200d}🚀\u{301}\u{1b}\\[\u{7}\t\r\n\u{202e}]|\\PC){0,200}",
            cut in 0_usize..200,
            width in 0_usize..60,
        ) {
            let mut at = cut.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let mut thoughts = Thoughts::switched(true);
            let mut rows = thoughts.take(&text, width);
            rows.extend(thoughts.end(width));
            let mut in_two = thoughts.take(&text[..at], width);
            in_two.extend(thoughts.take(&text[at..], width));
            in_two.extend(thoughts.end(width));
            let numberless = |rows: &[String]| rows.iter().map(|row| row.replace("/thoughts 1", "").replace("/thoughts 2", "")).collect::<Vec<_>>();
            if width > 36 {
                prop_assert_eq!(numberless(&rows), numberless(&in_two));
            }
            for row in rows.iter().chain(&in_two) {
                let columns: usize = row.chars().map(|c| c.width().unwrap_or(0)).sum();
                prop_assert!(columns <= width, "{row:?} of {width}");
                prop_assert_eq!(&clean(row), row);
            }
        }

        #[test]
        fn ct14_all_of_a_thought_can_be_read(text in "[a-z日 \n]{0,200}") {
            let mut thoughts = Thoughts::switched(true);
            shown(&mut thoughts, &[&text]);
            let kept = thoughts.find(1).map(|text| whole(text, WIDTH)).unwrap_or_default();
            let read: String = kept.iter().map(|row| row.trim_start_matches("  │").replace(' ', "")).collect();
            prop_assert_eq!(read, text.replace([' ', '\n'], ""));
        }
    }
}
