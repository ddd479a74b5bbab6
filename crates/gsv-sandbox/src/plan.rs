//! What a profile means on this machine: writable, readable and hidden paths. PURE: the file system is asked through [`Look`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::hidden::{hidden, is_setting, overlap};
use crate::look::{Kind, Look};
use crate::mount_table::{aliases, mounts};
use crate::profile::Profile;

/// What the node wants. All paths are absolute.
#[derive(Debug, Clone)]
pub struct Request {
    pub profile: Profile,
    pub workspace: PathBuf,
    /// Further folders that commands may write.
    pub writable: Vec<PathBuf>,
    /// Further folders that commands may read in the profile `strict`.
    pub readable: Vec<PathBuf>,
    /// Package caches that commands may write; those that do not exist are left out.
    pub caches: Vec<PathBuf>,
    /// GSV's own folders.
    pub private: Vec<PathBuf>,
    /// Homes of the user: the environment's and the system's may differ.
    pub homes: Vec<PathBuf>,
    /// The sandbox's own folder, for temporary files and caches.
    pub own: PathBuf,
}

/// What commands may do. Paths are without links, except the hidden ones: they may be made later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub profile: Profile,
    pub workspace: PathBuf,
    /// The further folders of the owner that commands may write. Hooks and settings in them are protected as those of the workspace.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// With the workspace, the roots, the caches, and the sandbox's own folders.
    pub writable: Vec<PathBuf>,
    /// All that may be read; `None` means everything that is not hidden.
    pub readable: Option<Vec<PathBuf>>,
    pub hidden: Vec<PathBuf>,
    pub own: PathBuf,
    /// Homes of the user: what is read there is protected, and `~/` in a git configuration means them.
    #[serde(default)]
    pub homes: Vec<PathBuf>,
    /// A program that is readable wherever it lies: the one that tests the sandbox from inside. Commands have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// For a command that changes nothing (rule SB21): what is writable otherwise is readable. Never stored.
    #[serde(skip)]
    pub read_only: bool,
}

/// Why a profile can't be had with these folders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The list of the policy that has the folder.
    pub key: Option<&'static str>,
    /// A sentence with what to do.
    pub reason: String,
}

/// What programs need besides the workspace.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/run/current-system",
    "/opt",
    "/System",
    "/Library/Developer",
    "/private/etc",
    "/private/var/select",
    "/private/var/db/timezone",
];

impl Plan {
    /// The folder for temporary files of commands.
    pub fn temp(&self) -> PathBuf {
        self.own.join("tmp")
    }

    /// The writable folders, but not the sandbox's own, whose files end with the commands.
    pub fn lasting(&self) -> impl Iterator<Item = &PathBuf> {
        self.writable.iter().filter(|folder| !folder.starts_with(&self.own))
    }

    /// The workspace, then the roots: where hooks and settings are searched.
    pub fn searched(&self) -> Vec<PathBuf> {
        let roots = self.roots.iter().filter(|root| **root != self.workspace);
        std::iter::once(&self.workspace).chain(roots).cloned().collect()
    }

    /// The caches of tools whose usual cache is not writable.
    pub fn cache(&self) -> PathBuf {
        self.own.join("cache")
    }

