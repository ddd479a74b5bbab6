//! Files of the workspace that other programs of the user run: git hooks, shell files, editor tasks. Commands may read
//! them, not change them. PURE: the file system is asked through [`Look`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::configured::{Target, targets};
use crate::git::GitDirectories;
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
pub(crate) fn protected(
    workspace: &Path,
    writable: &[PathBuf],
    homes: &[PathBuf],
    workdir: &Path,
    look: &dyn Look,
) -> Protected {
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
    }
    found.configured(&roots, &all_targets(workspace, &projects, homes, look), look);
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
    fn configured(&mut self, roots: &[PathBuf], targets: &[Target], look: &dyn Look) {
        for target in targets {
            match target {
                Target::There(real) => self.guard(roots, real, look),
                // A link that leads nowhere is there, and nothing can be mounted over it.
                Target::Missing { first, is_folder, .. }
                    if *is_folder && is_below(roots, first) && look.kind(first).is_none() =>
                {
                    self.missing.push(first.clone());
                }
                Target::Missing { .. } => {}
            }
        }
    }

    /// Makes what is there read-only and keeps it in its place.
    fn guard(&mut self, roots: &[PathBuf], real: &Path, look: &dyn Look) {
        if !is_below(roots, real) || !matches!(look.kind(real), Some(Kind::Dir | Kind::File)) {
            return;
        }
        if let Some(above) = real.parent() {
            self.pin(roots, above);
        }
        self.read_only.push(real.to_owned());
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

fn is_below(roots: &[PathBuf], path: &Path) -> bool {
    roots.iter().any(|root| path.starts_with(root) && path != root)
}

/// Whether `path`, without links, is something that a repository of the workspace, or one above it, has git run or read as its configuration.
pub fn is_run_by_git(workspace: &Path, path: &Path, homes: &[PathBuf], look: &dyn Look) -> bool {
    let projects = projects(workspace, path.parent().unwrap_or(workspace), look);
    // Some disks take `WATCH` and `watch` for one name.
    let folded = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
    let path = folded(path);
    let targets = all_targets(workspace, &projects, homes, look);
    targets.iter().any(|target| path.starts_with(folded(target.path())))
}

/// What the configurations of all repositories name that a project, or a folder above the workspace, belongs to. Their git directories may be
/// where commands can't write, such as that of a worktree.
fn all_targets(workspace: &Path, projects: &[PathBuf], homes: &[PathBuf], look: &dyn Look) -> Vec<Target> {
    let everywhere = [PathBuf::from("/")];
    let mut git = GitDirectories::new(&everywhere, look);
    for folder in workspace
        .ancestors()
        .skip(1)
        .map(Path::to_owned)
        .chain(projects.iter().cloned())
    {
        git.search(&folder);
    }
    git.found
        .keys()
        .flat_map(|directory| targets(directory, projects, homes, look))
        .collect()
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
        let found = protected(Path::new("/ws"), &[], &[], Path::new("/ws/a/b/c/d/src"), &disk);
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
        let found = protected(Path::new("/ws"), &["/data".into()], &[], Path::new("/ws"), &disk);
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
    fn sb5_the_search_for_projects_is_bounded() {
        let names: Vec<String> = (0..FOLDERS * 2).map(|number| format!("/ws/p{number:04}/x/")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            projects(Path::new("/ws"), Path::new("/ws"), &Fake::of(&names)).len(),
            FOLDERS
        );
    }
}
