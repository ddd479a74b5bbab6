//! `gsv cron`: adds, shows and changes jobs. What a schedule means is decided by the gateway, which shows the next times.

use gsv_protocol::methods::{
    CronAdd as AddJob, CronList as List, CronPreview as Preview, CronRemove as Remove, CronRun as RunJob,
    CronRuns as Runs, CronUpdate as Update,
};
use gsv_protocol::types::{
    CronAddParams, CronJob, CronListParams, CronPatch, CronPreviewParams, CronRemoveParams, CronRunParams,
    CronRunsParams, CronSchedule, CronSpec, CronUpdateParams, SessionKey,
};

use super::context::Context;
use super::cron_calendar;
use super::cron_view::{next, rhythm, runs, standing, table, waiting, what_comes, work};
use super::stop_state::naming_copy;
use crate::args::{CronAdd, CronCommand, CronEdit, CronHow, CronWhen};
use crate::clean::one_line;
use crate::client::Client;
use crate::exit::{Exit, Failure, Outcome};
use crate::units::{now_ms, time};

const NAME_CHARS: usize = 48;

pub async fn run(context: &Context, command: CronCommand) -> Outcome {
    let out = context.out;
    match command {
        CronCommand::List => {
            let shown = context.show::<List>(CronListParams::default(), |result| {
                if result.jobs.is_empty() {
                    out.aside(
                        "There are no jobs. Add one: `gsv cron add \"Write me the weather\" --at \"tomorrow 9am\"`.",
                    );
                } else {
                    out.table(&table(&result.jobs, now_ms()));
                }
            });
            shown.await
        }
        CronCommand::Show { id } => show(context, &id).await,
        CronCommand::Calendar { days } => cron_calendar::run(context, days).await,
        CronCommand::Preview { when, count } => {
            let schedule = schedule(when)?.ok_or_else(no_schedule)?;
            let params = CronPreviewParams {
                schedule,
                count: Some(count),
            };
            let shown = context.show::<Preview>(params, |result| {
                for at in result.times {
                    out.line(&time(at));
                }
            });
            shown.await
        }
        CronCommand::Add(args) => add(context, args).await,
        CronCommand::Edit(args) => edit(context, args).await,
        CronCommand::Remove { id } => {
            let id = job_id(context, id).await?;
            let name = one_line(&id, 64);
            let removed = context.ask::<Remove>(CronRemoveParams { id }).await?;
            if !removed.removed {
                return Err(no_job(&name));
            }
            out.done(&removed, &format!("{name} is removed"));
            Ok(())
        }
        CronCommand::Run { id } => {
            let id = job_id(context, id).await?;
            let name = one_line(&id, 64);
            let begun = context.change::<RunJob>(CronRunParams { id }, |_| {
                format!("{name} runs now; see what becomes of it: `gsv cron runs {name}`")
            });
            begun.await
        }
        CronCommand::Runs { id, limit } => {
            let id = match id {
                Some(given) => Some(job_id(context, given).await?),
                None => None,
            };
            let params = CronRunsParams {
                job_id: id,
                limit: Some(limit),
                before_id: None,
            };
            let resume = naming_copy("Go on with `gsv resume`.", &context.account()?.url);
            let shown = context.show::<Runs>(params, |result| {
                if result.runs.is_empty() {
                    out.aside("No time has come yet.");
                } else {
                    out.table(&runs(&result.runs, now_ms(), &resume));
                }
            });
            shown.await
        }
        CronCommand::Pause { id } => enable(context, id, false).await,
        CronCommand::Resume { id } => enable(context, id, true).await,
    }
}

/// The job that the caller has named by its id or its name.
pub(super) fn find_job<'a>(jobs: &'a [CronJob], given: &str) -> Outcome<Option<&'a CronJob>> {
    let by_id = jobs.iter().find(|job| job.id == given);
    let named: Vec<&CronJob> = jobs.iter().filter(|job| job.name == given).collect();
    match (by_id, named.as_slice()) {
        (Some(job), _) => Ok(Some(job)),
        (None, [job]) => Ok(Some(*job)),
        (None, []) => Ok(None),
        (None, several) => {
            let ids: Vec<&str> = several.iter().map(|job| job.id.as_str()).collect();
            let name = one_line(given, 128);
            Err(Failure::new(
                Exit::Failed,
                format!("{} jobs have the name {name}: {}.", ids.len(), ids.join(", ")),
                "Name one of them by its id.",
            ))
        }
    }
}

