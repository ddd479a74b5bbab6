//! `gsv job` against a gateway that the test plays.

use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{asked, fed, played, serve};
use crate::common::terminal::Terminal;
use crate::common::{Home, Run};
use serde_json::{Value, json};

const KEY: &str = "agent:main:task:abc";

fn job(status: &str) -> Value {
    let mut job =
        json!({"job_id": "abc", "status": status, "agent_name": "main", "agent_id": "main", "created_at": 1000});
    if status != "queued" {
        job["started_at"] = json!(2000);
        job["session_key"] = json!(KEY);
    }
    if !["queued", "running", "awaiting_approval"].contains(&status) {
        job["ended_at"] = json!(5000);
    }
    job
}

fn reported(status: &str, report: &str, summary: &str) -> Value {
    let mut job = job(status);
    job["report"] = json!({"status": report, "summary": summary, "tool_calls": [], "usage": {"input": 1, "output": 1, "total": 2},
        "cost_usd": 0.25, "metadata": {"agent_id": "main", "task_id": "abc", "session_key": KEY, "run_id": "task-abc"}});
    job
}

fn story(connection: &mut Connection, calls: &Value) {
    serve(
        connection,
        "run.why",
        &json!({"sessionKey": KEY, "runId": "task-abc"}),
        &json!({"sessionKey": KEY, "runId": "task-abc", "startedAt": 1, "end": "open", "left": 0,
            "usage": {"input": 1, "output": 1, "total": 2},
            "steps": [{"step": 0, "at": 1, "ms": 1, "provider": "p", "model": "m", "usage": {"input": 1, "output": 1, "total": 2}, "calls": calls}]}),
    );
}

fn get(connection: &mut Connection, answer: &Value) {
    serve(connection, "job.get", &json!({"job_id": "abc"}), answer);
}

fn question(code: &str, call: &str) -> Value {
    json!({"code": code, "sessionKey": KEY, "agentId": "main", "runId": "task-abc", "callId": call, "tool": "lap__Bash", "nodeId": "lap",
        "text": "rm -rf build", "textBytes": 12, "why": "It runs a program.", "rule": "mode ask", "hash": "h", "createdAt": 1, "expiresAt": 9})
}

/// Beside one of another conversation, with which the job has nothing to do.
fn lists(connection: &mut Connection, questions: &[Value]) {
    let mut other = question("Q9ZZZ", "y/r1/0/0");
    other["sessionKey"] = json!("agent:main:cli:dm:main");
    let all: Vec<&Value> = questions.iter().chain([&other]).collect();
    serve(connection, "approval.list", &json!({}), &json!({"approvals": all}));
}

const SENTENCE: &str = "The task waits for the owner's word: gsv approval allow K7Q2A.";

fn waits() -> Value {
    reported("awaiting_approval", "awaiting_approval", SENTENCE)
}

fn watched(flags: &[&str], end: Value) -> Run {
    let args: Vec<&str> = ["job", "watch", "abc"].iter().chain(flags).copied().collect();
    let asks = !flags.contains(&"--json");
    played(&args, move |connection| {
        get(connection, &job("queued"));
        get(connection, &end);
        if asks {
            story(connection, &json!([]));
        }
        if end["status"] == "awaiting_approval" {
            lists(connection, &[question("K7Q2A", "x/r1/0/0")]);
        }
    })
}

/// The job `x` of the agent main is queued.
fn take(connection: &mut Connection) {
    let params = json!({"task": {"agent_name": "main", "instructions": "x"}});
    let taken = json!({"job_id": "abc", "status": "queued"});
    serve(connection, "job.submit", &params, &taken);
}

#[test]
fn jb13_submit_sends_the_task_with_its_data_and_prints_the_id() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let taken = json!({"job_id": "abc", "status": "queued"});
    let args = ["job", "submit", "triage", "Sort it.", "--data", "-", "--key", "k1"];
    let run = fed(
        &home,
        &gateway,
        &args,
        r#"{"order": 1042}"#,
        vec![Box::new(|connection| {
            let task = json!({"agent_name": "triage", "instructions": "Sort it.", "payload": {"order": 1042}});
            serve(connection, "job.submit", &json!({"task": task, "key": "k1"}), &taken);
        })],
    );
    let run = run.ok();
    assert_eq!(run.stdout, "abc\n");
    assert!(run.stderr.contains("gsv job watch abc"), "{}", run.stderr);
}

