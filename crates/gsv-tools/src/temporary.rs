//! Refuses deletions through a link that leads out of a folder for temporary files (PO13). The gateway asks nothing about what a command deletes
//! in such a folder, and reads only the command's text; an earlier command can have made a link. So the node refuses such a path, and the
//! path that it leads to is one that is asked about. A workspace may lie in such a folder, too: there the node refuses paths that begin with
//! the temporary folder. It is no protection against a program that deletes by itself.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};

/// A folder for temporary files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Temporary {
    /// As commands write it, with a slash at the end.
    pub(crate) written: &'static str,
    /// Where it is on this machine.
    pub(crate) real: PathBuf,
}

/// Programs whose words name what they delete.
const DELETERS: [&str; 10] = [
    "rm", "grm", "srm", "unlink", "shred", "rimraf", "find", "gfind", "git", "rsync",
];
/// Entries that are looked at for one command. What lies beyond counts as a link.
const ENTRIES: usize = 10_000;
/// A pattern counts as this many entries: it takes as long to compile.
const PATTERN: usize = 20;
/// Bytes of a pattern. A longer one is not compiled, and counts as a link.
const PATTERN_BYTES: usize = 256;
/// Bytes of a path. A longer one counts as a link.
const PATH_BYTES: usize = 4096;

/// Why a command is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// This path, as it is written, goes through a link that leads out of the folder.
    Link(String),
    /// The file or folder at this path may be in a workspace, or a workspace in it.
    Workspace(String),
}

/// The first path that a command may not delete by such a name. `roots`: where deletions are asked about.
pub(crate) fn problem(command: &str, folders: &[Temporary], roots: &[PathBuf]) -> Option<Problem> {
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
    paths.find_map(|(word, folder, rest)| {
        if meets(folder, rest, roots) {
            Some(Problem::Workspace(word.to_owned()))
        } else {
            leads_out(&folder.real, rest, folders, &mut left).then(|| Problem::Link(word.to_owned()))
        }
    })
}

/// Whether a path lies in a root, or a root in what it names. As it is written and as it is on the disk: a sandbox shows a root at its own place.
fn meets(folder: &Temporary, rest: &str, roots: &[PathBuf]) -> bool {
    // The matches of a pattern are in the folder before it.
    let fixed: PathBuf = rest
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .take_while(|name| !name.contains(['*', '?', '[', '{']))
        .collect();
    [Path::new(folder.written), &folder.real].into_iter().any(|place| {
        let path = place.join(&fixed);
        roots
            .iter()
            .any(|root| root.starts_with(&path) || path.starts_with(root))
    })
}

