//! Starts a node: settings, ledger, tools, link and background tasks. The loop is in [`crate::dispatch`].

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gsv_link::ledger::{Disk, Ledger, LedgerError, RealDisk};
use gsv_link::{AddressProvider, Link, LinkError, Mode, Options};
use gsv_protocol::types::{
    Capability, NodeDesktop, NodeRuntime, NodeSandbox, SandboxProfile, SandboxTier, ToolDefinition,
};
use gsv_tools::beneath::{Scope, overlaps};
use gsv_tools::{Config, Sandbox, Supervisor, Tool, ToolBox};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::background::store_events;
use crate::calls::Calls;
use crate::connection::Connection;
use crate::context::Context;
use crate::delivery::Delivery;
use crate::desktop::Desktop;
use crate::dispatch::dispatch;
use crate::error::NodeError;
use crate::event::EventSink;
use crate::images::Uploader;
use crate::log::{Level, Log, now_ms};
use crate::mask::Mask;
use crate::progress::ProgressFeed;
use crate::recover;
use crate::report::{Reporter, StatusSink};
use crate::sandbox::{self, Confinement, Profile, SandboxSettings, Tier, clear_temporary, describe, opens_gateway};
use crate::scrub::Scrub;
use crate::shared_ledger::SharedLedger;
use crate::tasks::Tasks;
use crate::transfer::Ends;

/// The node keeps what its file tools change, and answers `undo.request`.
const UNDO: &str = "filesystem.undo";
/// The node answers `transfer.send` and `transfer.receive`, goes on after an interruption, and checks what it has received.
const TRANSFER: &str = "filesystem.transfer";
/// File tools stay in the workspace. Without it the gateway takes what they read outside for anyone's.
const CONFINED: &str = "filesystem.confined";
/// Events of background commands that wait to be stored.
const EVENTS: usize = 16;

/// A node's settings.
#[derive(Clone)]
pub struct NodeConfig {
    /// The machine's name; the prefix of its tools.
    pub id: String,
    pub url: String,
    /// The gateway's present address, where it may move.
    pub address: Option<AddressProvider>,
    pub token: Option<String>,
    /// Must exist. Paths are relative to it and stay in it.
    pub workspace: PathBuf,
    /// For this node alone: `ledger/`, `calls/`, `undo/` and `node.log` are made in it.
    pub state_dir: PathBuf,
    /// Folders that file tools can't reach besides `state_dir`, and that the workspace must not overlap.
    pub private: Vec<PathBuf>,
    /// Paths may leave the workspace.
    pub allow_outside: bool,
    pub version: String,
    pub supervisor: Supervisor,
    /// `None`: commands may do what the user of the node may do.
    pub sandbox: Option<SandboxSettings>,
    /// Runs commands; by default the user's login shell.
    pub shell: Option<PathBuf>,
    /// Which of GSV's tools the node offers. `None`: all of them.
    pub only: Option<BTreeSet<String>>,
    /// Tools of the program that runs the node.
    pub own: Vec<Arc<dyn Tool>>,
    /// Gets what happens to the node.
    pub events: Option<EventSink>,
    /// Writes the ledger's files.
    pub disk: Arc<dyn Disk>,
}

impl NodeConfig {
    pub fn new(
        id: impl Into<String>,
        url: impl Into<String>,
        workspace: impl Into<PathBuf>,
        state_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            id: id.into(),
            url: url.into(),
            address: None,
            token: None,
            workspace: workspace.into(),
            state_dir: state_dir.into(),
            private: Vec::new(),
            allow_outside: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            supervisor: Supervisor::default(),
            sandbox: None,
            shell: None,
            only: None,
            own: Vec::new(),
            events: None,
            disk: Arc::new(RealDisk),
        }
    }
}

