//! Commands in the background, and the tool Process: input, output, ends, bounds.

use gsv_sandbox::Tier;
use gsv_tools::{CallContext, ExecEventKind, Reattached};
use serde_json::{Value, json};

use super::common::{Lab, tier, until};

#[tokio::test]
async fn p6_2_background_answers_at_once_and_its_end_is_an_event() {
    let mut lab = Lab::new();
    let running = lab
        .call_with(
            "Bash",
            json!({"command": "echo hi; read line; echo got $line; exit 3", "background": true}),
            CallContext::new("b/0"),
        )
        .await
        .unwrap();
    let mut keys: Vec<&str> = running.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["pid", "sessionId", "startedAt", "status", "tail", "workdir"]);
    assert_eq!(
        (&running["status"], &running["sessionId"]),
        (&json!("running"), &json!("b.0"))
    );
    let started = lab.event().await;
    assert_eq!(
        (started.event, started.event_id.as_str(), started.call_id.as_str()),
        (ExecEventKind::Started, "b.0:started", "b/0")
    );
    let list = lab.ok("Process", json!({"action": "list"})).await;
    assert_eq!(
        (&list["count"], &list["sessions"][0]["status"]),
        (&json!(1), &json!("running"))
    );
    assert!(list["sessions"][0]["command"].as_str().unwrap().starts_with("echo hi"));
    assert_eq!(
        lab.ok(
            "Process",
            json!({"action": "write", "sessionId": "b.0", "data": "some"})
        )
        .await["written"],
        4
    );
    assert_eq!(
        lab.ok(
            "Process",
            json!({"action": "submit", "sessionId": "b.0", "data": "thing"})
        )
        .await["written"],
        6
    );
    let ended = lab.event().await;
    assert_eq!(
        (ended.event, ended.event_id.as_str(), ended.exit_code, ended.signal),
        (ExecEventKind::Failed, "b.0:ended", Some(3), None)
    );
    assert_eq!(ended.output_tail.as_deref(), Some("hi\ngot something\n"));
    let poll = lab.ok("Process", json!({"action": "poll", "sessionId": "b.0"})).await;
    assert_eq!(
        (&poll["status"], &poll["exitCode"], &poll["tail"]),
        (&json!("failed"), &json!(3), &json!("hi\ngot something\n"))
    );
    assert_eq!(
        lab.ok("Process", json!({"action": "poll", "sessionId": "b.0"})).await,
        poll,
        "polling again changes nothing"
    );
    let log = lab
        .ok(
            "Process",
            json!({"action": "log", "sessionId": "b.0", "offset": 3, "limit": 3}),
        )
        .await;
    let part = json!({
        "sessionId": "b.0", "status": "failed", "output": "got", "offset": 3, "nextOffset": 6, "outputBytes": 17, "truncated": true,
    });
    assert_eq!(log, part);
    let whole = lab
        .ok("Process", json!({"action": "log", "sessionId": "b.0", "offset": 0}))
        .await;
    assert_eq!(
        (&whole["output"], &whole["truncated"]),
        (&json!("hi\ngot something\n"), &json!(false))
    );
    let mut both = poll.as_object().unwrap().clone();
    both.extend(part.as_object().unwrap().clone());
    assert_eq!(
        lab.ok(
            "Process",
            json!({"action": "poll", "sessionId": "b.0", "offset": 3, "limit": 3})
        )
        .await,
        Value::Object(both),
        "a poll from an offset also has the part"
    );
    assert_eq!(
        lab.reason("Process", json!({"action": "submit", "sessionId": "b.0", "data": "x"}))
            .await,
        "tool.failed"
    );
    assert_eq!(
        lab.reason("Process", json!({"action": "poll", "sessionId": "../b.0"}))
            .await,
        "process.unknown"
    );
    let json = serde_json::to_value(lab.tools.definitions()).unwrap();
    assert!(json[0]["inputSchema"]["properties"]["yieldMs"].is_object());
}

#[tokio::test]
async fn p6_2_input_waits_for_a_reader_and_is_bounded_by_the_pipe() {
    let mut lab = Lab::new();
    let start = |id: &'static str, command: &'static str| {
        lab.call_with(
            "Bash",
            json!({"command": command, "background": true}),
            CallContext::new(id),
        )
    };
    start("r", "exec head -c 60000 | wc -c").await.unwrap();
    start("n", "exec <&-; : >closed; until [ -e go ]; do sleep 0.02; done")
        .await
        .unwrap();
    let data = "x".repeat(60_000);
    let sent = lab
        .ok("Process", json!({"action": "write", "sessionId": "r", "data": data}))
        .await;
    assert_eq!(sent["written"], 60_000);
    until("it has closed its input", || lab.ws("closed").exists()).await;
    // Bubblewrap keeps the input open as long as it runs.
    if tier() != Some(Tier::Bubblewrap) {
        let write = json!({"action": "write", "sessionId": "n", "data": "x"});
        assert_eq!(lab.reason("Process", write).await, "tool.failed");
    }
    lab.put("go", "");
    let mut tails = Vec::new();
    while tails.len() < 2 {
        let event = lab.event().await;
        if event.event != ExecEventKind::Started {
            tails.push((
                event.session_id,
                event.output_tail.unwrap_or_default().trim().to_owned(),
            ));
        }
    }
    tails.sort();
    assert_eq!(
        tails,
        [("n".to_owned(), String::new()), ("r".to_owned(), "60000".to_owned())]
    );
    let big = json!({"action": "write", "sessionId": "r", "data": "x".repeat(65_537)});
    assert_eq!(lab.reason("Process", big).await, "tool.bad_args");
}