    /// # Errors
    /// A folder that does not exist, or one that would open or hide what the sandbox is for.
    pub fn new(request: &Request, look: &dyn Look) -> Result<Self, Refused> {
        let mut hidden = hidden(&request.homes, &request.private);
        let given = [&request.workspace].into_iter().chain(&request.writable);
        let given: Vec<PathBuf> = given.filter_map(|folder| look.real(folder)).collect();
        let is_given = |path: &Path| given.iter().any(|folder| path.starts_with(folder));
        hidden.retain(|path| !(is_setting(path) && look.real(path).is_some_and(|real| is_given(&real))));
        let hidden_now = now(&hidden, look).map_err(|reason| Refused { key: None, reason })?;
        let check = |folder: &Path, is_writable: bool, key: Option<&'static str>| {
            let refused = |reason: String| Refused { key, reason };
            let real = look.real(folder).ok_or_else(|| {
                refused(format!(
                    "the folder {} does not exist; create it or take it out",
                    folder.display()
                ))
            })?;
            if real == Path::new("/") {
                return Err(refused(format!(
                    "{} is the whole system; name the folders that commands need",
                    folder.display()
                )));
            }
            if is_writable
                && request
                    .homes
                    .iter()
                    .filter_map(|home| look.real(home))
                    .any(|home| home.starts_with(&real))
            {
                return Err(refused(format!(
                    "{} has the home of the user in it; name a folder in the home instead",
                    folder.display()
                )));
            }
            if let Some(secret) = hidden_now.iter().find(|secret| overlap(secret, &real)) {
                return Err(refused(format!(
                    "{} and {}, which commands must not see, overlap; name another folder",
                    folder.display(),
                    secret.display()
                )));
            }
            Ok(real)
        };
        let workspace = check(&request.workspace, true, None)?;
        let roots = request
            .writable
            .iter()
            .map(|folder| check(folder, true, Some("roots.rw")));
        let roots: Vec<PathBuf> = roots.collect::<Result<_, _>>()?;
        let mut writable = vec![workspace.clone()];
        writable.extend(roots.iter().cloned());
        for cache in &request.caches {
            if look.real(cache).is_some() {
                writable.push(check(cache, true, Some("caches"))?);
            }
        }
        let of_own = |reason: String| Refused { key: None, reason };
        let own = (look.real(&request.own)).ok_or_else(|| {
            of_own(format!(
                "the folder {} does not exist; create it",
                request.own.display()
            ))
        })?;
        for folder in [own.join("tmp"), own.join("cache")] {
            if let Some(secret) = hidden_now.iter().find(|secret| overlap(secret, &folder)) {
                return Err(of_own(format!(
                    "the sandbox's folder {} and {}, which commands must not see, overlap; set XDG_CACHE_HOME to another folder",
                    folder.display(),
                    secret.display()
                )));
            }
            writable.push(folder);
        }
        let readable = match request.profile {
            Profile::Strict => {
                let mut readable: Vec<PathBuf> = SYSTEM.iter().filter_map(|path| look.real(Path::new(path))).collect();
                for folder in &request.readable {
                    readable.push(check(folder, false, Some("roots.ro"))?);
                }
                Some(without_inner(readable))
            }
            Profile::Off | Profile::Workspace | Profile::WorkspaceNet => None,
        };
        Ok(Self {
            profile: request.profile,
            workspace,
            roots,
            writable: without_inner(writable),
            readable,
            hidden,
            own,
            homes: request.homes.iter().filter_map(|home| look.real(home)).collect(),
            program: None,
            read_only: false,
        })
    }

    /// The hidden paths that exist now, at each mount that shows them, without links and without those that lie in others.
    ///
    /// # Errors
    /// A sentence: the mounts can't be listed, or too many show hidden paths.
    pub(crate) fn hidden_now(&self, look: &dyn Look) -> Result<Vec<PathBuf>, String> {
        now(&self.hidden, look)
    }
}

fn now(hidden: &[PathBuf], look: &dyn Look) -> Result<Vec<PathBuf>, String> {
    let mut all = without_inner(hidden.iter().filter_map(|path| look.real(path)).collect());
    let others = aliases(&all, &mounts(&look.mounts()?)?)?;
    let is_seen = |path: &PathBuf| matches!(look.kind(path), Some(Kind::Dir | Kind::File));
    all.extend(others.into_iter().filter(is_seen));
    Ok(without_inner(all))
}

