//! `gsv nodes`: the machines that the gateway knows.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// List the machines that are or were connected
    List,
    /// Remove a machine from the list; its history stays in the conversations
    Forget(NodeForget),
}

#[derive(Debug, Args)]
pub struct NodeForget {
    /// Machine, as `gsv nodes list` shows it
    pub id: String,
    /// Remove it also while it is connected, which ends its connection
    #[arg(long)]
    pub force: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
