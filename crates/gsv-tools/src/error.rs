//! The errors of the tools, each with a row of the contract's error table and a sentence that says what to do next.
//! Never carries file contents or environment; text from outside is quoted and cut.

use std::io;

use gsv_protocol::{ErrorReason, errors};

use crate::text;

/// The error of a tool call. `Display` is the sentence for the model and the person; [`ToolError::reason`] is the code.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("there is no tool {name}; this machine has {known}")]
    Unknown { name: String, known: String },
    #[error("the tool {name} can't be offered: {problem}")]
    BadDefinition { name: String, problem: String },
    #[error("the argument `{field}` is not valid: {problem}")]
    BadArgs { field: String, problem: String },
    #[error("{path} is outside the workspace; use a path below it, or start the node with --allow-outside")]
    OutsideWorkspace { path: String },
    #[error("{path} is in a folder of GSV itself, which tools can't use; ask the user to look there")]
    PrivateFolder { path: String },
    #[error(
        "{path} has several names (hard links), and GSV's own folders have too many files to tell whether one of them is there; copy it with `cp` and use the copy"
    )]
    ManyNames { path: String },
    #[error("{path} is not a usable path: {problem}")]
    InvalidPath { path: String, problem: String },
    #[error(
        "{path} leads through a link to {real}; write the path without the link, so that who allows the call sees what it is about"
    )]
    ThroughLink { path: String, real: String },
    #[error(
        "{path} is a file that other programs run or read as settings: a setting of git names it, or a link in the place of a hook or of settings leads to it. Ask the user to change it, or make the change with a command outside the sandbox, which they are asked about"
    )]
    RunByOthers { path: String },
    #[error("there is no {path}; list the files with Glob")]
    NotFound { path: String },
    #[error("{path} is {kind}, not a regular file; name a regular file")]
    NotAFile { path: String, kind: &'static str },
    #[error("{path} is not a directory; name a directory")]
    NotADirectory { path: String },
    #[error("{path} is a binary file of {size} bytes; use Bash with a program that understands it")]
    Binary { path: String, size: u64 },
    #[error("{what} is {size} bytes, more than the {limit} allowed; {hint}")]
    TooLarge {
        what: String,
        size: u64,
        limit: u64,
        hint: &'static str,
    },
    #[error("oldString is not in {path}{hint}; read the file and copy the text exactly, white space included")]
    NoMatch { path: String, hint: &'static str },
    #[error("oldString is in {path} {count} times; add surrounding lines to make it unique, or set replaceAll")]
    Ambiguous { path: String, count: usize },
    #[error("{path} was changed during the edit; read it again and repeat the edit")]
    Changed { path: String },
    #[error("{path} exists already; copy with --force to replace it, or choose another name")]
    Exists { path: String },
    #[error("another copy writes {path}; end that one, or wait for it")]
    Busy { path: String },
    #[error(
        "{path} has no size of its own, such as a file that the system makes while it is read; copy its content into a file first"
    )]
    Sizeless { path: String },
    #[error("{path} was changed while it was copied; copy it again when no program writes to it")]
    SourceChanged { path: String },
    #[error("the copy of {path} differs from its source, so it was removed; copy it again")]
    Differs { path: String },
    #[error("there is no process {id}; list the processes with action `list`")]
    UnknownProcess { id: String },
    #[error("{limit} commands run already; end one with Process kill, or wait")]
    TooManyProcesses { limit: usize },
    #[error("process {id} can't take input: {why}")]
    NoStdin { id: String, why: &'static str },
    #[error("the process group {pgid} did not end within 5 s of KILL (kill_failed); look at it with `ps`")]
    KillFailed { pgid: u32 },
    #[error("it took longer than {ms} ms; narrow the request, or raise the limit where there is one")]
    Timeout { ms: u64 },
    #[error("the call was cancelled{}", .tail.as_ref().map(|tail| format!("; the last output was:\n{tail}")).unwrap_or_default())]
    Cancelled { tail: Option<String> },
    #[error("it is not known how the call ended ({why}); check before you repeat it{}", describe_unknown(*.pid, .tail.as_ref()))]
    OutcomeUnknown {
        why: &'static str,
        pid: Option<u32>,
        started_at: Option<u64>,
        tail: Option<String>,
    },
    #[error("could not {doing}: {source}; check permissions and free space")]
    Io { doing: String, source: io::Error },
    #[error("{0}")]
    Failed(String),
}