#[test]
fn jb13_data_may_be_in_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[1, 2]").unwrap();
    let run = asked(
        &["job", "submit", "main", "x", "--data", file.path().to_str().unwrap()],
        "job.submit",
        &json!({"task": {"agent_name": "main", "instructions": "x", "payload": [1, 2]}}),
        &json!({"job_id": "abc", "status": "queued"}),
    );
    assert_eq!(run.ok().stdout, "abc\n");
}

#[test]
fn jb13_data_that_is_not_json_is_not_sent() {
    let home = Home::new();
    for (input, says) in [("{", "The data is not JSON"), ("", "The data is not JSON")] {
        let run = home
            .gsv_with_stdin(["job", "submit", "main", "x", "--data", "-"], input)
            .failed(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let run = home
        .gsv(["job", "submit", "main", "x", "--data", "/none/data.json"])
        .failed(1);
    assert!(run.stderr.contains("/none/data.json"), "{}", run.stderr);
}

#[test]
fn jb13_an_id_that_no_job_can_have_is_refused_in_words() {
    let home = Home::new();
    for wrong in ["ID", "a b", "", "a/b"] {
        for verb in ["show", "cancel", "watch"] {
            let run = home.gsv(["job", verb, "--", wrong]).failed(2);
            assert!(run.stderr.contains("is not the id of a job"), "{}", run.stderr);
        }
    }
}

#[test]
fn jb13_a_beginning_of_an_id_and_empty_instructions_are_refused_in_words() {
    for command in ["show", "cancel", "watch"] {
        let method = if command == "cancel" { "job.cancel" } else { "job.get" };
        let run = played(&["job", command, "o3sf7jff"], |connection| {
            let request = connection.expect(method);
            connection.error(&request, 404, "job.not_found", "There is no such job.");
        });
        assert_ne!(run.code, Some(0), "{run:?}");
        let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = "There is no job o3sf7jff: the id of a job has 26 characters.";
        assert!(words.contains(part), "{words}");
        assert!(words.contains("Copy the whole id from `gsv job list`."), "{words}");
    }
    let empty = FakeGateway::new().home().gsv(["job", "submit", "main", "  "]).failed(2);
    assert!(empty.stderr.contains("The instructions are empty."), "{}", empty.stderr);
}

#[test]
fn jb13_list_reads_page_after_page() {
    let row = |id: &str, status: &str| {
        json!({"job_id": id, "status": status, "agent_name": "main", "agent_id": "main", "created_at": 1000,
            "started_at": 1000, "ended_at": 62_000, "instructions": "Count\u{1b}[31m the words.", "cost_usd": 0.25})
    };
    let run = played(
        &["job", "list", "-n", "3", "--status", "failed", "--agent", "main"],
        |connection| {
            let params = json!({"status": "failed", "agent": "main", "limit": 3});
            serve(
                connection,
                "job.list",
                &params,
                &json!({"jobs": [row("a1", "failed")], "cursor": "c1"}),
            );
            let params = json!({"status": "failed", "agent": "main", "limit": 2, "cursor": "c1"});
            serve(connection, "job.list", &params, &json!({"jobs": [row("a2", "failed")]}));
        },
    );
    let run = run.ok();
    assert!(run.stdout.starts_with("ID  STATUS  AGENT"), "{}", run.stdout);
    for part in ["a1", "a2", "failed", "1 min 1 s", "$0.25", "the words."] {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
    let none = asked(
        &["job", "list"],
        "job.list",
        &json!({"limit": 20}),
        &json!({"jobs": []}),
    )
    .ok();
    assert!(none.stderr.contains("gsv job submit"), "{}", none.stderr);
    let full = json!({"jobs": [row("a1", "failed")], "cursor": "c1"});
    let older = asked(&["job", "list", "-n", "1"], "job.list", &json!({"limit": 1}), &full).ok();
    assert!(older.stderr.contains("There are older jobs"), "{}", older.stderr);
    assert!(!run.stderr.contains("older"), "{}", run.stderr);
}

#[test]
fn jb13_a_list_that_ends_before_the_oldest_job_says_how_many_were_searched() {
    let run = played(&["job", "list", "--status", "queued"], |connection| {
        for page in 0..50 {
            let mut params = json!({"status": "queued", "limit": 20});
            if page > 0 {
                params["cursor"] = json!("c");
            }
            serve(
                connection,
                "job.list",
                &params,
                &json!({"jobs": [], "cursor": "c", "searched": 20_000}),
            );
        }
    })
    .ok();
    assert!(
        run.stderr.contains("Only the newest 1000000 jobs were searched"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("no such jobs"), "{}", run.stderr);
}

#[test]
fn jb4_show_has_the_reason_for_which_a_step_is_tried_again() {
    let mut waits = job("running");
    waits["error"] = json!({"reason": "node.offline", "message": "The gateway is away."});
    let run = asked(&["job", "show", "abc"], "job.get", &json!({"job_id": "abc"}), &waits).ok();
    assert!(run.stdout.contains("retries after"), "{}", run.stdout);
    assert!(run.stdout.contains("The gateway is away."), "{}", run.stdout);
}

#[test]
fn jb13_show_and_cancel() {
    let done = reported("succeeded", "completed", "Three words.");
    let run = asked(&["job", "show", "abc"], "job.get", &json!({"job_id": "abc"}), &done).ok();
    for part in ["succeeded", KEY, "$0.25", "Three words."] {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.stdout);
    }
    let mut stopping = job("running");
    stopping["cancelling"] = json!(true);
    for (answer, says) in [
        (job("cancelled"), "The job is cancelled."),
        (stopping, "Cancellation requested. The job stops at its next step."),
        (done, "The job has ended already: succeeded."),
    ] {
        let run = asked(
            &["job", "cancel", "abc"],
            "job.cancel",
            &json!({"job_id": "abc"}),
            &answer,
        )
        .ok();
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn jb13_watch_tells_what_happens_and_prints_the_report() {
    let run = played(&["job", "watch", "abc"], |connection| {
        get(connection, &job("queued"));
        get(connection, &job("running"));
        story(connection, &json!([{"callId": "x/r1/0/0", "tool": "laptop__Bash"}]));
        get(connection, &reported("succeeded", "completed", "Three words."));
        story(
            connection,
            &json!([{"callId": "x/r1/0/0", "tool": "laptop__Bash", "outcome": "ok", "durationMs": 1000}]),
        );
    });
    let run = run.ok();
    assert_eq!(run.stdout, "Three words.\n");
    for part in ["queued", "running", "laptop__Bash  ok, 1.0 s"] {
        assert!(run.stderr.contains(part), "{part} is not in {}", run.stderr);
    }
}

#[test]
fn jb13_the_exit_status_of_watch_says_how_the_job_ended() {
    for (end, code, says) in [
        (reported("succeeded", "completed", "Done."), 0, ""),
        (
            reported("failed", "failed", "The model says no."),
            1,
            "The model says no.",
        ),
        (
            reported("budget_exceeded", "budget_exceeded", "Too many steps."),
            1,
            "Too many steps.",
        ),
        (reported("cancelled", "cancelled", "The run was stopped."), 130, ""),
        (waits(), 5, "gsv approval allow K7Q2A"),
    ] {
        let shown = end.clone();
        let run = watched(&[], end.clone());
        assert_eq!(run.code, Some(code), "{shown}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{}", run.stderr);
        let run = watched(&["--json"], end);
        assert_eq!(run.code, Some(code), "{shown}: {}", run.stderr);
        assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), shown);
    }
}

#[test]
fn jb13_the_question_of_a_job_is_shown_with_its_call_once() {
    let said = |run: &Run| run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let call = "K7Q2A lap__Bash on lap, for agent:main:task:abc";
    let answers = "Answer with `gsv approval allow K7Q2A` or `gsv approval deny K7Q2A`.";
    let two = [question("ACDEF", "x/r1/0/1"), question("K7Q2A", "x/r1/0/0")];
    for args in [
        &["job", "watch", "abc"][..],
        &["job", "submit", "main", "x", "--wait"][..],
    ] {
        let run = played(args, |connection| {
            if args[1] == "submit" {
                let params = json!({"task": {"agent_name": "main", "instructions": "x"}});
                let taken = json!({"job_id": "abc", "status": "queued"});
                serve(connection, "job.submit", &params, &taken);
            }
            get(connection, &waits());
            story(connection, &json!([]));
            // The gateway lists it a moment later.
            lists(connection, &[]);
            lists(connection, &two);
        })
        .failed(5);
        let words = said(&run);
        for part in [
            call,
            "It runs a program. (mode ask)",
            "| rm -rf build",
            answers,
            "Each question has its own code (`gsv approval list`).",
            "Then watch it again: `gsv job watch abc`.",
        ] {
            assert_eq!(
                words.matches(part).count(),
                if part.starts_with(['|', 'I']) { 2 } else { 1 },
                "{part}: {words}"
            );
        }
        assert!(!words.contains("The task waits"), "{words}");
        assert!(
            words.find("K7Q2A lap").unwrap() < words.find("ACDEF lap").unwrap(),
            "{words}"
        );
    }
    let run = played(&["job", "show", "abc"], |connection| {
        get(connection, &waits());
        lists(connection, &two[1..]);
    })
    .ok();
    assert!(run.stdout.contains("  | rm -rf build"), "{}", run.stdout);
    assert!(!run.stdout.contains("The task waits"), "{}", run.stdout);
    assert!(said(&run).contains(answers), "{}", run.stderr);
    // A token that only reads may not ask: the sentence of the job remains.
    let run = played(&["job", "show", "abc"], |connection| {
        get(connection, &waits());
        let request = connection.expect("approval.list");
        connection.error(&request, 403, "auth.scope", "No.");
    })
    .ok();
    assert!(run.stdout.contains(SENTENCE), "{}", run.stdout);
}

#[test]
fn jb13_the_question_of_a_task_that_the_job_has_handed_on_is_shown_with_its_call() {
    let mut below = question("6AMYC", "z/r1/0/0");
    below["sessionKey"] = json!("agent:helper:task:def");
    let mut job = waits();
    job["report"]["metadata"]["approvals"] = json!(["6AMYC"]);
    let run = played(&["job", "watch", "abc"], |connection| {
        get(connection, &job);
        story(connection, &json!([]));
        lists(connection, &[below]);
    })
    .failed(5);
    for part in [
        "6AMYC lap__Bash on lap, for agent:helper:task:def",
        "| rm -rf build",
        "gsv approval deny 6AMYC",
    ] {
        let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part}: {words}");
        assert!(!words.contains("Q9ZZZ"), "{words}");
    }
}

#[test]
fn jb13_on_a_terminal_each_question_is_shown_once_and_the_watch_goes_on() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let terminal = Terminal::gsv(&home, &["job", "watch", "abc"]);
    let mut connection = gateway.accept();
    let first = question("K7Q2A", "x/r1/0/0");
    for look in 0..3 {
        get(&mut connection, &waits());
        if look % 2 == 0 {
            story(&mut connection, &json!([]));
            lists(&mut connection, std::slice::from_ref(&first));
        }
    }
    get(&mut connection, &reported("succeeded", "completed", "Three words."));
    story(&mut connection, &json!([]));
    let picture = terminal.pictures("Three words.");
    assert_eq!(picture.matches("| rm -rf build").count(), 1, "{picture}");
    assert_eq!(picture.matches("Answer with").count(), 1, "{picture}");
    assert!(!picture.contains("The task waits"), "{picture}");
    terminal.ends_with(0);
}

#[test]
fn jb13_wait_watches_the_job_that_was_submitted() {
    let run = played(&["job", "submit", "main", "x", "--wait"], |connection| {
        take(connection);
        get(connection, &reported("succeeded", "completed", "Done."));
        story(connection, &json!([]));
    });
    assert_eq!(run.ok().stdout, "Done.\n");
}

#[test]
fn jb13_watch_reconnects_after_a_restart_of_the_gateway_and_tells_each_thing_once() {
    let call = json!([{"callId": "x/r1/0/0", "tool": "laptop__Bash", "outcome": "ok", "durationMs": 1000}]);
    for args in [
        &["job", "watch", "abc"][..],
        &["job", "submit", "main", "x", "--wait"][..],
    ] {
        let gateway = FakeGateway::new();
        let home = gateway.home();
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(|| home.gsv(args));
            let mut connection = gateway.accept();
            if args[1] == "submit" {
                let params = json!({"task": {"agent_name": "main", "instructions": "x"}});
                let taken = json!({"job_id": "abc", "status": "queued"});
                serve(&mut connection, "job.submit", &params, &taken);
            }
            get(&mut connection, &job("running"));
            story(&mut connection, &call);
            connection.expect("job.get");
            connection.cut();
            // It is not ready yet.
            gateway.refuse(503, "limit.sockets", "Too many connections.", 1013);
            let mut connection = gateway.accept();
            get(&mut connection, &job("running"));
            get(&mut connection, &reported("succeeded", "completed", "Three words."));
            story(&mut connection, &call);
            run.join().unwrap()
        })
        .ok();
        assert_eq!(run.stdout, "Three words.\n");
        for part in ["Reconnecting…", "connected again", "laptop__Bash  ok", "running"] {
            assert_eq!(run.stderr.matches(part).count(), 1, "{part}: {}", run.stderr);
        }
    }
}

