//! `gsv agent` and `gsv prompt`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gsv_protocol::types::{AgentId, ModelRef, SessionKey};

use super::values::{agent_id, model_ref};

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// List all agents, the default one first
    List,
    /// Create an agent
    New(AgentNew),
    /// Show an agent, its definition, its files and the channels that it answers on
    Show {
        /// Agent, such as main
        #[arg(value_parser = agent_id)]
        id: AgentId,
        /// Print the text of the current definition
        #[arg(long, conflicts_with = "json")]
        yaml: bool,
    },
    /// Check a definition and list its mistakes; change nothing
    Validate {
        /// File agent.yaml, or the folder that has it
        path: PathBuf,
    },
    /// Check a definition and apply it; create the agent if it does not exist
    Define {
        /// File agent.yaml, or the folder that has it
        path: PathBuf,
    },
    /// Change the definition of an agent in your editor and apply it
    Edit {
        /// Agent; without one of this id, it is created
        #[arg(value_parser = agent_id)]
        id: AgentId,
    },
    /// Remove the definition of an agent, which then has the defaults
    Undefine(AgentUndefine),
    /// Delete an agent; its files stay in the workspace
    #[command(alias = "remove")]
    Delete(AgentDelete),
    /// Import an agent from an OpenClaw workspace or from a folder of the reference GSV
    Import(AgentImport),
}

#[derive(Debug, Args)]
pub struct AgentNew {
    /// Id of the new agent: a-z, 0-9, _ and -
    #[arg(value_parser = agent_id)]
    pub id: AgentId,
    /// Model, as provider/id [default: the configured one]
    #[arg(long, value_name = "PROVIDER/ID", value_parser = model_ref)]
    pub model: Option<ModelRef>,
    /// Instructions that come before everything else; @FILE reads them from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub prompt: Option<String>,
    /// Purpose of the agent, shown in lists
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Make it the default agent
    #[arg(long)]
    pub default: bool,
}

#[derive(Debug, Args)]
pub struct AgentUndefine {
    /// Agent
    #[arg(value_parser = agent_id)]
    pub id: AgentId,
    /// Remove it without asking
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct AgentDelete {
    /// Agent
    #[arg(value_parser = agent_id)]
    pub id: AgentId,
    /// Delete without asking
    #[arg(long)]
    pub yes: bool,
    /// Delete its conversations and jobs, too, and stop their runs
    #[arg(long)]
    pub sessions: bool,
}

#[derive(Debug, Args)]
pub struct AgentImport {
    /// Folder that contains SOUL.md, AGENTS.md, memory/ or skills/
    pub dir: PathBuf,
    /// Agent to import into; it is created if it does not exist [default: from the folder's name, else main]
    #[arg(long, value_name = "ID", value_parser = agent_id)]
    pub id: Option<AgentId>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replace files that differ without asking; earlier versions are kept
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Subcommand)]
pub enum PromptCommand {
    /// Show the current prompt by section, without calling the model
    Show(PromptShow),
}

#[derive(Debug, Args)]
pub struct PromptShow {
    /// Conversation, even one that does not exist yet [default: as in `gsv session get`]
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
    /// Show the whole text of each section
    #[arg(long, conflicts_with_all = ["section", "layers"])]
    pub full: bool,
    /// Show the tokens of each of the six layers and of its sections, without their texts
    #[arg(long, conflicts_with = "section")]
    pub layers: bool,
    /// Print the text of this section only
    #[arg(long, value_name = "ID")]
    pub section: Option<String>,
}
