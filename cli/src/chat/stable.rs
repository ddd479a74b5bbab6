//! Finds the part of a growing Markdown text whose rendering is final. Pure.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use crate::markdown::OPTIONS;

/// The length of the complete blocks at the beginning of a growing text: later text cannot change how they look.
pub fn stable_prefix(text: &str) -> usize {
    // The last line may still grow into something else: an ordinary word stands for it.
    let (whole, last_line) = text.split_at(line_start(text, text.len()));
    let probe = format!("{whole}x");
    let mut blocks = Vec::new();
    let mut depth = 0;
    for (event, range) in Parser::new_ext(&probe, OPTIONS).into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            let kind = Event::Start(Tag::CodeBlock(CodeBlockKind::Indented));
            let may_go_on = event == kind || matches!(event, Event::Start(Tag::List(_)));
            blocks.push((line_start(&probe, range.start), may_go_on));
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    // An indented line, or another item, may belong to the block before it, even after a blank line.
    let continues = last_line.is_empty() || last_line.starts_with([' ', '\t']) || may_be_item(last_line);
    match blocks.as_slice() {
        [.., (start, true), (last, _)] if *last == whole.len() && continues => *start,
        [.., (last, _)] => *last,
        [] => 0,
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Whether a line begins a list item, or may begin one when it grows.
fn may_be_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match line.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None if digits.len() < line.len() => digits.strip_prefix(['.', ')']).unwrap_or(digits),
        None => return false,
    };
    rest.is_empty() || rest.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn complete_blocks_are_stable_and_open_blocks_are_not() {
        for (text, stable) in [
            ("", ""),
            ("open par", ""),
            ("par\n\n", "par\n\n"),
            ("# head\n", "# head\n"),
            ("    code\n\n", ""),
            ("par\n\nnext", "par\n\n"),
            ("- a\n\n  still a", ""),
            ("- a\n\nnext", "- a\n\n"),
            ("- a\n\n-", ""),
            ("1. a\n\n2", ""),
            ("- a\n\n**bold", "- a\n\n"),
            ("par\n```sh\necho\n\nx", "par\n"),
            ("```sh\necho\n```\n", "```sh\necho\n```\n"),
            ("``` `\n\nnext", "``` `\n\n"),
            ("~~~\n```\n~~~\nrest", "~~~\n```\n~~~\n"),
        ] {
            assert_eq!(&text[..stable_prefix(text)], stable, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_stable_part_only_grows(source in "[-a-c`~ \n]{0,60}") {
            let mut before = 0;
            for end in source.char_indices().map(|(at, _)| at).chain([source.len()]) {
                let stable = stable_prefix(&source[..end]);
                prop_assert!(stable >= before && stable <= end);
                before = stable;
            }
        }
    }
}
