//! `gsv up`, `gsv node`, settings, tokens, tools and the audit log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use gsv_node::sandbox::Profile;
use gsv_protocol::types::{TokenKind, ToolName};

use super::service::{NodeEnd, NodeInstall, NodeLogs, NodeService, STATUS_HELP};
use super::values::{lifetime, number, one_of, port};
use crate::config::Key;
use crate::embedded::listen::{parse_address, parse_proxy};
use crate::units::parse_duration;

#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub struct Up {
    /// Port on 127.0.0.1 [default: the last one, else 8787]
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub port: Option<u16>,
    /// Listen for other machines too, encrypted with the gateway's own certificate; `none` ends that [default: as at the last start]
    #[arg(long, value_name = "ADDR:PORT", value_parser = place)]
    pub listen: Option<Place>,
    /// Listen without encryption, for a proxy with this public name that encrypts
    #[arg(long, value_name = "HOST", requires = "listen", value_parser = parse_proxy)]
    pub behind_proxy: Option<String>,
    /// Join a cluster of gateways with one state in this bucket, s3://BUCKET/PREFIX; only with a fresh home (experimental) [default: as at the last start]
    #[arg(long, value_name = "BUCKET")]
    pub cluster: Option<String>,
    /// Address of this machine for the others of the cluster, on a private network [default: the last one, else only instances on this machine]
    #[arg(long, value_name = "ADDR:PORT", requires = "cluster")]
    pub cluster_listen: Option<String>,
    /// Stay in the foreground and log to stderr
    #[arg(long)]
    pub foreground: bool,
    /// Create a new first admin token, because the old one is lost; the old one is revoked
    #[arg(long)]
    pub new_token: bool,
    /// Run as a service: in the foreground, logging only to the log file; the service manager starts it
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "new_token", "listen", "cluster"])]
    pub service: bool,
    /// Run as the supervisor; `gsv up` starts it
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "new_token", "service", "listen", "cluster"], requires = "port")]
    pub supervise: bool,
}

/// Where the gateway listens for other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Loopback,
    At(SocketAddr),
}

fn place(text: &str) -> Result<Place, String> {
    Ok(parse_address(text)?.map_or(Place::Loopback, Place::At))
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "It reconnects by itself and ends only when waiting does not help. Exit status: 2 wrong arguments, 3 the gateway refuses the node's token; a service manager should not restart it after these (systemd: RestartPreventExitStatus=2 3)."
)]
pub struct Node {
    /// Name of this machine, the prefix of its tools [default: `node.id` of the local config, else the host's name]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Folder that the agent works in; its file tools stay in it, its commands only in a sandbox (`gsv node sandbox` shows yours) [default: `node.workspace` of the local config, else the current folder, or ~/gsv when that is or contains your home folder or GSV's own folders]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the file tools use files outside the workspace too; the workspace never confines commands, a sandbox does
    #[arg(long)]
    pub allow_outside: bool,
    /// Run as a service: log only to the log file; the service manager starts it
    #[arg(long, hide = true)]
    pub service: bool,
    #[command(subcommand)]
    pub command: Option<NodeCommand>,
}

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Test what the sandbox of this machine stops, and show what is missing
    #[command(
        after_help = "The profile is set in node.toml in the configuration folder: `sandbox = \"off\"`, `\"workspace\"`, `\"workspace+net\"` or `\"strict\"`. Exit status 1: this machine can't enforce it."
    )]
    Sandbox(NodeSandbox),
    /// Install the node as a service that starts with this machine, or bring an installed one up to date
    #[command(
        after_help = "A user service of systemd (Linux) or launchd (macOS); Windows and other systems are not supported yet. Running commands continue while the service restarts."
    )]
    Install(NodeInstall),
    /// Stop and remove the service; the machine stays known, and its token valid
    Uninstall(NodeService),
    /// Start the service
    Start(NodeService),
    /// Stop the service until the machine starts again
    Stop(NodeService),
    /// Show whether the service is installed, runs and is up to date
    #[command(after_help = STATUS_HELP)]
    Status(NodeService),
    /// Show the node's log
    Logs(NodeLogs),
    /// List the machines that the gateway knows, as `gsv nodes list` does
    #[command(hide = true)]
    List,
    /// End what makes this machine a node: the service, its token and its entry in the list of machines
    Forget(NodeEnd),
}

