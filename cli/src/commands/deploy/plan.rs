//! What `gsv deploy up` does: from what is wanted and what the account has, the steps in their order. Pure.

use std::collections::BTreeSet;
use std::fmt;

use super::account::State;
use super::label::Kind;
use super::parts::{INDEX, INDEX_FIELDS, Needs, Worker};
use crate::embedded::channel_name::Name;

/// The hash of the first admin token, and the keys of stored secrets.
pub const TOKEN_HASH: &str = "BOOTSTRAP_TOKEN_HASH";
pub const SEALING_KEYS: &str = "SEALING_KEYS";

#[derive(Debug)]
pub struct Wanted {
    pub needs: Needs,
    pub channels: Vec<Name>,
    /// Dimensions of an index that is to be made.
    pub vectorize: Option<u32>,
    pub new_token: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Bucket(String),
    Database(String),
    Namespace(String),
    Queue(String),
    Index { dimensions: u32 },
    IndexField(&'static str),
    File { bucket: String, key: String },
    Deploy(Deploy),
}

/// A version of a Worker. Its secrets go with it, in one request: it never runs without them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deploy {
    pub worker: Worker,
    pub kind: Kind,
    /// The channels that the gateway is bound to.
    pub channels: Vec<Name>,
    /// Names of secrets that the Worker does not have yet. Others stay as they are.
    pub secrets: Vec<&'static str>,
    pub is_new: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(name) => write!(f, "create the bucket {name}"),
            Self::Database(name) => write!(f, "create the database {name}"),
            Self::Namespace(name) => write!(f, "create the key-value namespace {name}"),
            Self::Queue(name) => write!(f, "create the queue {name}"),
            Self::Index { dimensions } => {
                write!(f, "create the Vectorize index {INDEX} ({dimensions} dimensions)")
            }
            Self::IndexField(field) => write!(f, "create the metadata index {field} of {INDEX}"),
            Self::File { bucket, key } => write!(f, "put {key} into the bucket {bucket}"),
            Self::Deploy(deploy) => deploy.fmt(f),
        }
    }
}

impl fmt::Display for Deploy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.is_new { "deploy" } else { "upgrade" };
        write!(f, "{verb} {} as {}", self.worker, self.worker.name())?;
        if self.kind == Kind::Part {
            f.write_str(", without its channels, which need it first")?;
        } else if !self.channels.is_empty() {
            let names: Vec<String> = self.channels.iter().map(ToString::to_string).collect();
            write!(f, ", with {}", names.join(" and "))?;
        }
        if !self.secrets.is_empty() {
            write!(f, ", with the secrets {}", self.secrets.join(" and "))?;
        }
        Ok(())
    }
}

/// Existing resources are never made again; Workers are always deployed, which also completes a deployment that broke off. A channel and
/// the gateway need each other: the gateway goes first only when there is none, and then without channels.
pub fn plan(wanted: &Wanted, state: &State) -> Vec<Step> {
    let mut steps = resources(wanted, state);
    let has = |worker: &Worker| state.workers.contains_key(&worker.name());
    let is_new = !has(&Worker::Gateway);
    let mut secrets = missing_secrets(&Worker::Gateway, wanted, state);
    let mut gateway = |kind, channels: &[Name], is_new| {
        Step::Deploy(Deploy {
            worker: Worker::Gateway,
            kind,
            channels: channels.to_vec(),
            secrets: std::mem::take(&mut secrets),
            is_new,
        })
    };
    let is_part = is_new && !wanted.channels.is_empty();
    if is_part {
        steps.push(gateway(Kind::Part, &[], true));
    }
    for name in &wanted.channels {
        let worker = Worker::Channel(name.clone());
        steps.push(Step::Deploy(Deploy {
            kind: Kind::Up,
            channels: Vec::new(),
            secrets: missing_secrets(&worker, wanted, state),
            is_new: !has(&worker),
            worker,
        }));
    }
    steps.push(gateway(Kind::Up, &wanted.channels, is_new && !is_part));
    steps
}

fn resources(wanted: &Wanted, state: &State) -> Vec<Step> {
    let Needs {
        buckets,
        databases,
        namespaces,
        queues,
        files,
    } = &wanted.needs;
    let mut steps = Vec::new();
    let mut add = |names: &[String], has: &dyn Fn(&str) -> bool, make: fn(String) -> Step| {
        steps.extend(names.iter().filter(|name| !has(name)).cloned().map(make));
    };
    add(buckets, &|name| state.buckets.contains(name), Step::Bucket);
    add(databases, &|name| state.databases.contains_key(name), Step::Database);
    add(namespaces, &|name| state.namespaces.contains_key(name), Step::Namespace);
    add(queues, &|name| state.queues.contains_key(name), Step::Queue);
    let index = state.indexes.get(INDEX);
    if let Some(dimensions) = wanted.vectorize
        && index.is_none()
    {
        steps.push(Step::Index { dimensions });
    }
    if index.is_some() || wanted.vectorize.is_some() {
        let none = BTreeSet::new();
        let fields = index.unwrap_or(&none);
        let lacking = INDEX_FIELDS.into_iter().filter(|field| !fields.contains(*field));
        steps.extend(lacking.map(Step::IndexField));
    }
    // As the Workers: each run puts them again.
    steps.extend(files.iter().map(|(bucket, key)| Step::File {
        bucket: bucket.clone(),
        key: key.clone(),
    }));
    steps
}