/// Runs a node until `shutdown` completes or the node can't go on. Running commands go on, and the next start with the same
/// state folder follows them; waiting calls are left to the gateway, which asks again.
///
/// # Errors
/// The cause when the node can't start; later, that the gateway refuses its token, or that a newer node with the same id took over.
pub async fn run(
    config: NodeConfig,
    status: StatusSink,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    if !is_node_id(&config.id) {
        return Err(NodeError::BadId {
            id: config.id.chars().take(80).collect(),
        });
    }
    make_folder(&config.state_dir)?;
    let log_path = config.state_dir.join("node.log");
    let log = Log::open(log_path.clone(), Mask::new(config.token.clone()))
        .map_err(|source| NodeError::Folder { path: log_path, source })?;
    let reporter = Reporter {
        log: Arc::new(log),
        status,
    };
    let outcome = match check_workspace(&config.workspace, &private_folders(&config)) {
        Ok(()) => start(config, &reporter, shutdown).await,
        Err(error) => Err(error),
    };
    match &outcome {
        Ok(()) => reporter.connection(Level::Info, "The node has stopped.", &Connection::Ended),
        // The loop has said why, and what to do depends on who started the node.
        Err(NodeError::Link(LinkError::Refused { .. })) => {
            reporter
                .log
                .write(Level::Error, "The node has ended.", &Connection::Ended.fields());
        }
        Err(error) => reporter
            .log
            .write(Level::Error, &error.to_string(), &Connection::Ended.fields()),
    }
    outcome
}

async fn start(
    config: NodeConfig,
    reporter: &Reporter,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), NodeError> {
    let log = Arc::clone(&reporter.log);
    let ledger_dir = config.state_dir.join("ledger");
    let disk = Arc::clone(&config.disk);
    let opened = tokio::task::spawn_blocking(move || Ledger::open_on(&ledger_dir, now_ms(), disk)).await;
    let ledger = opened.unwrap_or_else(|error| {
        Err(LedgerError::Io {
            doing: "open",
            source: std::io::Error::other(error),
        })
    })?;
    let ledger = SharedLedger::new(ledger, Arc::clone(&log));
    let scrub = Scrub::new(config.token.clone());
    let Confinement { sandbox, missing } = confine(&config).await?;
    let level = sandbox.as_ref().map(|sandbox| sandbox.level.clone());
    let sandbox_report = reported(sandbox.as_ref(), missing.clone());
    let (exec_sink, exec_events) = mpsc::channel(EVENTS);
    let tools = ToolBox::new(Config {
        scope: if config.allow_outside {
            Scope::Anywhere
        } else {
            Scope::Workspace
        },
        supervisor: config.supervisor.clone(),
        shell: config.shell.clone(),
        sandbox,
        events: Some(exec_sink),
        private: private_folders(&config),
        undo: Some(config.state_dir.join("undo")),
        ..Config::new(&config.workspace, config.state_dir.join("calls"))
    })?;
    let tools = match &config.only {
        Some(names) => tools.only(names),
        None => tools,
    };
    let tools = Arc::new(tools.with(config.own.iter().cloned())?);
    let survivors = recover::recover(&ledger, &tools, &log, &scrub).await;
    let desktop = Desktop::find();
    let (link, events) = Link::connect(options(
        &config,
        &tools,
        sandbox_report,
        desktop.reported(),
        ledger.clone(),
    ))
    .await?;
    let (online_sink, online) = watch::channel(false);
    let uploader = Uploader {
        url: config.url.clone(),
        address: config.address.clone(),
        token: config.token.clone(),
    };
    let tasks = Arc::new(Tasks::default());
    let transfers = Ends::of_node(link.clone(), &tools, Arc::clone(&tasks), Arc::clone(&log));
    let context = Arc::new(Context {
        node_id: config.id.clone(),
        calls: Arc::new(Calls::default()),
        desktop,
        delivery: Arc::new(Delivery::new(link.clone(), ledger.clone(), Arc::clone(&log))),
        progress: ProgressFeed {
            link: link.clone(),
            online,
            tasks: Arc::clone(&tasks),
            scrub: scrub.clone(),
        },
        link,
        ledger,
        tools,
        log,
        events: config.events.clone(),
        scrub,
        uploader,
        tasks,
        transfers,
    });
    context.tasks.spawn(store_events(Arc::clone(&context), exec_events));
    // Before any call: it removes unfinished folders, and a new call could be making one.
    match context.tools.recover().await {
        Ok(0) if survivors.is_empty() => {
            if let Some(settings) = config.sandbox.clone() {
                let cleared = tokio::task::spawn_blocking(move || clear_temporary(&settings));
                // Files that are left are removed at the next start.
                let _ = cleared.await;
            }
        }
        Ok(_) => {}
        Err(error) => reporter.report(
            Level::Error,
            &format!("Background commands of an earlier start can't be recovered: {error}"),
        ),
    }
    for survivor in survivors {
        context.follow(survivor);
    }
    context.tasks.spawn(Arc::clone(&context.delivery).run());
    announce(reporter, &config, level.as_ref(), missing.as_deref());
    let outcome = dispatch(&context, reporter, events, online_sink, shutdown).await;
    context.tasks.end().await;
    outcome
}

