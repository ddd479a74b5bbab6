//! `gsv hook`: addresses at which other services wake the agent. A new secret goes to stdout, alone, once.

use std::time::Duration;

use gsv_link::{Delivery, Target};
use gsv_protocol::NoParams;
use gsv_protocol::methods::{
    CronList as Jobs, HookAdd as AddHook, HookList as List, HookRemove as Remove, HookShow as Show, HookTest as Sample,
};
use gsv_protocol::types::{
    CronListParams, HookAddParams, HookForm, HookRemoveParams, HookShowParams, HookTakenStatus, HookTarget,
    HookTestParams,
};

use super::context::Context;
use super::cron::spec;
use super::hook_view::{deliveries, details, table};
use crate::args::{HookAdd, HookCommand, HookTest};
use crate::ask;
use crate::clean::one_line;
use crate::client::link_failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::units::now_ms;

const PATIENCE: Duration = Duration::from_secs(40);
const DEFAULT_MESSAGE: &str = "Another service sent this. Say what it is about and what matters in it.\n{{body}}";

/// As the gateway has it: the name is a part of an address. Hints name hooks in capitals, so the command line itself takes any name.
fn check_name(name: &str) -> Outcome {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = name.chars().all(|c| plain(c) || c == '_' || c == '-');
    if (1..=48).contains(&name.len()) && name.starts_with(plain) && valid {
        return Ok(());
    }
    Err(Failure::usage(
        format!("`{}` is no name of a hook.", one_line(name, 64)),
        "A hook's name has 1 to 48 of a-z, 0-9, _ and -, and begins with a letter or a digit, such as `issues`.",
    ))
}

pub async fn run(context: &Context, command: HookCommand) -> Outcome {
    let out = context.out;
    match &command {
        HookCommand::Add(HookAdd { name, .. })
        | HookCommand::Show { name, .. }
        | HookCommand::Remove { name, .. }
        | HookCommand::Test(HookTest { name, .. }) => check_name(name)?,
        HookCommand::List => {}
    }
    match command {
        HookCommand::Add(args) => add(context, args).await,
        HookCommand::List => {
            let shown = context.show::<List>(NoParams {}, |result| {
                if result.hooks.is_empty() {
                    out.aside("There are no hooks. Add one: `gsv hook add NAME`.");
                } else {
                    out.table(&table(&result.hooks, now_ms()));
                }
            });
            shown.await
        }
        HookCommand::Show { name, limit } => {
            let target = Target::parse(&context.account()?.url).map_err(|error| link_failure(&error))?;
            let params = HookShowParams {
                name,
                limit: Some(limit),
            };
            let shown = context.show::<Show>(params, |result| {
                out.fields(details(&result.hook, &target.http_url(&result.hook.path), now_ms()));
                if !result.deliveries.is_empty() {
                    out.table(&deliveries(&result.deliveries, now_ms()));
                }
            });
            shown.await
        }
        HookCommand::Remove { name, yes } => {
            let shown = one_line(&name, 64);
            if !yes {
                // A hook that does not exist needs no answer.
                let params = HookShowParams {
                    name: name.clone(),
                    limit: Some(1),
                };
                context.ask::<Show>(params).await?;
                ask::confirm(
                    out,
                    &format!(
                        "Remove the hook {shown}? Its secret cannot be restored, and its address answers 401 then."
                    ),
                    "remove it",
                    "Nothing was removed.",
                )?;
            }
            let removed = context.ask::<Remove>(HookRemoveParams { name }).await?;
            if !removed.removed {
                return Err(Failure::new(
                    Exit::Failed,
                    format!("There is no hook {shown}."),
                    "List the hooks: `gsv hook list`.",
                ));
            }
            out.done(&removed, &format!("{shown} is removed; its address answers 401 now"));
            Ok(())
        }
        HookCommand::Test(args) => test(context, args).await,
    }
}

async fn add(context: &Context, args: HookAdd) -> Outcome {
    let out = context.out;
    let target = Target::parse(&context.account()?.url).map_err(|error| link_failure(&error))?;
    let url = target.http_url(&format!("/hooks/{}", args.name));
    let secret = secret(context, args.form, args.secret, &url)?;
    let work = if let Some(job) = args.job {
        HookTarget::Job {
            job_id: job_id(context, &job).await?,
            message: args.message,
        }
    } else {
        let session = match (&args.how.session, &args.agent) {
            (None, Some(_)) => None,
            _ => Some(Context::session(args.how.session.clone())?),
        };
        let message = args.message.unwrap_or_else(|| DEFAULT_MESSAGE.to_owned());
        HookTarget::Run {
            spec: spec(message, args.how, session),
        }
    };
    let params = HookAddParams {
        name: args.name,
        form: args.form,
        agent_id: args.agent,
        target: work,
        only: (!args.only.is_empty()).then_some(args.only),
        secret,
    };
    let result = context.ask::<AddHook>(params).await?;
    out.show(result, |result| {
        let name = one_line(&result.hook.name, 64);
        if let Some(secret) = &result.secret {
            out.content(&format!("{secret}\n"));
            out.aside(&format!("This is the secret of {name}. It is not shown again."));
        }
        for line in steps(args.form, &url, result.secret.is_some()) {
            out.aside(&line);
        }
        if target.is_loopback() {
            out.aside("Only this machine reaches this address. For other services, point a tunnel or a proxy at it: under another host name, this gateway answers hooks and nothing else.");
        }
        out.aside(&format!("Try it: `gsv hook test {name}`."));
    });
    Ok(())
}

