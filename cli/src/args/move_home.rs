//! `gsv deploy export` and `gsv deploy import`.

use std::path::PathBuf;

use clap::Args;

use super::backup::PassphraseFrom;

#[derive(Debug, Args)]
#[command(
    after_help = "The gateway must be stopped with `gsv stop --all`, and stays so. The file has conversations, files, memory, jobs and settings, and no secrets. It is encrypted with a passphrase of at least 8 characters, which is asked for on a terminal, or read with --passphrase-stdin or from GSV_BACKUP_PASSPHRASE."
)]
pub struct DeployExport {
    /// File to write, or a folder to write a new file into
    #[arg(value_name = "FILE|DIR")]
    pub to: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Imports into the gateway of --url, else of the local config, which must be fresh. The whole file is checked first. An import that was interrupted goes on when it is run again."
)]
pub struct DeployImport {
    /// File that `gsv deploy export` has written
    #[arg(value_name = "FILE", required_unless_present = "cancel", conflicts_with = "cancel")]
    pub file: Option<PathBuf>,
    /// Give up an import that was begun, and remove what it has written
    #[arg(long)]
    pub cancel: bool,
    #[command(flatten)]
    pub passphrase: PassphraseFrom,
}
