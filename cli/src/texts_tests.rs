//! The texts of this repository's programs name commands in backquotes, so that no line of a terminal ends inside of one (rule CT15).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

const FOLDERS: [&str; 5] = ["cli/src", "crates", "gateway/src", "channels", "protocol/src"];

/// What is in front of the tests of a file. A module of tests in a file of its own ends nothing.
fn product(text: &str) -> &str {
    let tests = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.ends_with('{')
    });
    tests.map_or(text, |(at, _)| &text[..at])
}

/// The lines of the sources that have texts for people, each with its place.
fn lines(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "test", "gen", "fakes", "node_modules", "target", "dist"].contains(&name.as_str()) {
                lines(&path, found);
            }
            continue;
        }
        let part = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
        let (stem, kind) = (part(path.file_stem()), part(path.extension()));
        if !["rs", "ts"].contains(&kind.as_str()) || stem.ends_with("tests") || stem.contains(".test") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let product = product(&text);
        for (number, line) in product.lines().enumerate() {
            if !line.trim_start().starts_with(['*', '/']) {
                found.push((format!("{}:{}", path.display(), number + 1), line.to_owned()));
            }
        }
    }
}

/// Whether the text at this place of a line is in backquotes, or is a literal of its own: a command that another text takes in.
fn is_set_off(line: &str, at: usize, is_rust: bool) -> bool {
    let before = line[..at].replace("\\\"", "").replace("```", "");
    let odd = |count: usize| count % 2 == 1;
    let escaped = before.matches("\\`").count();
    let literal = before.rsplit('"').next().unwrap_or_default();
    let is_in_quotes = is_rust || odd(before.matches('"').count());
    before.ends_with(['"', '`']) || odd(escaped) || (is_in_quotes && odd(literal.matches('`').count()))
}

/// Where a line names one of these commands outside of backquotes.
fn bare(line: &str, commands: &BTreeSet<String>, is_rust: bool) -> bool {
    line.match_indices("gsv ").any(|(at, _)| {
        let word = line[at + 4..]
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next();
        let is_command = word.is_some_and(|word| commands.contains(word) || word == "--url");
        let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c));
        is_command && is_word && !is_set_off(line, at, is_rust)
    })
}

fn commands() -> BTreeSet<String> {
    let whole = crate::args::Cli::command();
    let all = whole.get_subcommands();
    all.flat_map(|command| {
        command
            .get_name_and_visible_aliases()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn ct15_every_text_names_commands_in_backquotes() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut all = Vec::new();
    for folder in FOLDERS {
        lines(&root.join(PathBuf::from(folder)), &mut all);
    }
    assert!(all.len() > 50_000, "{}", all.len());
    let commands = commands();
    let found: Vec<String> = all
        .iter()
        .filter(|(place, line)| bare(line, &commands, place.contains(".rs:")))
        .map(|(place, line)| format!("{place}: {}", line.trim()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn ct15_only_the_tests_at_the_end_of_a_file_are_left_out() {
    let declared = "mod a;\n#[cfg(test)]\nmod a_tests;\nfn main() {}\n";
    assert_eq!(product(declared), declared);
    let inline = format!("{declared}#[cfg(test)]\nmod tests {{\n}}\n");
    assert_eq!(product(&inline), declared);
}

#[test]
fn ct15_a_command_outside_of_backquotes_is_found() {
    let commands = commands();
    for (line, is_rust, is_bare) in [
        (r#""Check it with: gsv backup verify {}""#, true, true),
        (r#""(quoted \"a\": gsv search x)""#, true, true),
        (r#""Start it with: `GSV_HOME={} gsv up`""#, true, false),
        (r#""gsv cron runs {id}""#, true, false),
        (r#""Update gsv on this machine""#, true, false),
        (r"    a line of a longer text: `gsv up`.", true, false),
        (r#""an open ``` as here: `gsv up`""#, true, false),
        ("`gsv approval allow ${code}`", false, false),
        ("`Look at it: gsv events show ${id}.`", false, true),
        (r"`Look at it: \`gsv events show ${id}\`.`", false, false),
        (r#""Run: gsv up""#, false, true),
        (r#""Run `gsv up`""#, false, false),
    ] {
        assert_eq!(bare(line, &commands, is_rust), is_bare, "{line}");
    }
}
