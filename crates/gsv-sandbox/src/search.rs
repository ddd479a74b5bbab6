//! The search of the owner's folders for repositories, protected files and sockets, and what file tools ask about them. PURE: the file
//! system is asked through [`Look`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bounded::{Bounded, Problem};
use crate::configured::{Target, linked, linked_hooks, targets};
use crate::folders::Folders;
use crate::git::GitDirectories;
use crate::homes::targets_of_homes;
use crate::look::{Kind, Look};
use crate::names::{IN_GIT, MERCURIAL, NAMES, OF_GIT};

/// Folders that are searched for projects, at most, and entries of one of them.
const FOLDERS: usize = 20_000;
const ENTRIES: usize = 1_000_000;
const DEPTH: usize = 2;

/// What is found in the folders of the owner.
pub(crate) struct Search<'a> {
    /// The folders that are searched themselves, and those in them.
    pub(crate) projects: Vec<PathBuf>,
    /// What is there under protected names in the projects.
    pub(crate) settings: Vec<PathBuf>,
    pub(crate) sockets: BTreeSet<PathBuf>,
    /// Also of repositories around these folders, and elsewhere.
    pub(crate) git: GitDirectories<'a>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(searched: &[PathBuf], workdir: &Path, look: &'a Bounded<'a>) -> Self {
        let mut folders = Folders::new(look);
        let projects = projects(searched, workdir, &mut folders);
        let mut git = GitDirectories::new(look);
        let around: BTreeSet<&Path> = searched.iter().flat_map(|root| root.ancestors().skip(1)).collect();
        for folder in around {
            git.search(folder);
        }
        for folder in &projects {
            let read = folders.read(folder);
            if OF_GIT.iter().any(|name| read.may_have(name)) {
                git.search(folder);
            }
        }
        let settings = settings(&projects, &mut folders);
        Self {
            projects,
            settings,
            sockets: folders.sockets(),
            git,
        }
    }

    /// What the configurations of the repositories name, and what links in the place of protected files and hooks lead to.
    pub(crate) fn targets(&self, searched: &[PathBuf], homes: &[PathBuf], look: &Bounded) -> Vec<Target> {
        let target_of = |path: PathBuf| {
            let is_link = look.kind(&path) == Some(Kind::Link);
            is_link.then(|| linked(&path, look)).flatten()
        };
        let mut all = Vec::new();
        for directory in self.git.found.keys() {
            let mut trees = self.git.trees.get(directory).cloned().unwrap_or_default();
            if !directory.ends_with(".git") {
                // Git can be told to use it for other files (`--work-tree`), usually those around it.
                let (workspace, others) = searched.split_at(searched.len().min(1));
                trees.extend(workspace.iter().cloned());
                trees.extend(others.iter().filter(|root| directory.starts_with(root)).cloned());
            }
            all.extend(targets(directory, &trees, homes, look));
            all.extend(linked_hooks(&directory.join("hooks"), look));
            all.extend(IN_GIT.iter().filter_map(|name| target_of(directory.join(name))));
        }
        all.extend(self.settings.iter().cloned().filter_map(target_of));
        all
    }
}

/// What is there under protected names in the projects.
fn settings(projects: &[PathBuf], folders: &mut Folders) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in projects {
        let read = folders.read(folder);
        let is_there = |path: &PathBuf| folders.look.kind(path).is_some();
        // Some disks take other letters for the same name, so it is looked at once more where it counts.
        let names = NAMES.iter().filter(|name| read.may_have(name));
        found.extend(names.map(|name| folder.join(name)).filter(is_there));
        let (repository, hooks) = MERCURIAL;
        let hooks = read.may_have(repository).then(|| folder.join(repository).join(hooks));
        found.extend(hooks.filter(is_there));
    }
    found
}

/// The owner's folders, the folders up to two levels below them, and those on the way to `workdir`. `FOLDERS` limits all of them together.
fn projects(searched: &[PathBuf], workdir: &Path, known: &mut Folders) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for root in searched {
        let mut level = vec![root.clone()];
        folders.push(root.clone());
        for _ in 0..DEPTH {
            let mut next = Vec::new();
            for folder in &level {
                let inner = known.whole(folder, ENTRIES);
                next.extend(inner.folders.iter().map(|name| folder.join(name)));
                if folders.len() + next.len() > FOLDERS {
                    known.look.exceed(too_many(searched));
                    return folders;
                }
            }
            folders.extend(next.iter().cloned());
            level = next;
        }
    }
    if searched.len() > 1 {
        // One of them may lie in another one.
        folders.sort();
        folders.dedup();
    }
    let is_inside = |path: &Path| searched.iter().any(|root| path.starts_with(root));
    for folder in workdir.ancestors().take_while(|path| is_inside(path)) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders
}

fn too_many(searched: &[PathBuf]) -> String {
    let (whose, below) = match searched {
        [_, _, ..] => ("they have together", "them"),
        _ => ("it has", "it"),
    };
    format!("{whose} more than {FOLDERS} folders up to two levels below {below}")
}

