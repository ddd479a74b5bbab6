//! `gsv node`: runs this machine's tools for the agent, in the foreground. Creates a token for this one id if it has an admin
//! token, and stores only the new one.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gsv_link::ledger::LedgerError;
use gsv_link::{AddressProvider, LinkError};
use gsv_node::policy::NodePolicy;
use gsv_node::sandbox::SandboxSettings;
use gsv_node::{Level, NodeConfig, NodeError, Status, check_workspace};
use gsv_protocol::errors;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::context::Context;
use super::local::Local;
use super::node_files::log_file;
use super::node_token::{INVITATION, Tokens, get_token, kind_of, name_taken, other_name};
use super::own_gateway::is_own;
use crate::args::Node;
use crate::clean::clean;
use crate::client::{find_url, present_url};
use crate::config::{Config, Key, check_node_id};
use crate::embedded::layout::Layout;
use crate::embedded::{home_lock, log};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::node_policy;
use crate::output::{Output, Style};
use crate::units::{now_ms, timestamp};
use crate::{paths, private_file};

/// A file in the node's state folder: the workspace that the node was last started with, for commands such as `gsv doctor`.
const WORKSPACE: &str = "workspace";

pub async fn run(context: &Context, args: Node) -> Outcome {
    let id = args.id.clone().filter(|_| args.service);
    serve(context, args).await.map_err(|ended| {
        if let Some(id) = id {
            log_failure(&id, &ended);
        }
        ended.failure
    })
}

/// How a node ended.
struct Ended {
    failure: Failure,
    /// The node has written what happened to its log, but not what to do.
    is_logged: bool,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        let is_logged = false;
        Self { failure, is_logged }
    }
}

/// A service shows its words to no one.
fn log_failure(id: &str, Ended { failure, is_logged }: &Ended) {
    let message = if *is_logged {
        failure.next.clone()
    } else {
        format!("{} {}", failure.message, failure.next)
    };
    if message.is_empty() {
        return;
    }
    let line = json!({ "time": timestamp(now_ms()), "level": "error", "message": clean(&message) });
    if let Ok(file) = log_file(id)
        && let Ok(mut log) = log::open(&file)
    {
        let _ = writeln!(log, "{line}");
    }
}

async fn serve(context: &Context, args: Node) -> Result<(), Ended> {
    let out = context.out;
    let policy = node_policy::load()?;
    let mut config = Config::load()?;
    let stored = |key| config.get(key).map(str::to_owned);
    let Some(id) = args.id.or_else(|| stored(Key::NodeId)).or_else(host_name) else {
        return Err(no_name().into());
    };
    check_node_id(&id).map_err(|problem| {
        Failure::usage(
            format!("`{id}` is not valid: {problem}."),
            "Choose another name with --id.",
        )
    })?;
    let home = paths::state_dir()?;
    let private = private_folders()?;
    let named = args.workspace.or_else(|| stored(Key::NodeWorkspace).map(PathBuf::from));
    let workspace = match named {
        Some(dir) => workspace(Some(dir))?,
        None => default_workspace(out, &private)?,
    };
    check_workspace(&workspace, &private).map_err(|error| fatal(&error))?;
    let url = find_url(&context.global, &config)?;
    let state_dir = home.join("node").join(&id);
    paths::ensure_private_dir(&home)?;
    // Until the node ends: no restore replaces its ledger.
    let _home = home_lock::share(&home)?;
    for dir in [&home.join("node"), &state_dir] {
        paths::ensure_private_dir(dir)?;
    }
    private_file::write(&state_dir.join(WORKSPACE), workspace.as_os_str().as_encoded_bytes())?;
    // An address that was given is used as it is. That of this machine's gateway is looked up again, because its port may change.
    let layout = Layout::find()?;
    let is_local =
        context.global.url.as_ref().is_none_or(String::is_empty) && is_own(&Local::look(&layout), &layout, &url, None);
    let address: Option<AddressProvider> = is_local.then(|| Arc::new(move || present_url(&layout)) as _);
    let mut tokens = Tokens {
        id: &id,
        url: &url,
        is_ours: config.get(Key::Url).is_none_or(|known| known == url),
        config: &mut config,
        file: state_dir.join("token.json"),
        command: "gsv node",
    };
    let token = tokens.find(context).await?;
    let is_nodes = kind_of(&token) == Some("node");
    let exe = env::current_exe().or_fail("find the gsv program", "Install it again.")?;
    let is_given = context.global.token.as_ref().is_some_and(|given| *given == token);
    let has_admin = config
        .get(Key::Token)
        .is_some_and(|token| kind_of(token) == Some("admin"));
    let settings = NodeConfig {
        token: Some(token),
        address,
        allow_outside: args.allow_outside,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        supervisor: policy.supervisor(&exe),
        private,
        sandbox: Some(sandbox_settings(policy, &id)?),
        ..NodeConfig::new(id.as_str(), url, workspace, state_dir)
    };
    let signals = Signals::listen()?;
    let ended = gsv_node::run(
        settings,
        Arc::new(move |status| {
            // They are in the node's log as well.
            if !args.service {
                report(out, &status);
            }
        }),
        signals.shutdown(),
    )
    .await;
    ended.map_err(|error| {
        let failure = refused_name(&error, &id, is_nodes, has_admin)
            .or_else(|| refused(&error, &id, is_given, has_admin))
            .or_else(|| runs_already(&error, &id))
            .unwrap_or_else(|| fatal(&error));
        let is_logged = matches!(
            error,
            NodeError::Link(LinkError::Refused { .. } | LinkError::Replaced { .. })
        );
        Ended { failure, is_logged }
    })
}

