//! What can be typed. Every flag and command is defined here, once; nothing is read or done here.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help texts, which show backticks as they are"
)]

mod channels;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use gsv_protocol::types::SearchSource;

pub use self::channels::{
    ChannelAccount, ChannelCommand, ChannelLogin, ChannelStart, PairCommand, PairWho, try_parse_from,
};
use crate::units::parse_duration;

#[derive(Debug, Parser)]
#[command(
    name = "gsv",
    version,
    about = "Your own AI agent, always reachable, with hands on all your machines",
    after_help = "Begin with `gsv up` and `gsv chat hello`. Exit status: 0 done, 1 failed, 2 wrong input, 3 not allowed, 4 try later, 130 stopped.",
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Address of the gateway, over the one in the local config
    #[arg(
        short,
        long,
        global = true,
        env = "GSV_URL",
        hide_env_values = true,
        value_name = "URL",
        help_heading = "Everywhere"
    )]
    pub url: Option<String>,
    /// Token, over the one in the local config (GSV_TOKEN keeps it out of the process list)
    #[arg(
        short,
        long,
        global = true,
        env = "GSV_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Everywhere"
    )]
    pub token: Option<String>,
    /// Data as JSON
    #[arg(long, global = true, action = ArgAction::SetTrue, help_heading = "Everywhere")]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk to the agent
    Chat(Chat),
    /// Start the gateway on this machine
    Up(Up),
    /// Stop the gateway on this machine
    Down,
    /// Show the gateway, the machines and what is going on
    Status,
    /// Give the agent hands on this machine
    Node(Node),
    /// Settings of the gateway
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Settings of this command line (address, tokens)
    #[command(subcommand, name = "local-config")]
    LocalConfig(LocalConfigCommand),
    /// Conversations
    #[command(subcommand)]
    Session(SessionCommand),
    /// Tools of the machines and of the gateway
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// WhatsApp, Discord and other places where the agent can be reached
    #[command(subcommand)]
    Channel(ChannelCommand),
    /// Who may write to the agent on a channel
    #[command(subcommand)]
    Pair(PairCommand),
    /// Agents: who there is, making one, bringing one along
    #[command(subcommand)]
    Agent(AgentCommand),
    /// What the model gets to read
    #[command(subcommand)]
    Prompt(PromptCommand),
    /// Who may connect
    #[command(subcommand)]
    Token(TokenCommand),
    /// The agent's files
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Find text in files, conversations and transcripts
    Search(Search),
    /// What the agent knows how to do
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// What was done, by whom
    Audit(Audit),
    /// Look for what is wrong, and say how to mend it
    Doctor,
    /// Completions for a shell, to stdout
    Completions {
        /// Such as: gsv completions bash > ~/.local/share/bash-completion/completions/gsv
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub struct Chat {
    /// What to say; without it, read stdin, or talk interactively on a terminal
    pub message: Option<String>,
    /// Conversation [default: `session` of the local config, else agent:main:cli:dm:main]
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<String>,
    /// Talk to this agent: the command line's conversation with it
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    pub agent: Option<String>,
    /// Send this file along; may be given up to 16 times, each at most 25 MiB
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// Stop waiting for the answer after this long (30s, 5m; the run itself goes on)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Show tokens, cost and time at the end
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct Up {
    /// Port on 127.0.0.1 [default: 8787]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Stay in the foreground, the log on stderr
    #[arg(long)]
    pub foreground: bool,
    /// Make a new first admin token, because the old one is lost
    #[arg(long)]
    pub new_token: bool,
    /// Be the supervisor; `gsv up` starts it
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "new_token"], requires = "port")]
    pub supervise: bool,
}

