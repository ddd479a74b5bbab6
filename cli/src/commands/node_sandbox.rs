//! `gsv node sandbox`: tests what the sandbox of this machine really stops, and says what is missing.

use std::path::{Path, PathBuf};

use gsv_node::check_workspace;
use gsv_node::sandbox::{
    Canary, Finding, IN_EACH_TIER, Level, Profile, Report, SandboxSettings, Tier, describe, examine, opens_gateway,
};
use serde_json::{Value, json};

use super::context::Context;
use super::node::{default_workspace, last_workspace, private_folders, sandbox_settings, workspace};
use crate::args::NodeSandbox;
use crate::client::find_url;
use crate::config::{Config, Key};
use crate::exit::{Failure, Outcome};
use crate::table::Table;
use crate::{node_policy, paths};

/// The folder of this process's tests: two of them at once would remove each other's files.
pub fn test_folder() -> String {
    format!("sandbox-test-{}", std::process::id())
}

pub fn run(context: &Context, args: &NodeSandbox) -> Outcome {
    let out = context.out;
    let policy = node_policy::load()?;
    let config = Config::load()?;
    let private = private_folders()?;
    let workspace = folder(context, args.workspace.clone(), &config, &private)?;
    let configured = policy.sandbox;
    let tested = match (args.profile, configured) {
        (None, None | Some(Profile::Off)) => Profile::Workspace,
        (Some(profile), _) | (None, Some(profile)) => profile,
    };
    let listed: Option<Vec<String>> =
        (policy.hosts.as_ref()).map(|hosts| hosts.iter().map(ToString::to_string).collect());
    let policy_limits = policy.limits();
    let settings = SandboxSettings {
        profile: tested,
        ..sandbox_settings(policy, &test_folder())?
    };
    let refused = |error: gsv_node::NodeError| Failure::usage(error.to_string(), "Change node.toml or --workspace.");
    let mut reports: Vec<Report> = Vec::new();
    for tier in Tier::ALL {
        reports.push(
            examine(&settings, &workspace, &private, &[tier])
                .map_err(refused)?
                .report,
        );
    }
    let _ = std::fs::remove_dir_all(&settings.own);
    let level = reports.iter().find_map(Report::level);
    let advice = reports.first().and_then(Report::advice);
    let limits = policy_limits.map(|limits| (limits.memory_bytes >> 20, limits.processes));
    // The tested level is not in force when the sandbox is off.
    let is_off = configured == Some(Profile::Off);
    let in_force = level.as_ref().filter(|_| !is_off);
    // Listed hosts have no effect where no tier can let commands reach them.
    let network = listed.as_ref().filter(|_| in_force.is_some_and(Level::has_hosts));
    let gateway = find_url(&context.global, &config)
        .ok()
        .and_then(|url| opens_gateway(&settings, in_force, &url));
    let data = json!({
        "workspace": workspace,
        "configured": configured.map(Profile::name),
        "network": network,
        "limits": limits.map(|(memory_mib, processes)| json!({"memoryMib": memory_mib, "processes": processes})),
        "writes": in_force.map(|_| writes(&workspace, &settings)),
        "tested": tested.name(),
        "tier": in_force.map(|level| level.tier.name()),
        "possibleTier": level.as_ref().filter(|_| is_off).map(|level| level.tier.name()),
        "gaps": in_force.map(|level| level.gaps.iter().map(|gap| gap.words()).collect::<Vec<_>>()),
        "gapsOfEachTier": [IN_EACH_TIER],
        "tiers": reports.iter().flat_map(|report| &report.findings).map(tier_json).collect::<Vec<_>>(),
        "advice": advice,
        "opensGateway": gateway,
    });
    out.show(data, |_| {
        out.fields([
            ("workspace", Some(workspace.display().to_string())),
            ("configured", Some(configured_words(configured))),
            (
                "network",
                (!is_off).then(|| network_words(in_force, listed.as_deref(), settings.may_leave)),
            ),
            (
                "writes",
                (!is_off).then(|| writes_words(in_force, &workspace, &settings)),
            ),
            ("limits", Some(limits_words(limits))),
            ("tested", Some(tested.name().to_owned())),
            (
                if is_off { "possible" } else { "level" },
                Some(level.as_ref().map_or_else(|| "none".to_owned(), describe)),
            ),
        ]);
        out.line("");
        let rows = reports.iter().flat_map(|report| &report.findings).map(tier_row);
        out.table(&Table::new(["TIER", "STATE", "A COMMAND COULD STILL"], rows));
        out.line("");
        out.line(&format!("In each tier a command could also {IN_EACH_TIER}."));
        out.line("Look at what is new before you run git, a shell or an editor there.");
    });
    if let Some(gateway) = gateway {
        out.warn(&gateway);
    }
    if let Some(advice) = advice {
        out.aside(advice);
    }
    if level.is_some() {
        return Ok(());
    }
    Err(Failure::failed(
        format!("This machine can't enforce the profile `{}`.", tested.name()),
        "Without it, the agent's commands can do what you can: run the node as a user of its own, or in a container.",
    ))
}

