//! Paths that the configuration of a repository names: its hooks in another place, further configuration, and programs that git starts. What
//! is there runs outside the sandbox when the user runs git. PURE: takes the text.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;

/// Names that one configuration gives, at most.
pub(crate) const VALUES: usize = 2_000;
/// Commands in the quotes of commands that are read.
const NESTED: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// `core.hooksPath`: a folder, relative to the files of the repository.
    Hooks(String),
    /// `include.path`: a file, relative to the file that names it.
    Include(String),
    /// `core.worktree`: where the files of the repository are, relative to its git directory.
    WorkTree(String),
    /// A word of a value that may be the path of a program or of its file.
    Word(String),
}

/// Ends of keys whose values are commands. A file that they name may be written without a slash: `sh watch.sh`.
const COMMANDS: [&str; 20] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "filter",
    "fsmonitor",
    "helper",
    "hook",
    "pack",
    "pager",
    "path",
    "process",
    "program",
    "proxy",
    "smudge",
    "textconv",
    "update",
];

/// `None`: there are too many.
pub(crate) fn named(text: &[u8]) -> Option<Vec<Named>> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n");
    let mut reader = Reader {
        letters: text.trim_start_matches('\u{feff}').chars().peekable(),
    };
    let mut section = String::new();
    let mut found = Vec::new();
    while let Some(entry) = reader.next_entry() {
        match entry {
            Entry::Section(name) => section = name,
            Entry::Value(key, value) => found.extend(named_by(&section, &key, value)),
        }
        if found.len() > VALUES {
            return None;
        }
    }
    Some(found)
}

fn named_by(section: &str, key: &str, value: String) -> Vec<Named> {
    match (section, key) {
        ("core", "hookspath") => vec![Named::Hooks(value)],
        ("core", "worktree") => vec![Named::WorkTree(value)],
        ("include" | "includeif", "path") => vec![Named::Include(value)],
        // Names of branches, of which there may be thousands.
        ("branch", _) | ("remote", "fetch" | "push") => vec![],
        _ => {
            let is_command =
                section == "alias" || section == "pager" || COMMANDS.iter().any(|command| key.ends_with(command));
            let parts = value.split(|letter: char| letter.is_whitespace() || "!;&|()\"'`=".contains(letter));
            let mut words: Vec<String> = parts.map(str::to_owned).collect();
            // The path of a program may have blanks, and other letters at which a value is split.
            let whole = value.trim_start_matches('!').trim_start();
            words.push(whole.to_owned());
            words.extend(shell_words(whole, NESTED));
            let mut seen = HashSet::new();
            words.retain(|word| !word.is_empty() && (is_command || word.contains('/')) && seen.insert(word.clone()));
            words.into_iter().map(Named::Word).collect()
        }
    }
}

/// The words of a command as a shell reads them: a blank in quotes, or behind a backslash, belongs to its word. Also each part in quotes, the
/// words of a command in quotes, and what follows the `=` of an option.
fn shell_words(value: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = value.chars();
    let (mut word, mut quote, mut quoted) = (String::new(), None, String::new());
    loop {
        let letter = letters.next();
        match (quote, letter) {
            (_, Some('\\')) if quote != Some('\'') => {
                let next = letters.next();
                word.extend(next);
                // An inner command reads its own backslashes.
                quoted.extend(next.filter(|next| !"\"\\$`".contains(*next)).map(|_| '\\'));
                quoted.extend(next);
            }
            (None, Some(letter @ ('\'' | '"'))) => {
                quote = Some(letter);
                quoted.clear();
            }
            (Some(end), letter) if letter == Some(end) || letter.is_none() => {
                quote = None;
                if depth > 0 && quoted.contains(char::is_whitespace) {
                    found.extend(shell_words(&quoted, depth - 1));
                }
                found.push(std::mem::take(&mut quoted));
                if letter.is_none() {
                    // The quote was never closed.
                    found.push(std::mem::take(&mut word));
                    break;
                }
            }
            (Some(_), Some(letter)) => {
                word.push(letter);
                quoted.push(letter);
            }
            (None, Some(letter)) if !letter.is_whitespace() && !";&|()<>`".contains(letter) => word.push(letter),
            (None, _) => {
                found.extend(word.split_once('=').map(|(_, rest)| rest.to_owned()));
                found.push(std::mem::take(&mut word));
                if letter.is_none() {
                    break;
                }
            }
            (Some(_), None) => break,
        }
    }
    found
}

enum Entry {
    /// Its name in lower case, without the name of a part of it.
    Section(String),
    /// The key in lower case, and the value as git reads it.
    Value(String, String),
}

