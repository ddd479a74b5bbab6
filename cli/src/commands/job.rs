//! `gsv job`: tasks for agents that wait for their turn. The report goes to stdout, what happens on the way to stderr.

use std::collections::HashSet;
use std::time::Duration;

use gsv_protocol::methods::{ApprovalList, JobCancel, JobGet, JobList as List, JobSubmit as Submit, RunWhy};
use gsv_protocol::types::{
    AgentJob, ApprovalEntry, ApprovalListParams, JobCancelParams, JobGetParams, JobListParams, JobListResult,
    JobStatus, JobSubmitParams, RunId, RunRequest, RunWhyParams,
};
use serde_json::Value;
use tokio::time::sleep;

use super::approval_view::{Place, in_order, question};
use super::context::Context;
use super::job_view::{call_line, details, standing, table};
use crate::args::{JobCommand, JobSubmit};
use crate::ask;
use crate::chat::outcomes::{asks, how_to_answer};
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::units::now_ms;

/// A page of the index.
const PAGE: u8 = 200;
/// The index counts keys, not matches: a rare status may need many pages.
const MAX_PAGES: u8 = 50;
const LOOK: Duration = Duration::from_millis(500);
/// A job waits before the gateway lists its question: it is looked for so often, and after this pause.
const LISTED_TRIES: u32 = 8;
const LISTED_PAUSE: Duration = Duration::from_millis(250);
/// Calls of a job that goes on are looked at less often than its status.
const LOOKS_PER_STORY: u32 = 2;

/// As the gateway has it. Hints name jobs in capitals, so the command line itself takes any id.
fn check_id(id: &str) -> Outcome {
    if (1..=64).contains(&id.len()) && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("`{}` is not the id of a job.", one_line(id, 64)),
        "List the jobs: `gsv job list`.",
    ))
}

pub async fn run(context: &Context, command: JobCommand) -> Outcome {
    let out = context.out;
    match &command {
        JobCommand::Show { id } | JobCommand::Cancel { id } | JobCommand::Watch { id } => check_id(id)?,
        JobCommand::Submit(_) | JobCommand::List { .. } => {}
    }
    match command {
        JobCommand::Submit(args) => submit(context, args).await,
        JobCommand::List { status, agent, limit } => {
            let result = list(context, status, agent, usize::from(limit)).await?;
            out.show(result, |result| {
                let is_short = result.cursor.is_some() && result.jobs.len() < usize::from(limit);
                if !result.jobs.is_empty() {
                    out.table(&table(&result.jobs, now_ms()));
                } else if !is_short {
                    out.aside("There are no such jobs. Submit one: `gsv job submit AGENT INSTRUCTIONS`.");
                }
                if is_short {
                    out.aside(&searched_only(&result));
                }
            });
            Ok(())
        }
        JobCommand::Show { id } => {
            let client = context.connect().await?;
            let job = client.call::<JobGet>(JobGetParams { job_id: id }).await?;
            let waiting = if out.json {
                Vec::new()
            } else {
                questions(&client, &job, LISTED_TRIES).await
            };
            client.close().await;
            out.show(job, |job| show(context, &job, &waiting));
            Ok(())
        }
        JobCommand::Cancel { id } => {
            let params = JobCancelParams { job_id: id };
            let cancelled = context.change::<JobCancel>(params, |job| match (job.ended_at, job.status) {
                (None, _) => "Cancellation requested. The job stops at its next step.".to_owned(),
                (Some(_), JobStatus::Cancelled) => "The job is cancelled.".to_owned(),
                (Some(_), status) => format!("The job has ended already: {}.", standing(status)),
            });
            cancelled.await
        }
        JobCommand::Watch { id } => {
            let client = context.connect().await?;
            watch(context, &client, id).await
        }
    }
}

fn show(context: &Context, job: &AgentJob, waiting: &[ApprovalEntry]) {
    let out = context.out;
    out.fields(details(job, now_ms()));
    if waiting.is_empty() {
        if let Some(report) = &job.report {
            out.line("");
            out.content(&format!("{}\n", report.summary.trim_end()));
        }
        return;
    }
    out.line("");
    for entry in waiting {
        for line in question(entry, now_ms(), Place::Shell) {
            out.line(&line);
        }
    }
    out.aside(&how_to_answer(waiting));
}