#[derive(Debug, Args)]
pub struct Node {
    /// Name of this machine, the prefix of its tools [default: node.id of the local config]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Folder that the agent works in [default: node.workspace of the local config, else the current folder]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the tools reach files outside the workspace
    #[arg(long)]
    pub allow_outside: bool,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show the configuration in force, or one path of it
    Get {
        /// Such as model.provider
        path: Option<String>,
    },
    /// Set one path
    Set {
        /// Such as model.provider
        path: String,
        /// JSON, else taken as a string; `-` reads it from stdin, so that a secret stays out of the shell's history
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take one path back to its default
    Unset {
        /// Such as model.provider
        path: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum LocalConfigCommand {
    /// Show all settings, or one (secrets are masked)
    Get {
        /// url, token, session, node.id, node.token or node.workspace
        key: Option<String>,
    },
    /// Change one setting
    Set {
        /// url, token, session, node.id, node.token or node.workspace
        key: String,
        /// `-` reads it from stdin
        value: String,
    },
    /// Remove one setting
    Unset {
        /// url, token, session, node.id, node.token or node.workspace
        key: String,
    },
    /// Where the file is
    Path,
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// All agents, the default one first
    List,
    /// Make one
    New(AgentNew),
    /// One in full: its files and where it answers
    Show {
        /// Such as main
        id: String,
    },
    /// Bring one along: an OpenClaw workspace, or an agent's folder of the reference GSV
    Import(AgentImport),
}

#[derive(Debug, Args)]
pub struct AgentNew {
    /// Its name: a-z, 0-9, _ and -
    pub id: String,
    /// Its model, as provider/id [default: the configured one]
    #[arg(long, value_name = "PROVIDER/ID")]
    pub model: Option<String>,
    /// What it is told before everything else; @FILE reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub prompt: Option<String>,
    /// What it is for, in lists
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The one that answers where nothing else is said
    #[arg(long)]
    pub default: bool,
}

#[derive(Debug, Args)]
pub struct AgentImport {
    /// The folder with SOUL.md, AGENTS.md, memory/, skills/ in it
    pub dir: PathBuf,
    /// The agent that gets them; made when it is not there [default: by the folder's name, else main]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Replace files that differ without asking; earlier versions are kept
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Subcommand)]
pub enum PromptCommand {
    /// What the model would get now, by section; no model is called
    Show {
        /// Conversation, also one that does not exist yet [default: `session` of the local config, else agent:main:cli:dm:main]
        #[arg(short, long, value_name = "KEY")]
        session: Option<String>,
        /// The whole text of each section
        #[arg(long, conflicts_with = "section")]
        full: bool,
        /// The text of one section alone, as it is
        #[arg(long, value_name = "ID")]
        section: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct SessionKey {
    /// Conversation [default: `session` of the local config, else agent:main:cli:dm:main]
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// All conversations, the last active first
    List {
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=200))]
        limit: Option<u8>,
        /// Skip so many
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Settings and state of one
    Get(SessionKey),
    /// Counters of one
    Stats(SessionKey),
    /// Archive it and start afresh
    Reset(SessionKey),
    /// Archive all but the last messages
    Compact {
        #[command(flatten)]
        session: SessionKey,
        /// Messages to keep
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        keep: Option<u32>,
    },
    /// Its earlier conversations and what was put away of the present one, as transcripts
    History(SessionKey),
    /// A conversation to read: the present one, or a transcript
    Show {
        /// A conversation's key, a transcript of `history`, or a session id [default: as in `get`]
        #[arg(value_name = "SESSION|TRANSCRIPT")]
        target: Option<String>,
        /// At most so many messages
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// Skip so many from the beginning
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
        #[command(flatten)]
        agent: Agent,
    },
    /// Save a conversation: all of it, also what was put away
    Export {
        /// A conversation's key, a transcript of `history`, or a session id [default: as in `get`]
        #[arg(value_name = "SESSION|TRANSCRIPT")]
        target: Option<String>,
        /// How [default: by the file's ending, else jsonl]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
        /// Where to [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        agent: Agent,
    },
    /// Its last messages
    Preview {
        #[command(flatten)]
        session: SessionKey,
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=200))]
        limit: Option<u8>,
    },
    /// Change its settings
    Set(SessionSet),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One message a line, as they are stored
    Jsonl,
    /// To read
    Markdown,
}

