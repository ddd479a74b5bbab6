//! A workspace with tools that serve it, and a folder outside it.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod kill_on_drop;
pub mod own_harness;
pub mod sandboxed;

use std::path::PathBuf;
use std::time::Duration;

use gsv_sandbox::Tier;
use gsv_tools::beneath::{Resolver, Scope};
use gsv_tools::{CallContext, Config, ExecEvent, ToolBox, ToolError};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;

use kill_on_drop::KillOnDrop;

/// The longest time that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The tier that a test program runs its commands in: `bash_landlock` is `bash` with Landlock.
pub fn tier() -> Option<Tier> {
    let name = env!("CARGO_CRATE_NAME");
    Tier::ALL
        .into_iter()
        .find(|tier| name.ends_with(&format!("_{}", tier.name())))
}

pub struct Lab {
    /// First, so that no command outlives the folders.
    _commands: KillOnDrop,
    pub dir: TempDir,
    pub tools: ToolBox,
    pub events: mpsc::Receiver<ExecEvent>,
}

impl Lab {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        let (send, events) = mpsc::channel(64);
        let mut config = Config::new(dir.path().join("ws"), dir.path().join("spool"));
        config.shell = Some("/bin/sh".into());
        config.events = Some(send);
        if let Some(tier) = tier() {
            sandboxed::apply(&mut config, tier, dir.path());
        }
        change(&mut config);
        let tools = ToolBox::new(config).unwrap();
        Self {
            _commands: KillOnDrop::new(dir.path().join("spool")),
            dir,
            tools,
            events,
        }
    }

    pub fn resolved_by(resolver: Resolver) -> Self {
        Self::with(|config| config.resolver = resolver)
    }

    pub fn anywhere() -> Self {
        Self::with(|config| config.scope = Scope::Anywhere)
    }

    pub fn ws(&self, rel: &str) -> PathBuf {
        self.dir.path().join("ws").join(rel)
    }

    pub fn put(&self, rel: &str, content: impl AsRef<[u8]>) {
        let path = self.ws(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn get(&self, rel: &str) -> String {
        std::fs::read_to_string(self.ws(rel)).unwrap()
    }

    /// The pid on this machine of a process that knows itself by `pid`. `None`: there is no such process of this lab.
    pub fn host_pid(&self, pid: &str) -> Option<String> {
        if tier() == Some(Tier::Bubblewrap) {
            sandboxed::host_pid(pid.trim(), self.dir.path())
        } else {
            Some(pid.trim().to_owned())
        }
    }

    pub fn is_running(&self, pid: &str) -> bool {
        self.host_pid(pid).is_some_and(|pid| is_running(&pid))
    }

    pub async fn call(&self, tool: &str, args: Value) -> Result<Value, ToolError> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.call_with(tool, args, CallContext::new(format!("run/{id}/0")))
            .await
    }

    pub async fn call_with(&self, tool: &str, args: Value, context: CallContext) -> Result<Value, ToolError> {
        tokio::time::timeout(PATIENCE, self.tools.invoke(tool, args, context))
            .await
            .expect("the call does not end")
            .map(|output| json_of(&output))
    }

    pub async fn ok(&self, tool: &str, args: Value) -> Value {
        self.call(tool, args)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", error.reason()))
    }

    pub async fn reason(&self, tool: &str, args: Value) -> &'static str {
        match self.call(tool, args).await {
            Ok(value) => panic!("expected an error, got {value}"),
            Err(error) => error.reason(),
        }
    }

    pub async fn event(&mut self) -> ExecEvent {
        tokio::time::timeout(PATIENCE, self.events.recv())
            .await
            .expect("no event")
            .unwrap()
    }
}

/// The result as it is sent.
pub fn json_of(output: &impl Serialize) -> Value {
    serde_json::to_value(output).unwrap()
}

/// Waits until `check` holds.
pub async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !check() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; a zombie does not.
pub fn is_running(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) else {
        return false;
    };
    !stat
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

pub fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap())
        .collect()
}