/// The gateway also knows the ids of removed jobs.
async fn job_id(context: &Context, given: String) -> Outcome<String> {
    let listed = context.ask::<List>(CronListParams::default()).await?;
    match find_job(&listed.jobs, &given)? {
        Some(job) => Ok(job.id.clone()),
        None if is_id(&given) => Ok(given),
        None => Err(no_job(&given)),
    }
}

fn no_job(given: &str) -> Failure {
    Failure::new(
        Exit::Failed,
        format!("There is no job {}.", one_line(given, 128)),
        "List the jobs: `gsv cron list`.",
    )
}

/// Whether a job can have this id.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

async fn enable(context: &Context, id: String, enabled: bool) -> Outcome {
    let id = job_id(context, id).await?;
    let params = CronUpdateParams {
        id,
        patch: CronPatch {
            enabled: Some(enabled),
            ..CronPatch::default()
        },
    };
    let changed = context.change::<Update>(params, |result| {
        let name = one_line(&result.job.id, 64);
        match result.times.first() {
            Some(at) if enabled => format!("{name} runs next {}", next(*at, now_ms())),
            _ => format!("{name} waits until `gsv cron resume {name}`"),
        }
    });
    changed.await
}

/// The times are shown before the job is stored.
async fn add(
    context: &Context,
    CronAdd {
        message,
        when,
        name,
        agent,
        how,
    }: CronAdd,
) -> Outcome {
    let schedule = schedule(when)?.ok_or_else(no_schedule)?;
    not_empty(&message)?;
    let client = context.connect().await?;
    preview(context, &client, &schedule).await?;
    let session = match (&how.session, &agent) {
        (None, Some(_)) => None,
        _ => Some(Context::session(how.session.clone())?),
    };
    let params = CronAddParams {
        name: name.unwrap_or_else(|| one_line(&message, NAME_CHARS)),
        agent_id: agent,
        schedule,
        spec: spec(message, how, session),
        id: None,
        description: None,
        enabled: None,
        delete_after_run: None,
    };
    let result = client.call::<AddJob>(params).await?;
    client.close().await;
    let id = one_line(&result.job.id, 64);
    context
        .out
        .done(&result, &format!("{id} is added: {}", what_comes(&result.job)));
    if let Some(warning) = &result.warning {
        context.out.warn(warning);
    }
    Ok(())
}

async fn preview(context: &Context, client: &Client, schedule: &CronSchedule) -> Outcome {
    let params = CronPreviewParams {
        schedule: schedule.clone(),
        count: None,
    };
    let result = client.call::<Preview>(params).await?;
    let times: Vec<String> = result.times.iter().map(|at| time(*at)).collect();
    context.out.aside(&format!("It runs {}.", times.join(", ")));
    Ok(())
}

async fn edit(
    context: &Context,
    CronEdit {
        id,
        message,
        when,
        name,
        how,
    }: CronEdit,
) -> Outcome {
    let schedule = schedule(when)?;
    message.as_deref().map_or(Ok(()), not_empty)?;
    if message.is_none() && !how.is_empty() {
        return Err(Failure::usage(
            "What a job does is replaced as a whole.",
            "Give `--message` too.",
        ));
    }
    let id = job_id(context, id).await?;
    let client = context.connect().await?;
    let session = match (&how.session, &message) {
        (None, None) => None,
        _ => Some(Context::session(how.session.clone())?),
    };
    if let Some(schedule) = &schedule {
        preview(context, &client, schedule).await?;
    }
    let params = CronUpdateParams {
        id,
        patch: CronPatch {
            name,
            schedule,
            spec: message.map(|message| spec(message, how, session)),
            ..CronPatch::default()
        },
    };
    let result = client.call::<Update>(params).await?;
    client.close().await;
    let id = one_line(&result.job.id, 64);
    context.out.done(&result, &format!("{id} is changed"));
    if let Some(warning) = &result.warning {
        context.out.warn(warning);
    }
    Ok(())
}

