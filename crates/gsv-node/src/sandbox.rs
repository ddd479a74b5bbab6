//! The sandbox of a node. Compares what its owner wants with the level that the machine really has, and starts commands in it.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use gsv_link::Target;
pub use gsv_sandbox::{
    Canary, DEFAULT_CACHES, Finding, HostRule, IN_EACH_TIER, Level, Profile, Program, Report, Tier, is_reserved,
};
use gsv_sandbox::{
    Disk, Plan, Request, credentials_of_others, environment, homes_of_people, homes_of_user, prepare, probe,
};
pub use gsv_sandbox::{canary_main, confine_main};
use gsv_tools::{Network, Sandbox};

use crate::error::NodeError;

/// What the owner of the machine wants for the agent's commands.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    pub profile: Profile,
    pub writable: Vec<PathBuf>,
    pub readable: Vec<PathBuf>,
    pub caches: Vec<PathBuf>,
    /// Names of variables that commands get besides the usual ones.
    pub env: Vec<String>,
    /// Whether a call may ask for a command outside the sandbox, or for hosts.
    pub may_leave: bool,
    /// Hosts that the owner has listed. Absent: the owner lets no command reach any.
    pub hosts: Option<Vec<HostRule>>,
    /// The weakest tier that the owner accepts. Absent: that of the node's last start.
    pub tier: Option<Tier>,
    /// `node.toml` says something that only a sandbox can do: the node does not start without one. Otherwise commands run unconfined where
    /// no tier holds, and the node says so.
    pub is_required: bool,
    /// The user's home.
    pub home: PathBuf,
    /// The sandbox's own folder, outside GSV's private ones.
    pub own: PathBuf,
    pub program: Program,
}

/// What was found, and what was planned.
pub struct Examined {
    pub report: Report,
    plan: Plan,
}

/// Plans the profile and runs its canaries.
///
/// # Errors
/// A folder of the settings can't be used.
pub fn examine(
    settings: &SandboxSettings,
    workspace: &Path,
    private: &[PathBuf],
    tiers: &[Tier],
) -> Result<Examined, NodeError> {
    let refused = |reason: String| NodeError::SandboxFolder { reason };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&settings.own);
    made.map_err(|error| refused(format!("its folder {} can't be made: {error}.", settings.own.display())))?;
    let homes = homes_of_user(Some(settings.home.clone()));
    let request = Request {
        profile: settings.profile,
        workspace: workspace.to_owned(),
        writable: settings.writable.clone(),
        readable: settings.readable.clone(),
        caches: settings.caches.clone(),
        private: private.iter().cloned().chain(of_others(&homes)).collect(),
        homes,
        own: settings.own.clone(),
    };
    let plan = Plan::new(&request, &Disk).map_err(|problem| match problem.key {
        // A default cache is no mistake of the owner.
        Some(key) if settings.is_required => NodeError::Policy {
            key,
            reason: problem.reason,
        },
        _ => refused(format!("{}.", problem.reason)),
    })?;
    // Before the test: what a command left there must not make it fail.
    prepare(&plan, &settings.home).map_err(|source| NodeError::Folder {
        path: settings.own.clone(),
        source,
    })?;
    let search: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default();
    let report = probe(&request, &plan, &settings.program, tiers, &search);
    Ok(Examined { report, plan })
}

/// What a node's commands run in.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    pub(crate) sandbox: Option<Sandbox>,
    /// Why there is no sandbox, where one is wanted.
    pub(crate) missing: Option<String>,
}

/// The sandbox for a node's commands. `state_dir`: where the plan is stored, a private folder. A profile that the owner did not name
/// and that this machine can't enforce is missing, which the node reports. Where one was enforced before, or is and its files can't be
/// made, there is no node: a command could bring that about, and would run without a sandbox after the next start.
///
/// # Errors
/// The machine can't enforce the profile that the owner named, or a folder can't be used.
pub(crate) fn confine(
    settings: &SandboxSettings,
    workspace: &Path,
    private: &[PathBuf],
    state_dir: &Path,
) -> Result<Confinement, NodeError> {
    let file = &state_dir.join(STORED);
    if settings.profile == Profile::Off {
        // The owner has said so, and may take it back on a machine that can't enforce a profile.
        let _ = std::fs::remove_file(file);
        return Ok(Confinement::default());
    }
    match enforced(settings, workspace, private) {
        Ok((level, examined)) => {
            accept(settings, level.tier, &why_weaker(&examined.report), state_dir)?;
            let sandbox = set_up(settings, level, &examined, file)?;
            Ok(Confinement {
                sandbox: Some(sandbox),
                missing: None,
            })
        }
        Err(error @ (NodeError::Sandbox { .. } | NodeError::SandboxFolder { .. }))
            if settings.is_required || file.exists() =>
        {
            Err(with_history(settings, error))
        }
        Err(NodeError::Sandbox { reason, .. } | NodeError::SandboxFolder { reason }) => Ok(Confinement {
            sandbox: None,
            missing: Some(reason.trim_end().to_owned()),
        }),
        Err(error) => Err(error),
    }
}

