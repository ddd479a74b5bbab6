//! Reads the command line. The channel may be named before or after the verb: `gsv channel whatsapp login`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::channel::ChannelCommand;
use super::cli::{Cli, Command};
use crate::clean::visible;
use crate::suggest::nearest;

/// Verbs that may follow a channel's name.
const VERBS: [&str; 5] = ["status", "start", "stop", "login", "logout"];

/// Reads the command line; `gsv channel NAME VERB ...` is read as `gsv channel VERB NAME ...`.
pub fn try_parse_from(typed: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(typed)?;
    let Command::Channel(ChannelCommand::Named(words)) = &cli.command else {
        return Ok(cli);
    };
    let (before, [name, rest @ ..]) = typed.split_at(typed.len() - words.len()) else {
        return Ok(cli);
    };
    if rest.iter().any(|word| word == "-h" || word == "--help") && verb_at(rest).is_none() {
        return Cli::try_parse_from(before.iter().cloned().chain(["--help".into()]));
    }
    let (verb, rest) = match verb_at(rest) {
        Some(at) => match rest[at].to_str().filter(|verb| VERBS.contains(verb)) {
            Some(verb) => (verb, [&rest[..at], &rest[at + 1..]].concat()),
            None => return Err(unknown_verb(name, &rest[at].to_string_lossy())),
        },
        // Without a verb: the status, with or without flags.
        None => ("status", rest.to_vec()),
    };
    if rest.is_empty()
        && verb == "status"
        && words.len() == 1
        && let Some(meant) = name
            .to_str()
            .and_then(|name| nearest(name, VERBS.into_iter().chain(["list"])))
    {
        return Err(mistyped(name, meant));
    }
    let reordered = before
        .iter()
        .cloned()
        .chain([OsString::from(verb), name.clone()])
        .chain(rest);
    Cli::try_parse_from(reordered)
}

/// The first word that is neither a flag nor a flag's value.
fn verb_at(rest: &[OsString]) -> Option<usize> {
    let mut after_flag = false;
    rest.iter().position(|word| {
        let word = word.to_string_lossy();
        let is_value = std::mem::replace(&mut after_flag, takes_value(&word));
        !is_value && !word.starts_with('-')
    })
}

/// Whether a word is a flag of `gsv channel` whose value is the next word.
fn takes_value(word: &str) -> bool {
    let mut root = Cli::command();
    root.build();
    let verbs = root
        .find_subcommand("channel")
        .into_iter()
        .flat_map(clap::Command::get_subcommands);
    verbs.flat_map(clap::Command::get_arguments).any(|arg| {
        let short = arg.get_short().map(|short| format!("-{short}"));
        let long = arg.get_long().map(|long| format!("--{long}"));
        arg.get_action().takes_values() && [short, long].iter().flatten().any(|flag| flag == word)
    })
}

fn unknown_verb(name: &OsString, verb: &str) -> clap::Error {
    let tip = nearest(verb, VERBS).map_or(String::new(), |meant| format!(" Did you mean `{meant}`?"));
    let (verb, name) = (visible(verb), visible(&name.to_string_lossy()));
    let verbs = VERBS.join(", ");
    error(&format!(
        "`gsv channel {name} {verb}` does not exist: there are {verbs}.{tip}"
    ))
}

fn mistyped(name: &OsString, meant: &str) -> clap::Error {
    let name = visible(&name.to_string_lossy());
    error(&format!(
        "`gsv channel {name}` does not exist. Did you mean `gsv channel {meant}`? For a channel of that name: `gsv channel status {name}`."
    ))
}

fn error(text: &str) -> clap::Error {
    Cli::command().error(ErrorKind::InvalidSubcommand, text)
}

#[cfg(test)]
mod tests {
    use super::super::gateway::ConfigCommand;
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        let typed: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        try_parse_from(&typed)
    }

    #[test]
    fn a_channel_may_be_named_first() {
        for (line, other) in [
            ("gsv channel whatsapp login", "gsv channel login whatsapp"),
            (
                "gsv channel whatsapp login --force --phone +3161",
                "gsv channel login whatsapp --force --phone +3161",
            ),
            (
                "gsv channel Discord start --account work --config a=1",
                "gsv channel start discord --account work --config a=1",
            ),
            ("gsv channel discord stop", "gsv channel stop discord"),
            (
                "gsv channel whatsapp --account login --json login --force",
                "gsv channel login whatsapp --account login --json --force",
            ),
            ("gsv channel discord status --json", "gsv channel status discord --json"),
            ("gsv channel discord", "gsv channel status discord"),
            (
                "gsv channel discord --account work",
                "gsv channel status discord --account work",
            ),
            ("gsv channel discord --json", "gsv channel status discord --json"),
            (
                "gsv --json channel -u ws://h whatsapp logout --yes -t x",
                "gsv --json channel -u ws://h logout whatsapp --yes -t x",
            ),
        ] {
            assert_eq!(
                format!("{:?}", parsed(line).unwrap()),
                format!("{:?}", parsed(other).unwrap()),
                "{line}"
            );
        }
    }

    #[test]
    fn wrong_channel_commands_are_explained() {
        for (line, words) in [
            ("gsv channel whatsapp lgin", "Did you mean `login`?"),
            ("gsv channel whatsapp list", "there are status, start, stop"),
            ("gsv channel stats", "Did you mean `gsv channel status`?"),
            ("gsv channel whats/app", "letters, digits"),
            ("gsv channel login", "<CHANNEL>"),
            ("gsv channel start discord --config token", "KEY=VALUE"),
            ("gsv channel discord start --nonsense", "--nonsense"),
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(words), "{line}: {error}");
        }
        let help = parsed("gsv channel whatsapp --help").unwrap_err();
        assert_eq!(help.exit_code(), 0);
        assert!(help.to_string().contains("gsv channel whatsapp login"), "{help}");
    }

    #[test]
    fn negative_numbers_are_values() {
        let cli = parsed("gsv config set model.maxTokens -5").unwrap();
        assert!(matches!(cli.command, Command::Config(ConfigCommand::Set { value, .. }) if value == "-5"));
    }

    #[test]
    fn a_node_token_needs_its_node() {
        assert!(parsed("gsv token create --scope node").is_err());
        assert!(parsed("gsv token create --scope node --node laptop").is_ok());
    }
}