pub fn no_name() -> Failure {
    Failure::usage(
        "This machine has no name yet.",
        "Name it, for example: `gsv node --id laptop`.",
    )
}

/// GSV's own folders.
pub fn private_folders() -> Outcome<Vec<PathBuf>> {
    Ok(vec![paths::state_dir()?, paths::config_dir()?])
}

/// The sandbox of commands, as `node.toml` says. `name`: that of the sandbox's own folder.
pub fn sandbox_settings(policy: NodePolicy, name: &str) -> Outcome<SandboxSettings> {
    let program = env::current_exe().or_fail("find the gsv program", "Install it again.")?;
    let own = paths::cache_dir()?.join("node").join(name);
    Ok(policy.sandbox_settings(paths::home()?, own, program))
}

/// A node with a valid token of its own is refused only while another machine is connected under its name.
fn refused_name(error: &NodeError, id: &str, is_nodes: bool, has_admin: bool) -> Option<Failure> {
    let NodeError::Link(LinkError::Refused { error }) = error else {
        return None;
    };
    let next = if has_admin {
        other_name("gsv node")
    } else {
        "Use another name: `gsv invite node --name OTHER` on the gateway's machine, then run its line here.".to_owned()
    };
    (is_nodes && error.reason == errors::AUTH_FORBIDDEN.reason).then(|| Failure {
        details: Failure::from_wire(error).details,
        ..name_taken(id, &next)
    })
}

fn runs_already(error: &NodeError, id: &str) -> Option<Failure> {
    let NodeError::Ledger(LedgerError::Locked { pid, .. }) = error else {
        return None;
    };
    Some(Failure::new(
        Exit::from_code(error.exit_status()),
        format!("Node `{id}` is already running (pid {pid})."),
        "Stop it, or start this one under another name (`gsv node --id NAME`) or with another state folder (GSV_HOME=DIR).",
    ))
}

/// The gateway does not accept the node's token: waiting does not help.
fn refused(error: &NodeError, id: &str, is_given: bool, has_admin: bool) -> Option<Failure> {
    let NodeError::Link(LinkError::Refused { error }) = error else {
        return None;
    };
    error.reason.starts_with("auth.").then(|| Failure {
        message: format!(
            "The gateway does not accept the token of the node `{id}`: {}",
            error.message
        ),
        next: if is_given {
            format!("{INVITATION} Or give a valid token of this node with GSV_TOKEN.")
        } else if has_admin {
            format!("To make a new token and go on: `gsv node --id {id}`.")
        } else {
            get_token(id)
        },
        ..Failure::from_wire(error)
    })
}

pub fn fatal(error: &NodeError) -> Failure {
    Failure::new(Exit::from_code(error.exit_status()), error.to_string(), "")
}

