//! `gsv update`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::update::manifest::Channel;

#[derive(Debug, Args)]
#[command(
    after_help = "Replaces the program only after the release's signature, size and hash were verified, and only if it was unpacked from a release archive; for npm, cargo and source checkouts, names the command that updates it. Restarts a running gateway and the nodes that run as services. If the gateway does not start with the new version, program and state go back."
)]
pub struct Update {
    /// Releases to follow [default: `update.channel` of the local config, else stable]
    #[arg(long, value_name = "CHANNEL", value_parser = channel())]
    pub channel: Option<Channel>,
    /// Address or folder of the releases [default: `update.url` of the local config]
    #[arg(long, value_name = "ADDRESS", env = "GSV_RELEASE_URL", hide_env_values = true)]
    pub from: Option<String>,
    /// Only show whether there is a newer version
    #[arg(long, conflicts_with_all = ["rollback", "with_state"])]
    pub check: bool,
    /// Go back to the version before the last update
    #[arg(long, conflicts_with_all = ["channel", "check"])]
    pub rollback: bool,
    /// Also restore the gateway's state from before the update; what came since is kept aside
    #[arg(long, requires = "rollback")]
    pub with_state: bool,
}

fn channel() -> impl TypedValueParser<Value = Channel> {
    PossibleValuesParser::new(Channel::ALL.map(Channel::as_str)).map(|name| Channel::parse(&name).unwrap_or_default())
}
