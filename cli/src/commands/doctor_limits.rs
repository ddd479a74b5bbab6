//! Which limits of resources hold for the agent's commands on this machine: GSV's own, those of the node's control group and those that its
//! processes inherit (`prlimit`). Reads them, and changes nothing.

use std::fs;
use std::path::Path;

use gsv_node::CommandLimits;

use super::doctor_report::Report;
use super::node_files::{Running, known_here, running};
use crate::units::{bytes, grouped};

const NAME: &str = "limits";
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// `limits`: of one command, by node.toml.
pub fn check_limits(report: &mut Report, home: &Path, limits: Option<CommandLimits>) {
    let own = limits.map(|limits| {
        format!(
            "one command may use {} of memory and {} processes and threads",
            bytes(limits.memory_bytes),
            grouped(limits.processes as u64)
        )
    });
    let Some(own) = own else {
        return report.warn(
            NAME,
            "none of GSV: this system does not tell what a command uses, so a command can use all memory",
            "Let the system limit the node's user.",
        );
    };
    let node = known_here(home).iter().find_map(|name| match running(name) {
        Ok(Running::Process(pid)) => Some(pid.to_string()),
        _ => None,
    });
    let process = Path::new("/proc").join(node.as_deref().unwrap_or("self"));
    let read = |name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
    let group = Group::read(Path::new(CONTROL_GROUPS), &read("cgroup"));
    let whose = if node.is_some() { "the node" } else { "this command" };
    report.ok(
        NAME,
        format!("{own}; {}; {}", group.words(whose), inherited(&read("limits"), whose)),
    );
}

/// What a control group and those above it allow all their processes together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Group {
    memory_bytes: Option<u64>,
    processes: Option<u64>,
}

/// How version 1 says that there is no limit, rounded to pages.
const UNLIMITED: u64 = 1 << 62;

impl Group {
    /// `root`: where control groups are mounted. `text`: `/proc/PID/cgroup`, which has one line in version 2 and one for each controller in
    /// version 1.
    fn read(root: &Path, text: &str) -> Self {
        let mut group = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let lowest = |mount: &Path, file: &str| {
                let folder = mount.join(path.trim_start_matches('/'));
                let own = folder.ancestors().take_while(|folder| folder.starts_with(mount));
                own.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
                    .filter(|limit: &u64| *limit < UNLIMITED)
                    .min()
            };
            match controllers {
                "" => {
                    group.memory_bytes = group.memory_bytes.or(lowest(root, "memory.max"));
                    group.processes = group.processes.or(lowest(root, "pids.max"));
                }
                "memory" => group.memory_bytes = lowest(&root.join("memory"), "memory.limit_in_bytes"),
                "pids" => group.processes = lowest(&root.join("pids"), "pids.max"),
                _ => {}
            }
        }
        group
    }

    fn words(&self, whose: &str) -> String {
        let limits = [
            self.memory_bytes.map(|limit| format!("{} of memory", bytes(limit))),
            self.processes.map(|limit| format!("{} processes", grouped(limit))),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        if limits.is_empty() {
            return format!(
                "the control group of {whose} limits neither memory nor processes of all commands together"
            );
        }
        format!(
            "the control group of {whose} allows all its processes together {}",
            limits.join(" and ")
        )
    }
}

/// Limits of each process that `/proc/PID/limits` shows and that commands get from the node.
fn inherited(text: &str, whose: &str) -> String {
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let limits = [
        soft("Max address space").map(|limit| format!("{} of address space", bytes(limit))),
        soft("Max file size").map(|limit| format!("files of {}", bytes(limit))),
        soft("Max open files").map(|limit| format!("{} open files", grouped(limit))),
        soft("Max processes").map(|limit| format!("{} processes of its user", grouped(limit))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        return format!("no limit of a process (ulimit) of {whose}");
    }
    format!("each process (ulimit of {whose}): {}", limits.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb19_the_lowest_limit_of_the_control_groups_above_counts_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("user.slice/memory.max", "1073741824\n");
        write("user.slice/node.service/memory.max", "max\n");
        write("user.slice/node.service/pids.max", "100\n");
        write("memory/box/memory.limit_in_bytes", "2097152\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        let second = Group::read(dir.path(), "0::/user.slice/node.service\n");
        assert_eq!((second.memory_bytes, second.processes), (Some(1 << 30), Some(100)));
        assert_eq!(
            second.words("the node"),
            "the control group of the node allows all its processes together 1.0 GiB of memory and 100 processes"
        );
        let first = Group::read(dir.path(), "8:pids:/\n4:memory:/box\n0::/\n");
        assert_eq!((first.memory_bytes, first.processes), (Some(2 << 20), None));
        let none = Group::read(dir.path(), "4:memory:/\n");
        assert_eq!(none, Group::default());
        assert!(none.words("the node").contains("limits neither memory nor processes"));
    }

    #[test]
    fn sb19_limits_that_processes_inherit_are_named_unless_there_are_none() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax processes  500  500  processes\nMax open files  1024  4096  files\nMax address space  unlimited  unlimited  bytes\n";
        assert_eq!(
            inherited(text, "the node"),
            "each process (ulimit of the node): 1,024 open files, 500 processes of its user"
        );
        assert!(inherited("Max processes unlimited unlimited processes\n", "the node").starts_with("no limit"));
    }
}
