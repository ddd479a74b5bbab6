//! Processes by pid, guarded against reuse: a pid counts only together with its start time and the machine's boot.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};

use super::poll;

/// One process, until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    pub pid: u32,
    /// As the system counts it; only ever compared for equality.
    pub started: String,
    /// Start times are counted from the boot.
    pub boot_id: String,
}

impl Process {
    pub fn current() -> Self {
        Self::of(std::process::id())
    }

    /// The process that has this pid now.
    pub fn of(pid: u32) -> Self {
        Self {
            pid,
            started: start_time(pid).unwrap_or_default(),
            boot_id: boot_id(),
        }
    }

    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && pid(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok())
            && start_time(self.pid).is_some_and(|started| started == self.started)
    }

    fn signal(&self, signal: Signal) {
        if self.is_alive()
            && let Some(pid) = pid(self.pid)
        {
            // Best effort: it may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks a supervisor to load its configuration again.
    pub fn reload(&self) {
        self.signal(Signal::USR1);
    }

    /// Tells a supervisor that the schedule of backups was changed. An earlier version would end: see `State::schedules_backups`.
    pub fn schedule_changed(&self) {
        self.signal(Signal::USR2);
    }

    /// Stops it for a moment. It ends no sooner than otherwise, and `resume` lets it go on.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Whether none of its threads runs: a thread inside a system call ends that call first.
    pub fn is_paused(&self) -> bool {
        if cfg!(target_os = "linux") {
            let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
                return false;
            };
            return tasks.flatten().all(|task| {
                let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                let state = stat.rfind(')').and_then(|end| stat.get(end + 1..)).map(str::trim_start);
                // A thread that has ended meanwhile has no state.
                state.is_none_or(|state| state.starts_with(['T', 't', 'Z', 'X']))
            });
        }
        let output = Command::new("ps")
            .args(["-o", "state=", "-p", &self.pid.to_string()])
            .output();
        output.is_ok_and(|output| output.stdout.trim_ascii_start().starts_with(b"T"))
    }

    /// Sends TERM, then KILL after `grace`. Returns whether the process is gone.
    pub fn end(&self, grace: Duration) -> bool {
        self.signal(Signal::TERM);
        if self.wait_gone(grace) {
            return true;
        }
        self.signal(Signal::KILL);
        self.wait_gone(Duration::from_secs(2))
    }

    fn wait_gone(&self, patience: Duration) -> bool {
        poll(patience, || (!self.is_alive()).then_some(())).is_some()
    }
}

fn pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// `None` when there is no such process, or when it is a zombie.
fn start_time(pid: u32) -> Option<String> {
    if cfg!(target_os = "linux") {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command name is in parentheses and may hold anything; the fields after it are fixed.
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
        let state = fields.next()?;
        return if state == "Z" || state == "X" {
            None
        } else {
            fields.nth(18).map(str::to_owned)
        };
    }
    let output = Command::new("ps")
        .args(["-o", "state=,lstart=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (state, started) = text.trim().split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

fn boot_id() -> String {
    if cfg!(target_os = "linux") {
        return fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default()
            .trim()
            .to_owned();
    }
    // Start times are calendar times there, so they differ between boots.
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_pid_start_time_and_boot() {
        let me = Process::current();
        assert!(me.is_alive());
        assert!(
            !Process {
                started: "1".into(),
                ..me.clone()
            }
            .is_alive(),
            "a reused pid"
        );
        assert!(
            !Process {
                boot_id: "other".into(),
                ..me
            }
            .is_alive(),
            "another boot"
        );
    }

    #[test]
    fn a_reused_pid_is_never_signalled_and_an_ended_child_is_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id());
        Process {
            started: "1".into(),
            ..process.clone()
        }
        .end(Duration::ZERO);
        assert!(process.is_alive());
        assert!(process.end(Duration::from_secs(5)));
        child.wait().unwrap();
        assert!(!process.is_alive());
    }
}
