//! What is deployed: the prebuilt Workers of the runtime folder and their configuration (`deploy.json`). Writes a folder for wrangler; it
//! bundles nothing again, so the deployed code is the code that runs on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::account::State;
use super::label::{Kind, Label};
use super::parts::{GATEWAY, INDEX, Needs, Worker};
use crate::embedded::channel_name::Name;
use crate::embedded::layout::Layout;
use crate::embedded::runtime::{ModuleName, Runtime};
use crate::exit::{Failure, OrFail, Outcome};

const FILE: &str = "deploy.json";
const REBUILD: &str = "Build or install the runtime again.";
pub const CONFIG: &str = "wrangler.json";
const INDEX_BINDING: &str = "VECTORS";

type Config = Map<String, Value>;

/// `deploy.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct Bundle {
    pub version: String,
    pub state: String,
    gateway: Config,
    modules: Vec<ModuleName>,
    channels: BTreeMap<Name, Config>,
    /// Files of buckets that belong to the program, by the bucket and their keys there; the values are their names in the runtime folder.
    #[serde(default)]
    files: BTreeMap<String, BTreeMap<String, ModuleName>>,
    #[serde(skip)]
    dir: PathBuf,
}

impl Bundle {
    pub fn find() -> Outcome<Self> {
        let dir = Runtime::find(&Layout::find()?)?.dir;
        let path = dir.join(FILE);
        let text = fs::read_to_string(&path).or_fail(format_args!("read {}", path.display()), REBUILD)?;
        let bundle: Self = serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("{} is not valid: {error}.", path.display()), REBUILD))?;
        Ok(Self { dir, ..bundle })
    }

    pub fn channels(&self) -> impl Iterator<Item = &Name> {
        self.channels.keys()
    }

    pub fn needs(&self) -> Needs {
        let texts = |list: &str, key: &str| -> Vec<String> {
            let rows = self.gateway.get(list).and_then(Value::as_array).into_iter().flatten();
            rows.filter_map(|row| row[key].as_str()).map(str::to_owned).collect()
        };
        let bindings = texts("kv_namespaces", "binding");
        Needs {
            buckets: texts("r2_buckets", "bucket_name"),
            databases: texts("d1_databases", "database_name"),
            namespaces: bindings.iter().map(|binding| title(binding)).collect(),
            queues: self.queues(),
            files: self
                .files
                .iter()
                .flat_map(|(bucket, files)| files.keys().map(|key| (bucket.clone(), key.clone())))
                .collect(),
        }
    }

    /// The content of a file that belongs into a bucket.
    pub fn file(&self, bucket: &str, key: &str) -> Outcome<Vec<u8>> {
        let name = self.files.get(bucket).and_then(|files| files.get(key));
        let name = name.map(ModuleName::as_str);
        let name = name.ok_or_else(|| Failure::failed(format!("This runtime has no {key}."), REBUILD))?;
        let path = self.dir.join(name);
        fs::read(&path).or_fail(format_args!("read {}", path.display()), REBUILD)
    }

    /// Those that the gateway sends to, takes from, and gives up to.
    fn queues(&self) -> Vec<String> {
        let queues = &self.gateway.get("queues").cloned().unwrap_or_default();
        let of = |list: &str, key: &str| -> Vec<String> {
            let rows = queues[list].as_array().cloned().unwrap_or_default();
            rows.iter()
                .filter_map(|row| row[key].as_str().map(str::to_owned))
                .collect()
        };
        let all = [
            of("producers", "queue"),
            of("consumers", "queue"),
            of("consumers", "dead_letter_queue"),
        ];
        let all: BTreeSet<String> = all.into_iter().flatten().collect();
        all.into_iter().collect()
    }

    /// A folder from which wrangler deploys this Worker.
    pub fn folder(&self, worker: &Worker, label: &Label, channels: &[Name], state: &State) -> Outcome<TempDir> {
        let folder = folder()?;
        let mut config = self.config(worker)?.clone();
        config.insert("no_bundle".to_owned(), true.into());
        config.insert("main".to_owned(), "worker.js".into());
        config.insert("preview_urls".to_owned(), false.into());
        if label.kind == Kind::Down {
            write(folder.path(), "worker.js", parked(&classes(&config)))?;
            // Without a binding: a stopped Worker reaches nothing.
            let kept = [
                "name",
                "main",
                "no_bundle",
                "compatibility_date",
                "exports",
                "workers_dev",
                "preview_urls",
                "send_metrics",
            ];
            config.retain(|key, _| kept.contains(&key.as_str()));
        } else if *worker == Worker::Gateway {
            self.copy("worker.js", folder.path(), "worker.js")?;
            for module in self.modules.iter().map(ModuleName::as_str) {
                self.copy(module, folder.path(), module)?;
            }
            self.bind(&mut config, channels, state);
        } else {
            let Worker::Channel(name) = worker else {
                return Ok(folder);
            };
            self.copy(&format!("channels/{name}.js"), folder.path(), "worker.js")?;
        }
        write(folder.path(), CONFIG, Value::Object(config).to_string())?;
        Ok(folder)
    }

    fn config(&self, worker: &Worker) -> Outcome<&Config> {
        let found = match worker {
            Worker::Gateway => Some(&self.gateway),
            Worker::Channel(name) => self.channels.get(name),
        };
        found.ok_or_else(|| Failure::failed(format!("This runtime has no {worker}."), REBUILD))
    }

    /// The gateway's bindings to what is in the account.
    fn bind(&self, config: &mut Config, channels: &[Name], state: &State) {
        config.insert("find_additional_modules".to_owned(), true.into());
        config.insert(
            "rules".to_owned(),
            json!([{ "type": "ESModule", "globs": ["**/*.mjs"] }]),
        );
        if let Some(vars) = config.get_mut("vars") {
            vars["VERSION"] = self.version.clone().into();
        }
        for row in rows(config, "kv_namespaces") {
            let title = title(row["binding"].as_str().unwrap_or_default());
            row["id"] = state.namespaces.get(&title).cloned().into();
        }
        for row in rows(config, "d1_databases") {
            let id = row["database_name"].as_str().and_then(|name| state.databases.get(name));
            row["database_id"] = id.cloned().into();
        }
        if state.indexes.contains_key(INDEX) {
            let index = json!([{ "binding": INDEX_BINDING, "index_name": INDEX }]);
            config.insert("vectorize".to_owned(), index);
        }
        if let Some(assets) = config.get_mut("assets") {
            assets["directory"] = self.dir.join("assets").display().to_string().into();
        }
        let services: Vec<Value> = channels
            .iter()
            .map(|name| json!({ "binding": name.binding(), "service": Worker::Channel(name.clone()).name() }))
            .collect();
        config.insert("services".to_owned(), services.into());
    }

    fn copy(&self, from: &str, folder: &Path, to: &str) -> Outcome {
        let from = self.dir.join(from);
        let content = fs::read(&from).or_fail(format_args!("read {}", from.display()), REBUILD)?;
        write(folder, to, content)
    }
}

