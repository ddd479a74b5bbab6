//! [SB1] [SB3] [SB4] [SB5]: what a command can do in each profile and tier, on this machine. This program is also the program
//! that confines and the one that tries to break out; so it has its own `main`. A tier that the machine lacks is named and skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on has failed; the harness prints the tests' results"
)]

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use gsv_sandbox::{
    Canary, Confinement, Disk, Finding, Plan, Profile, Program, Report, Request, Tier, canary_main, confine_main,
    environment, prepare, probe,
};
use tempfile::TempDir;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("__confine") => confine_main(args.into_iter().skip(1)),
        Some("__canary") => canary_main(args.into_iter().skip(1)),
        _ => run(&args),
    }
}

type Test = (&'static str, fn(Tier));

const IN_EACH_TIER: [Test; 11] = [
    ("sb1_the_canaries_hold_in_each_profile", canaries_hold),
    ("sb3_hidden_files_can_not_be_read_and_others_can", hidden_files),
    ("sb3_only_the_workspace_roots_and_temporary_folder_are_written", writes),
    ("sb3_strict_reads_only_the_workspace_and_the_system", strict_reads),
    ("sb4_there_is_no_network_and_no_way_to_other_programs", nothing_outside),
    ("sb7_caches_are_shared_and_their_tools_keep_their_homes", caches),
    ("sb8_the_environment_has_no_secrets", no_secrets),
    ("sb10_a_command_without_its_plan_does_not_run", fails_closed),
    ("sb3_sb4_no_attempt_of_the_table_gets_out", attempts),
    ("sb4_open_files_of_the_node_are_not_inherited", no_descriptors),
    ("sb7_a_folder_that_was_replaced_by_a_link_is_made_again", own_links),
];
const IN_BUBBLEWRAP: [Test; 6] = [
    ("sb5_hooks_and_settings_of_the_workspace_are_read_only", protects),
    ("sb5_worktrees_and_submodules_are_protected_too", protects_linked),
    (
        "sb4_sockets_of_other_programs_in_the_workspace_are_masked",
        masks_sockets,
    ),
    (
        "sb4_a_socket_of_another_program_that_a_command_has_moved_is_masked",
        masks_moved_sockets,
    ),
    ("sb5_sb10_other_mounts_than_the_planned_ones_are_refused", other_mounts),
    ("sb5_a_folder_that_changes_into_a_link_meanwhile", |tier| {
        races(tier, 100);
    }),
];
/// Take minutes, so they run only when they are named.
const LONG: [Test; 1] = [("long_sb5_a_folder_that_changes_into_a_link_meanwhile", |tier| {
    races(tier, 3000);
})];

fn run(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args
        .iter()
        .filter_map(|arg| arg.to_str())
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_list = args.iter().any(|arg| arg == "--list");
    let mut exit = ExitCode::SUCCESS;
    let mut test = |name: String, work: &dyn Fn()| {
        if !words.iter().all(|word| name.contains(word)) {
            return;
        }
        if is_list {
            println!("{name}: test");
            return;
        }
        let passed = catch_unwind(AssertUnwindSafe(work)).is_ok();
        if !passed {
            exit = ExitCode::FAILURE;
        }
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    };
    test("sb1_every_canary_gets_through_without_a_sandbox".into(), &all_open);
    test("sb1_a_tier_that_is_not_there_is_named".into(), &missing_tier);
    for tier in [Tier::Bubblewrap, Tier::Landlock] {
        if let Some(why) = missing(tier) {
            println!("skipped: {} ({why})", tier.name());
            continue;
        }
        for (name, work) in IN_EACH_TIER {
            test(format!("{name} ({})", tier.name()), &|| work(tier));
        }
        let more: &[Test] = if tier == Tier::Bubblewrap { &IN_BUBBLEWRAP } else { &[] };
        for (name, work) in more {
            test(format!("{name} ({})", tier.name()), &|| work(tier));
        }
        let asks_for_long = words.iter().any(|word| word.contains("long_"));
        for (name, work) in LONG {
            if tier == Tier::Bubblewrap && asks_for_long {
                test(name.to_owned(), &|| work(tier));
            }
        }
    }
    exit
}

fn program() -> Program {
    Program {
        path: std::env::current_exe().unwrap(),
        confine: "__confine".into(),
        canary: "__canary".into(),
    }
}

fn search() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Why the machine lacks a tier. A tier that is there and does not hold is not missing: its tests fail.
fn missing(tier: Tier) -> Option<String> {
    let scene = Scene::new(Profile::Workspace);
    let problem = scene.probe(&[tier]).problem();
    let lacks = ["not installed", "no Landlock", "does not have", "namespace"];
    lacks.iter().any(|word| problem.contains(word)).then_some(problem)
}

fn bubblewrap() -> Option<PathBuf> {
    let places = search().into_iter().map(|folder| folder.join("bwrap"));
    places.into_iter().find(|path| path.is_file())
}

struct Scene {
    dir: TempDir,
    request: Request,
}

impl Scene {
    fn new(profile: Profile) -> Self {
        // Not below /tmp: what lies there is hidden in any case.
        let dir = TempDir::with_prefix_in("gsv-canaries-", env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [
            "home/.ssh",
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

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn plan(&self) -> Plan {
        Plan::new(&self.request, &Disk).unwrap()
    }

    fn probe(&self, tiers: &[Tier]) -> Report {
        probe(&self.request, &self.plan(), &program(), tiers, &search())
    }

    /// Runs a script in the sandbox, in the workspace.
    fn sh(&self, tier: Tier, script: &str) -> Output {
        self.command(tier, script).output().unwrap()
    }

    fn command(&self, tier: Tier, script: &str) -> Command {
        self.command_by(bubblewrap(), tier, script)
    }

    /// `bubblewrap`: the program that makes the mounts.
    fn command_by(&self, bubblewrap: Option<PathBuf>, tier: Tier, script: &str) -> Command {
        let plan = self.plan();
        prepare(&plan, &self.path("home")).unwrap();
        let vars = environment(&plan, self.vars(), &[]);
        let file = self.path("state/plan.json");
        Confinement { tier, plan, bubblewrap }.write(&file).unwrap();
        let mut command = Command::new(program().path);
        command
            .args([
                OsString::from("__confine"),
                file.into(),
                "--".into(),
                "/bin/sh".into(),
                "-c".into(),
                script.into(),
            ])
            .current_dir(&self.request.workspace)
            .env_clear()
            .envs(vars)
            .env("ROOT", self.path(""));
        command
    }

    fn vars(&self) -> Vec<(OsString, OsString)> {
        let mut vars: Vec<(OsString, OsString)> = std::env::vars_os().filter(|(name, _)| name != "HOME").collect();
        vars.extend([
            ("HOME".into(), self.path("home").into()),
            ("API_KEY".into(), "SECRET".into()),
            ("GSV_TOKEN".into(), "SECRET".into()),
        ]);
        vars
    }

    /// What no command may change.
    fn outside(&self) -> Vec<String> {
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

    fn works(&self, tier: Tier, script: &str) -> String {
        let output = self.sh(tier, script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{script}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    fn fails(&self, tier: Tier, script: &str) {
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

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("skipped: what needs python3");
    }
    found
}

/// A canary that can't get through anywhere would prove nothing.
fn all_open() {
    // The probe runs its program as `__confine FILE -- PROGRAM __canary LAB`: a shell that only runs the rest confines nothing.
    let scene = Scene::new(Profile::Workspace);
    let script = scene.path("state/no-sandbox");
    std::fs::write(
        &script,
        format!("#!/bin/sh\nshift 4\nexec {} \"$@\"\n", program().path.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let without = Program {
        path: script,
        ..program()
    };
    // Seatbelt is the only tier that has nothing to find on Linux besides its program: take the one that this machine has.
    let tiers = [Tier::Landlock, Tier::Bubblewrap];
    let report = probe(&scene.request, &scene.plan(), &without, &tiers, &search());
    let Some(Finding::Fails { why }) = report
        .findings
        .iter()
        .map(|(_, finding)| finding)
        .find(|finding| matches!(finding, Finding::Fails { why } if why.contains("test failed")))
    else {
        println!("skipped: no tier to test with: {}", report.problem());
        return;
    };
    // Mounting needs privileges, and a tier with gaps does not name them.
    let gaps = [
        Canary::Mount,
        Canary::ChangeGitHooks,
        Canary::ListProcesses,
        Canary::ChangePermissions,
        Canary::Signal,
    ];
    for canary in Canary::ALL.into_iter().filter(|canary| !gaps.contains(canary)) {
        assert!(why.contains(canary.words()), "{canary:?} did not get through: {why}");
    }
    assert_eq!(report.level(), None);
}

fn missing_tier() {
    let scene = Scene::new(Profile::Workspace);
    let report = probe(&scene.request, &scene.plan(), &program(), &[Tier::Bubblewrap], &[]);
    assert_eq!(report.level(), None);
    let problem = report.problem();
    assert!(problem.contains("bwrap"), "{problem}");
    assert!(report.advice().is_some());
}

fn canaries_hold(tier: Tier) {
    for profile in [Profile::Workspace, Profile::WorkspaceNet, Profile::Strict] {
        let report = Scene::new(profile).probe(&[tier]);
        if profile == Profile::WorkspaceNet && !tier.has_hosts() {
            assert_eq!(report.level(), None);
            assert!(report.problem().contains("single hosts"), "{}", report.problem());
            continue;
        }
        let level = report
            .level()
            .unwrap_or_else(|| panic!("{}: {}", profile.name(), report.problem()));
        let gaps: &[Canary] = match tier {
            Tier::Landlock => &[Canary::ChangeGitHooks, Canary::ListProcesses, Canary::ChangePermissions],
            _ => &[],
        };
        assert_eq!(level.gaps, gaps, "{}", profile.name());
    }
}

fn hidden_files(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    for file in ["home/.ssh/id", "state/token", "home/.cargo/credentials.toml"] {
        scene.fails(tier, &format!("cat \"$ROOT/{file}\" && test -s \"$ROOT/{file}\""));
    }
    scene.fails(tier, "ln \"$ROOT/state/token\" stolen && cat stolen");
    scene.fails(tier, "ln -s \"$ROOT/home/.ssh\" keys && cat keys/id");
    scene.fails(tier, "cp -r \"$HOME/.ssh\" all && cat all/id");
    assert_eq!(
        scene.works(tier, "cat \"$HOME/.bashrc\" /etc/passwd | head -c 6"),
        "SECRET"
    );
}

fn writes(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(
        tier,
        "echo x >new && mkdir -p a/b && mv new a/b/ && rm -r a && echo y >\"$TMPDIR/t\" && echo z >\"$ROOT/data/d\"",
    );
    assert_eq!(std::fs::read_to_string(scene.path("data/d")).unwrap(), "z\n");
    scene.works(tier, "grep y \"$TMPDIR/t\"");
    for script in [
        "echo x >>\"$HOME/.bashrc\"",
        "echo x >\"$HOME/new\"",
        "echo x >\"$ROOT/other/new\"",
        "truncate -s 0 \"$ROOT/other/file\"",
        "rm -f \"$ROOT/other/file\"",
        "mv \"$ROOT/other/file\" moved",
        "mv \"$ROOT/other\" moved",
        "ln -s \"$ROOT/other/file\" through && echo x >through",
        "echo x >\"$ROOT/own/cache/../../other/file\"",
        "echo x >/etc/gsv-canary",
        "echo x >/proc/sys/kernel/hostname",
        "echo x >\"$HOME/.cargo/bin/cargo\"",
        "mkdir \"$ROOT/state/new\"",
    ] {
        scene.fails(tier, script);
    }
    assert_eq!(std::fs::read_to_string(scene.path("other/file")).unwrap(), "SECRET");
    assert_eq!(std::fs::read_to_string(scene.path("home/.bashrc")).unwrap(), "SECRET");
}

fn strict_reads(tier: Tier) {
    let mut scene = Scene::new(Profile::Strict);
    for file in ["home/.bashrc", "other/file", "state/token"] {
        scene.fails(tier, &format!("cat \"$ROOT/{file}\""));
    }
    scene.works(
        tier,
        "echo x >new && grep x new && ls /usr/bin >/dev/null && test -r /etc/passwd",
    );
    scene.request.readable = vec![scene.path("other")];
    assert_eq!(scene.works(tier, "cat \"$ROOT/other/file\""), "SECRET");
    scene.fails(tier, "echo x >>\"$ROOT/other/file\"");
}

fn nothing_outside(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let socket = scene.path("other/s");
    // Listed by the kernel, and so masked; the path must fit into a socket's address.
    let _unix = std::os::unix::net::UnixListener::bind(&socket);
    if !has_python() {
        return;
    }
    let memory = SharedMemory::new();
    for code in [
        format!("import socket; socket.create_connection(('127.0.0.1', {port}), 2)"),
        "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)".into(),
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)".into(),
        format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}')", socket.display()),
        format!("import os; os.kill({}, 0)", std::process::id()),
        format!("open('/proc/{}/mem', 'rb')", std::process::id()),
        format!("open('/proc/{}/environ', 'rb').read(1)", std::process::id()),
        "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); r = l.unshare(0x10000000); os._exit(1 if r else 0)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(165, b'x', b'/', b'tmpfs', 0, 0); os._exit(1 if r else 0)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(425, 8, b'\\0' * 200); os._exit(0 if r >= 0 else 1)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.syscall(0x40000000 | 41, 2, 1, 0); os._exit(0 if r >= 0 else 1)".into(),
        "import ctypes, os; l = ctypes.CDLL(None); r = l.ptrace(0, 0, 0, 0); os._exit(1 if r else 0)".into(),
        format!("import ctypes, os; l = ctypes.CDLL(None); r = l.shmget({}, 0, 0); os._exit(0 if r >= 0 else 1)", memory.0),
    ] {
        // The numbers are those of x86-64.
        if !std::env::consts::ARCH.ends_with("86_64") && code.contains("syscall(") {
            continue;
        }
        scene.fails(tier, &format!("exec python3 -c \"{code}\""));
    }
    scene.works(tier, "exec python3 -c \"import socket, subprocess, threading; socket.socketpair(); subprocess.run(['true'], check=True); t = threading.Thread(target=print); t.start(); t.join()\"");
    if tier == Tier::Bubblewrap {
        scene.works(tier, "exec python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\"");
    }
}

/// Memory that other programs of the user share, by its key.
struct SharedMemory(u32);

impl SharedMemory {
    fn new() -> Self {
        let memory = Self(std::process::id());
        memory.call("r = l.shmget(key, 4096, 0o1600)");
        memory
    }

    fn call(&self, code: &str) {
        let code = format!(
            "import ctypes; l = ctypes.CDLL(None); key = {}; {code}; assert r >= 0",
            self.0
        );
        let status = Command::new("python3").args(["-c", &code]).status().unwrap();
        assert!(status.success(), "{code}");
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.call("r = l.shmctl(l.shmget(key, 0, 0), 0, None)");
    }
}

fn protects(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    for file in [".envrc", ".bashrc", ".vscode/tasks.json", "sub/.git/config"] {
        let path = scene.path("home/ws").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "own").unwrap();
    }
    for script in [
        "echo x >.git/hooks/pre-commit",
        "echo x >>.git/config",
        "mv .git moved",
        "mv .git/hooks moved",
        "rm -rf .git/hooks",
        "rm -f .envrc",
        "mv .envrc moved",
        "echo x >>.bashrc",
        "echo x >.vscode/tasks.json",
        "mv .vscode moved",
        "echo x >sub/.git/config",
        "echo x >sub/.git/hooks/pre-push",
        "cd sub && echo x >.git/hooks/pre-push",
    ] {
        scene.fails(tier, script);
    }
    scene.works(
        tier,
        "cat .envrc .git/config && echo x >.git/index && mkdir -p .git/objects && rm .git/index",
    );
    assert_eq!(std::fs::read_to_string(scene.path("home/ws/.envrc")).unwrap(), "own");
    assert!(
        Path::new(&scene.path("home/ws/sub/.git/hooks"))
            .read_dir()
            .unwrap()
            .next()
            .is_none()
    );
}

fn caches(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(
        tier,
        "echo x >\"$CARGO_HOME/registry/crate\" && echo lock >\"$CARGO_HOME/.package-cache\"",
    );
    assert!(scene.path("home/.cargo/registry/crate").exists());
    assert!(!scene.path("home/.cargo/.package-cache").exists());
    scene.works(
        tier,
        "grep lock \"$CARGO_HOME/.package-cache\" && echo x >\"$XDG_CACHE_HOME/x\" && echo x >\"$npm_config_cache/x\"",
    );
    scene.fails(tier, "echo x >\"$HOME/.cargo/bin/x\"");
}

fn no_secrets(tier: Tier) {
    let text = Scene::new(Profile::Workspace).works(tier, "env; cat /proc/self/environ | tr '\\0' '\\n'");
    assert!(!text.contains("SECRET") && text.contains("PATH="), "{text}");
}

fn fails_closed(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, ":");
    let file = scene.path("state/plan.json");
    std::fs::write(&file, "{").unwrap();
    let ran = Command::new(program().path)
        .args([
            OsString::from("__confine"),
            file.into(),
            "--".into(),
            "/bin/sh".into(),
            "-c".into(),
            "echo ran".into(),
        ])
        .output()
        .unwrap();
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(126), &b""[..]));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("was not run"));
}

/// A program that started the node may have left files open for all its children.
fn no_descriptors(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let command = scene.command(tier, "cat <&7; ls -l /proc/self/fd/7");
    // A shell opens the file for the program that it becomes.
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "exec 7<\"$1\"; shift; exec \"$@\"", "sh"]);
    outer
        .arg(scene.path("state/token"))
        .arg(command.get_program())
        .args(command.get_args());
    outer.env_clear().current_dir(&scene.request.workspace);
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = outer.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && !text.contains("SECRET") && !text.contains("token"),
        "{text}"
    );
    let open = scene.works(tier, "ls /proc/self/fd | sort -n | tr '\\n' ' '");
    assert_eq!(open.trim(), "0 1 2 3", "3 is the folder that `ls` lists");
}

