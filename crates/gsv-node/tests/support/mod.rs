//! A node in this process, its folders, and the gateway that a test plays for it. Every wait has a deadline.

#![allow(clippy::needless_pass_by_value, reason = "tests read better")]
#![allow(dead_code, reason = "each test program uses its part")]

mod gateway;
#[path = "../../../gsv-tools/tests/common/kill_on_drop.rs"]
mod kill_on_drop;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gsv_node::{NodeConfig, NodeError, Status};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use gateway::{Conn, Gateway};
use kill_on_drop::KillOnDrop;

pub const DEADLINE: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// Polls a condition that sends no notification, such as the content of a file.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// The folders of a node, which outlive its runs.
pub struct Home {
    /// First, so that no command outlives the folders.
    _commands: KillOnDrop,
    root: TempDir,
}

impl Home {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self {
            _commands: KillOnDrop::new(root.path().join("state/calls")),
            root,
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.state().join("node.log")).unwrap_or_default()
    }

    pub fn config(&self, url: &str) -> NodeConfig {
        config(url, &self.workspace(), &self.state())
    }

    pub fn ledger(&self) -> gsv_link::ledger::Ledger {
        gsv_link::ledger::Ledger::open(&self.state().join("ledger"), now_ms()).unwrap()
    }
}

pub fn config(url: &str, workspace: &Path, state: &Path) -> NodeConfig {
    NodeConfig {
        token: Some(TOKEN.to_owned()),
        // The profile of the user's login shell may take seconds.
        shell: Some("/bin/sh".into()),
        ..NodeConfig::new("lap", url, workspace, state)
    }
}
pub const TOKEN: &str = "gsv_node_lap_00112233445566778899";

pub fn now_ms() -> u64 {
    u64::try_from(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_millis(),
    )
    .unwrap()
}

/// A node in this process.
pub struct Node {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), NodeError>>,
    pub statuses: mpsc::UnboundedReceiver<Status>,
}

impl Node {
    pub fn start(config: NodeConfig) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (sink, statuses) = mpsc::unbounded_channel();
        let status = Arc::new(move |status| drop(sink.send(status)));
        let task = tokio::spawn(gsv_node::run(config, status, async move { drop(stopped.await) }));
        Self { stop, task, statuses }
    }

    pub async fn status(&mut self, part: &str) -> Status {
        within(part, async {
            loop {
                let status = self
                    .statuses
                    .recv()
                    .await
                    .unwrap_or_else(|| panic!("{part}: the node is gone"));
                if status.text.contains(part) {
                    return status;
                }
            }
        })
        .await
    }

    pub async fn stop(self) -> Result<(), NodeError> {
        let _ = self.stop.send(());
        within("the node's end", self.task).await.unwrap()
    }

    /// Waits until the node ends by itself.
    pub async fn end(self) -> Result<(), NodeError> {
        let Self { stop, task, .. } = self;
        let outcome = within("the node's end", task).await.unwrap();
        drop(stop);
        outcome
    }
}
