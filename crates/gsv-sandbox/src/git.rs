//! The directories that git uses below a folder, whatever their names: of repositories with and without files, of their worktrees and
//! submodules. PURE: the file system is asked through [`Look`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::bounded::Bounded;
use crate::look::{Kind, Look as _};
use crate::names::OF_BARE;

/// Directories of submodules and worktrees in one repository, at most, and how deep the names of submodules go.
const LINKED: usize = 5_000;
const LINKED_DEPTH: usize = 20;

pub(crate) struct GitDirectories<'a> {
    look: &'a Bounded<'a>,
    /// Each directory, and whether git looks for hooks in it.
    pub(crate) found: BTreeMap<PathBuf, bool>,
    /// Folders that must stay where they are, besides those.
    pub(crate) kept: Vec<PathBuf>,
    /// Folders with a file `.git`, by the directory that it names.
    pub(crate) trees: BTreeMap<PathBuf, Vec<PathBuf>>,
    searched: BTreeSet<PathBuf>,
}

impl<'a> GitDirectories<'a> {
    pub(crate) fn new(look: &'a Bounded<'a>) -> Self {
        Self {
            look,
            found: BTreeMap::new(),
            kept: Vec::new(),
            trees: BTreeMap::new(),
            searched: BTreeSet::new(),
        }
    }

    /// The repository of a project, and the one that the folder itself is.
    pub(crate) fn search(&mut self, folder: &Path) {
        if self.is_bare(folder) {
            let kept = OF_BARE.map(|name| folder.join(name));
            self.kept
                .extend(kept.into_iter().filter(|path| self.look.kind(path) == Some(Kind::Dir)));
            self.add(folder);
        }
        let git = folder.join(".git");
        match self.look.kind(&git) {
            Some(Kind::Dir) => self.add(&git),
            Some(Kind::File) => {
                let Some(named) = self.named(&git, folder, b"gitdir: ") else {
                    return;
                };
                // `config` and `commondir` can't be removed by a command.
                let is_git = ["HEAD", "config", "commondir"].map(|name| self.look.kind(&named.join(name)).is_some());
                if is_git.contains(&true) {
                    self.add(&named);
                    self.trees.entry(named).or_default().push(folder.to_owned());
                }
            }
            _ => {}
        }
    }

    /// With those of its worktrees and submodules, and the one that it shares with others.
    fn add(&mut self, git: &Path) {
        self.add_linked(git);
        if let Some(common) = self.named(&git.join("commondir"), git, b"") {
            self.add_linked(&common);
        }
    }

    fn add_linked(&mut self, git: &Path) {
        if !self.searched.insert(git.to_owned()) {
            return;
        }
        self.add_one(git);
        for module in self.modules(git) {
            self.add_one(&module);
            for tree in self.worktrees(&module) {
                self.add_one(&tree);
            }
        }
        for tree in self.worktrees(git) {
            self.add_one(&tree);
            for module in self.modules(&tree) {
                self.add_one(&module);
            }
        }
    }

    fn add_one(&mut self, git: &Path) {
        let is_in = |name| git.parent().and_then(Path::file_name) == Some(OsStr::new(name));
        let is_worktree = is_in("worktrees") && self.look.kind(&git.join("commondir")).is_some();
        self.found.insert(git.to_owned(), !is_worktree);
    }

    /// `HEAD` can be moved away by a command, `config` can't.
    fn is_bare(&self, folder: &Path) -> bool {
        let is_folder = |name| matches!(self.look.kind(&folder.join(name)), Some(Kind::Dir | Kind::Link));
        let is_file = |name| matches!(self.look.kind(&folder.join(name)), Some(Kind::File | Kind::Link));
        OF_BARE.into_iter().all(is_folder) && ["HEAD", "config"].into_iter().any(is_file)
    }

    /// The folder that a file of git names.
    fn named(&self, file: &Path, folder: &Path, prefix: &[u8]) -> Option<PathBuf> {
        let text = self.look.text(file)?;
        let mut path = text.strip_prefix(prefix)?;
        while let [rest @ .., b'\n' | b'\r'] = path {
            path = rest;
        }
        let real = self.look.real(&folder.join(OsStr::from_bytes(path)))?;
        (self.look.kind(&real) == Some(Kind::Dir)).then_some(real)
    }

