//! `gsv hook`: other services wake the agent.

use clap::{Args, Subcommand};
use gsv_protocol::types::{AgentId, HookForm};

use super::cron::How;
use super::values::{agent_id, number, one_of};

#[derive(Debug, Subcommand)]
pub enum HookCommand {
    /// Create a hook, and show its address and its secret once
    Add(HookAdd),
    /// List the hooks, with what they accepted and refused
    List,
    /// Show a hook and what became of its last deliveries
    Show {
        /// Hook
        name: String,
        /// How many deliveries
        #[arg(short = 'n', long, default_value_t = 20, value_parser = number(1_u8, 200))]
        limit: u8,
    },
    /// Remove a hook, its secret, and deliveries that have not begun
    Remove {
        /// Hook
        name: String,
        /// Remove it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Test a hook with a signed sample, which goes to its address
    Test(HookTest),
}

#[derive(Debug, Args)]
pub struct HookAdd {
    /// Name, which ends the address: a-z, 0-9, _ and -
    pub name: String,
    /// What the agent is to do. `{{body.issue.title}}`, `{{header.x-github-event}}` and `{{id}}` stand for a value of the delivery, `{{body}}` for all of it [default: to say what matters in it]
    pub message: Option<String>,
    /// How the sender signs: `standard` is Standard Webhooks
    #[arg(long, default_value = "standard", value_parser = one_of(HookForm::ALL, HookForm::as_str))]
    pub form: HookForm,
    /// Secret that the other service has made; `-` reads it from stdin [default: a new one]
    #[arg(long, value_name = "SECRET")]
    pub secret: Option<String>,
    /// Only deliveries for which this is true, such as `body.action=opened,reopened` (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    pub only: Vec<String>,
    /// Run this job, an id or a name, beside its schedule: the model reads the text of the job, and then MESSAGE or else the whole body
    #[arg(long, value_name = "JOB", conflicts_with_all = ["agent", "remind", "to", "session", "model", "think", "time_limit", "wait", "quiet", "best_effort"])]
    pub job: Option<String>,
    /// Agent
    #[arg(long, value_parser = agent_id)]
    pub agent: Option<AgentId>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub struct HookTest {
    /// Hook
    pub name: String,
    /// Body as JSON; `-` reads it from stdin [default: a small object]
    #[arg(long, value_name = "JSON")]
    pub body: Option<String>,
    /// Event of a GitHub hook, such as `issues`
    #[arg(long)]
    pub event: Option<String>,
}