struct Reader<'a> {
    letters: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    fn next_entry(&mut self) -> Option<Entry> {
        loop {
            match self.letters.next()? {
                '#' | ';' => self.skip_line(),
                '[' => return Some(Entry::Section(self.section())),
                letter if letter.is_ascii_alphabetic() => {
                    let mut key = String::from(letter);
                    while let Some(more) = self
                        .letters
                        .next_if(|next| next.is_ascii_alphanumeric() || *next == '-')
                    {
                        key.push(more);
                    }
                    while self.letters.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
                    // A key without a value is true.
                    if self.letters.next_if_eq(&'=').is_some() {
                        return Some(Entry::Value(key.to_lowercase(), self.value()));
                    }
                }
                _ => {}
            }
        }
    }

    fn skip_line(&mut self) {
        while self.letters.next().is_some_and(|letter| letter != '\n') {}
    }

    /// `core` of `core]`, and `filter` of `filter "lfs"]`.
    fn section(&mut self) -> String {
        let mut name = String::new();
        let mut is_name = true;
        for letter in self.letters.by_ref().take_while(|letter| !matches!(letter, ']' | '\n')) {
            is_name &= !matches!(letter, ' ' | '\t' | '"' | '.');
            if is_name {
                name.push(letter);
            }
        }
        name.to_lowercase()
    }

    /// Up to the end of the line, without quotes and a comment. A line that ends in a backslash goes on.
    fn value(&mut self) -> String {
        let mut out = String::new();
        let mut in_quotes = false;
        while let Some(letter) = self.letters.next() {
            match letter {
                '\n' => break,
                '"' => in_quotes = !in_quotes,
                '\\' => match self.letters.next() {
                    Some('\n') | None => {}
                    Some('t') => out.push('\t'),
                    Some('n') => out.push('\n'),
                    Some('b') => out.push('\u{8}'),
                    Some(letter) => out.push(letter),
                },
                '#' | ';' if !in_quotes => {
                    self.skip_line();
                    break;
                }
                letter => out.push(letter),
            }
        }
        out.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb5_the_path_of_a_program_may_have_blanks() {
        let words = |value: &str| {
            let text = format!("[core]\n fsmonitor = {value}\n");
            let found = named(text.as_bytes()).unwrap().into_iter();
            let words = found.filter_map(|name| match name {
                Named::Word(word) => Some(word),
                _ => None,
            });
            words.collect::<Vec<_>>()
        };
        for value in [
            r#""'./my tools/watch.sh'""#,
            r"'./my tools/watch.sh' --all",
            r#"sh \"./my tools/watch.sh\" --all"#,
            r"./my\\ tools/watch.sh --all",
            r"./my tools/watch.sh",
            r#"./'my tools'/"watch.sh""#,
            r"X=1 sh './my tools/watch.sh'; true",
            r"sh --file='./my tools/watch.sh'",
            r#"sh -c \"'./my tools/watch.sh' x\""#,
            r"sh -c './my\\ tools/watch.sh x'",
            r#"sh -c \"./my\\ tools/watch.sh x\""#,
            r"'./my tools/watch.sh",
            r"(./my\\ tools/watch.sh)",
        ] {
            let words = words(value);
            assert!(
                words.iter().any(|word| word == "./my tools/watch.sh"),
                "{value}: {words:?}"
            );
            assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len(), "{words:?}");
        }
        assert_eq!(words("watch"), ["watch"]);
        for path in ["./a;b/watch", "./a(b)/watch", "./a=b/watch", "./a!/watch"] {
            assert!(
                words(&format!("\"'{path}' --all\"")).contains(&path.to_owned()),
                "{path}"
            );
        }
        assert_eq!(words("sh \\\\"), ["sh", "\\", "sh \\"]);
    }

    #[test]
    fn sb5_what_a_configuration_names_is_read_as_git_reads_it() {
        let text = b"# x\n[core]\n\tbare = false\n\tHooksPath = \".githooks\" ; here\n\tworktree = ../../files\n\
            [core] fsmonitor = sh watch.sh\n[include]\n path = ../more config\n[includeIf \"gitdir:~/x/\"] path=/etc/other\n\
            [filter \"lfs\"]\n clean = ./bin/clean -- %f\n[alias]\n x = !tools/x.sh \\\n --all\n\
            [remote \"origin\"]\n url = ../other\n fetch = +refs/heads/*:refs/remotes/origin/*\n[user]\n name = Sam Smith\n";
        let word = |text: &str| Named::Word(text.to_owned());
        assert_eq!(
            named(text).unwrap(),
            [
                Named::Hooks(".githooks".to_owned()),
                Named::WorkTree("../../files".to_owned()),
                word("sh"),
                word("watch.sh"),
                word("sh watch.sh"),
                Named::Include("../more config".to_owned()),
                Named::Include("/etc/other".to_owned()),
                word("./bin/clean"),
                word("--"),
                word("%f"),
                word("./bin/clean -- %f"),
                word("tools/x.sh"),
                word("--all"),
                word("tools/x.sh  --all"),
                word("../other"),
            ]
        );
        let hooks = |text: &str| named(text.as_bytes()).unwrap().contains(&Named::Hooks("a".to_owned()));
        for text in [
            "\u{feff}[core]\nhooksPath = a",
            "# a comment \\\n[core]\nhooksPath = a",
            "[core]\nx = y\\\\\nhooksPath = a",
            "[core] ; \\\n\thooksPath=\"a\" # b",
            "[core]\n hooksPath = \\ta",
            "[core]\r\nbare\r\nhooksPath = \\\r\na\r\n",
        ] {
            assert!(hooks(text), "{text:?}: {:?}", named(text.as_bytes()));
        }
        for text in [
            "= b\n[]\nhookspath = a",
            "[x]\nhooksPath = a",
            "[core]\nx = y \\\nhooksPath = a",
        ] {
            assert!(!hooks(text), "{text:?}");
        }
        let branches = "[branch \"b\"]\n remote = origin\n merge = refs/heads/b\n".repeat(10_000);
        assert!(hooks(&format!("{branches}[core]\n hooksPath = a\n")));
        let many = |count| format!("[alias]\n{}", "a = !x/y\n".repeat(count));
        assert_eq!(named(many(VALUES).as_bytes()).map(|found| found.len()), Some(VALUES));
        assert_eq!(named(many(VALUES + 1).as_bytes()), None);
    }
}
