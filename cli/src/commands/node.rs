//! `gsv node`: runs this machine's tools for the agent, in the foreground. Creates a token for this one id if it has an admin
//! token, and stores only the new one.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gsv_link::{AddressProvider, LinkError};
use gsv_node::sandbox::{Profile, Program, SandboxSettings};
use gsv_node::{Level, NodeConfig, NodeError, Status, Supervisor, check_workspace};
use gsv_protocol::NoParams;
use gsv_protocol::methods::{TokensCreate, TokensList};
use gsv_protocol::types::{TokenKind, TokensCreateParams, TokensCreateResult};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::context::Context;
use super::local::Local;
use crate::args::Node;
use crate::clean::clean;
use crate::client::{Account, find_url, present_url};
use crate::config::{Config, Key, check_node_id};
use crate::embedded::layout::Layout;
use crate::embedded::up::is_loopback;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::node_policy::NodePolicy;
use crate::output::{Output, Style};
use crate::units::now_ms;
use crate::width::cut;
use crate::{paths, private_file};

/// The first argument of the process that supervises one command of the agent; see `main`.
pub const SUPERVISE: &str = "__supervise";
/// The one of the process that becomes a confined command.
pub const CONFINE: &str = "__confine";
/// The one of the process that tests a sandbox from inside.
pub const CANARY: &str = "__canary";

/// The folder that a node was last started with, for those that look at it from outside. In its state folder.
const WORKSPACE: &str = "workspace";

pub async fn run(context: &Context, args: Node) -> Outcome {
    let out = context.out;
    let policy = NodePolicy::load()?;
    let mut config = Config::load()?;
    let stored = |key| config.get(key).map(str::to_owned);
    let Some(id) = args.id.or_else(|| stored(Key::NodeId)).or_else(host_name) else {
        return Err(Failure::usage(
            "This machine has no name yet.",
            "Name it, for example: `gsv node --id laptop`.",
        ));
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
    for dir in [&home, &home.join("node"), &state_dir] {
        paths::ensure_private_dir(dir)?;
    }
    private_file::write(&state_dir.join(WORKSPACE), workspace.as_os_str().as_encoded_bytes())?;
    // An address that was named is meant; the one of this machine's gateway changes with its port.
    let layout = Layout::find()?;
    let is_local =
        context.global.url.as_ref().is_none_or(String::is_empty) && Local::look(&layout).is_at(&layout, &url);
    let address: Option<AddressProvider> = is_local.then(|| Arc::new(move || present_url(&layout)) as _);
    let mut tokens = Tokens {
        id: &id,
        url: &url,
        is_ours: config.get(Key::Url).is_none_or(|known| known == url),
        config: &mut config,
        file: state_dir.join("token.json"),
    };
    let token = tokens.find(context).await?;
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
        supervisor: Supervisor::Program {
            program: exe,
            args: vec![OsString::from(SUPERVISE)],
            limits: policy.limits(),
        },
        private,
        sandbox: Some(sandbox_settings(policy, &id)?),
        ..NodeConfig::new(id.as_str(), url, workspace, state_dir)
    };
    let signals = Signals::listen()?;
    let ended = gsv_node::run(
        settings,
        Arc::new(move |status| report(out, &status)),
        signals.shutdown(),
    )
    .await;
    ended.map_err(|error| refused(&error, &id, is_given, has_admin).unwrap_or_else(|| fatal(&error)))
}

/// GSV's own folders.
pub fn private_folders() -> Outcome<Vec<PathBuf>> {
    Ok(vec![paths::state_dir()?, paths::config_dir()?])
}

/// What the owner wants for commands; `name`: of the sandbox's own folder.
pub fn sandbox_settings(policy: NodePolicy, name: &str) -> Outcome<SandboxSettings> {
    Ok(SandboxSettings {
        profile: policy.sandbox.unwrap_or(Profile::Workspace),
        is_named: policy.sandbox.is_some(),
        may_leave: policy.escalation,
        writable: policy.writable,
        readable: policy.readable,
        caches: policy.caches,
        hosts: policy.hosts,
        env: policy.env,
        home: paths::home()?,
        own: paths::cache_dir()?.join("node").join(name),
        program: Program {
            path: env::current_exe().or_fail("find the gsv program", "Install it again.")?,
            confine: CONFINE.into(),
            canary: CANARY.into(),
        },
    })
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
            "Give a valid token of this node with GSV_TOKEN.".to_owned()
        } else if has_admin {
            format!("To make a new token and go on: `gsv node --id {id}`.")
        } else {
            get_token(id)
        },
        ..Failure::from_wire(error)
    })
}

fn get_token(id: &str) -> String {
    format!(
        "On a machine with an admin token, run `gsv token create --scope node --node {id}`; then set it here: `gsv local-config set node.token -` and `gsv local-config set node.id {id}`."
    )
}

fn fatal(error: &NodeError) -> Failure {
    Failure::new(Exit::from_code(error.exit_status()), error.to_string(), "")
}

/// The workspace that this machine's node was last started with: of the node that the local config names, else of any. None: it is not
/// known, or is no longer there.
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
    named.into_iter().chain(others).find_map(|dir| {
        let text = private_file::read_private(&dir.join(WORKSPACE), "").ok()??;
        Some(PathBuf::from(text)).filter(|workspace| workspace.is_absolute() && workspace.is_dir())
    })
}

/// `gsv node --id` with this machine's name, for advice.
pub fn start_words() -> String {
    format!("gsv node --id {}", host_name().as_deref().unwrap_or("laptop"))
}

