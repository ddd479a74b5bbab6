//! Jobs as `gsv job` shows them.

use gsv_protocol::types::{
    AgentJob, AgentReport, JobStatus, JobSummary, ReportDelegation, ReportStatus, RunId, StoryCall,
};

use super::call_end::failed_end;
use crate::clean::one_line;
use crate::table::Table;
use crate::units::{ago, dollars, duration};

pub fn standing(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "queued",
        JobStatus::Running => "running",
        JobStatus::AwaitingApproval => "waiting for your word",
        JobStatus::Succeeded => "succeeded",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
        JobStatus::BudgetExceeded => "out of its budget",
    }
}

/// Whether the job has not ended.
pub const fn is_open(status: JobStatus) -> bool {
    matches!(
        status,
        JobStatus::Queued | JobStatus::Running | JobStatus::AwaitingApproval
    )
}

/// Whether a text may be the id of a job, as the gateway has it.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The run of a job (rule JB4).
pub fn run_of(job: &AgentJob) -> RunId {
    RunId::from(format!("task-{}", job.job_id))
}

/// How long it ran, or has run.
fn took(started_at: Option<u64>, ended_at: Option<u64>, now: u64) -> String {
    started_at.map_or_else(String::new, |started| {
        duration(ended_at.unwrap_or(now).saturating_sub(started))
    })
}

pub fn table(jobs: &[JobSummary], now: u64) -> Table<7> {
    Table::new(
        ["ID", "STATUS", "AGENT", "SUBMITTED", "TOOK", "COST", "TASK"],
        jobs.iter().map(|job| {
            [
                one_line(&job.job_id, 64),
                standing(job.status).to_owned(),
                one_line(&job.agent_name, 64),
                ago(job.created_at, now),
                took(job.started_at, job.ended_at, now),
                job.cost_usd.map_or_else(String::new, dollars),
                one_line(&job.instructions, 200),
            ]
        }),
    )
}

/// Calls of models without a known price count as 0, which is not their price.
fn cost(report: &AgentReport) -> String {
    let is_priced = report.cost_usd > 0.0 || report.usage.cost_usd.is_some();
    // Without a call of a model there is nothing whose price could be unknown.
    if is_priced || report.usage.total == 0 {
        dollars(report.cost_usd)
    } else {
        "no known price".to_owned()
    }
}

pub fn details(job: &AgentJob, now: u64) -> Vec<(&'static str, Option<String>)> {
    let status = if job.cancelling.is_some() {
        format!("{}, and told to end", standing(job.status))
    } else {
        standing(job.status).to_owned()
    };
    vec![
        ("id", Some(one_line(&job.job_id, 64))),
        ("status", Some(status)),
        ("agent", Some(one_line(&job.agent_name, 64))),
        ("submitted", Some(ago(job.created_at, now))),
        ("began", job.started_at.map(|at| ago(at, now))),
        ("ended", job.ended_at.map(|at| ago(at, now))),
        ("took", job.started_at.map(|_| took(job.started_at, job.ended_at, now))),
        ("cost", job.report.as_ref().map(cost)),
        (
            "conversation",
            job.session_key.as_ref().map(|key| one_line(key.as_ref(), 400)),
        ),
        (
            "steps",
            job.session_key
                .as_ref()
                .map(|_| format!("`gsv why {}`", one_line(&job.job_id, 64))),
        ),
        (
            if job.ended_at.is_some() {
                "error"
            } else {
                "retries after"
            },
            job.error.as_ref().map(|error| one_line(&error.message, 1_000)),
        ),
    ]
}

/// Deeper tasks are shown as deep as this.
const MAX_INDENT: u64 = 16;

/// The tasks that the job's run has handed to other agents, as a tree: each below the one that has handed it on.
pub fn handed_on(job: &AgentJob) -> Vec<String> {
    let delegations = job.report.as_ref().and_then(|report| report.delegations.as_deref());
    delegations.unwrap_or_default().iter().map(handed).collect()
}

fn handed(task: &ReportDelegation) -> String {
    let status = match task.status {
        None => "not ended",
        Some(ReportStatus::Completed) => "completed",
        Some(ReportStatus::Failed) => "failed",
        Some(ReportStatus::BudgetExceeded) => "out of its budget",
        Some(ReportStatus::AwaitingApproval) => "waiting for your word",
        Some(ReportStatus::Cancelled) => "cancelled",
    };
    // 0 also when the model has no known price.
    let cost = if task.cost_usd > 0.0 {
        dollars(task.cost_usd)
    } else {
        "no known cost".to_owned()
    };
    let indent = "  ".repeat(usize::try_from(task.depth.min(MAX_INDENT)).unwrap_or_default());
    format!(
        "{indent}{}  {status}, {cost}  `gsv why --session {}`",
        one_line(&task.agent_name, 64),
        one_line(task.session_key.as_ref(), 400)
    )
}

/// A call that has ended.
pub fn call_line(call: &StoryCall) -> Option<String> {
    let outcome = call.outcome?;
    let took = call
        .duration_ms
        .map_or_else(String::new, |ms| format!(", {}", duration(ms)));
    Some(format!(
        "{}  {}{}{took}",
        one_line(call.tool.as_ref(), 192),
        outcome.as_str(),
        failed_end(call).map_or_else(String::new, |end| format!(", {end}"))
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn rt2_the_cost_is_known_where_no_model_was_called() {
        let of = |tokens: u64, usd: f64| {
            let report = json!({"status": "completed", "summary": "s", "tool_calls": [], "usage": {"input": tokens, "output": 0, "total": tokens},
                "cost_usd": usd, "metadata": {"agent_id": "main", "task_id": "t", "session_key": "agent:main:task:t", "run_id": "task-t"}});
            cost(&serde_json::from_value(report).unwrap())
        };
        assert_eq!(
            [of(0, 0.0), of(5, 0.0), of(5, 0.5)],
            ["$0.00", "no known price", "$0.5000"]
        );
    }

    #[test]
    fn rt2_a_call_whose_command_failed_has_its_exit_code() {
        let line = |more: Value| {
            let mut call = json!({"callId": "c", "tool": "lap__Bash", "outcome": "ok"});
            call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call_line(&serde_json::from_value(call).unwrap()).unwrap()
        };
        assert_eq!(line(json!({"exitCode": 2})), "lap__Bash  ok, exit code 2");
        assert_eq!(line(json!({"signal": "KILL"})), "lap__Bash  ok, ended by KILL");
        assert_eq!(line(json!({"exitCode": 0})), "lap__Bash  ok");
    }
}
