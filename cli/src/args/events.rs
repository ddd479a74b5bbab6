//! `gsv events`: what agents emitted, and what has become of it.

use clap::{Args, Subcommand};
use gsv_protocol::types::{EventDecision, EventStatus};

use super::values::{number, one_of};

#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// List the events, the newest first
    List(EventsList),
    /// Show an event with its payload
    Show {
        /// Event, as `gsv events list` shows it
        id: String,
    },
    /// Approve or reject an event that waits for your word
    Resolve {
        /// Event, as `gsv events list` shows it
        id: String,
        /// Your decision
        #[arg(value_parser = one_of(EventDecision::ALL, EventDecision::as_str))]
        decision: EventDecision,
    },
    /// Start the handling of a dead letter again
    Replay {
        /// Event, as `gsv events list` shows it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct EventsList {
    /// Only events with this status. The list shows waiting_approval as "waiting for your word", and dead as "dead letter"
    #[arg(long, value_parser = one_of(EventStatus::ALL, EventStatus::as_str))]
    pub status: Option<EventStatus>,
    /// Only events of this topic
    #[arg(long)]
    pub topic: Option<String>,
    /// Only events that are older than this one
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,
    /// How many
    #[arg(short = 'n', long, default_value_t = 20, value_parser = number(1_u8, 100))]
    pub limit: u8,
}