#[test]
fn jb13_a_watch_that_cannot_reconnect_says_that_the_job_goes_on() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| home.gsv(["job", "watch", "abc"]));
        let mut connection = gateway.accept();
        connection.expect("job.get");
        connection.cut();
        gateway.refuse(401, "auth.required", "The token was revoked.", 1008);
        run.join().unwrap()
    })
    .failed(3);
    for part in [
        "The token was revoked.",
        "The job is stored in the gateway and goes on there.",
        "`gsv job watch abc`",
    ] {
        assert!(run.stderr.contains(part), "{part} is not in {}", run.stderr);
    }
}

#[test]
fn jb11_a_job_that_waits_for_the_resume_says_so() {
    let says = "GSV is stopped since 1970-01-01 00:00:00 UTC, so the job does not begin. Go on with `gsv resume`.";
    for wait in [false, true] {
        let gateway = FakeGateway::new().serving(&["gateway.status"]);
        let home = gateway.home();
        let mut args = vec!["job", "submit", "main", "x"];
        args.extend(wait.then_some("--wait"));
        let stopped = |connection: &mut Connection| {
            let answer = json!({"version": "1", "stopped": {"since": 1, "by": "cli"}});
            serve(connection, "gateway.status", &json!({}), &answer);
        };
        let run = fed(
            &home,
            &gateway,
            &args,
            "",
            vec![Box::new(|connection| {
                take(connection);
                if wait {
                    get(connection, &job("queued"));
                    stopped(connection);
                    get(connection, &job("queued"));
                    get(connection, &reported("succeeded", "completed", "Done."));
                    story(connection, &json!([]));
                } else {
                    stopped(connection);
                }
            })],
        )
        .ok();
        assert_eq!(run.stderr.matches(says).count(), 1, "{}", run.stderr);
    }
}

