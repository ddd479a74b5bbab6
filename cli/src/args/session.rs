//! `gsv chat`, `gsv session` and `gsv search`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use gsv_protocol::types::{AgentId, ModelRef, PolicyMode, ResetMode, SearchSource, SessionKey, ThinkLevel};

use super::values::{agent_id, model_ref, number, one_of};
use super::workspace::OfAgent;
use crate::units::parse_duration;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Chat {
    /// Message, in one or several words; a pipe or file on stdin is added to it, and `-` stands for it [default: a prompt]
    pub message: Vec<String>,
    /// Conversation [default: `session` of the local config, else agent:main:cli:dm:main]
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
    /// Talk to this agent, in the command line's conversation with it
    #[arg(long, value_name = "ID", conflicts_with = "session", value_parser = agent_id)]
    pub agent: Option<AgentId>,
    /// Go on with your conversation that was active last; with --agent, with that agent's
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub go_on: bool,
    /// Attach this file; may be given up to 16 times, each at most 25 MiB
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// Stop waiting for the answer after this long (30s, 5m); the run itself continues
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Answer the questions about calls in the run of this message that need your word: `never` denies each call, `all` allows each call. Both deny a question about a limit of the run
    #[arg(long, value_enum, value_name = "ANSWER")]
    pub approve: Option<ApproveCalls>,
    /// Show the message to the run under way at its next step, and print the answer of that run (at the prompt: for each line)
    #[arg(long, conflicts_with = "interrupt")]
    pub steer: bool,
    /// Stop the run that is under way, and answer the message next
    #[arg(long)]
    pub interrupt: bool,
    /// Which tool calls run and which ask: with a message for its run alone, at the prompt for the conversation from now on (as `gsv session set --mode`)
    #[arg(long, value_name = "MODE", value_parser = one_of(PolicyMode::ALL, PolicyMode::as_str))]
    pub mode: Option<PolicyMode>,
    /// Show what the model thinks, where its provider sends it (at the prompt: `/thoughts on`; always: `gsv local-config set chat.thoughts on`)
    #[arg(long)]
    pub thoughts: bool,
    /// Show tokens, cost and time at the end
    #[arg(short, long)]
    pub verbose: bool,
}

impl Chat {
    /// One message, and its answer.
    pub fn of(message: &str) -> Self {
        Self {
            message: vec![message.to_owned()],
            ..Self::prompt(None)
        }
    }

