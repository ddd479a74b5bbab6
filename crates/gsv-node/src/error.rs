//! Why a node ends or can't start. Each message is for a person and says what to do.

use std::path::PathBuf;

use gsv_link::LinkError;
use gsv_link::ledger::LedgerError;
use gsv_protocol::errors;
use gsv_sandbox::Profile;
use gsv_tools::ToolError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    #[error(
        "`{id}` can't be a node's name: at most 64 letters, digits, `_`, `.` and `-`, the first a letter or digit. Choose another with --id."
    )]
    BadId { id: String },
    #[error("the folder {} can't be used: {source}. Check its permissions, or choose another.", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(
        "The workspace {} and GSV's own folder {} overlap, and tools must not reach the latter. Name another folder: `gsv node --workspace DIR`.",
        workspace.display(),
        folder.display()
    )]
    PrivateWorkspace { workspace: PathBuf, folder: PathBuf },
    #[error(
        "This machine can't enforce the sandbox profile `{}`, so the node does not start: {reason} Or set `sandbox = \"off\"` in node.toml: the agent's commands can do what you can then.",
        profile.name()
    )]
    Sandbox { profile: Profile, reason: String },
    #[error(
        "`{key}` in node.toml is wrong, so the node does not start: {reason}. It is a list of existing folders that begin with `/` or `~/`, as in `{key} = [\"~/data\"]`."
    )]
    Policy { key: &'static str, reason: String },
    #[error("The sandbox of the agent's commands can't be set up, so the node does not start: {reason}")]
    SandboxFolder { reason: String },
    #[error("the tools can't be set up: {0}")]
    Tools(#[from] ToolError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl NodeError {
    /// What programs compare: a reason of the error table.
    pub fn reason(&self) -> &str {
        match self {
            Self::BadId { .. } | Self::PrivateWorkspace { .. } => errors::NODE_BAD_OPTIONS.reason,
            Self::Tools(error @ ToolError::BadDefinition { .. }) => error.reason(),
            Self::Folder { .. }
            | Self::Sandbox { .. }
            | Self::Policy { .. }
            | Self::SandboxFolder { .. }
            | Self::Ledger(_)
            | Self::Tools(_) => errors::NODE_CANNOT_START.reason,
            Self::Link(error) => error.reason(),
        }
    }

    /// Exit status of a program that ends with this.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::BadId { .. }
            | Self::PrivateWorkspace { .. }
            | Self::Sandbox { .. }
            | Self::Policy { .. }
            | Self::SandboxFolder { .. } => 2,
            Self::Link(error) => error.exit_status(),
            Self::Folder { .. } | Self::Tools(_) | Self::Ledger(_) => 1,
        }
    }
}
