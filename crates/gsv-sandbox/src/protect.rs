//! Files of the workspace that other programs of the user run: git hooks, shell files, editor tasks. Commands may read
//! them, not change them. PURE: the file system is asked through [`Look`].

use std::path::{Path, PathBuf};

use crate::look::{Kind, Look};

/// Names that are protected in the workspace and in each project folder in it.
const NAMES: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
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

/// The protected paths that exist, in the workspace, in folders up to two levels below it, and on the way to `workdir`.
pub(crate) fn protected(workspace: &Path, workdir: &Path, look: &dyn Look) -> Protected {
    let mut found = Protected::default();
    for folder in projects(workspace, workdir, look) {
        let git = folder.join(".git");
        let has_git = look.kind(&git) == Some(Kind::Dir);
        if has_git {
            found.pinned.push(git.clone());
            let hooks = git.join("hooks");
            if look.kind(&hooks).is_none() {
                found.missing.push(hooks);
            }
        }
        for name in NAMES {
            let path = folder.join(name);
            // A link is followed by mounts; its target lies in the workspace, where it is protected by its own name, or outside.
            if matches!(look.kind(&path), Some(Kind::Dir | Kind::File)) {
                found.read_only.push(path);
            }
        }
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
                "/ws/.vscode",
                "/ws/a/b/c/d/.git/config"
            ]
        );
        assert_eq!(
            found.missing,
            [Path::new("/ws/lib/.git/hooks"), Path::new("/ws/a/b/c/d/.git/hooks")]
        );
        assert_eq!(found.pinned.len(), 3);
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
