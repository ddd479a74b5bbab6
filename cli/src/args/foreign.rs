//! Words of other programs, and the commands of GSV that are meant. The nearest name by its letters would mislead: `restore` for `restart`.

use clap::Command;

const COMMANDS: [(&str, &str); 11] = [
    ("start", "`gsv up`"),
    ("restart", "`gsv down && gsv up`"),
    ("shutdown", "`gsv down`"),
    ("log", "`gsv service logs` or `gsv node logs`"),
    ("logs", "`gsv service logs` or `gsv node logs`"),
    ("init", "`gsv setup`"),
    ("install", "`gsv setup`, or `gsv service install`"),
    ("uninstall", "`gsv service uninstall` and `gsv node uninstall`"),
    ("upgrade", "`gsv update`"),
    ("ls", "`gsv workspace ls`, or `gsv session list`"),
    ("ps", "`gsv status`"),
];

const REMOVING: [&str; 9] = [
    "remove",
    "delete",
    "forget",
    "revoke",
    "unset",
    "uninstall",
    "cancel",
    "rm",
    "del",
];
/// Verbs that mean the same. A noun has one of them or more: the first is meant.
const SYNONYMS: [&[&str]; 3] = [
    &REMOVING,
    &["list", "get", "show", "status", "ls"],
    &["add", "create", "new", "submit", "install"],
];
/// A machine is removed by another noun than the one of its program.
const NODE: (&str, &str) = (
    "gsv node",
    "`gsv nodes forget`, or `gsv node uninstall` for the service",
);

/// The commands, in backticks, that `word` means after `path`, such as `gsv cron`. `noun`: the command that `path` names.
pub fn suggestion(path: &str, noun: &Command, word: &str) -> Option<String> {
    if path == "gsv" {
        let found = COMMANDS.iter().find(|(other, _)| *other == word)?;
        return Some(found.1.to_owned());
    }
    if path == NODE.0 && REMOVING.contains(&word) {
        return Some(NODE.1.to_owned());
    }
    if word == "restart" && noun.find_subcommand("start").is_some() {
        return Some(format!("`{path} stop && {path} start`"));
    }
    let same = SYNONYMS.iter().find(|same| same.contains(&word))?;
    let verb = same.iter().find(|verb| noun.find_subcommand(verb).is_some())?;
    Some(format!("`{path} {verb}`"))
}

#[cfg(test)]
mod tests {
    use super::super::cli::Cli;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn p10_each_command_that_is_meant_exists() {
        let root = Cli::command();
        for (word, _) in COMMANDS {
            assert!(root.find_subcommand(word).is_none(), "{word}");
        }
        for meant in COMMANDS.iter().map(|(_, meant)| *meant).chain([NODE.1]) {
            for command in meant.split('`').filter(|part| part.starts_with("gsv ")) {
                for command in command.split(" && ") {
                    let mut noun = &root;
                    for word in command.split(' ').skip(1) {
                        noun = noun.find_subcommand(word).unwrap();
                    }
                }
            }
        }
    }
}