#[derive(Debug, Args)]
pub struct NodeSandbox {
    /// Profile to test [default: the one in node.toml; when that is `off`, `workspace`]
    #[arg(long, value_name = "PROFILE", value_parser = sandbox_profile)]
    pub profile: Option<Profile>,
    /// Folder that the agent works in [default: that of the node's last start, else `node.workspace` of the local config, else the current folder, or ~/gsv when that is or contains your home folder or GSV's own folders]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

fn sandbox_profile(name: &str) -> Result<Profile, String> {
    match Profile::parse(name)? {
        Profile::Off => Err("there is nothing to test without a sandbox".to_owned()),
        profile => Ok(profile),
    }
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show the configuration, or one setting
    Get {
        /// Setting, such as model.provider
        path: Option<String>,
    },
    /// Change a setting
    Set {
        /// Setting, such as model.provider
        path: String,
        /// Value as JSON, else a string; `-` reads it from stdin, so that a secret stays out of the shell's history
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Change all settings at once in $VISUAL or $EDITOR
    Edit,
    /// Reset a setting to its default
    Unset {
        /// Setting, such as model.provider
        path: String,
    },
}

fn local_settings() -> String {
    format!("One of {}", Key::ALL.map(Key::name).join(", "))
}

#[derive(Debug, Subcommand)]
pub enum LocalConfigCommand {
    /// Show all settings, or one (secrets are masked)
    Get {
        #[arg(help = local_settings())]
        key: Option<String>,
    },
    /// Change a setting
    Set {
        #[arg(help = local_settings())]
        key: String,
        /// New value; `-` reads it from stdin
        value: String,
    },
    /// Remove a setting
    Unset {
        #[arg(help = local_settings())]
        key: String,
    },
    /// Print where the file is
    Path,
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools that the agent can use now
    List,
    /// Run a tool and show its result
    Call(ToolCall),
}

#[derive(Debug, Args)]
pub struct ToolCall {
    /// Tool, such as laptop__Bash
    pub name: ToolName,
    /// Arguments as key=value pairs (values are JSON, else strings), one JSON object, or `-` for JSON on stdin
    pub args: Vec<String>,
    /// Stop waiting after this long (30s, 5m)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it, once
    Create(TokenCreate),
    /// List all tokens, without their secrets
    List,
    /// Revoke a token and close its connections
    Revoke {
        /// Id from the list, or the whole token
        id: String,
        /// Do not ask before the token that this command uses is revoked
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct TokenCreate {
    /// Access that the token gives; client-ro can only read
    #[arg(long, value_parser = one_of(TokenKind::ALL, TokenKind::as_str))]
    pub scope: TokenKind,
    /// Machine that a node token is bound to
    #[arg(long, value_name = "ID", required_if_eq("scope", "node"))]
    pub node: Option<String>,
    /// Channel that a channel token is bound to
    #[arg(long, value_name = "CHANNEL", required_if_eq("scope", "channel"))]
    pub channel: Option<String>,
    /// Account that a channel token is bound to
    #[arg(long, value_name = "ACCOUNT", requires = "channel")]
    pub account: Option<String>,
    /// Lifetime from 1s to 3650d (90d, 12h) [default: it does not expire]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub expires: Option<Duration>,
    /// Note for the list
    #[arg(long)]
    pub label: Option<String>,
}

#[derive(Debug, Args)]
pub struct Audit {
    /// Number of entries, the newest first
    #[arg(short = 'n', long, value_name = "N", value_parser = number(1_u8, 200))]
    pub limit: Option<u8>,
    /// Only entries before this number
    #[arg(long, value_name = "SEQ")]
    pub before: Option<u64>,
    /// Only entries of this action
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Check that no entry was changed or removed
    #[arg(long, conflicts_with_all = ["limit", "before", "action"])]
    pub verify: bool,
}