/// Says why a node whose policy does not need the sandbox can't start without it.
fn with_history(settings: &SandboxSettings, mut error: NodeError) -> NodeError {
    if let (false, NodeError::Sandbox { reason, .. } | NodeError::SandboxFolder { reason }) =
        (settings.is_required, &mut error)
    {
        *reason = format!(
            "{} It was enforced at an earlier start of this node.",
            reason.trim_end()
        );
    }
    error
}

/// Whether the tiers that were found are enough for a node with this state folder.
///
/// # Errors
/// The node would not start: the words of its refusal.
pub fn would_start(settings: &SandboxSettings, report: &Report, state_dir: &Path) -> Result<(), NodeError> {
    match level_of(settings, report) {
        Ok(level) => accept(settings, level.tier, &why_weaker(report), state_dir),
        Err(error) if settings.is_required || state_dir.join(STORED).exists() => Err(with_history(settings, error)),
        Err(_) => Ok(()),
    }
}

/// What the last start of a node had, in its state folder, which is private.
const STORED: &str = "sandbox.json";

/// Whether a node starts with a tier. A weaker one is used only after the owner has accepted it: what it lets through was kept from commands
/// before. `why`: what is wrong with the stronger ones, and what to do. `state_dir`: the node's.
///
/// # Errors
/// It does not start.
fn accept(settings: &SandboxSettings, tier: Tier, why: &str, state_dir: &Path) -> Result<(), NodeError> {
    let file = state_dir.join(STORED);
    let unreadable = |error: io::Error| {
        let what = "which says what the last start of this node had, can't be read";
        refused(
            settings,
            format!(
                "{}, {what}: {error}. Remove it, to start as for the first time.",
                file.display()
            ),
        )
    };
    let earlier = match gsv_sandbox::Confinement::read_tier(&file) {
        Ok(tier) => Some(tier),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(error)),
    };
    let Some(weakest) = settings.tier.or(earlier).filter(|weakest| tier > *weakest) else {
        return Ok(());
    };
    let wanted = match settings.tier {
        Some(_) => "node.toml asks for",
        None => "the last start of this node had",
    };
    let [weakest, now] = [weakest.name(), tier.name()];
    Err(refused(
        settings,
        format!(
            "{wanted} the tier {weakest}, but this machine has only {now} now, which is weaker ({why}). To accept {now}, write `tier = \"{now}\"` into node.toml."
        ),
    ))
}

/// What is wrong with the tiers that do not hold, and what to do.
fn why_weaker(report: &Report) -> String {
    let advice = report
        .advice()
        .map_or_else(String::new, |advice| format!(". {}", advice.trim_end_matches('.')));
    format!("{}{advice}", report.problem())
}

fn refused(settings: &SandboxSettings, reason: String) -> NodeError {
    NodeError::Sandbox {
        profile: settings.profile,
        reason,
    }
}

fn enforced(settings: &SandboxSettings, workspace: &Path, private: &[PathBuf]) -> Result<(Level, Examined), NodeError> {
    let examined = examine(settings, workspace, private, &Tier::ALL)?;
    level_of(settings, &examined.report).map(|level| (level, examined))
}

fn level_of(settings: &SandboxSettings, report: &Report) -> Result<Level, NodeError> {
    let level = report.level().filter(|_| report.confinement.is_some());
    level.ok_or_else(|| {
        let reason = format!("{}. {}", report.problem(), report.advice().unwrap_or_default());
        refused(settings, reason.trim_end().to_owned())
    })
}

