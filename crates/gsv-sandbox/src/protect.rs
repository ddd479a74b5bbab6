//! Files of the workspace that other programs of the user run: git hooks, shell files, editor tasks. Commands may read
//! them, not change them. PURE: the file system is asked through [`Look`].

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::git::GitDirectories;
use crate::git_config::{Named, named};
use crate::look::{Kind, Look};

/// Names that are protected in the workspace and in each project folder in it.
const NAMES: &[&str] = &[
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".vscode",
    ".idea",
    ".zed",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".vimrc",
    ".dir-locals.el",
    ".mcp.json",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".opencode",
    ".windsurf",
    ".continue",
    ".devcontainer",
    ".husky",
    ".gdbinit",
    ".lldbinit",
    ".irbrc",
    ".pryrc",
];
/// Names that are protected in a git directory. `commondir` and `gitdir` say where a worktree has its configuration and hooks.
const IN_GIT: &[&str] = &[
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "commondir",
    "gitdir",
];

/// Folders that are searched for projects, at most. More are not protected; the documentation says so.
const FOLDERS: usize = 500;
const DEPTH: usize = 2;
/// Files of configuration that one repository includes, with its own.
const INCLUDED: usize = 10;
/// Worktrees of a repository, and projects in which the files of one are looked for whose git directory is elsewhere.
const BASES: usize = 20;

/// What bubblewrap mounts over the workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Made mount points, so that they can't be renamed together with what is in them.
    pub(crate) pinned: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Missing folders that are mounted empty.
    pub(crate) missing: Vec<PathBuf>,
}

/// The protected paths that exist, in the workspace, in folders up to two levels below it, and on the way to `workdir`. `writable`: where
/// commands may write, besides the workspace.
pub(crate) fn protected(workspace: &Path, writable: &[PathBuf], workdir: &Path, look: &dyn Look) -> Protected {
    let roots: Vec<PathBuf> = std::iter::once(workspace.to_owned())
        .chain(writable.iter().cloned())
        .collect();
    let mut found = Protected::default();
    let mut git = GitDirectories::new(&roots, look);
    let projects = projects(workspace, workdir, look);
    for folder in &projects {
        git.search(folder);
        let file = folder.join(".git");
        // Of a worktree or a submodule: it says where the git directory is.
        if look.kind(&file) == Some(Kind::File) {
            found.pin(&roots, folder);
            found.read_only.push(file);
        }
        for name in NAMES {
            found.keep(folder.join(name), look);
        }
    }
    for folder in &git.kept {
        found.pin(&roots, folder);
    }
    for (directory, has_hooks) in &git.found {
        found.git_directory(&roots, directory, *has_hooks, look);
        found.configured(&roots, directory, &projects, look);
    }
    found.tidy();
    found
}

impl Protected {
    /// `has_hooks`: git looks for hooks in it.
    fn git_directory(&mut self, roots: &[PathBuf], git: &Path, has_hooks: bool, look: &dyn Look) {
        self.pin(roots, git);
        for name in IN_GIT {
            self.keep(git.join(name), look);
        }
        let hooks = git.join("hooks");
        if has_hooks && look.kind(&hooks).is_none() {
            self.missing.push(hooks);
        }
    }

