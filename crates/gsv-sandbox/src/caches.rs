//! Package caches that commands share with the user, and the sandbox's own homes for tools that insist on writing theirs.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::plan::Plan;

/// Relative to the home: only downloaded packages, never programs, settings or credentials.
pub const DEFAULT_CACHES: [&str; 10] = [
    "~/.cargo/registry",
    "~/.cargo/git",
    "~/.npm/_cacache",
    "~/.cache/pip",
    "~/.cache/uv",
    "~/.cache/yarn",
    "~/.cache/go-build",
    "~/go/pkg/mod",
    "~/.gradle/caches",
    "~/.m2/repository",
];

/// A tool's home in the sandbox: the variable, the folder in the cache, the folder of the user, and the entries that are
/// links to it.
struct Home {
    variable: &'static str,
    folder: &'static str,
    usual: &'static str,
    shared: &'static [&'static str],
}

const HOMES: [Home; 3] = [
    Home {
        variable: "CARGO_HOME",
        folder: "cargo",
        usual: ".cargo",
        shared: &["registry", "git", "config.toml", "config"],
    },
    Home {
        variable: "npm_config_cache",
        folder: "npm",
        usual: ".npm",
        shared: &["_cacache"],
    },
    Home {
        variable: "XDG_CACHE_HOME",
        folder: "xdg",
        usual: ".cache",
        shared: &["pip", "uv", "yarn", "go-build"],
    },
];

/// The variables that point into the sandbox's own folders.
pub(crate) fn variables(plan: &Plan) -> Vec<(&'static str, PathBuf)> {
    let cache = plan.cache();
    let homes = HOMES.iter().map(|home| (home.variable, cache.join(home.folder)));
    homes.chain([("TMPDIR", plan.temp())]).collect()
}

/// Whether the sandbox sets this variable of a command.
pub(crate) fn sets(variable: &str) -> bool {
    let mut names = HOMES.iter().map(|home| home.variable).chain(["TMPDIR"]);
    names.any(|name| name.eq_ignore_ascii_case(variable))
}

/// Makes the sandbox's own folders, and links in them to the caches that the plan shares. Commands write there, so anything may be in their
/// place: a file, a link to elsewhere, a folder that can't be entered.
///
/// # Errors
/// A folder can't be made.
pub fn prepare(plan: &Plan, home: &Path) -> io::Result<()> {
    make_own(&plan.temp())?;
    make_own(&plan.cache())?;
    std::fs::write(plan.own.join("empty"), b"")?;
    for tool in &HOMES {
        let folder = plan.cache().join(tool.folder);
        make_own(&folder)?;
        for name in tool.shared {
            let (usual, link) = (home.join(tool.usual).join(name), folder.join(name));
            let Ok(real) = usual.canonicalize() else { continue };
            let is_shared = real.is_file() || plan.writable.iter().any(|root| real.starts_with(root));
            if is_shared && link.symlink_metadata().is_err() {
                symlink(&usual, &link)?;
            }
        }
    }
    Ok(())
}

/// A folder that its owner can use, whatever was there.
fn make_own(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => open_up(path),
        Ok(_) => std::fs::remove_file(path).and_then(|()| make_new(path)),
        Err(_) => make_new(path),
    }
}

/// A command of the background may put a link in its place meanwhile, so the folder itself is held.
#[cfg(target_os = "linux")]
fn open_up(path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = open(path, flags, Mode::empty())?;
    std::fs::set_permissions(
        format!("/proc/self/fd/{}", held.as_raw_fd()),
        Permissions::from_mode(0o700),
    )
}

#[cfg(not(target_os = "linux"))]
fn open_up(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn make_new(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Disk;
    use crate::plan::Request;
    use crate::profile::Profile;

    #[test]
    fn sb7_shared_caches_are_links_and_programs_and_credentials_are_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in [
            "ws",
            "own",
            ".cargo/registry",
            ".cargo/bin",
            ".cargo/git",
            ".npm/_cacache",
        ] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join(".cargo/config.toml"), "").unwrap();
        std::fs::write(home.join(".cargo/credentials.toml"), "").unwrap();
        let plan = Plan::new(
            &Request {
                profile: Profile::Workspace,
                workspace: home.join("ws"),
                writable: vec![],
                readable: vec![],
                caches: vec![home.join(".cargo/registry")],
                private: vec![],
                homes: vec![home.clone()],
                own: home.join("own"),
            },
            &Disk,
        )
        .unwrap();
        for _ in 0..2 {
            prepare(&plan, &home).unwrap();
        }
        let cargo = plan.cache().join("cargo");
        assert_eq!(
            std::fs::read_link(cargo.join("registry")).unwrap(),
            home.join(".cargo/registry")
        );
        assert!(cargo.join("config.toml").exists());
        for missing in ["git", "bin", "credentials.toml"] {
            assert!(cargo.join(missing).symlink_metadata().is_err(), "{missing}");
        }
        assert!(plan.temp().is_dir() && plan.cache().join("xdg").is_dir());
        let names: Vec<&str> = variables(&plan).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["CARGO_HOME", "npm_config_cache", "XDG_CACHE_HOME", "TMPDIR"]);
    }
}