pub(super) fn spec(message: String, how: CronHow, session: Option<SessionKey>) -> CronSpec {
    if how.remind {
        return CronSpec::Remind {
            text: message,
            session_key: session,
            to: how.to,
        };
    }
    CronSpec::Task {
        message,
        model: how.model.map(|model| format!("{}/{}", model.provider, model.id)),
        thinking: how.think,
        timeout_seconds: how.time_limit,
        wait_seconds: how.wait.map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX)),
        deliver: how.quiet.then_some(false),
        session_key: session.filter(|_| how.to.is_none()),
        to: how.to,
        best_effort_deliver: how.best_effort.then_some(true),
    }
}

fn not_empty(message: &str) -> Outcome {
    if message.trim().is_empty() {
        return Err(Failure::usage(
            "The message is empty, so the job would have nothing to do.",
            "Say what it is to do: `gsv cron add \"Write me the weather\" --at \"tomorrow 9am\"`.",
        ));
    }
    Ok(())
}

fn no_schedule() -> Failure {
    Failure::usage(
        "When is it to run?",
        "Name one of `--at TIME`, `--every LENGTH` and `--cron EXPRESSION`.",
    )
}

fn schedule(when: CronWhen) -> Outcome<Option<CronSchedule>> {
    let CronWhen { one, tz } = when;
    if tz.is_some() && one.at.is_none() && one.cron.is_none() {
        return Err(Failure::usage(
            "A time zone belongs to `--at` or `--cron`.",
            "Leave `--tz` out.",
        ));
    }
    Ok(match (one.at, one.every, one.cron) {
        (Some(at), ..) => Some(CronSchedule::At {
            at_ms: None,
            at: Some(at),
            tz,
        }),
        (_, Some(every), _) => Some(CronSchedule::Every {
            every_ms: None,
            every: Some(every),
            anchor_ms: None,
        }),
        (.., Some(expr)) => Some(CronSchedule::Cron { expr, tz }),
        _ => None,
    })
}

async fn show(context: &Context, id: &str) -> Outcome {
    let out = context.out;
    let client = context.connect().await?;
    let listed = client.call::<List>(CronListParams::default()).await?;
    let job = match find_job(&listed.jobs, id) {
        Ok(Some(job)) => job.clone(),
        found => {
            client.close().await;
            return Err(found.err().unwrap_or_else(|| no_job(id)));
        }
    };
    let params = CronPreviewParams {
        schedule: job.schedule.clone(),
        count: None,
    };
    // A time that is over has no next ones.
    let times = match client.call::<Preview>(params).await {
        Ok(result) if job.enabled => result.times,
        _ => Vec::new(),
    };
    client.close().await;
    out.show(job, |job| {
        let state = &job.state;
        out.fields([
            ("name", Some(one_line(&job.name, 128))),
            ("agent", Some(job.agent_id.to_string())),
            ("runs", Some(rhythm(&job.schedule))),
            ("does", Some(work(&job.spec))),
            ("waits", waiting(&job.spec)),
            ("state", Some(standing(&job))),
            (
                "last error",
                state.last_error.as_deref().map(|error| one_line(error, 400)),
            ),
        ]);
        for at in times {
            out.line(&format!("  {}", time(at)));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_found_by_its_id_or_its_name() {
        let job = |id: &str, name: &str| {
            json!({"id": id, "agentId": "main", "name": name, "enabled": true, "createdAtMs": 0, "updatedAtMs": 0,
                "schedule": {"kind": "every", "everyMs": 9_000_000}, "spec": {"mode": "task", "message": "x"}, "state": {}})
        };
        let listed = json!([
            job("call-mum", "Call mum"),
            job("a", "Twice"),
            job("b", "Twice"),
            job("c", "a")
        ]);
        let jobs: Vec<CronJob> = serde_json::from_value(listed).unwrap();
        let found = |given: &str| find_job(&jobs, given).map(|job| job.map(|job| job.id.clone()));
        assert_eq!(found("call-mum").unwrap().as_deref(), Some("call-mum"));
        assert_eq!(found("Call mum").unwrap().as_deref(), Some("call-mum"));
        assert_eq!(found("a").unwrap().as_deref(), Some("a"), "the id comes first");
        assert_eq!(found("none").unwrap(), None);
        assert_eq!(found("Twice").unwrap_err().message, "2 jobs have the name Twice: a, b.");
        assert!(is_id("call-mum-2") && !is_id("Call mum") && !is_id(""));
    }
}
