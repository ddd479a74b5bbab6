//! Removes what workerd was writing into the workspace when it was killed (TF8): files as large as a copy, under the names that workerd gives
//! to unfinished files. Runs while no workerd does, so the process in such a name tells nothing: in a container each workerd has the same
//! one. Must not remove another name, or a file that was changed since this start, and follows no link.

use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::SystemTime;

use crate::paths;

/// workerd names a file so until it is whole: `.NAME.PID.NUMBER.tmp`.
const END: &str = ".tmp";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub files: usize,
    pub bytes: u64,
}

/// `start`: of this workerd, which is not running yet. What can't be read or removed is left. Blocks.
pub fn remove(workspace: &Path, start: SystemTime) -> Removed {
    let mut removed = Removed::default();
    let mut open = vec![workspace.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && entry.file_name().to_str().is_some_and(is_unfinished) {
                removed.take(&entry, start);
            }
        }
    }
    removed
}

/// What GSV itself was writing into this folder when it was killed, before `start`.
pub fn remove_own(folder: &Path, start: SystemTime) -> Removed {
    let mut removed = Removed::default();
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let is_own = entry.file_name().to_str().is_some_and(paths::is_unfinished);
        if is_own && entry.file_type().is_ok_and(|kind| kind.is_file()) && !paths::is_being_written(&entry.path()) {
            removed.take(&entry, start);
        }
    }
    removed
}

impl Removed {
    fn take(&mut self, entry: &DirEntry, start: SystemTime) {
        let Ok(meta) = entry.metadata() else { return };
        let is_earlier = meta.modified().is_ok_and(|at| at < start);
        if is_earlier && fs::remove_file(entry.path()).is_ok() {
            self.files += 1;
            self.bytes += meta.len();
        }
    }
}

fn is_unfinished(name: &str) -> bool {
    // As workerd prints them: without zeros before them. A process has a number above 0.
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    let parts = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(END))
        .map(|name| name.rsplitn(3, '.').collect::<Vec<_>>());
    matches!(
        parts.as_deref(),
        Some([count, pid, rest]) if !rest.is_empty() && number(count).is_some() && number(pid).is_some_and(|pid| pid > 0)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn p12_what_gsv_was_writing_into_its_folder_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at(".gsv-folder")).unwrap();
        std::os::unix::fs::symlink(at("config.bin"), at(".gsv-link")).unwrap();
        for name in [
            ".gsv-AbC123",
            ".gsv-Busy12",
            "config.bin",
            "a.gsv-AbC123",
            ".gsv-note.txt",
        ] {
            fs::write(at(name), "12345").unwrap();
        }
        let busy = fs::File::open(at(".gsv-Busy12")).unwrap();
        busy.try_lock().unwrap();
        let start = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(
            remove_own(dir.path(), start - Duration::from_secs(120)),
            Removed::default()
        );
        assert_eq!(remove_own(dir.path(), start), Removed { files: 1, bytes: 5 });
        assert!(!at(".gsv-AbC123").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6);
        assert_eq!(remove_own(&at("missing"), start), Removed::default());
    }

    #[test]
    fn tf8_k30_what_a_killed_workerd_was_writing_is_removed_whatever_its_process_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("agents/main")).unwrap();
        let start = SystemTime::now() + Duration::from_secs(60);
        let mut kept = [
            ".2147483647.7.tmp",
            ".a.0.1.tmp",
            ".a.007.1.tmp",
            ".a.7.01.tmp",
            ".a.x.1.tmp",
            ".a.7.1.tmp.",
            ".later.7.1.tmp",
            ".notes.tmp",
            "a.2147483647.7.tmp",
        ];
        for name in kept {
            fs::write(at("agents/main").join(name), "kept").unwrap();
        }
        kept.sort_unstable();
        // The file of a program that is writing it now.
        let later = fs::File::options()
            .write(true)
            .open(at("agents/main/.later.7.1.tmp"))
            .unwrap();
        later.set_modified(start + Duration::from_secs(1)).unwrap();
        // In a container, the new workerd has the process of the killed one.
        fs::write(at(&format!(".a.bin.{}.3.tmp", std::process::id())), "12").unwrap();
        fs::write(at("agents/main/.b.1.0.tmp"), "345").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let outside = elsewhere.path().join(".c.7.1.tmp");
        fs::write(&outside, "outside").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("link")).unwrap();
        assert_eq!(remove(dir.path(), start), Removed { files: 2, bytes: 5 });
        assert_eq!(remove(dir.path(), start), Removed::default());
        let mut left: Vec<String> = fs::read_dir(at("agents/main"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, kept);
        assert!(outside.exists());
    }
}
