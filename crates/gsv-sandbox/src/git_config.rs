//! Paths that the configuration of a repository names: its hooks in another place, further configuration, and programs that git starts. What
//! is there runs outside the sandbox when the user runs git. PURE: takes the text.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;

/// Paths that one configuration names, at most.
pub(crate) const VALUES: usize = 2_000;
/// Commands in the quotes of commands that are read.
const NESTED: usize = 3;
/// Folders that one command changes to, at most.
const FOLDERS: usize = 4;
/// Bytes of such a folder, and letters of a substitution.
const LENGTH: usize = 512;
/// Substitutions of one command that are not closed. Each of them costs a reading of `LENGTH`.
const UNCLOSED: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    /// `core.hooksPath`: a folder, relative to the files of the repository. Also `init.templateDir`, whose hooks git copies.
    Hooks(String),
    /// `include.path`: a file, relative to the file that names it.
    Include(String),
    /// `core.worktree`: where the files of the repository are, relative to its git directory.
    WorkTree(String),
    /// A word of a value that may be the path of a program or of its file.
    Word(String),
    /// A folder that a command changes to, and a later word of the command.
    Below(String, String),
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
        ("core", "hookspath") | ("init", "templatedir") => vec![Named::Hooks(value)],
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
            let mut below = Vec::new();
            for command in [whole.to_owned(), without_substitutions(whole)] {
                let found = shell_words(&command, NESTED);
                below.extend(below_folders(&found));
                words.extend(found);
            }
            let mut seen = HashSet::new();
            words.retain(|word| !word.is_empty() && (is_command || word.contains('/')) && seen.insert(word.clone()));
            let words = words.into_iter().map(Named::Word);
            let mut seen = HashSet::new();
            below.retain(|named| is_command && seen.insert(named.clone()));
            words.chain(below).collect()
        }
    }
}

/// Words behind `cd FOLDER` (or `pushd`, or the option `-C`) mean files in that folder. `words`: of a command, in their order.
fn below_folders(words: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut folders: Vec<String> = Vec::new();
    let mut is_folder = false;
    for word in words
        .iter()
        .filter(|word| !word.is_empty() && !word.starts_with('-') || *word == "-C")
    {
        let is_relative = !word.starts_with(['/', '~', '$']);
        if ["cd", "pushd", "-C"].contains(&word.as_str()) {
            is_folder = true;
        } else if is_folder {
            is_folder = false;
            // It may be relative to the folder before it.
            let before = folders.iter().filter(|folder| is_relative && folder.len() < LENGTH);
            let inner: Vec<String> = before.map(|folder| format!("{folder}/{word}")).collect();
            folders = [vec![word.clone()], inner, folders].concat();
            folders.truncate(FOLDERS);
        } else if is_relative && found.len() <= VALUES && !word.contains(char::is_whitespace) {
            found.extend(folders.iter().map(|folder| Named::Below(folder.clone(), word.clone())));
        }
    }
    found
}

/// The command with `.` in place of what the shell computes: `$(git rev-parse --show-toplevel)/x` is `./x`, which git starts in the files of
/// the repository. `$HOME` is `~`.
fn without_substitutions(command: &str) -> String {
    let mut plain = String::new();
    let mut rest = command;
    let mut unclosed = 0;
    while let Some(at) = rest.find(['$', '`']).filter(|_| unclosed < UNCLOSED) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let (computed, after) = from.split_at(substitution(from));
        unclosed += usize::from(computed.len() == 1);
        let name = computed.trim_start_matches(['$', '{']);
        let is_name = |known: &str| {
            let after = name.strip_prefix(known);
            after
                .is_some_and(|after| !after.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
        };
        // `GIT_PREFIX` ends with a slash.
        let has_slash = is_name("GIT_PREFIX") && !after.starts_with(['/', '"', ' ']) && !after.is_empty();
        plain.push_str(if is_name("HOME") {
            "~"
        } else if has_slash {
            "./"
        } else {
            "."
        });
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// The length of the `$NAME`, `${...}`, `$(...)` or `` `...` `` at the beginning of the text.
fn substitution(text: &str) -> usize {
    let inner = text.get(1..).unwrap_or_default();
    let (open, close) = match (text.chars().next(), inner.chars().next()) {
        (Some('`'), _) => return inner.find('`').map_or(1, |end| end + 2),
        (_, Some('(')) => ('(', ')'),
        (_, Some('{')) => ('{', '}'),
        (_, Some(letter)) if letter.is_ascii_alphabetic() || letter == '_' => {
            let end = inner.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            return 1 + end.unwrap_or(inner.len());
        }
        (_, Some(letter)) if letter.is_ascii_digit() || "@*#?!-".contains(letter) => return 2,
        _ => return 1,
    };
    let mut depth = 0;
    for (at, letter) in inner.char_indices().take(LENGTH) {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                return at + 2;
            }
        }
    }
    1
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
            // The quote ends above, which the compiler does not see.
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
    fn sb5_a_program_that_the_shell_locates_is_found() {
        let found = |value: &str| named(format!("[alias]\n x = {value}\n").as_bytes()).unwrap();
        let word = |text: &str| Named::Word(text.to_owned());
        for (value, path) in [
            (r#""!$(git rev-parse --show-toplevel)/tools/top.sh""#, "./tools/top.sh"),
            (
                r#""!\"$(git rev-parse --show-toplevel)/my tools/top.sh\"""#,
                "./my tools/top.sh",
            ),
            (
                r#""!\"$(git rev-parse --show-toplevel)\"/tools/top.sh""#,
                "./tools/top.sh",
            ),
            ("!`git rev-parse --show-toplevel`/tools/top.sh", "./tools/top.sh"),
            (r#""!sh \"${GIT_PREFIX:-.}/tools/ver.sh\"""#, "./tools/ver.sh"),
            ("!sh ${GIT_PREFIX}tools/ver.sh", "./tools/ver.sh"),
            ("!sh -c '$root/tools/x'", "./tools/x"),
            ("!$HOME/bin/x", "~/bin/x"),
            ("!${HOME}/bin/x", "~/bin/x"),
            ("!$HOMES/bin/x", "./bin/x"),
        ] {
            assert!(found(value).contains(&word(path)), "{value}: {:?}", found(value));
        }
        for (value, folder, word) in [
            ("!cd tools && ./cdd.sh", "tools", "./cdd.sh"),
            (r#""!cd tools; sh cdd.sh""#, "tools", "cdd.sh"),
            (r#""!sh -c 'cd tools && ./cdd.sh'""#, "tools", "./cdd.sh"),
            ("!cd a && cd b && ./x", "a/b", "./x"),
            (
                r#""!cd \"$(git rev-parse --show-toplevel)/tools\" && ./x""#,
                "./tools",
                "./x",
            ),
            ("!make -C tools x", "tools", "x"),
            ("!cd -P -- tools && ./x", "tools", "./x"),
        ] {
            let below = Named::Below(folder.to_owned(), word.to_owned());
            assert!(found(value).contains(&below), "{value}: {:?}", found(value));
        }
        // A reading that is not linear would not come to an end.
        for part in ["$(", "${", "`", "cd a ", "cd a x ", "$(x) "] {
            let text = format!("[alias]\n x = !{}\n", part.repeat(200_000 / part.len()));
            let _ = named(text.as_bytes());
        }
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
