//! Bash: results, limits, the end of process groups. `bash/background.rs` has the commands in the background.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

#[path = "bash/background.rs"]
mod background;
pub(crate) mod common;
#[cfg(target_os = "linux")]
#[path = "bash/limits.rs"]
mod limits;
#[cfg(target_os = "linux")]
#[path = "bash/supervisor.rs"]
mod supervisor;

use std::time::Duration;

use common::{Lab, is_running, tier, until};
use gsv_sandbox::Tier;
use gsv_tools::{CallContext, Cancel, Progress};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

#[tokio::test]
async fn un6_the_model_knows_that_changes_by_commands_are_not_undone() {
    let tools = serde_json::to_value(Lab::new().tools.definitions()).unwrap();
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("not what a command changes"), "{description}");
}

#[tokio::test]
async fn p6_2_a_result_has_exactly_its_fields() {
    let lab = Lab::new();
    lab.put("sub/x", "");
    let done = lab
        .call_with(
            "Bash",
            json!({"command": "pwd; echo out; echo err >&2; echo $GSV; exit 0", "workdir": "sub"}),
            CallContext::new("s/r/1/0"),
        )
        .await
        .unwrap();
    let mut keys: Vec<&str> = done.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "durationMs",
            "endedAt",
            "exitCode",
            "output",
            "sessionId",
            "startedAt",
            "status",
            "tail",
            "timedOut",
            "truncated",
            "workdir"
        ]
    );
    let dir = lab.ws("sub").canonicalize().unwrap();
    assert_eq!(done["output"], format!("{}\nout\nerr\n1\n", dir.display()));
    assert_eq!(
        (
            &done["status"],
            &done["exitCode"],
            &done["timedOut"],
            &done["truncated"]
        ),
        (&json!("completed"), &json!(0), &json!(false), &json!(false))
    );
    assert_eq!(
        (&done["sessionId"], &done["workdir"], &done["tail"]),
        (&json!("s.r.1.0"), &json!(dir), &done["output"])
    );
    assert!(done["endedAt"].as_u64() >= done["startedAt"].as_u64());
}

#[tokio::test]
async fn p6_2_exit_codes_and_signals() {
    let lab = Lab::new();
    let failed = lab.ok("Bash", json!({"command": "exit 7"})).await;
    assert_eq!((&failed["status"], &failed["exitCode"]), (&json!("failed"), &json!(7)));
    let killed = lab.ok("Bash", json!({"command": "kill -SEGV $$"})).await;
    assert_eq!(
        (&killed["status"], &killed["signal"], killed.get("exitCode")),
        (&json!("failed"), &json!("SIGSEGV"), None)
    );
    let missing = lab.ok("Bash", json!({"command": "no-such-program-here"})).await;
    assert_eq!(missing["exitCode"], 127);
    let quoting = lab
        .ok("Bash", json!({"command": "printf '%s|' \"a  b\" '$HOME' \\\\ 'ü\n'"}))
        .await;
    assert_eq!(quoting["output"], "a  b|$HOME|\\|ü\n|");
    let stdin = lab.ok("Bash", json!({"command": "cat; echo done"})).await;
    assert_eq!(stdin["output"], "done\n");
    let first = "tr '\\0' '\\n' </proc/$$/environ | sed -n 's/^PWD=//p'; pwd";
    let folder = lab.ok("Bash", json!({"command": first})).await;
    let folders: Vec<&str> = folder["output"].as_str().unwrap().lines().collect();
    assert!(
        folders.len() == 2 && folders[0] == folders[1],
        "the shell begins with it: {folders:?}"
    );
    let shell = lab
        .ok(
            "Bash",
            json!({"command": "ps -o pgid= -o sid= -p $$ | tr -s ' '; echo $$"}),
        )
        .await;
    // In bubblewrap the session belongs to its first process.
    if tier() == Some(Tier::Bubblewrap) {
        return;
    }
    let ids: Vec<&str> = shell["output"].as_str().unwrap().split_whitespace().collect();
    // A program that supervises has a session of its own, in which the command is.
    let is_leader = tier().is_none();
    assert!(
        ids.len() == 3 && ids[0] == ids[2] && (ids[1] == ids[2]) == is_leader,
        "its own group, and its own session or its supervisor's: {ids:?}"
    );
}

