//! `gsv why`: the story of one run: what caused it, what the model said it would do, and what was decided about each call.

use gsv_protocol::errors;
use gsv_protocol::methods::{CronList, CronRuns, JobGet, RunWhy};
use gsv_protocol::types::{
    AgentJob, CallId, CronListParams, CronRunsParams, JobGetParams, RunId, RunWhyParams, RunWhyResult, SessionKey,
    StoryCall, StoryDecision, StoryEnd, StoryFailed, StorySent, StoryStep, Usage,
};

use super::actors::Actors;
use super::call_end::failed_end;
use super::context::Context;
use super::cron;
use super::job_view::{is_id, is_open, run_of, standing};
use super::machine_view::awaited;
use super::prompt::layer;
use crate::clean::{one_line, visible};
use crate::client::Client;
use crate::exit::{Failure, Outcome};
use crate::units::{dollars, grouped, now_ms, time};

/// The most times of a job that the gateway lists at once.
const TIMES_A_PAGE: u8 = 200;
const IDS: &str = "Name a job (`gsv why JOB`), a call (`gsv why CALL`), or a run with its conversation (`gsv why RUN --session KEY`). The last run of a conversation: `gsv why --session KEY`.";

/// A call's id has parts: `x7ab/r12/3/0`.
pub async fn run(context: &Context, what: Option<String>, session: Option<SessionKey>) -> Outcome {
    let out = context.out;
    let may_be_job = session.is_none();
    let (run_id, call_id) = match what {
        Some(call) if call.contains('/') => (None, Some(CallId::from(call))),
        run => (run.map(RunId::from), None),
    };
    // A call's id names its conversation.
    let session_key = match (&call_id, session) {
        (Some(_), None) => None,
        (_, session) => Some(Context::session(session)?),
    };
    let params = RunWhyParams {
        session_key,
        run_id,
        call_id,
    };
    let named = params.run_id.clone();
    let is_named = named.is_some() || params.call_id.is_some();
    let client = context.connect().await?;
    let mut found = client.call::<RunWhy>(params).await;
    // Only the job knows its conversation, so the id of a job stands for its run: of a submitted one, or the last of a scheduled one.
    if let (Err(failure), Some(id)) = (&found, named.filter(|_| may_be_job))
        && [errors::RUN_NOT_FOUND, errors::SESSION_NOT_FOUND]
            .iter()
            .any(|row| failure.is(row))
    {
        let submitted = if is_id(id.as_ref()) {
            of_job(&client, id.as_ref()).await?
        } else {
            None
        };
        let story = match submitted {
            None => of_scheduled(&client, id.as_ref()).await?,
            submitted => submitted,
        };
        found = story.map_or(found, Ok);
    }
    let story = found.map_err(|failure| {
        let is_unknown = failure.is(&errors::RUN_NOT_FOUND) || may_be_job && failure.is(&errors::SESSION_NOT_FOUND);
        let next = if is_named && is_unknown {
            IDS.to_owned()
        } else {
            failure.next
        };
        Failure { next, ..failure }
    })?;
    let answered = story.steps.iter().flat_map(|step| &step.calls);
    let answered = answered.filter_map(|call| call.by.as_deref());
    let actors = Actors::find(context, &client, answered.chain(story.origin.as_deref())).await;
    client.close().await;
    out.show(story, |story| {
        for line in lines(&story, &actors) {
            out.line(&line);
        }
    });
    Ok(())
}

/// A job that has no run (yet).
fn without_run(job: &AgentJob) -> Failure {
    let id = one_line(&job.job_id, 64);
    if is_open(job.status) {
        return Failure::failed(
            format!("The job {id} is {} and has not begun.", standing(job.status)),
            format!("Watch it: `gsv job watch {id}`."),
        );
    }
    let reason = job.error.as_ref().map_or_else(
        || ".".to_owned(),
        |error| format!(": {}", one_line(&error.message, 1_000)),
    );
    Failure::failed(
        format!("The job {id} never began; it is {}{reason}", standing(job.status)),
        format!("Look at what it was: `gsv job show {id}`."),
    )
}

/// The story of a job's run. None: there is no such job.
async fn of_job(client: &Client, id: &str) -> Outcome<Option<RunWhyResult>> {
    let params = JobGetParams { job_id: id.to_owned() };
    let job = match client.call::<JobGet>(params).await {
        Err(failure) if failure.is(&errors::JOB_NOT_FOUND) => return Ok(None),
        job => job?,
    };
    let Some(session_key) = &job.session_key else {
        return Err(without_run(&job));
    };
    let params = RunWhyParams {
        session_key: Some(session_key.clone()),
        run_id: Some(run_of(&job)),
        call_id: None,
    };
    client.call::<RunWhy>(params).await.map(Some)
}