/// What a job waits for. Best effort: a token that only reads may not ask, and then the sentence of the report is shown.
async fn questions(client: &Client, job: &AgentJob, tries: u32) -> Vec<ApprovalEntry> {
    let (Some(session_key), JobStatus::AwaitingApproval) = (&job.session_key, job.status) else {
        return Vec::new();
    };
    for _ in 0..tries {
        let params = ApprovalListParams {
            session_key: Some(session_key.clone()),
        };
        let Ok(result) = client.call::<ApprovalList>(params).await else {
            return Vec::new();
        };
        let of_job = |entry: &ApprovalEntry| entry.event.is_none();
        let found: Vec<_> = result.approvals.into_iter().filter(of_job).collect();
        if !found.is_empty() {
            return in_order(found);
        }
        sleep(LISTED_PAUSE).await;
    }
    Vec::new()
}

async fn submit(context: &Context, args: JobSubmit) -> Outcome {
    let out = context.out;
    let payload = args.data.map(|data| payload(context, &data)).transpose()?;
    let params = JobSubmitParams {
        task: RunRequest {
            agent_name: args.agent,
            instructions: args.instructions,
            payload,
        },
        key: args.key,
    };
    let client = context.connect().await?;
    let taken = client.call::<Submit>(params).await?;
    if args.wait {
        out.aside(&format!("Job {}", one_line(&taken.job_id, 64)));
        return watch(context, &client, taken.job_id).await;
    }
    out.show(taken, |taken| {
        let id = one_line(&taken.job_id, 64);
        out.line(&id);
        let standing = standing(taken.status);
        out.aside(&match taken.status {
            JobStatus::Queued | JobStatus::Running | JobStatus::AwaitingApproval => {
                format!("The job is {standing}. Watch it: `gsv job watch {id}`.")
            }
            _ => format!("The job has ended already: {standing}. Show it: `gsv job show {id}`."),
        });
    });
    client.close().await;
    Ok(())
}

fn payload(context: &Context, data: &str) -> Outcome<Value> {
    let text = if data == "-" {
        context.read_stdin("the data as JSON")?
    } else {
        std::fs::read_to_string(data)
            .or_fail(format_args!("read {data}"), "Name a file with JSON, or `-` for stdin.")?
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(
            format!("The data is not JSON: {error}."),
            "Repeat the command with `--data FILE`, a file with one JSON value.",
        )
    })
}

/// Pages until there are as many as asked for.
async fn list(
    context: &Context,
    status: Option<JobStatus>,
    agent: Option<String>,
    limit: usize,
) -> Outcome<JobListResult> {
    let client = context.connect().await?;
    let mut jobs = Vec::new();
    let mut cursor = None;
    let mut searched = 0;
    for _ in 0..MAX_PAGES {
        let left = u8::try_from(limit - jobs.len()).unwrap_or(PAGE).min(PAGE);
        let params = JobListParams {
            status,
            agent: agent.clone(),
            limit: Some(left),
            cursor,
        };
        let page = client.call::<List>(params).await?;
        jobs.extend(page.jobs);
        searched += page.searched.unwrap_or(0);
        cursor = page.cursor;
        if cursor.is_none() || jobs.len() >= limit {
            break;
        }
    }
    client.close().await;
    Ok(JobListResult {
        jobs,
        cursor,
        searched: Some(searched),
    })
}

fn searched_only(result: &JobListResult) -> String {
    format!(
        "Only the newest {} jobs were searched; {} of them match. Older jobs may match too. Search for a job by its id: `gsv job show ID`.",
        result.searched.unwrap_or_default(),
        result.jobs.len()
    )
}

