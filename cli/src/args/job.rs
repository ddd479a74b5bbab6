//! `gsv job`: tasks for agents that wait for their turn.

use clap::{Args, Subcommand};
use gsv_protocol::types::JobStatus;

use super::values::{number, one_of};

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Submit a task to an agent, and print the id of the job
    Submit(JobSubmit),
    /// List the jobs, the newest first
    List {
        /// Only jobs with this status. The list shows awaiting_approval as "waiting for your word", and budget_exceeded as "out of its budget"
        #[arg(long, value_parser = one_of(JobStatus::ALL, JobStatus::as_str))]
        status: Option<JobStatus>,
        /// Only jobs of this agent, by its name or its id
        #[arg(long)]
        agent: Option<String>,
        /// How many
        #[arg(short = 'n', long, default_value_t = 20, value_parser = number(1_u16, 1000))]
        limit: u16,
    },
    /// Show a job, with its report
    Show {
        /// Job, as `gsv job list` shows it
        id: String,
    },
    /// Stop a job: a queued one never begins
    Cancel {
        /// Job, as `gsv job list` shows it
        id: String,
    },
    /// Show what a job does until it ends. Exit status: 0 it succeeded, 1 it failed, 5 it waits for your word, 130 it was cancelled
    Watch {
        /// Job, as `gsv job list` shows it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct JobSubmit {
    /// Agent, by the name in its definition; without a definition, by its id
    pub agent: String,
    /// What the agent is to do
    pub instructions: String,
    /// File with data for the task, as JSON; `-` reads it from stdin
    #[arg(long, value_name = "FILE")]
    pub data: Option<String>,
    /// Key that makes a repetition safe: for 24 hours it names the same job
    #[arg(long)]
    pub key: Option<String>,
    /// Show what the job does until it ends, as `gsv job watch`
    #[arg(long)]
    pub wait: bool,
}
