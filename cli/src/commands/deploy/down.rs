//! `gsv deploy down`: stops a deployment and keeps its data, or deletes it with all of it. Conversations live in the Workers' Durable Objects,
//! and Cloudflare deletes those with a Worker. So a stopped Worker is replaced by one that does nothing, never deleted.

use serde_json::{Value, json};
use ulid::Ulid;

use super::account::{State, list, text};
use super::api::{Trouble, encoded};
use super::label::{Kind, Label};
use super::open::Open;
use super::parts::{GATEWAY, Worker};
use super::record::{self, Record};
use super::steps;
use crate::args::DeployDown;
use crate::ask;
use crate::commands::context::Context;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::units::counted;

const BUCKETS: &str = "r2/buckets/";
const AGAIN: &str = "Run `gsv deploy down` again: it continues where it stopped.";

pub async fn run(context: &Context, args: DeployDown) -> Outcome {
    let out = context.out;
    if let Some(name) = args.purge.as_deref().filter(|name| *name != GATEWAY) {
        return Err(Failure::usage(
            format!("There is no deployment {name:?}. Nothing was deleted."),
            format!("Its name is {GATEWAY}: `gsv deploy down --purge {GATEWAY}` deletes it with all its data."),
        ));
    }
    let _held = record::hold()?;
    let open = Open::new(out, args.account.account.as_deref()).await?;
    let state = open.look().await?.state;
    let workers = workers(&state);
    if let Some(other) = workers.iter().find(|worker| !state.workers[&worker.name()].is_ours()) {
        let message = format!(
            "The Worker {} was not deployed by `gsv deploy`. Nothing was changed.",
            other.name()
        );
        return Err(Failure::failed(
            message,
            "Take it over first with `gsv deploy up --adopt`, or remove it with wrangler.",
        ));
    }
    if args.purge.is_some() {
        return purge(out, &open, &state, &workers, args.yes).await;
    }
    if workers.is_empty() {
        let message = format!("Nothing is deployed to the account {}.", open.account_name);
        return Err(Failure::failed(message, "Deploy: `gsv deploy up`."));
    }
    out.note(&format!("Stop GSV in the account {}:", open.account_name));
    for worker in &workers {
        out.note(&format!("  - {} stops answering; its data stays", worker.name()));
    }
    if !args.yes {
        ask::confirm(out, "Go on?", "stop it", "Nothing was changed.")?;
    }
    stop(out, &open, &state, &workers).await?;
    let names: Vec<String> = workers.iter().map(Worker::name).collect();
    let words = "The deployment is stopped, and all its data is kept. `gsv deploy up` starts it again; `gsv deploy down --purge gsv` deletes it.";
    out.done(&json!({ "stopped": names }), words);
    Ok(())
}

/// The gateway first: nothing is sent to a channel that is stopped already.
fn workers(state: &State) -> Vec<Worker> {
    let mut workers: Vec<Worker> = state.workers.keys().filter_map(|name| Worker::parse(name)).collect();
    workers.sort();
    workers
}

async fn stop(out: Output, open: &Open, state: &State, workers: &[Worker]) -> Outcome {
    let label = Label {
        kind: Kind::Down,
        run: Ulid::generate().to_string(),
        version: open.bundle.version.clone(),
        state: open.bundle.state.clone(),
    };
    // Messages of the queues wait, instead of being refused until they are dead letters.
    for (name, id) in &state.queues {
        let removed = remove_consumer(open, id).await;
        removed.map_err(|trouble| trouble.failure(&format!("stop the delivery of the queue {name}"), AGAIN))?;
    }
    for worker in workers {
        out.aside(&format!("stop {worker}"));
        steps::upload(open, &steps::parked(worker.clone()), &label, &[], state).await?;
    }
    Ok(())
}

async fn remove_consumer(open: &Open, queue: &str) -> Result<(), Trouble> {
    let at = open.account().path(&format!("queues/{queue}/consumers"));
    let consumers = list(open.api.get(&at).await?.result);
    let is_ours = |consumer: &&Value| {
        ["script", "script_name", "service"]
            .iter()
            .any(|key| consumer[*key] == GATEWAY)
    };
    for consumer in consumers.iter().filter(is_ours) {
        if let Some(id) = text(consumer, "consumer_id") {
            open.api.delete(&format!("{at}/{id}")).await?;
        }
    }
    Ok(())
}

