//! `state.json`: what the supervisor knows, for `status`, `up` and `down`. A hint, never a lock: only the lock file and the
//! processes themselves tell what runs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::listen::Listening;
use super::lock;
use super::poll;
use super::process::Process;
use super::runtime::Runtime;
use crate::exit::Outcome;
use crate::private_file;
use crate::units::now_ms;

/// Longer than the supervisor's own limit for a start, so that its reason arrives.
pub const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// workerd was started and has not answered yet.
    Starting,
    Ready,
    /// workerd died and will be restarted.
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
    /// The state folder. Absent: the supervisor is too old to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// The version of the bundle that runs.
    pub version: String,
    pub started_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<u64>,
    pub restarts: u32,
    /// How often a new configuration was loaded. Absent: the supervisor is too old to do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloads: Option<u32>,
    /// Whether it gives workerd the keys of stored secrets and the variables of channels. False: the supervisor is too old.
    #[serde(default)]
    pub gives_environment: bool,
    /// Whether it makes scheduled backups, and takes the signal about them. False: the supervisor is too old.
    #[serde(default)]
    pub schedules_backups: bool,
    /// The folder of its runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `reason`: what to do, when a start alone does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Where it listens for other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Listening>,
}

#[derive(Debug, PartialEq)]
pub enum Found {
    State(Box<State>),
    Absent,
    Damaged,
}

impl State {
    /// The first state of a supervisor, which is this process.
    pub fn starting(port: u16, runtime: &Runtime) -> Self {
        let me = Process::current();
        Self {
            phase: Phase::Starting,
            supervisor_pid: me.pid,
            supervisor_start: me.started,
            workerd_pid: None,
            workerd_start: None,
            boot_id: me.boot_id,
            port,
            home: None,
            version: runtime.manifest.version.clone(),
            started_at: now_ms(),
            ready_at: None,
            restarts: 0,
            reloads: Some(0),
            gives_environment: true,
            schedules_backups: true,
            runtime: Some(runtime.dir.clone()),
            reason: None,
            next: None,
            listening: None,
        }
    }

    /// Polls the state until `is_wanted`. `None` when that takes too long, when `is_hopeless`, or when the supervisor ends.
    pub fn wait(
        layout: &Layout,
        is_wanted: impl Fn(&Self) -> bool,
        mut is_hopeless: impl FnMut(&Self) -> bool,
    ) -> Option<Box<Self>> {
        let waited = poll(PATIENCE, || match Self::read(&layout.state()) {
            Found::State(state) if is_wanted(&state) => Some(Some(state)),
            Found::State(state) if is_hopeless(&state) => Some(None),
            _ if lock::is_held(&layout.supervisor_lock()) => None,
            _ => Some(None),
        });
        waited.flatten()
    }

    pub fn read(path: &Path) -> Found {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_or(Found::Damaged, |state| Found::State(Box::new(state))),
            Err(error) if error.kind() == ErrorKind::NotFound => Found::Absent,
            Err(_) => Found::Damaged,
        }
    }

    pub fn write(&self, path: &Path) -> Outcome<()> {
        private_file::write_unsynced(path, serde_json::to_string_pretty(self).unwrap_or_default())
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
