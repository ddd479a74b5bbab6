//! `gsv why` against a gateway that the test plays.

use crate::common::fake_gateway::{Connection, SESSION};
use crate::common::play::{played, serve};
use serde_json::{Value, json};

const TASK: &str = "agent:main:task:abc";

fn refuse(connection: &mut Connection, method: &str, params: &Value, reason: &str, message: &str) {
    let request = connection.expect(method);
    assert_eq!(&request.params, params, "{method}");
    connection.error(&request, 404, reason, message);
}

fn no_run(connection: &mut Connection, id: &str) {
    let params = json!({"sessionKey": SESSION, "runId": id});
    refuse(
        connection,
        "run.why",
        &params,
        "run.not_found",
        "The log of this conversation has no such run.",
    );
}

fn job(status: &str) -> Value {
    json!({"job_id": "abc", "status": status, "agent_name": "main", "agent_id": "main", "created_at": 1000})
}

#[test]
fn au7_the_id_of_a_job_stands_for_its_run() {
    for reason in ["run.not_found", "session.not_found"] {
        let run = played(&["why", "abc"], |connection| {
            let params = json!({"sessionKey": SESSION, "runId": "abc"});
            refuse(connection, "run.why", &params, reason, "No.");
            let mut done = job("succeeded");
            done["session_key"] = json!(TASK);
            serve(connection, "job.get", &json!({"job_id": "abc"}), &done);
            serve(
                connection,
                "run.why",
                &json!({"sessionKey": TASK, "runId": "task-abc"}),
                &json!({"sessionKey": TASK, "runId": "task-abc", "startedAt": 1, "end": "open", "left": 0,
                    "usage": {"input": 0, "output": 0, "total": 0}, "steps": []}),
            );
        })
        .ok();
        assert!(
            run.stdout.contains("Run task-abc in agent:main:task:abc"),
            "{}",
            run.stdout
        );
        assert!(run.stdout.contains("used       nothing\n"), "{}", run.stdout);
    }
}

#[test]
fn au7_a_job_that_has_no_run_says_whether_it_may_still_begin() {
    let why = |job: Value| {
        played(&["why", "abc"], |connection| {
            no_run(connection, "abc");
            serve(connection, "job.get", &json!({"job_id": "abc"}), &job);
        })
        .failed(1)
        .stderr
    };
    let queued = why(job("queued"));
    assert!(queued.contains("The job abc is queued and has not begun."), "{queued}");
    assert!(queued.contains("gsv job watch abc"), "{queued}");
    let mut failed = job("failed");
    failed["error"] = json!({"reason": "agent.unknown", "message": "There is no agent victim."});
    let failed = why(failed);
    assert!(
        failed.contains("The job abc never began; it is failed: There is no agent victim."),
        "{failed}"
    );
    assert!(!failed.contains("gsv job watch"), "{failed}");
    let cancelled = why(job("cancelled"));
    assert!(
        cancelled.contains("The job abc never began; it is cancelled"),
        "{cancelled}"
    );
}

#[test]
fn au7_the_id_of_a_scheduled_job_stands_for_its_last_run() {
    let key = "agent:main:cron:photos-lmivp";
    let why = |runs: Value| {
        played(&["why", "photos-lmivp"], |connection| {
            no_run(connection, "photos-lmivp");
            serve(connection, "cron.list", &json!({}), &json!({"jobs": [], "count": 0}));
            let times = json!({"jobId": "photos-lmivp", "limit": 200});
            let count = runs.as_array().map_or(0, Vec::len);
            serve(connection, "cron.runs", &times, &json!({"runs": runs, "count": count}));
            if count == 2 {
                serve(
                    connection,
                    "run.why",
                    &json!({"sessionKey": key, "runId": "cron-7"}),
                    &json!({"sessionKey": key, "runId": "cron-7", "startedAt": 1, "end": "open", "left": 0,
                        "usage": {"input": 0, "output": 0, "total": 0}, "steps": []}),
                );
            }
        })
    };
    let skipped = json!({"id": 8, "jobId": "photos-lmivp", "ts": 9, "status": "skipped"});
    let ran = json!({"id": 7, "jobId": "photos-lmivp", "ts": 8, "status": "ok", "sessionKey": key, "runId": "cron-7"});
    let told = why(json!([skipped, ran])).ok();
    assert!(told.stdout.contains(&format!("Run cron-7 in {key}")), "{}", told.stdout);
    let none = why(json!([skipped])).failed(1);
    assert!(none.stderr.contains("gsv cron runs photos-lmivp"), "{}", none.stderr);
    assert!(
        none.stderr
            .contains("The job photos-lmivp has one recorded time, and it called no model."),
        "{}",
        none.stderr
    );
}

