//! `gsv channel` and `gsv pair`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{channel_name, key_value};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "The channel may also come first: `gsv channel whatsapp login` means `gsv channel login whatsapp`, and `gsv channel discord` means `gsv channel status discord`."
)]
pub enum ChannelCommand {
    /// List all channels with their state
    List,
    /// Show channel status in detail
    Status {
        /// Channel, such as whatsapp or discord [default: all]
        #[arg(value_parser = channel_name)]
        channel: Option<String>,
        /// Show this account only
        #[arg(long, value_name = "ID", requires = "channel")]
        account: Option<String>,
    },
    /// Connect an account and keep it connected
    Start(ChannelStart),
    /// Disconnect an account; waiting messages are kept
    Stop(ChannelAccount),
    /// Link an account with a phone by a QR code or a typed code
    Login(ChannelLogin),
    /// Log an account out and delete its keys
    Logout {
        #[command(flatten)]
        which: ChannelAccount,
        /// Log out without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show or change the channel of this name
    #[command(external_subcommand)]
    Named(Vec<OsString>),
}

#[derive(Debug, Args)]
pub struct ChannelAccount {
    /// Channel, such as whatsapp or discord
    #[arg(value_parser = channel_name)]
    pub channel: String,
    /// Account of the channel [default: default]
    #[arg(long, value_name = "ID")]
    pub account: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A secret is never an argument, because the process list shows arguments: type it at the hidden prompt, or give it by a file or stdin, as in `gsv channel discord start < token.txt`. A secret that was given once is kept."
)]
pub struct ChannelStart {
    #[command(flatten)]
    pub which: ChannelAccount,
    /// Setting of the channel; may be given more than once. The value is JSON, else a string; `-` asks for it or reads stdin
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub config: Vec<(String, String)>,
    /// File that contains the channel's token; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ChannelLogin {
    #[command(flatten)]
    pub which: ChannelAccount,
    /// Start a new login, even if the account is linked
    #[arg(long)]
    pub force: bool,
    /// Show a code to type on the phone with this number, instead of a QR code
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub phone: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum PairCommand {
    /// List pairing requests and approved senders
    List,
    /// Approve a sender as a guest, who gets a separate conversation
    Approve(PairApprove),
    /// Reject a sender and delete the waiting messages
    Reject(PairWho),
}

#[derive(Debug, Args)]
pub struct PairApprove {
    #[command(flatten)]
    pub who: PairWho,
    /// Approve yourself, with access to your own conversation, notes and machines
    #[arg(long)]
    pub owner: bool,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct PairWho {
    /// Channel, such as whatsapp or discord
    #[arg(value_parser = channel_name)]
    pub channel: String,
    /// Code that the sender was shown, or the sender's id
    #[arg(value_name = "CODE|SENDER", allow_hyphen_values = true)]
    pub sender: String,
}