#[tokio::test]
async fn s5_tokens_of_the_node_are_not_in_the_environment() {
    // The test's own environment can't be changed safely while other tests run, so a child with such variables asks.
    if std::env::var_os("GSV_TOKEN").is_none() {
        let me = std::env::current_exe().unwrap();
        let status = std::process::Command::new(me)
            .args([std::thread::current().name().unwrap(), "--exact"])
            .envs([
                ("GSV_TOKEN", "secret-1"),
                ("GSV_NODE_TOKEN_2", "secret-2"),
                ("OTHER", "kept"),
            ])
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let lab = Lab::new();
    let output = lab.ok("Bash", json!({"command": "env"})).await["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(!output.contains("secret-") && output.contains("GSV=1\n"));
    assert_eq!(
        output.contains("OTHER=kept"),
        tier().is_none(),
        "a sandbox passes on a short list"
    );
}

#[tokio::test]
async fn p6_2_w26_a_timeout_kills_the_whole_group_and_keeps_the_output() {
    let lab = Lab::new();
    let command = "sh -c 'trap \"\" TERM; echo $$ >grandchild; while :; do sleep 0.05; done' & sleep 300 & echo $! >child; echo before; wait";
    let done = lab.ok("Bash", json!({"command": command, "timeout": 400})).await;
    assert_eq!(
        (&done["status"], &done["timedOut"], &done["output"]),
        (&json!("failed"), &json!(true), &json!("before\n"))
    );
    assert!(done["durationMs"].as_u64().unwrap() < 5000);
    for file in ["grandchild", "child"] {
        let pid = lab.get(file);
        until("the child is gone", || !lab.is_running(&pid)).await;
    }
}

#[tokio::test]
async fn p14_cancel_ends_a_group_that_ignores_sigterm() {
    let lab = Lab::new();
    let cancel = Cancel::default();
    let context = CallContext {
        cancel: cancel.clone(),
        ..CallContext::new("c/1")
    };
    let call = lab.call_with(
        "Bash",
        json!({"command": "trap '' TERM; echo $$ >pid; echo partial; while :; do sleep 0.05; done"}),
        context,
    );
    let asked = async {
        until("the command runs", || {
            lab.ws("pid").exists() && !lab.get("pid").is_empty()
        })
        .await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, asked);
    let error = result.unwrap_err();
    assert_eq!(error.reason(), "tool.cancelled");
    assert!(error.to_string().contains("partial"));
    let pid = lab.get("pid");
    until("the command is gone", || !lab.is_running(&pid)).await;
}

#[tokio::test]
async fn p6_2_the_deadline_of_a_call_is_a_timeout() {
    let lab = Lab::new();
    let context = CallContext {
        deadline: Some(Instant::now() + Duration::from_millis(300)),
        ..CallContext::new("d/1")
    };
    let done = lab
        .call_with("Bash", json!({"command": "sleep 60"}), context)
        .await
        .unwrap();
    assert_eq!(done["timedOut"], true);
}

#[tokio::test]
async fn p6_2_a_daemon_left_behind_does_not_block_the_call() {
    let lab = Lab::new();
    let done = lab
        .ok("Bash", json!({"command": "sleep 60 & echo $! >pid; echo over"}))
        .await;
    assert_eq!(
        (&done["status"], &done["output"]),
        (&json!("completed"), &json!("over\n"))
    );
    assert!(done["durationMs"].as_u64().unwrap() < 20_000);
    let pid = lab.get("pid");
    if tier() == Some(Tier::Bubblewrap) {
        // It has ended with its command: so do all processes of a namespace.
        return;
    }
    assert!(lab.is_running(&pid));
    std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
}

#[tokio::test]
async fn p6_2_w26_long_output_keeps_its_tail() {
    let lab = Lab::new();
    let done = lab
        .ok(
            "Bash",
            json!({"command": "i=0; while [ $i -lt 60000 ]; do echo \"€ $i\"; i=$((i+1)); done"}),
        )
        .await;
    let output = done["output"].as_str().unwrap();
    assert_eq!((output.chars().count(), &done["truncated"]), (200_000, &json!(true)));
    assert!(output.ends_with("€ 59998\n€ 59999\n") && !output.contains('\u{FFFD}'));
    assert_eq!(done["tail"].as_str().unwrap().chars().count(), 2000);
    let binary = lab.ok("Bash", json!({"command": "printf '\\377\\200a\\033[1m'"})).await;
    assert_eq!(binary["output"], "\u{FFFD}\u{FFFD}a\u{1b}[1m");
}

#[tokio::test]
async fn w26_a_flood_of_output_is_bounded_on_disk() {
    let lab = Lab::new();
    let done = lab
        .ok(
            "Bash",
            json!({"command": "head -c 120000000 /dev/zero | tr '\\0' y; echo; echo the end", "timeout": 25000}),
        )
        .await;
    assert_eq!(
        (&done["status"], &done["truncated"]),
        (&json!("completed"), &json!(true))
    );
    assert!(done["tail"].as_str().unwrap().ends_with("y\nthe end\n"));
}

#[tokio::test]
async fn p6_2_live_output_splits_no_character_and_loses_nothing() {
    let lab = Lab::new();
    let (progress, mut news) = mpsc::channel::<Progress>(4);
    let context = CallContext {
        progress: Some(progress),
        ..CallContext::new("p/1")
    };
    let command = "for i in 1 2 3; do printf '\\342'; sleep 0.12; printf '\\202\\254 '; echo $i; done; until [ -e seen ]; do sleep 0.02; done; echo last";
    let call = lab.call_with("Bash", json!({"command": command}), context);
    let watch = async {
        let mut chunks = Vec::new();
        while let Some(news) = news.recv().await {
            assert_eq!(news.stream, "output");
            chunks.push(news.chunk);
            // Only output that arrives while the command runs lets it go on.
            if chunks.concat().contains("€ 3\n") {
                lab.put("seen", "");
            }
        }
        chunks
    };
    let (done, chunks) = tokio::join!(call, watch);
    assert_eq!(chunks.concat(), done.unwrap()["output"].as_str().unwrap());
    assert!(chunks.len() > 1 && !chunks.concat().contains('\u{FFFD}'));
}

#[tokio::test]
async fn p6_2_live_output_is_sent_at_most_every_50_ms() {
    let lab = Lab::new();
    let (progress, mut news) = mpsc::channel::<Progress>(1000);
    let context = CallContext {
        progress: Some(progress),
        ..CallContext::new("p/2")
    };
    let begin = Instant::now();
    let command = "i=0; while [ $i -lt 100 ]; do echo $i; sleep 0.005; i=$((i+1)); done";
    let done = lab
        .call_with("Bash", json!({"command": command}), context)
        .await
        .unwrap();
    // The last part is sent at the end, without a pause before it.
    let most = begin.elapsed().as_millis() / 50 + 1;
    let mut chunks = Vec::new();
    while let Some(news) = news.recv().await {
        chunks.push(news.chunk);
    }
    assert_eq!(chunks.concat(), done["output"].as_str().unwrap());
    assert!(chunks.len() as u128 <= most, "{} parts, at most {most}", chunks.len());
}

#[tokio::test]
async fn p6_one_call_id_starts_once() {
    let lab = Lab::new();
    let run = || {
        lab.call_with(
            "Bash",
            json!({"command": "echo x >>count"}),
            CallContext::new("s/1/2/3"),
        )
    };
    assert_eq!(run().await.unwrap()["status"], "completed");
    assert_eq!(run().await.unwrap_err().reason(), "tool.outcome_unknown");
    assert_eq!(lab.get("count"), "x\n");
}

#[tokio::test]
async fn p6_k15_nothing_runs_before_the_start_is_recorded() {
    let lab = Lab::new();
    let ran = lab.ws("ran");
    let seen = ran.clone();
    let refuse = CallContext {
        on_started: Some(Box::new(|info| {
            assert!(
                info.pid > 1
                    && info.pid == info.pgid
                    && !info.start_time.is_empty()
                    && !info.boot_id.is_empty()
                    && info.spool.is_dir()
            );
            Box::pin(async { Err(std::io::Error::other("the disk is full")) })
        })),
        ..CallContext::new("k/1")
    };
    let error = lab
        .call_with("Bash", json!({"command": "echo x >>ran"}), refuse)
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "tool.io");
    let record = CallContext {
        on_started: Some(Box::new(move |_| {
            assert!(!seen.exists(), "it ran before its start was recorded");
            Box::pin(async { Ok(()) })
        })),
        ..CallContext::new("k/1")
    };
    assert_eq!(
        lab.call_with("Bash", json!({"command": "echo x >>ran"}), record)
            .await
            .unwrap()["status"],
        "completed",
        "refused starts leave nothing behind"
    );
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "x\n");
}

