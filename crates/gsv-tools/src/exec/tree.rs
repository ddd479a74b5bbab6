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
            while self.found.iter().any(Process::is_running) && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
            self.found.retain(Process::is_running);
            // The end of a process can let those that it had stopped go on.
            self.look(Signal::KILL);
            let is_over = self.found.is_empty();
            if is_over || Instant::now() >= until {
                return is_over;
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A script that says a byte when it runs.
    fn script(text: &str, mark: &str) -> Child {
        let mut child = Command::new("/bin/sh")
            .args(["-c", text])
            .env(MARK, mark)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    fn process(pid: u32) -> Process {
        Process::new(pid, host::start_time(pid).unwrap())
    }

    fn gone() -> Process {
        Process::new(u32::MAX - 7, "1".into())
    }

    fn tree(command: Process, supervisor: Process, mark: &str) -> Tree {
        Tree {
            mark: format!("{MARK}={mark}").into_bytes(),
            output: None,
            supervisor,
            command,
            found: vec![],
        }
    }

    #[test]
    fn f20_a_process_that_is_known_is_stopped_before_it_is_killed_so_that_it_starts_no_others() {
        // It waits for none of those that it starts, so only its own stop lets a look find nothing new.
        let text =
            "trap '' TERM; printf x; while :; do sleep 0.1 & i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; done";
        let mut child = script(text, "/f20/known");
        let mut tree = tree(process(child.id()), gone(), "/f20/known");
        tree.signal(Signal::TERM);
        assert!(tree.found.contains(&process(child.id())));
        let until = Instant::now() + Duration::from_secs(5);
        let is_over = tree.end(until);
        let was_quiet = Instant::now() < until;
        let _ = child.kill();
        child.wait().unwrap();
        assert!(is_over && was_quiet && tree.found.is_empty());
    }

    #[test]
    fn f20_a_process_belongs_by_its_session_or_parent_as_long_as_no_later_process_has_that_pid() {
        let me = process(std::process::id());
        let earlier = Process::new(me.pid(), "an earlier one".into());
        let listed = |parent, session| Listed {
            process: Process::new(u32::MAX - 8, "1".into()),
            parent,
            session,
        };
        let has = |command: &Process, supervisor: &Process, listed: &Listed| {
            tree(command.clone(), supervisor.clone(), "/f20/none").has(listed)
        };
        let (of_session, of_parent) = (listed(0, me.pid()), listed(me.pid(), 0));
        for [command, supervisor] in [[&me, &gone()], [&gone(), &me]] {
            assert!(has(command, supervisor, &of_session) && has(command, supervisor, &of_parent));
            assert!(!has(command, supervisor, &listed(0, 0)));
        }
        for [command, supervisor] in [[&earlier, &gone()], [&gone(), &earlier]] {
            // Another process has its number now.
            assert!(!has(command, supervisor, &of_session) && !has(command, supervisor, &of_parent));
        }
        // A leader that has ended has left its session behind, and no one has its number.
        let leader = Process::new(u32::MAX - 9, "1".into());
        let left = listed(0, leader.pid());
        assert!(has(&leader, &gone(), &left) && !has(&leader, &gone(), &listed(leader.pid(), 0)));
    }
}
