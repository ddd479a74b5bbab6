//! Paths that the configuration of a repository names: its hooks in another place, further configuration, and programs that git starts. What
//! is there runs outside the sandbox when the user runs git. PURE: takes the text.

/// Values of one configuration that are read, at most.
const VALUES: usize = 100;

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

/// Keys whose values are commands. A file that they name may be written without a slash: `sh watch.sh`.
const COMMANDS: [&str; 18] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "helper",
    "pager",
    "path",
    "process",
    "program",
    "smudge",
    "sshcommand",
    "textconv",
    "uploadpack",
    "receivepack",
];

pub(crate) fn named(text: &[u8]) -> Vec<Named> {
    let text = String::from_utf8_lossy(text).replace("\\\r\n", "").replace("\\\n", "");
    let mut section = String::new();
    let mut found = Vec::new();
    let mut values = 0;
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(section_of) {
            section = name;
            // A key may stand behind its section.
            line = rest;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        values += 1;
        if values > VALUES {
            break;
        }
        let key = key.trim().to_lowercase();
        let value = unquoted(value);
        match (section.as_str(), key.as_str()) {
            ("core", "hookspath") => found.push(Named::Hooks(value)),
            ("core", "worktree") => found.push(Named::WorkTree(value)),
            ("include" | "includeif", "path") => found.push(Named::Include(value)),
            (section, key) => {
                let is_command = COMMANDS.contains(&key) || section == "alias" || section == "pager";
                let words = value.split(|letter: char| letter.is_whitespace() || "!;&|()\"'`=".contains(letter));
                let words = words.filter(|word| !word.is_empty() && (is_command || word.contains('/')));
                found.extend(words.map(|word| Named::Word(word.to_owned())));
            }
        }
    }
    found.truncate(VALUES);
    found
}

/// `core` of `core]`, and `filter` of `filter "lfs"]`, with what stands behind it.
fn section_of(line: &str) -> Option<(String, &str)> {
    let (name, rest) = line.split_once(']')?;
    let name = name.split([' ', '\t', '"', '.']).next().unwrap_or_default();
    Some((name.to_lowercase(), rest.trim()))
}

/// Without the quotes and the comment.
fn unquoted(value: &str) -> String {
    let mut out = String::new();
    let mut in_quotes = false;
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '\\' => out.extend(letters.next()),
            '#' | ';' if !in_quotes => break,
            letter => out.push(letter),
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb5_what_a_configuration_names_is_read_as_git_reads_it() {
        let text = b"# x\n[core]\n\tbare = false\n\tHooksPath = \".githooks\" ; here\n\tworktree = ../../files\n\
            [core] fsmonitor = sh watch.sh\n[include]\n path = ../more config\n[includeIf \"gitdir:~/x/\"] path=/etc/other\n\
            [filter \"lfs\"]\n clean = ./bin/clean -- %f\n[alias]\n x = !tools/x.sh \\\n --all\n\
            [remote \"origin\"]\n url = ../other\n fetch = +refs/heads/*:refs/remotes/origin/*\n[user]\n name = Sam Smith\n";
        let word = |text: &str| Named::Word(text.to_owned());
        assert_eq!(
            named(text),
            [
                Named::Hooks(".githooks".to_owned()),
                Named::WorkTree("../../files".to_owned()),
                word("sh"),
                word("watch.sh"),
                Named::Include("../more config".to_owned()),
                Named::Include("/etc/other".to_owned()),
                word("./bin/clean"),
                word("--"),
                word("%f"),
                word("tools/x.sh"),
                word("--all"),
                word("../other"),
                word("+refs/heads/*:refs/remotes/origin/*"),
            ]
        );
        assert_eq!(named(b"[core\nhookspath = a\n= b\n[]"), []);
        let many = format!("[alias]\n{}", "a = !x/y\n".repeat(1000));
        assert_eq!(named(many.as_bytes()).len(), VALUES);
    }
}
