//! What `gsv doctor` checks on this machine: the config, the sandbox of its commands and the gateway that runs here.

use std::path::Path;
use std::time::Duration;

use gsv_node::sandbox::{self, Profile, SandboxSettings, Tier, describe, examine, would_start};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::doctor_limits::check_limits;
use super::doctor_report::Report;
use super::local::Local;
use super::node::{last_workspace, private_folders, sandbox_settings};
use super::node_files::{Running, known_here, running};
use crate::config::Config;
use crate::embedded::bootstrap::Bootstrap;
use crate::embedded::health;
use crate::embedded::layout::Layout;
use crate::embedded::listen::{Listening, reachable};
use crate::embedded::runtime::Runtime;
use crate::embedded::sealing_key::SealingKeys;
use crate::exit::{OrFail, Outcome};
use crate::node_policy;
use crate::paths;

const HEALTH_PATIENCE: Duration = Duration::from_secs(3);
/// Without a sandbox nothing but the user's rights stands between a command and the owner's token.
const UNCONFINED: &str = "the agent's commands on this machine can do what you can, with your token too";
const OTHER_USER: &str = "Run the node as another user: make it a token with `gsv token create --scope node --node NAME`, and as that user run `gsv node --id NAME` with GSV_URL and GSV_TOKEN set.";

pub fn check_config(report: &mut Report) -> Option<Config> {
    match Config::load() {
        Ok(config) => {
            report.ok("config", format!("{} is private and valid", config.file().display()));
            Some(config)
        }
        Err(failure) => {
            report.failure("config", failure);
            None
        }
    }
}

/// What the agent's commands may do on this machine, when it was ever a node.
pub fn check_sandbox(report: &mut Report, layout: &Layout, config: Option<&Config>) {
    const NAME: &str = "sandbox";
    if !layout.home.join("node").is_dir() {
        return;
    }
    let read = node_policy::load().and_then(|policy| {
        let limits = policy.limits();
        Ok((sandbox_settings(policy, &super::node_sandbox::test_folder())?, limits))
    });
    let (settings, limits) = match read {
        Ok(read) => read,
        Err(failure) => return report.failure(NAME, failure),
    };
    check_limits(report, &layout.home, limits);
    if settings.profile == Profile::Off {
        return report.warn(
            NAME,
            format!("off: {UNCONFINED}"),
            format!("Set `sandbox = \"workspace\"` in node.toml. Or: {OTHER_USER}"),
        );
    }
    // As the node asks: another folder may have another answer. The test's own one is in no private folder.
    let own_workspace = settings.own.with_extension("work");
    let workspace = last_workspace(&layout.home, config).unwrap_or_else(|| own_workspace.clone());
    let made = std::fs::create_dir_all(&workspace).or_fail(
        format_args!("make the folder {}", workspace.display()),
        "Check its permissions.",
    );
    let tested = made.and_then(|()| private_folders());
    let tested = tested.map(|private| examine(&settings, &workspace, &private, &Tier::ALL));
    for own in [&settings.own, &own_workspace] {
        let _ = std::fs::remove_dir_all(own);
    }
    if let Ok(Ok(examined)) = &tested {
        check_nodes_start(report, layout, &settings, &examined.report);
    }
    let (level, problem) = match tested {
        Ok(Ok(examined)) => (examined.report.level(), examined.report.problem()),
        Ok(Err(error)) => (None, error.to_string()),
        Err(failure) => return report.failure(NAME, failure),
    };
    match level {
        Some(level) => report.ok(NAME, describe(&level)),
        None if settings.is_required => report.fail(NAME, problem, "`gsv node sandbox` shows what is missing."),
        None => report.warn(
            NAME,
            format!("none, so you are asked about each command of the agent; {UNCONFINED}: {problem}"),
            format!("`gsv node sandbox` shows what is missing. {OTHER_USER}"),
        ),
    }
}

