//! Carries out the steps of a plan, one after the other, and says what it does. A step that fails ends the run; the next one looks again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::account::{State, text};
use super::api::{Answer, Trouble, encoded};
use super::bundle::CONFIG;
use super::label::Label;
use super::open::Open;
use super::parts::{INDEX, Worker};
use super::plan::{Deploy, SEALING_KEYS, Step, TOKEN_HASH};
use crate::embedded::sealing_key::SealingKeys;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// The values that the deployment's secrets are made of. They have no `Debug`, so they cannot get into a log.
pub struct Secrets {
    pub token_hash: Option<String>,
    pub keys: SealingKeys,
}

impl Secrets {
    /// As wrangler reads them.
    fn json(&self, account: &str, deploy: &Deploy) -> Vec<u8> {
        let value = |secret: &str| match secret {
            TOKEN_HASH => self.token_hash.clone().unwrap_or_default(),
            // Not those of this machine's gateway: one set opens nothing of the other.
            _ => self
                .keys
                .for_worker(&format!("deployment {account} {}", deploy.worker.name())),
        };
        let all: BTreeMap<&str, String> = deploy.secrets.iter().map(|secret| (*secret, value(secret))).collect();
        debug_assert!(all.keys().all(|secret| [TOKEN_HASH, SEALING_KEYS].contains(secret)));
        json!(all).to_string().into_bytes()
    }
}

pub async fn run(
    out: Output,
    open: &Open,
    steps: &[Step],
    label: &Label,
    secrets: &Secrets,
    state: &mut State,
) -> Outcome {
    for (number, step) in (1..).zip(steps) {
        out.aside(&format!("{number}/{}  {step}", steps.len()));
        one(open, step, label, secrets, state).await?;
    }
    Ok(())
}

async fn one(open: &Open, step: &Step, label: &Label, secrets: &Secrets, state: &mut State) -> Outcome {
    match step {
        Step::Bucket(name) => {
            create(open, step, "r2/buckets", &json!({ "name": name })).await?;
            state.buckets.insert(name.clone());
        }
        Step::Database(name) => {
            let made = create(open, step, "d1/database", &json!({ "name": name })).await?;
            state.databases.insert(name.clone(), id(step, &made, "uuid")?);
        }
        Step::Namespace(title) => {
            let made = create(open, step, "storage/kv/namespaces", &json!({ "title": title })).await?;
            state.namespaces.insert(title.clone(), id(step, &made, "id")?);
        }
        Step::Queue(name) => {
            let made = create(open, step, "queues", &json!({ "queue_name": name })).await?;
            state.queues.insert(name.clone(), id(step, &made, "queue_id")?);
        }
        Step::Index { dimensions } => {
            let body = json!({ "name": INDEX, "config": { "dimensions": dimensions, "metric": "cosine" } });
            create(open, step, "vectorize/v2/indexes", &body).await?;
            state.indexes.entry(INDEX.to_owned()).or_default();
        }
        Step::IndexField(field) => {
            let path = format!("vectorize/v2/indexes/{INDEX}/metadata_index/create");
            create(
                open,
                step,
                &path,
                &json!({ "propertyName": field, "indexType": "string" }),
            )
            .await?;
        }
        Step::File { bucket, key } => {
            let path = open
                .account()
                .path(&format!("r2/buckets/{bucket}/objects/{}", encoded(key)));
            let put = open.api.put_file(&path, open.bundle.file(bucket, key)?).await;
            put.map_err(|trouble| failed(step, &trouble))?;
        }
        Step::Deploy(deploy) => {
            let label = Label {
                kind: deploy.kind,
                ..label.clone()
            };
            upload(open, deploy, &label, &secrets.json(&open.account_id, deploy), state).await?;
        }
    }
    Ok(())
}

async fn create(open: &Open, step: &Step, path: &str, body: &Value) -> Outcome<Value> {
    let answer: Result<Answer, Trouble> = open.api.post(&open.account().path(path), body).await;
    Ok(answer.map_err(|trouble| failed(step, &trouble))?.result)
}

fn failed(step: &Step, trouble: &Trouble) -> Failure {
    trouble.failure(
        &step.to_string(),
        "`gsv deploy check` says what the account lacks; then run `gsv deploy up` again.",
    )
}

fn id(step: &Step, made: &Value, key: &str) -> Outcome<String> {
    text(made, key).ok_or_else(|| {
        Failure::failed(
            format!("Cloudflare's answer to `{step}` has no {key}."),
            "Run `gsv deploy up` again: it looks what is there.",
        )
    })
}

/// Uploads one version, which is active at once.
pub async fn upload(open: &Open, deploy: &Deploy, label: &Label, secrets: &[u8], state: &State) -> Outcome {
    let folder = open.bundle.folder(&deploy.worker, label, &deploy.channels, state)?;
    let message = label.to_string();
    let mut args = vec!["deploy", "--config", CONFIG, "--message", message.as_str()];
    let has_secrets = !deploy.secrets.is_empty();
    if has_secrets {
        args.extend(["--secrets-file", "/dev/stdin"]);
    }
    let stdin = has_secrets.then_some(secrets);
    let report = open
        .wrangler
        .run(folder.path(), &args, Some(&open.account_id), stdin)
        .await?;
    if report.version().is_none() {
        let message = format!(
            "wrangler did not say which version of {} it has deployed.",
            deploy.worker
        );
        return Err(Failure::failed(
            message,
            "Run the command again: it continues where it stopped.",
        ));
    }
    Ok(())
}

/// As `Worker::Gateway` or a channel, stopped.
pub fn parked(worker: Worker) -> Deploy {
    Deploy {
        worker,
        kind: super::label::Kind::Down,
        channels: Vec::new(),
        secrets: Vec::new(),
        is_new: false,
    }
}