/// Whether other programs run `path`, which has no links, or read it as their configuration: what a repository of the folders `searched`,
/// or one above them, has git run or read; what a link with a protected name leads to; what git and shells of the user read from a home.
/// `searched`: the workspace, then the other folders of the owner that commands may write.
///
/// # Errors
/// A sentence: there is more than can be looked at.
pub fn is_run_by_others(searched: &[PathBuf], path: &Path, homes: &[PathBuf], look: &dyn Look) -> Result<bool, String> {
    let look = &Bounded::new(look);
    // Some disks take `WATCH` and `watch` for one name.
    let folded = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
    let search = Search::new(searched, path.parent().unwrap_or(path), look);
    let path = folded(path);
    let mut targets = search.targets(searched, homes, look);
    targets.extend(targets_of_homes(searched, homes, look));
    let is_one = targets.iter().any(|target| path.starts_with(folded(target.path())));
    look.finish(is_one).map_err(|problem| too_much(searched, &problem))
}

/// Why the search has failed, and what the user can do.
pub(crate) fn too_much(searched: &[PathBuf], problem: &Problem) -> String {
    let (why, advice) = match problem {
        Problem::Limit(why) => (
            why.clone(),
            format!("remove what is not needed there, or to {}", smaller(searched)),
        ),
        Problem::Denied(path) => (
            format!("{} can't be read", path.display()),
            format!("give their user access (`chmod u+rX {}`), or to remove it", word(path)),
        ),
        Problem::Unreadable(why) => (why.clone(), "repair or to remove it".to_owned()),
    };
    format!(
        "hooks and settings in {} can't all be protected, because {why}. Ask the user to {advice}",
        folder_names(searched)
    )
}

/// The path as one word of a shell. A command may have chosen its name, and the user may paste it.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+,@".contains(char);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The folders of the owner, for a sentence.
pub(crate) fn folder_names(searched: &[PathBuf]) -> String {
    let names: Vec<String> = searched.iter().map(|folder| folder.display().to_string()).collect();
    names.join(" and ")
}

/// What the owner can do when there is too much in these folders.
pub(crate) fn smaller(searched: &[PathBuf]) -> &'static str {
    match searched {
        [_, _, ..] => {
            "start the node with a smaller workspace (`gsv node --workspace`) or with smaller folders in `roots.rw` of node.toml"
        }
        _ => "start the node with a smaller workspace (`gsv node --workspace`)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;
    use crate::protect::protected_with;

    #[test]
    fn sb5_the_limit_of_folders_is_for_all_of_the_owners_folders_together() {
        let names: Vec<String> = (0..FOLDERS - 10).map(|number| format!("/ws/p{number:05}/f")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let other: Vec<String> = (0..20).map(|number| format!("/other/p{number}/f")).collect();
        let other: Vec<&str> = other.iter().map(String::as_str).collect();
        let disk = Fake::of(&[names, other].concat());
        let of = |searched: &[PathBuf]| protected_with(searched, &[], &[], Path::new("/ws"), &disk);
        assert!(of(&["/ws".into()]).is_ok());
        let problem = of(&["/ws".into(), "/other".into()]).unwrap_err();
        assert!(
            problem.contains("in /ws and /other") && problem.contains("together more than 20000 folders"),
            "{problem}"
        );
        assert!(problem.contains("roots.rw"), "{problem}");
    }

    #[test]
    fn sb5_a_folder_that_can_not_be_read_is_an_error() {
        let disk = Fake::of(&["/ws/proj/.git/config", "/ws/other/x"]).closed("/ws/proj");
        let problem = protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &disk).unwrap_err();
        assert!(
            problem.contains("/ws/proj can't be read. Ask the user to give their user access (`chmod u+rX /ws/proj`)"),
            "{problem}"
        );
        assert!(!problem.contains("workspace"), "{problem}");
    }

    #[test]
    fn sb5_each_cause_of_a_failed_search_has_its_own_advice() {
        let of = |problem: Problem| too_much(&["/ws".into()], &problem);
        let limit = of(Problem::Limit("there is much".into()));
        assert!(limit.contains("because there is much. Ask the user to remove what is not needed there"));
        assert!(limit.contains("smaller workspace"), "{limit}");
        let other = of(Problem::Unreadable(
            "/ws/x can't be read (stale network file handle)".into(),
        ));
        assert!(other.ends_with("Ask the user to repair or to remove it"), "{other}");
        // A name of a command's choice is one word of the user's shell.
        let denied = of(Problem::Denied("/ws/a; x '$(y)".into()));
        assert!(denied.contains(r"`chmod u+rX '/ws/a; x '\''$(y)'`"), "{denied}");
    }

    #[test]
    fn sb5_a_folder_of_another_user_that_can_not_be_listed_is_asked_for_each_protected_name() {
        let disk = Fake::of(&["/ws/shared/.envrc", "/ws/shared/.vscode/tasks.json", "/ws/shared/file"]);
        let found = |disk: &Fake| protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), disk).unwrap();
        let settings = ["/ws/shared/.envrc", "/ws/shared/.vscode"].map(PathBuf::from);
        assert_eq!(found(&disk).read_only, settings);
        let disk = disk.unlisted("/ws/shared");
        assert_eq!(found(&disk).read_only, settings);
    }

    #[test]
    fn sb5_many_folders_are_searched_and_too_many_are_an_error() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("/ws/p{number:05}/")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut disk = Fake::of(&names);
            disk = disk.file("/ws/z/.git/config", "");
            protected_with(&["/ws".into()], &[], &[], Path::new("/ws"), &disk)
        };
        // However many folders a command makes before it.
        let found = of(4_000).unwrap();
        assert_eq!(found.read_only, [PathBuf::from("/ws/z/.git/config")]);
        let problem = of(FOLDERS).unwrap_err();
        assert!(
            problem.contains("more than 20000 folders") && problem.contains("smaller workspace"),
            "{problem}"
        );
    }
}
