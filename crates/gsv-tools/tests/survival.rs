//! [P6] [K15] [K16] [K16'] [K17]: commands survive the node. This program is also the node that is killed with SIGKILL (with
//! its whole process group), and the supervisor program; so it has its own `main`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

mod common;

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use common::kill_on_drop::KillOnDrop;
use common::own_harness::run_tests;
use common::{PATIENCE, is_running, json_of, until};
use gsv_tools::{
    CallContext, Config, ExecEvent, ExecEventKind, Reattached, StartInfo, Supervisor, ToolBox, supervise_main,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("__supervise") => supervise_main(args.into_iter().skip(1)),
        Some("__node") => {
            node(&args[1..]);
            ExitCode::SUCCESS
        }
        _ => run_tests(&args, survival_tests()),
    }
}

type Test = (&'static str, fn(&Scene));

const TESTS: [Test; 9] = [
    ("k16_a_running_command_is_recovered_and_ran_once", |scene| {
        block(running_is_recovered(scene));
    }),
    ("k17_a_command_that_ended_meanwhile_has_its_result", |scene| {
        block(ended_meanwhile(scene));
    }),
    (
        "k16b_a_killed_command_is_lost_and_its_pid_and_output_are_known",
        |scene| {
            block(gone_is_lost(scene));
        },
    ),
    ("k15_a_command_whose_start_was_not_recorded_never_ran", |scene| {
        block(never_started(scene));
    }),
    ("p6_the_timeout_goes_on_from_the_start", |scene| {
        block(timeout_goes_on(scene));
    }),
    ("p6_a_recovered_background_command_still_takes_input", |scene| {
        block(background_is_recovered(scene));
    }),
    (
        "w14_an_end_while_the_node_was_down_is_reported_until_released",
        |scene| block(end_is_reported(scene)),
    ),
    ("p14_a_recovered_command_can_be_cancelled", |scene| {
        block(can_be_cancelled(scene));
    }),
    ("f20_p14_a_cancelled_call_ends_processes_in_other_sessions", |scene| {
        block(tree_ends(scene, FAR));
    }),
];

/// Only Linux tells which processes belong to a command after they have left its tree.
#[cfg(target_os = "linux")]
const ON_LINUX: [Test; 7] = [
    ("f20_p14_a_cancelled_call_ends_orphans_in_other_sessions", |scene| {
        block(tree_ends(scene, FAR_ORPHAN));
    }),
    (
        "f20_p14_a_cancelled_call_ends_what_is_left_without_a_supervisor",
        |scene| {
            block(tree_ends(scene, &format!("kill -9 $PPID; {FAR}")));
        },
    ),
    (
        "f20_p14_a_cancelled_call_ends_orphans_without_an_environment",
        |scene| {
            block(tree_ends(
                scene,
                &format!("kill -9 $PPID; env -i PATH=\"$PATH\" sh -c '{FAR_SCRIPT}'"),
            ));
        },
    ),
    (
        "f20_p14_a_cancelled_call_ends_although_its_supervisor_was_stopped",
        |scene| {
            block(tree_ends(scene, &format!("kill -STOP $PPID; {FAR}")));
        },
    ),
    ("f20_p6_a_timeout_ends_what_is_left_without_a_supervisor", |scene| {
        block(timeout_ends_tree(scene));
    }),
    (
        "f20_p14_a_cancelled_call_ends_a_program_that_replaces_itself",
        |scene| {
            block(chain_ends(scene));
        },
    ),
    ("f20_p14_a_cancelled_call_leaves_the_orphans_of_other_calls", |scene| {
        block(others_go_on(scene));
    }),
];
#[cfg(not(target_os = "linux"))]
const ON_LINUX: [Test; 0] = [];

fn survival_tests() -> impl Iterator<Item = (String, impl FnOnce())> {
    let tests = TESTS.into_iter().chain(ON_LINUX);
    tests
        .flat_map(|test| ["shell", "program"].map(|kind| (test, kind)))
        .map(|((name, test), kind)| (format!("{name}_by_{kind}"), move || test(&Scene::new(kind))))
}

fn block(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") });
}

struct Scene {
    /// First, so that no command outlives the folder.
    _commands: KillOnDrop,
    dir: TempDir,
    kind: &'static str,
}

const CALL: &str = "session/run/0/0";

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
fn node(args: &[OsString]) {
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
    fn new(kind: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        Self {
            _commands: KillOnDrop::new(dir.path().join("spool")),
            dir,
            kind,
        }
    }

    fn ws(&self, name: &str) -> PathBuf {
        self.dir.path().join("ws").join(name)
    }

    fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.ws(name)).map_or(0, |text| text.lines().count())
    }

    fn tools(&self) -> (ToolBox, mpsc::Receiver<ExecEvent>) {
        tools(self.dir.path(), self.kind)
    }

    /// Lets a node start the call, waits for `ready`, kills the node and its group. Returns what it had recorded.
    async fn killed_node(&self, call: Value, stuck: bool, ready: impl FnMut() -> bool) -> StartInfo {
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

const ONCE: &str =
    "echo $$ >pid; echo ran >>count; echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 5";

async fn running_is_recovered(scene: &Scene) {
    let info = scene
        .killed_node(json!({"command": ONCE}), false, || scene.lines("count") == 1)
        .await;
    assert!(is_running(&info.pid.to_string()), "the command outlives the node");
    let (tools, _events) = scene.tools();
    let Reattached::Running(call) = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it runs")
    };
    let refused = tools
        .invoke("Bash", json!({"command": ONCE}), CallContext::new(CALL))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "tool.outcome_unknown", "never started a second time");
    std::fs::write(scene.ws("go"), "").unwrap();
    let result = json_of(&call.wait(CallContext::new(CALL)).await.unwrap());
    assert_eq!(
        (&result["output"], &result["exitCode"], &result["status"]),
        (&json!("before\nafter\n"), &json!(5), &json!("failed"))
    );
    assert_eq!(scene.lines("count"), 1);
    let Reattached::Finished(again) = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it has ended")
    };
    assert_eq!(json_of(&again), result);
    let (later, _events) = scene.tools();
    let Reattached::Finished(later) = later.reattach(&info.spool).await.unwrap() else {
        panic!("it has ended")
    };
    let later = json_of(&later);
    assert_eq!(
        (&later["output"], &later["exitCode"]),
        (&result["output"], &result["exitCode"])
    );
}

