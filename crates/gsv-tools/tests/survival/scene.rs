//! A node that is killed, and the folder of its commands.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gsv_tools::{CallContext, Config, ExecEvent, StartInfo, Supervisor, ToolBox};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::common::kill_on_drop::KillOnDrop;
use crate::common::until;

pub(crate) struct Scene {
    /// First, so that no command outlives the folder.
    _commands: KillOnDrop,
    pub(crate) dir: TempDir,
    pub(crate) kind: &'static str,
}

pub(crate) const CALL: &str = "session/run/0/0";

fn supervisor(kind: &str) -> Supervisor {
    match kind {
        "shell" => Supervisor::Shell,
        _ => Supervisor::Program {
            program: std::env::current_exe().unwrap(),
            args: vec!["__supervise".into()],
            limits: None,
        },
    }
}

fn tools(dir: &Path, kind: &str) -> (ToolBox, mpsc::Receiver<ExecEvent>) {
    let (send, events) = mpsc::channel(8);
    let mut config = Config::new(dir.join("ws"), dir.join("spool"));
    config.supervisor = supervisor(kind);
    config.shell = Some("/bin/sh".into());
    config.events = Some(send);
    (ToolBox::new(config).unwrap(), events)
}

/// The node: makes one call and records its start, as a ledger would. `__node DIR KIND ARGS STUCK`.
pub(crate) fn node(args: &[OsString]) {
    let [dir, kind, call, stuck] = args else {
        panic!("bad arguments")
    };
    let dir = PathBuf::from(dir);
    let call: Value = serde_json::from_str(call.to_str().unwrap()).unwrap();
    let stuck = stuck == "stuck";
    let record = dir.clone();
    let context = CallContext {
        on_started: Some(Box::new(move |info| {
            Box::pin(async move {
                std::fs::write(record.join("started.tmp"), serde_json::to_vec(&info)?)?;
                std::fs::rename(record.join("started.tmp"), record.join("started"))?;
                if stuck { std::future::pending().await } else { Ok(()) }
            })
        })),
        ..CallContext::new(CALL)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (tools, _events) = tools(&dir, kind.to_str().unwrap());
        let result = tools.invoke("Bash", call, context).await;
        std::fs::write(dir.join("result"), format!("{result:?}")).unwrap();
        std::future::pending::<()>().await;
    });
}

impl Scene {
    pub(crate) fn new(kind: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        Self {
            _commands: KillOnDrop::new(dir.path().join("spool")),
            dir,
            kind,
        }
    }

    pub(crate) fn ws(&self, name: &str) -> PathBuf {
        self.dir.path().join("ws").join(name)
    }

    pub(crate) fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.ws(name)).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn tools(&self) -> (ToolBox, mpsc::Receiver<ExecEvent>) {
        tools(self.dir.path(), self.kind)
    }

    /// Lets a node start the call, waits for `ready`, kills the node and its group. Returns what it had recorded.
    pub(crate) async fn killed_node(&self, call: Value, stuck: bool, ready: impl FnMut() -> bool) -> StartInfo {
        let mut node = Command::new(std::env::current_exe().unwrap())
            .arg("__node")
            .arg(self.dir.path())
            .args([self.kind, &call.to_string(), if stuck { "stuck" } else { "" }])
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let started = self.dir.path().join("started");
        until("the start is recorded", || started.exists()).await;
        until("the command is ready", ready).await;
        assert!(node.try_wait().unwrap().is_none(), "the node lives until it is killed");
        kill_process_group(Pid::from_child(&node), Signal::KILL).unwrap();
        node.wait().unwrap();
        serde_json::from_slice(&std::fs::read(started).unwrap()).unwrap()
    }
}
