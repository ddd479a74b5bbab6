//! Asks the system about processes and clocks, so that a process is not mistaken for a later one with the same pid.

use std::path::Path;
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
    pub(crate) fn new(pid: u32, start_time: String) -> Self {
        Self { pid, start_time }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

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

    /// Whether a later process has the pid now.
    pub(crate) fn is_replaced(&self) -> bool {
        start_time(self.pid).is_some_and(|start| start != self.start_time)
    }
}

/// A living process as the system lists it.
pub(crate) struct Listed {
    pub(crate) process: Process,
    pub(crate) parent: u32,
    pub(crate) session: u32,
}

#[cfg(target_os = "linux")]
pub(crate) fn listed(pid: u32) -> Option<Listed> {
    let fields = stat_fields(pid)?;
    let number = |at: usize| fields.get(at)?.parse().ok();
    matches!(fields.first()?.as_str(), "R" | "S" | "D" | "T" | "t" | "I").then_some(())?;
    Some(Listed {
        process: Process::new(pid, fields.get(START_FIELD)?.clone()),
        parent: number(1)?,
        session: number(3)?,
    })
}

/// The pids of all processes. Empty where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The pid that the system gave last; 0 where it does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn last_pid() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace()
        .nth(4)
        .and_then(|pid| pid.parse().ok())
        .unwrap_or(0)
}

/// False for the id of a thread, which the system answers for as well.
#[cfg(target_os = "linux")]
pub(crate) fn is_process(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.is_some_and(|group| group.trim().parse() == Ok(pid))
}

/// Whether the process was started with this variable (`NAME=value`).
#[cfg(target_os = "linux")]
pub(crate) fn environment_has(pid: u32, variable: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable)
}

/// Whether the process's standard output or standard error is this file.
#[cfg(target_os = "linux")]
pub(crate) fn prints_to(pid: u32, file: &Path) -> bool {
    [1, 2]
        .into_iter()
        .any(|fd| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|target| target == file))
}

#[cfg(not(target_os = "linux"))]
mod untold {
    //! What only Linux tells about other processes.
    use super::{Listed, Path};

    pub(crate) fn listed(_pid: u32) -> Option<Listed> {
        None
    }

    pub(crate) fn pids() -> impl Iterator<Item = u32> {
        std::iter::empty()
    }

    pub(crate) fn last_pid() -> u32 {
        0
    }

    pub(crate) fn is_process(_pid: u32) -> bool {
        false
    }

    pub(crate) fn environment_has(_pid: u32, _variable: &[u8]) -> bool {
        false
    }

    pub(crate) fn prints_to(_pid: u32, _file: &Path) -> bool {
        false
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) use untold::{environment_has, is_process, last_pid, listed, pids, prints_to};

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
    fn k16_a_later_process_with_the_same_pid_is_another_one() {
        let me = std::process::id();
        let same = Process::new(me, start_time(me).unwrap());
        let earlier = Process::new(me, "another time".into());
        let gone = Process::new(u32::MAX - 7, "another time".into());
        let seen = |process: &Process| (process.is_running(), process.is_replaced());
        assert_eq!(
            (seen(&same), seen(&earlier), seen(&gone)),
            ((true, false), (false, true), (false, false))
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_known_by_a_whole_variable_of_its_environment() {
        let mut child = std::process::Command::new("/bin/cat")
            .env_clear()
            .envs([("GSV_MARK", "one"), ("OTHER", "two")])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Its environment is empty until it is the program.
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x").unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let has = |variable: &[u8]| environment_has(child.id(), variable);
        let found = [
            has(b"GSV_MARK=one"),
            has(b"OTHER=two"),
            has(b"GSV_MARK=on"),
            has(b"MARK=one"),
            has(b"GSV_MARK"),
            has(b"\0"),
        ];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [true, true, false, false, false, false]);
    }

    #[test]
    fn our_own_group_and_all_processes_are_never_signalled() {
        assert!(group(0).is_none() && group(1).is_none() && group(u32::MAX).is_none());
    }

    #[test]
    fn a_group_exists_as_long_as_one_of_its_processes() {
        use std::os::unix::process::CommandExt as _;
        let mut child = std::process::Command::new("/bin/cat")
            .process_group(0)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(group_exists(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!group_exists(child.id()));
    }
}
