//! Services built into workerd: the gateway's binding, the Worker behind it, and the folder of its data. Pure.
//! `unique_key` and the folder say where the data lies, so they never change.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::queue::Queue;

/// A service of workerd with a Durable Object of its own.
pub struct Bundled {
    /// Of the service, and of its file in workerd: `/workerd/kv.js`.
    pub name: &'static str,
    class: &'static str,
    unique_key: &'static str,
    /// The binding under which the service finds its objects.
    objects: &'static str,
    /// The binding of the service to a folder of its own, for large values.
    folder: Option<&'static str>,
    /// Flags of the service's Worker.
    flags: &'static str,
    /// The gateway's binding, without its name. Empty: each queue has one of its own.
    pub binding: &'static str,
    pub bound_as: &'static str,
}

/// The oldest date with all that these services use.
const DATE: &str = "2026-01-01";

pub const BUNDLED: [Bundled; 3] = [KV, D1, QUEUES];

const KV: Bundled = Bundled {
    name: "kv",
    class: "KVNamespace",
    unique_key: "gsv-KVNamespace",
    objects: "SHARD",
    folder: Some("BLOBS"),
    flags: "",
    binding: r#"kvNamespace = (name = "kv", props = (json = "{\"namespace\":\"jobs-index\"}"))"#,
    bound_as: "JOBS_INDEX",
};
const D1: Bundled = Bundled {
    name: "d1",
    class: "D1Database",
    unique_key: "gsv-D1Database",
    objects: "DATABASE",
    folder: None,
    flags: "",
    binding: r#"wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "d1", props = (json = "{\"database\":\"gsv\"}")))])"#,
    bound_as: "DB",
};
/// The queues of domain events and of packs, and their dead letters. Which there are is in the manifest; the gateway is the consumer of all.
const QUEUES: Bundled = Bundled {
    name: "queues",
    class: "QueueShard",
    unique_key: "gsv-QueueShard",
    objects: "SHARD",
    folder: None,
    flags: r#""service_binding_extra_handlers""#,
    binding: "",
    bound_as: "",
};

/// The services in the list of the configuration. `folders`: where each service keeps its files, as workerd's configuration says it.
pub fn services(folders: &[(&str, String)]) -> String {
    let mut out = String::new();
    for Bundled { name, folder, .. } in &BUNDLED {
        let _ = write!(out, "\n    (name = \"{name}\", worker = .{name}),");
        let place = folders.iter().find(|(of, _)| of == name);
        if let (Some(_), Some((_, place))) = (folder, place) {
            let _ = write!(out, "\n    (name = \"{name}-disk\", {place}),");
        }
    }
    out
}

/// The bindings of the gateway.
pub fn bindings(queues: &[Queue]) -> String {
    let mut out = String::new();
    for Bundled { binding, bound_as, .. } in [&KV, &D1] {
        let _ = write!(out, ",\n    (name = \"{bound_as}\", {binding})");
    }
    for Queue { name, binding, .. } in queues {
        if let Some(binding) = binding {
            let _ = write!(
                out,
                r#",
    (name = "{}", queue = (name = "queues", props = (json = "{{\"queue\":\"{}\"}}")))"#,
                binding.as_str(),
                name.as_str(),
            );
        }
    }
    out
}

