//! `gsv deploy status`: what is deployed, and whether it answers. Changes nothing.

use serde_json::{Value, json};

use super::account::Found;
use super::health;
use super::label::Kind;
use super::open::Open;
use super::parts::{GATEWAY, Worker};
use crate::args::DeployAccount;
use crate::commands::context::Context;
use crate::exit::{Failure, Outcome};
use crate::table::Table;

pub async fn run(context: &Context, args: DeployAccount) -> Outcome {
    let out = context.out;
    let open = Open::new(out, args.account.as_deref()).await?;
    let state = open.look().await?.state;
    let Some(gateway) = state.workers.get(GATEWAY) else {
        let message = format!("Nothing is deployed to the account {}.", open.account_name);
        return Err(Failure::failed(message, "Deploy: `gsv deploy up`."));
    };
    let bound = match gateway.active.as_deref() {
        Some(active) => open.account().bound(active).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let (target, _) = open.address(None, state.subdomain.as_deref())?;
    let health = health::check(&target).await;
    let is_stopped = gateway.kind() == Some(Kind::Down);
    let rows: Vec<Row> = state
        .workers
        .iter()
        .map(|(name, found)| {
            let is_bound = match Worker::parse(name) {
                Some(Worker::Channel(channel)) => bound.contains(&channel),
                _ => true,
            };
            Row::of(name, found, is_bound)
        })
        .collect();
    let resources = json!({
        "buckets": state.buckets, "databases": state.databases.keys().collect::<Vec<_>>(),
        "namespaces": state.namespaces.keys().collect::<Vec<_>>(), "queues": state.queues.keys().collect::<Vec<_>>(),
        "indexes": state.indexes.keys().collect::<Vec<_>>(),
    });
    let document = json!({
        "account": { "id": open.account_id, "name": open.account_name },
        "address": target.http_url(""), "stopped": is_stopped,
        "health": { "ok": health.is_ok(), "version": health.as_ref().ok(), "problem": health.as_ref().err() },
        "workers": rows.iter().map(Row::json).collect::<Vec<_>>(), "resources": resources,
    });
    out.show(document, |_| {
        let answers = match &health {
            _ if is_stopped => "stopped; start it with `gsv deploy up`".to_owned(),
            Ok(version) => format!("answers, version {version}"),
            Err(problem) => format!("does not answer: {problem}"),
        };
        out.fields([
            ("account", Some(open.account_name.clone())),
            ("gateway", Some(target.http_url(""))),
            ("health", Some(answers)),
        ]);
        out.line("");
        out.table(&Table::new(
            ["WORKER", "VERSION", "DEPLOYED", "STATE"],
            rows.into_iter().map(Row::cells),
        ));
    });
    if health.is_err() && !is_stopped {
        return Err(Failure::later(
            "The deployed gateway does not answer.",
            "Look at its log with `gsv deploy logs`, or go back with `gsv deploy rollback`.",
        ));
    }
    Ok(())
}

struct Row {
    worker: String,
    version: String,
    deployed: String,
    state: &'static str,
}

impl Row {
    fn of(name: &str, found: &Found, is_bound: bool) -> Self {
        let active = found.active();
        let label = active.and_then(|version| version.label.as_ref());
        Self {
            worker: name.to_owned(),
            version: label.map_or_else(|| "unknown".to_owned(), |label| label.version.clone()),
            deployed: active.map(|version| version.created_at.clone()).unwrap_or_default(),
            state: match label.map(|label| label.kind) {
                None => "not deployed by gsv",
                Some(Kind::Down) => "stopped",
                Some(Kind::Part) => "incomplete: run `gsv deploy up` again",
                Some(Kind::Up) if is_bound => "active",
                Some(Kind::Up) => "not used by the gateway",
            },
        }
    }

    fn json(&self) -> Value {
        json!({ "worker": self.worker, "version": self.version, "deployedAt": self.deployed, "state": self.state })
    }

    fn cells(self) -> [String; 4] {
        [self.worker, self.version, self.deployed, self.state.to_owned()]
    }
}
