//! A node that is killed with SIGKILL at critical moments. This program is also the node that is killed, so it has its own
//! `main`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../gsv-tools/tests/common/own_harness.rs"]
mod own_harness;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use own_harness::run_tests;
use serde_json::{Value, json};
use support::{Conn, Gateway, Home, until};

/// Holds the settings of the node. Without it the program runs the tests.
const NODE: &str = "GSV_TEST_NODE";

/// The names of these tests, each with a function that runs it.
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        [$((stringify!($test).to_owned(), (|| block($test())) as fn())),+]
    };
}

fn main() -> ExitCode {
    if let Ok(settings) = std::env::var(NODE) {
        run_node(&settings);
    }
    let mut tests = tests![
        k16_a_command_survives_a_killed_node_and_is_not_started_again,
        k17_a_command_that_ends_without_a_node_keeps_its_result,
        k16b_a_command_that_was_killed_with_its_node_has_an_unknown_outcome,
        k15_calls_that_waited_in_a_killed_node_are_started_once_when_asked_for_again,
        p7_k18_an_unacknowledged_result_survives_a_killed_node,
        p6_on_a_full_disk_only_recorded_calls_start_and_every_call_is_answered,
        p6_p7_random_kills_repeat_no_call_and_lose_no_result,
    ]
    .to_vec();
    if cfg!(target_os = "linux") {
        tests.extend(tests![an_idle_node_uses_little_memory]);
    }
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    run_tests(&args, tests)
}

fn block(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

fn run_node(settings: &str) -> ! {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let text = |name: &str| settings[name].as_str().unwrap().to_owned();
    let config = support::config(&text("url"), Path::new(&text("workspace")), Path::new(&text("state")));
    let runtime = gsv_node::runtime().unwrap();
    let outcome = runtime.block_on(gsv_node::run(config, Arc::new(drop), std::future::pending()));
    panic!("the node ended: {outcome:?}");
}

/// A node process; dropping it kills it.
struct NodeProcess(Child);

impl NodeProcess {
    fn start(home: &Home, gateway: &Gateway) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), home, gateway)
    }

    /// No file of this node or its commands can grow beyond some kilobytes: as on a full disk.
    fn start_on_full_disk(home: &Home, gateway: &Gateway) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", r#"trap '' XFSZ; ulimit -f 24; exec "$0" "$@""#])
            .arg(std::env::current_exe().unwrap());
        Self::start_by(shell, home, gateway)
    }

    fn start_by(mut command: Command, home: &Home, gateway: &Gateway) -> Self {
        let settings = json!({"url": gateway.url, "workspace": home.workspace(), "state": home.state()});
        let child = command
            .env(NODE, settings.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends SIGKILL and waits for the end.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // Both fail only when the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

async fn acked(conn: &mut Conn, call_id: &str) -> Value {
    let result = conn.result_of(call_id).await;
    conn.ack(&result);
    conn.settle().await;
    result.params
}

async fn k16_a_command_survives_a_killed_node_and_is_not_started_again() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    let args = json!({"command": "sleep 1; echo done >> f; echo the real end"});
    conn.invoke("s/r1/1/0", "Bash", args.clone());
    conn.phase("s/r1/1/0", "started").await;
    node.kill();
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    // A gateway that does not know whether the call arrived resends it.
    conn.invoke("s/r1/1/0", "Bash", args);
    let result = acked(&mut conn, "s/r1/1/0").await;
    assert_eq!(
        (&result["outcome"], &result["result"]["exitCode"]),
        (&json!("ok"), &json!(0))
    );
    assert!(result["result"]["output"].as_str().unwrap().contains("the real end"));
    assert_eq!(lines(&home.file("f")), 1);
}

async fn k17_a_command_that_ends_without_a_node_keeps_its_result() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    conn.invoke(
        "c",
        "Bash",
        json!({"command": "echo x >> f; while [ ! -e go ]; do sleep 0.02; done; echo bye; echo over > over; exit 7"}),
    );
    conn.phase("c", "started").await;
    until("the start", || lines(&home.file("f")) == 1).await;
    node.kill();
    fs::write(home.file("go"), "").unwrap();
    let calls = home.state().join("calls/c/exit");
    until("the end", || calls.exists()).await;
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "finished".into())]);
    let result = acked(&mut conn, "c").await;
    assert_eq!(
        (&result["outcome"], &result["result"]["exitCode"]),
        (&json!("ok"), &json!(7))
    );
    assert!(result["result"]["output"].as_str().unwrap().contains("bye"));
    assert_eq!(lines(&home.file("f")), 1);
}