fn announce(reporter: &Reporter, config: &NodeConfig, level: Option<&sandbox::Level>, missing: Option<&str>) {
    reporter.report(
        Level::Info,
        &format!(
            "Node {} starts; its workspace is {}.",
            config.id,
            config.workspace.display()
        ),
    );
    match (level, missing) {
        (Some(level), _) => reporter.report(
            Level::Info,
            &format!("Commands run in the sandbox {}.", describe(level)),
        ),
        (None, Some(why)) => reporter.report(
            Level::Warn,
            &format!("Commands run without a sandbox, so the gateway asks about each that may change something: {why}"),
        ),
        (None, None) if config.sandbox.is_some() => reporter.report(
            Level::Warn,
            "Commands run without a sandbox, with all your rights, because node.toml says `sandbox = \"off\"`. With `sandbox = \"workspace\"` there, commands write only in the workspace.",
        ),
        (None, None) => reporter.log.write(Level::Info, "commands run without a sandbox", &[]),
    }
    let present = config.address.as_ref().and_then(|address| address());
    let url = present.as_deref().unwrap_or(&config.url);
    if let Some(warning) = (config.sandbox.as_ref()).and_then(|settings| opens_gateway(settings, level, url)) {
        reporter.report(Level::Warn, &warning);
    }
}

/// Tests the sandbox before any command can run.
async fn confine(config: &NodeConfig) -> Result<Confinement, NodeError> {
    let Some(settings) = config.sandbox.clone() else {
        return Ok(Confinement::default());
    };
    let (profile, workspace, private) = (settings.profile, config.workspace.clone(), private_folders(config));
    let state_dir = config.state_dir.clone();
    let made = tokio::task::spawn_blocking(move || sandbox::confine(&settings, &workspace, &private, &state_dir)).await;
    made.unwrap_or_else(|error| {
        Err(NodeError::Sandbox {
            profile,
            reason: format!("its test was stopped: {error}."),
        })
    })
}

/// Characters of a reason that the gateway gets.
const MISSING_CHARS: usize = 500;

/// The sandbox as the gateway gets it.
fn reported(sandbox: Option<&Sandbox>, missing: Option<String>) -> NodeSandbox {
    let level = sandbox.map(|sandbox| &sandbox.level);
    let network = sandbox.and_then(|sandbox| sandbox.network.as_ref());
    let profile = level.map_or(Profile::Off, |level| level.profile);
    NodeSandbox {
        profile: match profile {
            Profile::Off => SandboxProfile::Off,
            Profile::Workspace => SandboxProfile::Workspace,
            Profile::WorkspaceNet => SandboxProfile::WorkspaceNet,
            Profile::Strict => SandboxProfile::Strict,
        },
        tier: level.map(|level| match level.tier {
            Tier::Bubblewrap => SandboxTier::Bubblewrap,
            Tier::Landlock => SandboxTier::Landlock,
            Tier::Seatbelt => SandboxTier::Seatbelt,
        }),
        gaps: level.map(|level| level.gaps.iter().map(|gap| gap.words().to_owned()).collect()),
        missing: missing.map(|why| why.chars().take(MISSING_CHARS).collect()),
        addresses: network.map(|network| {
            let of_owner = network.listed.iter().filter(|rule| rule.needs_owner());
            of_owner.map(ToString::to_string).collect()
        }),
    }
}

