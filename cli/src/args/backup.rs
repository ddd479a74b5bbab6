//! `gsv backup` and `gsv restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Read a whole backup and check it: every byte, every hash, every database
    #[command(
        after_help = "Exit status: 0 sound, 1 damaged, incomplete or of a newer version, 2 not a backup, 3 wrong passphrase."
    )]
    Verify(BackupVerify),
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
    after_help = "The whole backup is checked before anything is replaced. The gateway must not be running with that state: stop it with `gsv down`. Exit status: as for `gsv backup verify`."
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
