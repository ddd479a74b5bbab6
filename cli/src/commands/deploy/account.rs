//! What a Cloudflare account has: reads it, changes nothing. What can't be read becomes a finding, for `gsv deploy check`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::{Answer, Api, Trouble, encoded};
use super::finding::{Finding, PRODUCTS, Product};
use super::label::{Kind, Label};
use super::parts::{INDEX, Needs, Worker};
use crate::embedded::channel_name::Name;

const PAGE: usize = 100;
/// More are not looked through: a person's account has some tens.
const MAX_PAGES: usize = 50;

#[derive(Debug, Default)]
pub struct State {
    /// The account's subdomain of workers.dev.
    pub subdomain: Option<String>,
    pub buckets: BTreeSet<String>,
    /// Ids by name.
    pub databases: BTreeMap<String, String>,
    pub namespaces: BTreeMap<String, String>,
    pub queues: BTreeMap<String, String>,
    /// Fields by name.
    pub indexes: BTreeMap<String, BTreeSet<String>>,
    /// The Workers of a deployment.
    pub workers: BTreeMap<String, Found>,
}

/// A Worker that exists.
#[derive(Debug, Default)]
pub struct Found {
    /// The newest first.
    pub versions: Vec<Version>,
    /// Id of the version that runs.
    pub active: Option<String>,
    pub secrets: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub id: String,
    /// As Cloudflare writes it.
    pub created_at: String,
    /// `None`: another program has deployed it.
    pub label: Option<Label>,
}

impl Found {
    pub fn active(&self) -> Option<&Version> {
        let id = self.active.as_ref()?;
        self.versions.iter().find(|version| version.id == *id)
    }

    /// Whether `gsv deploy` has deployed it, at least once.
    pub fn is_ours(&self) -> bool {
        self.versions.iter().any(|version| version.label.is_some())
    }

    pub fn kind(&self) -> Option<Kind> {
        Some(self.active()?.label.as_ref()?.kind)
    }
}

/// An account with what could be read of it, and a finding for each product.
pub struct Looked {
    pub state: State,
    pub findings: Vec<Finding>,
}

pub struct Account<'a> {
    pub api: &'a Api,
    pub id: &'a str,
}

