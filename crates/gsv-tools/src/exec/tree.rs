//! All processes of one command, and how they are ended. Finds processes that left the command's group, session and tree.
//!
//! A process belongs to the command when one of these holds: it has the command's mark in its environment (inherited by every
//! process, orphans too), its standard output or error is the command's output file, it is in the session of the
//! command or of its supervisor, or its parent belongs. A process that gives up all four escapes; an unprivileged node can't
//! tell it from other programs of the user. Never: signals the supervisor, which writes the exit, or processes of other calls.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::host::{self, Listed, Process};
use super::meta::{Folder, Meta, OUTPUT};

/// The variable with the command's folder, which no other command has.
pub(super) const MARK: &str = "GSV_COMMAND";
/// Whether this process was started by a command of the agent.
pub fn is_inside_command() -> bool {
    std::env::var_os(MARK).is_some_and(|folder| !folder.is_empty())
}

/// A process can hide from a look: its environment is empty for a moment while it starts another program.
const LOOKS_WITHOUT_FINDING: u32 = 3;
/// Looks at the processes that started during a look, at most.
const SUCCESSOR_LOOKS: u32 = 64;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Tree {
    mark: Vec<u8>,
    output: Option<PathBuf>,
    supervisor: Process,
    command: Process,
    found: Vec<Process>,
}

impl Tree {
    pub(super) fn of(folder: &Folder, meta: &Meta) -> Self {
        let mut mark = format!("{MARK}=").into_bytes();
        mark.extend_from_slice(folder.path().as_os_str().as_encoded_bytes());
        Self {
            mark,
            output: folder.file(OUTPUT).canonicalize().ok(),
            supervisor: Process::new(meta.supervisor_pid, meta.supervisor_start_time.clone()),
            command: Process::new(meta.pid, meta.start_time.clone()),
            found: Vec::new(),
        }
    }

    /// Signals each process of the command. Those that it has found stay known when their parents end.
    pub(super) fn signal(&mut self, signal: Signal) {
        for process in &self.found {
            process.signal(signal);
        }
        self.look(signal);
    }

    /// Kills all processes of the command. A program that starts its successor and exits outruns every list of processes, so
    /// all are stopped first, until none is new. Returns false when one still runs at `until`.
    pub(super) fn end(&mut self, until: Instant) -> bool {
        loop {
            self.signal(Signal::STOP);
            let mut quiet = 0;
            while quiet < LOOKS_WITHOUT_FINDING && Instant::now() < until {
                quiet = if self.look(Signal::STOP) { 0 } else { quiet + 1 };
                std::thread::sleep(PAUSE);
            }
            for process in &self.found {
                process.signal(Signal::KILL);
            }
            // KILL is sent, not done: a process ends when the system gives it its next turn.
            while self.found.iter().any(Process::is_running) {
                if Instant::now() >= until {
                    return false;
                }
                std::thread::sleep(PAUSE);
            }
            // The end of a process can let those that it had stopped go on.
            self.found.clear();
            if !self.look(Signal::KILL) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }

    /// A supervisor that the command has stopped goes on, and writes the exit.
    pub(super) fn wake_supervisor(&self) {
        self.supervisor.signal(Signal::CONT);
    }

    /// Looks through all processes once, and signals each new one at once, because it may live only for a moment.
    fn look(&mut self, signal: Signal) -> bool {
        let known = self.found.len();
        let mut last = host::last_pid();
        for pid in host::pids() {
            self.take(pid, signal);
        }
        // Processes that started meanwhile have higher numbers than the list had when it was read.
        for _ in 0..SUCCESSOR_LOOKS {
            let now = host::last_pid();
            for pid in last + 1..=now {
                self.take(pid, signal);
            }
            last = now;
        }
        self.found.len() > known
    }

    fn take(&mut self, pid: u32, signal: Signal) {
        let Some(listed) = host::listed(pid) else { return };
        if listed.process == self.supervisor
            || pid == std::process::id()
            || self.found.contains(&listed.process)
            || !self.has(&listed)
            || !host::is_process(pid)
        {
            return;
        }
        listed.process.signal(signal);
        self.found.push(listed.process);
    }

    fn has(&self, listed: &Listed) -> bool {
        let pid = listed.process.pid();
        let mut leaders = [&self.command, &self.supervisor].into_iter();
        let mut parents = self.found.iter().chain([&self.command, &self.supervisor]);
        listed.process == self.command
            || leaders.any(|leader| leader.pid() == listed.session && !leader.is_replaced())
            || parents.any(|parent| parent.pid() == listed.parent && parent.is_running())
            || host::environment_has(pid, &self.mark)
            || (self.output.as_ref()).is_some_and(|output| host::prints_to(pid, output))
    }
}
