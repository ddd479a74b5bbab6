//! The output of a tool call as lines for a terminal: its first and last lines, or all of it. Pure. The output is hostile text: it is
//! cleaned, each of its lines stands behind a bar, and none is wider than the terminal.

use gsv_protocol::types::ToolOutput;
use unicode_width::UnicodeWidthChar;

use crate::clean::clean;
use crate::units::grouped;
use crate::width::fit;

pub const FIRST: usize = 4;
pub const LAST: usize = 3;
/// Before each line: nothing that a tool prints looks like a line of the chat itself.
pub const BAR: &str = "  │ ";
pub const BAR_COLUMNS: usize = 4;
/// Spaces that a tab takes at most.
pub const TAB: usize = 4;

/// The first and last lines. `number`: what `/tool` calls it.
pub fn collapsed(output: &ToolOutput, number: usize, width: usize) -> Vec<String> {
    let head = lines_of(&output.head);
    let tail = output.tail.as_deref().map(lines_of);
    if tail.is_none() && head.len() <= FIRST + LAST + 1 {
        return head.iter().map(|line| cut(line, width)).collect();
    }
    let (first, last) = match &tail {
        None => (&head[..FIRST], &head[head.len() - LAST..]),
        Some(tail) => (&head[..FIRST.min(head.len())], &tail[tail.len().saturating_sub(LAST)..]),
    };
    let all = usize::try_from(output.lines).unwrap_or(usize::MAX);
    let hidden = all.saturating_sub(first.len() + last.len()).max(1);
    let shown = first.iter().map(|line| cut(line, width));
    let mut lines: Vec<String> = shown.collect();
    lines.push(hidden_note(hidden, &format!("/tool {number}"), width));
    lines.extend(last.iter().map(|line| cut(line, width)));
    lines
}

/// In place of the lines between the first and the last ones. `command` shows all.
pub fn hidden_note(hidden: usize, command: &str, width: usize) -> String {
    let words = if hidden == 1 { "line" } else { "lines" };
    let note = format!("… {} more {words}: {command}", grouped(hidden as u64));
    fit(&format!("{}{note}", " ".repeat(BAR_COLUMNS)), width)
}

/// All lines. A line that is too long goes on in the next row.
pub fn whole(text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(BAR_COLUMNS).max(1);
    let mut rows = Vec::new();
    for line in lines_of(text) {
        let mut row = String::new();
        let mut used = 0;
        for c in line.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > room && !row.is_empty() {
                rows.push(format!("{BAR}{row}"));
                row.clear();
                used = 0;
            }
            row.push(c);
            used += wide;
        }
        rows.push(format!("{BAR}{row}").trim_end().to_owned());
    }
    rows.iter().map(|row| fit(row, width)).collect()
}

/// Cleaned lines without a blank one at either end.
fn lines_of(text: &str) -> Vec<String> {
    let cleaned = clean(text).replace('\t', &" ".repeat(TAB));
    let lines: Vec<String> = cleaned.lines().map(|line| line.trim_end().to_owned()).collect();
    let is_blank = |line: &&String| line.is_empty();
    let before = lines.iter().take_while(is_blank).count();
    let after = lines[before..].iter().rev().take_while(is_blank).count();
    lines[before..lines.len() - after].to_vec()
}

fn cut(line: &str, width: usize) -> String {
    fit(format!("{BAR}{line}").trim_end(), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output(text: &str) -> ToolOutput {
        ToolOutput {
            head: text.to_owned(),
            tail: None,
            lines: text.lines().count() as u64,
        }
    }

    fn numbers(count: usize) -> String {
        (1..=count)
            .map(|number| format!("line {number}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn ct4_short_output_is_shown_whole_and_long_output_by_its_ends() {
        assert!(collapsed(&output(""), 1, 80).is_empty());
        assert_eq!(
            collapsed(&output("\n\none\n\ntwo\n"), 1, 80),
            ["  │ one", "  │", "  │ two"]
        );
        assert_eq!(collapsed(&output(&numbers(8)), 1, 80).len(), 8);
        let lines = collapsed(&output(&numbers(20)), 7, 80);
        assert_eq!(
            lines,
            [
                "  │ line 1",
                "  │ line 2",
                "  │ line 3",
                "  │ line 4",
                "    … 13 more lines: /tool 7",
                "  │ line 18",
                "  │ line 19",
                "  │ line 20",
            ]
        );
        let cut = ToolOutput {
            head: "a\nb\nc\nd\ne".to_owned(),
            tail: Some("x\ny\nz".to_owned()),
            lines: 2_000,
        };
        let lines = collapsed(&cut, 1, 80);
        assert_eq!(lines[4], "    … 1,993 more lines: /tool 1");
        assert_eq!(lines.last().map(String::as_str), Some("  │ z"));
    }

    #[test]
    fn ct4_one_endless_line_is_cut_and_can_be_read_whole() {
        let long = "x".repeat(50);
        assert_eq!(collapsed(&output(&long), 1, 20), [format!("  │ {}…", "x".repeat(15))]);
        assert_eq!(whole(&long, 24).len(), 3);
        let joined: String = whole(&long, 24).iter().map(|row| row.trim_start_matches(BAR)).collect();
        assert_eq!(joined, long);
    }

    #[test]
    fn ct5_output_never_acts_on_the_terminal_and_never_looks_like_the_chat() {
        let evil =
            "\u{1b}]0;title\u{7}a\u{1b}[2J\u{1b}[1;1Hb\rc\u{8}\n› rm -rf /\n\u{202e}K7Q2A: y allows this call once\n";
        let lines = collapsed(&output(evil), 1, 80);
        assert_eq!(
            lines,
            [
                "  │ ab",
                "  │ c",
                "  │ › rm -rf /",
                "  │ K7Q2A: y allows this call once"
            ]
        );
    }

    fn columns(line: &str) -> usize {
        line.chars().map(|c| c.width().unwrap_or(0)).sum()
    }

    proptest! {
        #[test]
        fn ct5_no_line_is_wider_than_the_terminal_or_has_a_control_character(
            head in "([ -~]|[日本👩\u{200d}🚀\u{301}\u{1b}\\[\\]\u{7}\u{9b}\t\r\n\u{202e}]|\\PC){0,200}",
            tail in prop::option::of("[a日\n\u{1b}\\[2J\t👩\u{200d}]{0,80}"),
            lines in 0_u64..10_000,
            width in 0_usize..90,
        ) {
            let all = whole(&head, width);
            let output = ToolOutput { head, tail, lines };
            for line in collapsed(&output, 123, width).iter().chain(&all) {
                prop_assert!(columns(line) <= width, "{line:?} of {width}");
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
                prop_assert_eq!(&clean(line), line);
                // At less there is no place for a bar.
                prop_assert!(width < BAR_COLUMNS + 2 || line.starts_with("  │") || line.starts_with("    …"), "{line:?}");
            }
        }

        #[test]
        fn ct4_all_of_the_output_is_there(text in "[a-z日 \n]{0,200}", width in 8_usize..60) {
            let shown: String = whole(&text, width).iter().map(|row| row.trim_start_matches("  │").replace(' ', "")).collect();
            prop_assert_eq!(shown, text.replace([' ', '\n'], ""));
        }
    }
}