impl Account<'_> {
    pub fn path(&self, rest: &str) -> String {
        format!("/accounts/{}/{rest}", self.id)
    }

    async fn get(&self, rest: &str) -> Result<Answer, Trouble> {
        self.api.get(&self.path(rest)).await
    }

    /// A thing of this name; `None` when there is none.
    async fn one(&self, rest: &str) -> Result<Option<Value>, Trouble> {
        match self.get(rest).await {
            Ok(answer) => Ok(Some(answer.result)),
            Err(trouble) if trouble.is_missing() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// All rows of a list that is given in pages.
    async fn rows(&self, rest: &str) -> Result<Vec<Value>, Trouble> {
        let mut all = Vec::new();
        let joint = if rest.contains('?') { '&' } else { '?' };
        for page in 1..=MAX_PAGES {
            let answer = self.get(&format!("{rest}{joint}page={page}&per_page={PAGE}")).await?;
            let rows = list(answer.result);
            let is_last = rows.len() < PAGE;
            all.extend(rows);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// `needs` says what is looked for.
    pub async fn look(&self, needs: &Needs) -> Looked {
        let mut state = State::default();
        let mut findings = Vec::new();
        for product in PRODUCTS {
            let outcome = self.read(product, needs, &mut state).await;
            findings.push(Finding::of(product, self.id, outcome.err()));
        }
        Looked { state, findings }
    }

    async fn read(&self, product: Product, needs: &Needs, state: &mut State) -> Result<(), Trouble> {
        match product {
            Product::Workers => state.workers = self.workers().await?,
            Product::Subdomain => {
                let subdomain = self.get("workers/subdomain").await?;
                state.subdomain = text(&subdomain.result, "subdomain");
            }
            Product::Storage => {
                // The list tells whether the product is enabled; a bucket alone would only be missing.
                self.get("r2/buckets?per_page=1").await?;
                for name in &needs.buckets {
                    if self.one(&format!("r2/buckets/{}", encoded(name))).await?.is_some() {
                        state.buckets.insert(name.clone());
                    }
                }
            }
            Product::Database => {
                for name in &needs.databases {
                    let rows = self.get(&format!("d1/database?name={}", encoded(name))).await?.result;
                    state
                        .databases
                        .extend(pairs(list(rows), "name", "uuid", &needs.databases));
                }
            }
            Product::KeyValue => {
                let rows = self.rows("storage/kv/namespaces").await?;
                state.namespaces = pairs(rows, "title", "id", &needs.namespaces).collect();
            }
            Product::Queues => {
                let rows = self.rows("queues").await?;
                state.queues = pairs(rows, "queue_name", "queue_id", &needs.queues).collect();
            }
            Product::Vectors => {
                self.get("vectorize/v2/indexes").await?;
                let at = format!("vectorize/v2/indexes/{INDEX}");
                if self.one(&at).await?.is_some() {
                    let fields = self.get(&format!("{at}/metadata_index/list")).await?.result;
                    let fields = list(fields["metadataIndexes"].clone());
                    let names = fields.iter().filter_map(|field| text(field, "propertyName")).collect();
                    state.indexes.insert(INDEX.to_owned(), names);
                }
            }
        }
        Ok(())
    }

    async fn workers(&self) -> Result<BTreeMap<String, Found>, Trouble> {
        let scripts = list(self.get("workers/scripts").await?.result);
        let names = scripts.iter().filter_map(|script| text(script, "id"));
        let mut workers = BTreeMap::new();
        for name in names.filter(|name| Worker::parse(name).is_some()) {
            if let Some(found) = self.worker(&name).await? {
                workers.insert(name, found);
            }
        }
        Ok(workers)
    }

    async fn worker(&self, name: &str) -> Result<Option<Found>, Trouble> {
        let at = format!("workers/scripts/{name}");
        let Some(deployments) = self.one(&format!("{at}/deployments")).await? else {
            return Ok(None);
        };
        let versions = self.get(&format!("{at}/versions?deployable=true")).await?.result;
        let secrets = list(self.get(&format!("{at}/secrets")).await?.result);
        Ok(Some(Found {
            versions: list(versions["items"].clone()).iter().filter_map(version).collect(),
            active: text(&deployments["deployments"][0]["versions"][0], "version_id"),
            secrets: secrets.iter().filter_map(|secret| text(secret, "name")).collect(),
        }))
    }

    /// The channels that this version of the gateway is bound to.
    pub async fn bound(&self, version: &str) -> Result<Vec<Name>, Trouble> {
        let at = format!("workers/scripts/{}/versions/{version}", super::parts::GATEWAY);
        let bindings = list(self.get(&at).await?.result["resources"]["bindings"].clone());
        let services = bindings.iter().filter_map(|binding| text(binding, "service"));
        let mut channels: Vec<Name> = services
            .filter_map(|service| match Worker::parse(&service) {
                Some(Worker::Channel(name)) => Some(name),
                _ => None,
            })
            .collect();
        channels.sort();
        Ok(channels)
    }
}

pub fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    }
}

pub fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// Ids by name, of these names.
fn pairs(rows: Vec<Value>, name: &str, id: &str, wanted: &[String]) -> impl Iterator<Item = (String, String)> {
    let found = rows
        .into_iter()
        .filter_map(move |row| Some((text(&row, name)?, text(&row, id)?)));
    found.filter(move |(name, _)| wanted.contains(name))
}

fn version(row: &Value) -> Option<Version> {
    Some(Version {
        id: text(row, "id")?,
        created_at: text(&row["metadata"], "created_on").unwrap_or_default(),
        label: text(&row["annotations"], "workers/message").and_then(|message| Label::parse(&message)),
    })
}
