//! `gsv backup` and `gsv restore`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::backup::schedule::{MOST_KEPT, parse_interval};
use crate::paths::shell;

use super::values::number;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "The gateway keeps running. The file is encrypted with a passphrase of at least 8 characters, which is asked for on a terminal, or read with --passphrase-stdin or from GSV_BACKUP_PASSPHRASE. Without the passphrase, no one can read the backup."
)]
pub struct Backup {
    /// File to write
    #[arg(value_name = "FILE", required = true)]
    pub file: Option<PathBuf>,
    /// Include the key that opens stored secrets, the first token and the variables of channels
    #[arg(long)]
    pub with_secrets: bool,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
}

impl Backup {
    /// The command with its options, to be typed again.
    pub fn typed(&self, file: &Path) -> String {
        let options = [(self.with_secrets, "with-secrets"), (self.force, "force")];
        format!("backup {}{}", shell(file), flags(&options) + &self.passphrase.typed())
    }
}

/// Those that are set, each after a space.
fn flags(options: &[(bool, &'static str)]) -> String {
    let set = options.iter().filter(|(is_set, _)| *is_set);
    set.flat_map(|(_, name)| [" --", name]).collect()
}

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Read a whole backup and check it: every byte, every hash, every database
    #[command(
        after_help = "Exit status: 0 sound, 1 damaged, incomplete or of a newer version, 2 not a backup, 3 wrong passphrase."
    )]
    Verify(BackupVerify),
    /// Set, show or end scheduled backups, which the gateway makes while it runs
    #[command(
        after_help = "Without options: show the schedule. The first backup is made at once; one that was due while the machine was off is made after the next start. The passphrase is asked for once, as by `gsv backup FILE`, and stored on this machine, sealed with secrets.key: keep it elsewhere too, because a restore on another machine needs it. Older backups are removed only after a new one was read back and is sound."
    )]
    Schedule(BackupSchedule),
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct BackupSchedule {
    /// Folder of the backups, on another disk; it must exist
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
    /// Time from one backup to the next: hour, day, week, or a time such as 12h [default: day]
    #[arg(long, value_name = "TIME", value_parser = Interval::parse)]
    pub every: Option<Interval>,
    /// Number of backups that are kept [default: 7]
    #[arg(long, value_name = "N", value_parser = number(1, MOST_KEPT))]
    pub keep: Option<u32>,
    /// Include the key that opens stored secrets, the first token and the variables of channels
    #[arg(long)]
    pub with_secrets: bool,
    /// Leave them out again
    #[arg(long, conflicts_with = "with_secrets")]
    pub without_secrets: bool,
    /// Ask for another passphrase; backups that were made before keep theirs
    #[arg(long)]
    pub new_passphrase: bool,
    /// End the schedule; the backups stay
    #[arg(long, conflicts_with_all = ["to", "every", "keep", "with_secrets", "without_secrets", "new_passphrase", "passphrase_stdin"])]
    pub off: bool,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
}

/// The time from one backup to the next, and how it was typed.
#[derive(Debug, Clone)]
pub struct Interval {
    pub time: Duration,
    typed: String,
}

impl Interval {
    fn parse(text: &str) -> Result<Self, String> {
        let typed = text.to_owned();
        parse_interval(text).map(|time| Self { time, typed })
    }
}

impl BackupSchedule {
    /// The command with its options, to be typed again.
    pub fn typed(&self) -> String {
        let to = self.to.as_ref().map(|to| format!(" --to {}", shell(to)));
        let every = self
            .every
            .as_ref()
            .map(|every| format!(" --every {}", shell(Path::new(&every.typed))));
        let keep = self.keep.map(|keep| format!(" --keep {keep}"));
        let values: String = [to, every, keep].into_iter().flatten().collect();
        let options = flags(&[
            (self.with_secrets, "with-secrets"),
            (self.without_secrets, "without-secrets"),
            (self.new_passphrase, "new-passphrase"),
            (self.off, "off"),
        ]);
        format!("backup schedule{values}{options}{}", self.passphrase.typed())
    }

    pub const fn only_shows(&self) -> bool {
        self.to.is_none()
            && self.every.is_none()
            && self.keep.is_none()
            && !(self.with_secrets || self.without_secrets || self.new_passphrase || self.off)
            && !self.passphrase.passphrase_stdin
    }
}

#[derive(Debug, Args)]
pub struct BackupVerify {
    /// Backup to check
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The whole backup is checked before anything is replaced. The gateway must not be running with that state: stop it with `gsv down`. A state that is restored beside that of this machine's gateway starts stopped: `gsv resume` lets it act. Exit status: as for `gsv backup verify`."
)]
pub struct Restore {
    /// Backup to restore
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// State folder to restore into [default: GSV_HOME, else ~/.gsv]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Replace the state that is there; it is kept beside the new one, with a date in its name
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
}

#[derive(Debug, Args)]
pub struct PassphraseFrom {
    /// Read the passphrase from stdin
    #[arg(long)]
    pub passphrase_stdin: bool,
}

impl PassphraseFrom {
    fn typed(&self) -> String {
        flags(&[(self.passphrase_stdin, "passphrase-stdin")])
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::cli::{Cli, Command};
    use super::*;

    #[test]
    fn bk21_a_command_that_is_advised_again_has_the_options_that_were_typed() {
        for text in [
            "backup '/a b' --with-secrets --force --passphrase-stdin",
            "backup /a",
            "backup schedule --to /b --every 12h --keep 3 --with-secrets --new-passphrase",
            "backup schedule --every week",
            "backup schedule --without-secrets --passphrase-stdin",
            "backup schedule --off",
        ] {
            let words = text.replace("'/a b'", "/a_b");
            let Command::Backup(args) = Cli::parse_from(format!("gsv {words}").split(' ')).command else {
                panic!("{text} is a backup");
            };
            let typed = match &args.command {
                Some(BackupCommand::Schedule(schedule)) => schedule.typed(),
                _ => args.typed(Path::new(if text.contains("/a b") { "/a b" } else { "/a" })),
            };
            assert_eq!(typed, text);
        }
    }
}
