//! Finds the part of a growing Markdown text whose rendering is final. Pure.

/// The length of the complete blocks at the beginning of a growing text: later text cannot change how they look.
pub fn stable_prefix(text: &str) -> usize {
    let mut stable = 0;
    let mut fence: Option<(char, usize)> = None;
    let mut after_blank = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let whole = line.ends_with('\n');
        let body = line.trim_end();
        match fence {
            Some((mark, length)) => {
                let closing = body.trim_start();
                if whole && closing.chars().count() >= length && closing.chars().all(|c| c == mark) {
                    fence = None;
                    stable = at;
                }
            }
            None if body.is_empty() => {
                if whole && after_blank.is_none() {
                    after_blank = Some(at);
                }
            }
            None => {
                // An indented line, or another item, may belong to the list before the blank line.
                if let Some(border) = after_blank.take()
                    && !line.starts_with([' ', '\t'])
                    && !may_be_item(body)
                {
                    stable = border;
                }
                let opening = body.trim_start();
                let indent = body.len() - opening.len();
                let mark = opening
                    .chars()
                    .next()
                    .filter(|c| (*c == '`' || *c == '~') && indent < 4);
                if let Some(mark) = mark {
                    let length = opening.chars().take_while(|c| *c == mark).count();
                    // The info string of a backtick fence has no backtick; such a line is ordinary text.
                    let is_fence = mark == '~' || !opening.trim_start_matches('`').contains('`');
                    if length >= 3 && whole && is_fence {
                        if indent == 0 {
                            stable = stable.max(start);
                        }
                        fence = Some((mark, length));
                    }
                }
            }
        }
    }
    stable
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
            ("par\n\n", ""),
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
