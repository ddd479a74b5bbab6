//! `gsv workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gsv_protocol::types::AgentId;

#[derive(Debug, Args)]
pub struct OfAgent {
    /// Agent that it belongs to [default: main]
    #[arg(long, value_name = "ID")]
    pub agent: Option<AgentId>,
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// List files and folders
    Ls {
        /// Folder [default: the whole workspace]
        path: Option<String>,
        #[command(flatten)]
        of: OfAgent,
    },
    /// Print a file
    Cat(WorkspaceCat),
    /// Save a file of the workspace on this machine
    Get(WorkspaceGet),
    /// Save a file or stdin as a file of the workspace
    Put(WorkspacePut),
    /// Open a file in your editor and save the result
    Edit(WorkspaceFile),
    /// Delete a file (`restore` undoes this)
    Rm(WorkspaceRm),
    /// List the versions of a file, the newest first
    Log(WorkspaceFile),
    /// Compare two versions of a file
    Diff(WorkspaceDiff),
    /// Restore an earlier version of a file; `log` keeps the current one
    Restore(WorkspaceRestore),
}

#[derive(Debug, Args)]
pub struct WorkspaceFile {
    /// File, such as SOUL.md or memory/2026-11-21.md
    pub path: String,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct WorkspaceRm {
    #[command(flatten)]
    pub of: WorkspaceFile,
    /// Delete it also when it is too large to keep an earlier version, so that nothing can restore it
    #[arg(long)]
    pub permanently: bool,
}

#[derive(Debug, Args)]
pub struct WorkspaceCat {
    #[command(flatten)]
    pub of: WorkspaceFile,
    /// Version from `log`: its number, its name, the beginning of its name, or `now`
    #[arg(long, value_name = "VERSION", default_value = "now", hide_default_value = true)]
    pub version: String,
}

#[derive(Debug, Args)]
pub struct WorkspaceGet {
    #[command(flatten)]
    pub from: WorkspaceFile,
    /// File or folder on this machine [default: the same name in the current folder]
    pub file: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct WorkspacePut {
    #[command(flatten)]
    pub to: WorkspaceFile,
    /// File on this machine [default: stdin, also written `-`]
    pub file: Option<PathBuf>,
    /// Write only if the file still has this etag (see `cat --json`), or `absent` if it must not exist
    #[arg(long, value_name = "ETAG")]
    pub if_match: Option<String>,
    /// Accept an empty stdin, which empties the file
    #[arg(long)]
    pub allow_empty: bool,
}

#[derive(Debug, Args)]
pub struct WorkspaceDiff {
    #[command(flatten)]
    pub of: WorkspaceFile,
    /// Version from `log`: its number, its name, the beginning of its name, or `now`
    #[arg(default_value = "1")]
    pub from: String,
    /// Version to compare it with
    #[arg(default_value = "now")]
    pub to: String,
}

#[derive(Debug, Args)]
pub struct WorkspaceRestore {
    #[command(flatten)]
    pub of: WorkspaceFile,
    /// Version from `log`: its number, its name or the beginning of its name
    #[arg(default_value = "1")]
    pub version: String,
}