/// Whether a link on the way of `rest`, a path in `folder`, leads out of the folders. The last name is not on the way: a link itself is deleted.
fn leads_out(folder: &Path, rest: &str, folders: &[Temporary], left: &mut usize) -> bool {
    // No file has such a name.
    if rest.len() > PATH_BYTES {
        return true;
    }
    let mut names: Vec<&str> = rest.split('/').collect();
    if names.last().is_some_and(|last| !matches!(*last, "" | ".")) {
        names.pop();
    }
    let mut places = vec![folder.to_owned()];
    for name in names.into_iter().filter(|name| !matches!(*name, "" | ".")) {
        let Some(pattern) = Pattern::read(name, left) else {
            return true;
        };
        let mut next = Vec::new();
        for place in &places {
            let Some(found) = matching(place, &pattern, left) else {
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

/// A name of a path, as a shell reads it.
enum Pattern<'a> {
    Name(&'a str),
    /// `None`: a pattern that globset rejects may be one for the shell, so anything fits.
    Any(Option<GlobMatcher>),
}

impl<'a> Pattern<'a> {
    /// `None`: too much to compile.
    fn read(name: &'a str, left: &mut usize) -> Option<Self> {
        if !name.contains(['*', '?', '[', '{']) {
            return Some(Self::Name(name));
        }
        *left = left.checked_sub(PATTERN)?;
        if name.len() > PATTERN_BYTES {
            return None;
        }
        Some(Self::Any(Glob::new(name).ok().map(|glob| glob.compile_matcher())))
    }
}

/// The entries of a folder that a name stands for. `None`: they are too many, or can't be looked at.
fn matching(folder: &Path, pattern: &Pattern<'_>, left: &mut usize) -> Option<Vec<PathBuf>> {
    // An empty folder is looked at, too.
    *left = left.checked_sub(1)?;
    let glob = match pattern {
        Pattern::Name(name) => {
            let path = folder.join(name);
            // A missing path contains no link. What can't be looked at now can be opened by the command.
            return match path.symlink_metadata() {
                Ok(_) => Some(vec![path]),
                Err(error) => is_missing(&error).then(Vec::new),
            };
        }
        Pattern::Any(glob) => glob,
    };
    let mut found = Vec::new();
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return is_missing(&error).then(Vec::new),
    };
    for entry in entries.flatten() {
        *left = left.checked_sub(1)?;
        if glob.as_ref().is_none_or(|glob| glob.is_match(entry.file_name())) {
            found.push(entry.path());
        }
    }
    Some(found)
}

fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
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
            match problem(command, &self.folders, &[]) {
                Some(Problem::Link(path)) => Some(path),
                Some(Problem::Workspace(path)) => panic!("{path}"),
                None => None,
            }
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
            ("rsync -a --delete a/ /tmp/out/src/", "/tmp/out/src/"),
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
    fn po13_a_workspace_in_the_folder_is_not_a_temporary_file() {
        let lab = Lab::new();
        let found = |command: &str, root: &Path| problem(command, &lab.folders, &[root.to_owned()]);
        let real = lab.folders[0].real.join("b");
        for (command, path, root) in [
            ("rm -rf /tmp/atk/ws/src", "/tmp/atk/ws/src", Path::new("/tmp/atk/ws")),
            ("rm -rf /tmp//atk/./ws", "/tmp//atk/./ws", Path::new("/tmp/atk/ws")),
            ("rm -rf /tmp/atk", "/tmp/atk", Path::new("/tmp/atk/ws")),
            (
                "find /tmp/atk/ws/src -delete",
                "/tmp/atk/ws/src",
                Path::new("/tmp/atk/ws"),
            ),
            ("rm -rf /tmp/a*/src", "/tmp/a*/src", Path::new("/tmp/atk/ws")),
            ("rm -rf $TMPDIR/b/x", "$TMPDIR/b/x", &real),
        ] {
            assert_eq!(
                found(command, root),
                Some(Problem::Workspace(path.to_owned())),
                "{command}"
            );
        }
        for command in ["rm -rf /tmp/b", "rm -rf src", "ls /tmp/atk/ws", "rm -rf /tmp/atk2"] {
            assert_eq!(found(command, Path::new("/tmp/atk/ws")), None, "{command}");
        }
    }

    #[test]
    fn po13_more_entries_than_are_looked_at_count_as_a_link() {
        let lab = Lab::new();
        let of = |left: &mut usize| leads_out(&lab.dir.path().join("t/a"), "d*/x", &lab.folders, left);
        assert!(!of(&mut (PATTERN + 3)), "one folder, with two entries");
        assert!(of(&mut (PATTERN + 2)));
    }

    #[test]
    fn po13_patterns_are_compiled_once_and_are_bounded() {
        let lab = Lab::new();
        for folder in 0..200 {
            std::fs::create_dir_all(lab.dir.path().join(format!("t/d{folder}"))).unwrap();
        }
        let alternatives = (0..15_000).map(|number| format!("a{number}*[a-z]")).collect::<Vec<_>>();
        let long = format!("/tmp/d*/{{{}}}/x", alternatives.join(","));
        assert_eq!(lab.found(&format!("rm {long}")).as_deref(), Some(long.as_str()));
        // Each folder is looked at once for each name behind it.
        let deep = format!("/tmp/*/{}x", "deep/".repeat(800));
        for folder in 0..200 {
            std::fs::create_dir_all(lab.dir.path().join(format!("t/d{folder}/{}", "deep/".repeat(80)))).unwrap();
        }
        assert_eq!(lab.found(&format!("rm {deep}")).as_deref(), Some(deep.as_str()));
        let endless = format!("/tmp/*/{}x", "a/".repeat(12_000));
        assert!(lab.found(&format!("rm {endless}")).is_some());
        let many = (0..ENTRIES).map(|number| format!("/tmp/b{number}*/x"));
        assert!(
            lab.found(&format!("rm {}", many.collect::<Vec<_>>().join(" ")))
                .is_some()
        );
    }
}
