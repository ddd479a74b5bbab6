use super::*;
use proptest::prelude::*;

fn plain(source: &str) -> String {
    let (width, colour) = (40, false);
    render(source, Look { width, colour })
}

fn coloured(source: &str) -> String {
    let (width, colour) = (40, true);
    render(source, Look { width, colour })
}

#[test]
fn paragraphs_are_wrapped_and_separated() {
    let source = "One two three four five six seven eight nine ten.\n\nNext.";
    assert_eq!(
        plain(source),
        "One two three four five six seven eight\nnine ten.\n\nNext.\n"
    );
}

#[test]
fn lists_nest_and_count() {
    let source = "Items:\n\n- one\n- two\n  - inner\n    more\n- three\n\n3. c\n4. d";
    assert_eq!(
        plain(source),
        "Items:\n\n• one\n• two\n  • inner more\n• three\n\n3. c\n4. d\n"
    );
}

#[test]
fn items_wrap_under_their_text() {
    let source = "- a long item that does not fit into one line of forty";
    assert_eq!(
        plain(source),
        "• a long item that does not fit into one\n  line of forty\n"
    );
}

#[test]
fn tasks_show_their_check_boxes() {
    assert_eq!(plain("- [x] done\n- [ ] open"), "• [x] done\n• [ ] open\n");
}

#[test]
fn code_blocks_keep_their_spaces() {
    let source = "```rust\nfn main() {\n    let x = 1;\n}\n```\nafter `in  line`.";
    assert_eq!(
        plain(source),
        "rust\n  fn main() {\n      let x = 1;\n  }\n\nafter in line.\n"
    );
}

#[test]
fn quotes_and_rules() {
    assert_eq!(
        plain("> said\n> so\n\n---"),
        format!("│ said so\n\n{}\n", "─".repeat(40))
    );
}

#[test]
fn a_link_never_hides_where_it_leads() {
    assert_eq!(plain("[bank](http://evil.example)"), "bank (http://evil.example)\n");
    assert_eq!(plain("<http://a.example>"), "http://a.example\n");
}

#[test]
fn tables_are_aligned() {
    let source = "| a | b |\n|---|--:|\n| long | 1 |\n| x | 22 |";
    assert_eq!(plain(source), "a    │  b\n─────┼───\nlong │  1\nx    │ 22\n");
}

#[test]
fn styles_end_with_their_block() {
    assert_eq!(
        coloured("a **bold** `code`\n\n# Head"),
        "a \u{1b}[1mbold\u{1b}[0m \u{1b}[36mcode\u{1b}[0m\n\n\u{1b}[1mHead\u{1b}[0m\n"
    );
    assert_eq!(
        coloured("*one **two***, three"),
        "\u{1b}[3mone\u{1b}[0m \u{1b}[3;1mtwo\u{1b}[0m, three\n"
    );
}

#[test]
fn a_style_ends_with_its_line_and_begins_again_on_the_next() {
    assert_eq!(
        coloured("- **one two three four five six seven eight nine** ten"),
        "• \u{1b}[1mone two three four five six seven\u{1b}[0m\n  \u{1b}[1meight nine\u{1b}[0m ten\n"
    );
}

#[test]
fn a_word_longer_than_the_line_is_not_broken() {
    let address = "http://example.org/".repeat(4);
    assert_eq!(plain(&format!("see <{address}>")), format!("see\n{address}\n"));
}

#[test]
fn empty_items_and_cells_keep_their_place() {
    assert_eq!(plain("- a\n-\n- c"), "• a\n•\n• c\n");
    assert_eq!(plain("| a |\n|:-:|\n|   |\n| wide |"), " a\n────\n\nwide\n");
}

#[test]
fn th19_no_source_character_acts_on_the_terminal() {
    for source in [
        "&#27;[31mred",
        "`\u{1b}]52;c;x\u{7}`",
        "```\n\u{1b}[2J\n```",
        "[x](http://a/\u{202e}b)",
        "|\u{9b}2J|\n|-|\n|&#x9b;1m|",
        "<b\u{1b}c>",
    ] {
        let out = plain(source);
        assert!(
            !out.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']),
            "{source:?} gave {out:?}"
        );
    }
}

proptest! {
    #[test]
    fn th19_any_text_renders_without_panic_and_clean(source in "[-a-c*_`#>|\\[\\]()~\n \t1.\u{1b}\u{9b}\u{202e}日]{0,80}", width in 0_usize..60) {
        let out = render(&source, Look { width, colour: false });
        prop_assert!(out.is_empty() || out.ends_with('\n'));
        prop_assert!(out.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        prop_assert_eq!(out.find('\u{202e}'), None);
    }
}
