//! `gsv memory`.

use clap::{Args, Subcommand};

use super::workspace::OfAgent;

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Show the memories that wait for you, and keep or drop them
    Review(MemoryReview),
}

#[derive(Debug, Args)]
pub struct MemoryReview {
    /// Keep this memory: write it into the file that it was meant for
    #[arg(long, value_name = "ID", conflicts_with = "drop")]
    pub promote: Option<String>,
    /// Remove this memory
    #[arg(long, value_name = "ID")]
    pub drop: Option<String>,
    #[command(flatten)]
    pub of: OfAgent,
}
