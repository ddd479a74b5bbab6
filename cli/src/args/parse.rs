//! Reads the command line. The channel may be named before or after the verb: `gsv channel whatsapp login`.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::channel::ChannelCommand;
use super::cli::{Cli, Command};
use super::foreign::suggestion;
use crate::clean::visible;
use crate::suggest::nearest;

/// Verbs that may follow a channel's name.
const VERBS: [&str; 5] = ["status", "start", "stop", "login", "logout"];

/// Reads the command line; `gsv channel NAME VERB ...` is read as `gsv channel VERB NAME ...`.
pub fn try_parse_from(typed: &[OsString]) -> Result<Cli, clap::Error> {
    if let [program] = typed {
        return Cli::try_parse_from([program.clone(), "--help".into()]);
    }
    let cli = Cli::try_parse_from(typed).map_err(|wrong| foreign_word(typed, &wrong).unwrap_or(wrong))?;
    let Command::Channel(ChannelCommand::Named(words)) = &cli.command else {
        return Ok(cli);
    };
    let (before, [name, rest @ ..]) = typed.split_at(typed.len() - words.len()) else {
        return Ok(cli);
    };
    let reordered = |verb: &str, rest: &[OsString]| {
        let verb = [OsString::from(verb), name.clone()];
        Cli::try_parse_from([before, &verb, rest].concat())
    };
    // A verb may also be a flag's value: then the line can be read only without it.
    let mut wrong = None;
    for (at, word) in rest.iter().enumerate() {
        if let Some(verb) = VERBS.into_iter().find(|verb| word == verb) {
            match reordered(verb, &[&rest[..at], &rest[at + 1..]].concat()) {
                Err(error) if error.kind() != ErrorKind::DisplayHelp => wrong = wrong.or(Some(error)),
                read => return read,
            }
        }
    }
    let is_flag = |word: &OsString| word.to_string_lossy().starts_with('-');
    match (wrong, rest.first()) {
        (Some(error), _) => Err(error),
        (None, Some(word)) if !is_flag(word) => Err(unknown_verb(name, &word.to_string_lossy())),
        (None, Some(_)) if rest.iter().any(|word| word == "-h" || word == "--help") => {
            Cli::try_parse_from([before, &["--help".into()]].concat())
        }
        (None, None) => match name
            .to_str()
            .and_then(|name| nearest(name, VERBS.into_iter().chain(["list"])))
        {
            Some(meant) => Err(mistyped(name, meant)),
            None => reordered("status", rest),
        },
        // Without a verb: the status.
        (None, Some(_)) => reordered("status", rest),
    }
}

/// What is said in place of an error about an unknown word that has an equal here.
fn foreign_word(typed: &[OsString], wrong: &clap::Error) -> Option<clap::Error> {
    let kind = match wrong.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = wrong.get(kind) else {
        return None;
    };
    let root = Cli::command();
    let (mut noun, mut path) = (&root, "gsv".to_owned());
    for part in typed.iter().skip(1).filter_map(|part| part.to_str()) {
        if part == word {
            break;
        }
        if let Some(inner) = noun.find_subcommand(part) {
            noun = inner;
            path = format!("{path} {}", inner.get_name());
        }
    }
    let meant = suggestion(&path, noun, word)?;
    let word = visible(word);
    Some(error(&format!("`{path} {word}` does not exist. Did you mean {meant}?")))
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
    fn p10_words_of_other_programs_name_the_command_that_is_meant() {
        for (line, meant) in [
            ("gsv start", "`gsv up`"),
            ("gsv restart", "`gsv down && gsv up`"),
            ("gsv --json logs -f", "`gsv service logs`"),
            ("gsv service restart", "`gsv service stop && gsv service start`"),
            ("gsv node restart", "`gsv node stop && gsv node start`"),
            ("gsv uninstall", "`gsv service uninstall`"),
            ("gsv config list", "`gsv config get`"),
            ("gsv config show", "`gsv config get`"),
            ("gsv local-config list", "`gsv local-config get`"),
            ("gsv cron delete weather", "`gsv cron remove`"),
            ("gsv session rm KEY", "`gsv session delete`"),
            ("gsv hook delete github", "`gsv hook remove`"),
            ("gsv token delete x", "`gsv token revoke`"),
            ("gsv nodes remove laptop", "`gsv nodes forget`"),
            ("gsv job delete x", "`gsv job cancel`"),
            ("gsv node delete laptop", "`gsv nodes forget`"),
            ("gsv node rm laptop", "`gsv nodes forget`"),
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            let text = error.to_string();
            assert!(text.contains(&format!("Did you mean {meant}")), "{line}: {text}");
            assert!(!text.contains("restore"), "{line}: {text}");
        }
        // A word without an equal, and one that is near.
        for (line, words) in [("gsv cron frob", "'frob'"), ("gsv statsu", "'status'")] {
            assert!(parsed(line).unwrap_err().to_string().contains(words), "{line}");
        }
    }

    #[test]
    fn p10_the_range_of_a_number_is_said_in_words() {
        for (line, words) in [
            (
                "gsv backup schedule --to /x --keep 0",
                "--keep <N>': use a number from 1 to 366",
            ),
            ("gsv backup schedule --to /x --keep 367", "use a number from 1 to 366"),
            ("gsv backup schedule --to /x --keep x", "use a number from 1 to 366"),
            ("gsv job list -n 99999999", "use a number from 1 to 1000"),
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(words), "{error}");
        }
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