/// The workspace with which this machine's node was last started: the node that the local config names, else any node. None: it is
/// unknown, or no longer exists.
pub fn last_workspace(home: &Path, config: Option<&Config>) -> Option<PathBuf> {
    let nodes = home.join("node");
    let named = config
        .and_then(|config| config.get(Key::NodeId))
        .map(|id| nodes.join(id));
    let others = fs::read_dir(&nodes)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    named.into_iter().chain(others).find_map(|dir| workspace_of(&dir))
}

/// That of the last start of one node.
pub fn workspace_of(state_dir: &Path) -> Option<PathBuf> {
    let text = private_file::read_private(&state_dir.join(WORKSPACE), "").ok()??;
    Some(PathBuf::from(text)).filter(|workspace| workspace.is_absolute() && workspace.is_dir())
}

/// `gsv node --id` with this machine's name, as a part of hints.
pub fn start_command() -> String {
    // It is known under this name already.
    if Config::load().is_ok_and(|config| config.get(Key::NodeId).is_some()) {
        return "gsv node".to_owned();
    }
    format!("gsv node --id {}", host_name().as_deref().unwrap_or("laptop"))
}

/// The name of this machine without its domain, if it can be a node's id.
pub fn host_name() -> Option<String> {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let host = host.split('.').next().unwrap_or_default().to_owned();
    check_node_id(&host).is_ok().then_some(host)
}

fn report(out: Output, status: &Status) {
    let style = match status.level {
        Level::Info => Style::Green,
        Level::Warn => Style::Yellow,
        Level::Error => Style::Red,
    };
    out.note(&format!("{} {}", out.paint_note(style, "●"), clean(&status.text)));
}

struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    fn listen() -> Outcome<Self> {
        let catch = |kind| signal(kind).or_fail("listen for signals", "Try again.");
        Ok(Self {
            term: catch(SignalKind::terminate())?,
            int: catch(SignalKind::interrupt())?,
            hup: catch(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            _ = self.hup.recv() => {}
        }
    }

    /// The first signal ends the node in order, a second one immediately.
    async fn shutdown(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(i32::from(Exit::Interrupted.code()));
        });
    }
}

/// The current folder, or `~/gsv` where the current one is or contains the home folder or GSV's own folders.
pub fn default_workspace(out: Output, private: &[PathBuf]) -> Outcome<PathBuf> {
    let here = workspace(None)?;
    let home = paths::home()?;
    let home = fs::canonicalize(&home).unwrap_or(home);
    let Some(why) = no_default(&here, &home, private) else {
        out.note(&format!(
            "The agent works in {}, the current folder. Choose another one with --workspace DIR.",
            here.display()
        ));
        return Ok(here);
    };
    let dir = paths::home()?.join("gsv");
    fs::create_dir_all(&dir).or_fail(
        format_args!("make the folder {}", dir.display()),
        "Name a folder for the agent's work: `gsv node --workspace DIR`.",
    )?;
    out.note(&format!(
        "The agent works in {}, because {} {why}. Choose another folder with --workspace DIR.",
        dir.display(),
        here.display()
    ));
    workspace(Some(dir))
}

/// Why an agent does not work in this folder unless it is named.
fn no_default(here: &Path, home: &Path, private: &[PathBuf]) -> Option<&'static str> {
    if home.starts_with(here) {
        return Some("is or has your home folder");
    }
    check_workspace(here, private).is_err().then_some("has GSV's own files")
}

pub fn workspace(given: Option<PathBuf>) -> Outcome<PathBuf> {
    let dir = given.unwrap_or_else(|| PathBuf::from("."));
    let next = "Name an existing folder: `gsv node --workspace DIR`.";
    let dir = fs::canonicalize(&dir).or_fail(format_args!("use the workspace {}", dir.display()), next)?;
    if dir.is_dir() {
        Ok(dir)
    } else {
        Err(Failure::usage(format!("{} is not a folder.", dir.display()), next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_no_agent_works_in_a_home_folder_that_was_not_named() {
        let why = |here: &str| no_default(Path::new(here), Path::new("/home/user"), &["/srv/gsv".into()]);
        assert_eq!(why("/home/user"), Some("is or has your home folder"));
        assert_eq!(why("/home"), Some("is or has your home folder"));
        assert_eq!(why("/"), Some("is or has your home folder"));
        assert_eq!(why("/srv"), Some("has GSV's own files"));
        assert_eq!(why("/home/user/work"), None);
    }
}
