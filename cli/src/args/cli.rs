//! The root command and the options that every command takes.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use gsv_protocol::types::{SessionKey, UsageBy};

use super::agent::{AgentCommand, PromptCommand};
use super::approval::ApprovalCommand;
use super::backup::{Backup, Restore};
use super::channel::{ChannelCommand, PairCommand};
use super::copy::Copy;
use super::cron::CronCommand;
use super::deploy::DeployCommand;
use super::events::EventsCommand;
use super::gateway::{Audit, ConfigCommand, LocalConfigCommand, Node, TokenCommand, ToolsCommand, Up};
use super::heartbeat::HeartbeatCommand;
use super::hook::HookCommand;
use super::invite::{InviteCommand, Join};
use super::job::JobCommand;
use super::memory::MemoryCommand;
use super::model::{ModelCommand, ProviderCommand, Setup};
use super::nodes::NodesCommand;
use super::notifications::Notifications;
use super::service::ServiceCommand;
use super::session::{Chat, Resume, Search, SessionCommand, Stop, Undo};
use super::skills::SkillsCommand;
use super::update::Update;
use super::values::{number, one_of};
use super::workspace::WorkspaceCommand;

#[derive(Debug, Parser)]
#[command(
    name = "gsv",
    version,
    about = "Your own AI agent: always reachable, able to use all your machines",
    after_help = "Start with `gsv up` and `gsv chat hello`. Exit status: 0 success, 1 failure, 2 wrong input, 3 not allowed, 4 try again later, 5 waiting for your word, 6 inside a command of the agent, 130 stopped.",
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Address of the gateway [default: `url` of the local config]
    #[arg(
        short,
        long,
        global = true,
        env = "GSV_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub url: Option<String>,
    /// Access token [default: `token` of the local config]; prefer GSV_TOKEN, which the process list does not show
    #[arg(
        short,
        long,
        global = true,
        env = "GSV_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub token: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    /// Whether the address is a flag, and not from the environment.
    pub fn has_typed_url(&self) -> bool {
        self.url.is_some() && self.url != std::env::var("GSV_URL").ok()
    }

    /// Whether the token is a flag, and not from the environment.
    pub fn has_typed_token(&self) -> bool {
        self.token.is_some() && self.token != std::env::var("GSV_TOKEN").ok()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set the model, its key and what starts with this machine
    Setup(Setup),
    /// Talk to the agent
    Chat(Chat),
    /// Start the gateway on this machine
    Up(Up),
    /// Stop the gateway on this machine
    Down,
    /// Let the gateway start with this machine, and show its log
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Run the gateway on your Cloudflare account, and move a home between gateways
    #[command(subcommand)]
    Deploy(DeployCommand),
    /// Stop the run of a conversation, or everything
    Stop(Stop),
    /// Start again after `gsv stop --all`: waiting messages are answered
    Resume(Resume),
    /// Restore the files that a run or a call of the agent changed
    Undo(Undo),
    /// Show the gateway, machines, channels and recent conversations
    Status,
    /// Update GSV to a newer release, or go back to the previous one
    Update(Update),
    /// Save the gateway's state on this machine to an encrypted file
    Backup(Backup),
    /// Restore the gateway's state on this machine from a backup
    Restore(Restore),
    /// Let the agent use this machine
    Node(Node),
    /// List and remove the machines that the gateway knows
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// Let another machine join this gateway
    #[command(
        subcommand,
        after_help = "The gateway must listen for other machines: `gsv up --listen 0.0.0.0:8788`."
    )]
    Invite(InviteCommand),
    /// Connect this machine to a gateway on another one
    Join(Join),
    /// Show and change the gateway's settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show and change the settings of this command line (address, tokens)
    #[command(subcommand, name = "local-config")]
    LocalConfig(LocalConfigCommand),
    /// List, read and manage conversations
    #[command(after_help = "Without a command, on a terminal: choose one of the last conversations and open it.")]
    Session {
        #[command(subcommand)]
        command: Option<SessionCommand>,
    },
    /// List and run the tools of the machines and the gateway
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List, change and test the model that answers
    #[command(subcommand)]
    Model(ModelCommand),
    /// List the providers of models
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Show what model calls used, in tokens and dollars, and how near the limits are
    Usage {
        /// Group by
        #[arg(long, default_value = "day", value_parser = one_of(UsageBy::ALL, UsageBy::as_str))]
        by: UsageBy,
        /// Number of days, today included
        #[arg(long, default_value_t = 30, value_parser = number(1_u16, 400))]
        days: u16,
    },
    /// Connect WhatsApp, Discord and other channels
    #[command(subcommand)]
    Channel(ChannelCommand),
    /// Approve and reject people who write to the agent on a channel
    #[command(subcommand)]
    Pair(PairCommand),
    /// Show and answer the calls of the agent that wait for your word
    #[command(subcommand)]
    Approval(ApprovalCommand),
    /// Let the agent do something at a time, or again and again
    #[command(subcommand)]
    Cron(CronCommand),
    /// Let an agent check regularly whether there is something to do
    #[command(subcommand)]
    Heartbeat(HeartbeatCommand),
    /// Let other services wake the agent over HTTP
    #[command(subcommand)]
    Hook(HookCommand),
    /// Submit tasks to agents, and read the reports later
    #[command(subcommand)]
    Job(JobCommand),
    /// Show the events of agents, and decide those that wait for your word
    #[command(subcommand)]
    Events(EventsCommand),
    /// List what you were told, and test where you are told
    Notifications(Notifications),
    /// List, create and import agents
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Show the prompt that the model gets
    #[command(subcommand)]
    Prompt(PromptCommand),
    /// Create and revoke access tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Read and change the agent's files
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Copy a file between machines and the agent's workspace
    #[command(name = "cp")]
    Copy(Copy),
    /// Show, search and change what an agent remembers
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Find text in files, conversations and transcripts
    Search(Search),
    /// List, install and approve the agent's skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Show what one run did, what it cost, and why each of its calls was made or not
    Why {
        /// Run, one of its calls, or job; the last run without it
        #[arg(value_name = "RUN|CALL|JOB")]
        what: Option<String>,
        /// Conversation
        #[arg(short, long, value_name = "KEY")]
        session: Option<SessionKey>,
    },
    /// List and check the audit log
    Audit(Audit),
    /// Find problems and show how to fix them
    Doctor {
        /// Do not call the model, which costs a few tokens
        #[arg(long)]
        offline: bool,
    },
    /// Print the version
    Version,
    /// Print the completions for a shell
    Completions {
        /// Shell, as in: gsv completions bash > ~/.local/share/bash-completion/completions/gsv
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// How a command's help text may begin.
    const VERBS: &str = "Activate Add Allow Approve Archive Change Check Compare Connect Copy Create Delete Deny Deploy Disconnect End Find Follow Import Install Let Link List \
        Log Move Open Print Read Reject Remove Reset Restore Revoke Run Save Set Show Start Stop Submit Talk Test Update";

    /// The words that the glossary replaces by others, in small letters.
    fn banned() -> Vec<String> {
        let glossary = include_str!("../../../docs/glossary.md").to_lowercase();
        let table = glossary.split("## say this").nth(1).unwrap();
        let cells = table.lines().filter_map(|row| row.split('|').nth(2)).skip(2);
        let words = cells
            .flat_map(|cell| cell.split(','))
            .map(|words| words.split('(').next().unwrap());
        words.map(|words| words.trim_matches([' ', '"']).to_owned()).collect()
    }

    fn check(command: &clap::Command, path: &str, banned: &[String]) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        assert!(
            VERBS.split(' ').any(|verb| verb == first),
            "{path}: `{about}` does not begin with a verb"
        );
        let mut texts = vec![about];
        texts.extend(command.get_after_help().map(ToString::to_string));
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.starts_with(|first: char| !first.is_lowercase()) && !help.is_empty(),
                "{path} {}: `{help}` is missing or begins with a small letter",
                arg.get_id()
            );
            assert!(
                !help.ends_with('.'),
                "{path} {}: `{help}` ends with a period",
                arg.get_id()
            );
            texts.push(help);
        }
        assert!(!texts[0].ends_with('.'), "{path}: `{}` ends with a period", texts[0]);
        for text in &texts {
            let lower = text.to_lowercase();
            let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
            let words = format!(" {} ", words.join(" "));
            for word in banned {
                assert!(!words.contains(&format!(" {word} ")), "{path}: `{word}` in `{text}`");
            }
        }
        for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
            check(child, &format!("{path} {}", child.get_name()), banned);
        }
    }

    #[test]
    fn help_texts_are_plain() {
        let root = Cli::command();
        let commands = root.get_subcommands().collect::<Vec<_>>();
        assert_eq!(commands.len(), 46);
        let banned = banned();
        assert!(
            banned.len() > 20 && banned.iter().any(|word| word == "courtesy"),
            "{banned:?}"
        );
        for command in commands {
            check(command, command.get_name(), &banned);
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
