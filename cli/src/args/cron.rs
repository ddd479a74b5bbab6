//! `gsv cron`: jobs that the agent does by itself.

use std::time::Duration;

use clap::{Args, Subcommand};
use gsv_protocol::types::{AgentId, ModelRef, SessionKey, ThinkLevel};

use super::values::{agent_id, model_ref, number, one_of};
use crate::units::parse_duration;

#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// List the jobs, the next to run first
    List,
    /// Show a job and its next times
    Show {
        /// Job, as `gsv cron list` shows it
        id: String,
    },
    /// Show the times to come of all jobs and heartbeats, day by day
    Calendar {
        /// Show this many days, including today
        #[arg(long, default_value_t = 8, value_parser = number(1_u8, 31))]
        days: u8,
    },
    /// Show the next times of a schedule, and store nothing
    Preview {
        #[command(flatten)]
        when: When,
        /// How many
        #[arg(long, default_value_t = 5, value_parser = number(1_u8, 50))]
        count: u8,
    },
    /// Create a job, and show its next times first
    Add(CronAdd),
    /// Change a job, and keep what you leave out
    Edit(CronEdit),
    /// Remove a job and its log of runs
    Remove {
        /// Job, by its id or its name
        id: String,
    },
    /// Run a job now, beside its schedule
    Run {
        /// Job, by its id or its name
        id: String,
    },
    /// Show what became of the last times of a job, or of all jobs
    Runs {
        /// Job, by its id or its name
        id: Option<String>,
        /// How many
        #[arg(short = 'n', long, default_value_t = 20, value_parser = number(1_u8, 200))]
        limit: u8,
    },
    /// Let a job wait until `gsv cron resume`
    Pause {
        /// Job, by its id or its name
        id: String,
    },
    /// Let a job run again
    Resume {
        /// Job, by its id or its name
        id: String,
    },
}

/// When a job runs: one of the three.
#[derive(Debug, Args)]
#[group(id = "when", multiple = false)]
pub struct WhenOne {
    /// Once: `in 2 hours`, `tomorrow 9am`, `friday 17:30`, `2026-11-23 09:00`
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Again and again: `30m`, `2h30m`, `1d`
    #[arg(long, value_name = "LENGTH")]
    pub every: Option<String>,
    /// By a cron expression of five fields: `0 9 * * mon-fri`
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
}

#[derive(Debug, Args)]
pub struct When {
    #[command(flatten)]
    pub one: WhenOne,
    /// Time zone, such as Europe/Amsterdam [default: the setting userTimezone]
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
}

#[derive(Debug, Args)]
pub struct CronAdd {
    /// What the agent is to do then
    pub message: String,
    #[command(flatten)]
    pub when: When,
    /// Name of the job [default: the beginning of the message]
    #[arg(long)]
    pub name: Option<String>,
    /// Agent
    #[arg(long, value_parser = agent_id)]
    pub agent: Option<AgentId>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub struct CronEdit {
    /// Job
    pub id: String,
    /// What the agent is to do then; with it, --remind, --to, --model, --think, --time-limit, --wait, --quiet and --best-effort are set again
    #[arg(long)]
    pub message: Option<String>,
    #[command(flatten)]
    pub when: When,
    /// Name
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub struct How {
    /// Only remind you: you are told MESSAGE as it is. It calls no model, so it costs nothing
    #[arg(long, conflicts_with_all = ["model", "think", "time_limit", "wait", "quiet", "best_effort"])]
    pub remind: bool,
    /// Where the answer goes, such as `whatsapp/default/dm/31612345678@s.whatsapp.net` [default: your conversation; a reminder also reaches your chat that was active last]
    #[arg(long, value_name = "PLACE")]
    pub to: Option<String>,
    /// Your conversation [default: the one of `gsv chat`; with --agent that agent's main conversation]
    #[arg(short, long, value_name = "KEY", conflicts_with = "to")]
    pub session: Option<SessionKey>,
    /// Model, as provider/id
    #[arg(long, value_parser = model_ref)]
    pub model: Option<ModelRef>,
    /// How much the model may think
    #[arg(long, value_name = "LEVEL", value_parser = one_of(ThinkLevel::ALL, ThinkLevel::as_str))]
    pub think: Option<ThinkLevel>,
    /// Seconds that a run may take, 10 to 1800 [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = number(10_u16, 1800))]
    pub time_limit: Option<u16>,
    /// How long its tool calls wait for a machine that is not connected (30m, 8h, at most 24h; 0s: not at all) [default: 2h]
    #[arg(long, value_name = "TIME", value_parser = wait_length)]
    pub wait: Option<Duration>,
    /// Keep the answer in the log of runs only
    #[arg(long, conflicts_with = "to")]
    pub quiet: bool,
    /// An answer that can't be delivered is no failure
    #[arg(long)]
    pub best_effort: bool,
}

/// A whole number of seconds, at most a day.
fn wait_length(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(86_400);
    let length = parse_duration(text)?;
    if length > MOST || length.subsec_nanos() != 0 {
        return Err("A call waits whole seconds, at most 24h.".to_owned());
    }
    Ok(length)
}

impl How {
    pub const fn is_empty(&self) -> bool {
        !self.remind
            && self.to.is_none()
            && self.session.is_none()
            && self.model.is_none()
            && self.think.is_none()
            && self.time_limit.is_none()
            && self.wait.is_none()
            && !self.quiet
            && !self.best_effort
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn om1_a_job_waits_whole_seconds_at_most_a_day() {
        assert_eq!(wait_length("8h"), Ok(Duration::from_secs(28_800)));
        assert_eq!(wait_length("0s"), Ok(Duration::ZERO));
        assert_eq!(wait_length("24h"), Ok(Duration::from_secs(86_400)));
        assert!(wait_length("25h").is_err());
        assert!(wait_length("500ms").is_err());
        assert!(wait_length("soon").is_err());
    }
}