/// A private folder, which is removed at the end.
pub fn folder() -> Outcome<TempDir> {
    TempDir::with_prefix("gsv-deploy-").or_fail("make a temporary folder", "Check that the disk is not full.")
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> Outcome {
    fs::write(folder.join(name), content).or_fail(format_args!("write {name}"), "Check that the disk is not full.")
}

fn rows<'a>(config: &'a mut Config, list: &str) -> impl Iterator<Item = &'a mut Value> {
    config.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The name of a namespace: that which wrangler would give it.
fn title(binding: &str) -> String {
    format!("{GATEWAY}-{}", binding.to_ascii_lowercase().replace('_', "-"))
}

/// The classes of Durable Objects.
fn classes(config: &Config) -> Vec<String> {
    let exports = config.get("exports").and_then(Value::as_object);
    exports.into_iter().flat_map(Map::keys).cloned().collect()
}

/// A Worker that keeps the objects of these classes and does nothing: deleting a Worker would delete its objects with their data. An alarm
/// is set again, so that what was under way continues after the next `gsv deploy up`.
fn parked(classes: &[String]) -> String {
    let mut text = "import { DurableObject, WorkerEntrypoint } from \"cloudflare:workers\";\n\
        const stopped = () => new Response(\"This deployment is stopped. Start it with `gsv deploy up`.\\n\", { status: 503 });\n\
        class Parked extends DurableObject {\n  fetch() { return stopped(); }\n  alarm() { return this.ctx.storage.setAlarm(Date.now() + 900_000); }\n}\n\
        export class GatewayEntrypoint extends WorkerEntrypoint {\n  fetch() { return stopped(); }\n}\n\
        export default { fetch: stopped };\n"
        .to_owned();
    for class in classes {
        let _ = writeln!(text, "export class {class} extends Parked {{}}");
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn bundle() -> Bundle {
        serde_json::from_value(json!({
            "version": "0.1.0+aa", "state": "s1", "modules": [],
            "gateway": {
                "name": "gsv", "compatibility_date": "2026-11-01", "workers_dev": true,
                "vars": { "ENVIRONMENT": "cloudflare", "VERSION": "0" },
                "exports": { "Gateway": { "type": "durable-object", "storage": "sqlite" } },
                "r2_buckets": [{ "binding": "STORAGE", "bucket_name": "gsv-storage" }],
                "kv_namespaces": [{ "binding": "JOBS_INDEX" }],
                "d1_databases": [{ "binding": "DB", "database_name": "gsv" }],
                "queues": {
                    "producers": [{ "binding": "EVENTS", "queue": "events" }],
                    "consumers": [{ "queue": "events", "dead_letter_queue": "events-dead" }, { "queue": "events-dead" }],
                },
            },
            "files": { "gsv-storage": { "gsv/table.bin": "table.bin" } },
            "channels": { "discord": { "name": "gsv-channel-discord" }, "example": { "name": "gsv-channel-example" } },
        }))
        .unwrap()
    }

    pub fn name(text: &str) -> Name {
        Name::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn de1_a_deployment_stands_on_what_its_configuration_names() {
        let needs = bundle().needs();
        assert_eq!(needs.buckets, ["gsv-storage"]);
        assert_eq!(needs.databases, ["gsv"]);
        assert_eq!(needs.namespaces, ["gsv-jobs-index"]);
        assert_eq!(needs.queues, ["events", "events-dead"]);
        assert_eq!(needs.files, [("gsv-storage".to_owned(), "gsv/table.bin".to_owned())]);
    }

    #[test]
    fn de1_the_gateway_is_bound_to_what_the_account_has_and_to_its_channels() {
        let bundle = bundle();
        let mut config = bundle.gateway.clone();
        let mut state = State::default();
        state.namespaces.insert("gsv-jobs-index".to_owned(), "kv-id".to_owned());
        state.databases.insert("gsv".to_owned(), "d1-id".to_owned());
        bundle.bind(&mut config, &[name("discord")], &state);
        let config = Value::Object(config);
        assert_eq!(config["kv_namespaces"][0]["id"], "kv-id");
        assert_eq!(config["d1_databases"][0]["database_id"], "d1-id");
        assert_eq!(config["vars"]["VERSION"], "0.1.0+aa");
        assert_eq!(
            config["services"],
            json!([{ "binding": "CHANNEL_DISCORD", "service": "gsv-channel-discord" }])
        );
        assert_eq!(config["vectorize"], Value::Null);
    }

    #[test]
    fn de9_a_stopped_worker_keeps_each_class_and_sets_its_alarm_again() {
        let text = parked(&["Gateway".to_owned(), "Session".to_owned()]);
        assert!(text.contains("export class Gateway extends Parked {}\nexport class Session extends Parked {}\n"));
        assert!(text.contains("setAlarm(") && text.contains("status: 503"));
    }
}