/// The story of the last run of a job of `gsv cron`, by its id or its name. None: there is no such job.
async fn of_scheduled(client: &Client, given: &str) -> Outcome<Option<RunWhyResult>> {
    let listed = client.call::<CronList>(CronListParams::default()).await?;
    let id = match cron::find_job(&listed.jobs, given)? {
        Some(job) => job.id.clone(),
        // The runs of a job with one time stay when it is removed.
        None if cron::is_id(given) => given.to_owned(),
        None => return Ok(None),
    };
    let Some((session_key, run_id)) = last_run(client, &id).await? else {
        return Ok(None);
    };
    let params = RunWhyParams {
        session_key: Some(session_key),
        run_id: Some(RunId::from(run_id)),
        call_id: None,
    };
    client.call::<RunWhy>(params).await.map(Some)
}

/// The last recorded time of a scheduled job that had a run: times that were skipped have none. None: there is no such job.
async fn last_run(client: &Client, job: &str) -> Outcome<Option<(SessionKey, String)>> {
    let mut times = 0;
    let mut before_id = None;
    loop {
        let params = CronRunsParams {
            job_id: Some(job.to_owned()),
            limit: Some(TIMES_A_PAGE),
            before_id,
        };
        let page = match client.call::<CronRuns>(params).await {
            Err(failure) if failure.is(&errors::CRON_NOT_FOUND) => return Ok(None),
            runs => runs?.runs,
        };
        let mut begun = page
            .iter()
            .filter_map(|run| run.session_key.clone().zip(run.run_id.clone()));
        if let Some(begun) = begun.next() {
            return Ok(Some(begun));
        }
        times += page.len() as u64;
        before_id = page.last().map(|run| run.id);
        if page.len() < usize::from(TIMES_A_PAGE) {
            return Err(no_run_of(job, times));
        }
    }
}

fn no_run_of(job: &str, times: u64) -> Failure {
    let id = one_line(job, 64);
    Failure::failed(
        match times {
            0 => format!("The job {id} has no recorded time yet."),
            1 => format!("The job {id} has one recorded time, and it called no model."),
            times => format!(
                "None of the {} recorded times of the job {id} called a model.",
                grouped(times)
            ),
        },
        format!("Look at its times: `gsv cron runs {id}`."),
    )
}

fn lines(story: &RunWhyResult, actors: &Actors) -> Vec<String> {
    let origin = story
        .origin
        .as_deref()
        .map_or_else(|| "not recorded".to_owned(), |by| visible(&actors.name(by)));
    let mut lines = vec![
        format!(
            "Run {} in {}",
            visible(story.run_id.as_ref()),
            visible(story.session_key.as_ref())
        ),
        format!("  caused by  {origin}"),
        format!("  began      {}", time(story.started_at)),
        format!("  ended      {}", end(story)),
        format!("  used       {}", used_by_run(&story.usage)),
    ];
    if story.left > 0 {
        lines.push(format!("  ({} earlier answers of the model are not shown)", story.left));
    }
    for step in &story.steps {
        lines.push(String::new());
        lines.extend(step.failed.iter().flatten().map(failed));
        lines.push(heading(step));
        lines.extend(step.sent.as_ref().map(sent));
        for call in &step.calls {
            lines.extend(call_lines(call, actors));
        }
    }
    if let Some(calls) = &story.failed {
        lines.push(String::new());
        lines.extend(calls.iter().map(failed));
    }
    lines
}

/// The tokens of each layer of what the model was sent.
fn sent(sent: &StorySent) -> String {
    let layers: Vec<String> = (1..)
        .zip(&sent.layers)
        .map(|(number, tokens)| format!("{} {}", layer(number), grouped(*tokens)))
        .collect();
    format!("  sent about: {}", layers.join(", "))
}

/// A call of the model without an answer.
fn failed(call: &StoryFailed) -> String {
    let reason = visible(&call.reason);
    let Some(sent) = &call.sent else {
        return format!("A call of the model was lost ({reason})");
    };
    format!(
        "{}/{} failed after {} s ({reason})",
        visible(&sent.provider),
        visible(&sent.model),
        seconds(call.at.saturating_sub(sent.at))
    )
}

fn seconds(ms: u64) -> String {
    format!("{}.{}", ms / 1_000, ms % 1_000 / 100)
}

