//! All tools of a node: lists them, gives the effect of a call, runs a call. Contains no tool itself. The program that runs the
//! node can offer fewer of the tools of this crate, and tools of its own beside them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::bash::Bash;
use crate::beneath::{Beneath, Resolver, Scope};
use crate::delete::Delete;
use crate::edit::Edit;
use crate::error::{ToolError, quote};
use crate::exec::{ExecEvent, Reattached, Sandbox, Sessions, Supervisor};
use crate::limits;
use crate::own::{self, BUILT_IN};
use crate::process::Process;
use crate::read::Read;
use crate::search::{Glob, Grep};
use crate::tool::{CallContext, Effect, Tool, ToolDefinition};
use crate::tool_output::ToolOutput;
use crate::undo::{Keeper, Undo, UndoReply, UndoRequest, UndoStore};
use crate::write::{Write, WriteLock};

/// How a node's tools are set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Must exist.
    pub workspace: PathBuf,
    pub scope: Scope,
    pub resolver: Resolver,
    /// Folders that file tools can't reach, wherever they are.
    pub private: Vec<PathBuf>,
    /// Entries of these folders that are compared with a file that has several names; beyond them every such file is refused.
    pub private_entries: usize,
    /// The folder for the output and exit of commands. Created if missing, readable by this user only.
    pub spool: PathBuf,
    /// The folder for what file tools overwrite and delete, for this node alone. `None`: nothing is kept, and nothing can be undone.
    pub undo: Option<PathBuf>,
    pub supervisor: Supervisor,
    /// Confines every command. `None`: commands may do what the user of the node may do.
    pub sandbox: Option<Sandbox>,
    /// Replaces `$SHELL`.
    pub shell: Option<PathBuf>,
    /// Receives the events of background commands.
    pub events: Option<mpsc::Sender<ExecEvent>>,
}

impl Config {
    /// Confined to `workspace`; every other setting has its default.
    pub fn new(workspace: impl Into<PathBuf>, spool: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            scope: Scope::Workspace,
            resolver: Resolver::Auto,
            private: Vec::new(),
            private_entries: limits::PRIVATE_ENTRIES,
            spool: spool.into(),
            undo: None,
            supervisor: Supervisor::Shell,
            sandbox: None,
            shell: None,
            events: None,
        }
    }
}

/// A tool by its name.
struct Offered {
    name: String,
    tool: Arc<dyn Tool>,
}

impl Offered {
    fn new(tool: Arc<dyn Tool>) -> Self {
        let name = tool.definition().name;
        Self { name, tool }
    }
}

/// The tools of one node. Commands are watched by tasks of the runtime in which they were started.
pub struct ToolBox {
    tools: Vec<Offered>,
    sessions: Arc<Sessions>,
    files: Arc<Beneath>,
    undo: Option<Undo>,
}

impl ToolBox {
    pub fn new(config: Config) -> Result<Self, ToolError> {
        let files = Beneath::new(&config.workspace, config.scope, config.resolver).map_err(|error| {
            ToolError::io(
                format!("open the workspace {}", quote(&config.workspace.to_string_lossy())),
                error,
            )
        })?;
        let own_roots = config.sandbox.as_ref().map(|sandbox| sandbox.own_roots.clone());
        let files = files.without(config.private, config.private_entries);
        let files = Arc::new(files.with_roots(own_roots.unwrap_or_default()));
        let sessions = Sessions::new(
            &config.spool,
            config.supervisor,
            config.shell,
            config.sandbox,
            config.events,
        )
        .map_err(|error| {
            ToolError::io(
                format!("make the folder {}", quote(&config.spool.to_string_lossy())),
                error,
            )
        })?;
        let sessions = Arc::new(sessions);
        let write_lock = Arc::new(WriteLock::default());
        let undo = match &config.undo {
            Some(folder) => Some(open_undo(folder, &files, &write_lock)?),
            None => None,
        };
        let keeper = undo
            .as_ref()
            .map_or_else(Keeper::default, |undo| Keeper::new(Arc::clone(&undo.store)));
        let tools: [Arc<dyn Tool>; BUILT_IN.len()] = [
            Arc::new(Bash {
                files: Arc::clone(&files),
                sessions: Arc::clone(&sessions),
            }),
            Arc::new(Process {
                sessions: Arc::clone(&sessions),
            }),
            Arc::new(Read {
                files: Arc::clone(&files),
            }),
            Arc::new(Write {
                files: Arc::clone(&files),
                lock: Arc::clone(&write_lock),
                keeper: keeper.clone(),
            }),
            Arc::new(Edit {
                files: Arc::clone(&files),
                write_lock: Arc::clone(&write_lock),
                keeper: keeper.clone(),
            }),
            Arc::new(Delete {
                files: Arc::clone(&files),
                write_lock,
                keeper,
            }),
            Arc::new(Glob {
                files: Arc::clone(&files),
            }),
            Arc::new(Grep {
                files: Arc::clone(&files),
            }),
        ];
        Ok(Self {
            tools: tools.map(Offered::new).into(),
            sessions,
            files,
            undo,
        })
    }

