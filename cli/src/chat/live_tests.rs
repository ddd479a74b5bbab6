use super::*;
use proptest::prelude::*;

/// A small terminal: it wraps, keeps all its lines, and knows `CSI n A` and `CSI J`.
struct Terminal {
    width: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    fn new(width: usize) -> Self {
        Self {
            width,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
        }
    }

    fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' => {
                    self.row += 1;
                    self.column = 0;
                }
                '\r' => self.column = 0,
                '\u{1b}' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut number = String::new();
                    loop {
                        match chars.next() {
                            Some(digit) if digit.is_ascii_digit() => number.push(digit),
                            Some('A') => {
                                let up: usize = number.parse().unwrap();
                                assert!(up <= self.row, "the cursor would leave the screen");
                                self.row -= up;
                                break;
                            }
                            Some('J') => {
                                self.lines.truncate(self.row + 1);
                                self.lines[self.row].truncate(self.column);
                                break;
                            }
                            other => panic!("unexpected {other:?}"),
                        }
                    }
                }
                c => {
                    if self.column == self.width {
                        self.row += 1;
                        self.column = 0;
                    }
                    self.fit();
                    let line = &mut self.lines[self.row];
                    line.resize(line.len().max(self.column + 1), ' ');
                    line[self.column] = c;
                    self.column += 1;
                }
            }
            self.fit();
        }
    }

    fn fit(&mut self) {
        while self.lines.len() <= self.row {
            self.lines.push(Vec::new());
        }
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| line.iter().collect::<String>().trim_end().to_owned())
            .collect();
        lines.join("\n").trim_end_matches('\n').to_owned()
    }
}

const LOOK: Look = Look {
    width: 30,
    colour: false,
};
const SCREEN: Screen = Screen { look: LOOK, height: 12 };

fn rendered(source: &str) -> String {
    render(source, LOOK)
        .trim_end_matches('\n')
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_open_block_is_plain_text_until_it_is_complete() {
    let (mut live, mut terminal) = (Live::default(), Terminal::new(30));
    terminal.write(&live.text("# Ti", SCREEN));
    assert_eq!(terminal.text(), "# Ti");
    terminal.write(&live.text("tle\n\n**bo", SCREEN));
    assert_eq!(terminal.text(), "Title\n\n**bo");
    terminal.write(&live.text("ld**", SCREEN));
    terminal.write(&live.end(SCREEN));
    assert_eq!(terminal.text(), "Title\n\nbold");
}

#[test]
fn a_note_moves_the_open_block_down() {
    let (mut live, mut terminal) = (Live::default(), Terminal::new(30));
    terminal.write(&live.text("Hello **wor", SCREEN));
    terminal.write(&live.pause(SCREEN));
    terminal.write("note\n");
    terminal.write(&live.resume());
    terminal.write(&live.text("ld**", SCREEN));
    terminal.write(&live.end(SCREEN));
    assert_eq!(terminal.text(), "note\nHello world");
}

#[test]
fn c4_a_restart_removes_the_text_that_is_not_rendered() {
    let (mut live, mut terminal) = (Live::default(), Terminal::new(30));
    terminal.write(&live.text("Wrong from the beginning to the end", SCREEN));
    let (paint, left) = live.restart(SCREEN);
    terminal.write(&paint);
    assert!(!left);
    assert_eq!(terminal.text(), "");
    terminal.write(&live.text("Right", SCREEN));
    terminal.write(&live.end(SCREEN));
    assert_eq!(terminal.text(), "Right");

    terminal.write(&live.text("one\n\ntwo", SCREEN));
    assert!(live.restart(SCREEN).1, "a rendered block stays");
}

#[test]
fn a_block_longer_than_the_screen_stays_plain_text() {
    let (mut live, mut terminal) = (Live::default(), Terminal::new(30));
    let code: Vec<String> = (0..40).map(|number| format!("line {number}")).collect();
    let source = format!("```\n{}\n```\n\nafter", code.join("\n"));
    for piece in source.as_bytes().chunks(7) {
        terminal.write(&live.text(std::str::from_utf8(piece).unwrap(), SCREEN));
    }
    terminal.write(&live.end(SCREEN));
    let text = terminal.text();
    for line in code {
        assert_eq!(text.lines().filter(|shown| shown.trim() == line).count(), 1, "{line}");
    }
    assert!(text.ends_with("\n\nafter"), "{text}");
}

proptest! {
    /// Wherever the text is cut, the screen ends up with the same text.
    #[test]
    fn the_pieces_do_not_matter(
        blocks in prop::collection::vec("[a-d*` ]{1,40}|- [a-d]{1,5}\n- [a-d ]{1,20}|```\n[a-d]{1,9}\n```\n|# [a-d]{1,9}", 1..5),
        sizes in prop::collection::vec(1_usize..9, 1..20),
    ) {
        let source = blocks.join("\n\n");
        let (mut live, mut terminal) = (Live::default(), Terminal::new(LOOK.width));
        let mut rest = source.as_str();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            terminal.write(&live.text(piece, SCREEN));
            rest = after;
        }
        terminal.write(&live.end(SCREEN));
        let (mut once, mut reference) = (Live::default(), Terminal::new(LOOK.width));
        reference.write(&once.text(&source, SCREEN));
        reference.write(&once.end(SCREEN));
        prop_assert_eq!(terminal.text(), reference.text());
    }
}

#[test]
fn a_paragraph_without_a_visible_character_leaves_no_blank_line() {
    let source = "```\na\n```\n\n\n` `\n\n*";
    let (mut live, mut terminal) = (Live::default(), Terminal::new(LOOK.width));
    for piece in source.as_bytes().chunks(1) {
        terminal.write(&live.text(std::str::from_utf8(piece).unwrap(), SCREEN));
    }
    terminal.write(&live.end(SCREEN));
    let (mut once, mut reference) = (Live::default(), Terminal::new(LOOK.width));
    reference.write(&once.text(source, SCREEN));
    reference.write(&once.end(SCREEN));
    assert_eq!(
        (terminal.text(), reference.text()),
        ("  a\n\n•".to_owned(), "  a\n\n•".to_owned())
    );
}

#[test]
fn a_line_that_only_resembles_a_fence_opens_no_code_block() {
    let source = "``` `\n\n```\na\n```\n";
    let (mut live, mut terminal) = (Live::default(), Terminal::new(LOOK.width));
    for at in 0..source.len() {
        terminal.write(&live.text(&source[at..=at], SCREEN));
    }
    terminal.write(&live.end(SCREEN));
    assert_eq!(terminal.text(), rendered(source));
}

#[test]
fn a_block_in_pieces_looks_like_the_rendered_block() {
    let (mut live, mut terminal) = (Live::default(), Terminal::new(30));
    let source = "- one\n- two with more words than fit into a line";
    for piece in source.split_inclusive(' ') {
        terminal.write(&live.text(piece, SCREEN));
    }
    terminal.write(&live.end(SCREEN));
    assert_eq!(terminal.text(), rendered(source));
}
