//! The program between a command's supervisor and the shell: enforces the stored plan on itself and becomes the shell. With bubblewrap it
//! waits for the shell, and runs a second time, inside, where it checks what was mounted (check.rs); a plan that was out of date is made
//! again (attempt.rs). When that fails, it ends with 126 and a sentence, and the command does not run. Where it has a gate (gate.rs), all
//! is made before the gate is passed.
//!
//! Map: `program` has the `main` and `options` its words; `enter` enforces the plan by tier, with bubblewrap in `outside`; `handover` is
//! what the program inside gets from it, and `inside` what it does there; `exit` has the texts of a command that was not run.

mod enter;
mod exit;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(target_os = "linux")]
mod inside;
mod options;
#[cfg(not(target_os = "linux"))]
mod other_systems;
#[cfg(target_os = "linux")]
mod outside;
mod program;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::options::{ConfineOptions, PlanUse};
pub use self::program::confine_main;
use crate::plan::Plan;
use crate::profile::Tier;

/// A plan and what enforces it, as it is stored for the commands of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub tier: Tier,
    pub plan: Plan,
    /// The program `bwrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<PathBuf>,
}

impl Confinement {
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let temp = file.with_extension("tmp");
        std::fs::write(&temp, serde_json::to_vec(self)?)?;
        std::fs::rename(temp, file)
    }

    /// # Errors
    /// There is no such file, or it can't be read.
    pub fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }
}