/// What is deleted: what it is, its name, its path.
fn all_of(state: &State, workers: &[Worker]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |what: &str, name: &str, path: String| all.push((format!("{what} {name}"), path));
    for worker in workers.iter().rev() {
        add(
            "the Worker",
            &worker.name(),
            format!("workers/scripts/{}?force=true", worker.name()),
        );
    }
    for (name, id) in &state.queues {
        add("the queue", name, format!("queues/{id}"));
    }
    for name in &state.buckets {
        add("the bucket", name, format!("{BUCKETS}{}", encoded(name)));
    }
    for (name, id) in &state.databases {
        add("the database", name, format!("d1/database/{id}"));
    }
    for (name, id) in &state.namespaces {
        add("the key-value namespace", name, format!("storage/kv/namespaces/{id}"));
    }
    for name in state.indexes.keys() {
        add(
            "the Vectorize index",
            name,
            format!("vectorize/v2/indexes/{}", encoded(name)),
        );
    }
    all
}

async fn purge(out: Output, open: &Open, state: &State, workers: &[Worker], yes: bool) -> Outcome {
    let all = all_of(state, workers);
    if all.is_empty() {
        Record::remove();
        out.done(&json!({ "deleted": [] }), "There is nothing to delete.");
        return Ok(());
    }
    out.note(&format!(
        "Delete from the account {}, with all data, for good:",
        open.account_name
    ));
    for (what, _) in &all {
        out.note(&format!("  - {what}"));
    }
    if !yes {
        ask::confirm(
            out,
            "Conversations, files, memories and logins are lost. Go on?",
            "delete all of it",
            "Nothing was deleted.",
        )?;
    }
    for (what, path) in &all {
        if let Some(bucket) = path.strip_prefix(BUCKETS) {
            empty(out, open, bucket).await?;
        }
        let deleted = open.api.delete(&open.account().path(path)).await;
        deleted.map_err(|trouble| {
            let next = format!("Run `gsv deploy down --purge {GATEWAY}` again: it continues where it stopped.");
            trouble.failure(&format!("delete {what}"), &next)
        })?;
    }
    Record::remove();
    let names: Vec<&String> = all.iter().map(|(what, _)| what).collect();
    out.done(
        &json!({ "deleted": names }),
        "The deployment is deleted, with all its data.",
    );
    Ok(())
}

/// Cloudflare deletes empty buckets only. The Workers are gone by now, so nothing is added.
async fn empty(out: Output, open: &Open, bucket: &str) -> Outcome {
    let at = open.account().path(&format!("{BUCKETS}{bucket}/objects"));
    let mut count = 0;
    loop {
        let listed = open.api.get(&at).await;
        let rows = list(
            listed
                .map_err(|trouble| trouble.failure("list the files of the bucket", AGAIN))?
                .result,
        );
        let keys: Vec<String> = rows.iter().filter_map(|row| text(row, "key")).collect();
        if keys.is_empty() {
            return Ok(());
        }
        for key in keys {
            let deleted = open.api.delete(&format!("{at}/{}", encoded(&key))).await;
            deleted.map_err(|trouble| trouble.failure("delete a file of the bucket", AGAIN))?;
            count += 1;
        }
        out.aside(&format!("{} deleted", counted(count, "file", "files")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::deploy::account::Found;

    #[test]
    fn de10_a_purge_deletes_what_a_deployment_has_made_and_the_gateway_after_its_channels() {
        let mut state = State::default();
        for name in ["gsv", "gsv-channel-discord"] {
            state.workers.insert(name.to_owned(), Found::default());
        }
        state.queues.insert("events".to_owned(), "q1".to_owned());
        state.buckets.insert("gsv-storage".to_owned());
        let workers = workers(&state);
        assert_eq!(
            workers.iter().map(Worker::name).collect::<Vec<_>>(),
            ["gsv", "gsv-channel-discord"]
        );
        let all = all_of(&state, &workers);
        let paths: Vec<&str> = all.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "workers/scripts/gsv-channel-discord?force=true",
                "workers/scripts/gsv?force=true",
                "queues/q1",
                "r2/buckets/gsv-storage"
            ]
        );
    }
}
