//! What the configuration of a repository, or of the user, makes git run, or read as configuration, and where that is on the disk. PURE:
//! the file system is asked through [`Look`].

use std::path::{Component, Path, PathBuf};

use crate::bounded::Bounded;
use crate::git_config::{Named, VALUES, named};
use crate::look::{Kind, Look as _};

/// Files of configuration that one repository includes, at most.
const INCLUDED: usize = 100;
/// Worktrees of a repository, and entries of a folder of hooks, at most.
const ENTRIES: usize = 5_000;

/// Configurations of git in a home, and of the system.
const OF_USER: [&str; 2] = [".gitconfig", ".config/git/config"];
const OF_SYSTEM: &str = "/etc/gitconfig";

/// Something that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Without links.
    There(PathBuf),
    /// Nothing is there. `first`: of `path`, the first part that is missing.
    Missing {
        first: PathBuf,
        path: PathBuf,
        is_folder: bool,
    },
}

impl Target {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::There(path) | Self::Missing { path, .. } => path,
        }
    }
}

/// `git`: the directory of the repository. `trees`: folders with a file `.git` that names it. `homes`: of the user.
pub(crate) fn targets(git: &Path, trees: &[PathBuf], homes: &[PathBuf], look: &Bounded) -> Vec<Target> {
    let files = ["config", "config.worktree"].map(|name| git.join(name));
    let (mut targets, names) = read(files.into(), homes, look);
    let bases = bases_of(git, &names, trees, look);
    for name in &names {
        for path in name.paths(homes) {
            for base in &bases {
                let found = name.targets(&base.join(&path), look);
                // A folder around the repository would end all work in it.
                let is_around = |target: &Target| matches!(target, Target::There(real) if git.starts_with(real));
                if !found.iter().any(is_around) {
                    targets.extend(found);
                }
            }
        }
    }
    targets
}

/// What the configurations of the user (and `/etc/gitconfig`) name by an absolute path or by `~/`. A relative path may mean any folder.
pub(crate) fn targets_of_user(homes: &[PathBuf], look: &Bounded) -> Vec<Target> {
    let of_home = |home: &PathBuf| OF_USER.map(|name| home.join(name));
    let mut files: Vec<PathBuf> = homes.iter().flat_map(of_home).collect();
    files.push(OF_SYSTEM.into());
    let (mut targets, names) = read(files, homes, look);
    for name in &names {
        let paths = name.paths(homes).into_iter().filter(|path| path.is_absolute());
        targets.extend(paths.flat_map(|path| name.targets(&path, look)));
    }
    targets
}

/// The files that configurations include, and all other names in these configurations.
fn read(files: Vec<PathBuf>, homes: &[PathBuf], look: &Bounded) -> (Vec<Target>, Vec<Named>) {
    let own = files.len();
    let mut files = files;
    let mut targets = Vec::new();
    let mut names: Vec<Named> = Vec::new();
    let mut at = 0;
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        // A link is read as the file that it leads to, as git does.
        let Some(real) = look.real(&file) else { continue };
        let Some(text) = look.text(&real) else { continue };
        let Some(found) = named(&text) else {
            look.exceed(format!("{} names more than {VALUES} paths", file.display()));
            continue;
        };
        let mut beside: Vec<&Path> = [&file, &real].into_iter().filter_map(|file| file.parent()).collect();
        beside.dedup();
        for name in found {
            let Named::Include(path) = name else {
                names.push(name);
                continue;
            };
            for path in expanded(&path, homes) {
                for folder in &beside {
                    let included = folder.join(&path);
                    let target = resolved(&included, false, look);
                    if matches!(target, Target::There(_)) && !files.contains(&included) {
                        files.push(included);
                    }
                    targets.push(target);
                }
            }
            if files.len() > own + INCLUDED {
                look.exceed(format!("{} includes more than {INCLUDED} files", file.display()));
                return (targets, names);
            }
        }
    }
    (targets, names)
}

impl Named {
    /// The paths that it may mean, relative to the files of a repository.
    fn paths(&self, homes: &[PathBuf]) -> Vec<PathBuf> {
        match self {
            Self::Hooks(path) | Self::Word(path) => expanded(path, homes),
            Self::Below(folder, word) => {
                let folders = expanded(folder, homes).into_iter();
                folders.map(|folder| folder.join(word)).collect()
            }
            Self::Include(_) | Self::WorkTree(_) => Vec::new(),
        }
    }

