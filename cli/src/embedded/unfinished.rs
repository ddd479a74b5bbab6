//! What an earlier workerd was writing into the workspace when it ended: files without a name of their own, which can be as large as a copy
//! (TF8). Removes nothing else, and follows no link.

use std::fs;
use std::path::Path;

use super::process::Process;

/// workerd names a file so until it is whole: `.NAME.PID.NUMBER.tmp`.
const END: &str = ".tmp";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub files: usize,
    pub bytes: u64,
}

/// Removes those of processes that have ended. What can't be read or removed is left. Blocks.
pub fn remove(workspace: &Path) -> Removed {
    let mut removed = Removed::default();
    let mut open = vec![workspace.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push(entry.path());
                continue;
            }
            let is_left = entry
                .file_name()
                .to_str()
                .and_then(writer)
                .is_some_and(|pid| !Process::of(pid).is_alive());
            if !kind.is_file() || !is_left {
                continue;
            }
            let bytes = entry.metadata().map_or(0, |meta| meta.len());
            if fs::remove_file(entry.path()).is_ok() {
                removed.files += 1;
                removed.bytes += bytes;
            }
        }
    }
    removed
}

/// The process that was writing the file of this name.
fn writer(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix('.')?.strip_suffix(END)?.rsplitn(3, '.');
    let number = parts.next()?;
    let pid = parts.next()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_name = parts.next().is_some_and(|rest| !rest.is_empty());
    (has_name && is_number(number) && is_number(pid))
        .then(|| pid.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf8_k30_what_a_killed_workerd_was_writing_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("agents/main")).unwrap();
        let running = format!(".b.bin.{}.3.tmp", std::process::id());
        // No system has a process of this number.
        let ended = |name: &str| format!(".{name}.{}.7.tmp", i32::MAX);
        let mut kept = [
            running.as_str(),
            ".a.x.1.tmp",
            "a.2147483647.7.tmp",
            ".2147483647.7.tmp",
            ".notes.tmp",
        ];
        for name in kept {
            fs::write(at("agents/main").join(name), "kept").unwrap();
        }
        kept.sort_unstable();
        fs::write(at(&ended("a.bin")), "12").unwrap();
        fs::write(at("agents/main").join(ended("b")), "345").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let outside = elsewhere.path().join(ended("c"));
        fs::write(&outside, "outside").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("link")).unwrap();
        assert_eq!(remove(dir.path()), Removed { files: 2, bytes: 5 });
        assert_eq!(remove(dir.path()), Removed::default());
        let mut left: Vec<String> = fs::read_dir(at("agents/main"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, kept);
        assert!(outside.exists());
    }
}
