//! Turns Markdown into terminal text: wrapped, styled and cleaned (promises TH19). Pure: gives a string, and no character of
//! the source can act on the terminal.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use textwrap::{Options as Wrap, WordSplitter};

use crate::clean::clean;
use crate::highlight;
use crate::width::{columns, cut, pad};

const LEAST_COLUMNS: usize = 20;
const MOST_COLUMNS: usize = 100;
const RULE_COLUMNS: usize = 40;
const LANGUAGE_COLUMNS: usize = 40;
const LEAST_CELL_COLUMNS: usize = 4;

const BOLD: &str = "1";
const DIM: &str = "2";
const BOLD_DIM: &str = "1;2";
const ITALIC: &str = "3";
const STRUCK: &str = "9";
const CODE: &str = "36";
const ESCAPE: &str = "\u{1b}[";
const RESET: &str = "\u{1b}[0m";

/// The Markdown that is understood beside the common one.
pub const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: usize,
    pub colour: bool,
}

/// The text ends with a line feed unless it is empty.
pub fn render(source: &str, look: Look) -> String {
    let mut writer = Writer::new(look);
    for event in Parser::new_ext(source, OPTIONS) {
        writer.event(event);
    }
    writer.flush();
    writer.out
}

/// A container around the block that is being written.
enum Frame {
    /// The number of the next item, in an ordered list.
    List(Option<u64>),
    /// A quote or an item: what stands before its first line, and before its other lines.
    Prefix { first: String, rest: String },
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

struct Writer {
    width: usize,
    colour: bool,
    out: String,
    /// Inline text of the open block, with style sequences.
    line: String,
    /// Styles that apply to the next word.
    styles: Vec<&'static str>,
    /// The style that is switched on at the end of `line`.
    style_on: String,
    /// White space is due before the next word.
    space: bool,
    /// A blank line is due before the next block.
    gap: bool,
    /// Length of `out` before and after the blank line of the open block.
    opened: (usize, usize),
    frames: Vec<Frame>,
    /// The text of an open code block.
    code: Option<String>,
    /// Its language.
    language: String,
    /// Address and text of the open links.
    links: Vec<(String, String)>,
    table: Option<Table>,
}

impl Writer {
    fn new(look: Look) -> Self {
        Self {
            width: look.width.clamp(LEAST_COLUMNS, MOST_COLUMNS),
            colour: look.colour,
            out: String::new(),
            line: String::new(),
            styles: Vec::new(),
            style_on: String::new(),
            space: false,
            gap: false,
            opened: (0, 0),
            frames: Vec::new(),
            code: None,
            language: String::new(),
            links: Vec::new(),
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.styles.push(CODE);
                self.text(&text);
                self.styles.pop();
            }
            Event::SoftBreak => self.space = true,
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.open_block();
                self.styled_line(&"─".repeat(self.room().min(RULE_COLUMNS)), DIM);
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                self.word(if done { "[x]" } else { "[ ]" });
                self.space = true;
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::MetadataBlock(_) | Tag::FootnoteDefinition(_) => self.open_block(),
            Tag::Heading { level, .. } => {
                self.open_block();
                self.styles.push(if level > HeadingLevel::H2 { BOLD_DIM } else { BOLD });
            }
            Tag::BlockQuote(_) => {
                self.open_block();
                self.prefix("│ ".to_owned(), "│ ".to_owned());
            }
            Tag::CodeBlock(kind) => {
                self.open_block();
                if let CodeBlockKind::Fenced(info) = kind
                    && let Some(language) = clean(&info).split_whitespace().next()
                {
                    self.styled_line(&cut(language, LANGUAGE_COLUMNS), DIM);
                    language.clone_into(&mut self.language);
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                if !self.in_list() {
                    self.open_block();
                }
                self.frames.push(Frame::List(first));
            }
            Tag::Item => {
                self.flush();
                self.gap = false;
                let marker = match self.frames.last_mut() {
                    Some(Frame::List(Some(next))) => {
                        *next += 1;
                        format!("{}. ", *next - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(columns(&marker));
                self.prefix(marker, rest);
            }
            Tag::Emphasis => self.styles.push(ITALIC),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((clean(&dest_url), String::new()));
            }
            Tag::Table(alignments) => {
                self.open_block();
                let rows = Vec::new();
                self.table = Some(Table { alignments, rows });
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
                self.close_block();
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                // An empty item still shows its marker.
                if let Some(Frame::Prefix { first, rest }) = self.frames.last()
                    && first != rest
                {
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
                let language = std::mem::take(&mut self.language);
                let code = clean(&code);
                let lines: Vec<&str> = code.trim_end_matches('\n').split('\n').collect();
                match highlight::paint(&language, &lines).filter(|_| self.colour) {
                    Some(painted) => painted.iter().for_each(|line| self.write_line(&format!("  {line}"))),
                    None => lines
                        .iter()
                        .for_each(|line| self.styled_line(&format!("  {line}"), CODE)),
                }
                self.gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                self.space = false;
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.write_table(&table);
                }
            }
            _ => {}
        }
    }

    /// Writes the address behind the text: a link in a terminal must never hide where it leads.
    fn end_link(&mut self) {
        let Some((address, shown)) = self.links.pop() else {
            return;
        };
        if address.is_empty() || shown == address || address.strip_prefix("mailto:") == Some(shown.as_str()) {
            return;
        }
        self.space = true;
        self.styles.push(DIM);
        self.word(&format!("({address})"));
        self.styles.pop();
    }

    fn write_table(&mut self, table: &Table) {
        let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; count];
        for row in &table.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        shrink(&mut widths, self.room().saturating_sub(count.saturating_sub(1) * 3));
        for (number, row) in table.rows.iter().enumerate() {
            let cells: Vec<String> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    let cell = row.get(column).map_or("", String::as_str);
                    aligned(cell, *width, table.alignments.get(column).copied())
                })
                .collect();
            self.styled_line(cells.join(" │ ").trim_end(), if number == 0 { BOLD } else { "" });
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.styled_line(&rule.join("─┼─"), DIM);
            }
        }
        self.gap = true;
    }

    fn in_list(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame, Frame::List(_)))
    }

    fn prefix(&mut self, first: String, rest: String) {
        self.frames.push(Frame::Prefix { first, rest });
    }

    fn open_block(&mut self) {
        self.flush();
        let before = self.out.len();
        if self.gap && !self.out.is_empty() {
            self.write_line("");
        }
        self.opened = (before, self.out.len());
        self.gap = false;
    }

    /// A block without a visible character leaves no blank line either.
    fn close_block(&mut self) {
        self.flush();
        let (before, after) = self.opened;
        if self.out.len() == after {
            self.out.truncate(before);
        }
        self.gap = true;
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        for (number, word) in clean(text).split([' ', '\t', '\n']).enumerate() {
            self.space |= number > 0;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn word(&mut self, text: &str) {
        let is_styled = self.colour && self.table.is_none();
        let style = if is_styled {
            self.styles.join(";")
        } else {
            String::new()
        };
        if style != self.style_on && !self.style_on.is_empty() {
            self.line.push_str(RESET);
        }
        let space = std::mem::take(&mut self.space) && !self.line.is_empty();
        if space {
            self.line.push(' ');
        }
        if style != self.style_on && !style.is_empty() {
            self.line.extend([ESCAPE, &style, "m"]);
        }
        self.style_on = style;
        self.line.push_str(text);
        for (_, shown) in &mut self.links {
            if space && !shown.is_empty() {
                shown.push(' ');
            }
            shown.push_str(text);
        }
    }

    /// Columns that the frames leave.
    fn room(&self) -> usize {
        let taken: usize = self
            .frames
            .iter()
            .map(|frame| match frame {
                Frame::List(_) => 0,
                Frame::Prefix { rest, .. } => columns(rest),
            })
            .sum();
        self.width.saturating_sub(taken).max(LEAST_COLUMNS / 2)
    }

    /// Writes the open line, wrapped. A style ends with its line and begins again on the next one.
    fn flush(&mut self) {
        self.space = false;
        if self.table.is_some() || self.line.is_empty() {
            return;
        }
        if !std::mem::take(&mut self.style_on).is_empty() {
            self.line.push_str(RESET);
        }
        let text = std::mem::take(&mut self.line);
        let options = Wrap::new(self.room())
            .break_words(false)
            .word_splitter(WordSplitter::NoHyphenation);
        let mut style = String::new();
        for wrapped in textwrap::wrap(&text, options) {
            let line = format!("{style}{wrapped}");
            style_at_end(&line).clone_into(&mut style);
            let reset = if style.is_empty() { "" } else { RESET };
            self.write_line(&format!("{line}{reset}"));
        }
    }

    fn styled_line(&mut self, text: &str, style: &str) {
        if self.colour && !style.is_empty() && !text.is_empty() {
            self.write_line(&format!("{ESCAPE}{style}m{text}{RESET}"));
        } else {
            self.write_line(text);
        }
    }

    /// One line of output, behind the prefixes of the frames.
    fn write_line(&mut self, line: &str) {
        let mut whole = String::new();
        for frame in &mut self.frames {
            if let Frame::Prefix { first, rest } = frame {
                whole.push_str(&std::mem::replace(first, rest.clone()));
            }
        }
        whole.push_str(line);
        self.out.push_str(whole.trim_end_matches(' '));
        self.out.push('\n');
    }
}

/// The style sequence that is still on at the end of a line of ours, or nothing.
fn style_at_end(line: &str) -> &str {
    let last = line.rfind(ESCAPE).map_or("", |at| &line[at..]);
    let sequence = last.find('m').map_or("", |end| &last[..=end]);
    if sequence == RESET { "" } else { sequence }
}

fn aligned(cell: &str, width: usize, alignment: Option<Alignment>) -> String {
    let cell = cut(cell, width);
    let space = pad(&cell, width);
    match alignment {
        Some(Alignment::Right) => format!("{space}{cell}"),
        Some(Alignment::Center) => {
            let (left, right) = space.split_at(space.len() / 2);
            format!("{left}{cell}{right}")
        }
        _ => format!("{cell}{space}"),
    }
}

/// Narrows the widest columns until all columns fit.
fn shrink(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > LEAST_CELL_COLUMNS => *widest -= 1,
            _ => return,
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
