//! [P6] [K15] [K16] [K16'] [K17]: what a later node finds of the commands of a killed one.

use gsv_tools::{CallContext, ExecEventKind, Reattached};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{is_running, json_of, until};
use crate::scene::{CALL, Scene};

const ONCE: &str =
    "echo $$ >pid; echo ran >>count; echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 5";

pub(crate) async fn running_is_recovered(scene: &Scene) {
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

pub(crate) async fn ended_meanwhile(scene: &Scene) {
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

pub(crate) async fn gone_is_lost(scene: &Scene) {
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

pub(crate) async fn never_started(scene: &Scene) {
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

pub(crate) async fn timeout_goes_on(scene: &Scene) {
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
        (&result["timedOut"], &result["status"]),
        (&json!(true), &json!("failed"))
    );
    // A shell whose child gets the signal first says so before it ends itself.
    let output = result["output"].as_str().unwrap();
    assert!(["before\n", "before\nTerminated\n"].contains(&output), "{output}");
    assert!(result["durationMs"].as_u64().unwrap() >= 1490 && !is_running(&info.pid.to_string()));
    let (later, _events) = scene.tools();
    let Reattached::Finished(later) = later.reattach(&info.spool).await.unwrap() else {
        panic!("it has ended")
    };
    assert_eq!(json_of(&later)["timedOut"], true, "why it ended is remembered");
}

pub(crate) async fn background_is_recovered(scene: &Scene) {
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

pub(crate) async fn end_is_reported(scene: &Scene) {
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

pub(crate) async fn can_be_cancelled(scene: &Scene) {
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
