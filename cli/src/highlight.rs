//! Colours for code in Markdown: comments, strings, numbers and keywords of common languages, from one table. Pure. It reads no
//! grammar: a strange construct gets a wrong colour, and never another text. A line depends only on those before it, so a block can be
//! shown while it arrives.

const KEYWORD: &str = "35";
const STRING: &str = "32";
const NUMBER: &str = "33";
const COMMENT: &str = "2";
const ADDED: &str = "32";
const REMOVED: &str = "31";

struct Language {
    names: &'static [&'static str],
    /// What begins a comment up to the end of the line.
    comments: &'static [&'static str],
    block: Option<(&'static str, &'static str)>,
    /// Quotes of strings that end with their line.
    quotes: &'static [char],
    /// Quotes of strings that may have many lines.
    long_quotes: &'static [&'static str],
    keywords: &'static str,
    any_case: bool,
}

const C_BLOCK: Option<(&str, &str)> = Some(("/*", "*/"));
const LANGUAGES: [Language; 12] = [
    Language {
        names: &["rust", "rs"],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"'],
        long_quotes: &[],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
        any_case: false,
    },
    Language {
        names: &["python", "py"],
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\"", "'''"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case",
        any_case: false,
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"', '\''],
        long_quotes: &["`"],
        keywords: "abstract as async await break case catch class const continue default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while yield",
        any_case: false,
    },
    Language {
        names: &["go", "golang"],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"', '\''],
        long_quotes: &["`"],
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
        any_case: false,
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "kotlin", "kt", "csharp", "cs", "swift", "scala", "php",
        ],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\""],
        keywords: "abstract auto bool boolean break byte case catch char class const continue def default delete do double else enum extends extern false final finally float for fun func function goto if implements import inline int interface internal is let long namespace new null nullptr object operator override package private protected public return short signed sizeof static string struct super switch template this throw throws true try typedef union unsigned using val var virtual void volatile when while",
        any_case: false,
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "fish", "console"],
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "case do done elif else end esac exit export fi for function if in local return set then until unset while",
        any_case: false,
    },
    Language {
        names: &["sql"],
        comments: &["--"],
        block: C_BLOCK,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "add all alter and as asc between by case create cross delete desc distinct drop else end exists from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references right select set table then union unique update values view when where with",
        any_case: true,
    },
    Language {
        names: &["json", "jsonc", "json5"],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"'],
        long_quotes: &[],
        keywords: "true false null",
        any_case: false,
    },
    Language {
        names: &["yaml", "yml", "toml", "ini"],
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\""],
        keywords: "true false null yes no on off",
        any_case: false,
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex"],
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "alias and begin break case class def defmodule defp do else elsif end ensure false fn for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield",
        any_case: false,
    },
    Language {
        names: &["css", "scss", "less"],
        comments: &["//"],
        block: C_BLOCK,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "auto none inherit initial important media import",
        any_case: false,
    },
    Language {
        names: &["lua"],
        comments: &["--"],
        block: None,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
        any_case: false,
    },
];

/// What goes on in the next line.
#[derive(Clone, Copy)]
enum Open {
    Nothing,
    /// A comment or a long string, its style and what ends it.
    Until(&'static str, &'static str),
}

/// The lines with their styles. None: the language is not known.
pub fn paint(language: &str, lines: &[&str]) -> Option<Vec<String>> {
    let name = language.to_ascii_lowercase();
    if matches!(name.as_str(), "diff" | "patch") {
        return Some(lines.iter().map(|line| diff_line(line)).collect());
    }
    let language = LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name.as_str()))?;
    let mut open = Open::Nothing;
    Some(lines.iter().map(|line| language.line(line, &mut open)).collect())
}

fn diff_line(line: &str) -> String {
    let style = match line.chars().next() {
        Some('+') => ADDED,
        Some('-') => REMOVED,
        Some('@') => COMMENT,
        _ => return line.to_owned(),
    };
    styled(style, line)
}

fn styled(style: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    }
}

