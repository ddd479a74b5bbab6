//! `gsv job watch`: shows what a job does until it ends. Reconnects after a restart of the gateway, for a limited time.

use std::collections::HashSet;
use std::time::Duration;

use gsv_protocol::methods::{ApprovalList, JobGet, RunWhy};
use gsv_protocol::types::{AgentJob, ApprovalEntry, ApprovalListParams, JobGetParams, JobStatus, RunWhyParams};
use tokio::time::{Instant, sleep};

use super::approval_view::{Place, in_order, question};
use super::context::Context;
use super::job_view::{call_line, run_of, standing};
use super::stop_state::{jobs_wait, stopped};
use crate::ask;
use crate::chat::outcomes::{asks, how_to_answer};
use crate::chat::turn::LOST_PATIENCE;
use crate::chat::view::CONNECTED;
use crate::clean::one_line;
use crate::client::{Account, Client};
use crate::exit::{Exit, Failure, Outcome};
use crate::units::now_ms;

const LOOK: Duration = Duration::from_millis(500);
/// A job waits before the gateway lists its question: it is looked for so often, and after this pause.
pub const LISTED_TRIES: u32 = 8;
const LISTED_PAUSE: Duration = Duration::from_millis(250);
/// Calls of a job that goes on are looked at less often than its status.
const LOOKS_PER_STORY: u32 = 2;
/// A queued job: whether GSV is stopped is asked so often.
const LOOKS_PER_STOP: u32 = 20;
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The connection of a watch, which is made again when it is lost.
struct Watched<'a> {
    context: &'a Context,
    account: Account,
    /// None: it is lost.
    client: Option<Client>,
    id: String,
}

impl Watched<'_> {
    /// The job as it is now. Waits while the gateway restarts.
    async fn job(&mut self) -> Outcome<AgentJob> {
        let out = self.context.out;
        let mut lost_at = None;
        loop {
            let failure = match self.look().await {
                Ok(job) => {
                    if lost_at.is_some() {
                        out.aside(CONNECTED);
                    }
                    return Ok(job);
                }
                Err(failure) => failure,
            };
            let is_connected = self.client.is_some();
            if failure.exit != Exit::TryLater {
                return Err(if is_connected {
                    failure
                } else {
                    given_up(failure, &self.id)
                });
            }
            self.client = None;
            let since = *lost_at.get_or_insert_with(|| {
                out.note(&format!("{} Reconnecting…", one_line(&failure.message, 400)));
                Instant::now()
            });
            if since.elapsed() >= LOST_PATIENCE {
                return Err(given_up(failure, &self.id));
            }
            sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn look(&mut self) -> Outcome<AgentJob> {
        if self.client.is_none() {
            self.client = Some(self.account.connect().await?);
        }
        let job_id = self.id.clone();
        match &self.client {
            Some(client) => client.call::<JobGet>(JobGetParams { job_id }).await,
            None => Err(Failure::later("The connection to the gateway ended.", "")),
        }
    }
}

/// The watch ends and the job does not.
fn given_up(failure: Failure, id: &str) -> Failure {
    Failure {
        message: format!(
            "{} The job is stored in the gateway and goes on there.",
            failure.message
        ),
        next: format!(
            "Check the gateway with `gsv status`, then watch the job again: `gsv job watch {}`.",
            one_line(id, 64)
        ),
        ..failure
    }
}

/// What is new goes to stderr.
pub async fn watch(context: &Context, account: Account, client: Client, id: String) -> Outcome {
    let out = context.out;
    let mut watched = Watched {
        context,
        account,
        client: Some(client),
        id,
    };
    let mut told_of_stop = false;
    let mut seen = None;
    let mut told = HashSet::new();
    let mut asked = HashSet::new();
    for look in 0_u32.. {
        let job = watched.job().await?;
        let Some(client) = &watched.client else { continue };
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
        if job.status == JobStatus::Queued
            && !told_of_stop
            && look.is_multiple_of(LOOKS_PER_STOP)
            && let Some(state) = stopped(client).await
        {
            told_of_stop = true;
            out.warn(&jobs_wait(&state, &watched.account.url));
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
        run_id: Some(run_of(job)),
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

/// What a job waits for, also when a task that it has handed on asks. Best effort: a token that only reads may not ask, and then the sentence of the report is shown.
pub async fn questions(client: &Client, job: &AgentJob, tries: u32) -> Vec<ApprovalEntry> {
    let (Some(session_key), JobStatus::AwaitingApproval) = (&job.session_key, job.status) else {
        return Vec::new();
    };
    let reported = job
        .report
        .as_ref()
        .and_then(|report| report.metadata.approvals.as_ref());
    let is_reported = |code: &String| reported.is_some_and(|codes| codes.contains(code));
    for _ in 0..tries {
        let params = ApprovalListParams { session_key: None };
        let Ok(result) = client.call::<ApprovalList>(params).await else {
            return Vec::new();
        };
        let of_job = |entry: &ApprovalEntry| {
            entry.event.is_none() && (entry.session_key == *session_key || is_reported(&entry.code))
        };
        let found: Vec<_> = result.approvals.into_iter().filter(of_job).collect();
        if !found.is_empty() {
            return in_order(found);
        }
        sleep(LISTED_PAUSE).await;
    }
    Vec::new()
}
