use super::*;
use proptest::prelude::*;

const LOOK: Look = Look {
    width: 30,
    colour: true,
};

/// Feeds a text in pieces of these sizes, in characters. Gives what is printed up to the end of the text, and in all.
fn printed(source: &str, sizes: &[usize]) -> (String, String) {
    let mut lines = Lines::default();
    let mut out = String::new();
    let mut rest: Vec<char> = source.chars().collect();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let piece: String = rest.drain(..(*size).clamp(1, rest.len())).collect();
        out.push_str(&lines.text(&piece, LOOK));
    }
    let before_the_end = out.clone();
    out.push_str(&lines.end(LOOK));
    (before_the_end, out)
}

fn characters(text: &str) -> String {
    clean(text).chars().filter(|c| is_text(*c)).collect()
}

#[test]
fn f43_a_line_is_printed_as_soon_as_no_later_text_can_change_it() {
    for (source, lines) in [
        // The words of a paragraph, but the last line.
        ("one two three four five six seven eight", 1),
        ("one two three four five six ", 0),
        ("**bold** two three four five six seven eight", 1),
        // A mark that may still pair holds back what comes after it.
        ("one **two three four five six seven eight nine", 0),
        (
            "one two three four five six seven **eight nine ten eleven twelve thirteen",
            1,
        ),
        ("snake_case words and a * b with 2 < 3 and [1] are no marks", 1),
        ("one\\\ntwo\nthree four five six seven eight nine ", 2),
        // Each line of code.
        ("```sh\necho 1\necho 2\necho", 3),
        ("```sh\necho 1\n\n\n", 2),
        ("``", 0),
        ("    code\n    more\n    x", 2),
        // Items, but the last line of the last one.
        ("- one\n- two\n- three ", 2),
        ("1. one\n   - deeper\n2. two ", 2),
        ("1. one\n   - deeper\n2.", 1),
        ("- a\n  ```\n  x\n  y", 2),
        ("> one\n> two three four five six seven eight ", 1),
        // A table when it is complete.
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", 0),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nafter ", 3),
        ("some words | that may be the head of a table\n", 0),
        ("# head", 0),
        ("# head\n", 1),
    ] {
        let (out, _) = printed(source, &[1]);
        assert_eq!(out.lines().count(), lines, "{source:?}: {out:?}");
    }
}

#[test]
fn f43_a_line_that_only_looks_like_html_or_code_so_far_settles_nothing_above_it() {
    for source in [
        "a((a_aaaaaaaa(aaa`_aaa\n<dd_",
        "one two three four five _six seven\n```x`y_ eight",
        "- one two three four five _six seven\n  <div_ eight",
        "> one two three four five _six seven\n> <div_ eight",
    ] {
        for size in 1..6 {
            let (_, out) = printed(source, &[size]);
            assert_eq!(
                characters(&out),
                characters(&render(source, LOOK)),
                "{source:?} in pieces of {size}"
            );
        }
    }
}

#[test]
fn f43_code_is_printed_line_by_line_and_once() {
    let code: Vec<String> = (0..40).map(|number| format!("line {number}")).collect();
    let source = format!("See:\n\n```\n{}\n```\n\nafter", code.join("\n"));
    let (_, out) = printed(&source, &[7]);
    assert_eq!(out, render(&source, LOOK));
}

#[test]
fn th19_what_is_printed_is_clean_wherever_it_was_cut() {
    let source = "red \u{1b}[31mtext\u{1b}]0;title\u{7} and\r\nmore \u{202e}words that fill the line\n";
    let (_, out) = printed(source, &[1]);
    assert_eq!(out, render(&clean(source), LOOK));
}

#[test]
fn c4_a_text_that_begins_again_says_whether_a_part_was_printed() {
    let mut lines = Lines::default();
    assert_eq!(lines.text("Wrong from ", LOOK), "");
    assert!(!lines.restart());
    assert_ne!(lines.text("one\n\ntwo ", LOOK), "");
    assert!(lines.restart());
    assert_eq!(lines.text("Right.", LOOK), "");
    assert_eq!(lines.end(LOOK), "Right.\n");
}

