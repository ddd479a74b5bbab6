//! Files of the workspace, and of the owner's other writable folders, that other programs of the user run: git hooks, shell files, editor
//! tasks. Commands may read them, not change them. PURE: the file system is asked through [`Look`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bounded::Bounded;
use crate::configured::Target;
use crate::homes::targets_of_homes;
use crate::look::{Kind, Look};
use crate::names::{IN_GIT, MERCURIAL};
use crate::plan::without_inner;
use crate::search::{Search, too_much};

/// What bubblewrap mounts over the workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Made mount points, so that they can't be renamed together with what is in them.
    pub(crate) pinned: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Missing folders that are mounted empty.
    pub(crate) missing: Vec<PathBuf>,
}

/// The protected paths that exist, in the folders of the owner, in folders up to two levels below them, and on the way to `workdir`; and the
/// sockets that the search has met. `searched`: the workspace, then the other folders of the owner that commands may write. `writable`: all
/// folders that commands may write, each of `searched` among them, or a folder around it.
///
/// # Errors
/// A sentence: there is more than can be looked at, so not all would be protected.
pub(crate) fn protected(
    searched: &[PathBuf],
    writable: &[PathBuf],
    homes: &[PathBuf],
    workdir: &Path,
    look: &dyn Look,
) -> Result<(Protected, Vec<PathBuf>), String> {
    let look = &Bounded::new(look);
    // The outermost ones: the folders between two of them must stay in their places, too.
    let roots = without_inner(writable.to_vec());
    let mut found = Protected::default();
    let search = Search::new(searched, workdir, look);
    for folder in &search.projects {
        let file = folder.join(".git");
        // In a worktree or a submodule, the file `.git` names the git directory.
        if look.kind(&file) == Some(Kind::File) {
            found.pin(&roots, folder);
            found.read_only.push(file);
        }
    }
    for path in &search.settings {
        if let Some(repository) = path.parent().filter(|above| above.ends_with(MERCURIAL.0)) {
            found.pin(&roots, repository);
        }
        found.keep(path.clone(), look);
    }
    // Paths elsewhere need no protection.
    let is_writable = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    for folder in &search.git.kept {
        found.pin(&roots, folder);
    }
    for (directory, has_hooks) in search.git.found.iter().filter(|(path, _)| is_writable(path)) {
        found.git_directory(&roots, directory, *has_hooks, look);
    }
    found.configured(&roots, &search.targets(searched, homes, look), look);
    // Also a folder of the owner that lies in another one.
    let given = [searched, writable].concat();
    found.configured(&roots, &targets_of_homes(&given, homes, look), look);
    found.tidy();
    let sockets = search.sockets.into_iter().collect();
    look.finish((found, sockets))
        .map_err(|problem| too_much(searched, &problem))
}