    /// What git runs when this name means `path`.
    fn targets(&self, path: &Path, look: &Bounded) -> Vec<Target> {
        let is_folder = matches!(self, Self::Hooks(_));
        let target = resolved(path, is_folder, look);
        let has_folder = |word: &str| Path::new(word).components().count() > 1;
        let counts = match (&target, self) {
            (_, Self::Hooks(_)) => true,
            // A folder may be named for another reason: it is the address of a repository.
            (Target::There(real), _) => look.kind(real) == Some(Kind::File),
            // One word may mean anything.
            (Target::Missing { .. }, Self::Word(word) | Self::Below(_, word)) => has_folder(word),
            (Target::Missing { .. }, _) => false,
        };
        let mut targets = Vec::new();
        if let (true, Target::There(real)) = (is_folder, &target) {
            targets.extend(linked_hooks(real, look));
        }
        targets.extend(counts.then_some(target));
        targets
    }
}

/// What the links in a folder of hooks lead to: git runs it as the hook.
pub(crate) fn linked_hooks(hooks: &Path, look: &Bounded) -> Vec<Target> {
    let entries = look.all(hooks, ENTRIES).into_iter();
    let links = entries.filter(|(_, kind)| *kind == Kind::Link);
    let targets = links.filter_map(|(name, _)| linked(&hooks.join(name), look));
    targets
        .filter(|target| look.kind(target.path()) == Some(Kind::File))
        .collect()
}

/// What a link leads to. A folder around the link would end all work in it.
pub(crate) fn linked(link: &Path, look: &Bounded) -> Option<Target> {
    let real = look.real(link)?;
    (!link.starts_with(&real)).then_some(Target::There(real))
}

/// `~/` and `~user/` as git reads them.
fn expanded(path: &str, homes: &[PathBuf]) -> Vec<PathBuf> {
    let Some((user, rest)) = path.strip_prefix('~').and_then(|rest| rest.split_once('/')) else {
        return vec![path.into()];
    };
    let of_user = homes
        .iter()
        .filter(|home| user.is_empty() || home.file_name().is_some_and(|name| name == user));
    of_user.map(|home| home.join(rest)).collect()
}

pub(crate) fn resolved(path: &Path, is_folder: bool, look: &Bounded) -> Target {
    if let Some(real) = look.real(path) {
        return Target::There(real);
    }
    let mut there = PathBuf::new();
    let mut rest = path.components();
    for part in rest.by_ref() {
        let Some(real) = look.real(&there.join(part)) else {
            let first = there.join(part);
            let whole = rest.fold(first.clone(), |mut whole, part| {
                if part == Component::ParentDir {
                    whole.pop();
                } else {
                    whole.push(part);
                }
                whole
            });
            return Target::Missing {
                first,
                path: whole,
                is_folder,
            };
        };
        there = real;
    }
    Target::There(there)
}

