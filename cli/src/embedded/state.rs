//! `state.json`: what the supervisor knows, for `status`, `up` and `down`. A hint, never a lock: who runs is told by the
//! lock file and by the processes themselves.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::process::Process;
use crate::exit::{OrFail, Outcome};
use crate::paths;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// workerd has been started and has not answered yet.
    Starting,
    Ready,
    /// workerd died and will be started again.
    Restarting,
    /// The supervisor has ended; `reason` says why.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub phase: Phase,
    pub supervisor_pid: u32,
    pub supervisor_start: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workerd_pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workerd_start: Option<String>,
    pub boot_id: String,
    pub port: u16,
    /// Of the bundle that runs.
    pub version: String,
    pub started_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<u64>,
    pub restarts: u32,
    /// How often it has taken up a new configuration. Absent: the supervisor is too old to do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloads: Option<u32>,
    /// Where its runtime is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a look at the file gave.
#[derive(Debug, PartialEq)]
pub enum Found {
    State(Box<State>),
    Absent,
    Damaged,
}

impl State {
    pub fn read(path: &Path) -> Found {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_or(Found::Damaged, |state| Found::State(Box::new(state))),
            Err(error) if error.kind() == ErrorKind::NotFound => Found::Absent,
            Err(_) => Found::Damaged,
        }
    }

    pub fn write(&self, path: &Path) -> Outcome<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        paths::write_private_file(path, text.as_bytes()).or_fail(
            format_args!("write {}", path.display()),
            "Check that the disk is not full.",
        )
    }

    pub fn supervisor(&self) -> Process {
        Process {
            pid: self.supervisor_pid,
            started: self.supervisor_start.clone(),
            boot_id: self.boot_id.clone(),
        }
    }

    pub fn workerd(&self) -> Option<Process> {
        Some(Process {
            pid: self.workerd_pid?,
            started: self.workerd_start.clone()?,
            boot_id: self.boot_id.clone(),
        })
    }

    pub fn set_workerd(&mut self, process: Option<Process>) {
        self.workerd_pid = process.as_ref().map(|process| process.pid);
        self.workerd_start = process.map(|process| process.started);
    }
}