    /// What the configuration of a repository names where commands may write: hooks in another place, further configuration, programs.
    fn configured(&mut self, roots: &[PathBuf], git: &Path, projects: &[PathBuf], look: &dyn Look) {
        let mut files: Vec<PathBuf> = ["config", "config.worktree"].map(|name| git.join(name)).into();
        let mut found: Vec<Named> = Vec::new();
        let mut at = 0;
        while let Some(file) = files.get(at).cloned() {
            at += 1;
            let beside = file.parent().unwrap_or(git);
            for name in look.text(&file).map(|text| named(&text)).unwrap_or_default() {
                match name {
                    // A link is read as the file that it leads to, as git does.
                    Named::Include(path) if files.len() < INCLUDED => files.extend(look.real(&beside.join(path))),
                    name => found.push(name),
                }
            }
        }
        for file in files.into_iter().skip(2) {
            self.guard(roots, &file, look);
        }
        let bases = bases_of(git, &found, projects, look);
        for name in &found {
            for base in &bases {
                match name {
                    // A folder around the repository would end all work in it.
                    Named::Hooks(path) if !is_around(git, &base.join(path), look) => {
                        let folder = base.join(path);
                        if !self.guard(roots, &folder, look) && can_be_made(roots, &folder, look) {
                            self.missing.push(folder);
                        }
                    }
                    // A folder may be named for another reason: it is the address of a repository.
                    Named::Word(path) => {
                        let file = look
                            .real(&base.join(path))
                            .filter(|real| look.kind(real) == Some(Kind::File));
                        if let Some(file) = file {
                            self.guard(roots, &file, look);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Makes what is there read-only and keeps it in its place. False: it is nothing, or where commands may not write.
    fn guard(&mut self, roots: &[PathBuf], path: &Path, look: &dyn Look) -> bool {
        let Some(real) = look.real(path) else {
            return false;
        };
        let is_below = roots.iter().any(|root| real.starts_with(root) && real != *root);
        if !is_below || !matches!(look.kind(&real), Some(Kind::Dir | Kind::File)) {
            return false;
        }
        if let Some(above) = real.parent() {
            self.pin(roots, above);
        }
        self.read_only.push(real);
        true
    }

    /// A link is followed by mounts; its target lies in the workspace, where it is protected by its own name, or outside.
    fn keep(&mut self, path: PathBuf, look: &dyn Look) {
        if matches!(look.kind(&path), Some(Kind::Dir | Kind::File)) {
            self.read_only.push(path);
        }
    }

    /// With the folders above it: another folder could be put in the place of one that is moved.
    fn pin(&mut self, roots: &[PathBuf], folder: &Path) {
        // A mount of what commands may not write would make it writable.
        let Some(root) = roots.iter().find(|root| folder.starts_with(root)) else {
            return;
        };
        let above = folder.ancestors().take_while(|path| path != root);
        self.pinned.extend(above.map(Path::to_owned));
    }

    /// Nothing twice, and nothing in what is read-only as a whole: a mount there would be covered, or could not be made.
    fn tidy(&mut self) {
        let whole: BTreeSet<PathBuf> = self.read_only.drain(..).collect();
        let is_below = |path: &Path| path.ancestors().skip(1).any(|above| whole.contains(above));
        self.pinned.sort();
        self.pinned.dedup();
        self.pinned.retain(|path| !whole.contains(path) && !is_below(path));
        self.missing.sort();
        self.missing.dedup();
        self.missing.retain(|path| !is_below(path));
        self.read_only = whole.iter().filter(|path| !is_below(path)).cloned().collect();
    }
}

/// Where the files of a repository may be: what its configuration names is relative to them.
fn bases_of(git: &Path, found: &[Named], projects: &[PathBuf], look: &dyn Look) -> Vec<PathBuf> {
    let named = found.iter().filter_map(|name| match name {
        Named::WorkTree(path) => Some(git.join(path)),
        _ => None,
    });
    let mut bases: Vec<PathBuf> = named.collect();
    let trees = git.join("worktrees");
    for (name, _) in look.list(&trees, BASES) {
        // The file `.git` of the worktree.
        let text = look.text(&trees.join(name).join("gitdir")).unwrap_or_default();
        let file = trees.join(String::from_utf8_lossy(&text).trim());
        bases.extend(file.parent().map(Path::to_owned));
    }
    match git.parent().filter(|_| git.ends_with(".git")) {
        Some(above) => bases.push(above.to_owned()),
        // A file `.git` names it, or it has no files.
        None => bases.extend(projects.iter().take(BASES).cloned()),
    }
    bases
}

fn is_around(git: &Path, folder: &Path, look: &dyn Look) -> bool {
    look.real(folder).is_some_and(|real| git.starts_with(real))
}

/// Nothing is there, and commands may write the folder that it would be in. A path with `..` could be elsewhere.
fn can_be_made(roots: &[PathBuf], path: &Path, look: &dyn Look) -> bool {
    let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    let has_parent = path.parent().and_then(|above| look.kind(above)) == Some(Kind::Dir);
    let is_below = roots.iter().any(|root| path.starts_with(root) && path != root);
    is_plain && has_parent && is_below && look.kind(path).is_none()
}

fn projects(workspace: &Path, workdir: &Path, look: &dyn Look) -> Vec<PathBuf> {
    let mut folders = vec![workspace.to_owned()];
    let mut level = folders.clone();
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for folder in &level {
            let left = FOLDERS.saturating_sub(folders.len());
            if left == 0 {
                break;
            }
            let inner = look.list(folder, FOLDERS).into_iter();
            let inner = inner.filter(|(name, kind)| *kind == Kind::Dir && name != ".git" && name != "node_modules");
            let inner: Vec<PathBuf> = inner.take(left).map(|(name, _)| folder.join(name)).collect();
            folders.extend(inner.iter().cloned());
            next.extend(inner);
        }
        level = next;
    }
    let above = workdir.ancestors().take_while(|path| path.starts_with(workspace));
    for folder in above {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;

    #[test]
    fn sb5_hooks_shell_files_and_editor_settings_are_found_with_their_projects() {
        let disk = Fake::of(&[
            "/ws/.git/hooks/pre-commit",
            "/ws/.git/config",
            "/ws/.envrc",
            "/ws/.vscode/tasks.json",
            "/ws/lib/.git/HEAD",
            "/ws/a/b/c/d/.git/config",
            "/ws/a/b/c/d/src/",
            "/ws/src/main.rs",
            "/ws/tree/.git",
            "/ws/.git/worktrees/tree/commondir",
            "/ws/.git/modules/libs/foo/HEAD",
            "/ws/.git/modules/libs/foo/config",
            "/ws/.git/modules/libs/foo/modules/bar/HEAD",
        ])
        .link("/ws/.bashrc", "/etc/bashrc");
        let found = protected(Path::new("/ws"), &[], Path::new("/ws/a/b/c/d/src"), &disk);
        let mut names: Vec<String> = found.read_only.iter().map(|path| path.display().to_string()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "/ws/.envrc",
                "/ws/.git/config",
                "/ws/.git/hooks",
                "/ws/.git/modules/libs/foo/config",
                "/ws/.git/worktrees/tree/commondir",
                "/ws/.vscode",
                "/ws/a/b/c/d/.git/config",
                "/ws/tree/.git"
            ]
        );
        let mut missing: Vec<String> = found.missing.iter().map(|path| path.display().to_string()).collect();
        missing.sort();
        assert_eq!(
            missing,
            [
                "/ws/.git/modules/libs/foo/hooks",
                "/ws/.git/modules/libs/foo/modules/bar/hooks",
                "/ws/a/b/c/d/.git/hooks",
                "/ws/lib/.git/hooks"
            ]
        );
        for folder in [
            "/ws/.git",
            "/ws/a",
            "/ws/a/b/c/d",
            "/ws/a/b/c/d/.git",
            "/ws/lib",
            "/ws/tree",
        ] {
            assert!(found.pinned.contains(&PathBuf::from(folder)), "{folder}");
        }
        assert!(found.pinned.is_sorted() && !found.pinned.contains(&PathBuf::from("/ws")));
    }

    #[test]
    fn sb5_git_directories_of_any_name_are_protected_with_what_makes_them_one() {
        let disk = Fake::of(&[
            "/ws/proj.git/config",
            "/ws/proj.git/objects/",
            "/ws/proj.git/refs/",
            "/ws/proj.git/worktrees/main/commondir",
            "/data/meta/config",
            "/data/meta/hooks/",
            "/ws/.claude/plugins/.git/config",
        ])
        .file("/ws/sep/.git", "gitdir: /data/meta");
        let found = protected(Path::new("/ws"), &["/data".into()], Path::new("/ws"), &disk);
        let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        assert_eq!(
            found.read_only,
            paths(&[
                "/data/meta/config",
                "/data/meta/hooks",
                "/ws/.claude",
                "/ws/proj.git/config",
                "/ws/proj.git/worktrees/main/commondir",
                "/ws/sep/.git",
            ])
        );
        assert_eq!(found.missing, paths(&["/ws/proj.git/hooks"]));
        assert_eq!(
            found.pinned,
            paths(&[
                "/data/meta",
                "/ws/proj.git",
                "/ws/proj.git/objects",
                "/ws/proj.git/refs",
                "/ws/proj.git/worktrees",
                "/ws/proj.git/worktrees/main",
                "/ws/sep",
            ])
        );
    }

    #[test]
    fn sb5_what_the_configuration_of_a_repository_names_is_protected() {
        let disk = Fake::of(&[
            "/ws/.githooks/pre-commit",
            "/ws/tools/more.cfg",
            "/ws/tools/clean.sh",
            "/ws/scripts/watch",
            "/ws/other/HEAD",
            "/etc/hooks/pre-commit",
            "/ws/sub/README",
        ])
        .file(
            "/ws/.git/config",
            "[core]\n hooksPath = .githooks\n[include]\n path = ../tools/inc.cfg\n[remote \"o\"]\n url = ./other\n",
        )
        .file(
            "/ws/tools/inc.cfg",
            "[filter \"x\"]\n clean = sh tools/clean.sh\n[include]\n path = more.cfg\n",
        )
        .file(
            "/ws/sub/.git/config",
            "[core]\n hooksPath = hooks.d\n fsmonitor = ../scripts/watch\n",
        )
        .file("/ws/sub/.git/worktrees/tree/gitdir", "/ws/tree/.git\n")
        .file("/ws/tree/hooks.d/pre-push", "")
        .file("/ws/out/.git/config", "[core]\n hooksPath = /etc/hooks\n")
        .file("/ws/up/.git/config", "[core]\n hooksPath = ../none\n")
        .file("/ws/all/.git/config", "[core]\n hooksPath = .\n")
        .file("/ws/sep/.git", "gitdir: /ws/.meta")
        .file("/ws/.meta/config", "[core]\n hooksPath = hk\n")
        .file("/ws/sep/hk/pre-push", "");
        let found = protected(Path::new("/ws"), &[], Path::new("/ws"), &disk);
        for path in [
            "/ws/.githooks",
            "/ws/tools/inc.cfg",
            "/ws/tools/more.cfg",
            "/ws/tools/clean.sh",
            "/ws/scripts/watch",
            "/ws/sep/hk",
            "/ws/tree/hooks.d",
        ] {
            assert!(
                found.read_only.contains(&PathBuf::from(path)),
                "{path}: {:?}",
                found.read_only
            );
        }
        for path in ["/ws/other", "/etc/hooks", "/ws", "/ws/sub/README"] {
            assert!(!found.read_only.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(found.missing.contains(&PathBuf::from("/ws/sub/hooks.d")));
        assert!(!found.missing.iter().any(|path| path.ends_with("none")));
        for path in ["/ws/tools", "/ws/scripts", "/ws/sep"] {
            assert!(found.pinned.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(!found.read_only.contains(&PathBuf::from("/ws/all")));
    }

    #[test]
    fn sb5_the_search_for_projects_is_bounded() {
        let names: Vec<String> = (0..FOLDERS * 2).map(|number| format!("/ws/p{number:04}/x/")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            projects(Path::new("/ws"), Path::new("/ws"), &Fake::of(&names)).len(),
            FOLDERS
        );
    }
}
