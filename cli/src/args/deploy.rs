//! `gsv deploy`.

use clap::Subcommand;

use super::move_home::{DeployExport, DeployImport};

#[derive(Debug, Subcommand)]
pub enum DeployCommand {
    /// Save the home of a stopped gateway to an encrypted file, for another gateway
    Export(DeployExport),
    /// Import an exported home into a fresh gateway
    Import(DeployImport),
}
