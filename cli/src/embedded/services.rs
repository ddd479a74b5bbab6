//! The services that the gateway's bindings lead to: the agent's files (`r2.js`, which is GSV's own), and the key-value store, the
//! database and the queues that are built into workerd. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::literals::text;
use super::queue::Queue;

/// The service's name in the configuration.
const NAME: &str = "services";
const SCRIPT: &str = include_str!("services.js");
/// The folder of large values of the key-value store.
pub const KV_FOLDER: &str = "kv";

/// The services in the list of the configuration. `kv_folder`: where large values are, as workerd's configuration says it.
pub fn listed(kv_folder: &str) -> String {
    format!(
        r#"
    (name = "{NAME}", worker = .services),
    (name = "kv-disk", {kv_folder}),"#
    )
}

/// The bindings of the gateway.
pub fn bindings(queues: &[Queue]) -> String {
    let mut out = format!(
        r#",
    (name = "STORAGE", r2Bucket = (name = "{NAME}", entrypoint = "Bucket")),
    (name = "JOBS_INDEX", kvNamespace = (name = "{NAME}", entrypoint = "KV", props = (json = "{{\"namespace\":\"jobs-index\"}}"))),
    (name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "{NAME}", entrypoint = "D1", props = (json = "{{\"database\":\"gsv\"}}")))]))"#
    );
    for Queue { name, binding, .. } in queues {
        if let Some(binding) = binding {
            let _ = write!(
                out,
                r#",
    (name = "{}", queue = (name = "{NAME}", entrypoint = "Queues", props = (json = "{{\"queue\":\"{}\"}}")))"#,
                binding.as_str(),
                name.as_str(),
            );
        }
    }
    out
}

/// The gateway as the consumer of each queue, as JSON.
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
    serde_json::json!(all).to_string()
}

