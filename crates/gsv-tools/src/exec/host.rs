//! Asks the system about processes and clocks, so that a process is not mistaken for a later one with the same pid.

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
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything; the fields after it are the third on (proc_pid_stat(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
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
