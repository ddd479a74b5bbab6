//! The limits of one command, as the owner of the machine sets them. `usage` looks whether they hold.

use serde::{Deserialize, Serialize};

/// What the processes of one command may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandLimits {
    /// In memory and swapped out; what programs and files share is not counted.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: usize,
}

impl CommandLimits {
    /// For `machine_bytes` of memory: a command leaves a quarter of it to others.
    pub fn for_machine(machine_bytes: u64) -> Self {
        Self {
            memory_bytes: machine_bytes / 4 * 3,
            processes: PROCESSES,
        }
    }
}

/// Enough for builds with a process for each core, and for virtual machines with many threads.
const PROCESSES: usize = 4096;
