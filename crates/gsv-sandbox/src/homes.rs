//! What shells, editors, git and agents of the user read in a home: where that is in a folder in which commands may write, by a link (a
//! repository of dotfiles) or because the owner has given the folder, it is protected. PURE: the file system is asked through [`Look`].

use std::path::{Path, PathBuf};

use crate::bounded::Bounded;
use crate::configured::{Target, targets_of_user};
use crate::folders::Folders;
use crate::look::{Kind, Look as _};
use crate::names::{NAMES, OF_HOME, is_searched};

/// How deep links are searched in these folders, and entries of one of them.
const DEPTH: usize = 2;
const ENTRIES: usize = 100_000;

/// What programs of the user read in these homes, without links, and what the git configurations of the user name. A target around one of
/// the folders `given`, where commands may write, is left out: its protection would end all work in the folder.
pub(crate) fn targets_of_homes(given: &[PathBuf], homes: &[PathBuf], look: &Bounded) -> Vec<Target> {
    let mut found = targets_of_user(homes, look);
    let mut folders = Folders::new(look);
    for home in homes {
        for name in OF_HOME.iter().chain(NAMES) {
            if !may_be_in(home, name, &mut folders) {
                continue;
            }
            let path = home.join(name);
            let Some(real) = real(&path, look) else { continue };
            if look.kind(&real) == Some(Kind::Dir) && OF_HOME.contains(name) {
                found.extend(links_below(&real, look));
            }
            found.push(Target::There(real));
        }
    }
    let is_around = |path: &Path| given.iter().any(|folder| folder.starts_with(path));
    found.retain(|target| !is_around(target.path()));
    found
}

/// False: a folder on the way to `path` has no such name. Most are not there, and one list tells so for all of them.
fn may_be_in(home: &Path, path: &str, folders: &mut Folders) -> bool {
    let Some((first, rest)) = path.split_once('/') else {
        return folders.read_if_listed(home).may_have(path);
    };
    let second = rest.split('/').next().unwrap_or(rest);
    folders.read_if_listed(home).may_have(first) && folders.read_if_listed(&home.join(first)).may_have(second)
}

/// The path without links. For paths of which most are not there: one look costs less than resolving.
fn real(path: &Path, look: &Bounded) -> Option<PathBuf> {
    look.kind(path)?;
    look.real(path)
}