fn options(
    config: &NodeConfig,
    tools: &ToolBox,
    sandbox: NodeSandbox,
    desktop: NodeDesktop,
    ledger: SharedLedger,
) -> Options {
    let definitions = tools.definitions().into_iter().map(|tool| ToolDefinition {
        name: tool.name,
        description: tool.description,
        input_schema: if let Value::Object(schema) = tool.input_schema {
            schema
        } else {
            serde_json::Map::new()
        },
        idempotent: tool.idempotent.then_some(true),
        timeout_ms: tool.timeout_ms,
    });
    let capabilities = |names: &[&str]| {
        names
            .iter()
            .map(|name| Capability((*name).to_owned()))
            .collect::<Vec<_>>()
    };
    let by_tool = tools.tool_capabilities();
    let mut host = tools.capabilities();
    host.extend(tools.can_undo().then_some(UNDO));
    host.extend(tools.can_transfer().then_some(TRANSFER));
    host.extend((!config.allow_outside).then_some(CONFINED));
    let runtime = NodeRuntime {
        host_capabilities: capabilities(&host),
        tool_capabilities: by_tool
            .into_iter()
            .map(|(tool, names)| (tool, capabilities(names)))
            .collect(),
        sandbox: Some(sandbox),
        desktop: Some(desktop),
        workspace: folder_name(&config.workspace),
        file_roots: tools
            .file_roots()
            .and_then(|names| names.into_iter().map(reported_name).collect()),
    };
    Options {
        address: config.address.clone(),
        token: config.token.clone(),
        version: config.version.clone(),
        tools: Some(definitions.collect()),
        node_runtime: Some(runtime),
        ledger: Some(Arc::new(move || ledger.listing())),
        reconnect: true,
        ..Options::new(config.url.as_str(), Mode::Node, config.id.as_str())
    }
}

/// As many characters as the contract takes.
const MAX_FOLDER_NAME: usize = 1024;
/// The name of a folder without links. None: it is not text, or too long to be reported.
fn folder_name(folder: &Path) -> Option<String> {
    reported_name(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
}
/// None: it is not text, or too long to be reported.
fn reported_name(folder: &Path) -> Option<String> {
    let name = folder.to_str().filter(|name| name.len() <= MAX_FOLDER_NAME);
    name.map(str::to_owned)
}

fn private_folders(config: &NodeConfig) -> Vec<PathBuf> {
    let mut folders = config.private.clone();
    folders.push(config.state_dir.clone());
    folders
}

/// Refuses a workspace that overlaps GSV's own folders, whose files decide who may use this machine.
///
/// # Errors
/// The first folder of `private` that overlaps.
pub fn check_workspace(workspace: &Path, private: &[PathBuf]) -> Result<(), NodeError> {
    // A workspace that can't be read is refused with a better message when it is opened.
    let overlapping = private
        .iter()
        .find(|folder| overlaps(workspace, folder).unwrap_or(false));
    match overlapping {
        Some(folder) => Err(NodeError::PrivateWorkspace {
            workspace: workspace.to_owned(),
            folder: folder.clone(),
        }),
        None => Ok(()),
    }
}

fn is_node_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    id.len() <= 64 && id.starts_with(is_plain) && id.chars().all(|c| is_plain(c) || matches!(c, '_' | '.' | '-'))
}

fn make_folder(path: &Path) -> Result<(), NodeError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| NodeError::Folder {
            path: path.to_owned(),
            source,
        })
}
