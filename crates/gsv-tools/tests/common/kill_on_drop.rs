//! Ends the commands that a test has started, also when the test fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Kills the process groups of all running commands below a spool folder when it is dropped. Declare it before the folder's
/// guard, because fields drop in order.
pub struct KillOnDrop {
    spool: PathBuf,
}

impl KillOnDrop {
    pub fn new(spool: PathBuf) -> Self {
        Self { spool }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Ok(folders) = std::fs::read_dir(&self.spool) else {
            return;
        };
        for group in folders.flatten().filter_map(|folder| running_group(&folder.path())) {
            // The command may end in between.
            let _ = Command::new("kill")
                .args(["-KILL", "--", &format!("-{group}")])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// The process group of a command that has no exit and still is the process that was started.
fn running_group(folder: &Path) -> Option<u64> {
    let meta: Value = serde_json::from_slice(&std::fs::read(folder.join("meta.json")).ok()?).ok()?;
    let process = std::fs::read_to_string(format!("/proc/{}/stat", meta["pid"])).ok()?;
    let started = process.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    let group = meta["pgid"].as_u64()?;
    (!folder.join("exit").exists() && meta["startTime"] == started.as_str() && group > 1).then_some(group)
}
