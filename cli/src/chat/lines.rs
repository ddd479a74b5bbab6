//! Markdown above a line editor while it arrives: a rendered line is given once, as soon as no later text can change it, and is
//! never taken back. Pure: every method returns what to print, in whole lines.
//!
//! All lines of a text, joined, are the rendered text, wherever it was cut into pieces. There are three exceptions, in which a
//! later line of the text would change a line that is printed: the underline that makes a paragraph a heading gives its style
//! only to the lines that follow; a blank line that makes a list loose, and the definition of a link inside a list or a quote,
//! change nothing above them. No word is lost or repeated in any of them.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::stable::stable_prefix;
use crate::clean::{Cleaner, clean};
use crate::markdown::{Look, OPTIONS, render};

#[derive(Default)]
pub struct Lines {
    cleaner: Cleaner,
    /// Source of the block that is not complete.
    open: String,
    /// Its lines that are printed.
    printed: Vec<String>,
    /// An earlier block of this text is printed: a blank line stands before the next one.
    begun: bool,
}

impl Lines {
    pub fn text(&mut self, text: &str, look: Look) -> String {
        let text = self.cleaner.push(text);
        self.open.push_str(&text);
        // Nothing is settled inside a word.
        if !text.contains(char::is_whitespace) {
            return String::new();
        }
        let mut out = String::new();
        let stable = stable_prefix(&self.open);
        if stable > 0 {
            let rest = self.open.split_off(stable);
            self.complete(&mut out, look);
            self.open = rest;
        }
        let settled = settled_lines(&self.open, look);
        self.print(&mut out, &settled);
        out
    }

    /// The text is complete.
    pub fn end(&mut self, look: Look) -> String {
        let mut out = String::new();
        self.complete(&mut out, look);
        *self = Self::default();
        out
    }

    /// The text begins again. Returns whether a part of it was printed.
    pub fn restart(&mut self) -> bool {
        let was_printed = self.begun || !self.printed.is_empty();
        *self = Self::default();
        was_printed
    }

    /// Prints the rest of the open block.
    fn complete(&mut self, out: &mut String, look: Look) {
        let lines: Vec<String> = render(&self.open, look).lines().map(str::to_owned).collect();
        self.print(out, &lines);
        self.begun |= !self.printed.is_empty();
        // Lines of the next block may be printed, too, because it could have been a part of this one.
        let more = self.printed.split_off(lines.len().min(self.printed.len()));
        self.printed = more.into_iter().skip_while(String::is_empty).collect();
        self.open.clear();
    }

    /// Prints the lines that come after those that are printed.
    fn print(&mut self, out: &mut String, lines: &[String]) {
        for line in after(&self.printed, lines) {
            if self.begun && self.printed.is_empty() {
                out.push('\n');
            }
            out.push_str(&line);
            out.push('\n');
            self.printed.push(line);
        }
    }
}

/// The lines after those that are printed. When a printed line would look different by now, what follows is found by counting
/// the characters.
fn after(printed: &[String], lines: &[String]) -> Vec<String> {
    let same = |(shown, line): (&String, &String)| shown == line || clean(shown) == clean(line);
    if lines.len() >= printed.len() && printed.iter().zip(lines).all(same) {
        return lines[printed.len()..].to_vec();
    }
    let mut left = printed
        .iter()
        .map(|line| clean(line).chars().filter(|c| is_text(*c)).count())
        .sum();
    let mut rest = Vec::new();
    for line in lines {
        let plain = clean(line);
        let count = plain.chars().filter(|c| is_text(*c)).count();
        if left == 0 {
            rest.push(line.clone());
        } else if count <= left {
            left -= count;
        } else {
            let from = plain.char_indices().filter(|(_, c)| is_text(*c)).nth(left);
            rest.push(plain[from.map_or(plain.len(), |(at, _)| at)..].to_owned());
            left = 0;
        }
    }
    rest
}

/// Neither space nor the bar that stands before each line of a quote.
fn is_text(c: char) -> bool {
    !c.is_whitespace() && c != '│'
}

/// The rendered lines of an open block that no later text changes.
fn settled_lines(open: &str, look: Look) -> Vec<String> {
    let last = line_start(open, open.len());
    let open = if may_change_kind(&open[last..]) {
        &open[..last]
    } else {
        open
    };
    let Some((leaf, range)) = last_leaf(open) else {
        return Vec::new();
    };
    // The blocks before the leaf are complete. The marks before it on its line would be read in another way without it.
    let before = line_start(open, range.start);
    let (end, is_whole) = match leaf {
        // Its last line may become the fence that ends it.
        Leaf::Code if open[range.start..].contains('\n') => (last, true),
        // Its first line tells whether it is code.
        Leaf::Code => (before, false),
        Leaf::Whole => (before, true),
        Leaf::Text => match settled_text(open, &range) {
            end if end > range.start => (end, false),
            _ => (before, true),
        },
    };
    let rendered = render(&open[..end], look);
    let mut lines: Vec<String> = rendered.lines().map(str::to_owned).collect();
    if !is_whole {
        // The next word may belong to the last line.
        lines.pop();
    }
    // A blank line belongs to what follows; at the end of code it is not shown.
    while lines.last().is_some_and(|line| clean(line).trim().is_empty()) {
        lines.pop();
    }
    lines
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    /// Words that are wrapped.
    Text,
    Code,
    /// Shown when it is complete.
    Whole,
}