#[test]
fn f43_a_late_underline_changes_only_the_style_of_the_lines_that_follow() {
    let source = "one two three four five six seven eight\n===\n";
    let (_, out) = printed(source, &[1]);
    assert_eq!(clean(&out), clean(&render(source, LOOK)));
    assert!(out.starts_with("one two") && out.contains("\u{1b}[1m"), "{out:?}");
}

#[test]
fn f43_a_window_that_changes_its_width_loses_and_repeats_nothing() {
    let source = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    let mut lines = Lines::default();
    let mut out = String::new();
    for (number, word) in source.split_inclusive(' ').enumerate() {
        let width = 20 + number % 7 * 5;
        out.push_str(&lines.text(word, Look { width, ..LOOK }));
    }
    out.push_str(&lines.end(LOOK));
    assert_eq!(characters(&out), characters(source));
}

#[test]
fn f43_a_line_break_that_begins_an_item_is_not_printed_as_a_backslash() {
    let source = "a|b\naaaa\n* \\\na";
    let mut whole = Lines::default();
    let mut out = whole.text(source, LOOK);
    out.push_str(&whole.end(LOOK));
    assert_eq!(characters(&out), characters(&render(source, LOOK)));
}

fn blocks() -> impl Strategy<Value = String> {
    let words = "([a-e]{1,9}|\\*\\*[a-e]( [a-e]{1,3}){0,3}\\*\\*|`[a-e]{1,4}`|_[a-e]{1,3}_|[a-c]_[a-c]|\\[[a-c]{1,3}\\]\\(x:y\\)|日本|2 < 3)";
    let line = format!("{words}( {words}){{0,12}}");
    let paragraph = format!("{line}(\n[a-e]{{1,4}} {line}){{0,2}}");
    let list = format!("- {line}(\n- {line}){{0,3}}(\n  - {line}){{0,2}}");
    let numbered = format!("1\\. {line}(\n2\\. {line}){{0,1}}");
    let of = |pattern: &str| prop::string::string_regex(pattern).unwrap();
    prop_oneof![
        4 => of(&paragraph),
        2 => of(&list),
        1 => of(&numbered),
        1 => of(&format!("> {line}(\n> {line}){{0,2}}")),
        2 => of("```(sh)?\n([a-e *_]{0,12}\n){0,6}```"),
        1 => of("#{1,3} [a-e]{1,9}( [a-e]{1,9}){0,6}"),
        1 => of("\\| [a-e]{1,4} \\| b \\|\n\\|---\\|---\\|(\n\\| [a-e]{1,4} \\| `d` \\|){0,3}"),
        1 => of("---"),
    ]
}

proptest! {
    /// Wherever a text is cut, its printed lines are the rendered text.
    #[test]
    fn f43_the_lines_are_the_rendered_text(
        blocks in prop::collection::vec(blocks(), 1..5),
        sizes in prop::collection::vec(1_usize..12, 1..20),
    ) {
        let source = blocks.join("\n\n");
        let mut whole = Lines::default();
        let mut once = whole.text(&source, LOOK);
        once.push_str(&whole.end(LOOK));
        let (_, out) = printed(&source, &sizes);
        prop_assert_eq!(&out, &once);
        prop_assert_eq!(characters(&out), characters(&render(&source, LOOK)));
    }

    /// Whatever the text is, no character is lost or repeated.
    #[test]
    fn f43_no_character_is_lost_or_repeated(
        source in "([a-d]{1,4}|[-*_`~|#>+=\\[\\]()<!\\\\0-2. \n]){0,60}",
        sizes in prop::collection::vec(1_usize..9, 1..20),
    ) {
        let mut whole = Lines::default();
        let mut once = whole.text(&source, LOOK);
        once.push_str(&whole.end(LOOK));
        let (_, out) = printed(&source, &sizes);
        prop_assert_eq!(characters(&out), characters(&once), "{:?}", source);
    }
}
