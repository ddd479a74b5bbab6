//! What a node has on disk before it acts: starts before their effects, results before they are sent. The test's disk reports
//! each sync and completes it only when the test allows it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Conn, Gateway, Home, Node, now_ms, within};
use gsv_link::ledger::{CallState, Disk, Ledger, RealDisk};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

/// A sync that has not happened yet.
struct Sync {
    permit: oneshot::Sender<()>,
}

struct GatedDisk {
    is_gated: AtomicBool,
    syncs: mpsc::UnboundedSender<Sync>,
}

impl Disk for GatedDisk {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        RealDisk.write_at(file, bytes, offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        RealDisk.set_len(file, len)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        if self.is_gated.load(Ordering::SeqCst) {
            let (permit, permitted) = oneshot::channel();
            // Without its receiver the test is over, and nothing has to wait.
            if self.syncs.send(Sync { permit }).is_ok() {
                let _ = permitted.blocking_recv();
            }
        }
        RealDisk.sync(file)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        RealDisk.create(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
}

struct Scene {
    home: Home,
    node: Node,
    conn: Conn,
    syncs: mpsc::UnboundedReceiver<Sync>,
    _gateway: Gateway,
}

/// A connected node whose next syncs wait for the test.
async fn scene() -> Scene {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let (sink, syncs) = mpsc::unbounded_channel();
    let disk = Arc::new(GatedDisk {
        is_gated: AtomicBool::new(false),
        syncs: sink,
    });
    let mut config = home.config(&gateway.url);
    config.disk = Arc::clone(&disk) as Arc<dyn Disk>;
    let node = Node::start(config);
    let mut conn = gateway.accept().await;
    conn.settle().await;
    disk.is_gated.store(true, Ordering::SeqCst);
    Scene {
        home,
        node,
        conn,
        syncs,
        _gateway: gateway,
    }
}

impl Scene {
    async fn next_sync(&mut self, what: &str) -> Sync {
        within(what, self.syncs.recv()).await.unwrap()
    }

    /// The call's state in the records that are written now.
    fn written(&self, call: &str) -> Option<CallState> {
        let copy = TempDir::new().unwrap();
        let log = self.home.state().join("ledger/ledger.log");
        std::fs::copy(log, copy.path().join("ledger.log")).unwrap();
        Ledger::open(copy.path(), now_ms()).unwrap().state(call)
    }

    fn is_written(&self, name: &str) -> bool {
        self.home.file(name).exists()
    }
}

async fn starts_and_ends_durably(tool: &str, args: Value) {
    let mut scene = scene().await;
    scene.conn.invoke("c", tool, args);
    let start = scene.next_sync("the sync of the start").await;
    scene.conn.settle().await;
    assert_eq!(scene.written("c"), Some(CallState::Started));
    assert!(!scene.is_written("effect"), "{tool} acted before its start was durable");
    start.permit.send(()).unwrap();
    let end = scene.next_sync("the sync of the result").await;
    scene.conn.settle().await;
    assert_eq!(scene.written("c"), Some(CallState::Finished));
    assert!(scene.is_written("effect"));
    assert!(
        scene.conn.untaken("tool.result").is_empty(),
        "{tool} sent a result that was not durable"
    );
    end.permit.send(()).unwrap();
    let result = scene.conn.result_of("c").await;
    assert_eq!(result.params["outcome"], "ok");
    scene.conn.ack(&result);
    scene.node.stop().await.unwrap();
}

#[tokio::test]
async fn f70_p6_p7_a_command_starts_and_reports_only_what_is_durable() {
    starts_and_ends_durably("Bash", json!({"command": "echo x >> effect"})).await;
}

#[tokio::test]
async fn f70_p6_p7_a_changing_tool_starts_and_reports_only_what_is_durable() {
    starts_and_ends_durably("Write", json!({"path": "effect", "content": "x"})).await;
}

#[tokio::test]
async fn f70_a_reading_tool_waits_for_no_sync() {
    let mut scene = scene().await;
    std::fs::write(scene.home.file("a"), "text").unwrap();
    let result = scene.conn.run("c", "Read", json!({"path": "a"})).await;
    assert_eq!(result["outcome"], "ok");
    assert!(scene.syncs.try_recv().is_err());
    scene.node.stop().await.unwrap();
}