/// The name of this machine without its domain, if it can be a node's id.
fn host_name() -> Option<String> {
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

/// The current folder, or `~/gsv` where the current one contains GSV's own folders: a home folder does.
fn default_workspace(out: Output, private: &[PathBuf]) -> Outcome<PathBuf> {
    let here = workspace(None)?;
    if check_workspace(&here, private).is_ok() {
        out.note(&format!(
            "The agent works in {}, the present folder. Choose another one with --workspace DIR.",
            here.display()
        ));
        return Ok(here);
    }
    let dir = paths::home()?.join("gsv");
    fs::create_dir_all(&dir).or_fail(
        format_args!("make the folder {}", dir.display()),
        "Name a folder for the agent's work: `gsv node --workspace DIR`.",
    )?;
    out.note(&format!(
        "The agent works in {}, because {} has GSV's own files. Choose another folder with --workspace DIR.",
        dir.display(),
        here.display()
    ));
    workspace(Some(dir))
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

/// The kind of a token, which is part of it. Tokens of other gateways have no kind.
fn kind_of(token: &str) -> Option<&str> {
    token.strip_prefix("gsv_")?.split_once('_').map(|(kind, _)| kind)
}

/// The token of one node. The machine's first node has it in the local config, every other one in a file of its own.
struct Tokens<'a> {
    id: &'a str,
    url: &'a str,
    config: &'a mut Config,
    /// The local config is for this gateway, or for none yet.
    is_ours: bool,
    file: PathBuf,
}

/// `token.json`.
#[derive(Serialize, Deserialize)]
struct Stored {
    url: String,
    token: String,
}

impl Tokens<'_> {
    /// The node's own token: given, stored, or created now with an admin token.
    async fn find(&mut self, context: &Context) -> Outcome<String> {
        let given = context.global.token.clone().filter(|token| !token.is_empty());
        if let Some(token) = &given {
            Key::Token.check(token)?;
            if kind_of(token) != Some("admin") {
                return Ok(token.clone());
            }
        }
        let stored = self.stored().filter(|_| given.is_none());
        let known = || {
            self.config
                .get(Key::Token)
                .filter(|token| kind_of(token) == Some("admin"))
        };
        let admin = given.or_else(|| known().map(str::to_owned));
        let admin = admin.map(|token| Account {
            url: self.url.to_owned(),
            token,
        });
        match (stored, admin) {
            (Some(stored), None) => Ok(stored),
            (Some(stored), Some(admin)) if !is_void(&admin, &stored).await => Ok(stored),
            (stored, Some(admin)) => {
                if stored.is_some() {
                    context
                        .out
                        .aside("the stored node token is no longer valid; creating another");
                }
                self.create(context, &admin).await
            }
            (None, None) => Err(self.missing()),
        }
    }

    fn missing(&self) -> Failure {
        let id = self.id;
        Failure::new(
            Exit::Auth,
            format!("There is no token for the node `{id}`."),
            get_token(id),
        )
    }

    /// Whether the local config has, or will have, the token of this node.
    fn is_in_config(&self) -> bool {
        self.is_ours && self.config.get(Key::NodeId).is_none_or(|first| first == self.id)
    }

    fn stored(&self) -> Option<String> {
        if self.is_ours && self.config.get(Key::NodeId) == Some(self.id) {
            return self.config.get(Key::NodeToken).map(str::to_owned);
        }
        let text = private_file::read_private(&self.file, "").ok()??;
        let stored: Stored = serde_json::from_str(&text).ok()?;
        // The gateway of this machine may have moved to another port.
        let is_same = stored.url == self.url || (is_loopback(&stored.url) && is_loopback(self.url));
        is_same.then_some(stored.token)
    }

    async fn create(&mut self, context: &Context, admin: &Account) -> Outcome<String> {
        let host = rustix::system::uname();
        let label = clean(&format!("gsv node on {}", host.nodename().to_string_lossy()));
        let params = TokensCreateParams {
            kind: TokenKind::Node,
            node_id: Some(self.id.to_owned()),
            channel: None,
            account_id: None,
            label: Some(cut(&label, 100)),
            expires_in_ms: None,
        };
        let client = admin.connect().await?;
        let TokensCreateResult { token, .. } = client.call::<TokensCreate>(params).await?;
        client.close().await;
        if self.is_in_config() {
            if self.config.get(Key::Url).is_none() {
                self.config.set(Key::Url, self.url)?;
            }
            self.config.set(Key::NodeId, self.id)?;
            self.config.set(Key::NodeToken, &token)?;
            self.config.save()?;
        } else {
            let stored = Stored {
                url: self.url.to_owned(),
                token: token.clone(),
            };
            private_file::write(&self.file, serde_json::to_string_pretty(&stored).unwrap_or_default())?;
        }
        context
            .out
            .aside(&format!("created a token for the node {} and stored it", self.id));
        Ok(token)
    }
}

/// Whether the gateway says that a token is revoked, expired or unknown. If it can't be asked, the node tries the token.
async fn is_void(admin: &Account, token: &str) -> bool {
    let Some(id) = token.split('_').nth(2) else {
        return false;
    };
    let Ok(client) = admin.connect().await else {
        return false;
    };
    let listed = client.call::<TokensList>(NoParams {}).await;
    client.close().await;
    let now = now_ms();
    listed.is_ok_and(|listed| {
        let found = listed.tokens.iter().find(|entry| entry.token_id.as_str() == id);
        found.is_none_or(|entry| entry.revoked_at.is_some() || entry.expires_at.is_some_and(|at| at <= now))
    })
}