#[tokio::test]
async fn s20_the_spool_is_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    lab.call_with("Bash", json!({"command": "umask"}), CallContext::new("u"))
        .await
        .unwrap();
    for (path, mode) in [("spool", 0o700), ("spool/u", 0o700), ("spool/u/output", 0o600)] {
        assert_eq!(
            lab.dir.path().join(path).metadata().unwrap().permissions().mode() & 0o777,
            mode,
            "{path}"
        );
    }
}

#[tokio::test]
async fn bash_starts_only_in_directories() {
    let lab = Lab::new();
    lab.put("f", "");
    for (workdir, reason) in [
        ("f", "path.not_a_file"),
        ("none", "path.not_found"),
        ("..", "path.outside_workspace"),
    ] {
        let args: Value = json!({"command": "true", "workdir": workdir});
        assert_eq!(lab.reason("Bash", args).await, reason);
    }
}

#[tokio::test]
async fn a_test_that_fails_leaves_no_command_behind() {
    let lab = Lab::new();
    lab.ok(
        "Bash",
        json!({"command": "echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done", "background": true}),
    )
    .await;
    until("the command's pid", || {
        std::fs::read_to_string(lab.ws("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    })
    .await;
    let pid = lab.host_pid(&lab.get("pid")).unwrap();
    assert!(is_running(&pid));
    drop(lab);
    until("the command's end", || !is_running(&pid)).await;
}