    fn worktrees(&self, git: &Path) -> Vec<PathBuf> {
        let folder = git.join("worktrees");
        self.folders(&folder).map(|name| folder.join(name)).collect()
    }

    /// The git directories of submodules, and of their submodules. A submodule's name can have slashes.
    fn modules(&self, git: &Path) -> Vec<PathBuf> {
        let is_file = |path: PathBuf| self.look.kind(&path) == Some(Kind::File);
        let mut found = Vec::new();
        let mut level = vec![git.join("modules")];
        for _ in 0..LINKED_DEPTH {
            let mut next = Vec::new();
            for folder in &level {
                for name in self.folders(folder) {
                    let inner = folder.join(name);
                    let is_git = is_file(inner.join("HEAD")) || is_file(inner.join("config"));
                    next.push(if is_git { inner.join("modules") } else { inner.clone() });
                    if is_git {
                        found.push(inner);
                    }
                }
            }
            level = next;
        }
        if level.iter().any(|folder| self.folders(folder).next().is_some()) {
            self.look.exceed(format!(
                "{} has submodules more than {LINKED_DEPTH} levels deep",
                git.display()
            ));
        }
        found
    }

    fn folders(&self, folder: &Path) -> impl Iterator<Item = OsString> + use<> {
        let inner = self.look.all(folder, LINKED).into_iter();
        inner.filter(|(_, kind)| *kind == Kind::Dir).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;

    fn found(disk: &Fake, folders: &[&str]) -> Vec<(String, bool)> {
        let look = Bounded::new(disk);
        let mut git = GitDirectories::new(&look);
        for folder in folders {
            git.search(Path::new(folder));
        }
        let found = git.found.into_iter();
        found.map(|(path, hooks)| (path.display().to_string(), hooks)).collect()
    }

    fn named(path: &str, has_hooks: bool) -> (String, bool) {
        (path.to_owned(), has_hooks)
    }

    #[test]
    fn sb5_a_repository_is_found_by_what_is_in_it() {
        let disk = Fake::of(&[
            "/ws/bare/HEAD",
            "/ws/bare/objects/",
            "/ws/bare/refs/",
            "/ws/headless/config",
            "/ws/headless/objects/",
            "/ws/headless/refs/",
            "/ws/code/objects/",
            "/ws/code/refs/",
            "/ws/code/hooks/",
            "/ws/code/config/",
            "/ws/head/HEAD",
        ]);
        let folders = ["/ws/bare", "/ws/headless", "/ws/code", "/ws/head"];
        assert_eq!(
            found(&disk, &folders),
            [named("/ws/bare", true), named("/ws/headless", true)]
        );
        let look = Bounded::new(&disk);
        let mut git = GitDirectories::new(&look);
        git.search(Path::new("/ws/bare"));
        assert_eq!(git.kept, ["/ws/bare/objects", "/ws/bare/refs"].map(PathBuf::from));
    }

    #[test]
    fn sb5_the_files_that_name_a_git_directory_are_followed() {
        let disk = Fake::of(&[
            "/ws/p/worktrees/main/HEAD",
            "/ws/p/worktrees/main/modules/lib/config",
            "/ws/p/modules/a/worktrees/b/commondir",
            "/ws/p/modules/a/config",
            "/more/git/config",
            "/other/git/config",
            "/ws/src/main.rs",
        ])
        .file("/ws/main/.git", "gitdir: ../p/worktrees/main\r\n")
        .file("/ws/p/worktrees/main/commondir", "../..\n")
        .file("/ws/sep/.git", "gitdir: /more/git\n")
        .file("/ws/out/.git", "gitdir: /other/git\n")
        .file("/ws/code/.git", "gitdir: ../src\n")
        .file("/ws/none/.git", "gitdir: ../none-such\n")
        .file("/ws/text/.git", "see /more/git\n");
        let folders = ["main", "sep", "out", "code", "none", "text"].map(|name| format!("/ws/{name}"));
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        assert_eq!(
            found(&disk, &folders),
            [
                named("/more/git", true),
                named("/other/git", true),
                named("/ws/p", true),
                named("/ws/p/modules/a", true),
                named("/ws/p/modules/a/worktrees/b", false),
                named("/ws/p/worktrees/main", false),
                named("/ws/p/worktrees/main/modules/lib", true),
            ]
        );
    }
}
