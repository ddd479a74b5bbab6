//! `gsv skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::workspace::OfAgent;

#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List all skills
    List(OfAgent),
    /// Show which skills can be used, who approved them, and why others can not be used
    Status(SkillStatus),
    /// Print a skill, with hidden characters made visible
    Show(SkillName),
    /// Install a skill and approve it as it is
    Install(SkillInstall),
    /// Delete a skill
    Remove(SkillRemove),
    /// Approve a skill that has changed
    Approve(SkillApprove),
}

#[derive(Debug, Args)]
pub struct SkillName {
    /// Skill, from the list
    pub name: String,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct SkillStatus {
    /// Show this skill only, in full
    pub name: Option<String>,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct SkillInstall {
    /// SKILL.md, or a folder that contains one
    pub path: PathBuf,
    /// Name of the skill [default: the folder's, or the one in a single SKILL.md]
    #[arg(long)]
    pub name: Option<String>,
    /// Install it for every agent
    #[arg(long, conflicts_with = "agent")]
    pub global: bool,
    /// Replace a skill of the same name
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct SkillRemove {
    #[command(flatten)]
    pub skill: SkillName,
    /// Delete the skill that all agents share
    #[arg(long, conflicts_with = "agent")]
    pub global: bool,
}

#[derive(Debug, Args)]
pub struct SkillApprove {
    #[command(flatten)]
    pub skill: SkillName,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
}