/// The id of a job that is named by its id or, when only one job has it, by its name.
async fn job_id(context: &Context, named: &str) -> Outcome<String> {
    let params = CronListParams {
        agent_id: None,
        include_disabled: None,
    };
    let jobs = context.ask::<Jobs>(params).await?.jobs;
    if let Some(job) = jobs.iter().find(|job| job.id == named) {
        return Ok(job.id.clone());
    }
    let same: Vec<_> = jobs
        .iter()
        .filter(|job| job.name.eq_ignore_ascii_case(named))
        .map(|job| one_line(&job.id, 64))
        .collect();
    let shown = one_line(named, 64);
    match same.as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(Failure::failed(
            format!("There is no job {shown}."),
            "List the jobs: `gsv cron list`.",
        )),
        ids => Err(Failure::failed(
            format!("{} jobs have the name {shown}.", ids.len()),
            format!("Name one by its id: {}.", ids.join(", ")),
        )),
    }
}

/// Stripe makes its secret after it was told the address.
fn secret(context: &Context, form: HookForm, given: Option<String>, url: &str) -> Outcome<Option<String>> {
    match given {
        Some(value) => Ok(Some(context.value_or_stdin("gsv hook add NAME", "--secret", value)?)),
        None if form == HookForm::Stripe => {
            context.out.aside(&format!(
                "At Stripe, add an endpoint with the address {url} and copy its signing secret."
            ));
            if !ask::is_possible(context.out) {
                return Err(Failure::usage(
                    "Stripe makes the secret of its hooks.",
                    "Repeat the command with `--form stripe --secret -`, and pipe in the signing secret.",
                ));
            }
            Ok(Some(ask::secret(context.out, "secret", "Nothing was added.")?))
        }
        None => Ok(None),
    }
}

/// What to enter at the other service.
fn steps(form: HookForm, url: &str, is_new: bool) -> Vec<String> {
    let secret = if is_new { "this secret" } else { "your secret" };
    match form {
        HookForm::Github => vec![format!(
            "At GitHub, under Settings, Webhooks, Add webhook: payload URL {url}, content type application/json, {secret}, and the events that you want."
        )],
        HookForm::Stripe => vec![format!("Stripe sends its events to {url}.")],
        HookForm::Standard => vec![
            format!("The address is {url}."),
            format!(
                "The other service signs with {secret} as Standard Webhooks says: webhook-id, webhook-timestamp, and webhook-signature over `ID.TIMESTAMP.BODY`."
            ),
        ],
        HookForm::Bearer => vec![format!(
            "The address is {url}. The other service sends JSON with the header `Authorization: Bearer SECRET` ({secret}), and Idempotency-Key when it repeats a request."
        )],
    }
}

async fn test(context: &Context, HookTest { name, body, event }: HookTest) -> Outcome {
    let out = context.out;
    let body = match body.as_deref() {
        Some("-") => Some(context.read_stdin("the body as JSON")?),
        _ => body,
    };
    let shown = one_line(&name, 64);
    let account = context.account()?;
    let sample = context.ask::<Sample>(HookTestParams { name, body, event }).await?;
    let delivery = Delivery {
        url: &account.url,
        path: &sample.path,
        headers: sample.headers.into_iter().collect(),
        body: sample.body,
        within: PATIENCE,
    };
    let taken = delivery.send().await.map_err(|error| link_failure(&error))?;
    let words = match taken.status {
        HookTakenStatus::Accepted => format!("accepted; see the result: `gsv hook show {shown}`"),
        HookTakenStatus::Repeated => "it was accepted before, so nothing was done".to_owned(),
        HookTakenStatus::Ignored => format!(
            "the signature is right, but the conditions of {shown} ignore this sample, so no run began; give a body that meets them with `--body`"
        ),
    };
    out.done(&taken, &words);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hk1_each_form_says_which_address_and_secret_to_enter_at_the_other_service() {
        for form in HookForm::ALL {
            let said = steps(*form, "https://gsv.example/hooks/gh", true).join("\n");
            assert!(said.contains("https://gsv.example/hooks/gh"), "{said}");
        }
        assert!(steps(HookForm::Github, "u", true)[0].contains("application/json"));
        for form in [HookForm::Github, HookForm::Standard, HookForm::Bearer] {
            assert!(steps(form, "u", true).join("\n").contains("this secret"), "{form:?}");
            assert!(steps(form, "u", false).join("\n").contains("your secret"), "{form:?}");
        }
    }
}
