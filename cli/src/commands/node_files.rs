//! What a node keeps on this machine, and the process that uses it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::check_node_id;
use crate::embedded::lock;
use crate::exit::Outcome;
use crate::paths;

pub fn state_dir(id: &str) -> Outcome<PathBuf> {
    Ok(paths::state_dir()?.join("node").join(id))
}

pub fn log_file(id: &str) -> Outcome<PathBuf> {
    Ok(state_dir(id)?.join("node.log"))
}

/// The process that is a node now, in a service or outside of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    No,
    /// Its number is not known.
    Somewhere,
    Process(u32),
}

pub fn running(id: &str) -> Outcome<Running> {
    let file = state_dir(id)?.join("ledger").join("lock");
    if !lock::is_held(&file) {
        return Ok(Running::No);
    }
    let pid = fs::read_to_string(file).ok().and_then(|pid| pid.trim().parse().ok());
    Ok(pid.map_or(Running::Somewhere, Running::Process))
}

/// The names of the nodes that have a folder in the state of this machine.
pub fn known_here(home: &Path) -> Vec<String> {
    let folders = fs::read_dir(home.join("node")).into_iter().flatten().flatten();
    let mut names: Vec<String> = folders
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| check_node_id(name).is_ok())
        .collect();
    names.sort();
    names
}

/// The nodes whose processes run on this machine.
pub fn nodes_here() -> Vec<(String, Running)> {
    let Ok(home) = paths::state_dir() else {
        return Vec::new();
    };
    let found = known_here(&home)
        .into_iter()
        .map(|id| (running(&id).unwrap_or(Running::No), id));
    found
        .filter(|(node, _)| *node != Running::No)
        .map(|(node, id)| (id, node))
        .collect()
}

impl Running {
    /// Whether it is this process; None: no process.
    pub fn is(self, pid: Option<u32>) -> bool {
        match (self, pid) {
            (Self::No, None) => true,
            (Self::Process(own), Some(pid)) => own == pid,
            _ => false,
        }
    }

    pub fn how_to_stop(self) -> String {
        let kill = match self {
            Self::Process(pid) => format!(", or `kill {pid}`"),
            Self::No | Self::Somewhere => String::new(),
        };
        format!("Stop it (Ctrl-C in its terminal{kill}), then run this again.")
    }
}