fn set_up(
    settings: &SandboxSettings,
    level: Level,
    Examined { report, plan }: &Examined,
    file: &Path,
) -> Result<Sandbox, NodeError> {
    let written = report.confinement.iter().try_for_each(|made| made.write(file));
    written.map_err(|error| refused(settings, format!("{} can't be written: {error}.", file.display())))?;
    let program = &settings.program;
    let wrapper: [OsString; 3] = [program.path.clone().into(), program.confine.clone(), file.into()];
    let network = settings.hosts.clone().filter(|_| level.has_hosts());
    Ok(Sandbox {
        level,
        wrapper: wrapper.into(),
        roots: plan.lasting().cloned().collect(),
        own_roots: plan.roots.clone(),
        environment: environment(plan, env::vars_os(), &settings.env),
        may_leave: settings.may_leave,
        network: network.map(|listed| Network { listed }),
        forbids_hosts: settings.hosts.is_none(),
    })
}

/// What to tell the owner whose list of hosts opens the gateway itself. `url`: its address. `None`: no command can reach it by the list.
pub fn opens_gateway(settings: &SandboxSettings, level: Option<&Level>, url: &str) -> Option<String> {
    let level = level.filter(|level| level.has_hosts())?;
    let gateway = Target::parse(url).ok()?;
    let listed = settings.hosts.as_deref().unwrap_or_default();
    let entry = listed.iter().find(|rule| rule.opens(&gateway.host, gateway.port))?;
    let when = match level.profile {
        Profile::WorkspaceNet => "every command of the agent can",
        _ if settings.may_leave => "a command of the agent can, when you allow it,",
        _ => return None,
    };
    Some(format!(
        "`network` in node.toml lists {entry}, which is the gateway: {when} connect to it. Commands have no token, so the gateway answers only what needs none, such as webhooks. Unless you want that, remove the entry and start the node again."
    ))
}

/// Removes temporary files of earlier commands. Only while no command runs.
pub(crate) fn clear_temporary(settings: &SandboxSettings) {
    // What can't be removed now is tried again at the next start.
    for entry in std::fs::read_dir(settings.own.join("tmp"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let _ = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
    }
}

/// What a person should know about a level, in one line.
pub fn describe(level: &Level) -> String {
    let mut text = format!("{} ({})", level.profile.name(), level.tier.name());
    if !level.gaps.is_empty() {
        let gaps: Vec<&str> = level.gaps.iter().map(|canary| canary.words()).collect();
        text.push_str("; a command could still ");
        text.push_str(&gaps.join(", "));
    }
    text
}

/// What root could read of the system and of other users. From everyone else the system keeps it.
fn of_others(own: &[PathBuf]) -> Vec<PathBuf> {
    if !rustix::process::getuid().is_root() {
        return Vec::new();
    }
    let homes: Vec<PathBuf> = homes_of_people()
        .into_iter()
        .filter(|home| !own.contains(home))
        .collect();
    credentials_of_others(&homes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb12_a_weaker_tier_than_before_is_taken_only_when_the_owner_accepts_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_owned();
        let mut settings = crate::policy::NodePolicy::parse("", &home).unwrap().sandbox_settings(
            home.clone(),
            home.join("own"),
            "gsv".into(),
        );
        let why = "bubblewrap: the program `bwrap` is not installed";
        let file = home.join("sandbox.json");
        let accepts = |settings: &SandboxSettings, tier| accept(settings, tier, why, &home);
        assert!(accepts(&settings, Tier::Landlock).is_ok(), "the first start");
        let stored = |tier: &str| {
            let plan = serde_json::json!({
                "tier": tier,
                "plan": {
                    "profile": "workspace", "workspace": "/ws", "writable": [], "readable": null, "hidden": [], "own": "/own",
                },
            });
            std::fs::write(&file, plan.to_string()).unwrap();
        };
        stored("bubblewrap");
        let problem = accepts(&settings, Tier::Landlock).unwrap_err().to_string();
        for words in [
            "bubblewrap, but this machine has only landlock",
            "not installed",
            "`tier = \"landlock\"`",
        ] {
            assert!(problem.contains(words), "{problem}");
        }
        assert!(accepts(&settings, Tier::Bubblewrap).is_ok());
        settings.tier = Some(Tier::Landlock);
        assert!(accepts(&settings, Tier::Landlock).is_ok());
        stored("landlock");
        settings.tier = Some(Tier::Bubblewrap);
        let problem = accepts(&settings, Tier::Landlock).unwrap_err().to_string();
        assert!(problem.contains("node.toml asks for"), "{problem}");
    }

    #[test]
    fn sb3_only_root_hides_what_is_of_others() {
        let hidden = of_others(&[]);
        assert_eq!(
            hidden.contains(&PathBuf::from("/etc/shadow")),
            rustix::process::getuid().is_root()
        );
    }
}