#[test]
fn au7_the_last_run_of_a_scheduled_job_is_found_behind_many_skipped_times() {
    let key = "agent:main:cron:photos-lmivp";
    let skipped = |ids: std::ops::Range<u64>| {
        let times = ids
            .rev()
            .map(|id| json!({"id": id, "jobId": "photos-lmivp", "ts": id, "status": "skipped"}));
        times.collect::<Vec<_>>()
    };
    let why = |rest: Vec<Value>, ran: bool| {
        played(&["why", "photos-lmivp"], |connection| {
            no_run(connection, "photos-lmivp");
            serve(connection, "cron.list", &json!({}), &json!({"jobs": [], "count": 0}));
            let newest = json!({"runs": skipped(100..300), "count": 200});
            let params = json!({"jobId": "photos-lmivp", "limit": 200});
            serve(connection, "cron.runs", &params, &newest);
            let params = json!({"jobId": "photos-lmivp", "limit": 200, "beforeId": 100});
            let count = rest.len();
            serve(connection, "cron.runs", &params, &json!({"runs": rest, "count": count}));
            if ran {
                serve(
                    connection,
                    "run.why",
                    &json!({"sessionKey": key, "runId": "cron-7"}),
                    &json!({"sessionKey": key, "runId": "cron-7", "startedAt": 1, "end": "open", "left": 0,
                        "usage": {"input": 0, "output": 0, "total": 0}, "steps": []}),
                );
            }
        })
    };
    let mut times = skipped(8..100);
    times
        .push(json!({"id": 7, "jobId": "photos-lmivp", "ts": 8, "status": "ok", "sessionKey": key, "runId": "cron-7"}));
    let told = why(times, true).ok();
    assert!(told.stdout.contains(&format!("Run cron-7 in {key}")), "{}", told.stdout);
    let none = why(skipped(90..100), false).failed(1);
    assert!(
        none.stderr
            .contains("None of the 210 recorded times of the job photos-lmivp called a model."),
        "{}",
        none.stderr
    );
}

#[test]
fn au7_an_unknown_id_is_refused_with_the_ids_that_why_takes() {
    let says = |stderr: &str| {
        for part in [
            "has no such run",
            "gsv why JOB",
            "gsv why CALL",
            "gsv why RUN --session KEY",
        ] {
            assert!(stderr.contains(part), "{part} is not in {stderr}");
        }
    };
    let run = played(&["why", "abc"], |connection| {
        no_run(connection, "abc");
        refuse(connection, "job.get", &json!({"job_id": "abc"}), "job.not_found", "");
        serve(connection, "cron.list", &json!({}), &json!({"jobs": [], "count": 0}));
        let times = json!({"jobId": "abc", "limit": 200});
        refuse(connection, "cron.runs", &times, "cron.not_found", "");
    })
    .failed(1);
    says(&run.stderr);
    // No job has such an id.
    let run = played(&["why", "R-1"], |connection| {
        no_run(connection, "R-1");
        serve(connection, "cron.list", &json!({}), &json!({"jobs": [], "count": 0}));
    })
    .failed(1);
    says(&run.stderr);
    // With its conversation named, it is the id of a run.
    let run = played(&["why", "abc", "--session", SESSION], |connection| {
        no_run(connection, "abc");
    })
    .failed(1);
    says(&run.stderr);
}
