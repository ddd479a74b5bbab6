//! `gsv invite` and `gsv join`: other machines.

use clap::{Args, Subcommand};

use crate::embedded::listen::parse_proxy;

#[derive(Debug, Subcommand)]
pub enum InviteCommand {
    /// Print a line to paste on a machine that the agent may use
    Node(Invite),
    /// Print a line to paste where you want to talk to the agent from
    Client(Invite),
    /// List the invitations that can still be used
    List,
    /// Revoke an invitation, so that its line no longer works
    Revoke {
        /// Id of the invitation, from `gsv invite list`, or `all`
        #[arg(value_name = "ID|all")]
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Invite {
    /// Name of the machine [default: its own]; for a client, a note for the list of tokens
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Address at which the other machine reaches the gateway; may be repeated [default: those of this machine]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_proxy)]
    pub address: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Join {
    /// Code that `gsv invite node` or `gsv invite client` has printed on the gateway's machine
    pub code: String,
    /// Name of this machine, for a node [default: `node.id` of the local config, else the host's name]
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// Do not ask before the local config's gateway is replaced; its former content is kept beside it
    #[arg(short, long)]
    pub yes: bool,
}