#[tokio::test]
async fn p6_2_yield_goes_to_the_background_only_when_it_takes_longer() {
    let mut lab = Lab::new();
    // The longest time that is accepted.
    let quick = lab
        .ok("Bash", json!({"command": "echo quick", "yieldMs": 86_400_000}))
        .await;
    assert_eq!(quick["status"], "completed");
    let slow = lab
        .ok(
            "Bash",
            json!({"command": "echo early; until [ -e go ]; do sleep 0.02; done; echo late", "yieldMs": 300}),
        )
        .await;
    assert_eq!((&slow["status"], &slow["tail"]), (&json!("running"), &json!("early\n")));
    assert_eq!(lab.event().await.event, ExecEventKind::Started);
    let refused = lab
        .call(
            "Process",
            json!({"action": "write", "sessionId": slow["sessionId"], "data": "x"}),
        )
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("background: true"), "{refused}");
    lab.put("go", "");
    let ended = lab.event().await;
    assert_eq!(
        (ended.event, ended.exit_code, ended.output_tail.as_deref()),
        (ExecEventKind::Finished, Some(0), Some("early\nlate\n"))
    );
    assert!(lab.events.try_recv().is_err(), "the quick one is no background command");
}

#[tokio::test]
async fn p6_2_background_timeouts_and_kills_are_reported() {
    let mut lab = Lab::new();
    lab.call_with(
        "Bash",
        json!({"command": "sleep 60", "background": true, "timeout": 200}),
        CallContext::new("t"),
    )
    .await
    .unwrap();
    assert_eq!(lab.event().await.event, ExecEventKind::Started);
    assert_eq!(lab.event().await.event, ExecEventKind::TimedOut);
    lab.call_with(
        "Bash",
        json!({"command": "trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done", "background": true}),
        CallContext::new("k"),
    )
    .await
    .unwrap();
    assert_eq!(lab.event().await.event, ExecEventKind::Started);
    until("it runs", || lab.ws("pid").exists() && !lab.get("pid").is_empty()).await;
    let killed = lab.ok("Process", json!({"action": "kill", "sessionId": "k"})).await;
    // TERM ends bubblewrap itself, and all that runs in it.
    let signal = if tier() == Some(Tier::Bubblewrap) {
        "SIGTERM"
    } else {
        "SIGKILL"
    };
    assert_eq!(
        (&killed["status"], &killed["signal"], &killed["timedOut"]),
        (&json!("failed"), &json!(signal), &json!(false))
    );
    let ended = lab.event().await;
    assert_eq!(
        (ended.event, ended.signal.as_deref()),
        (ExecEventKind::Failed, Some(signal))
    );
    assert!(!lab.is_running(&lab.get("pid")));
    let again = lab.ok("Process", json!({"action": "kill", "sessionId": "k"})).await;
    assert_eq!(again["signal"], signal, "killing twice is harmless");
}

/// Makes an ended command older than 30 minutes, as a node that starts again sees it.
fn age(folder: &std::path::Path) {
    let file = folder.join("meta.json");
    let mut meta: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    meta["startedAt"] = 1.into();
    std::fs::write(file, meta.to_string()).unwrap();
    let ended = std::time::SystemTime::now() - std::time::Duration::from_secs(31 * 60);
    let exit = std::fs::File::options().write(true).open(folder.join("exit")).unwrap();
    exit.set_modified(ended).unwrap();
}

#[tokio::test]
async fn p12_an_old_command_is_removed_when_its_result_is_stored_and_kept_otherwise() {
    let lab = Lab::new();
    let spool = lab.dir.path().join("spool");
    for id in ["stored", "owed", "young"] {
        let call = lab.call_with("Bash", json!({"command": "true"}), CallContext::new(id));
        assert_eq!(call.await.unwrap()["status"], "completed");
    }
    for id in ["stored", "young"] {
        lab.tools.release(id).await.unwrap();
    }
    for id in ["stored", "owed"] {
        age(&spool.join(id));
    }
    let again = gsv_tools::ToolBox::new(gsv_tools::Config::new(lab.dir.path().join("ws"), spool.clone())).unwrap();
    assert_eq!(again.recover().await.unwrap(), 0);
    again
        .invoke("Process", json!({"action": "list"}), CallContext::new("l"))
        .await
        .unwrap();
    let left = ["stored", "owed", "young"].map(|id| spool.join(id).exists());
    assert_eq!(left, [false, true, true]);
}