/// Whether the sandbox of this machine is enough for each of its nodes, by the node's own folder.
fn check_nodes_start(report: &mut Report, layout: &Layout, settings: &SandboxSettings, found: &sandbox::Report) {
    for name in known_here(&layout.home) {
        // A running node has shown that it starts; its own test has other folders than this one.
        if !matches!(running(&name), Ok(Running::No)) {
            continue;
        }
        let dir = layout.home.join("node").join(&name);
        if let Err(error) = would_start(settings, found, &dir) {
            report.fail(
                "node",
                format!("`{name}` does not start. {error}"),
                "`gsv node sandbox` shows what is missing.",
            );
        }
    }
}

/// Checks the gateway of this machine. True: none runs here, and none should.
pub async fn check_local(report: &mut Report, layout: &Layout) -> bool {
    if layout.exists() {
        match check_folders(layout) {
            Ok(()) => report.ok("disk", format!("{} is private and writable", layout.home.display())),
            Err(failure) => report.failure("disk", failure),
        }
        if let Err(failure) = Bootstrap::read(&layout.bootstrap()) {
            report.failure("bootstrap", failure);
        }
        if let Err(failure) = SealingKeys::read() {
            report.failure("secrets", failure);
        }
    }
    match Runtime::find(layout) {
        Ok(runtime) => {
            let found = format!("{} in {}", runtime.manifest.version, runtime.dir.display());
            report.ok("runtime", found);
        }
        Err(failure) => report.failure("runtime", failure),
    }
    let log = layout.log();
    let local = Local::look(layout);
    if let Local::Running(state) = &local
        && let Some(listening) = &state.listening
    {
        check_listening(report, listening, &log).await;
    }
    match &local {
        Local::Running(state) => match health::check(state.port, HEALTH_PATIENCE).await {
            Ok(_) => report.ok("gateway", format!("running on port {}, healthy", state.port)),
            Err(problem) => {
                let found = format!("running on port {}, but {problem}", state.port);
                let next = format!("Read the log {}, then run `gsv down && gsv up`.", log.display());
                report.fail("gateway", found, next);
            }
        },
        Local::Stopped => report.warn("gateway", "not running on this machine", "Start it with `gsv up`."),
        Local::LeftOver(_) => report.fail(
            "gateway",
            "running on this machine, but its state folder was removed",
            "Run `gsv down`, then `gsv up`.",
        ),
        Local::GaveUp(_) | Local::Orphaned(_) | Local::Unknown => {
            report.fail("gateway", local.words(), format!("The log is {}.", log.display()));
        }
    }
    matches!(local, Local::Stopped)
}

/// Whether other machines find a listener; whether a firewall lets them through is not known here.
async fn check_listening(report: &mut Report, listening: &Listening, log: &Path) {
    const NAME: &str = "listening";
    let connect = TcpStream::connect(reachable(listening.listen.address));
    match timeout(HEALTH_PATIENCE, connect).await {
        Ok(Ok(_)) => report.ok(NAME, listening.words()),
        _ => report.fail(
            NAME,
            format!("nothing answers on {}", listening.listen.address),
            format!(
                "Check that this machine still has the address (`ip addr`), and read the log {}. To listen elsewhere: `gsv down && gsv up --listen ADDR:PORT`.",
                log.display()
            ),
        ),
    }
}

/// Writes and removes a small file, which is the only reliable test.
fn check_folders(layout: &Layout) -> Outcome {
    for dir in [&layout.home, &layout.gateway(), &layout.workspace()] {
        paths::ensure_private_dir(dir)?;
    }
    let probe = layout.gateway().join(format!(".doctor-{}", std::process::id()));
    paths::write_private_file(&probe, b"probe")
        .and_then(|()| std::fs::remove_file(&probe))
        .or_fail(
            format_args!("write in {}", layout.gateway().display()),
            "Check the free space (`df -h`) and the permissions.",
        )
}
