//! `gsv channel` and `gsv pair`. The channel may be named before or after what is to be done with it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use super::{Cli, Command};
use crate::suggest::nearest;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "The channel may come first, too: `gsv channel whatsapp login` is `gsv channel login whatsapp`, and `gsv channel discord` is its status."
)]
pub enum ChannelCommand {
    /// All channels: what is connected, what waits, and why one is not
    List,
    /// The truth about one channel, or about all
    Status {
        /// Such as whatsapp or discord [default: all]
        #[arg(value_parser = channel_name)]
        channel: Option<String>,
        /// Only this account
        #[arg(long, value_name = "ID", requires = "channel")]
        account: Option<String>,
    },
    /// Connect an account, and keep it connected
    Start(ChannelStart),
    /// Disconnect an account; what waits is kept
    Stop(ChannelAccount),
    /// Link an account with a phone: draws a QR code, or shows a code to type in, and waits
    Login(ChannelLogin),
    /// Log an account out and forget its keys
    Logout {
        #[command(flatten)]
        which: ChannelAccount,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// A channel's name, and what is to be done with it
    #[command(external_subcommand)]
    Named(Vec<OsString>),
}

#[derive(Debug, Args)]
pub struct ChannelAccount {
    /// Such as whatsapp or discord
    #[arg(value_parser = channel_name)]
    pub channel: String,
    /// Which of several accounts [default: default]
    #[arg(long, value_name = "ID")]
    pub account: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A token or another secret is never an argument, where others could read it: it is asked for without being shown, or read from a file or from stdin, as in `gsv channel discord start < token.txt`. What was given once is kept."
)]
pub struct ChannelStart {
    #[command(flatten)]
    pub which: ChannelAccount,
    /// A setting of the channel, more than once; the value is JSON, else a string; `-` asks for it or reads it from stdin
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub config: Vec<(String, String)>,
    /// Where the channel's token is; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ChannelLogin {
    #[command(flatten)]
    pub which: ChannelAccount,
    /// Begin anew, also when the account is linked
    #[arg(long)]
    pub force: bool,
    /// Show a code to type in on the phone with this number, in place of a QR code
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub phone: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum PairCommand {
    /// Who waits to be let in
    List,
    /// Let somebody in: as a guest, with a conversation of their own
    Approve {
        #[command(flatten)]
        who: PairWho,
        /// It is you: your own conversation, your notes, your machines
        #[arg(long)]
        owner: bool,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// Turn somebody away; what they wrote is deleted
    Reject {
        #[command(flatten)]
        who: PairWho,
    },
}

#[derive(Debug, Args)]
pub struct PairWho {
    /// Such as whatsapp or discord
    #[arg(value_parser = channel_name)]
    pub channel: String,
    /// The code that they were told, or their id
    #[arg(value_name = "CODE|SENDER", allow_hyphen_values = true)]
    pub sender: String,
}

/// As the gateway knows them: in small letters.
fn channel_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let tail = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    let good = name.len() <= 64
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(tail);
    if good {
        Ok(name)
    } else {
        Err("a channel's name is made of letters, digits, _ and -".to_owned())
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it like KEY=VALUE".to_owned()),
    }
}

/// What is done with one channel, and so may follow its name.
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
            None => return Err(no_verb(name, &rest[at].to_string_lossy())),
        },
        // Its status, with flags or without.
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
    let turned = before
        .iter()
        .cloned()
        .chain([OsString::from(verb), name.clone()])
        .chain(rest);
    Cli::try_parse_from(turned)
}

/// The first word that is neither a flag nor a flag's value.
fn verb_at(rest: &[OsString]) -> Option<usize> {
    const WITH_VALUE: [&str; 8] = [
        "-u",
        "--url",
        "-t",
        "--token",
        "--account",
        "--config",
        "--token-file",
        "--phone",
    ];
    let mut after_flag = false;
    rest.iter().position(|word| {
        let word = word.to_string_lossy();
        let is_value = std::mem::replace(&mut after_flag, WITH_VALUE.contains(&word.as_ref()));
        !is_value && !word.starts_with('-')
    })
}

fn no_verb(name: &OsString, verb: &str) -> clap::Error {
    let tip = nearest(verb, VERBS).map_or(String::new(), |meant| format!(" Did you mean `{meant}`?"));
    error(&format!(
        "`{}` is nothing that is done with a channel (here: {}): there are {}.{tip}",
        crate::clean::visible(verb),
        crate::clean::visible(&name.to_string_lossy()),
        VERBS.join(", ")
    ))
}

fn mistyped(name: &OsString, meant: &str) -> clap::Error {
    let name = crate::clean::visible(&name.to_string_lossy());
    error(&format!(
        "There is no `gsv channel {name}`. Did you mean `gsv channel {meant}`? For a channel of that name: `gsv channel status {name}`."
    ))
}

fn error(text: &str) -> clap::Error {
    use clap::CommandFactory;
    Cli::command().error(ErrorKind::InvalidSubcommand, text)
}

#[cfg(test)]
mod tests {
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
    fn what_is_no_channel_s_is_said() {
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
}
