//! What an earlier workerd was writing into the workspace when it ended: files without a name of their own, which can be as large as a copy
//! (TF8). Removes nothing else, and follows no link.

use std::fs;
use std::path::Path;

/// How workerd names a file until it is whole: with its process id and a number.
const START: &str = ".kj-tmp.";
const END: &str = ".partial";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub files: usize,
    pub bytes: u64,
}

/// Removes those of every process but `running`. What can't be read or removed is left. Blocks.
pub fn remove(workspace: &Path, running: u32) -> Removed {
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
                .is_some_and(|pid| pid != running);
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
    name.strip_prefix(START)?
        .strip_suffix(END)?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf8_k30_what_a_killed_workerd_was_writing_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("agents/main")).unwrap();
        let kept = [
            ".kj-tmp.7.3.b.bin.partial",
            ".kj-tmp.notes",
            ".kj-tmp.x.1.a.partial",
            "a.partial",
        ];
        for name in kept {
            fs::write(at("agents/main").join(name), "kept").unwrap();
        }
        fs::write(at(".kj-tmp.6.0.a.bin.partial"), "12").unwrap();
        fs::write(at("agents/main/.kj-tmp.6.1.b.bin.partial"), "345").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join(".kj-tmp.6.2.c.partial"), "outside").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("link")).unwrap();
        assert_eq!(remove(dir.path(), 7), Removed { files: 2, bytes: 5 });
        assert_eq!(remove(dir.path(), 7), Removed::default());
        let mut left: Vec<String> = fs::read_dir(at("agents/main"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, kept);
        assert!(elsewhere.path().join(".kj-tmp.6.2.c.partial").exists());
    }
}
