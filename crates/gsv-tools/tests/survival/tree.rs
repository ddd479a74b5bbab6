//! [F20] [P14]: the end of a command ends all its processes, also those that left its group and session.

use std::process::{Command, Stdio};

use gsv_tools::CallContext;
use serde_json::json;

use crate::common::{is_running, until};
use crate::scene::{CALL, Scene};

/// A process in a session of its own, with a living parent; and one whose parent has ended.
pub(crate) const FAR: &str = "setsid sh -c 'trap \"\" TERM; echo $$ >far; while :; do sleep 0.05; done' & wait";
pub(crate) const FAR_ORPHAN: &str =
    "(setsid sh -c 'trap \"\" TERM; echo $$ >far; while :; do sleep 0.05; done' &); sleep 300";

/// The same for a command line in single quotes.
#[cfg(target_os = "linux")]
pub(crate) const FAR_SCRIPT: &str =
    "(setsid sh -c \"trap : TERM; echo \\$\\$ >far; while :; do sleep 0.05; done\" &); sleep 300";

/// A process without a mark in a session of its own, whose parent has left the command's group and lives on.
#[cfg(target_os = "linux")]
pub(crate) const FAR_CHILD: &str = "setsid sh -c 'trap \"\" TERM; env -i PATH=\"$PATH\" setsid sh -c \"echo \\$\\$ >far; while :; do sleep 0.05; done\" >/dev/null 2>&1 & wait' & wait";

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

pub(crate) async fn tree_ends(scene: &Scene, command: &str) {
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
pub(crate) async fn timeout_ends_tree(scene: &Scene) {
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
pub(crate) async fn chain_ends(scene: &Scene) {
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
pub(crate) async fn others_go_on(scene: &Scene) {
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

/// KILL comes later, and a process that has got TERM before has ended by that.
#[cfg(target_os = "linux")]
pub(crate) async fn far_gets_term(scene: &Scene) {
    use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
    if scene.kind != "shell" {
        // That supervisor is the parent of orphans itself.
        return;
    }
    set_child_subreaper(Some(getpid())).unwrap();
    let (tools, _events) = scene.tools();
    let cancel = gsv_tools::Cancel::default();
    let context = CallContext {
        cancel: cancel.clone(),
        ..CallContext::new(CALL)
    };
    let command = "(setsid sh -c 'echo $$ >far; exec sleep 300' &); sleep 300";
    let call = tools.invoke("Bash", json!({"command": command}), context);
    let end = async {
        far_runs(scene, "far").await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, end);
    assert_eq!(result.unwrap_err().reason(), "tool.cancelled");
    let far = std::fs::read_to_string(scene.ws("far")).unwrap();
    let far = Pid::from_raw(far.trim().parse().unwrap()).unwrap();
    let (_, status) = waitpid(Some(far), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.terminating_signal(), Some(15));
}
