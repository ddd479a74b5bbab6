//! `gsv job`: tasks for agents that wait for their turn. The report goes to stdout, what happens on the way to stderr.

use gsv_protocol::errors;
use gsv_protocol::methods::{JobCancel, JobGet, JobList as List, JobSubmit as Submit};
use gsv_protocol::types::{
    AgentJob, ApprovalEntry, JobCancelParams, JobGetParams, JobListParams, JobListResult, JobStatus, JobSubmitParams,
    RunRequest,
};
use serde_json::Value;

use super::approval_view::{Place, question};
use super::context::Context;
use super::job_view::{details, handed_on, is_id, standing, table};
use super::job_watch::{LISTED_TRIES, questions, watch};
use super::stop_state::{jobs_wait, stopped};
use crate::args::{JobCommand, JobSubmit};
use crate::chat::outcomes::how_to_answer;
use crate::clean::one_line;
use crate::exit::{Failure, OrFail, Outcome};
use crate::units::now_ms;

/// Characters of each id that the gateway gives.
const ID_CHARS: usize = 26;
/// A page of the index.
const PAGE: u8 = 200;
/// The index counts keys, not matches: a rare status may need many pages.
const MAX_PAGES: u8 = 50;

/// Hints name jobs in capitals, so the command line itself takes any id.
fn check_id(id: &str) -> Outcome {
    if is_id(id) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("`{}` is not the id of a job.", one_line(id, 64)),
        "List the jobs: `gsv job list`.",
    ))
}

pub async fn run(context: &Context, command: JobCommand) -> Outcome {
    match &command {
        JobCommand::Show { id } | JobCommand::Cancel { id } | JobCommand::Watch { id } => {
            check_id(id)?;
            let given = id.clone();
            done(context, command)
                .await
                .map_err(|failure| whole_id(failure, &given))
        }
        JobCommand::Submit(_) | JobCommand::List { .. } => done(context, command).await,
    }
}

/// A beginning of an id names no job.
fn whole_id(failure: Failure, id: &str) -> Failure {
    if !failure.is(&errors::JOB_NOT_FOUND) || id.len() >= ID_CHARS {
        return failure;
    }
    Failure {
        message: format!("There is no job {id}: the id of a job has {ID_CHARS} characters."),
        next: "Copy the whole id from `gsv job list`.".to_owned(),
        ..failure
    }
}

async fn done(context: &Context, command: JobCommand) -> Outcome {
    let out = context.out;
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
                } else if result.cursor.is_some() {
                    out.aside("There are older jobs: show more of them with `--limit`.");
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
            let account = context.account()?;
            let client = account.connect().await?;
            watch(context, account, client, id).await
        }
    }
}

fn show(context: &Context, job: &AgentJob, waiting: &[ApprovalEntry]) {
    let out = context.out;
    out.fields(details(job, now_ms()));
    let handed = handed_on(job);
    if !handed.is_empty() {
        out.line("");
        out.line("Handed on:");
    }
    for line in handed {
        out.line(&line);
    }
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
            out.sentences(&line);
        }
    }
    out.aside(&how_to_answer(waiting));
}

async fn submit(context: &Context, args: JobSubmit) -> Outcome {
    let out = context.out;
    if args.instructions.trim().is_empty() {
        return Err(Failure::usage(
            "The instructions are empty.",
            "Write what the agent is to do as one argument, in quotes.",
        ));
    }
    let payload = args.data.map(|data| payload(context, &data)).transpose()?;
    let has_key = args.key.is_some();
    let params = JobSubmitParams {
        task: RunRequest {
            agent_name: args.agent,
            instructions: args.instructions,
            payload,
        },
        key: args.key,
    };
    let account = context.account()?;
    let client = account.connect().await?;
    let taken = client.call::<Submit>(params).await?;
    // A new job is queued (rule JB1).
    let is_earlier = has_key && taken.status != JobStatus::Queued;
    if is_earlier {
        out.note("This key was used before, so no new job was submitted. This is the earlier job.");
    }
    if args.wait {
        out.aside(&format!("Job {}", one_line(&taken.job_id, 64)));
        return watch(context, account, client, taken.job_id).await;
    }
    if taken.status == JobStatus::Queued
        && let Some(state) = stopped(&client).await
    {
        out.warn(&jobs_wait(&state, &account.url));
    }
    client.close().await;
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