/// What the links in a folder, and in the folders in it, lead to.
fn links_below(folder: &Path, look: &Bounded) -> Vec<Target> {
    let mut found = Vec::new();
    let mut level = vec![folder.to_owned()];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for folder in level {
            for (name, kind) in look.all(&folder, ENTRIES) {
                let path = folder.join(&name);
                match kind {
                    Kind::Dir if is_searched(&name) => next.push(path),
                    Kind::Link => found.extend(look.real(&path).map(Target::There)),
                    _ => {}
                }
            }
        }
        level = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;
    use crate::protect::protected_with;
    use crate::search::is_run_by_others;

    fn homes() -> [PathBuf; 1] {
        ["/home/u".into()]
    }

    #[test]
    fn sb5_what_the_git_configuration_of_the_user_names_is_protected() {
        let disk = Fake::of(&[
            "/ws/gh/pre-commit",
            "/ws/fm.sh",
            "/ws/alias.sh",
            "/ws/relative/x",
            "/ws/system.sh",
            "/ws/xdg.sh",
            "/ws/tools/run",
            "/ws/template/hooks/post-checkout",
            "/ws/real",
            "/home/u/data/fm.sh",
        ])
        .file(
            "/home/u/dot/gitconfig",
            "[core]\n hooksPath = /ws/gh\n fsmonitor = /ws/fm.sh\n[include]\n path = /ws/gitinc\n path = more.cfg\n\
             [alias]\n x = !~/data/fm.sh\n y = !relative/x\n z = !cd /ws/tools && ./run\n[init]\n templateDir = /ws/template\n\
             [pager]\n log = /ws/none/pager\n",
        )
        .file("/home/u/more.cfg", "[gpg]\n program = /ws/real\n")
        .file("/ws/gitinc", "[alias]\n a = !/ws/alias.sh\n[core]\n hooksPath = /ws/later\n")
        .file("/etc/gitconfig", "[core]\n editor = /ws/system.sh\n")
        .file("/home/u/.config/git/config", "[core]\n sshCommand = /ws/xdg.sh -v\n")
        .link("/home/u/.gitconfig", "/home/u/dot/gitconfig");
        let find = |homes: &[PathBuf]| {
            protected_with(
                &["/ws".into()],
                &["/home/u/data".into()],
                homes,
                Path::new("/ws"),
                &disk,
            )
            .unwrap()
        };
        let found = find(&homes());
        let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        assert_eq!(
            found.read_only,
            paths(&[
                "/home/u/data/fm.sh",
                "/ws/alias.sh",
                "/ws/fm.sh",
                "/ws/gh",
                "/ws/gitinc",
                "/ws/real",
                "/ws/system.sh",
                "/ws/template",
                "/ws/tools/run",
                "/ws/xdg.sh",
            ])
        );
        assert_eq!(found.missing, paths(&["/ws/later"]));
        assert_eq!(found.pinned, paths(&["/ws/tools"]));
        assert_eq!(find(&[]).read_only, paths(&["/ws/system.sh"]));
        let runs = |path: &str| is_run_by_others(&["/ws".into()], Path::new(path), &homes(), &disk).unwrap();
        assert!(runs("/ws/gh/new") && runs("/ws/fm.sh") && runs("/ws/none/pager") && runs("/ws/later/x"));
        assert!(!runs("/ws/relative/x") && !runs("/ws/new"));
    }

    #[test]
    fn sb5_a_file_of_a_home_that_is_a_link_into_the_workspace_is_protected() {
        let disk = Fake::of(&[
            "/ws/bash/rc",
            "/ws/nvim/init.lua",
            "/ws/fish/a.fish",
            "/ws/cfg/git/ignore",
            "/ws/src/main.rs",
            "/ws/unit",
            "/home/u/.config/fish/conf.d/own.fish",
            "/home/u/.config/systemd/user/x/",
            "/home/u/.zshrc",
            "/home/u/.profile",
            "/other/vimrc",
        ])
        .link("/home/u/.bashrc", "/ws/bash/rc")
        .link("/home/u/.vimrc", "/other/vimrc")
        .link("/home/u/.vscode", "/ws")
        .link("/home/u/.config/nvim", "/ws/nvim")
        .link("/home/u/.config/git", "/ws/cfg/git")
        .link("/home/u/.config/fish/conf.d/a.fish", "/ws/fish/a.fish")
        .link("/home/u/.config/systemd/user/x/unit", "/ws/unit");
        let found = protected_with(&["/ws".into()], &[], &homes(), Path::new("/ws"), &disk).unwrap();
        let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        assert_eq!(
            found.read_only,
            paths(&["/ws/bash/rc", "/ws/cfg/git", "/ws/fish/a.fish", "/ws/nvim", "/ws/unit"])
        );
        assert_eq!(found.pinned, paths(&["/ws/bash", "/ws/cfg", "/ws/fish"]));
        let runs = |path: &str| is_run_by_others(&["/ws".into()], Path::new(path), &homes(), &disk).unwrap();
        assert!(runs("/ws/bash/rc") && runs("/ws/nvim/lua/new.lua"));
        // A workspace that is itself such a folder is content.
        assert!(!runs("/ws/src/main.rs") && !runs("/ws/new"));
        // The owner has given a folder with the files themselves.
        let searched = ["/ws", "/home/u/.config"].map(PathBuf::from);
        let found = protected_with(&searched, &[], &homes(), Path::new("/ws"), &disk).unwrap();
        assert!(found.read_only.contains(&"/home/u/.config/fish".into()));
        // A workspace that lies in another folder of the owner is content, too.
        let searched = ["/ws/nvim", "/ws"].map(PathBuf::from);
        let found = protected_with(&searched, &[], &homes(), Path::new("/ws/nvim"), &disk).unwrap();
        assert!(!found.read_only.contains(&"/ws/nvim".into()));
    }
}