/// A command could put a link in the place of one of its own cache folders, so that the node writes through it.
fn own_links(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    scene.works(tier, "rm -rf \"$CARGO_HOME\" && ln -s \"$HOME/.ssh\" \"$CARGO_HOME\"");
    scene.works(tier, ":");
    let names: Vec<_> = scene
        .path("home/.ssh")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["id"], "the node made links in a folder that the command chose");
}

fn protects_linked(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    for file in [
        ".git/HEAD",
        ".git/modules/libs/foo/HEAD",
        ".git/modules/libs/foo/config",
        ".git/worktrees/tree/HEAD",
        ".git/worktrees/tree/commondir",
        ".git/worktrees/tree/gitdir",
        "sub/.git/HEAD",
        "deep/er/.git/HEAD",
        ".husky/pre-commit",
    ] {
        std::fs::create_dir_all(ws.join(file).parent().unwrap()).unwrap();
        std::fs::write(ws.join(file), "own").unwrap();
    }
    std::fs::create_dir_all(ws.join("tree")).unwrap();
    std::fs::write(ws.join("tree/.git"), "gitdir: ../.git/worktrees/tree").unwrap();
    for script in [
        "echo 'gitdir: ../evil' >tree/.git",
        "mv tree/.git moved",
        "rm tree/.git",
        "mv tree moved",
        "echo x >>.git/modules/libs/foo/config",
        "echo x >.git/modules/libs/foo/hooks/post-checkout",
        "mv .git/modules/libs/foo moved",
        "echo ../../../evil >.git/worktrees/tree/commondir",
        "echo x >.git/worktrees/tree/gitdir",
        "mv sub moved",
        "mv deep moved",
        "mv deep/er moved",
        "echo x >.husky/pre-commit",
    ] {
        scene.fails(tier, script);
    }
    scene.works(
        tier,
        "echo x >tree/new && echo x >sub/new && echo x >.git/modules/libs/foo/index",
    );
    assert_eq!(
        std::fs::read_to_string(ws.join("tree/.git")).unwrap(),
        "gitdir: ../.git/worktrees/tree"
    );
}