async fn ended_meanwhile(scene: &Scene) {
    let info = scene
        .killed_node(
            json!({"command": "echo ran >>count; until [ -e go ]; do sleep 0.02; done; echo over; kill -KILL $$"}),
            false,
            || scene.lines("count") == 1,
        )
        .await;
    std::fs::write(scene.ws("go"), "").unwrap();
    until("the exit is written", || info.spool.join("exit").exists()).await;
    let (tools, _events) = scene.tools();
    let Reattached::Finished(result) = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it has ended")
    };
    let result = json_of(&result);
    assert_eq!(
        (&result["output"], &result["signal"], &result["timedOut"]),
        (&json!("over\n"), &json!("SIGKILL"), &json!(false))
    );
    assert_eq!(scene.lines("count"), 1);
}

async fn gone_is_lost(scene: &Scene) {
    let info = scene
        .killed_node(json!({"command": ONCE}), false, || scene.lines("count") == 1)
        .await;
    let meta: Value = serde_json::from_slice(&std::fs::read(info.spool.join("meta.json")).unwrap()).unwrap();
    // After a reboot nothing of it can run, whatever has its pid now.
    let mut rebooted = meta.clone();
    rebooted["bootId"] = "another boot".into();
    std::fs::write(info.spool.join("meta.json"), rebooted.to_string()).unwrap();
    let (other, _events) = scene.tools();
    assert!(matches!(
        other.reattach(&info.spool).await.unwrap(),
        Reattached::Lost { .. }
    ));
    std::fs::write(info.spool.join("meta.json"), meta.to_string()).unwrap();
    for name in ["supervisorPid", "pid"] {
        let pid = meta[name].as_i64().unwrap();
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
        until("it is gone", || !is_running(&pid.to_string())).await;
    }
    let (tools, _events) = scene.tools();
    let Reattached::Lost { pid, tail, started_at } = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it is lost")
    };
    assert_eq!(
        (pid, tail.as_str(), json!(started_at)),
        (info.pid, "before\n", meta["startedAt"].clone())
    );
    // Another process under the same pid is not taken for it.
    let (other, _events) = scene.tools();
    let mut meta = meta;
    meta["pid"] = std::process::id().into();
    std::fs::write(info.spool.join("meta.json"), meta.to_string()).unwrap();
    assert!(matches!(
        other.reattach(&info.spool).await.unwrap(),
        Reattached::Lost { .. }
    ));
}

async fn never_started(scene: &Scene) {
    let info = scene.killed_node(json!({"command": ONCE}), true, || true).await;
    until("the gate is shut", || info.spool.join("exit").exists()).await;
    let (tools, _events) = scene.tools();
    assert!(matches!(
        tools.reattach(&info.spool).await.unwrap(),
        Reattached::NeverStarted
    ));
    assert_eq!(scene.lines("count"), 0);
    std::fs::write(scene.ws("go"), "").unwrap();
    let result = tools
        .invoke("Bash", json!({"command": ONCE}), CallContext::new(CALL))
        .await
        .unwrap();
    let result = json_of(&result);
    assert_eq!((&result["exitCode"], scene.lines("count")), (&json!(5), 1));
}