/// What is new goes to stderr. The connection may be lost meanwhile: the job goes on, and can be watched again.
async fn watch(context: &Context, client: &Client, id: String) -> Outcome {
    let out = context.out;
    let mut seen = None;
    let mut told = HashSet::new();
    let mut asked = HashSet::new();
    for look in 0_u32.. {
        let job = client.call::<JobGet>(JobGetParams { job_id: id.clone() }).await?;
        let is_new = seen != Some(job.status);
        let has_ended = job.ended_at.is_some();
        if is_new || has_ended || look.is_multiple_of(LOOKS_PER_STORY) {
            tell_calls(context, client, &job, &mut told).await;
        }
        if has_ended {
            return end(context, &job, &[]);
        }
        if is_new && !out.json {
            out.aside(standing(job.status));
        }
        let looks = is_new || look.is_multiple_of(LOOKS_PER_STORY);
        if job.status == JobStatus::AwaitingApproval && looks {
            // Without one that is new, the job is about to go on.
            let tries = if asked.is_empty() { LISTED_TRIES } else { 1 };
            let waiting = questions(client, &job, tries).await;
            if !ask::is_possible(out) {
                return end(context, &job, &waiting);
            }
            tell_questions(context, &job, waiting, &mut asked);
        }
        seen = Some(job.status);
        sleep(LOOK).await;
    }
    Ok(())
}

/// Questions that were not shown before. The job goes on after the answer, so the command waits for it.
fn tell_questions(context: &Context, job: &AgentJob, mut waiting: Vec<ApprovalEntry>, asked: &mut HashSet<String>) {
    let out = context.out;
    if waiting.is_empty() && asked.is_empty() {
        if let Some(report) = &job.report {
            asked.insert(String::new());
            out.note(&one_line(&report.summary, 1_000));
        }
        return;
    }
    waiting.retain(|entry| asked.insert(entry.code.clone()));
    if waiting.is_empty() {
        return;
    }
    for line in waiting.iter().flat_map(|entry| question(entry, now_ms(), Place::Shell)) {
        out.note(&line);
    }
    out.note(&how_to_answer(&waiting));
}

/// Calls that were not told of before. Best effort: a conversation that was deleted has none.
async fn tell_calls(context: &Context, client: &Client, job: &AgentJob, told: &mut HashSet<String>) {
    let out = context.out;
    let (Some(session_key), false) = (&job.session_key, out.json) else {
        return;
    };
    let params = RunWhyParams {
        session_key: Some(session_key.clone()),
        run_id: Some(RunId::from(format!("task-{}", job.job_id))),
        call_id: None,
    };
    let Ok(story) = client.call::<RunWhy>(params).await else {
        return;
    };
    for call in story.steps.iter().flat_map(|step| &step.calls) {
        if let Some(line) = call_line(call)
            && told.insert(call.call_id.to_string())
        {
            out.aside(&line);
        }
    }
}

/// The report to stdout, and the exit status of how the job ended.
fn end(context: &Context, job: &AgentJob, waiting: &[ApprovalEntry]) -> Outcome {
    let out = context.out;
    if out.json {
        out.json_document(job);
    }
    let summary = job.report.as_ref().map(|report| report.summary.trim_end().to_owned());
    let failure = |exit, message: String, next: String| Err(Failure::new(exit, message, next));
    let why = match &job.session_key {
        Some(key) => format!("Look at the run: `gsv why --session {}`.", one_line(key.as_ref(), 200)),
        None => format!("Look at the job: `gsv job show {}`.", one_line(&job.job_id, 64)),
    };
    let error = || job.error.as_ref().map(|error| one_line(&error.message, 1_000));
    match job.status {
        JobStatus::Succeeded => {
            if !out.json {
                out.content(&format!("{}\n", summary.unwrap_or_default()));
            }
            Ok(())
        }
        JobStatus::Cancelled => failure(Exit::Interrupted, "The job was cancelled.".to_owned(), why),
        JobStatus::AwaitingApproval if !waiting.is_empty() => Err(asks(
            waiting,
            "The job waits for your word; it goes on after it.".to_owned(),
            &format!(" Then watch it again: `gsv job watch {}`.", one_line(&job.job_id, 64)),
        )),
        JobStatus::AwaitingApproval => failure(
            Exit::Paused,
            summary.map_or_else(
                || "The job waits for your word.".to_owned(),
                |text| one_line(&text, 1_000),
            ),
            format!("Then watch it again: `gsv job watch {}`.", one_line(&job.job_id, 64)),
        ),
        JobStatus::Failed | JobStatus::BudgetExceeded | JobStatus::Queued | JobStatus::Running => failure(
            Exit::Failed,
            summary
                .map(|text| one_line(&text, 1_000))
                .or_else(error)
                .unwrap_or_else(|| format!("The job has ended: {}.", standing(job.status))),
            why,
        ),
    }
}