    /// Offers no other tools than these.
    #[must_use]
    pub fn only(mut self, names: &BTreeSet<String>) -> Self {
        self.tools.retain(|offered| names.contains(&offered.name));
        self
    }

    /// Offers these tools too.
    ///
    /// # Errors
    /// The definition of a tool is not valid, or its name is taken (rule NJ7).
    pub fn with(mut self, own: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolError> {
        for tool in own {
            let definition = tool.definition();
            let problem = own::problem(&definition).or_else(|| {
                let is_taken = self.offers(&definition.name);
                is_taken.then(|| "another tool has this name".to_owned())
            });
            if let Some(problem) = problem {
                let name = quote(&definition.name);
                return Err(ToolError::BadDefinition { name, problem });
            }
            self.tools.push(Offered::new(tool));
        }
        Ok(self)
    }

    pub fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|offered| offered.name == name)
    }

    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|offered| offered.tool.definition()).collect()
    }

    /// The capabilities of all tools, sorted.
    pub fn capabilities(&self) -> Vec<&'static str> {
        let all: BTreeSet<_> = self
            .tools
            .iter()
            .flat_map(|offered| offered.tool.capabilities())
            .copied()
            .collect();
        all.into_iter().collect()
    }

    /// The capabilities of each tool, by its name.
    pub fn tool_capabilities(&self) -> Vec<(String, &'static [&'static str])> {
        self.tools
            .iter()
            .map(|offered| (offered.name.clone(), offered.tool.capabilities()))
            .collect()
    }

    /// Whether a call may be repeated when its outcome is not known.
    pub fn effect(&self, name: &str, args: &Value) -> Result<Effect, ToolError> {
        Ok(self.tool(name)?.effect(args))
    }

    /// Runs one call. Dropping the future does not end a command that was started; cancel through the context does.
    pub async fn invoke(&self, name: &str, args: Value, context: CallContext) -> Result<ToolOutput, ToolError> {
        self.tool(name)?.invoke(args, context).await
    }

    fn tool(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        self.tools
            .iter()
            .find(|offered| offered.name == name)
            .map(|offered| offered.tool.as_ref())
            .ok_or_else(|| {
                let known: Vec<&str> = self.tools.iter().map(|offered| offered.name.as_str()).collect();
                ToolError::Unknown {
                    name: quote(name),
                    known: known.join(", "),
                }
            })
    }

    /// Finds a command that an earlier node started; `spool` is [`crate::StartInfo::spool`].
    pub async fn reattach(&self, spool: &Path) -> Result<Reattached, ToolError> {
        self.sessions.reattach(spool).await
    }

    /// Recovers all commands of an earlier node. Call it once at start, before any call. Ends of background commands that
    /// were not released are sent as events again. Returns how many commands still run.
    pub async fn recover(&self) -> Result<usize, ToolError> {
        self.sessions.recover().await
    }

    /// Marks that the result of a waiting call, or the end event of a background command, is stored elsewhere.
    /// The command is removed 30 minutes after its end.
    pub async fn release(&self, session_id: &str) -> Result<(), ToolError> {
        self.sessions.release(session_id).await
    }

    /// Ends what a call has left running in the background. Its end is an event like any other. False: nothing runs.
    pub fn end_background(&self, call_id: &str) -> bool {
        self.sessions.end_background(call_id)
    }

    /// A transfer reads and writes files, so it needs both tools.
    pub fn can_transfer(&self) -> bool {
        ["Read", "Write"].iter().all(|name| self.offers(name))
    }

    /// The names of the only folder whose files the tools for files use. `None`: they use every folder.
    pub fn file_roots(&self) -> Option<Vec<&Path>> {
        self.files.only_folder()
    }

    /// Whether changes of files can be undone.
    pub fn can_undo(&self) -> bool {
        self.undo.is_some() && ["Write", "Edit", "Delete"].iter().any(|name| self.offers(name))
    }

    /// Undoes calls of the file tools (rules UN3 and UN4). Blocks.
    pub fn undo(&self, request: &UndoRequest) -> Result<UndoReply, ToolError> {
        match &self.undo {
            Some(undo) if self.can_undo() => undo.run(request),
            _ => Err(ToolError::Failed(
                "this node keeps no copies, so nothing can be undone".into(),
            )),
        }
    }

    /// Removes copies that are older than 7 days. Blocks.
    pub fn sweep_undo(&self) -> Result<(), ToolError> {
        match &self.undo {
            Some(undo) => undo.sweep(),
            None => Ok(()),
        }
    }

    /// The confined file access, for transfers.
    pub fn files(&self) -> &Arc<Beneath> {
        &self.files
    }
}

fn open_undo(folder: &Path, files: &Arc<Beneath>, write_lock: &Arc<WriteLock>) -> Result<Undo, ToolError> {
    let opened = UndoStore::open(folder, crate::undo::now_ms());
    let failed = |error| ToolError::io(format!("open the folder {}", quote(&folder.to_string_lossy())), error);
    Ok(Undo {
        files: Arc::clone(files),
        store: Arc::new(opened.map_err(failed)?),
        write_lock: Arc::clone(write_lock),
    })
}