async fn timeout_goes_on(scene: &Scene) {
    let info = scene
        .killed_node(json!({"command": ONCE, "timeout": 1500}), false, || {
            scene.lines("count") == 1
        })
        .await;
    let (tools, _events) = scene.tools();
    let Reattached::Running(call) = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it runs")
    };
    let result = json_of(&call.wait(CallContext::new(CALL)).await.unwrap());
    assert_eq!(
        (&result["timedOut"], &result["status"], &result["output"]),
        (&json!(true), &json!("failed"), &json!("before\n"))
    );
    assert!(result["durationMs"].as_u64().unwrap() >= 1490 && !is_running(&info.pid.to_string()));
    let (later, _events) = scene.tools();
    let Reattached::Finished(later) = later.reattach(&info.spool).await.unwrap() else {
        panic!("it has ended")
    };
    assert_eq!(json_of(&later)["timedOut"], true, "why it ended is remembered");
}

async fn background_is_recovered(scene: &Scene) {
    let command = "echo ran >>count; read line; echo got $line";
    let info = scene
        .killed_node(json!({"command": command, "background": true}), false, || {
            scene.lines("count") == 1
        })
        .await;
    let (tools, mut events) = scene.tools();
    assert_eq!(tools.recover().await.unwrap(), 1);
    assert_eq!(tools.recover().await.unwrap(), 0, "it is known already");
    let id = info.spool.file_name().unwrap().to_str().unwrap();
    let list = tools
        .invoke("Process", json!({"action": "list"}), CallContext::new("l"))
        .await
        .unwrap();
    let list = json_of(&list);
    assert_eq!(
        (&list["count"], &list["sessions"][0]["sessionId"]),
        (&json!(1), &json!(id))
    );
    tools
        .invoke(
            "Process",
            json!({"action": "submit", "sessionId": id, "data": "it"}),
            CallContext::new("w"),
        )
        .await
        .unwrap();
    let ended = events.recv().await.unwrap();
    assert_eq!(
        (ended.event, ended.output_tail.as_deref(), ended.call_id.as_str()),
        (ExecEventKind::Finished, Some("got it\n"), CALL)
    );
    assert_eq!(scene.lines("count"), 1);
}

async fn end_is_reported(scene: &Scene) {
    let command = "echo ran >>count; until [ -e go ]; do sleep 0.02; done; echo over";
    let info = scene
        .killed_node(json!({"command": command, "yieldMs": 100}), false, || {
            scene.dir.path().join("result").exists()
        })
        .await;
    std::fs::write(scene.ws("go"), "").unwrap();
    until("the exit is written", || info.spool.join("exit").exists()).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (tools, mut events) = scene.tools();
        assert_eq!(tools.recover().await.unwrap(), 0);
        let ended = events.try_recv().expect("told at once");
        assert_eq!((ended.event, ended.exit_code), (ExecEventKind::Finished, Some(0)));
        ids.push(ended.event_id);
    }
    assert_eq!(ids[0], ids[1], "the same event has the same id");
    let (tools, mut events) = scene.tools();
    tools.recover().await.unwrap();
    tools.release(&events.try_recv().unwrap().session_id).await.unwrap();
    let (tools, mut events) = scene.tools();
    tools.recover().await.unwrap();
    assert!(events.try_recv().is_err(), "released");
}

/// A process in a session of its own, with a living parent; and one whose parent has ended.
const FAR: &str = "setsid sh -c 'trap \"\" TERM; echo $$ >far; while :; do sleep 0.05; done' & wait";
const FAR_ORPHAN: &str = "(setsid sh -c 'trap \"\" TERM; echo $$ >far; while :; do sleep 0.05; done' &); sleep 300";

/// The same for a command line in single quotes.
#[cfg(target_os = "linux")]
const FAR_SCRIPT: &str = "(setsid sh -c \"trap : TERM; echo \\$\\$ >far; while :; do sleep 0.05; done\" &); sleep 300";

/// Kills the process whose pid is in a file, also when the test fails. Says whether it still ran.
fn end_far(scene: &Scene, name: &str) -> bool {
    let far = std::fs::read_to_string(scene.ws(name)).unwrap_or_default();
    let was_running = is_running(&far);
    let _ = Command::new("kill")
        .args(["-KILL", far.trim()])
        .stderr(Stdio::null())
        .status();
    was_running
}

async fn far_runs(scene: &Scene, name: &str) {
    let far = || std::fs::read_to_string(scene.ws(name)).unwrap_or_default();
    until("the far process runs", || far().ends_with('\n')).await;
    assert!(is_running(&far()));
}