impl Protected {
    /// `has_hooks`: git looks for hooks in it.
    fn git_directory(&mut self, roots: &[PathBuf], git: &Path, has_hooks: bool, look: &Bounded) {
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
    fn configured(&mut self, roots: &[PathBuf], targets: &[Target], look: &Bounded) {
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
    fn guard(&mut self, roots: &[PathBuf], real: &Path, look: &Bounded) {
        if !is_below(roots, real) || !matches!(look.kind(real), Some(Kind::Dir | Kind::File)) {
            return;
        }
        if let Some(above) = real.parent() {
            self.pin(roots, above);
        }
        self.read_only.push(real.to_owned());
    }

    /// A link can't be mounted over; what it leads to is one of the targets ([`Search::targets`]).
    fn keep(&mut self, path: PathBuf, look: &Bounded) {
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

/// What is protected where commands may write `searched` and `others`.
#[cfg(test)]
pub(crate) fn protected_with(
    searched: &[PathBuf],
    others: &[PathBuf],
    homes: &[PathBuf],
    workdir: &Path,
    look: &dyn Look,
) -> Result<Protected, String> {
    let writable = without_inner([searched, others].concat());
    protected(searched, &writable, homes, workdir, look).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;
    use crate::search::is_run_by_others;

    #[test]
    fn sb5_hooks_shell_files_and_editor_settings_are_found_with_their_projects() {
        let disk = Fake::of(&[
            "/ws/.git/hooks/pre-commit",
            "/ws/.git/config",
            "/ws/.envrc",
            "/ws/.vscode/tasks.json",
            "/ws/.vim/coc-settings.json",
            "/ws/a/hg/.hg/hgrc",
            "/ws/a/hg/.hg/store/00changelog.i",
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
        let found = protected_with(&["/ws".into()], &[], &[], Path::new("/ws/a/b/c/d/src"), &disk).unwrap();
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
                "/ws/.vim",
                "/ws/.vscode",
                "/ws/a/b/c/d/.git/config",
                "/ws/a/hg/.hg/hgrc",
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
            "/ws/a/hg/.hg",
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
        let found = protected_with(&["/ws".into()], &["/data".into()], &[], Path::new("/ws"), &disk).unwrap();
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
    fn sb5_the_other_folders_of_the_owner_are_searched_as_the_workspace_is() {
        let disk = Fake::of(&[
            "/ws/.git/hooks/pre-commit",
            "/ws/deep/a/b/c/.envrc",
            "/other/.envrc",
            "/other/lib/.git/hooks/pre-commit",
            "/other/bare/HEAD",
            "/other/bare/objects/",
            "/other/bare/refs/",
            "/other/tools/watch",
            "/other/a/b/c/.envrc",
            "/up/in/hk/pre-push",
            "/cache/.envrc",
        ])
        .file("/other/.git/config", "[core]\n fsmonitor = tools/watch\n")
        .file("/up/.git/config", "[core]\n hooksPath = in/hk\n");
        // One of them lies in the workspace.
        let searched = ["/ws", "/other", "/up/in", "/ws/deep/a"].map(PathBuf::from);
        let find =
            |workdir: &str| protected_with(&searched, &["/cache".into()], &[], Path::new(workdir), &disk).unwrap();
        let found = find("/other/a/b/c");
        let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        assert_eq!(
            found.read_only,
            paths(&[
                "/other/.envrc",
                "/other/.git/config",
                "/other/a/b/c/.envrc",
                "/other/lib/.git/hooks",
                "/other/tools/watch",
                "/up/in/hk",
                "/ws/.git/hooks",
                "/ws/deep/a/b/c/.envrc",
            ])
        );
        assert!(!find("/ws").read_only.contains(&PathBuf::from("/other/a/b/c/.envrc")));
        assert_eq!(found.missing, paths(&["/other/.git/hooks", "/other/bare/hooks"]));
        assert!(found.pinned.contains(&PathBuf::from("/other/bare/objects")));
        let runs = |searched: &[PathBuf], path: &str| is_run_by_others(searched, Path::new(path), &[], &disk).unwrap();
        assert!(runs(&searched, "/other/tools/watch") && runs(&searched, "/up/in/hk/x"));
        assert!(!runs(&searched[..1], "/other/tools/watch") && !runs(&searched, "/other/tools/x"));
    }

    #[test]
    fn sb5_a_workspace_in_a_folder_of_the_owner_stays_in_its_place() {
        let disk = Fake::of(&["/r/ws/.git/hooks/pre-commit"]);
        let searched = ["/r/ws", "/r"].map(PathBuf::from);
        let found = protected_with(&searched, &[], &[], Path::new("/r/ws"), &disk).unwrap();
        assert_eq!(found.pinned, ["/r/ws", "/r/ws/.git"].map(PathBuf::from));
    }

    #[test]
    fn sb5_what_links_in_place_of_hooks_and_settings_lead_to_is_protected() {
        let disk = Fake::of(&[
            "/ws/.git/config",
            "/ws/githooks/pre-push",
            "/ws/scripts/pc",
            "/ws/scripts/rc",
            "/ws/scripts/clean",
            "/ws/more.cfg",
            "/ws/lib/.git/hooks/",
            "/etc/hook",
        ])
        .file("/ws/lib/.git/config", "[core]\n hooksPath = hk\n")
        .file("/ws/lib/hk/post-merge.txt", "")
        .link("/ws/lib/hk/post-merge", "/ws/scripts/clean")
        .link("/ws/.git/hooks", "/ws/githooks")
        .link("/ws/.git/config.worktree", "/ws/more.cfg")
        .link("/ws/lib/.git/hooks/pre-commit", "/ws/scripts/pc")
        .link("/ws/lib/.git/hooks/post-commit", "/etc/hook")
        .link("/ws/.envrc", "/ws/scripts/rc")
        .link("/ws/.vscode", "/ws");
        let found = protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &disk).unwrap();
        for path in [
            "githooks",
            "scripts/pc",
            "scripts/rc",
            "scripts/clean",
            "more.cfg",
            "lib/.git/hooks",
            "lib/hk",
        ] {
            let path = Path::new("/ws").join(path);
            assert!(
                found.read_only.contains(&path),
                "{}: {:?}",
                path.display(),
                found.read_only
            );
        }
        assert!(
            !found.read_only.contains(&PathBuf::from("/ws")) && !found.read_only.contains(&PathBuf::from("/etc/hook"))
        );
        assert!(found.pinned.contains(&PathBuf::from("/ws/scripts")));
        let runs = |path: &str| is_run_by_others(&["/ws".into()], Path::new(path), &[], &disk).unwrap();
        // A folder that a hook's link leads to is run by no one.
        let folder =
            Fake::of(&["/ws/.git/hooks/", "/ws/.git/config", "/ws/src/a.rs"]).link("/ws/.git/hooks/lib", "/ws/src");
        let found = protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &folder).unwrap();
        assert!(!found.read_only.contains(&PathBuf::from("/ws/src")));
        assert!(runs("/ws/githooks/new") && runs("/ws/scripts/pc") && runs("/ws/scripts/rc"));
        assert!(!runs("/ws/scripts/other"));
    }
}