#[test]
fn jb2_a_key_that_was_used_before_is_told() {
    for (status, says) in [
        ("queued", "The job is queued."),
        ("running", "The job is running."),
        ("succeeded", "The job has ended already: succeeded."),
    ] {
        let run = asked(
            &["job", "submit", "main", "x", "--key", "k"],
            "job.submit",
            &json!({"task": {"agent_name": "main", "instructions": "x"}, "key": "k"}),
            &json!({"job_id": "abc", "status": status}),
        )
        .ok();
        assert!(run.stderr.contains(says), "{}", run.stderr);
        // A new job is queued, and an earlier one may be.
        let told = run
            .stderr
            .contains("This key was used before, so no new job was submitted.");
        assert_eq!(told, status != "queued", "{}", run.stderr);
    }
}

#[test]
fn dg8_show_has_the_tree_of_what_was_handed_on() {
    let mut done = reported("succeeded", "completed", "Three words.");
    let task = |name: &str, depth: u64, more: Value| {
        let mut task = json!({"agent_name": name, "task_id": name, "session_key": format!("agent:{name}:task:t"), "depth": depth, "cost_usd": 0});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    done["report"]["delegations"] = json!([
        task("triage", 1, json!({"status": "completed", "cost_usd": 0.125})),
        task("reader", 2, json!({"status": "budget_exceeded"})),
        task("writer", 1, json!({})),
    ]);
    let run = asked(&["job", "show", "abc"], "job.get", &json!({"job_id": "abc"}), &done).ok();
    let tree = "Handed on:\n  triage  completed, $0.1250  `gsv why --session agent:triage:task:t`\n    reader  out of its budget, no known cost  `gsv why --session agent:reader:task:t`\n  writer  not ended, no known cost  `gsv why --session agent:writer:task:t`\n\nThree words.\n";
    assert!(run.stdout.contains(tree), "{}", run.stdout);
    assert!(run.stdout.contains("`gsv why abc`"), "{}", run.stdout);
    let queued = asked(
        &["job", "show", "abc"],
        "job.get",
        &json!({"job_id": "abc"}),
        &job("queued"),
    )
    .ok();
    assert!(!queued.stdout.contains("gsv why"), "{}", queued.stdout);
    assert!(!queued.stdout.contains("Handed on"), "{}", queued.stdout);
}

#[test]
fn jb13_the_help_names_the_values_of_status_as_the_list_shows_them() {
    let home = Home::new();
    for (noun, value, shown) in [
        ("job", "awaiting_approval", "waiting for your word"),
        ("job", "budget_exceeded", "out of its budget"),
        ("events", "waiting_approval", "waiting for your word"),
        ("events", "dead", "dead letter"),
    ] {
        let run = home.gsv([noun, "list", "--help"]).ok();
        let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("{value} as \"{shown}\"")), "{words}");
    }
}