fn end(story: &RunWhyResult) -> String {
    let at = story.ended_at.map(time).unwrap_or_default();
    match (story.end, story.error.as_deref()) {
        (StoryEnd::Open, _) => match story.questions.as_deref().unwrap_or_default() {
            [] => match awaited(story.machines.as_deref().unwrap_or_default(), now_ms()) {
                Some(machines) => format!("not yet: it waits for {machines}"),
                None => "not yet".to_owned(),
            },
            [code] => format!(
                "not yet: it waits for your answer (`gsv approval show {}`)",
                visible(code)
            ),
            codes => format!(
                "not yet: it waits for your answers to {} (`gsv approval list`)",
                visible(&codes.join(", "))
            ),
        },
        (StoryEnd::Final, _) => format!("{at}, with an answer"),
        (StoryEnd::Error, error) => format!("{at}, with an error: {}", visible(error.unwrap_or_default())),
        (StoryEnd::Aborted, error) => format!("{at}, stopped: {}", visible(error.unwrap_or_default())),
    }
}

/// A run that called no model has nothing whose price could be unknown.
fn used_by_run(usage: &Usage) -> String {
    if usage.total == 0 {
        "nothing".to_owned()
    } else {
        used(usage)
    }
}

fn used(usage: &Usage) -> String {
    let cached = usage
        .cache_read
        .filter(|tokens| *tokens > 0)
        .map(|tokens| format!(" ({} more from the cache)", grouped(tokens)))
        .unwrap_or_default();
    let cost = usage.cost_usd.map_or_else(|| "no known price".to_owned(), dollars);
    format!(
        "{} tokens in{cached}, {} out, {cost}",
        grouped(usage.input),
        grouped(usage.output)
    )
}

fn heading(step: &StoryStep) -> String {
    // The call itself, where it is known when it began.
    let took = step
        .sent
        .as_ref()
        .map_or(step.ms, |sent| step.at.saturating_sub(sent.at));
    format!(
        "Step {}: {}/{} answered after {} s, {}",
        step.step,
        visible(&step.provider),
        visible(&step.model),
        seconds(took),
        used(&step.usage)
    )
}

