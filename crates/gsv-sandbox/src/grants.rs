//! Makes Landlock's rules from a plan. Landlock can allow a folder, and can't except a path in it: a folder with paths that stay hidden is
//! therefore replaced by rules for all its other entries. PURE.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::look::{Kind, Look};
use crate::plan::Plan;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
    /// A device that is read and written.
    Device,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// Shared places where other programs have sockets and files.
const SHARED: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/var/run", "/dev"];
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
/// What a system keeps in `/run` that programs are started from.
pub(crate) const KEPT_IN_RUN: [&str; 3] = ["/run/current-system", "/run/booted-system", "/run/opengl-driver"];
/// Entries of one folder. What lies beyond is not granted.
const ENTRIES: usize = 20_000;

/// What a command with this plan may do, by path.
///
/// # Errors
/// As [`Plan::hidden_now`].
pub(crate) fn grants(plan: &Plan, look: &dyn Look) -> Result<Vec<Grant>, String> {
    let mut hidden: BTreeSet<PathBuf> = plan.hidden_now(look)?.into_iter().collect();
    hidden.extend(SHARED.iter().filter_map(|path| look.real(Path::new(path))));
    let mut all = Vec::new();
    let everything = [PathBuf::from("/")];
    let mut roots = plan.readable.as_deref().unwrap_or(&everything).to_vec();
    if plan.readable.is_some() {
        roots.extend([PathBuf::from("/proc"), PathBuf::from("/sys")]);
    }
    for root in roots {
        // A folder that was named may lie in a shared place; a plan has none that lies in a hidden one.
        let not_around: BTreeSet<PathBuf> = hidden.iter().filter(|path| !root.starts_with(path)).cloned().collect();
        split(&root, &not_around, look, &mut all);
    }
    let mut add = |path: &Path, access| {
        if look.kind(path).is_some() {
            all.push(Grant {
                path: path.to_owned(),
                access,
            });
        }
    };
    if let Some(path) = &plan.program {
        add(path, Access::Read);
    }
    let in_folders = if plan.read_only { Access::Read } else { Access::Write };
    for path in &plan.writable {
        add(path, in_folders);
    }
    for device in DEVICES {
        add(Path::new(device), Access::Device);
    }
    if plan.readable.is_none() {
        for kept in KEPT_IN_RUN {
            if let Some(real) = look.real(Path::new(kept)) {
                add(&real, Access::Read);
            }
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// Grants reading `path`, or, when something in it is hidden, each of its entries that is not. Links are skipped: what they lead to is
/// granted by its own path.
fn split(path: &Path, hidden: &BTreeSet<PathBuf>, look: &dyn Look, all: &mut Vec<Grant>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        all.push(Grant {
            path: path.to_owned(),
            access: Access::Read,
        });
        return;
    }
    for (name, kind) in look.list(path, ENTRIES) {
        if matches!(kind, Kind::Dir | Kind::File) {
            split(&path.join(name), hidden, look, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::look::fake::Fake;
    use crate::profile::Profile;

    fn plan(hidden: &[&str], writable: &[&str]) -> Plan {
        Plan {
            profile: Profile::Workspace,
            workspace: "/home/u/ws".into(),
            roots: vec![],
            writable: writable.iter().map(PathBuf::from).collect(),
            readable: None,
            hidden: hidden.iter().map(PathBuf::from).collect(),
            own: "/home/u/.cache/gsv".into(),
            homes: vec![],
            program: None,
            read_only: false,
        }
    }

    fn may_read(grants: &[Grant], path: &str) -> bool {
        grants.iter().any(|grant| Path::new(path).starts_with(&grant.path))
    }

    #[test]
    fn sb3_a_hidden_path_is_left_out_and_its_neighbours_stay() {
        let disk = Fake::of(&[
            "/home/u/.ssh/id",
            "/home/u/.bashrc",
            "/home/u/ws/",
            "/srv/v/x",
            "/usr/bin/sh",
            "/run/docker.sock",
            "/tmp/x",
            "/dev/null",
            "/dev/sda",
        ])
        .link("/home/u/keys", "/home/u/.ssh");
        let grants = grants(&plan(&["/home/u/.ssh"], &["/home/u/ws"]), &disk).unwrap();
        for (path, want) in [
            ("/usr/bin/sh", true),
            ("/srv/v/x", true),
            ("/home/u/.bashrc", true),
            ("/dev/null", true),
            ("/home/u/.ssh/id", false),
            ("/home/u/.ssh", false),
            ("/run/docker.sock", false),
            ("/tmp/x", false),
            ("/dev/sda", false),
        ] {
            assert_eq!(may_read(&grants, path), want, "{path}");
        }
        assert!(
            !grants.iter().any(|grant| grant.path == Path::new("/home/u/keys")),
            "links are not granted"
        );
        let writable: Vec<_> = grants.iter().filter(|grant| grant.access == Access::Write).collect();
        assert_eq!(writable.len(), 1);
    }

    #[test]
    fn sb3_a_named_folder_in_a_shared_place_is_readable_and_its_neighbours_are_not() {
        let disk = Fake::of(&["/tmp/named/file", "/tmp/other", "/home/u/ws/"]);
        let mut plan = plan(&[], &["/home/u/ws"]);
        plan.readable = Some(vec!["/tmp/named".into()]);
        let grants = grants(&plan, &disk).unwrap();
        assert!(may_read(&grants, "/tmp/named/file") && !may_read(&grants, "/tmp/other"));
    }

    #[test]
    fn sb1_the_program_of_the_test_is_readable_in_a_shared_place_and_its_neighbours_are_not() {
        let disk = Fake::of(&["/tmp/deep/gsv", "/tmp/deep/other", "/home/u/ws/"]);
        for readable in [None, Some(vec![])] {
            let mut plan = plan(&[], &["/home/u/ws"]);
            plan.readable = readable;
            assert!(!may_read(&grants(&plan, &disk).unwrap(), "/tmp/deep/gsv"));
            plan.program = Some("/tmp/deep/gsv".into());
            let grants = grants(&plan, &disk).unwrap();
            assert!(may_read(&grants, "/tmp/deep/gsv") && !may_read(&grants, "/tmp/deep/other"));
        }
    }

    proptest! {
        #[test]
        fn sb3_no_grant_covers_a_hidden_path(
            paths in proptest::collection::vec("(/[ab]){1,5}", 1..30),
            secrets in proptest::collection::vec("(/[ab]){1,4}", 0..5),
        ) {
            let mut all: Vec<&str> = paths.iter().map(String::as_str).collect();
            let folders: Vec<String> = secrets.iter().map(|secret| format!("{secret}/")).collect();
            all.extend(folders.iter().map(String::as_str));
            let disk = Fake::of(&all);
            let names: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let grants = grants(&plan(&names, &[]), &disk).unwrap();
            for path in &paths {
                let is_hidden = secrets.iter().any(|secret| Path::new(path).starts_with(secret));
                let is_above = secrets.iter().any(|secret| Path::new(secret).starts_with(path));
                if is_hidden {
                    prop_assert!(!may_read(&grants, path), "{path} is hidden");
                } else if !is_above {
                    prop_assert!(may_read(&grants, path), "{path} is readable");
                }
            }
        }
    }
}
