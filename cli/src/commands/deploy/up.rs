//! `gsv deploy up`: looks, plans, asks, carries out, waits until the gateway answers.

use serde_json::json;
use ulid::Ulid;

use super::account::{Looked, State};
use super::bundle::Bundle;
use super::finding::Verdict;
use super::health;
use super::label::{Kind, Label};
use super::open::Open;
use super::parts::{GATEWAY, Worker};
use super::plan::{Step, TOKEN_HASH, Wanted, plan};
use super::record::{self, Record, Unfinished};
use super::steps::{self, Secrets};
use super::token::{self, First};
use crate::args::DeployUp;
use crate::ask;
use crate::commands::context::Context;
use crate::embedded::channel_name::Name;
use crate::embedded::channels;
use crate::embedded::layout::Layout;
use crate::embedded::sealing_key::SealingKeys;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

pub async fn run(context: &Context, args: DeployUp) -> Outcome {
    let out = context.out;
    let _held = record::hold()?;
    let open = Open::new(out, args.account.account.as_deref()).await?;
    let Looked { mut state, findings } = open.look().await?;
    let (target, is_own_address) = open.address(args.address.as_deref(), state.subdomain.as_deref())?;
    let unfinished = open.unfinished().cloned().unwrap_or_default();
    let wanted = Wanted {
        needs: open.bundle.needs(),
        channels: wanted_channels(&open, &state, args.channels.as_deref()).await?,
        vectorize: args.vectorize.or(unfinished.vectorize),
        new_token: args.new_token || unfinished.new_token,
    };
    let vectors = findings.iter().find(|found| found.verdict == Verdict::Note);
    if let (Some(_), Some(found)) = (wanted.vectorize, vectors) {
        return Err(Failure::failed(
            found.line(),
            "Deploy without --vectorize, or do what the line says.",
        ));
    }
    check_owner(&wanted.channels, &state, args.adopt)?;
    let steps = plan(&wanted, &state);
    show(out, &open, &steps, &target.http_url(""), args.yes)?;
    let mut record = Record {
        account_id: open.account_id.clone(),
        account_name: open.account_name.clone(),
        address: Some(target.http_url("")),
        is_own_address,
        unfinished: Some(Unfinished {
            channels: wanted.channels.clone(),
            vectorize: wanted.vectorize,
            new_token: wanted.new_token,
        }),
    };
    record.write()?;
    let sets_token = steps
        .iter()
        .any(|step| matches!(step, Step::Deploy(deploy) if deploy.secrets.contains(&TOKEN_HASH)));
    let first = sets_token
        .then(|| token::first(out, &target, wanted.new_token, args.login, args.yes))
        .transpose()?;
    let secrets = Secrets {
        token_hash: first.as_ref().map(|first| first.hash.clone()),
        keys: SealingKeys::ensure_file()?,
    };
    let label = Label {
        kind: Kind::Up,
        run: Ulid::generate().to_string(),
        version: open.bundle.version.clone(),
        state: open.bundle.state.clone(),
    };
    let mut deployed = steps::run(out, &open, &steps, &label, &secrets, &mut state).await;
    if deployed.is_ok() {
        record.unfinished = None;
        record.write()?;
        out.aside(&format!("Waiting until {} answers…", target.http_url("")));
        deployed = health::until(&target, &label.version, args.wait).await;
    }
    if let Err(mut failure) = deployed {
        // The account may have the hash: this is the only time that the token is shown.
        if let Some(first) = first.filter(|first| !first.is_stored) {
            failure.lines.push(format!("First token, shown once: {}", first.token));
        }
        return Err(failure);
    }
    report(
        out,
        &target.http_url(""),
        &target.shown,
        &wanted.channels,
        &label,
        first.as_ref(),
    );
    Ok(())
}

