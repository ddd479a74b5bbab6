//! Deletions in folders for temporary files that a link leads out of there (PO13). The gateway asks nothing about what a command deletes
//! in such a folder, and reads only the command's text; an earlier command can have made a link. So the node refuses such a path, and the
//! path that it leads to is one that is asked about. It is no protection against a program that deletes by itself.

use std::path::{Path, PathBuf};

use globset::Glob;

/// A folder for temporary files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Temporary {
    /// As commands write it, with a slash at the end.
    pub(crate) written: &'static str,
    /// Where it is on this machine.
    pub(crate) real: PathBuf,
}

/// Programs whose words name what they delete.
const DELETERS: [&str; 9] = ["rm", "grm", "srm", "unlink", "shred", "rimraf", "find", "gfind", "git"];
/// Entries that are looked at for one command. What lies beyond counts as a link.
const ENTRIES: usize = 10_000;

/// The first path of a command that goes through such a link, as it is written.
pub(crate) fn through_link(command: &str, folders: &[Temporary]) -> Option<String> {
    let plain: String = command
        .replace("\\\n", " ")
        .chars()
        .filter(|letter| !matches!(letter, '"' | '\'' | '\\'))
        .collect();
    let words = || plain.split(|letter: char| letter.is_whitespace() || ";&|()`<>=".contains(letter));
    let is_deleter = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word).to_lowercase();
        DELETERS.contains(&name.as_str())
    };
    if !words().any(is_deleter) {
        return None;
    }
    let mut left = ENTRIES;
    let mut paths = words().filter_map(|word| {
        let folder = folders.iter().find(|folder| word.starts_with(folder.written))?;
        Some((word, folder, word.strip_prefix(folder.written)?))
    });
    paths
        .find(|(_, folder, rest)| leads_out(&folder.real, rest, folders, &mut left))
        .map(|(word, ..)| word.to_owned())
}

/// Whether a link on the way of `rest`, a path in `folder`, leads out of the folders. The last name is not on the way: a link itself is deleted.
fn leads_out(folder: &Path, rest: &str, folders: &[Temporary], left: &mut usize) -> bool {
    let mut names: Vec<&str> = rest.split('/').collect();
    if names.last().is_some_and(|last| !matches!(*last, "" | ".")) {
        names.pop();
    }
    let mut places = vec![folder.to_owned()];
    for name in names.into_iter().filter(|name| !matches!(*name, "" | ".")) {
        let mut next = Vec::new();
        for place in &places {
            let Some(found) = matching(place, name, left) else {
                return true;
            };
            for path in found {
                if path.is_symlink() && !stays(&path, folders) {
                    return true;
                }
                next.push(path);
            }
        }
        places = next;
    }
    false
}

/// The entries of a folder that a name in a shell stands for. `None`: they are too many.
fn matching(folder: &Path, name: &str, left: &mut usize) -> Option<Vec<PathBuf>> {
    if !name.contains(['*', '?', '[', '{']) {
        return Some(vec![folder.join(name)]);
    }
    let glob = Glob::new(name).map(|glob| glob.compile_matcher());
    let mut found = Vec::new();
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        *left = left.checked_sub(1)?;
        // A pattern that is none for us may be one for the shell.
        if glob.as_ref().map_or(true, |glob| glob.is_match(entry.file_name())) {
            found.push(entry.path());
        }
    }
    Some(found)
}

/// Whether a link leads into the folders. One that leads nowhere may lead somewhere for the command.
fn stays(link: &Path, folders: &[Temporary]) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(link).is_some_and(|to| {
        folders
            .iter()
            .filter_map(|folder| real(&folder.real))
            .any(|folder| to.starts_with(folder))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Lab {
        dir: tempfile::TempDir,
        folders: Vec<Temporary>,
    }

    impl Lab {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["t/a/deep", "t/b", "work/src"] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            let real = dir.path().join("t");
            symlink("../work", real.join("out")).unwrap();
            symlink("../../work", real.join("a/out")).unwrap();
            symlink("a", real.join("in")).unwrap();
            symlink("none", real.join("nowhere")).unwrap();
            let folders = ["/tmp/", "$TMPDIR/", "${TMPDIR}/"].map(|written| Temporary {
                written,
                real: real.clone(),
            });
            Self {
                dir,
                folders: folders.into(),
            }
        }

        fn found(&self, command: &str) -> Option<String> {
            through_link(command, &self.folders)
        }
    }

    #[test]
    fn po13_a_deletion_through_a_link_that_leads_out_is_found() {
        let lab = Lab::new();
        for (command, path) in [
            ("rm -rf /tmp/out/*", "/tmp/out/*"),
            ("rm -rf /tmp/out/", "/tmp/out/"),
            ("rm -rf /tmp/out/.", "/tmp/out/."),
            ("cd x && 'rm' -rf \"$TMPDIR/out/src\"", "$TMPDIR/out/src"),
            ("/bin/rm -rf ${TMPDIR}/out/src;", "${TMPDIR}/out/src"),
            ("RM -rf //tmp/x /tmp//out/./src", "/tmp//out/./src"),
            ("rm -rf /tmp/b /tmp/a/out/src", "/tmp/a/out/src"),
            ("rm -rf /tmp/in/out/src", "/tmp/in/out/src"),
            ("rm -rf /tmp/*/src", "/tmp/*/src"),
            ("rm -rf /tmp/o?t/src", "/tmp/o?t/src"),
            ("rm -rf /tmp/?/out/src", "/tmp/?/out/src"),
            ("rm -rf /tmp/[!z]*/src", "/tmp/[!z]*/src"),
            ("find /tmp/out/ -delete", "/tmp/out/"),
            ("(find /tmp/out/src -delete)", "/tmp/out/src"),
            ("rm -rf /tmp/nowhere/x", "/tmp/nowhere/x"),
            ("sh -c 'rm -rf /tmp/out/src'", "/tmp/out/src"),
            ("rm -rf \\\n/tmp/o\\ut/src", "/tmp/out/src"),
        ] {
            assert_eq!(lab.found(command).as_deref(), Some(path), "{command}");
        }
    }

    #[test]
    fn po13_a_deletion_that_stays_in_the_folder_and_other_commands_are_not() {
        let lab = Lab::new();
        for command in [
            "rm -rf /tmp/a",
            "rm /tmp/out",
            "rm -rf /tmp/*",
            "rm -rf /tmp/a/*",
            "rm -rf /tmp/in/deep/x",
            "rm -rf /tmp/b*/x",
            "rm -rf /tmp/none/x",
            "find /tmp/a/ -delete",
            "rm -rf work/out/src",
            "ls /tmp/out/src",
            "cp -r /tmp/out/src /tmp/a/rm-x",
        ] {
            assert_eq!(lab.found(command), None, "{command}");
        }
    }

    #[test]
    fn po13_more_entries_than_are_looked_at_count_as_a_link() {
        let lab = Lab::new();
        let of = |left: &mut usize| leads_out(&lab.dir.path().join("t/a"), "d*/x", &lab.folders, left);
        assert!(!of(&mut 2), "there are two entries");
        assert!(of(&mut 1));
    }
}
