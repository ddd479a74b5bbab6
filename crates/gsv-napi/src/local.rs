//! What the owner of this machine lets its nodes do: reads `node.toml`, and sets up GSV's commands as it says (rule NJ14). A policy that
//! can't be read, or that this program can't keep, stops the node.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gsv_node::policy::NodePolicy;
use gsv_node::{NodeConfig, dangling_link};

const MAX_BYTES: u64 = 64 * 1024;
const OTHERS: u32 = 0o077;
/// The tools that run commands.
const COMMANDS: [&str; 2] = ["Bash", "Process"];

/// Folders and programs of this machine.
#[derive(Debug, Clone)]
pub struct Local {
    pub home: PathBuf,
    /// GSV's configuration folder, which has `node.toml`.
    pub config_dir: PathBuf,
    /// The folder of the sandbox, outside GSV's private ones.
    pub cache_dir: PathBuf,
    /// `gsv`, which supervises and confines commands.
    pub program: Option<PathBuf>,
}

/// Why the node does not start.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The policy, or this program, can't be used.
    Policy(String),
    /// An option of the program.
    Option(String),
}

/// Adds what the policy says. `version`: of this package.
///
/// # Errors
/// The policy can't be read, or can't be kept.
pub fn apply(config: NodeConfig, local: &Local, version: &str) -> Result<NodeConfig, Refused> {
    let file = local.config_dir.join("node.toml");
    let policy = read(&file, &local.home).map_err(Refused::Policy)?;
    let shown = file.display();
    if !config.own.is_empty() && !policy.escalation {
        return Err(Refused::Policy(format!(
            "{shown} says `escalation = false`, so nothing runs outside the sandbox, and a tool of this program would: register no tools, or remove `escalation`."
        )));
    }
    let runs_commands = config
        .only
        .as_ref()
        .is_none_or(|names| COMMANDS.iter().any(|name| names.contains(*name)));
    if !runs_commands {
        return Ok(config);
    }
    let Some(program) = &local.program else {
        return without_program(config, &policy, &shown.to_string());
    };
    check_program(program, version).map_err(Refused::Option)?;
    let own = local.cache_dir.join("node").join(&config.id);
    Ok(NodeConfig {
        supervisor: policy.supervisor(program),
        sandbox: Some(policy.sandbox_settings(local.home.clone(), own, program.clone())),
        ..config
    })
}

/// Commands run without a sandbox and without limits, which the gateway is told, so it asks about each. What the owner has named is not
/// left out silently.
fn without_program(config: NodeConfig, policy: &NodePolicy, shown: &str) -> Result<NodeConfig, Refused> {
    use gsv_node::sandbox::Profile;
    let needs_sandbox = policy.sandbox.is_some_and(|profile| profile != Profile::Off);
    let needs_limits = policy.memory_mib.is_some() || policy.processes.is_some();
    if needs_sandbox || needs_limits {
        let what = if needs_sandbox { "a sandbox" } else { "limits" };
        return Err(Refused::Option(format!(
            "{shown} names {what} for commands, which needs the program gsv: give its path as the option `program`, or do not offer Bash and Process."
        )));
    }
    Ok(config)
}

/// The program and the package speak to each other in a form that may change with each version.
fn check_program(program: &Path, version: &str) -> Result<(), String> {
    let shown = program.display();
    let ran = Command::new(program).arg("--version").output();
    let ran = ran.map_err(|error| format!("The option `program`: {shown} can't be run: {error}."))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let said = said.lines().next().unwrap_or_default().trim();
    if said == format!("gsv {version}") || said.starts_with(&format!("gsv {version} ")) {
        return Ok(());
    }
    let said: String = said.chars().take(80).collect();
    Err(format!(
        "The option `program`: {shown} is {said:?}, and this package needs gsv {version}."
    ))
}

/// A file that does not exist means the defaults.
fn read(path: &Path, home: &Path) -> Result<NodePolicy, String> {
    let shown = path.display();
    let unusable = |why: &str| format!("{shown} can't be used: {why}.");
    let text = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match dangling_link(path) {
            Some(found) => return Err(unusable(&found.to_string())),
            None => String::new(),
        },
        Err(error) => return Err(unusable(&error.to_string())),
        Ok(file) => {
            let meta = file.metadata().map_err(|error| unusable(&error.to_string()))?;
            if !meta.is_file() {
                return Err(unusable("it is not a file"));
            }
            if meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(unusable("it belongs to another user"));
            }
            if meta.mode() & OTHERS != 0 {
                return Err(unusable(
                    "it is open to other users; check its content, then run `chmod 600` on it",
                ));
            }
            let mut text = String::new();
            let bytes = file.take(MAX_BYTES + 1).read_to_string(&mut text);
            if bytes.map_err(|error| unusable(&error.to_string()))? as u64 > MAX_BYTES {
                return Err(unusable(&format!("it has more than {MAX_BYTES} bytes")));
            }
            text
        }
    };
    NodePolicy::parse(&text, home).map_err(|problem| format!("{shown} is not valid: {problem}."))
}
