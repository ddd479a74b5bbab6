//! `gsv approval`.

use clap::{Args, Subcommand};
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
    /// Allow one call, once
    Allow(Question),
    /// Deny one call
    Deny {
        #[command(flatten)]
        question: Question,
        /// Words to the agent, such as what to do instead
        word: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct Question {
    /// Code of the question, such as K7Q2A
    pub code: String,
    /// Conversation, where two have a question with this code
    #[arg(short, long, value_name = "KEY")]
    pub session: Option<SessionKey>,
}