fn missing_secrets(worker: &Worker, wanted: &Wanted, state: &State) -> Vec<&'static str> {
    let has = |secret: &str| {
        state
            .workers
            .get(&worker.name())
            .is_some_and(|found| found.secrets.contains(secret))
    };
    let mut secrets = Vec::new();
    if *worker == Worker::Gateway && (wanted.new_token || !has(TOKEN_HASH)) {
        secrets.push(TOKEN_HASH);
    }
    if !has(SEALING_KEYS) {
        secrets.push(SEALING_KEYS);
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::deploy::account::Found;
    use crate::commands::deploy::bundle::tests::{bundle, name};

    fn wanted(channels: &[&str]) -> Wanted {
        Wanted {
            needs: bundle().needs(),
            channels: channels.iter().map(|text| name(text)).collect(),
            vectorize: None,
            new_token: false,
        }
    }

    fn texts(steps: &[Step]) -> Vec<String> {
        steps.iter().map(ToString::to_string).collect()
    }

    /// As if the step had been made.
    fn apply(state: &mut State, step: &Step) {
        match step {
            Step::Bucket(name) => drop(state.buckets.insert(name.clone())),
            Step::Database(name) => drop(state.databases.insert(name.clone(), "id".to_owned())),
            Step::Namespace(name) => drop(state.namespaces.insert(name.clone(), "id".to_owned())),
            Step::Queue(name) => drop(state.queues.insert(name.clone(), "id".to_owned())),
            Step::Index { .. } => drop(state.indexes.insert(INDEX.to_owned(), BTreeSet::new())),
            Step::IndexField(field) => {
                state
                    .indexes
                    .entry(INDEX.to_owned())
                    .or_default()
                    .insert((*field).to_owned());
            }
            Step::File { .. } => {}
            Step::Deploy(deploy) => {
                let found: &mut Found = state.workers.entry(deploy.worker.name()).or_default();
                found
                    .secrets
                    .extend(deploy.secrets.iter().map(|secret| (*secret).to_owned()));
            }
        }
    }

    fn apply_all(state: &mut State, steps: &[Step]) {
        for step in steps {
            apply(state, step);
        }
    }

    #[test]
    fn de3_an_empty_account_gets_everything_in_an_order_in_which_nothing_is_missing() {
        let steps = texts(&plan(&wanted(&["discord"]), &State::default()));
        assert_eq!(
            steps,
            [
                "create the bucket gsv-storage",
                "create the database gsv",
                "create the key-value namespace gsv-jobs-index",
                "create the queue events",
                "create the queue events-dead",
                "put gsv/table.bin into the bucket gsv-storage",
                "deploy the gateway as gsv, without its channels, which need it first, with the secrets BOOTSTRAP_TOKEN_HASH and SEALING_KEYS",
                "deploy the channel discord as gsv-channel-discord, with the secrets SEALING_KEYS",
                "upgrade the gateway as gsv, with discord",
            ]
        );
    }

    #[test]
    fn de5_after_a_failure_at_any_step_the_rest_is_planned_and_nothing_twice() {
        let mut wanted = wanted(&["discord", "example"]);
        wanted.vectorize = Some(768);
        let all = plan(&wanted, &State::default());
        assert_eq!(all.len(), 13);
        for done in 0..=all.len() {
            let mut state = State::default();
            apply_all(&mut state, &all[..done]);
            let rest = plan(&wanted, &state);
            let is_deploy = |step: &&Step| matches!(step, Step::Deploy(_) | Step::File { .. });
            let made: Vec<&Step> = all[..done].iter().filter(|step| !is_deploy(step)).collect();
            assert!(rest.iter().all(|step| !made.contains(&step)), "{done}: {rest:?}");
            apply_all(&mut state, &rest);
            let secrets = |worker: &str| state.workers[worker].secrets.len();
            assert_eq!((secrets("gsv"), secrets("gsv-channel-discord")), (2, 1));
            assert_eq!(state.indexes[INDEX].len(), 2);
            let again = plan(&wanted, &state);
            assert!(again.iter().all(|step| is_deploy(&step)), "{again:?}");
        }
    }

    #[test]
    fn de6_an_upgrade_keeps_token_and_keys_and_goes_channels_first() {
        let mut state = State::default();
        apply_all(&mut state, &plan(&wanted(&["discord"]), &State::default()));
        let mut wanted = wanted(&["discord"]);
        assert_eq!(
            texts(&plan(&wanted, &state)),
            [
                "put gsv/table.bin into the bucket gsv-storage",
                "upgrade the channel discord as gsv-channel-discord",
                "upgrade the gateway as gsv, with discord"
            ]
        );
        wanted.new_token = true;
        let steps = texts(&plan(&wanted, &state));
        assert_eq!(
            steps.last().map(String::as_str),
            Some("upgrade the gateway as gsv, with discord, with the secrets BOOTSTRAP_TOKEN_HASH")
        );
    }

    #[test]
    fn de3_a_new_channel_of_an_existing_gateway_goes_before_it_and_the_others_stay_bound() {
        let mut state = State::default();
        apply_all(&mut state, &plan(&wanted(&["discord"]), &State::default()));
        let steps = texts(&plan(&wanted(&["discord", "example"]), &state));
        assert_eq!(
            steps,
            [
                "put gsv/table.bin into the bucket gsv-storage",
                "upgrade the channel discord as gsv-channel-discord",
                "deploy the channel example as gsv-channel-example, with the secrets SEALING_KEYS",
                "upgrade the gateway as gsv, with discord and example",
            ]
        );
    }
}