async fn k16b_a_command_that_was_killed_with_its_node_has_an_unknown_outcome() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    conn.invoke("c", "Bash", json!({"command": "echo x >> f; echo half way; sleep 60"}));
    let pid = conn.phase("c", "started").await["pid"].clone();
    until("the start", || lines(&home.file("f")) == 1).await;
    let output = home.state().join("calls/c/output");
    until("its output", || lines(&output) == 1).await;
    let meta: Value = serde_json::from_slice(&fs::read(home.state().join("calls/c/meta.json")).unwrap()).unwrap();
    node.kill();
    // As in a power cut: the supervisor first, so that no exit is written.
    for target in [meta["supervisorPid"].to_string(), format!("-{}", meta["pgid"])] {
        assert!(
            Command::new("kill")
                .args(["-9", "--", &target])
                .status()
                .unwrap()
                .success()
        );
    }
    until("the end of the command", || !is_alive(&meta["pid"])).await;
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "lost".into())]);
    let result = acked(&mut conn, "c").await;
    assert_eq!(
        (&result["outcome"], &result["reason"]),
        (&json!("unknown"), &json!("tool.outcome_unknown"))
    );
    assert_eq!(result["result"]["pid"], pid);
    assert!(result["result"]["tail"].as_str().unwrap().contains("half way") && result["result"]["startedAt"].is_u64());
    conn.invoke("c", "Bash", json!({"command": "echo x >> f"}));
    acked(&mut conn, "c").await;
    assert_eq!(lines(&home.file("f")), 1);
}

/// A killed process whose parent has not looked is still listed, as a zombie.
fn is_alive(pid: &Value) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

async fn k15_calls_that_waited_in_a_killed_node_are_started_once_when_asked_for_again() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    let running = json!({"command": "while [ ! -e go ]; do sleep 0.05; done"});
    for number in 0..8 {
        conn.invoke(&format!("run{number}"), "Bash", running.clone());
    }
    for number in 0..8 {
        conn.phase(&format!("run{number}"), "started").await;
    }
    let waiting = json!({"command": "echo x >> counter"});
    conn.invoke("wait", "Bash", waiting.clone());
    conn.phase("wait", "accepted").await;
    node.kill();
    fs::write(home.file("go"), "").unwrap();
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    assert!(conn.listed().contains(&("wait".into(), "accepted".into())));
    for _ in 0..8 {
        let result = conn.result().await;
        assert_eq!(result.params["outcome"], "ok");
        conn.ack(&result);
    }
    assert_eq!(lines(&home.file("counter")), 0);
    conn.invoke("wait", "Bash", waiting.clone());
    conn.invoke("wait", "Bash", waiting);
    assert_eq!(acked(&mut conn, "wait").await["outcome"], "ok");
    assert_eq!(lines(&home.file("counter")), 1);
}

async fn p7_k18_an_unacknowledged_result_survives_a_killed_node() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    conn.invoke("c", "Write", json!({"path": "a", "content": "x"}));
    let first = conn.result_of("c").await;
    node.kill();
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    assert_eq!(conn.listed(), vec![("c".into(), "finished".into())]);
    assert_eq!(acked(&mut conn, "c").await, first.params);
}

