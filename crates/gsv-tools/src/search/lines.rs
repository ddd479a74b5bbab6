//! Collects the matching lines of one file with the lines around them. Long lines are cut around the match.

use std::collections::VecDeque;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use serde::Serialize;

use crate::limits;
use crate::text::{cut_chars, incomplete_suffix, orphan_prefix};

/// One matching line.
#[derive(Debug)]
pub(super) struct Found {
    line: u64,
    content: String,
    before: Vec<String>,
    after: Vec<String>,
}

impl Found {
    #[cfg(test)]
    pub(super) fn at(line: u64) -> Self {
        Self {
            line,
            content: String::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// `before` and `after`: whether the call asked for these lines.
    pub(super) fn into_match(self, path: &str, before: bool, after: bool) -> Match {
        Match {
            path: path.to_owned(),
            line: self.line,
            content: self.content,
            before: before.then_some(self.before),
            after: after.then_some(self.after),
        }
    }
}

/// A match as the result shows it.
#[derive(Debug, Serialize)]
pub(super) struct Match {
    path: String,
    line: u64,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Vec<String>>,
}

pub(super) struct Lines<'m> {
    matcher: &'m RegexMatcher,
    before: usize,
    after: usize,
    recent: VecDeque<(u64, String)>,
    found: Vec<Found>,
    is_binary: bool,
}

impl<'m> Lines<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, before: usize, after: usize) -> Self {
        Self {
            matcher,
            before,
            after,
            recent: VecDeque::new(),
            found: Vec::new(),
            is_binary: false,
        }
    }

    /// `None` for a binary file, even if lines matched before the file was known to be binary.
    pub(super) fn into_found(self) -> Option<Vec<Found>> {
        (!self.is_binary).then_some(self.found)
    }

    /// A match, or a line near one.
    fn seen(&mut self, line: u64, text: &str) {
        let near = line.saturating_sub(self.after as u64);
        for found in self.found.iter_mut().rev().take_while(|found| found.line >= near) {
            found.after.push(text.to_owned());
        }
        self.recent.push_back((line, text.to_owned()));
        let old = self.recent.len().saturating_sub(self.before);
        self.recent.drain(..old);
    }

    fn cut(&self, bytes: &[u8]) -> String {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() <= limits::GREP_LINE_CHARS {
            return String::from_utf8_lossy(bytes).into_owned();
        }
        let at = self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
        // Enough bytes for the characters that are shown, a fifth of them before the match.
        let from = if at > limits::GREP_LINE_CHARS * 4 / 5 {
            at - limits::GREP_LINE_CHARS / 5
        } else {
            0
        };
        let end = bytes.len().min(from + limits::GREP_LINE_CHARS * 4);
        let window = &bytes[from..end];
        let (lead, orphans) = if from > 0 {
            ("…", orphan_prefix(window))
        } else {
            ("", 0)
        };
        let window = &window[orphans..window.len() - incomplete_suffix(window)];
        let text = String::from_utf8_lossy(window);
        let shown = cut_chars(&text, limits::GREP_LINE_CHARS - 2);
        let is_whole = end == bytes.len() && shown.len() == text.len();
        format!("{lead}{shown}{}", if is_whole { "" } else { "…" })
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.line_number().unwrap_or(0);
        let text = self.cut(found.bytes());
        let before = line.saturating_sub(self.before as u64);
        let before = self
            .recent
            .iter()
            .filter(|(at, _)| *at >= before)
            .map(|(_, text)| text.clone())
            .collect();
        self.seen(line, &text);
        self.found.push(Found {
            line,
            content: text,
            before,
            after: Vec::new(),
        });
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        let text = self.cut(near.bytes());
        self.seen(near.line_number().unwrap_or(0), &text);
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn th19_a_line_is_cut_only_when_it_is_longer_than_what_is_shown() {
        let matcher = RegexMatcher::new("needle").unwrap();
        let lines = Lines::new(&matcher, 0, 0);
        let line = format!("{}needle", "x".repeat(limits::GREP_LINE_CHARS - "needle".len()));
        assert_eq!(lines.cut(line.as_bytes()), line);
        assert_eq!(lines.cut(format!("{line}\r\n").as_bytes()), line);
        let longer = lines.cut(format!("y{line}").as_bytes());
        assert!(longer.starts_with('…') && longer.ends_with("needle"), "{longer}");
        assert!(longer.chars().count() <= limits::GREP_LINE_CHARS);
    }

    #[test]
    fn th19_a_long_line_shows_where_it_was_cut() {
        let matcher = RegexMatcher::new("needle").unwrap();
        let lines = Lines::new(&matcher, 0, 0);
        let cut = |start: &[u8], end: usize| lines.cut(&[start, b"needle", &vec![b'z'; end]].concat());
        let at = |start: usize, end: usize| cut(&vec![b'a'; start], end);
        assert_eq!(at(0, 1000), format!("needle{}…", "z".repeat(492)));
        assert_eq!(at(0, 5000), format!("needle{}…", "z".repeat(492)), "the end is far");
        assert!(
            at(400, 100).starts_with('a'),
            "a match that is shown without a cut before it"
        );
        let late = at(401, 100);
        assert_eq!(late, format!("…{}needle{}", "a".repeat(100), "z".repeat(100)));
        // Bytes that are no text stay visible at the start of a line, and the rest of a cut character does not.
        assert!(cut(b"\x80", 1000).starts_with('\u{FFFD}'));
        let euros = "€".repeat(200);
        let late = cut(euros.as_bytes(), 10);
        assert!(
            late.starts_with("…€") && late.ends_with("zz") && !late.contains('\u{FFFD}'),
            "{late}"
        );
    }
}
