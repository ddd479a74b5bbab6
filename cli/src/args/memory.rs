//! `gsv memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::number;
use super::workspace::OfAgent;

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// List what an agent keeps in its long-term memory, the newest first
    List(MemoryList),
    /// Find memories
    Search(MemorySearch),
    /// Add a memory of your own
    Add(MemoryAdd),
    /// Show the memories that wait for you, and keep or drop them
    Review(MemoryReview),
    /// Remove memories for good
    Forget(MemoryForget),
    /// Save all memories as JSON, one a line
    Export(MemoryExport),
}

#[derive(Debug, Args)]
pub struct MemoryList {
    /// Number of memories
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = number(1_u8, 100))]
    pub limit: u8,
    /// Only memories that are older than this one
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,
    /// Include memories that a newer one has superseded
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct MemorySearch {
    /// Question or words, as for `gsv search`
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Number of memories
    #[arg(short = 'n', long, value_name = "N", value_parser = number(1_u8, 100))]
    pub limit: Option<u8>,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct MemoryAdd {
    /// The fact, clear by itself (`-` reads stdin)
    pub text: String,
    /// The memory that it replaces
    #[arg(long, value_name = "ID")]
    pub supersedes: Option<String>,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct MemoryForget {
    /// Memories
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Remove without asking
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct MemoryExport {
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file
    #[arg(long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub of: OfAgent,
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
