//! Folders of a user as a command could find them, and commands that are confined in them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gsv_sandbox::{
    Confinement, Disk, Enforcer, Plan, Profile, Program, Report, Request, Tier, environment, prepare, probe,
};
use tempfile::TempDir;

pub(crate) fn program() -> Program {
    Program {
        path: std::env::current_exe().unwrap(),
        confine: "__confine".into(),
        canary: "__canary".into(),
    }
}

pub(crate) fn search() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

pub(crate) fn bubblewrap() -> Option<PathBuf> {
    let places = search().into_iter().map(|folder| folder.join("bwrap"));
    places.into_iter().find(|path| path.is_file())
}

pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) request: Request,
}

/// Not below a folder for temporary files, where a checkout may lie: what is there is hidden in any case.
fn shown_folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_hidden = ["/tmp", "/var/tmp"].iter().any(|hidden| target.starts_with(hidden));
    if is_hidden {
        std::env::home_dir().unwrap()
    } else {
        target.to_owned()
    }
}

impl Scene {
    pub(crate) fn new(profile: Profile) -> Self {
        let dir = TempDir::with_prefix_in(".gsv-canaries-", shown_folder()).unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [
            "home/.ssh",
            "home/.gsv",
            "home/.config/gsv",
            "home/.cargo/registry",
            "home/.cargo/bin",
            "home/ws/.git/hooks",
            "state",
            "own",
            "data",
            "other",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "home/.ssh/id",
            "home/.netrc",
            "home/.gsv/token",
            "home/.config/gsv/config.toml",
            "home/.mylogin.cnf",
            "home/.bashrc",
            "state/token",
            "other/file",
            "home/.cargo/credentials.toml",
        ] {
            std::fs::write(root.join(file), "SECRET").unwrap();
        }
        std::fs::write(root.join("home/ws/.git/config"), "[core]\n").unwrap();
        let home = root.join("home");
        let request = Request {
            profile,
            workspace: home.join("ws"),
            writable: vec![root.join("data")],
            readable: vec![],
            caches: vec![home.join(".cargo/registry")],
            private: vec![root.join("state")],
            homes: vec![home],
            own: root.join("own"),
        };
        Self { dir, request }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn plan(&self) -> Plan {
        Plan::new(&self.request, &Disk).unwrap()
    }

    pub(crate) fn probe(&self, tiers: &[Tier]) -> Report {
        probe(&self.request, &self.plan(), &program(), tiers, &search())
    }

    /// Runs a script in the sandbox, in the workspace.
    pub(crate) fn sh(&self, tier: Tier, script: &str) -> Output {
        self.command(tier, script).output().unwrap()
    }

    pub(crate) fn command(&self, tier: Tier, script: &str) -> Command {
        self.command_by(bubblewrap(), tier, script)
    }

    /// A script in a sandbox in which nothing can be changed.
    pub(crate) fn reading(&self, tier: Tier, script: &str) -> Output {
        self.built(bubblewrap(), tier, &["--read-only"], script)
            .output()
            .unwrap()
    }

    /// `bubblewrap`: the program that makes the mounts.
    pub(crate) fn command_by(&self, bubblewrap: Option<PathBuf>, tier: Tier, script: &str) -> Command {
        self.built(bubblewrap, tier, &[], script)
    }

    fn built(&self, bubblewrap: Option<PathBuf>, tier: Tier, options: &[&str], script: &str) -> Command {
        let plan = self.plan();
        prepare(&plan, &self.path("home")).unwrap();
        let vars = environment(&plan, self.vars(), &[]);
        let file = self.path("state/plan.json");
        let enforcer = Enforcer::new(tier, bubblewrap).unwrap();
        Confinement { enforcer, plan }.write(&file).unwrap();
        let mut command = Command::new(program().path);
        command
            .args([OsString::from("__confine"), file.into()])
            .args(options)
            .args(["--", "/bin/sh", "-c", script])
            .current_dir(&self.request.workspace)
            .env_clear()
            .envs(vars)
            .env("ROOT", self.path(""));
        command
    }

    fn vars(&self) -> Vec<(OsString, OsString)> {
        let mut vars: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, _)| name != "HOME" && name != "PATH")
            .collect();
        // The programs of the system first: a version manager's script in place of Python starts a shell that reads its settings.
        let path = std::env::join_paths(["/usr/bin", "/bin"].map(PathBuf::from).into_iter().chain(search())).unwrap();
        vars.extend([
            ("HOME".into(), self.path("home").into()),
            ("PATH".into(), path),
            ("API_KEY".into(), "SECRET".into()),
            ("GSV_TOKEN".into(), "SECRET".into()),
        ]);
        vars
    }

    /// What no command may change.
    pub(crate) fn outside(&self) -> Vec<String> {
        let names = |folder: &str| {
            let entries = self
                .path(folder)
                .read_dir()
                .unwrap()
                .map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names.join(" ")
        };
        let text = |file: &str| std::fs::read_to_string(self.path(file)).unwrap_or_default();
        vec![
            names("home"),
            names("home/.ssh"),
            names("other"),
            text("home/.bashrc"),
            text("other/file"),
            text("state/token"),
        ]
    }

    pub(crate) fn works(&self, tier: Tier, script: &str) -> String {
        let output = self.sh(tier, script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{script}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    pub(crate) fn fails(&self, tier: Tier, script: &str) {
        let output = self.sh(tier, script);
        let (text, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(!output.status.success(), "{script}: {text} {errors}");
        assert!(!text.contains("SECRET"), "{script}: {text}");
        assert!(!errors.contains("can't be set up"), "{script}: {errors}");
    }
}

pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("skipped: what needs python3");
    }
    found
}