/// The gateway as the consumer of each queue. Names are plain, so that only the quotes of JSON have to be escaped.
fn consumers(queues: &[Queue]) -> String {
    let all: BTreeMap<&str, serde_json::Value> = queues
        .iter()
        .map(|queue| {
            let mut consumer = serde_json::json!({
                "consumer": "GSV",
                "maxBatchSize": queue.max_batch_size,
                "maxBatchTimeout": queue.max_batch_timeout,
                "maxRetries": queue.max_retries,
            });
            if let Some(dead) = &queue.dead_letters {
                consumer["deadLetterQueue"] = dead.as_str().into();
            }
            (queue.name.as_str(), consumer)
        })
        .collect();
    let json = serde_json::json!(all).to_string().replace('"', "\\\"");
    format!(r#", (name = "GSV", service = "gsv"), (name = "CONSUMERS", json = "{json}")"#)
}

/// The Workers of the services.
pub fn workers(queues: &[Queue]) -> String {
    let mut out = String::new();
    let consumers = consumers(queues);
    for bundled in &BUNDLED {
        let Bundled {
            name,
            class,
            unique_key,
            objects,
            flags,
            ..
        } = bundled;
        let folder = bundled
            .folder
            .map(|binding| format!(", (name = \"{binding}\", service = \"{name}-disk\")"))
            .unwrap_or_default();
        let more = if *name == QUEUES.name { consumers.as_str() } else { "" };
        let _ = write!(
            out,
            r#"
const {name} :Workerd.Worker = (
  modules = [ (name = "{name}.js", bundled = "/workerd/{name}.js") ],
  compatibilityDate = "{DATE}",
  compatibilityFlags = [{flags}],
  durableObjectNamespaces = [ (className = "{class}", uniqueKey = "{unique_key}", enableSql = true) ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [ (name = "{objects}", durableObjectNamespace = "{class}"){folder}{more} ]
);
"#
        );
    }
    out
}

/// Names of the services that keep files in a folder of their own.
pub fn with_folder() -> impl Iterator<Item = &'static str> {
    BUNDLED
        .iter()
        .filter(|bundled| bundled.folder.is_some())
        .map(|bundled| bundled.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::queue::core_queues;

    #[test]
    fn lm4_the_database_of_rows_is_a_service_of_workerd_with_data_where_it_always_was() {
        assert!(services(&[]).contains(r#"(name = "d1", worker = .d1),"#));
        assert!(bindings(&core_queues()).contains(
            r#"(name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "d1", props = (json = "{\"database\":\"gsv\"}")))]))"#
        ));
        let workers = workers(&core_queues());
        for part in [
            r#"bundled = "/workerd/d1.js""#,
            r#"(className = "D1Database", uniqueKey = "gsv-D1Database", enableSql = true)"#,
            r#"(name = "DATABASE", durableObjectNamespace = "D1Database") ]"#,
        ] {
            assert!(workers.contains(part), "{part} is not in\n{workers}");
        }
    }

    #[test]
    fn ev3_the_queue_of_events_is_a_service_of_workerd_and_the_gateway_is_its_consumer() {
        assert!(bindings(&core_queues()).contains(
            r#"(name = "EVENTS", queue = (name = "queues", props = (json = "{\"queue\":\"domain-events\"}")))"#
        ));
        let workers = workers(&core_queues());
        for part in [
            r#"bundled = "/workerd/queues.js""#,
            r#"(className = "QueueShard", uniqueKey = "gsv-QueueShard", enableSql = true)"#,
            r#"compatibilityFlags = ["service_binding_extra_handlers"]"#,
            r#"(name = "GSV", service = "gsv")"#,
        ] {
            assert!(workers.contains(part), "{part} is not in\n{workers}");
        }
        for part in [
            r#"\"domain-events\":{\"consumer\":\"GSV\",\"deadLetterQueue\":\"domain-events-dead-letter\","#,
            r#"\"domain-events-dead-letter\":{\"consumer\":\"GSV\",\"maxBatchSize\":10,\"maxBatchTimeout\":1,\"maxRetries\":100}"#,
        ] {
            assert!(workers.contains(part), "{part} is not in\n{workers}");
        }
    }

    #[test]
    fn pk4_a_queue_of_the_manifest_has_a_binding_and_a_consumer() {
        let mut queues = core_queues();
        let text = r#"{"name":"shop-actions","binding":"EVENTS_SHOP_ACTIONS","maxBatchSize":5,"maxBatchTimeout":1,"maxRetries":10,"deadLetterQueue":"shop-actions-dead-letter"}"#;
        queues.push(serde_json::from_str(text).unwrap());
        assert!(bindings(&queues).contains(
            r#"(name = "EVENTS_SHOP_ACTIONS", queue = (name = "queues", props = (json = "{\"queue\":\"shop-actions\"}")))"#
        ));
        let workers = workers(&queues);
        let consumer = r#"\"shop-actions\":{\"consumer\":\"GSV\",\"deadLetterQueue\":\"shop-actions-dead-letter\",\"maxBatchSize\":5,"#;
        assert!(workers.contains(consumer), "{workers}");
    }

    #[test]
    fn jb9_the_index_of_jobs_is_a_service_of_workerd_with_data_where_it_always_was() {
        let services = services(&[("kv", r#"disk = (path = "/h/kv", writable = true)"#.to_owned())]);
        assert!(services.contains(r#"(name = "kv-disk", disk = (path = "/h/kv", writable = true)),"#));
        assert!(bindings(&core_queues()).contains(
            r#"(name = "JOBS_INDEX", kvNamespace = (name = "kv", props = (json = "{\"namespace\":\"jobs-index\"}")))"#
        ));
        let workers = workers(&core_queues());
        for part in [
            r#"bundled = "/workerd/kv.js""#,
            r#"(className = "KVNamespace", uniqueKey = "gsv-KVNamespace", enableSql = true)"#,
            r#"(name = "BLOBS", service = "kv-disk")"#,
        ] {
            assert!(workers.contains(part), "{part} is not in\n{workers}");
        }
        assert_eq!(with_folder().collect::<Vec<_>>(), ["kv"]);
    }
}
