//! What the processes of one command use together, and whether that is too much. The supervisor looks, because it is the parent of all of
//! them, also of those that left the command's group and session, and goes on when the node has died. Only Linux tells what they use.

use super::command_limits::CommandLimits;
use super::meta::Ending;

/// Folders whose files a sandbox keeps in memory, each in a file system of its own.
#[cfg(target_os = "linux")]
const MEMORY: [&str; 3] = ["/dev", "/run", "/var/tmp"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    memory_bytes: u64,
    processes: usize,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.processes = self.processes.saturating_add(other.processes);
    }

    fn excess(self, limits: &CommandLimits) -> Option<Ending> {
        if self.processes > limits.processes {
            Some(Ending::Processes)
        } else {
            (self.memory_bytes > limits.memory_bytes).then_some(Ending::Memory)
        }
    }
}

/// The number of the line `NAME: NUMBER kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The memory of one process, by the text of its `status` (`proc_pid_status(5)`). A page that two processes share counts twice.
fn of_status(text: &str) -> Usage {
    let sizes = ["RssAnon", "RssShmem", "VmSwap"].map(|name| kib(text, name).unwrap_or(0));
    Usage {
        memory_bytes: sizes.iter().sum::<u64>().saturating_mul(1024),
        processes: kib(text, "Threads")
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(1),
    }
}

/// The memory of one process by its `smaps_rollup` (`proc_pid_smaps(5)`), shared pages in equal parts. `None`: the kernel does not tell.
fn shares_of(text: &str) -> Option<u64> {
    let sizes = [
        kib(text, "Pss_Anon")?,
        kib(text, "Pss_Shmem")?,
        kib(text, "SwapPss").unwrap_or(0),
    ];
    Some(sizes.iter().sum::<u64>().saturating_mul(1024))
}

/// Whether the processes below `root` use too much. To look at them takes the longer the more they are, up to the limit.
#[cfg(target_os = "linux")]
pub(super) fn excess(root: u32, limits: &CommandLimits) -> Option<Ending> {
    let read = |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let pids = below(root, limits.processes);
    let mut all = Usage::default();
    for pid in &pids {
        all.add(read(*pid, "status").map_or_else(Usage::default, |text| of_status(&text)));
    }
    if all.processes > limits.processes {
        return Some(Ending::Processes);
    }
    let files = in_files(&pids);
    all.memory_bytes = all.memory_bytes.saturating_add(files);
    all.excess(limits)?;
    // Exact numbers take longer, so they are read only when it matters.
    let exact = pids.iter().filter_map(|pid| {
        let shares = read(*pid, "smaps_rollup").and_then(|text| shares_of(&text));
        shares.or_else(|| Some(of_status(&read(*pid, "status")?).memory_bytes))
    });
    let exact = Usage {
        memory_bytes: exact.fold(files, u64::saturating_add),
        ..all
    };
    exact.excess(limits)
}

/// What the files that the sandbox keeps in memory use. A process that has opened none of them may be the one that wrote them, so the
/// file systems are asked; what it has mapped of them counts twice. All processes of a command have the same ones; a process that does not
/// let itself be looked into is passed over.
#[cfg(target_os = "linux")]
fn in_files(pids: &[u32]) -> u64 {
    let of_folder = |pid: &u32, folder: &str| {
        let inside = format!("/proc/{pid}/root{folder}");
        let is_own = device(&inside)? != device(folder).unwrap_or_default();
        is_own.then(|| in_memory(&inside)).flatten()
    };
    pids.iter()
        .map(|pid| MEMORY.iter().filter_map(|folder| of_folder(pid, folder)).sum::<u64>())
        .find(|bytes| *bytes > 0)
        .unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn device(path: &str) -> Option<u64> {
    Some(rustix::fs::stat(path).ok()?.st_dev)
}

/// `None`: the file system is not in memory.
#[cfg(target_os = "linux")]
fn in_memory(path: &str) -> Option<u64> {
    const TMPFS: u64 = 0x0102_1994;
    let found = rustix::fs::statfs(path).ok()?;
    let used = found.f_blocks.checked_sub(found.f_bfree)?;
    (u64::try_from(found.f_type).ok()? == TMPFS)
        .then(|| used.saturating_mul(u64::try_from(found.f_bsize).unwrap_or_default()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn excess(_root: u32, _limits: &CommandLimits) -> Option<Ending> {
    None
}

/// The processes below `root`, without it; `most` and a few more at most.
#[cfg(target_os = "linux")]
fn below(root: u32, most: usize) -> Vec<u32> {
    let mut found = children(root);
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        if found.len() > most {
            break;
        }
        found.extend(children(pid));
        at += 1;
    }
    found
}

#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// The memory of this machine. `None`: the system does not tell.
pub fn machine_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(kib(&text, "MemTotal")?.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tmake: x\nUmask:\t0022\nVmRSS:\t   9999 kB\nRssAnon:\t    100 kB\nRssFile:\t   7000 kB\nRssShmem:\t      20 kB\nVmSwap:\t       3 kB\nThreads:\t5\n";

    #[test]
    fn sb19_what_a_process_uses_is_its_own_memory_with_swap_and_its_threads() {
        let usage = Usage {
            memory_bytes: 123 * 1024,
            processes: 5,
        };
        assert_eq!(of_status(STATUS), usage);
        // A process that has ended and was not waited for has no memory.
        let ended = Usage {
            memory_bytes: 0,
            processes: 1,
        };
        assert_eq!(of_status("Name:\tsh\nState:\tZ (zombie)\nThreads:\t1\n"), ended);
        let rollup = "Rss: 900 kB\nPss: 700 kB\nPss_Dirty: 5 kB\nPss_Anon: 40 kB\nPss_File: 600 kB\nPss_Shmem: 2 kB\nSwapPss: 1 kB\n";
        assert_eq!(shares_of(rollup), Some(43 * 1024));
        assert_eq!(shares_of("Rss: 900 kB\nPss: 700 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sb19_as_many_processes_as_the_limit_are_no_excess() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        let output = shell.stdout.take().expect("stdout");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("the pid");
        let limits = |processes| CommandLimits {
            memory_bytes: u64::MAX,
            processes,
        };
        let (allowed, over) = (excess(shell.id(), &limits(1)), excess(shell.id(), &limits(0)));
        let below = line.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(below.expect("a pid"), rustix::process::Signal::KILL).expect("kill");
        shell.wait().expect("wait");
        assert_eq!((allowed, over), (None, Some(Ending::Processes)));
    }

    #[test]
    fn sb19_the_limit_itself_is_no_excess() {
        let limits = CommandLimits {
            memory_bytes: 1000,
            processes: 10,
        };
        let excess = |memory_bytes, processes| {
            Usage {
                memory_bytes,
                processes,
            }
            .excess(&limits)
        };
        assert_eq!(excess(1000, 10), None);
        assert_eq!(excess(1001, 10), Some(Ending::Memory));
        assert_eq!(excess(1001, 11), Some(Ending::Processes));
    }

    #[test]
    fn sb19_a_command_leaves_a_quarter_of_the_memory() {
        assert_eq!(CommandLimits::for_machine(4096).memory_bytes, 3072);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sb19_children_of_children_are_found_and_no_more_than_asked_for() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 60 & echo up; wait' & wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let found = below(child.id(), 10);
        let counts = [0, 1, 10].map(|most| below(child.id(), most).len());
        for pid in &found {
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        child.wait().unwrap();
        assert_eq!(counts, [1, 2, 2], "{found:?}");
    }
}
