//! `gsv deploy`.

use std::time::Duration;

use clap::{Args, Subcommand};
use gsv_link::Target;

use super::move_home::{DeployExport, DeployImport};
use super::values::number;
use crate::units::parse_duration;

#[derive(Debug, Subcommand)]
pub enum DeployCommand {
    /// Deploy the gateway, or bring a deployment up to date
    #[command(
        after_help = "It shows a plan and asks. What is there already is used and kept, so a run that failed can be repeated. It needs wrangler, and CLOUDFLARE_API_TOKEN or a login (`wrangler login`)."
    )]
    Up(DeployUp),
    /// Show what is deployed, with versions, address and health
    Status(DeployAccount),
    /// Follow the log of the deployed gateway, or of a channel, until Ctrl-C
    Logs(DeployLogs),
    /// Activate the versions before the last `gsv deploy up`
    Rollback(DeployRollback),
    /// Stop the deployment; its data stays unless --purge is given
    Down(DeployDown),
    /// Check the tools, the token and what the account lacks
    #[command(
        after_help = "Exit status: 0 nothing is missing, 1 something is missing, 3 Cloudflare refuses the token."
    )]
    Check(DeployAccount),
    /// Save the home of a stopped gateway to an encrypted file, for another gateway
    Export(DeployExport),
    /// Import an exported home into a fresh gateway
    Import(DeployImport),
}

#[derive(Debug, Default, Args)]
pub struct DeployAccount {
    /// Cloudflare account, by id or name [default: CLOUDFLARE_ACCOUNT_ID, else that of the last deployment, else the only one]
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
}

#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub struct DeployUp {
    #[command(flatten)]
    pub account: DeployAccount,
    /// Channels to deploy, separated by commas; `none` for none [default: those that are deployed, at first those of this machine's gateway]
    #[arg(long, value_name = "CHANNELS", value_delimiter = ',')]
    pub channels: Option<Vec<String>>,
    /// Make a Vectorize index for long-term memory, for vectors of this many dimensions
    #[arg(long, value_name = "DIMENSIONS", value_parser = number(1_u32, 1536))]
    pub vectorize: Option<u32>,
    /// Address of the gateway when it is not that at workers.dev, such as https://gsv.example.com [default: as at the last deployment]
    #[arg(long, value_name = "URL", value_parser = address)]
    pub address: Option<String>,
    /// Replace Workers of these names that `gsv deploy` has not deployed
    #[arg(long)]
    pub adopt: bool,
    /// Create a new first admin token, because the old one is lost; the old one is revoked
    #[arg(long)]
    pub new_token: bool,
    /// Store address and token in the local config, although it has another gateway; its login is kept in a backup
    #[arg(long)]
    pub login: bool,
    /// Wait this long until the gateway answers with its version
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = parse_duration)]
    pub wait: Duration,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

fn address(text: &str) -> Result<String, String> {
    let target = Target::parse(text).map_err(|error| error.to_string())?;
    if !target.tls && !target.is_loopback() {
        return Err("it must begin with https://".to_owned());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Args)]
pub struct DeployLogs {
    #[command(flatten)]
    pub account: DeployAccount,
    /// Channel to follow [default: the gateway's]
    #[arg(long, value_name = "CHANNEL")]
    pub channel: Option<String>,
}

#[derive(Debug, Args)]
pub struct DeployRollback {
    #[command(flatten)]
    pub account: DeployAccount,
    /// Wait this long until the gateway answers with its version
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = parse_duration)]
    pub wait: Duration,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct DeployDown {
    #[command(flatten)]
    pub account: DeployAccount,
    /// Delete the deployment with all its data: conversations, files, memories, logins; NAME is its name, gsv
    #[arg(long, value_name = "NAME")]
    pub purge: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