/// A command in the background makes and changes a project while others start: `.git` is a folder and then a link to a folder outside,
/// thousands of times a second. What bubblewrap mounts must be what was looked at.
fn races(tier: Tier, starts: u32) {
    let scene = Scene::new(Profile::Workspace);
    let ws = scene.path("home/ws");
    std::fs::create_dir_all(ws.join("sub/.git")).unwrap();
    std::os::unix::fs::symlink("../../../other", ws.join("sub/link")).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = renameat_with(
                    CWD,
                    ws.join("sub/.git"),
                    CWD,
                    ws.join("sub/link"),
                    RenameFlags::EXCHANGE,
                );
            }
        });
        for _ in 0..starts {
            let output = scene.sh(
                tier,
                "echo x >>\"$ROOT/other/file\"; echo x >>sub/.git/file; echo x >>sub/link/file; true",
            );
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            // Refused is safe.
            assert!(
                output.status.success() || text.contains("bwrap") || text.contains("can't be set up"),
                "{text}"
            );
            if std::fs::read_to_string(scene.path("other/file")).unwrap() != "SECRET" {
                break;
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(
        std::fs::read_to_string(scene.path("other/file")).unwrap(),
        "SECRET",
        "a command wrote outside"
    );
}

/// A bubblewrap that makes other mounts than it was told: what another command can bring about by exchanging folders with links.
fn other_mounts(tier: Tier) {
    let scene = Scene::new(Profile::Workspace);
    let real = bubblewrap().unwrap();
    std::fs::create_dir_all(scene.path("home/ws/sub/.git")).unwrap();
    let fake = scene.path("state/bwrap");
    for (what, change, is_run) in [
        ("nothing", "set -- \"$@\" \"$1\"", true),
        (
            "a folder outside is writable",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$OTHER\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "a folder outside is writable in the workspace",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$WS/sub\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "a folder outside is in the place of a project's",
            "[ \"$1\" != --chdir ] || set -- \"$@\" --bind \"$OTHER\" \"$WS/sub/.git\"; set -- \"$@\" \"$1\"",
            false,
        ),
        (
            "hooks are writable",
            "case \"$1\" in --ro-bind-fd) set -- \"$@\" --bind-fd;; *) set -- \"$@\" \"$1\";; esac",
            false,
        ),
        (
            "hooks are not mounted",
            "if [ \"$1\" = --ro-bind-fd ]; then shift 2; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
        (
            "what is hidden is seen",
            "if [ \"$1 $2\" = \"--tmpfs $STATE\" ]; then shift 3; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
        (
            "what is hidden is a writable folder",
            "if [ \"$1 $2\" = \"--remount-ro $STATE\" ]; then shift 1; else set -- \"$@\" \"$1\"; fi",
            false,
        ),
    ] {
        // Each argument is moved from the start to the end of the list, as it is or changed.
        let text = format!(
            "#!/bin/sh\nOTHER='{}' WS='{}' STATE='{}'\nset -- \"$@\" END\nwhile [ \"$1\" != END ]; do\n{change}\nshift\ndone\nshift\nexec '{}' \"$@\"\n",
            scene.path("other").display(),
            scene.path("home/ws").display(),
            scene.path("state").display(),
            real.display(),
        );
        std::fs::write(&fake, text).unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let output = scene.command_by(Some(fake.clone()), tier, "echo ran").output().unwrap();
        let (text, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(text == "ran\n", is_run, "{what}: {text} {errors}");
        if !is_run {
            assert_eq!(output.status.code(), Some(126), "{what}: {errors}");
            assert!(
                errors.contains("can't be set up") && errors.contains("was not run"),
                "{what}: {errors}"
            );
        }
    }
}

fn masks_sockets(tier: Tier) {
    // A socket's address has 107 bytes, so the workspace has a short name.
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    let short = dir.path().canonicalize().unwrap();
    scene.request.writable.push(short.clone());
    let path = short.join("s");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    if !has_python() {
        return;
    }
    let connect = format!(
        "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
        path.display()
    );
    scene.fails(tier, &connect);
    // Sockets of the sandbox itself work.
    let own = short.join("own");
    scene.works(
        tier,
        &format!("exec python3 -c \"import socket; a = socket.socket(socket.AF_UNIX); a.bind('{0}'); a.listen(); socket.socket(socket.AF_UNIX).connect('{0}')\"", own.display()),
    );
}

/// The kernel lists a socket under its first path, also after an earlier command has moved a folder above it.
fn masks_moved_sockets(tier: Tier) {
    let dir = TempDir::with_prefix_in("gsv-s-", "/var/tmp").unwrap();
    let mut scene = Scene::new(Profile::Workspace);
    let short = dir.path().canonicalize().unwrap();
    scene.request.writable.push(short.clone());
    std::fs::create_dir(short.join("run")).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(short.join("run/s")).unwrap();
    if !has_python() {
        return;
    }
    let connect = |path: &str| {
        let path = short.join(path);
        format!(
            "exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
            path.display()
        )
    };
    let root = short.display();
    scene.works(tier, &format!("mv {root}/run {root}/moved"));
    scene.fails(tier, &connect("moved/s"));
    // A file, and a socket of the command's own, in the place of the first one.
    scene.works(tier, &format!("mkdir {root}/run && echo > {root}/run/s"));
    scene.fails(tier, &connect("moved/s"));
    scene.works(
        tier,
        &format!(
            "rm {root}/run/s && exec python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('{root}/run/s')\""
        ),
    );
    scene.fails(tier, &connect("moved/s"));
}

const ATTEMPTS: &str = include_str!("attempts.tsv");

/// The shell's words for a line of the table. `None`: this machine can't try it.
fn attempt(line: &str, python: bool) -> Option<String> {
    let code = if let Some(number) = line.strip_prefix("call ") {
        // EPERM or ENOSYS; with these arguments the kernel itself would answer something else, or do nothing.
        std::env::consts::ARCH.ends_with("86_64").then(|| {
            format!(
                "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); r = l.syscall({number}, 0, 0, 0, 0, 0, 0); os._exit(1 if r < 0 and ctypes.get_errno() in (1, 38) else 0)"
            )
        })?
    } else if let Some(code) = line.strip_prefix("py ") {
        code.to_owned()
    } else {
        return Some(line.to_owned());
    };
    python.then(|| format!("exec python3 -c \"{code}\""))
}

/// What an attempt tries it on, outside the sandbox.
struct Targets {
    victim: std::process::Child,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    abstract_name: String,
    _sockets: Vec<std::os::unix::net::UnixListener>,
}

impl Targets {
    fn new(scene: &Scene) -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixListener};
        let abstract_name = format!("gsv-attempt-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&abstract_name).and_then(|name| UnixListener::bind_addr(&name));
        // The path must fit into a socket's address.
        let sockets = [named, UnixListener::bind(scene.path("other/s"))];
        let victim = Command::new("sleep")
            .arg("600")
            .env("VICTIM_HAS", "SECRET")
            .current_dir(scene.path(""))
            .spawn();
        Self {
            victim: victim.unwrap(),
            tcp: std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_name,
            _sockets: sockets.into_iter().flatten().collect(),
        }
    }

    fn vars(&self) -> [(&'static str, String); 4] {
        [
            ("VICTIM", self.victim.id().to_string()),
            ("PORT", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("ABSTRACT", self.abstract_name.clone()),
        ]
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn attempts(tier: Tier) {
    let python = has_python();
    let lines: Vec<&str> = ATTEMPTS.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 120, "{} attempts", lines.len());
    for profile in [Profile::Workspace, Profile::Strict] {
        let scene = Scene::new(profile);
        let mut targets = Targets::new(&scene);
        let before = scene.outside();
        let mut tried = 0;
        let mut out = Vec::new();
        for line in &lines {
            let Some(script) = attempt(line, python) else { continue };
            tried += 1;
            let output = scene
                .command(tier, &script)
                .envs(targets.vars())
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(!text.contains("can't be set up"), "{line}: {text}");
            if output.status.success() || text.contains("SECRET") || scene.outside() != before {
                out.push(format!("{line}: {text}"));
            }
        }
        assert_eq!(targets.victim.try_wait().unwrap(), None, "the victim was ended");
        assert!(out.is_empty(), "{} got out:\n{}", profile.name(), out.join("\n"));
        println!("{tried} attempts in {} ({}): none got out", profile.name(), tier.name());
    }
}