impl Language {
    fn line(&self, line: &str, open: &mut Open) -> String {
        let mut out = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (style, length) = self.token(rest, line.len() - rest.len(), line, open);
            let (token, after) = rest.split_at(length);
            if style.is_empty() {
                out.push_str(token);
            } else {
                out.push_str(&styled(style, token));
            }
            rest = after;
        }
        out
    }

    /// The style and the length of the next token, which is never empty.
    fn token(&self, rest: &str, at: usize, line: &str, open: &mut Open) -> (&'static str, usize) {
        if let Open::Until(style, end) = *open {
            let Some(found) = rest.find(end) else {
                return (style, rest.len());
            };
            *open = Open::Nothing;
            return (style, found + end.len());
        }
        let begins_word = line[..at].chars().next_back().is_none_or(|c| !is_word(c));
        // In a shell `#` is a comment only where a word begins.
        if self
            .comments
            .iter()
            .any(|mark| rest.starts_with(mark) && (*mark != "#" || begins_word))
        {
            return (COMMENT, rest.len());
        }
        let longer = self.block.into_iter().map(|(begin, end)| (COMMENT, begin, end));
        let longer = longer.chain(self.long_quotes.iter().map(|quote| (STRING, *quote, *quote)));
        for (style, begin, end) in longer {
            if let Some(inside) = rest.strip_prefix(begin) {
                if let Some(found) = inside.find(end) {
                    return (style, begin.len() + found + end.len());
                }
                *open = Open::Until(style, end);
                return (style, rest.len());
            }
        }
        let first = rest.chars().next().unwrap_or(' ');
        if self.quotes.contains(&first) {
            return (STRING, string(rest, first));
        }
        let word: usize = rest.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
        if word == 0 {
            return ("", first.len_utf8());
        }
        let text = &rest[..word];
        if first.is_ascii_digit() {
            return (NUMBER, word);
        }
        let is_keyword = |keyword: &str| {
            if self.any_case {
                keyword.eq_ignore_ascii_case(text)
            } else {
                keyword == text
            }
        };
        (
            if self.keywords.split(' ').any(is_keyword) {
                KEYWORD
            } else {
                ""
            },
            word,
        )
    }
}

/// The length of a string that ends with its quote or its line.
fn string(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::clean;
    use proptest::prelude::*;

    fn painted(language: &str, code: &str) -> Vec<String> {
        paint(language, &code.split('\n').collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn ct6_comments_strings_numbers_and_keywords_have_a_colour() {
        assert_eq!(
            painted("rust", "let a = \"x\\\"y\"; // 7"),
            ["\u{1b}[35mlet\u{1b}[0m a = \u{1b}[32m\"x\\\"y\"\u{1b}[0m; \u{1b}[2m// 7\u{1b}[0m"]
        );
        assert_eq!(
            painted("SQL", "Select 42"),
            ["\u{1b}[35mSelect\u{1b}[0m \u{1b}[33m42\u{1b}[0m"]
        );
        assert_eq!(painted("sh", "echo a#b"), ["echo a#b"], "inside a word # is no comment");
        assert_eq!(painted("diff", "+a\n b"), ["\u{1b}[32m+a\u{1b}[0m", " b"]);
        assert!(paint("brainfuck", &["+"]).is_none() && paint("", &["x"]).is_none());
    }

    #[test]
    fn ct6_a_comment_or_string_of_many_lines_goes_on() {
        assert_eq!(
            painted("c", "a /* b\nc */ d"),
            ["a \u{1b}[2m/* b\u{1b}[0m", "\u{1b}[2mc */\u{1b}[0m d"]
        );
        assert_eq!(
            painted("python", "\"\"\"x\nif\"\"\" if"),
            [
                "\u{1b}[32m\"\"\"x\u{1b}[0m",
                "\u{1b}[32mif\"\"\"\u{1b}[0m \u{1b}[35mif\u{1b}[0m"
            ]
        );
    }

    proptest! {
        #[test]
        fn ct6_the_text_is_never_changed_and_a_line_depends_only_on_those_before_it(
            language in 0..LANGUAGES.len(),
            code in "([a-z0-9 \"'`/*#-]|if|\\\\|\n|日|\u{301}){0,120}",
            more in "[a-z\"*/`\n]{0,20}",
        ) {
            let language = LANGUAGES[language].names[0];
            let lines = painted(language, &code);
            let plain: Vec<String> = lines.iter().map(|line| clean(line)).collect();
            prop_assert_eq!(plain.join("\n"), code.clone());
            let longer = painted(language, &format!("{code}\n{more}"));
            prop_assert_eq!(&longer[..lines.len()], &lines[..]);
        }
    }
}