    /// A conversation at its prompt.
    pub const fn prompt(session: Option<SessionKey>) -> Self {
        Self {
            message: Vec::new(),
            session,
            agent: None,
            go_on: false,
            attach: Vec::new(),
            timeout: None,
            approve: None,
            steer: false,
            interrupt: false,
            mode: None,
            thoughts: false,
            verbose: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApproveCalls {
    Never,
    All,
}

#[derive(Debug, Args)]
pub struct Stop {
    #[command(flatten)]
    pub session: Conversation,
    /// Stop all runs of all conversations, and start none until `gsv resume`; messages wait
    #[arg(long, conflicts_with_all = ["key", "session"])]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Resume {
    /// Resume although the home was exported; only when it runs nowhere else
    #[arg(long)]
    pub exported: bool,
}

#[derive(Debug, Args)]
pub struct Undo {
    /// Run, call or earlier undo [default: the last run of the conversation that changed files]
    #[arg(value_name = "RUN|CALL")]
    pub target: Option<String>,
    /// Conversation [default: `session` of the local config, else agent:main:cli:dm:main]
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
    /// Show what would be undone, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Also undo files that were changed since; their current content is kept and can be restored
    #[arg(long)]
    pub force: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List all conversations, the last active first
    List {
        /// Number of conversations
        #[arg(short = 'n', long, value_name = "N", value_parser = number(1_u8, 200))]
        limit: Option<u8>,
        /// Skip the first N
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
        /// Only the conversations of this agent
        #[arg(long, value_name = "ID", value_parser = agent_id)]
        agent: Option<AgentId>,
    },
    /// Show the settings and state of a conversation
    Get(Conversation),
    /// Show the counters of a conversation
    Stats(Conversation),
    /// Archive this conversation and start a new one
    Reset(Conversation),
    /// Archive all but the last messages
    Compact {
        #[command(flatten)]
        session: Conversation,
        /// Number of messages to keep; 0 keeps none
        #[arg(short, long, value_name = "N", value_parser = number(0_u32, 100_000))]
        keep: Option<u32>,
    },
    /// Delete a conversation with its transcripts and files
    Delete(SessionDelete),
    /// List archived transcripts
    History(Conversation),
    /// Show a conversation, with its notes, or an archived transcript
    Show(SessionShow),
    /// Save a whole conversation, including its archived part and its notes
    Export(SessionExport),
    /// Show the last messages and notes
    Preview {
        #[command(flatten)]
        session: Conversation,
        /// Number of messages
        #[arg(short = 'n', long, value_name = "N", value_parser = number(1_u8, 200))]
        limit: Option<u8>,
        /// Show the model's thoughts, too
        #[arg(long)]
        thinking: bool,
    },
    /// Change the settings of a conversation
    Set(SessionSet),
}

#[derive(Debug, Args)]
pub struct Conversation {
    /// Conversation [default: `session` of the local config, else agent:main:cli:dm:main]
    #[arg(value_name = "KEY")]
    key: Option<SessionKey>,
    /// The same as KEY
    #[arg(short, long, value_name = "KEY", conflicts_with = "key")]
    session: Option<SessionKey>,
}

impl Conversation {
    /// The one that was named.
    pub fn named(self) -> Option<SessionKey> {
        self.key.or(self.session)
    }
}

#[derive(Debug, Args)]
pub struct SessionDelete {
    /// Conversation
    #[arg(value_name = "KEY", required_unless_present = "session")]
    key: Option<SessionKey>,
    /// The same as KEY
    #[arg(short, long, value_name = "KEY", conflicts_with = "key")]
    session: Option<SessionKey>,
    /// Delete without asking
    #[arg(long)]
    pub yes: bool,
    /// Stop its run, and drop messages that wait
    #[arg(long)]
    pub stop: bool,
}

impl SessionDelete {
    pub fn named(&self) -> Option<&SessionKey> {
        self.key.as_ref().or(self.session.as_ref())
    }
}

#[derive(Debug, Args)]
pub struct SessionShow {
    /// Session key, transcript from `history`, or session id [default: as in `get`]
    #[arg(value_name = "SESSION|TRANSCRIPT")]
    pub target: Option<String>,
    /// The conversation with this key
    #[arg(short, long, value_name = "KEY", conflicts_with = "target")]
    pub session: Option<SessionKey>,
    /// Number of messages and notes
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Skip the first N messages and notes
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub offset: u64,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Args)]
pub struct SessionExport {
    /// Session key, transcript from `history`, or session id [default: as in `get`]
    #[arg(value_name = "SESSION|TRANSCRIPT")]
    pub target: Option<String>,
    /// The conversation with this key
    #[arg(short, long, value_name = "KEY", conflicts_with = "target")]
    pub session: Option<SessionKey>,
    /// Format [default: from the file's ending, else jsonl]
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub of: OfAgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One stored message per line
    Jsonl,
    /// Text for reading
    Markdown,
}

#[derive(Debug, Args)]
pub struct SessionSet {
    #[command(flatten)]
    pub session: Conversation,
    /// Model, as provider/id
    #[arg(long, value_name = "PROVIDER/ID", value_parser = model_ref)]
    pub model: Option<ModelRef>,
    /// Effort that the model spends on thinking
    #[arg(long, value_name = "LEVEL", value_parser = one_of(ThinkLevel::ALL, ThinkLevel::as_str))]
    pub think: Option<ThinkLevel>,
    /// Name in lists
    #[arg(long)]
    pub label: Option<String>,
    /// System prompt of this conversation only
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Longest answer, in tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// Which tool calls run and which ask (the configured mode again: `--clear mode`)
    #[arg(long, value_name = "MODE", value_parser = one_of(PolicyMode::ALL, PolicyMode::as_str))]
    pub mode: Option<PolicyMode>,
    /// How long the mode holds (30m, 2h), at most 24h [default: until it is changed; full: 1h]
    #[arg(long, value_name = "TIME", requires = "mode", value_parser = parse_duration)]
    pub mode_for: Option<Duration>,
    /// When it is reset automatically
    #[arg(long, value_name = "WHEN", value_parser = one_of(ResetMode::ALL, ResetMode::as_str))]
    pub reset: Option<ResetMode>,
    /// Hour of a daily reset
    #[arg(long, value_name = "HOUR", value_parser = number(0_u8, 23))]
    pub at_hour: Option<u8>,
    /// Minutes without a message before an idle reset
    #[arg(long, value_name = "N", value_parser = number(1_u32, 525_600))]
    pub idle_minutes: Option<u32>,
    /// Reset a setting to the configured one (model, thinkingLevel, systemPrompt, maxTokens, mode, label, resetPolicy)
    #[arg(long, value_name = "SETTING")]
    pub clear: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Any of the words may occur, in any form. Also understood: '\"a phrase\"' and +word (must occur exactly), -word (must not), OR, word* (quote the whole query for the shell, as in: `gsv search 'boat* -\"blue boat\"'`). A query that begins with a minus needs `--` before it."
)]
pub struct Search {
    /// Words to find
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Where to search; may be given more than once or with commas [default: all]
    #[arg(
        long = "in",
        value_name = "WHERE",
        value_delimiter = ',',
        value_parser = one_of(SearchSource::ALL, SearchSource::as_str)
    )]
    pub sources: Vec<SearchSource>,
    /// Search this conversation only
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
    /// Agent to search [default: the default agent]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<AgentId>,
    /// Number of results
    #[arg(short = 'n', long, value_name = "N", value_parser = number(1_u8, 100))]
    pub limit: Option<u8>,
    /// Skip the first N results
    #[arg(long, value_name = "N", value_parser = number(0_u16, 10_000))]
    pub offset: Option<u16>,
}