async fn tree_ends(scene: &Scene, command: &str) {
    let (tools, _events) = scene.tools();
    let cancel = gsv_tools::Cancel::default();
    let context = CallContext {
        cancel: cancel.clone(),
        ..CallContext::new(CALL)
    };
    let call = tools.invoke("Bash", json!({"command": command}), context);
    let end = async {
        far_runs(scene, "far").await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, end);
    let outlives = end_far(scene, "far");
    assert_eq!(result.unwrap_err().reason(), "tool.cancelled");
    assert!(!outlives, "a process of the command outlives the call");
}

/// The timeout may come before the far process starts; then there is nothing to end.
#[cfg(target_os = "linux")]
async fn timeout_ends_tree(scene: &Scene) {
    let (tools, _events) = scene.tools();
    let command = format!("kill -9 $PPID; {FAR}");
    let call = json!({"command": command, "timeout": 1500});
    let result = tools.invoke("Bash", call, CallContext::new(CALL)).await;
    let outlives = end_far(scene, "far");
    let reason = result.unwrap_err().reason();
    assert_eq!(reason, "tool.outcome_unknown", "no supervisor wrote the exit");
    assert!(!outlives, "a process of the command outlives its timeout");
}

/// Each process starts its successor, which nothing ties to it, and exits.
#[cfg(target_os = "linux")]
const CHAIN: &str =
    "trap '' TERM\necho $$ >>pids\n[ -e stop ] && exit\n(setsid sh ./chain </dev/null >/dev/null 2>&1 &)\n";

#[cfg(target_os = "linux")]
async fn chain_ends(scene: &Scene) {
    let (tools, _events) = scene.tools();
    std::fs::write(scene.ws("chain"), CHAIN).unwrap();
    let cancel = gsv_tools::Cancel::default();
    let context = CallContext {
        cancel: cancel.clone(),
        ..CallContext::new(CALL)
    };
    let call = tools.invoke("Bash", json!({"command": "sh ./chain; sleep 300"}), context);
    let end = async {
        until("the chain runs", || scene.lines("pids") > 20).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, end);
    let before = scene.lines("pids");
    // A chain that goes on adds many lines while these start and end.
    for _ in 0..20 {
        Command::new("true").status().unwrap();
    }
    let after = scene.lines("pids");
    std::fs::write(scene.ws("stop"), "").unwrap();
    assert_eq!(result.unwrap_err().reason(), "tool.cancelled");
    assert_eq!(before, after, "the chain outlives the call");
}

#[cfg(target_os = "linux")]
async fn others_go_on(scene: &Scene) {
    let (tools, _events) = scene.tools();
    let cancels = [gsv_tools::Cancel::default(), gsv_tools::Cancel::default()];
    let call = |at: usize| {
        let command = FAR_ORPHAN.replace(">far", &format!(">far{at}"));
        let context = CallContext {
            cancel: cancels[at].clone(),
            ..CallContext::new(format!("{CALL}{at}"))
        };
        let killing = format!("kill -9 $PPID; {command}");
        tools.invoke("Bash", json!({"command": killing}), context)
    };
    let story = async {
        far_runs(scene, "far0").await;
        far_runs(scene, "far1").await;
        cancels[0].cancel();
        let first = || std::fs::read_to_string(scene.ws("far0")).unwrap();
        until("the first call's orphan is gone", || !is_running(&first())).await;
        far_runs(scene, "far1").await;
        cancels[1].cancel();
    };
    let (first, second, ()) = tokio::join!(call(0), call(1), story);
    let outlive = [end_far(scene, "far0"), end_far(scene, "far1")];
    for result in [first, second] {
        assert_eq!(result.unwrap_err().reason(), "tool.cancelled");
    }
    assert_eq!(outlive, [false, false]);
}

async fn can_be_cancelled(scene: &Scene) {
    let command = "trap '' TERM; sleep 300 & echo $! >child; echo ran >>count; while :; do sleep 0.05; done";
    let info = scene
        .killed_node(json!({"command": command}), false, || scene.lines("count") == 1)
        .await;
    let (tools, _events) = scene.tools();
    let Reattached::Running(call) = tools.reattach(&info.spool).await.unwrap() else {
        panic!("it runs")
    };
    let context = CallContext::new(CALL);
    context.cancel.cancel();
    assert_eq!(call.wait(context).await.unwrap_err().reason(), "tool.cancelled");
    let child = std::fs::read_to_string(scene.ws("child")).unwrap();
    until("the group is gone", || {
        !is_running(&child) && !is_running(&info.pid.to_string())
    })
    .await;
}
