//! Files of the workspace that other programs of the user run: git hooks, shell files, editor tasks. Commands may read
//! them, not change them. PURE: the file system is asked through [`Look`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
/// Git directories of submodules and worktrees in one `.git`, and how deep the names of submodules go.
const LINKED: usize = 200;
const LINKED_DEPTH: usize = 5;

/// What bubblewrap mounts over the workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Made mount points, so that they can't be renamed together with what is in them.
    pub(crate) pinned: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Missing folders that are mounted empty.
    pub(crate) missing: Vec<PathBuf>,
}

/// The protected paths that exist, in the workspace, in folders up to two levels below it, and on the way to `workdir`.
pub(crate) fn protected(workspace: &Path, workdir: &Path, look: &dyn Look) -> Protected {
    let mut found = Protected::default();
    for folder in projects(workspace, workdir, look) {
        let git = folder.join(".git");
        match look.kind(&git) {
            Some(Kind::Dir) => {
                found.git_directory(workspace, &git, true, look);
                for module in modules(&git, look) {
                    found.git_directory(workspace, &module, true, look);
                }
                for (name, _) in folders(&git.join("worktrees"), look) {
                    found.git_directory(workspace, &git.join("worktrees").join(name), false, look);
                }
            }
            // Of a worktree or a submodule: it says where the git directory is.
            Some(Kind::File) => {
                found.pin(workspace, &folder);
                found.read_only.push(git);
            }
            _ => {}
        }
        for name in NAMES {
            found.keep(folder.join(name), look);
        }
    }
    found.pinned.sort();
    found.pinned.dedup();
    found
}

impl Protected {
    /// `has_hooks`: git looks for hooks in it.
    fn git_directory(&mut self, workspace: &Path, git: &Path, has_hooks: bool, look: &dyn Look) {
        self.pin(workspace, git);
        for name in IN_GIT {
            self.keep(git.join(name), look);
        }
        let hooks = git.join("hooks");
        if has_hooks && look.kind(&hooks).is_none() {
            self.missing.push(hooks);
        }
    }

    /// A link is followed by mounts; its target lies in the workspace, where it is protected by its own name, or outside.
    fn keep(&mut self, path: PathBuf, look: &dyn Look) {
        if matches!(look.kind(&path), Some(Kind::Dir | Kind::File)) {
            self.read_only.push(path);
        }
    }

    /// With the folders above it: another folder could be put in the place of one that is moved.
    fn pin(&mut self, workspace: &Path, folder: &Path) {
        let above = folder.ancestors().take_while(|path| *path != workspace);
        self.pinned.extend(above.map(Path::to_owned));
    }
}

fn folders(folder: &Path, look: &dyn Look) -> impl Iterator<Item = (OsString, Kind)> {
    let inner = look.list(folder, LINKED).into_iter();
    inner.filter(|(_, kind)| *kind == Kind::Dir)
}

/// The git directories of submodules, and of their submodules. A submodule's name can have slashes.
fn modules(git: &Path, look: &dyn Look) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![git.join("modules")];
    for _ in 0..LINKED_DEPTH {
        let mut next = Vec::new();
        for folder in &level {
            for (name, _) in folders(folder, look) {
                let inner = folder.join(name);
                let is_git = look.kind(&inner.join("HEAD")) == Some(Kind::File);
                next.push(if is_git { inner.join("modules") } else { inner.clone() });
                if is_git && found.len() < LINKED {
                    found.push(inner);
                }
            }
        }
        next.truncate(LINKED);
        level = next;
    }
    found
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
        let found = protected(Path::new("/ws"), Path::new("/ws/a/b/c/d/src"), &disk);
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
    fn sb5_the_search_for_projects_is_bounded() {
        let names: Vec<String> = (0..FOLDERS * 2).map(|number| format!("/ws/p{number:04}/x/")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            projects(Path::new("/ws"), Path::new("/ws"), &Fake::of(&names)).len(),
            FOLDERS
        );
    }
}