/// The last block that holds no other block, and its place.
fn last_leaf(open: &str) -> Option<(Leaf, Range<usize>)> {
    let mut last: Option<(Leaf, Range<usize>)> = None;
    // Text of a tight item has no paragraph around it.
    let mut is_bare = true;
    for (event, range) in Parser::new_ext(open, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::Paragraph) => last = Some((Leaf::Text, range)),
            Event::Start(Tag::CodeBlock(_)) => last = Some((Leaf::Code, range)),
            Event::Start(Tag::Table(_) | Tag::Heading { .. } | Tag::HtmlBlock) | Event::Rule => {
                last = Some((Leaf::Whole, range));
            }
            Event::Start(Tag::Item | Tag::List(_) | Tag::BlockQuote(_)) | Event::End(TagEnd::List(_)) => {
                is_bare = true;
                continue;
            }
            Event::Start(_)
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineHtml(_)
            | Event::TaskListMarker(_)
            | Event::HardBreak
            | Event::SoftBreak
                if is_bare =>
            {
                last = Some((Leaf::Text, range.start..open.len()));
            }
            _ => continue,
        }
        is_bare = false;
    }
    last
}

/// How far the words of the last paragraph are settled: up to the first mark that may still pair with a later one, in whole words
/// and whole spans.
fn settled_text(open: &str, leaf: &Range<usize>) -> usize {
    let mut end = open.len();
    let line = line_start(open, end);
    // A line with a bar may become the head of a table, until the line below it is complete.
    let above = line_start(open, line.saturating_sub(1));
    for start in [above, line] {
        let row = open[start..].split('\n').next().unwrap_or_default();
        if row.contains('|') {
            end = end.min(start);
        }
    }
    let marks = Marks::of(open, leaf);
    end = end.min(marks.first_open);
    loop {
        let head = &open[..end.max(leaf.start)];
        let Some(at) = head.rfind(char::is_whitespace).filter(|at| *at > leaf.start) else {
            return leaf.start;
        };
        let words = open[..at].trim_end();
        let last = &words[line_start(words, words.len())..];
        end = words.len();
        if is_marks(last) {
            end -= last.len();
        } else if let Some(span) = marks.spans.iter().find(|span| span.start < end && end < span.end) {
            end = span.start;
        } else if !words.ends_with('\\') {
            return end.max(leaf.start);
        }
        // Otherwise: a backslash at the end of a line is a line break.
    }
}

/// The styled spans of a paragraph, the outermost ones, and the place from which a later mark may change how it is read.
struct Marks {
    spans: Vec<Range<usize>>,
    first_open: usize,
}

impl Marks {
    fn of(open: &str, leaf: &Range<usize>) -> Self {
        let mut marks = Self {
            spans: Vec::new(),
            first_open: open.len(),
        };
        for (event, range) in Parser::new_ext(open, OPTIONS).into_offset_iter() {
            if range.start < leaf.start {
                continue;
            }
            let outer = marks.spans.last().filter(|span| range.start < span.end);
            let from = outer.map_or(range.start, |span| span.start);
            match event {
                Event::Start(
                    Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. },
                )
                | Event::Code(_)
                | Event::InlineHtml(_) => {
                    // One more mark at its end may change what belongs together.
                    if range.end == open.len() {
                        marks.first_open = marks.first_open.min(from);
                    }
                    if outer.is_none() {
                        marks.spans.push(range);
                    }
                }
                Event::Text(_) => {
                    let mut letters = open[range.clone()].char_indices();
                    if let Some((at, _)) = letters.find(|(at, c)| may_open(open, range.start + at, *c)) {
                        let from = outer.map_or(range.start + at, |span| span.start);
                        marks.first_open = marks.first_open.min(from);
                    }
                }
                _ => {}
            }
        }
        marks
    }
}

/// Whether a character that is plain text so far may begin something that a later mark ends.
fn may_open(open: &str, at: usize, mark: char) -> bool {
    let (before, rest) = (&open[..at], &open[at..]);
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        return false;
    }
    let behind = rest.trim_start_matches(mark).chars().next();
    match mark {
        '*' | '~' => behind.is_none_or(|c| !c.is_whitespace()),
        '_' => {
            let is_inside_word = before.chars().next_back().is_some_and(char::is_alphanumeric);
            !is_inside_word && behind.is_none_or(|c| !c.is_whitespace())
        }
        '`' => true,
        '[' => match rest.find(']').map(|end| rest[end + 1..].chars().next()) {
            Some(Some(after)) => "([:".contains(after),
            _ => true,
        },
        '<' => behind.is_none_or(|c| c.is_alphabetic() || "/!?".contains(c)),
        _ => false,
    }
}

/// Whether a line may be, or become, a rule, the underline of a heading, or a line of a table.
fn is_marks(line: &str) -> bool {
    line.chars().all(|c| "-*_=|:+#> \t".contains(c))
}

/// Whether the next characters of a line may still change the kind of its block: marks, the begin of HTML (`<dd` begins a block,
/// `<ddx` is text of the paragraph above), and a fence, whose line must not hold a backtick.
fn may_change_kind(line: &str) -> bool {
    let begin = line.trim_start_matches(|c| "-*+> \t".contains(c));
    is_marks(line) || ["<", "```", "~~~"].iter().any(|mark| begin.starts_with(mark))
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