/// The folder of this machine's node, before the one that a first start would take: another folder may have another answer (rule SB22).
fn folder(context: &Context, given: Option<PathBuf>, config: &Config, private: &[PathBuf]) -> Outcome<PathBuf> {
    let stored = || config.get(Key::NodeWorkspace).map(PathBuf::from);
    let last = || last_workspace(&paths::state_dir().ok()?, Some(config));
    let folder = match given.or_else(last).or_else(stored) {
        Some(named) => workspace(Some(named))?,
        None => default_workspace(context.out, private)?,
    };
    refuse_private(&folder, private)?;
    Ok(folder)
}

fn refuse_private(folder: &Path, private: &[PathBuf]) -> Outcome {
    check_workspace(folder, private).map_err(|_| {
        Failure::usage(
            format!(
                "The folder {} has GSV's own files, so no agent works in it.",
                folder.display()
            ),
            "Name the folder that the agent works in: `gsv node sandbox --workspace DIR`.",
        )
    })
}

/// The folders whose files commands may write, besides caches and temporary files.
fn writes<'a>(workspace: &'a Path, settings: &'a SandboxSettings) -> Vec<&'a Path> {
    let roots = settings.writable.iter().map(PathBuf::as_path);
    std::iter::once(workspace).chain(roots).collect()
}

fn writes_words(level: Option<&Level>, workspace: &Path, settings: &SandboxSettings) -> String {
    let Some(level) = level else {
        return "not confined".to_owned();
    };
    let folders: Vec<String> = writes(workspace, settings)
        .into_iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let protected = if level.gaps.contains(&Canary::ChangeGitHooks) {
        ""
    } else {
        "; in these folders not the git hooks, git configuration, shell and editor files that exist"
    };
    format!("{}, package caches and $TMPDIR{protected}", folders.join(", "))
}

fn limits_words(limits: Option<(u64, usize)>) -> String {
    limits.map_or_else(
        || "none: this system does not tell what a command uses".to_owned(),
        |(memory_mib, processes)| format!("{memory_mib} MiB of memory and {processes} processes for one command"),
    )
}

fn network_words(level: Option<&Level>, listed: Option<&[String]>, may_leave: bool) -> String {
    match (level, listed) {
        (None, _) => "not confined".to_owned(),
        (_, None) => "none, by `network = \"none\"` in node.toml".to_owned(),
        (Some(level), _) if level.profile == Profile::Strict => "none in `strict`".to_owned(),
        (Some(level), _) if !level.has_hosts() => {
            format!("none: {} can't let commands reach single hosts", level.tier.name())
        }
        (Some(level), Some(listed)) => match (level.profile, listed) {
            (Profile::WorkspaceNet, [_, ..]) => format!("{} by every command", listed.join(", ")),
            _ if !may_leave => "none, by `escalation = false` in node.toml".to_owned(),
            _ => "hosts that you allow when a command asks for them".to_owned(),
        },
    }
}

fn configured_words(profile: Option<Profile>) -> String {
    match profile {
        None => "workspace, where this machine can enforce it (the default)".to_owned(),
        Some(Profile::Off) => {
            "off: the agent's commands can do what you can; set `sandbox = \"workspace\"` in node.toml".to_owned()
        }
        Some(profile) => profile.name().to_owned(),
    }
}

fn tier_json((tier, finding): &(Tier, Finding)) -> Value {
    match finding {
        Finding::Holds { gaps } => {
            json!({"tier": tier.name(), "holds": true, "gaps": gaps.iter().map(|gap| gap.words()).collect::<Vec<_>>()})
        }
        Finding::Fails { why } => json!({"tier": tier.name(), "holds": false, "why": why}),
    }
}

fn tier_row((tier, finding): &(Tier, Finding)) -> [String; 3] {
    let (state, rest) = match finding {
        Finding::Holds { gaps } if gaps.is_empty() => ("holds".to_owned(), "-".to_owned()),
        Finding::Holds { gaps } => {
            let words: Vec<&str> = gaps.iter().map(|gap| gap.words()).collect();
            ("holds".to_owned(), words.join("; "))
        }
        Finding::Fails { why } => (format!("not available: {why}"), String::new()),
    };
    [tier.name().to_owned(), state, rest]
}