#[tokio::test]
async fn p12_a_command_is_recovered_once_and_a_folder_without_one_is_removed() {
    let lab = Lab::new();
    let running = json!({"command": "until [ -e go ]; do sleep 0.02; done", "background": true});
    lab.call_with("Bash", running, CallContext::new("r")).await.unwrap();
    let spool = lab.dir.path().join("spool");
    std::fs::create_dir(spool.join("empty")).unwrap();
    let again = gsv_tools::ToolBox::new(gsv_tools::Config::new(lab.dir.path().join("ws"), spool.clone())).unwrap();
    assert_eq!(again.recover().await.unwrap(), 1);
    assert!(!spool.join("empty").exists());
    assert_eq!(again.recover().await.unwrap(), 0, "it is known");
    lab.put("go", "");
}

#[tokio::test]
async fn w14_the_end_of_a_command_is_owed_although_it_was_released_while_it_ran() {
    let mut lab = Lab::new();
    let running = json!({"command": "until [ -e go ]; do sleep 0.02; done", "background": true});
    lab.call_with("Bash", running, CallContext::new("r")).await.unwrap();
    lab.tools.release("r").await.unwrap();
    lab.put("go", "");
    while lab.event().await.event == ExecEventKind::Started {}
    let (send, mut events) = tokio::sync::mpsc::channel(8);
    let mut config = gsv_tools::Config::new(lab.dir.path().join("ws"), lab.dir.path().join("spool"));
    config.events = Some(send);
    gsv_tools::ToolBox::new(config).unwrap().recover().await.unwrap();
    assert_eq!(events.recv().await.unwrap().event_id, "r:ended");
}

#[tokio::test]
async fn w14_only_a_background_command_that_runs_is_ended_for_its_call() {
    let mut lab = Lab::new();
    assert!(!lab.tools.end_background("none"));
    lab.call_with("Bash", json!({"command": "true"}), CallContext::new("over"))
        .await
        .unwrap();
    assert!(!lab.tools.end_background("over"));
    let waits = json!({"command": "until [ -e go ]; do sleep 0.02; done"});
    let call = lab.call_with("Bash", waits.clone(), CallContext::new("front"));
    let ends = async {
        until("it runs", || lab.dir.path().join("spool/front/meta.json").exists()).await;
        assert!(!lab.tools.end_background("front"), "its call waits for it");
        lab.put("go", "");
    };
    let (done, ()) = tokio::join!(call, ends);
    assert_eq!(done.unwrap()["status"], "completed");
    std::fs::remove_file(lab.ws("go")).unwrap();
    let mut background = waits;
    background["background"] = json!(true);
    lab.call_with("Bash", background, CallContext::new("back"))
        .await
        .unwrap();
    assert!(lab.tools.end_background("back"));
    while lab.event().await.event == ExecEventKind::Started {}
    assert!(!lab.tools.end_background("back"), "it has ended");
}

#[tokio::test]
async fn sessions_are_bounded_and_released_ones_are_removed_first() {
    let lab = Lab::new();
    for at in 0..66 {
        let done = lab
            .call_with("Bash", json!({"command": "true"}), CallContext::new(format!("n/{at}")))
            .await
            .unwrap();
        lab.tools.release(done["sessionId"].as_str().unwrap()).await.unwrap();
    }
    let folders = std::fs::read_dir(lab.dir.path().join("spool")).unwrap().count();
    assert!(folders <= 64, "{folders}");
    assert_eq!(
        lab.reason("Process", json!({"action": "poll", "sessionId": "n.0"}))
            .await,
        "process.unknown"
    );
    assert_eq!(
        lab.ok("Process", json!({"action": "poll", "sessionId": "n.65"})).await["status"],
        "completed"
    );
}

#[tokio::test]
async fn k15_k16_a_folder_that_is_gone_tells_nothing_and_one_without_a_start_tells_that_nothing_ran() {
    let lab = Lab::new();
    let spool = lab.dir.path().join("spool");
    std::fs::create_dir(spool.join("empty")).unwrap();
    let gone = lab.tools.reattach(&spool.join("gone")).await.unwrap();
    assert!(matches!(gone, Reattached::Lost { pid: 0, .. }), "it may have run");
    let empty = lab.tools.reattach(&spool.join("empty")).await.unwrap();
    assert!(matches!(empty, Reattached::NeverStarted));
}
