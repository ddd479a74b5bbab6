//! Asks the system about processes and clocks, so that a process is not mistaken for a later one with the same pid.

#[cfg(target_os = "linux")]
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};

pub(crate) fn now_ms() -> u64 {
    to_ms(SystemTime::now())
}

pub(crate) fn to_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds of a clock that never jumps and is the same for every process of this boot.
pub(crate) fn uptime_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| read_boot_id().unwrap_or_default().trim().to_owned())
}

/// The start time of a process, in the system's own format. `None` when there is no such process, or only a zombie.
pub(crate) fn start_time(pid: u32) -> Option<String> {
    let (state, start) = read_process(pid)?;
    (state != 'Z' && state != 'X').then_some(start)
}

#[cfg(target_os = "linux")]
fn read_boot_id() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(target_os = "linux")]
fn read_process(pid: u32) -> Option<(char, String)> {
    let fields = stat_fields(pid)?;
    Some((fields.first()?.chars().next()?, fields.get(START_FIELD)?.clone()))
}

/// The place of the start time in [`stat_fields`].
#[cfg(target_os = "linux")]
const START_FIELD: usize = 19;

/// The fields of a process from the third on, its state (`proc_pid_stat(5)`). The second, the name in brackets, may hold anything.
#[cfg(target_os = "linux")]
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// A process, not to be mistaken for a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
    start_time: String,
}

impl Process {
    /// Signals the process unless it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_running()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            // It ended in between.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        start_time(self.pid).as_ref() == Some(&self.start_time)
    }
}

/// The living processes that descend from `root`, without `root`. Empty where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(fields) = stat_fields(pid) else { continue };
        if let (Some("R" | "S" | "D" | "T" | "t" | "I"), Some(parent), Some(start_time)) = (
            fields.first().map(String::as_str),
            fields.get(1).and_then(|parent| parent.parse().ok()),
            fields.get(START_FIELD).cloned(),
        ) {
            children.entry(parent).or_default().push(Process { pid, start_time });
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut at = 0;
    while let Some(next) = found.get(at).map(|process| process.pid) {
        found.extend(children.remove(&next).unwrap_or_default());
        at += 1;
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn descendants(_root: u32) -> Vec<Process> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn read_boot_id() -> Option<String> {
    ask("sysctl", &["-n", "kern.boottime"])
}

#[cfg(not(target_os = "linux"))]
fn read_process(pid: u32) -> Option<(char, String)> {
    let line = ask("ps", &["-o", "state=,lstart=", "-p", &pid.to_string()])?;
    let (state, start) = line.trim().split_once(char::is_whitespace)?;
    Some((state.chars().next()?, start.trim().to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn ask(program: &str, args: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn group(pgid: u32) -> Option<Pid> {
    // Group 0 is our own, and 1 stands for all processes.
    i32::try_from(pgid).ok().filter(|raw| *raw > 1).and_then(Pid::from_raw)
}

pub(crate) fn signal_group(pgid: u32, signal: Signal) {
    if let Some(pid) = group(pgid) {
        // The group has ended already.
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

pub(crate) fn group_exists(pgid: u32) -> bool {
    group(pgid).is_some_and(|pid| rustix::process::test_kill_process_group(pid) != Err(rustix::io::Errno::SRCH))
}

const SIGNALS: [(Signal, &str); 24] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::CHILD, "SIGCHLD"),
    (Signal::CONT, "SIGCONT"),
    (Signal::TSTP, "SIGTSTP"),
    (Signal::TTIN, "SIGTTIN"),
    (Signal::TTOU, "SIGTTOU"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::XFSZ, "SIGXFSZ"),
    (Signal::VTALARM, "SIGVTALRM"),
    (Signal::SYS, "SIGSYS"),
];

pub(crate) fn signal_name(number: i32) -> String {
    SIGNALS
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k16_a_process_has_one_start_time_and_a_missing_one_has_none() {
        let me = std::process::id();
        assert_eq!(start_time(me), start_time(me));
        assert!(start_time(me).is_some() && !boot_id().is_empty());
        assert_eq!(start_time(u32::MAX - 7), None);
    }

    #[test]
    fn our_own_group_and_all_processes_are_never_signalled() {
        assert!(group(0).is_none() && group(1).is_none() && group(u32::MAX).is_none());
    }
}