/// Those that are named; else those of a run that broke off; else those that the gateway has; else, at first, those of this machine's
/// gateway.
async fn wanted_channels(open: &Open, state: &State, named: Option<&[String]>) -> Outcome<Vec<Name>> {
    let mut channels = match named {
        Some(named) if named == ["none"] => Vec::new(),
        Some(named) => named
            .iter()
            .map(|text| known(&open.bundle, text))
            .collect::<Outcome<_>>()?,
        None => match (open.unfinished(), state.workers.get(GATEWAY)) {
            (Some(unfinished), _) => unfinished.channels.clone(),
            (None, Some(found)) => deployed_channels(open, state, found.kind()).await?,
            (None, None) => {
                let enabled = channels::enabled(&Layout::find()?)?;
                enabled
                    .iter()
                    .filter_map(|text| known(&open.bundle, text).ok())
                    .collect()
            }
        },
    };
    channels.sort();
    channels.dedup();
    Ok(channels)
}

/// The channels of the active version; while the deployment is stopped or half made, all whose Workers are there.
async fn deployed_channels(open: &Open, state: &State, kind: Option<Kind>) -> Outcome<Vec<Name>> {
    let active = state.workers.get(GATEWAY).and_then(|found| found.active.as_deref());
    if let (Some(Kind::Up) | None, Some(active)) = (kind, active) {
        let bound = open.account().bound(active).await;
        return bound.map_err(|trouble| trouble.failure("show the active version", ""));
    }
    let workers = state.workers.keys().filter_map(|name| match Worker::parse(name) {
        Some(Worker::Channel(name)) => Some(name),
        _ => None,
    });
    Ok(workers.collect())
}

fn known(bundle: &Bundle, text: &str) -> Outcome<Name> {
    let found = bundle.channels().find(|name| name.to_string() == text);
    found.cloned().ok_or_else(|| {
        let names: Vec<String> = bundle.channels().map(ToString::to_string).collect();
        Failure::usage(
            format!("There is no channel {text:?}."),
            format!("There are: {}; or `none`.", names.join(", ")),
        )
    })
}

/// Workers of other programs stay, unless the owner says otherwise.
fn check_owner(channels: &[Name], state: &State, adopt: bool) -> Outcome {
    let wanted = channels.iter().cloned().map(Worker::Channel).chain([Worker::Gateway]);
    let other = wanted.map(|worker| worker.name()).find(|name| {
        let found = state.workers.get(name);
        !adopt && found.is_some_and(|found| !found.is_ours())
    });
    let Some(other) = other else { return Ok(()) };
    Err(Failure::failed(
        format!("The account has a Worker {other} that `gsv deploy` has not deployed."),
        "If it is a GSV that you have deployed by hand, run it again with --adopt: its data stays. Else rename or delete that Worker first.",
    ))
}

fn show(out: Output, open: &Open, steps: &[Step], address: &str, yes: bool) -> Outcome {
    out.note(&format!(
        "Deploy GSV {} to the account {} as {address}:",
        open.bundle.version, open.account_name
    ));
    for step in steps {
        out.note(&format!("  - {step}"));
    }
    if yes {
        return Ok(());
    }
    ask::confirm(out, "Go on?", "deploy", "Nothing was deployed.")
}

fn report(out: Output, address: &str, url: &str, channels: &[Name], label: &Label, first: Option<&First>) {
    let names: Vec<String> = channels.iter().map(ToString::to_string).collect();
    let document = json!({
        "address": address, "url": url, "version": label.version, "run": label.run, "channels": names,
        "token": first.map(|first| &first.token), "tokenStored": first.map(|first| first.is_stored),
    });
    out.show(document, |_| {
        out.fields([
            ("gateway", Some(address.to_owned())),
            ("version", Some(label.version.clone())),
            ("channels", (!names.is_empty()).then(|| names.join(", "))),
            (
                "token",
                first.filter(|first| !first.is_known).map(|first| first.token.clone()),
            ),
        ]);
    });
    let Some(first) = first else { return };
    if let Some(backup) = &first.backup {
        out.aside(&format!("The earlier login is in {}.", backup.display()));
    }
    if first.is_stored {
        out.aside("The local config has address and token: `gsv chat` talks to this gateway now.");
    } else {
        out.aside(&format!(
            "This is the only time that the token is shown. `gsv` here keeps its own gateway; to use this one: `gsv local-config set url {url}` and `gsv local-config set token -`.",
        ));
    }
}