/// Where the files of a repository may be: what its configuration names is relative to them.
fn bases_of(git: &Path, names: &[Named], files: &[PathBuf], look: &Bounded) -> Vec<PathBuf> {
    let places = names.iter().filter_map(|name| match name {
        Named::WorkTree(path) => Some(git.join(path)),
        _ => None,
    });
    let mut bases: Vec<PathBuf> = places.collect();
    let trees = git.join("worktrees");
    for (name, _) in look.all(&trees, ENTRIES) {
        // The file `.git` of the worktree.
        let text = look.text(&trees.join(name).join("gitdir")).unwrap_or_default();
        let file = trees.join(String::from_utf8_lossy(&text).trim());
        bases.extend(file.parent().map(Path::to_owned));
    }
    // Its own files, when it is that of a worktree.
    let text = look.text(&git.join("gitdir")).unwrap_or_default();
    let own = git.join(String::from_utf8_lossy(&text).trim());
    bases.extend(own.parent().map(Path::to_owned));
    bases.extend(git.parent().map(Path::to_owned));
    if !git.ends_with(".git") {
        bases.push(git.to_owned());
    }
    bases.extend(files.iter().cloned());
    bases.sort();
    bases.dedup();
    bases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;
    use crate::protect::protected_with;
    use crate::search::is_run_by_others;

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
        .file("/ws/sep/hk/pre-push", "")
        .file("/repo/.git/config", "[core]\n hooksPath = .hooks\n")
        .file("/repo/.git/worktrees/far/gitdir", "/ws/far/.git\n")
        .file("/repo/.git/worktrees/far/commondir", "../..")
        .file("/repo/.git/worktrees/far/HEAD", "")
        .file("/ws/far/.git", "gitdir: /repo/.git/worktrees/far\n")
        .file("/ws/far/.hooks/pre-push", "")
        .file(
            "/ws/deep/.git/config",
            "[core]\n hooksPath = tools/no/hooks\n[include]\n path = tools/none.cfg\n",
        )
        .file(
            "/ws/home/.git/config",
            "[core]\n hooksPath = ~/data/hooks\n[include]\n path = ~u/data/git.cfg\n path = ~v/data/x.cfg\n",
        )
        .file("/home/u/data/hooks/pre-push", "")
        .file("/home/u/data/git.cfg", "")
        .file("/home/u/data/x.cfg", "");
        let homes = [PathBuf::from("/home/u")];
        let found = protected_with(
            &["/ws".into()],
            &["/home/u/data".into()],
            &homes,
            Path::new("/ws"),
            &disk,
        )
        .unwrap();
        for path in [
            "/ws/.githooks",
            "/ws/tools/inc.cfg",
            "/ws/tools/more.cfg",
            "/ws/tools/clean.sh",
            "/ws/scripts/watch",
            "/ws/sep/hk",
            "/ws/tree/hooks.d",
            // The repository of a worktree is elsewhere.
            "/ws/far/.hooks",
            "/home/u/data/hooks",
            "/home/u/data/git.cfg",
        ] {
            assert!(
                found.read_only.contains(&PathBuf::from(path)),
                "{path}: {:?}",
                found.read_only
            );
        }
        for path in ["/ws/other", "/etc/hooks", "/ws", "/ws/sub/README", "/home/u/data/x.cfg"] {
            assert!(!found.read_only.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(found.missing.contains(&PathBuf::from("/ws/sub/hooks.d")));
        assert!(found.missing.contains(&PathBuf::from("/ws/none")));
        assert!(found.missing.contains(&PathBuf::from("/ws/deep/tools")));
        assert!(!found.missing.iter().any(|path| path.ends_with("none.cfg")));
        for path in ["/ws/tools", "/ws/scripts", "/ws/sep"] {
            assert!(found.pinned.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(!found.read_only.contains(&PathBuf::from("/ws/all")));
        let runs = |path: &str| is_run_by_others(&["/ws".into()], Path::new(path), &homes, &disk).unwrap();
        for path in [
            "/ws/.githooks/new",
            "/ws/tools/CLEAN.sh",
            "/ws/far/.hooks/pre-push",
            "/ws/tools/clean.sh",
            "/ws/sub/hooks.d/pre-push",
            "/ws/deep/tools/no/hooks/x",
            "/ws/deep/.git/tools/none.cfg",
        ] {
            assert!(runs(path), "{path}");
        }
        for path in ["/ws/tools/other", "/ws/deep/tools/x", "/ws/sub/README", "/ws/up/x"] {
            assert!(!runs(path), "{path}");
        }
    }

    #[test]
    fn sb5_a_script_that_the_shell_of_an_alias_locates_is_protected() {
        let disk = Fake::default()
            .file(
                "/ws/al/.git/config",
                "[alias]\n cdd = !cd tools && ./cdd.sh\n top = \"!$(git rev-parse --show-toplevel)/tools/top.sh\"\n \
             ver = \"!sh \\\"${GIT_PREFIX:-.}/tools/ver.sh\\\"\"\n",
            )
            .file("/ws/al/tools/cdd.sh", "")
            .file("/ws/al/tools/top.sh", "")
            .file("/ws/al/tools/ver.sh", "")
            .file("/ws/al/tools/other.sh", "");
        let found = protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &disk).unwrap();
        for name in ["cdd", "top", "ver"] {
            let path = PathBuf::from(format!("/ws/al/tools/{name}.sh"));
            assert!(found.read_only.contains(&path), "{name}: {:?}", found.read_only);
        }
        assert!(!found.read_only.contains(&"/ws/al/tools/other.sh".into()));
    }

    #[test]
    fn sb5_a_program_whose_path_has_a_blank_is_protected() {
        let disk = Fake::of(&["/ws/my tools/watch.sh", "/ws/my tools/x y", "/ws/other"])
            .file("/ws/.git/config", "[core]\n fsmonitor = \"'./my tools/watch.sh'\"\n")
            .file("/ws/.git/config.worktree", "[gpg]\n program = my tools/x y\n");
        let found = protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &disk).unwrap();
        for path in ["/ws/my tools/watch.sh", "/ws/my tools/x y"] {
            assert!(found.read_only.contains(&path.into()), "{:?}", found.read_only);
        }
        assert!(found.pinned.contains(&"/ws/my tools".into()));
    }

    #[test]
    fn sb5_a_repository_around_the_workspace_is_read_too() {
        let below = Fake::of(&["/r/sub/a/.h/pre-push"]).file("/r/.git/config", "[core]\n hooksPath = sub/a/.h\n");
        let part = protected_with(&["/r/sub".into()], &[], &[], Path::new("/r/sub"), &below).unwrap();
        assert_eq!(part.read_only, [PathBuf::from("/r/sub/a/.h")]);
    }
}
