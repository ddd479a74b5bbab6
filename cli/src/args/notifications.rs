//! `gsv notifications`: what you were told, where, and what waits.

use clap::{Args, Subcommand};
use gsv_protocol::types::NotificationKind;

use super::values::{number, one_of};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Where each kind is told is a setting: `gsv config set notifications.KIND WHERE`. WHERE is `main`, `last` (your last direct chat), `desktop`, `desktop/NODE`, `none`, or such as `whatsapp/default/dm/31612345678@s.whatsapp.net`. Quiet hours: `gsv config set notifications.quietHours '{\"start\":\"22:00\",\"end\":\"07:00\"}'`."
)]
pub struct Notifications {
    /// Number of notifications, the newest first
    #[arg(short = 'n', long, default_value_t = 20, value_parser = number(1_u8, 200))]
    pub limit: u8,
    /// Only this kind
    #[arg(long, value_parser = one_of(NotificationKind::ALL, NotificationKind::as_str))]
    pub kind: Option<NotificationKind>,
    #[command(subcommand)]
    pub command: Option<NotificationsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum NotificationsCommand {
    /// Test where notifications are told: send one now, also in quiet hours
    Test {
        /// Kind
        #[arg(long, default_value = "job", value_parser = one_of(NotificationKind::ALL, NotificationKind::as_str))]
        kind: NotificationKind,
    },
}