#[derive(Debug, Args)]
pub struct SessionSet {
    #[command(flatten)]
    pub session: SessionKey,
    /// Model, as provider/id
    #[arg(long, value_name = "PROVIDER/ID")]
    pub model: Option<String>,
    /// How long the model may think
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub think: Option<Think>,
    /// Its name in lists
    #[arg(long)]
    pub label: Option<String>,
    /// System prompt of its own
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Longest answer, in tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// When it starts afresh by itself
    #[arg(long, value_enum, value_name = "WHEN")]
    pub reset: Option<Reset>,
    /// Hour of a daily reset
    #[arg(long, value_name = "HOUR", value_parser = clap::value_parser!(u8).range(0..=23))]
    pub at_hour: Option<u8>,
    /// Minutes of silence before an idle reset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=525_600))]
    pub idle_minutes: Option<u32>,
    /// Take a setting back to the configuration's (model, thinkingLevel, systemPrompt, maxTokens, label, resetPolicy)
    #[arg(long, value_name = "SETTING")]
    pub clear: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Think {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reset {
    Manual,
    Daily,
    Idle,
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// Every tool that the agent could use now
    List,
    /// Run one tool and show its result
    Call {
        /// Such as laptop__Bash
        name: String,
        /// key=value pairs (values are JSON, else strings), one JSON object, or `-` for JSON on stdin
        args: Vec<String>,
        /// Give up after this long (30s, 5m)
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        timeout: Option<Duration>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    Client,
    ClientRo,
    Node,
    Channel,
    Admin,
}

#[derive(Debug, Args)]
pub struct TokenCreate {
    /// What its holder may be; client-ro may only look
    #[arg(long, value_enum)]
    pub scope: Scope,
    /// The machine that a node token is bound to
    #[arg(long, value_name = "ID", required_if_eq("scope", "node"))]
    pub node: Option<String>,
    /// The channel that a channel token is bound to
    #[arg(long, value_name = "CHANNEL", required_if_eq("scope", "channel"))]
    pub channel: Option<String>,
    /// The account that a channel token is bound to
    #[arg(long, value_name = "ACCOUNT", requires = "channel")]
    pub account: Option<String>,
    /// When it ends (90d, 12h); without it, never
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub expires: Option<Duration>,
    /// A note for the list
    #[arg(long)]
    pub label: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is shown once, on stdout
    Create(TokenCreate),
    /// All tokens, without their secrets
    List,
    /// End a token and its connections
    Revoke {
        /// Its id, from the list (or the token itself)
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Agent {
    /// Whose workspace [default: main]
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Files and folders
    Ls {
        /// A folder [default: the workspace itself]
        path: Option<String>,
        #[command(flatten)]
        agent: Agent,
    },
    /// A file's content to stdout
    Cat {
        /// Such as memory/2026-11-21.md
        path: String,
        #[command(flatten)]
        agent: Agent,
    },
    /// Write a file
    Put {
        /// Such as memory/2026-11-21.md
        path: String,
        /// Where the content comes from; `-` or nothing is stdin
        file: Option<PathBuf>,
        /// Only if the file still has this etag (see `cat --json`), or `absent`
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
        #[command(flatten)]
        agent: Agent,
    },
    /// Change a file in your editor
    Edit {
        /// Such as memory/2026-11-21.md
        path: String,
        #[command(flatten)]
        agent: Agent,
    },
    /// Delete a file (`restore` brings it back)
    Rm {
        /// Such as memory/2026-11-21.md
        path: String,
        #[command(flatten)]
        agent: Agent,
    },
    /// What a file was before, the newest first
    Log {
        /// Such as SOUL.md, also one that was deleted
        path: String,
        #[command(flatten)]
        agent: Agent,
    },
    /// What changed between two versions of a file
    Diff {
        /// Such as SOUL.md
        path: String,
        /// A version of `log`: its number, its name or the beginning of it, or `now` [default: 1, the last before now]
        from: Option<String>,
        /// The same [default: now]
        to: Option<String>,
        #[command(flatten)]
        agent: Agent,
    },
    /// Make a file what it was before; what it is now stays in `log`
    Restore {
        /// Such as SOUL.md
        path: String,
        /// A version of `log`: its number, its name or the beginning of it [default: 1, the last before now]
        version: Option<String>,
        #[command(flatten)]
        agent: Agent,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Words must all occur. Also understood: '\"a phrase\"', OR, -word, word* (quote the whole query for the shell, as in: gsv search 'boat* -\"blue boat\"')."
)]
pub struct Search {
    /// What to look for
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Where to look, more than once or with commas [default: everywhere]
    #[arg(long = "in", value_name = "WHERE", value_enum, value_delimiter = ',')]
    pub sources: Vec<Where>,
    /// Only this conversation
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<String>,
    /// Of this agent [default: the default agent]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub limit: Option<u8>,
    /// Leave out the first ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10000))]
    pub offset: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Where {
    Workspace,
    Sessions,
    Archives,
}

impl From<Where> for SearchSource {
    fn from(place: Where) -> Self {
        match place {
            Where::Workspace => Self::Workspace,
            Where::Sessions => Self::Sessions,
            Where::Archives => Self::Archives,
        }
    }
}

#[derive(Debug, Args)]
pub struct SkillsAgent {
    /// Whose skills [default: main]
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// All skills
    List {
        #[command(flatten)]
        agent: SkillsAgent,
    },
    /// Which may be used, who approved them, and why one may not
    Status {
        /// Only this one, in full
        name: Option<String>,
        #[command(flatten)]
        agent: SkillsAgent,
    },
    /// Its text, with everything hidden made visible
    Show {
        /// Its name, from the list
        name: String,
        #[command(flatten)]
        agent: SkillsAgent,
    },
    /// Install one and approve it as it is
    Install(SkillsInstall),
    /// Delete one
    Remove {
        /// Its name, from the list
        name: String,
        /// The one that is every agent's
        #[arg(long, conflicts_with = "agent")]
        global: bool,
        #[command(flatten)]
        agent: SkillsAgent,
    },
    /// Look at one that was changed, and let the agent use it as it is now
    Approve {
        /// Its name, from the list
        name: String,
        /// Don't ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        agent: SkillsAgent,
    },
}

#[derive(Debug, Args)]
pub struct SkillsInstall {
    /// A SKILL.md, or a folder with one
    pub path: PathBuf,
    /// Its name [default: the folder's, or what a single SKILL.md says]
    #[arg(long)]
    pub name: Option<String>,
    /// For every agent
    #[arg(long, conflicts_with = "agent")]
    pub global: bool,
    /// In the place of one of that name
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub agent: SkillsAgent,
}

#[derive(Debug, Args)]
pub struct Audit {
    /// How many, the newest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=200))]
    pub limit: Option<u8>,
    /// Only those before this number
    #[arg(long, value_name = "SEQ")]
    pub before: Option<u64>,
    /// Only this action
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn negative_numbers_are_values() {
        let cli = Cli::try_parse_from(["gsv", "config", "set", "model.maxTokens", "-5"]).unwrap();
        assert!(matches!(cli.command, Command::Config(ConfigCommand::Set { value, .. }) if value == "-5"));
    }

    #[test]
    fn a_node_token_needs_its_node() {
        assert!(Cli::try_parse_from(["gsv", "token", "create", "--scope", "node"]).is_err());
        assert!(Cli::try_parse_from(["gsv", "token", "create", "--scope", "node", "--node", "laptop"]).is_ok());
    }
}
