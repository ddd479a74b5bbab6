//! Arguments of `gsv approval`.

use clap::{Args, Subcommand, ValueEnum};
use gsv_protocol::types::SessionKey;

#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// List the calls that wait for your word
    List {
        /// Show this conversation only
        #[arg(short, long, value_name = "KEY")]
        session: Option<SessionKey>,
    },
    /// Show everything that one call will do
    Show(Question),
    /// Allow one call, or calls like it for a time
    Allow(Allow),
    /// Deny one call
    Deny {
        #[command(flatten)]
        question: Question,
        /// Words to the agent, such as what to do instead
        word: Vec<String>,
    },
    /// List what you have allowed for a time, and the rules that allow
    Grants,
    /// End what you have allowed for a time, or by a rule, at once
    Revoke {
        /// Id of a grant, or `rule:ID` of a rule, as `gsv approval grants` shows it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Allow {
    #[command(flatten)]
    pub question: Question,
    /// Allow calls of the same scope too: in this conversation, or for a time
    #[arg(long = "for", value_name = "TIME", conflicts_with = "always")]
    pub hold: Option<Hold>,
    /// Save a rule that allows exactly this call from now on; the rule is shown first
    #[arg(long)]
    pub always: bool,
    /// Save the rule without a question
    #[arg(short, long, requires = "always")]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Hold {
    /// In this conversation, for at most 24 hours
    Session,
    /// By this agent, for 1 hour
    #[value(name = "1h")]
    OneHour,
    /// By this agent, for 8 hours
    #[value(name = "8h")]
    EightHours,
    /// By this agent, for 30 days
    #[value(name = "30d")]
    ThirtyDays,
}

#[derive(Debug, Args)]
pub struct Question {
    /// Code of the question, such as K7Q2A
    pub code: String,
    /// Conversation, where two have a question with this code
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
}