async fn p6_on_a_full_disk_only_recorded_calls_start_and_every_call_is_answered() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start_on_full_disk(&home, &gateway);
    let mut conn = gateway.accept().await;
    let (mut done, mut refused) = (0, 0);
    for number in 0.. {
        let (call, file) = (format!("c{number}"), format!("f{number}"));
        // A command has a record more, so that different ones are the first to fail.
        let result = if number % 2 == 0 {
            conn.run(&call, "Write", json!({"path": file, "content": "x"})).await
        } else {
            conn.run(&call, "Bash", json!({"command": format!("echo x >> {file}")}))
                .await
        };
        match (result["outcome"].as_str(), result["reason"].as_str()) {
            (Some("ok"), None) => {
                done += 1;
                assert_eq!(lines(&home.file(&file)), 1, "{result}");
            }
            (Some("error"), Some("tool.io")) => {
                refused += 1;
                assert!(!home.file(&file).exists(), "{result}");
            }
            _ => panic!("{result}"),
        }
        if refused == 4 {
            break;
        }
    }
    assert!(done > 8, "{done}");
    node.kill();
    // With free space again the node goes on, and its ledger still knows the first call.
    let _node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    conn.run("c0", "Write", json!({"path": "again", "content": "x"})).await;
    assert!(!home.file("again").exists());
    assert_eq!(
        conn.run("new", "Write", json!({"path": "new", "content": "x"})).await["outcome"],
        "ok"
    );
}

/// The node is killed repeatedly at random moments: every call has at most one effect, every result arrives and is true.
async fn p6_p7_random_kills_repeat_no_call_and_lose_no_result() {
    const CALLS: usize = 24;
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let mut results: Vec<Option<Value>> = vec![None; CALLS];
    let mut seed = fastrand_like(7);
    let mut next = 0;
    let mut rounds = 0;
    while results.iter().any(Option::is_none) {
        rounds += 1;
        assert!(rounds < 60, "the calls do not come to an end");
        let node = NodeProcess::start(&home, &gateway);
        let mut conn = gateway.accept().await;
        // As a gateway does: open calls are asked for again, with a few new ones.
        next = (next + 3).min(CALLS);
        for (number, _) in results
            .iter()
            .enumerate()
            .take(next)
            .filter(|(_, result)| result.is_none())
        {
            conn.invoke(
                &format!("c{number}"),
                "Bash",
                json!({"command": format!("echo x >> f{number}; sleep 0.0{}; echo out", number % 10)}),
            );
        }
        let quiet = next == CALLS && rounds > 12;
        let mut left = if quiet { CALLS } else { seed() % 4 };
        while left > 0 && results.iter().take(next).any(Option::is_none) {
            let result = conn.result().await;
            conn.ack(&result);
            let number: usize = result.params["callId"].as_str().unwrap()[1..].parse().unwrap();
            if let Some(known) = &results[number] {
                assert_eq!(*known, result.params, "another answer");
            }
            results[number] = Some(result.params);
            left -= 1;
        }
        node.kill();
    }
    for (number, result) in results.into_iter().enumerate() {
        let result = result.unwrap();
        let starts = lines(&home.file(&format!("f{number}")));
        match result["outcome"].as_str().unwrap() {
            "ok" => assert_eq!((starts, &result["result"]["exitCode"]), (1, &json!(0)), "{result}"),
            "unknown" => assert!(starts <= 1, "{result}"),
            // Killed between the record of the start and the gate: it is reported as not run, and it did not run.
            "error" => assert_eq!(starts, 0, "{result}"),
            other => panic!("{other}: {result}"),
        }
    }
}

/// A small, seeded source of numbers.
fn fastrand_like(seed: u64) -> impl FnMut() -> usize {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0)
    }
}

async fn an_idle_node_uses_little_memory() {
    let mut gateway = Gateway::start().await;
    let home = Home::new();
    let node = NodeProcess::start(&home, &gateway);
    let mut conn = gateway.accept().await;
    conn.settle().await;
    let status = fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let rss = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Anonymous memory: what the node itself holds. The rest is this program's own (unoptimised) code, mapped.
    assert!(rss("RssAnon:") < 8 * 1024, "{status}");
}
