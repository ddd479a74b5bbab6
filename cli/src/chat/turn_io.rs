//! What goes into a turn and what comes out: the message, what happens meanwhile, and what the driver does. Data only.

use std::time::Duration;

use gsv_link::LinkError;
use gsv_protocol::types::{
    ApprovalAnswerKind, ApprovalEntry, ApprovalResolveParams, ApprovalResolveResult, Attachment, ChatAbortParams,
    ChatEvent, ChatSendParams, ChatSendResult, MessageId, PolicyMode, RunId, SessionEvent, SessionSubscribeParams,
    SessionSubscribeResult, Usage, WhileBusy,
};

use super::assembler::Show;
use super::decision::Decision;
use super::followed::News;
use crate::exit::Outcome;

pub struct Request {
    pub message: String,
    /// Uploaded already.
    pub files: Vec<Attachment>,
    pub timeout: Option<Duration>,
    /// Show what the answer cost.
    pub verbose: bool,
    pub approve: Approve,
    /// What the message does while a run is under way.
    pub while_busy: Option<WhileBusy>,
    /// The mode of the run of this message alone.
    pub mode: Option<PolicyMode>,
}

/// What becomes of a call that waits for a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approve {
    /// The turn ends with the question, and the run waits.
    Ask,
    /// The question is shown, and the turn goes on: the answer is handed in.
    Here,
    Never,
    All,
}

/// Ids of a message; random, so the driver makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    pub run: RunId,
    pub message: MessageId,
}

impl Ids {
    pub fn from(run: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            run: RunId(run.into()),
            message: MessageId(message.into()),
        }
    }
}

pub enum Input {
    News(News),
    Sent(Result<ChatSendResult, LinkError>),
    Subscribed(Result<SessionSubscribeResult, LinkError>),
    Aborted(Result<(), LinkError>),
    /// The calls of the session that wait, after the question with this code was announced.
    Looked(Option<String>, Vec<ApprovalEntry>),
    Resolved(String, ApprovalAnswerKind, Result<ApprovalResolveResult, LinkError>),
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The user wrote a command that acts beside the run.
    Command(String, MessageId),
    /// Its answer.
    Commanded(String, Result<ChatSendResult, LinkError>),
    /// The user wrote a message for the run under way.
    Steer(String, Ids),
    /// Its answer.
    Steered(MessageId, Result<ChatSendResult, LinkError>),
    /// The user wants to see what the model thinks, or no longer.
    Thoughts(bool),
    /// The user's word about the call that was shown first.
    Decided(ApprovalAnswerKind),
    /// The user's word about the call with a code.
    DecidedAbout(Decision),
    /// The time of `wake_at` has come.
    Wake,
}

/// What the driver does, in order. A new `Subscribe` replaces one that is not answered.
#[derive(Debug, PartialEq)]
pub enum Effect {
    Send(ChatSendParams),
    Subscribe(SessionSubscribeParams),
    Abort(ChatAbortParams),
    /// Send a command now, whatever else is under way.
    Command(ChatSendParams),
    /// Send a message for the run now.
    Steer(MessageId, ChatSendParams),
    /// Ask which calls wait: a question that was announced may have ended since. Without a code: which ones are left.
    Look(Option<String>),
    Resolve(ApprovalResolveParams),
    Draw(Draw),
    End(Outcome),
}

/// What the view shows.
#[derive(Debug, PartialEq)]
pub enum Draw {
    Sent(ChatSendResult),
    Event(Box<ChatEvent>),
    Session(Box<SessionEvent>),
    /// The connection is lost, with the reason, or is there again.
    Lost(String),
    Connected,
    Show(Show),
    /// The answer of a command, which is not part of a run.
    Answer(String),
    Note(String),
    /// Calls that wait for a word, in this order.
    Question(Vec<ApprovalEntry>),
    Usage(Option<Usage>, Duration),
}