fn describe_unknown(pid: Option<u32>, tail: Option<&String>) -> String {
    let pid = pid.map(|pid| format!("; its pid was {pid}")).unwrap_or_default();
    let tail = tail
        .filter(|tail| !tail.is_empty())
        .map(|tail| format!("; the last output was:\n{tail}"));
    pid + &tail.unwrap_or_default()
}

impl ToolError {
    /// The row of the contract's error table.
    pub fn row(&self) -> &'static ErrorReason {
        match self {
            Self::Unknown { .. } => &errors::TOOL_UNKNOWN,
            Self::BadDefinition { .. } => &errors::NODE_BAD_TOOL,
            Self::BadArgs { .. } => &errors::TOOL_BAD_ARGS,
            Self::OutsideWorkspace { .. } | Self::PrivateFolder { .. } | Self::ManyNames { .. } => {
                &errors::PATH_OUTSIDE_WORKSPACE
            }
            Self::InvalidPath { .. } | Self::ThroughLink { .. } | Self::RunByOthers { .. } => &errors::PATH_INVALID,
            Self::NotFound { .. } => &errors::PATH_NOT_FOUND,
            Self::NotAFile { .. } | Self::NotADirectory { .. } => &errors::PATH_NOT_A_FILE,
            Self::Binary { .. } => &errors::FILE_BINARY,
            Self::TooLarge { .. } => &errors::FILE_TOO_LARGE,
            Self::NoMatch { .. } => &errors::EDIT_NO_MATCH,
            Self::Ambiguous { .. } => &errors::EDIT_AMBIGUOUS,
            Self::Exists { .. } => &errors::FILE_EXISTS,
            Self::SourceChanged { .. } => &errors::TRANSFER_SOURCE_CHANGED,
            Self::Differs { .. } => &errors::TRANSFER_CHECKSUM,
            Self::UnknownProcess { .. } => &errors::PROCESS_UNKNOWN,
            Self::TooManyProcesses { .. } => &errors::TOOL_QUEUE_FULL,
            Self::Timeout { .. } => &errors::TOOL_TIMEOUT,
            Self::Cancelled { .. } => &errors::TOOL_CANCELLED,
            Self::OutcomeUnknown { .. } => &errors::TOOL_OUTCOME_UNKNOWN,
            Self::Io { .. } => &errors::TOOL_IO,
            Self::Changed { .. }
            | Self::Busy { .. }
            | Self::Sizeless { .. }
            | Self::NoStdin { .. }
            | Self::KillFailed { .. }
            | Self::Failed(_) => &errors::TOOL_FAILED,
        }
    }

    /// What programs compare.
    pub fn reason(&self) -> &'static str {
        self.row().reason
    }

    pub(crate) fn bad_args(field: &str, problem: impl Into<String>) -> Self {
        Self::BadArgs {
            field: field.to_owned(),
            problem: problem.into(),
        }
    }

    pub(crate) fn io(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            doing: doing.into(),
            source: source.into(),
        }
    }
}

/// A path for a message: quoted, control characters escaped, cut.
pub(crate) fn quote(raw: &str) -> String {
    format!("{:?}", text::cut_chars(raw, 200))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_an_unknown_outcome_says_what_is_known() {
        let said = |pid, tail: Option<&str>| {
            let error = ToolError::OutcomeUnknown {
                why: "the node stopped",
                pid,
                started_at: None,
                tail: tail.map(Into::into),
            };
            error.to_string()
        };
        let start = "it is not known how the call ended (the node stopped); check before you repeat it";
        assert_eq!(said(None, None), start);
        assert_eq!(said(Some(7), Some("")), format!("{start}; its pid was 7"));
        assert_eq!(
            said(Some(7), Some("ok")),
            format!("{start}; its pid was 7; the last output was:\nok")
        );
    }
}