/// The decision and its reason, then the outcome of the call.
fn call_lines(call: &StoryCall, actors: &Actors) -> Vec<String> {
    let decision = match call.decision {
        Some(StoryDecision::Allowed) => "allowed",
        Some(StoryDecision::Denied) => "denied",
        Some(StoryDecision::Waits) => "waits for your word",
        None => "no decision is recorded",
    };
    let rule = call
        .rule
        .as_deref()
        .map(|rule| format!(" by {}", visible(rule)))
        .unwrap_or_default();
    let code = match (&call.code, &call.by) {
        (Some(code), Some(by)) => format!(
            "; asked as {}, answered by {}",
            visible(code),
            visible(&actors.name(by))
        ),
        (Some(code), None) => format!("; asked as {}", visible(code)),
        _ => String::new(),
    };
    let outcome = call
        .outcome
        .map_or_else(|| "open".to_owned(), |outcome| outcome.as_str().to_owned());
    let reason = call
        .reason
        .as_deref()
        .map(|reason| format!(" ({})", visible(reason)))
        .unwrap_or_default();
    let ended = failed_end(call).map_or_else(String::new, |end| format!(", {end}"));
    let took = call.duration_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
    let mut lines = vec![
        format!("  {}  {}", visible(call.tool.as_ref()), visible(call.call_id.as_ref())),
        format!("    {decision}{rule}{code}"),
        format!("    {outcome}{reason}{ended}{took}"),
    ];
    lines.extend(
        call.handed_to
            .as_ref()
            .map(|key| format!("    its task: `gsv why --session {}`", visible(key.as_str()))),
    );
    lines.extend(
        call.why
            .as_deref()
            .into_iter()
            .flat_map(str::lines)
            .map(|line| format!("    | {}", visible(line))),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn au7_the_story_names_cause_cost_and_for_each_call_decision_rule_and_outcome() {
        let story: RunWhyResult = serde_json::from_value(json!({
            "sessionKey": "agent:main:main", "runId": "R", "origin": "client", "startedAt": 0, "endedAt": 9000, "end": "error",
            "error": "The day's limit is used up.", "usage": {"input": 1200, "output": 30, "total": 1230, "costUsd": 0.01}, "left": 0,
            "steps": [{
                "step": 1, "at": 3000, "ms": 2950, "provider": "anthropic", "model": "m\u{202e}",
                "usage": {"input": 1200, "output": 30, "total": 1230, "cacheRead": 5000},
                "calls": [
                    {"callId": "x/r1/1/0", "tool": "lap__Bash", "decision": "allowed", "rule": "approval:K7Q2A", "code": "K7Q2A", "by": "client:me", "outcome": "ok", "exitCode": 2, "durationMs": 12, "handedTo": "agent:b:task:1"},
                    {"callId": "x/r1/1/1", "tool": "lap__Write", "decision": "denied", "rule": "rule:no-rm", "outcome": "error", "reason": "policy.denied", "why": "Not run: no."},
                    {"callId": "x/r1/1/2", "tool": "lap__Bash", "decision": "waits", "rule": "mode:ask", "code": "ACDEF"}
                ]
            }]
        }))
        .unwrap();
        assert_eq!(
            lines(&story, &Actors::default()).join("\n"),
            "Run R in agent:main:main\n  caused by  client\n  began      1970-01-01 00:00:00 UTC\n  ended      1970-01-01 00:00:09 UTC, with an error: The day's limit is used up.\n  used       1,200 tokens in, 30 out, $0.0100\n\nStep 1: anthropic/m[U+202E] answered after 2.9 s, 1,200 tokens in (5,000 more from the cache), 30 out, no known price\n  lap__Bash  x/r1/1/0\n    allowed by approval:K7Q2A; asked as K7Q2A, answered by client:me\n    ok, exit code 2, 12 ms\n    its task: `gsv why --session agent:b:task:1`\n  lap__Write  x/r1/1/1\n    denied by rule:no-rm\n    error (policy.denied)\n    | Not run: no.\n  lap__Bash  x/r1/1/2\n    waits for your word by mode:ask; asked as ACDEF\n    open"
        );
    }

    #[test]
    fn au8_each_call_of_the_model_has_the_tokens_of_its_layers_and_calls_without_an_answer_are_told() {
        let sent = |at: u64| json!({"at": at, "provider": "anthropic", "model": "m", "layers": [800, 0, 2400, 0, 1200, 40], "tools": 2000});
        let story: RunWhyResult = serde_json::from_value(json!({
            "sessionKey": "agent:main:main", "runId": "R", "startedAt": 0, "endedAt": 9000, "end": "error", "error": "no",
            "usage": {"input": 1, "output": 1, "total": 2}, "left": 0,
            "failed": [{"at": 8000, "reason": "interrupted"}],
            "steps": [{
                "step": 1, "at": 3000, "ms": 2950, "provider": "anthropic", "model": "m",
                "usage": {"input": 1, "output": 1, "total": 2}, "calls": [],
                "sent": sent(2000), "failed": [{"at": 1500, "reason": "model.overloaded", "sent": sent(300)}]
            }]
        }))
        .unwrap();
        let shown = lines(&story, &Actors::default());
        assert_eq!(
            shown[6..].join("\n"),
            "anthropic/m failed after 1.2 s (model.overloaded)\nStep 1: anthropic/m answered after 1.0 s, 1 tokens in, 1 out, no known price\n  sent about: 1 core 800, 2 characteristics 0, 3 shared 2,400, 4 delegated 0, 5 conversation 1,200, 6 memory 40\n\nA call of the model was lost (interrupted)"
        );
    }

    #[test]
    fn ap16_a_story_says_that_its_run_waits_and_for_which_answer() {
        let ended = |questions: serde_json::Value| {
            let story: RunWhyResult = serde_json::from_value(serde_json::json!({
                "sessionKey": "agent:main:main", "runId": "R", "startedAt": 0, "end": "open", "questions": questions,
                "usage": {"input": 1, "output": 1, "total": 2}, "steps": [], "left": 0
            }))
            .unwrap();
            end(&story)
        };
        assert_eq!(
            ended(serde_json::json!(["K7Q2A"])),
            "not yet: it waits for your answer (`gsv approval show K7Q2A`)"
        );
        assert_eq!(
            ended(serde_json::json!(["K7Q2A", "ACDEF"])),
            "not yet: it waits for your answers to K7Q2A, ACDEF (`gsv approval list`)"
        );
    }

    #[test]
    fn om9_a_story_says_for_which_machine_its_run_waits_and_how_long_at_most() {
        let story: RunWhyResult = serde_json::from_value(json!({
            "sessionKey": "agent:main:main", "runId": "R", "startedAt": 0, "end": "open",
            "machines": [{"nodeId": "lap", "tool": "lap__Bash", "since": 0, "until": 1}],
            "usage": {"input": 1, "output": 1, "total": 2}, "steps": [], "left": 0
        }))
        .unwrap();
        assert_eq!(end(&story), "not yet: it waits for lap, 0 ms more (lap__Bash)");
    }
}
