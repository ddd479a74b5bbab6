//! Commands of a lab in a sandbox.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gsv_sandbox::{Confinement, Disk, Plan, Profile, Program, Report, Request, Tier, environment, prepare, probe};
use gsv_tools::{Config, Network, Sandbox, Supervisor};

fn program() -> Program {
    Program {
        path: env!("CARGO_BIN_EXE_gsv-tools-helper").into(),
        confine: "__confine".into(),
        canary: "__canary".into(),
    }
}

static REPORT: OnceLock<Report> = OnceLock::new();

/// Confines the commands of a lab whose folder is `root`. On a machine without the tier the whole test program ends: it says
/// which tier is missing, and passes.
pub fn apply(config: &mut Config, tier: Tier, root: &Path) {
    let own = root.join("own");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&config.spool).unwrap();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let request = Request {
        profile: Profile::Workspace,
        workspace: config.workspace.clone(),
        writable: vec![],
        readable: vec![],
        caches: vec![],
        private: vec![config.spool.clone()],
        homes: vec![home.clone()],
        own: own.clone(),
    };
    let plan = Plan::new(&request, &Disk).unwrap();
    let search: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    let report = REPORT.get_or_init(|| probe(&request, &plan, &program(), &[tier], &search));
    let (Some(level), Some(found)) = (report.level(), &report.confinement) else {
        let text = format!("skipped: all tests in {}: {}\n", tier.name(), report.problem());
        let is_missing = ["not installed", "no Landlock", "namespace", "does not have"]
            .iter()
            .any(|word| text.contains(word));
        assert!(is_missing, "{text}");
        // Not captured, as what `print` writes would be.
        let _ = std::io::stdout().write_all(text.as_bytes());
        std::process::exit(0);
    };
    prepare(&plan, &home).unwrap();
    let environment = environment(&plan, std::env::vars_os(), &[]);
    let roots = plan.lasting().cloned().collect();
    let own_roots = plan.roots.clone();
    let file = own.join("plan.json");
    let confinement = Confinement { plan, ..found.clone() };
    confinement.write(&file).unwrap();
    let program = program();
    let wrapper: [OsString; 3] = [program.path.clone().into(), program.confine, file.into()];
    // As in a node: the program that confines a command has the gate.
    config.supervisor = Supervisor::Program {
        program: program.path,
        args: vec!["__supervise".into()],
        limits: None,
    };
    config.sandbox = Some(Sandbox {
        may_leave: true,
        level,
        wrapper: wrapper.into(),
        roots,
        own_roots,
        environment,
        network: tier.has_hosts().then(Network::default),
        forbids_hosts: false,
    });
}

/// Finds a process by its pid in its own namespace, among those that belong to commands of the lab.
pub fn host_pid(inner: &str, root: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            pids.is_some_and(|pids| {
                pids.split_whitespace().last() == Some(inner) && pids.split_whitespace().count() > 1
            }) && String::from_utf8_lossy(&environ).contains(&format!("GSV_COMMAND={}", root.display()))
        })
}