/// Sorted, and without paths that lie in another one of the list.
pub(crate) fn without_inner(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    let mut outer: Vec<PathBuf> = Vec::with_capacity(paths.len());
    for path in paths {
        if !outer.last().is_some_and(|known| path.starts_with(known)) {
            outer.push(path);
        }
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::fake::Fake;

    fn request(profile: Profile) -> Request {
        Request {
            profile,
            workspace: "/home/u/ws".into(),
            writable: vec![],
            readable: vec![],
            caches: vec!["/home/u/.cargo/registry".into(), "/home/u/.npm/_cacache".into()],
            private: vec!["/home/u/.gsv".into()],
            homes: vec!["/home/u".into()],
            own: "/home/u/.cache/gsv/node/n".into(),
        }
    }

    fn disk() -> Fake {
        disk_with(&[])
    }

    fn disk_with(more: &[&str]) -> Fake {
        let usual = [
            "/home/u/ws/src/",
            "/home/u/.ssh/id",
            "/home/u/.gsv/node/",
            "/home/u/.cargo/registry/",
            "/home/u/.cache/gsv/node/n/",
            "/home/u/data/",
            "/usr/bin/",
            "/etc/",
        ];
        Fake::of(&[&usual, more].concat())
            .link("/home/u/alias", "/home/u/ws")
            .link("/bin", "/usr/bin")
    }

    #[test]
    fn sb2_the_workspace_existing_caches_and_own_folders_are_writable() {
        let plan = Plan::new(&request(Profile::Workspace), &disk()).unwrap();
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let own = "/home/u/.cache/gsv/node/n";
        assert_eq!(
            plan.writable,
            paths(&[
                &format!("{own}/cache"),
                &format!("{own}/tmp"),
                "/home/u/.cargo/registry",
                "/home/u/ws"
            ])
        );
        assert_eq!(plan.readable, None);
        assert_eq!(plan.searched(), paths(&["/home/u/ws"]));
        let mut with_root = request(Profile::Workspace);
        with_root.writable = paths(&["/home/u/data", "/home/u/alias"]);
        let with_root = Plan::new(&with_root, &disk()).unwrap();
        assert_eq!(
            with_root.searched(),
            paths(&["/home/u/ws", "/home/u/data"]),
            "no caches"
        );
        assert_eq!(
            plan.hidden_now(&disk()).unwrap(),
            paths(&["/home/u/.gsv", "/home/u/.ssh"])
        );
        let strict = Plan::new(&request(Profile::Strict), &disk()).unwrap();
        assert_eq!(strict.readable, Some(paths(&["/etc", "/usr"])));
    }

    #[test]
    fn sb2_folders_that_open_secrets_or_everything_are_refused() {
        let refused = |change: &dyn Fn(&mut Request)| {
            let mut request = request(Profile::Strict);
            change(&mut request);
            Plan::new(&request, &disk()).unwrap_err().reason
        };
        for (change, word) in [
            (
                &(|request: &mut Request| request.writable = vec!["/".into()]) as &dyn Fn(&mut Request),
                "whole system",
            ),
            (&|request| request.writable = vec!["/home".into()], "home of the user"),
            (&|request| request.workspace = "/home/u".into(), "home of the user"),
            (
                &|request| request.writable = vec!["/home/u/.ssh".into()],
                "must not see",
            ),
            (
                &|request| request.writable = vec!["/home/u/.gsv/node".into()],
                "must not see",
            ),
            (&|request| request.readable = vec!["/home/u".into()], "must not see"),
            (&|request| request.caches = vec!["/home/u/.gsv".into()], "must not see"),
            (&|request| request.writable = vec!["/none".into()], "does not exist"),
        ] {
            let text = refused(change);
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn sb3_settings_with_credentials_are_hidden_unless_a_folder_of_the_owner_has_them() {
        let variables = "/home/u/.config/fish/fish_variables";
        let disk = disk_with(&[variables, "/home/u/ws/muttrc"]).link("/home/u/.muttrc", "/home/u/ws/muttrc");
        let plan = Plan::new(&request(Profile::Workspace), &disk).unwrap();
        let hidden = plan.hidden_now(&disk).unwrap();
        assert!(hidden.contains(&variables.into()) && !hidden.contains(&"/home/u/ws/muttrc".into()));
        let mut request = request(Profile::Workspace);
        request.writable = vec!["/home/u/.config/fish".into()];
        let plan = Plan::new(&request, &disk).unwrap();
        assert!(!plan.hidden_now(&disk).unwrap().contains(&variables.into()));
    }

    #[test]
    fn sb3_gsv_s_usual_folders_are_hidden_where_this_installation_has_others() {
        let disk = disk_with(&[
            "/srv/state/",
            "/home/u/.config/gsv/config.toml",
            "/home/u/.gsv/workspace/",
        ]);
        let mut request = request(Profile::Workspace);
        request.private = vec!["/srv/state".into()];
        let hidden = Plan::new(&request, &disk).unwrap().hidden_now(&disk).unwrap();
        let own = ["/home/u/.config/gsv", "/home/u/.gsv", "/home/u/.ssh", "/srv/state"].map(PathBuf::from);
        assert_eq!(hidden, own);
        request.workspace = "/home/u/.gsv/workspace".into();
        let problem = Plan::new(&request, &disk).unwrap_err().reason;
        assert!(problem.contains("must not see"), "{problem}");
    }

    #[test]
    fn sb3_a_hidden_path_is_hidden_at_each_mount_that_shows_it() {
        let disk = disk_with(&["/srv/alias/.ssh/id", "/srv/alias/ws/", "/srv/other/"])
            .mount("/", "/")
            .mount("/home/u", "/srv/alias")
            .mount("/home/u/ws", "/srv/other");
        let plan = Plan::new(&request(Profile::Workspace), &disk).unwrap();
        let hidden = ["/home/u/.gsv", "/home/u/.ssh", "/srv/alias/.ssh"].map(PathBuf::from);
        assert_eq!(plan.hidden_now(&disk).unwrap(), hidden, "what is not there is left out");
        let mut request = request(Profile::Workspace);
        request.writable = vec!["/srv/other".into()];
        assert!(Plan::new(&request, &disk).is_ok());
        request.writable = vec!["/srv/alias".into()];
        let problem = Plan::new(&request, &disk).unwrap_err().reason;
        assert!(problem.contains("/srv/alias/.ssh"), "{problem}");
    }

    #[test]
    fn sb2_links_are_resolved() {
        let mut request = request(Profile::Workspace);
        request.workspace = "/home/u/alias".into();
        let plan = Plan::new(&request, &disk()).unwrap();
        assert_eq!(plan.workspace, Path::new("/home/u/ws"));
        let disk = disk().link("/home/u/.aws", "/home/u/data");
        assert!(plan.hidden_now(&disk).unwrap().contains(&PathBuf::from("/home/u/data")));
        request.writable = vec!["/home/u/data".into()];
        assert!(Plan::new(&request, &disk).is_err());
    }
}
