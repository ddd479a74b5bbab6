//! A conservative reader of shell commands: plain words, quotes without expansion, `&& || ; |` between simple commands, and
//! redirections to /dev/null. It gives the argument vectors that every common shell (sh, bash, zsh, fish) would run. All other text is
//! [`Complexity`]: no rule allows it. `gateway/src/policy/shell.ts` does the same; both are tested with `test/tables/shell-cases.jsonl`.

/// Why a text is complex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complexity {
    Empty,
    TooLong,
    TooMany,
    Control,
    Newline,
    Unicode,
    Expansion,
    Escape,
    Quote,
    Glob,
    Tilde,
    History,
    Comment,
    Group,
    Redirection,
    Background,
    Operator,
    Assignment,
    Keyword,
    Builtin,
    Character,
}

impl Complexity {
    /// The code that both readers share.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::TooMany => "too_many",
            Self::Control => "control",
            Self::Newline => "newline",
            Self::Unicode => "unicode",
            Self::Expansion => "expansion",
            Self::Escape => "escape",
            Self::Quote => "quote",
            Self::Glob => "glob",
            Self::Tilde => "tilde",
            Self::History => "history",
            Self::Comment => "comment",
            Self::Group => "group",
            Self::Redirection => "redirection",
            Self::Background => "background",
            Self::Operator => "operator",
            Self::Assignment => "assignment",
            Self::Keyword => "keyword",
            Self::Builtin => "builtin",
            Self::Character => "character",
        }
    }
}

/// UTF-16 code units, as the other reader counts.
const MAX_UNITS: usize = 16_384;
/// More commands than a person would read before answering a question.
const MAX_COMMANDS: usize = 20;

/// Words that change how the shell reads what follows.
const KEYWORDS: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "case",
    "esac",
    "for",
    "foreach",
    "select",
    "while",
    "until",
    "repeat",
    "do",
    "done",
    "in",
    "function",
    "time",
    "coproc",
    "end",
    "begin",
    "switch",
    "and",
    "or",
    "not",
    "nocorrect",
    "noglob",
    "namespace",
];
/// Commands of the shell that run their arguments, or that change what later commands mean.
const BUILTINS: &[&str] = &[
    ".",
    "source",
    "eval",
    "exec",
    "command",
    "builtin",
    "alias",
    "unalias",
    "trap",
    "set",
    "unset",
    "shopt",
    "setopt",
    "unsetopt",
    "emulate",
    "enable",
    "disable",
    "hash",
    "rehash",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "read",
    "mapfile",
    "readarray",
    "history",
    "fc",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "abbr",
    "functions",
    "autoload",
    "zmodload",
    "sched",
    "vared",
    "getopts",
    "ulimit",
    "umask",
    "wait",
];
const DEV_NULL: &str = "/dev/null";
/// Characters that show nothing, or something else than they are.
const INVISIBLE: &[(u32, u32)] = &[
    (0x7f, 0xa0),
    (0xad, 0xad),
    (0x300, 0x36f),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x8e2, 0x8e2),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xd800, 0xf8ff),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0x0010_ffff),
];

/// The argument vectors of a plain text, in order.
pub fn read_shell(text: &str) -> Result<Vec<Vec<String>>, Complexity> {
    if text.encode_utf16().count() > MAX_UNITS {
        return Err(Complexity::TooLong);
    }
    Reader {
        rest: text,
        commands: Vec::new(),
        words: Vec::new(),
    }
    .read()
}

fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_./,:+@%=-".contains(char)
}

fn hidden(char: char) -> Option<Complexity> {
    match char {
        '\n' => Some(Complexity::Newline),
        '\t' | ' '..='~' => None,
        '\0'..='\u{1f}' | '\u{7f}' => Some(Complexity::Control),
        _ => Some(Complexity::Unicode),
    }
}

fn is_invisible(char: char) -> bool {
    let code = u32::from(char);
    INVISIBLE.iter().any(|&(from, to)| from <= code && code <= to)
}

/// What a character outside quotes does that this reader does not follow.
fn meaning(char: char) -> Complexity {
    match char {
        '$' | '`' => Complexity::Expansion,
        '\\' => Complexity::Escape,
        '*' | '?' | '[' | ']' => Complexity::Glob,
        '~' => Complexity::Tilde,
        '!' | '^' => Complexity::History,
        '#' => Complexity::Comment,
        '(' | ')' | '{' | '}' => Complexity::Group,
        other => hidden(other).unwrap_or(Complexity::Character),
    }
}

/// What makes the first word something else than the name of a program.
fn name_problem(name: &str) -> Option<Complexity> {
    if name.is_empty() {
        Some(Complexity::Empty)
    } else if name.contains('=') {
        Some(Complexity::Assignment)
    } else if name.starts_with(['%', '-', '+']) {
        // `%1` continues a job.
        Some(Complexity::Character)
    } else if KEYWORDS.contains(&name) {
        Some(Complexity::Keyword)
    } else if BUILTINS.contains(&name) {
        Some(Complexity::Builtin)
    } else {
        None
    }
}

struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<Vec<Vec<String>>, Complexity> {
        // `;` may be the last character; after `&&`, `||` and `|` a command must follow.
        let mut must_follow = true;
        loop {
            self.skip_blanks();
            match self.rest.chars().next() {
                None => break,
                Some(';' | '&' | '|') => {
                    must_follow = self.operator()?;
                    self.end_command()?;
                }
                Some('<' | '>') => {
                    self.redirection("")?;
                    must_follow = false;
                }
                Some(_) => {
                    self.word()?;
                    must_follow = false;
                }
            }
        }
        if !self.words.is_empty() {
            self.end_command()?;
        } else if must_follow {
            return Err(if self.commands.is_empty() {
                Complexity::Empty
            } else {
                Complexity::Operator
            });
        }
        Ok(self.commands)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }
    /// Whether the text goes on with `start`, which is taken away.
    fn take(&mut self, start: &str) -> bool {
        let after = self.rest.strip_prefix(start);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }
    /// Whether a command must follow the operator.
    fn operator(&mut self) -> Result<bool, Complexity> {
        let begins = |start: &str| self.rest.starts_with(start);
        if begins(";;") || begins(";&") {
            return Err(Complexity::Operator);
        }
        if self.take(";") {
            return Ok(false);
        }
        for double in ["&&", "||"] {
            if self.take(double) {
                return if self.rest.starts_with(['&', '|', '>']) {
                    Err(Complexity::Operator)
                } else {
                    Ok(true)
                };
            }
        }
        if self.rest.starts_with("&>") || self.rest.starts_with("|&") {
            return Err(Complexity::Redirection);
        }
        if self.rest.starts_with('&') {
            return Err(Complexity::Background);
        }
        self.take("|");
        Ok(true)
    }
    fn end_command(&mut self) -> Result<(), Complexity> {
        if self.words.is_empty() {
            return Err(Complexity::Operator);
        }
        if self.commands.len() == MAX_COMMANDS {
            return Err(Complexity::TooMany);
        }
        self.commands.push(std::mem::take(&mut self.words));
        Ok(())
    }
    /// Whether a word or a redirection ends here.
    fn is_border(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with([' ', '\t', ';', '&', '|'])
    }
    /// `>/dev/null`, `< /dev/null`, `2>&1`; the digit before it was read.
    fn redirection(&mut self, descriptor: &str) -> Result<(), Complexity> {
        let is_known = if self.words.is_empty() {
            false
        } else if self.take("<") {
            self.skip_blanks();
            descriptor.is_empty() && self.take(DEV_NULL)
        } else if self.take(">&") {
            !descriptor.is_empty() && (self.take("1") || self.take("2"))
        } else {
            self.take(">");
            self.skip_blanks();
            self.take(DEV_NULL)
        };
        if is_known && self.is_border() {
            Ok(())
        } else {
            Err(Complexity::Redirection)
        }
    }
    fn word(&mut self) -> Result<(), Complexity> {
        let whole = self.rest;
        let mut word = String::new();
        while !self.is_border() {
            let Some(char) = self.rest.chars().next() else { break };
            let before = whole.get(..whole.len() - self.rest.len()).unwrap_or_default();
            match char {
                '<' | '>' if matches!(before, "1" | "2") => return self.redirection(before),
                '<' | '>' if !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return Err(Complexity::Redirection);
                }
                '<' | '>' => break,
                '\'' | '"' => word.push_str(self.quoted(char)?),
                // zsh reads `=name` as the path of a program.
                '=' if before.is_empty() => return Err(Complexity::Expansion),
                plain if is_plain(plain) => {
                    word.push(plain);
                    self.rest = self.rest.get(plain.len_utf8()..).unwrap_or_default();
                }
                other => return Err(meaning(other)),
            }
        }
        if self.words.is_empty()
            && let Some(problem) = name_problem(&word)
        {
            return Err(problem);
        }
        self.words.push(word);
        Ok(())
    }
    fn quoted(&mut self, quote: char) -> Result<&'a str, Complexity> {
        let inner = self.rest.get(1..).unwrap_or_default();
        let (text, after) = inner.split_once(quote).ok_or(Complexity::Quote)?;
        for char in text.chars() {
            match char {
                // In fish a backslash means something in single quotes too.
                '\\' => return Err(Complexity::Escape),
                '$' | '`' if quote == '"' => return Err(Complexity::Expansion),
                '!' if quote == '"' => return Err(Complexity::History),
                other => match hidden(other) {
                    Some(Complexity::Control) => return Err(Complexity::Control),
                    Some(Complexity::Unicode) if is_invisible(other) => return Err(Complexity::Unicode),
                    _ => {}
                },
            }
        }
        self.rest = after;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::read_shell;

    #[derive(Deserialize)]
    struct Case {
        text: String,
        /// The vectors of a plain text.
        commands: Option<Vec<Vec<String>>>,
        /// The code of a complex one.
        complex: Option<String>,
    }

    #[test]
    fn po2_the_table_of_shell_cases() {
        let table = include_str!("../../../test/tables/shell-cases.jsonl");
        let cases: Vec<Case> = table
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect();
        assert!(cases.len() >= 300, "{} cases", cases.len());
        for case in cases {
            match read_shell(&case.text) {
                Ok(commands) => assert_eq!(Some(commands), case.commands, "{:?}", case.text),
                Err(why) => assert_eq!(Some(why.code()), case.complex.as_deref(), "{:?}", case.text),
            }
        }
    }
}