/// The Worker of the services. `is_shared`: the files are in the bucket of a cluster. The unique keys and the folder `do-disk` say where
/// the data lies, so they never change.
pub fn worker(compatibility_date: &str, queues: &[Queue], is_shared: bool) -> String {
    format!(
        r#"
const services :Workerd.Worker = (
  modules = [
    (name = "services.js", esModule = {script}),
    (name = "r2.js", esModule = embed "r2.js"),
    (name = "kv.js", bundled = "/workerd/kv.js"),
    (name = "d1.js", bundled = "/workerd/d1.js"),
    (name = "queues.js", bundled = "/workerd/queues.js")
  ],
  compatibilityDate = {compatibility_date},
  # The queues call the gateway's handler for them.
  compatibilityFlags = ["service_binding_extra_handlers"],
  durableObjectNamespaces = [
    (className = "R2", uniqueKey = "R2", enableSql = true),
    (className = "KVNamespace", uniqueKey = "gsv-KVNamespace", enableSql = true),
    (className = "D1Database", uniqueKey = "gsv-D1Database", enableSql = true),
    (className = "QueueShard", uniqueKey = "gsv-QueueShard", enableSql = true)
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
    (name = "NS", durableObjectNamespace = "R2"),
    (name = "FS", service = "files"),
    (name = "KV_SHARD", durableObjectNamespace = "KVNamespace"),
    (name = "BLOBS", service = "kv-disk"),
    (name = "DATABASE", durableObjectNamespace = "D1Database"),
    (name = "SHARD", durableObjectNamespace = "QueueShard"),
    (name = "GSV", service = "gsv"),
    (name = "CONSUMERS", json = {consumers}){shared}
  ]
);
"#,
        script = text(SCRIPT),
        consumers = text(&consumers(queues)),
        shared = if is_shared {
            ",\n    (name = \"SHARED\", text = \"1\")"
        } else {
            ""
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::queue::core_queues;

    fn alone(queues: &[Queue]) -> String {
        worker("\"2026-11-01\"", queues, false)
    }

    fn contains(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn lm4_the_database_of_rows_is_a_service_of_workerd_with_data_where_it_always_was() {
        contains(
            &bindings(&core_queues()),
            &[
                r#"(name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "services", entrypoint = "D1", props = (json = "{\"database\":\"gsv\"}")))]))"#,
            ],
        );
        contains(
            &alone(&core_queues()),
            &[
                r#"(name = "d1.js", bundled = "/workerd/d1.js")"#,
                r#"(className = "D1Database", uniqueKey = "gsv-D1Database", enableSql = true)"#,
                r#"(name = "DATABASE", durableObjectNamespace = "D1Database")"#,
            ],
        );
    }

    #[test]
    fn ev3_the_queue_of_events_is_a_service_of_workerd_and_the_gateway_is_its_consumer() {
        contains(
            &bindings(&core_queues()),
            &[
                r#"(name = "EVENTS", queue = (name = "services", entrypoint = "Queues", props = (json = "{\"queue\":\"domain-events\"}")))"#,
            ],
        );
        contains(
            &alone(&core_queues()),
            &[
                r#"(name = "queues.js", bundled = "/workerd/queues.js")"#,
                r#"(className = "QueueShard", uniqueKey = "gsv-QueueShard", enableSql = true)"#,
                r#"compatibilityFlags = ["service_binding_extra_handlers"]"#,
                r#"(name = "GSV", service = "gsv")"#,
                r#"\"domain-events\":{\"consumer\":\"GSV\",\"deadLetterQueue\":\"domain-events-dead-letter\","#,
                r#"\"domain-events-dead-letter\":{\"consumer\":\"GSV\",\"maxBatchSize\":10,\"maxBatchTimeout\":1,\"maxRetries\":100}"#,
            ],
        );
    }

    #[test]
    fn pk4_a_queue_of_the_manifest_has_a_binding_and_a_consumer() {
        let mut queues = core_queues();
        let text = r#"{"name":"shop-actions","binding":"EVENTS_SHOP_ACTIONS","maxBatchSize":5,"maxBatchTimeout":1,"maxRetries":10,"deadLetterQueue":"shop-actions-dead-letter"}"#;
        queues.push(serde_json::from_str(text).unwrap());
        contains(
            &bindings(&queues),
            &[
                r#"(name = "EVENTS_SHOP_ACTIONS", queue = (name = "services", entrypoint = "Queues", props = (json = "{\"queue\":\"shop-actions\"}")))"#,
            ],
        );
        let consumer = r#"\"shop-actions\":{\"consumer\":\"GSV\",\"deadLetterQueue\":\"shop-actions-dead-letter\",\"maxBatchSize\":5,"#;
        contains(&alone(&queues), &[consumer]);
    }

    #[test]
    fn jb9_the_index_of_jobs_is_a_service_of_workerd_with_data_where_it_always_was() {
        contains(
            &listed(r#"disk = (path = "/h/kv", writable = true)"#),
            &[r#"(name = "kv-disk", disk = (path = "/h/kv", writable = true)),"#],
        );
        contains(
            &bindings(&core_queues()),
            &[
                r#"(name = "JOBS_INDEX", kvNamespace = (name = "services", entrypoint = "KV", props = (json = "{\"namespace\":\"jobs-index\"}")))"#,
            ],
        );
        contains(
            &alone(&core_queues()),
            &[
                r#"(name = "kv.js", bundled = "/workerd/kv.js")"#,
                r#"(className = "KVNamespace", uniqueKey = "gsv-KVNamespace", enableSql = true)"#,
                r#"(name = "BLOBS", service = "kv-disk")"#,
            ],
        );
    }

    #[test]
    fn f64_the_bucket_and_the_services_of_workerd_are_one_worker() {
        let worker = alone(&core_queues());
        assert_eq!(worker.matches(":Workerd.Worker").count(), 1);
        contains(
            &worker,
            &[
                r#"(name = "r2.js", esModule = embed "r2.js")"#,
                r#"(className = "R2", uniqueKey = "R2", enableSql = true)"#,
                r#"(name = "FS", service = "files")"#,
            ],
        );
        contains(
            &bindings(&core_queues()),
            &[r#"(name = "STORAGE", r2Bucket = (name = "services", entrypoint = "Bucket"))"#],
        );
    }
}
