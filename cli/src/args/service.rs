//! `gsv service`, and the verbs of `gsv node` for its service.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::service::MOST_LINES;

pub const STATUS_HELP: &str = "Exit status: 0 it runs, 1 it is not installed or failed, 4 it is stopped.";

#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Install the gateway as a service that starts with this machine, or bring an installed one up to date
    #[command(
        after_help = "A user service of systemd (Linux) or launchd (macOS); Windows and other systems are not supported yet. It runs this program with the folders that are set now (GSV_HOME, GSV_CONFIG_DIR). A gateway that `gsv up` started is stopped, and the service takes over."
    )]
    Install,
    /// Stop and remove the service; files, settings and conversations stay
    Uninstall,
    /// Start the service
    Start,
    /// Stop the service until the machine starts again
    Stop,
    /// Show whether the service is installed, runs and is up to date
    #[command(after_help = STATUS_HELP)]
    Status,
    /// Show the gateway's log
    Logs(ServiceLogs),
}

#[derive(Debug, Args)]
pub struct ServiceLogs {
    /// Number of lines, the newest last
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = lines)]
    pub lines: usize,
    /// Follow the log until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
}

fn lines(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count <= MOST_LINES);
    count.ok_or_else(|| format!("it is a number from 0 to {MOST_LINES}"))
}

#[derive(Debug, Default, Args)]
pub struct NodeInstall {
    /// Name of this machine [default: `node.id` of the local config, else the host's name]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Folder that the agent works in [default: that of its service or of its last start, else `node.workspace` of the local config, else ~/gsv]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the file tools use files outside the workspace too
    #[arg(long)]
    pub allow_outside: bool,
}

#[derive(Debug, Args)]
pub struct NodeService {
    /// Node [default: the only installed one, else `node.id` of the local config, else the host's name]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

#[derive(Debug, Args)]
pub struct NodeLogs {
    #[command(flatten)]
    pub node: NodeService,
    #[command(flatten)]
    pub logs: ServiceLogs,
}

#[derive(Debug, Args)]
pub struct NodeEnd {
    #[command(flatten)]
    pub node: NodeService,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
