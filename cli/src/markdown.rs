//! Markdown to terminal text: wrapped, styled, and clean (no character of the source can act on the terminal, promises
//! T19). Pure: gives a string.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::clean::clean;
use crate::width::{columns, cut, pad};

const LEAST_COLUMNS: usize = 20;
const MOST_COLUMNS: usize = 100;
const RESET: &str = "\u{1b}[0m";

#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: usize,
    pub colour: bool,
}

/// Ends with a line feed unless it is empty.
pub fn render(source: &str, look: Look) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(look);
    for event in Parser::new_ext(source, options) {
        writer.event(event);
    }
    writer.finish()
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Face {
    bold: u8,
    italic: u8,
    struck: u8,
    code: bool,
    dim: u8,
}

impl Face {
    fn codes(self) -> String {
        let mut codes = Vec::new();
        if self.bold > 0 {
            codes.push("1");
        }
        if self.dim > 0 {
            codes.push("2");
        }
        if self.italic > 0 {
            codes.push("3");
        }
        if self.struck > 0 {
            codes.push("9");
        }
        if self.code {
            codes.push("36");
        }
        codes.join(";")
    }
}

/// A piece of a line that is not broken, in one face.
#[derive(Debug)]
struct Word {
    text: String,
    face: Face,
    /// White space came before it.
    spaced: bool,
}

#[derive(Debug)]
enum Frame {
    Quote,
    List {
        next: Option<u64>,
    },
    /// The marker, until the item's first line is written.
    Item {
        marker: Option<String>,
        indent: usize,
    },
}

#[derive(Debug, Default)]
struct TableState {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

struct Writer {
    look: Look,
    out: String,
    face: Face,
    line: Vec<Word>,
    /// White space is due before the next word.
    space: bool,
    frames: Vec<Frame>,
    /// A blank line is due before the next block.
    gap: bool,
    code: Option<String>,
    links: Vec<(String, usize)>,
    table: Option<TableState>,
    heading: bool,
}

impl Writer {
    fn new(look: Look) -> Self {
        let width = look.width.clamp(LEAST_COLUMNS, MOST_COLUMNS);
        Self {
            look: Look { width, ..look },
            out: String::new(),
            face: Face::default(),
            line: Vec::new(),
            space: false,
            frames: Vec::new(),
            gap: false,
            code: None,
            links: Vec::new(),
            table: None,
            heading: false,
        }
    }

