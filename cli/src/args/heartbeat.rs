//! `gsv heartbeat`: an agent looks by itself whether something is to be done.

use clap::{Args, Subcommand};
use gsv_protocol::types::AgentId;

use super::values::agent_id;

#[derive(Debug, Subcommand)]
pub enum HeartbeatCommand {
    /// Show each agent's heartbeat, what was skipped and why, and what the last day cost
    Status,
    /// Check each condition of HEARTBEAT.md now; no model is asked and nothing is changed
    Check {
        /// Agent [default: the default agent]
        #[arg(long, value_parser = agent_id)]
        agent: Option<AgentId>,
    },
    /// Run a heartbeat now, also outside of its hours and when no condition of HEARTBEAT.md holds
    Run {
        /// Agent [default: the default agent]
        #[arg(long, value_parser = agent_id)]
        agent: Option<AgentId>,
    },
    /// Let an agent look from time to time at what HEARTBEAT.md asks for, and change how
    On(HeartbeatOn),
    /// Stop the heartbeat of an agent
    Off {
        /// Agent [default: the default agent]
        #[arg(long, value_parser = agent_id)]
        agent: Option<AgentId>,
    },
}

#[derive(Debug, Args)]
pub struct HeartbeatOn {
    /// How often: `30m`, `2h30m` [default: as before, else 30m]
    #[arg(long, value_name = "LENGTH")]
    pub every: Option<String>,
    /// Hours of the day, such as `08:00-22:00`; `00:00-24:00` is the whole day [default: as before]
    #[arg(long, value_name = "FROM-TO")]
    pub hours: Option<String>,
    /// Time zone of the hours, such as Europe/Amsterdam [default: the setting userTimezone]
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
    /// Where an answer goes: `last` (your last direct chat), `none`, or such as `whatsapp/default/dm/31612345678@s.whatsapp.net`
    #[arg(long, value_name = "PLACE")]
    pub target: Option<String>,
    /// Text for the agent instead of the instruction to read HEARTBEAT.md
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Agent [default: the default agent]
    #[arg(long, value_parser = agent_id)]
    pub agent: Option<AgentId>,
}