    fn finish(mut self) -> String {
        self.flush();
        self.out
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.face.code = true;
                self.text(&text);
                self.face.code = false;
            }
            Event::SoftBreak => self.space = true,
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.open_block();
                let rule = "─".repeat(self.room().min(40));
                self.styled_line(
                    &rule,
                    Face {
                        dim: 1,
                        ..Face::default()
                    },
                );
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                self.push_word(if done { "[x]" } else { "[ ]" }.to_owned(), self.face);
                self.space = true;
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::MetadataBlock(_) | Tag::FootnoteDefinition(_) => self.open_block(),
            Tag::Heading { level, .. } => {
                self.open_block();
                self.heading = true;
                self.face.bold += 1;
                if level > HeadingLevel::H2 {
                    self.face.dim += 1;
                }
            }
            Tag::BlockQuote(_) => {
                self.open_block();
                self.frames.push(Frame::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.open_block();
                if let CodeBlockKind::Fenced(language) = kind {
                    let language = clean(&language);
                    if let Some(name) = language.split_whitespace().next() {
                        self.styled_line(
                            &cut(name, 40),
                            Face {
                                dim: 1,
                                ..Face::default()
                            },
                        );
                    }
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                if !self.in_list() {
                    self.open_block();
                }
                self.frames.push(Frame::List { next: first });
            }
            Tag::Item => {
                self.flush();
                self.gap = false;
                let marker = match self.frames.last_mut() {
                    Some(Frame::List { next: Some(number) }) => {
                        let marker = format!("{number}. ");
                        *number += 1;
                        marker
                    }
                    _ => "• ".to_owned(),
                };
                let indent = columns(&marker);
                self.frames.push(Frame::Item {
                    marker: Some(marker),
                    indent,
                });
            }
            Tag::Emphasis => self.face.italic += 1,
            Tag::Strong => self.face.bold += 1,
            Tag::Strikethrough => self.face.struck += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((clean(&dest_url), self.line.len()));
            }
            Tag::Table(alignments) => {
                self.open_block();
                self.table = Some(TableState {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) | TagEnd::FootnoteDefinition => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(level) => {
                self.flush();
                self.heading = false;
                self.face.bold -= 1;
                if level > HeadingLevel::H2 {
                    self.face.dim -= 1;
                }
                self.gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                if let Some(Frame::Item { marker: Some(_), .. }) = self.frames.last() {
                    self.write_line("");
                }
                self.frames.pop();
                self.gap = tag != TagEnd::Item || self.gap && !self.in_list();
            }
            TagEnd::List(_) => {
                self.flush();
                self.frames.pop();
                self.gap = !self.in_list();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for line in clean(&code).trim_end_matches('\n').split('\n') {
                    self.styled_line(
                        &format!("  {line}"),
                        Face {
                            code: true,
                            ..Face::default()
                        },
                    );
                }
                self.gap = true;
            }
            TagEnd::Emphasis => self.face.italic -= 1,
            TagEnd::Strong => self.face.bold -= 1,
            TagEnd::Strikethrough => self.face.struck -= 1,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = self.take_plain();
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// The address in full behind the text: a link in a terminal must never hide where it leads.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else {
            return;
        };
        let shown: Vec<&str> = self
            .line
            .get(from..)
            .unwrap_or_default()
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let shown = shown.join(" ");
        if address.is_empty() || shown == address || address.strip_prefix("mailto:") == Some(shown.as_str()) {
            return;
        }
        self.space = true;
        let face = Face {
            dim: self.face.dim + 1,
            ..self.face
        };
        self.push_word(format!("({address})"), face);
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; count];
        for row in &table.rows {
            for (wide, cell) in widths.iter_mut().zip(row) {
                *wide = (*wide).max(columns(cell));
            }
        }
        shrink(&mut widths, self.room().saturating_sub(count.saturating_sub(1) * 3));
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<String> = widths
                .iter()
                .enumerate()
                .map(|(column, wide)| {
                    let cell = cut(row.get(column).map_or("", String::as_str), *wide);
                    let space = pad(&cell, *wide);
                    match table.alignments.get(column) {
                        Some(Alignment::Right) => format!("{space}{cell}"),
                        Some(Alignment::Center) => {
                            let (left, right) = space.split_at(space.len() / 2);
                            format!("{left}{cell}{right}")
                        }
                        _ => format!("{cell}{space}"),
                    }
                })
                .collect();
            let face = Face {
                bold: u8::from(index == 0),
                ..Face::default()
            };
            self.styled_line(cells.join(" │ ").trim_end(), face);
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
                self.styled_line(
                    &rule.join("─┼─"),
                    Face {
                        dim: 1,
                        ..Face::default()
                    },
                );
            }
        }
        self.gap = true;
    }

    fn in_list(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame, Frame::List { .. }))
    }

    fn open_block(&mut self) {
        self.flush();
        if self.gap && !self.out.is_empty() {
            self.write_line("");
        }
        self.gap = false;
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let text = clean(text);
        for (index, line) in text.split('\n').enumerate() {
            self.space |= index > 0;
            for (index, word) in line.split([' ', '\t']).enumerate() {
                self.space |= index > 0;
                if !word.is_empty() {
                    self.push_word(word.to_owned(), self.face);
                }
            }
        }
    }

    fn push_word(&mut self, text: String, face: Face) {
        let spaced = std::mem::take(&mut self.space) && !self.line.is_empty();
        self.line.push(Word { text, face, spaced });
    }

    fn take_plain(&mut self) -> String {
        self.space = false;
        let mut out = String::new();
        for word in self.line.drain(..) {
            if word.spaced {
                out.push(' ');
            }
            out.push_str(&word.text);
        }
        out
    }

    /// Columns that are left beside the frames.
    fn room(&self) -> usize {
        let taken: usize = self
            .frames
            .iter()
            .map(|frame| match frame {
                Frame::Quote => 2,
                Frame::List { .. } => 0,
                Frame::Item { indent, .. } => *indent,
            })
            .sum();
        self.look.width.saturating_sub(taken).max(LEAST_COLUMNS / 2)
    }

    /// Writes the words that wait, wrapped.
    fn flush(&mut self) {
        self.space = false;
        if self.line.is_empty() || self.table.is_some() {
            return;
        }
        let room = self.room();
        let words = std::mem::take(&mut self.line);
        let mut line = String::new();
        let mut used = 0;
        let mut open = Face::default();
        for group in groups(&words) {
            let wide: usize = group.iter().map(|word| columns(&word.text)).sum();
            let spaced = group.first().is_some_and(|word| word.spaced);
            if used > 0 && used + usize::from(spaced) + wide > room && spaced {
                self.change_face(&mut line, &mut open, Face::default());
                self.write_line(&line);
                line.clear();
                used = 0;
            } else if spaced && used > 0 {
                if group.first().is_some_and(|word| word.face != open) {
                    self.change_face(&mut line, &mut open, Face::default());
                }
                line.push(' ');
                used += 1;
            }
            for word in group {
                self.change_face(&mut line, &mut open, word.face);
                line.push_str(&word.text);
            }
            used += wide;
        }
        self.change_face(&mut line, &mut open, Face::default());
        self.write_line(&line);
    }

    fn change_face(&self, line: &mut String, open: &mut Face, face: Face) {
        if !self.look.colour || *open == face {
            return;
        }
        if !open.codes().is_empty() {
            line.push_str(RESET);
        }
        let codes = face.codes();
        if !codes.is_empty() {
            line.push_str("\u{1b}[");
            line.push_str(&codes);
            line.push('m');
        }
        *open = face;
    }

    fn styled_line(&mut self, text: &str, face: Face) {
        let mut line = String::new();
        let mut open = Face::default();
        if !text.is_empty() {
            self.change_face(&mut line, &mut open, face);
        }
        line.push_str(text);
        self.change_face(&mut line, &mut open, Face::default());
        self.write_line(&line);
    }

    /// One line of output, behind what the frames put before it.
    fn write_line(&mut self, line: &str) {
        let mut prefix = String::new();
        for frame in &mut self.frames {
            match frame {
                Frame::Quote => prefix.push_str("│ "),
                Frame::List { .. } => {}
                Frame::Item { marker, indent } => match marker.take() {
                    Some(marker) => prefix.push_str(&marker),
                    None => prefix.push_str(&" ".repeat(*indent)),
                },
            }
        }
        let whole = format!("{prefix}{line}");
        self.out.push_str(whole.trim_end_matches(' '));
        self.out.push('\n');
    }
}

/// Words that no white space separates stay together.
fn groups(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    let mut rest = words;
    std::iter::from_fn(move || {
        let length = rest.iter().skip(1).take_while(|word| !word.spaced).count() + 1;
        let (group, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(group)
    })
}

/// Makes the widest columns smaller until all fit.
fn shrink(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 4 => *widest -= 1,
            _ => return,
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
