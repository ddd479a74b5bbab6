//! Services built into workerd: the gateway's binding, the Worker behind it, and the folder of its data. Pure.
//! `unique_key` and the folder say where the data lies, so they never change.

use std::fmt::Write;

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
    /// Further bindings of the service, and flags of its Worker.
    more: &'static str,
    flags: &'static str,
    /// The gateway's binding, without its name.
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
    more: "",
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
    more: "",
    flags: "",
    binding: r#"wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "d1", props = (json = "{\"database\":\"gsv\"}")))])"#,
    bound_as: "DB",
};
/// The queue of domain events and its dead letters, as in `gateway/wrangler.jsonc`. The gateway is the consumer of both.
const QUEUES: Bundled = Bundled {
    name: "queues",
    class: "QueueShard",
    unique_key: "gsv-QueueShard",
    objects: "SHARD",
    folder: None,
    more: r#", (name = "GSV", service = "gsv"), (name = "CONSUMERS", json = "{\"domain-events\":{\"consumer\":\"GSV\",\"maxBatchSize\":10,\"maxBatchTimeout\":1,\"maxRetries\":10,\"deadLetterQueue\":\"domain-events-dead-letter\"},\"domain-events-dead-letter\":{\"consumer\":\"GSV\",\"maxBatchSize\":10,\"maxBatchTimeout\":1,\"maxRetries\":100}}")"#,
    flags: r#""service_binding_extra_handlers""#,
    binding: r#"queue = (name = "queues", props = (json = "{\"queue\":\"domain-events\"}"))"#,
    bound_as: "EVENTS",
};

/// The services in the list of the configuration. `folders`: the text literal of each service's folder.
pub fn services(folders: &[(&str, String)]) -> String {
    let mut out = String::new();
    for Bundled { name, folder, .. } in &BUNDLED {
        let _ = write!(out, "\n    (name = \"{name}\", worker = .{name}),");
        let path = folders.iter().find(|(of, _)| of == name);
        if let (Some(_), Some((_, path))) = (folder, path) {
            let _ = write!(
                out,
                "\n    (name = \"{name}-disk\", disk = (path = {path}, writable = true)),"
            );
        }
    }
    out
}

/// The bindings of the gateway.
pub fn bindings() -> String {
    let mut out = String::new();
    for Bundled { binding, bound_as, .. } in &BUNDLED {
        let _ = write!(out, ",\n    (name = \"{bound_as}\", {binding})");
    }
    out
}

/// The Workers of the services.
pub fn workers() -> String {
    let mut out = String::new();
    for bundled in &BUNDLED {
        let Bundled {
            name,
            class,
            unique_key,
            objects,
            more,
            flags,
            ..
        } = bundled;
        let folder = bundled
            .folder
            .map(|binding| format!(", (name = \"{binding}\", service = \"{name}-disk\")"))
            .unwrap_or_default();
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

    #[test]
    fn lm4_the_database_of_rows_is_a_service_of_workerd_with_data_where_it_always_was() {
        assert!(services(&[]).contains(r#"(name = "d1", worker = .d1),"#));
        assert!(bindings().contains(
            r#"(name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = (name = "d1", props = (json = "{\"database\":\"gsv\"}")))]))"#
        ));
        let workers = workers();
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
        assert!(bindings().contains(
            r#"(name = "EVENTS", queue = (name = "queues", props = (json = "{\"queue\":\"domain-events\"}")))"#
        ));
        let workers = workers();
        for part in [
            r#"bundled = "/workerd/queues.js""#,
            r#"(className = "QueueShard", uniqueKey = "gsv-QueueShard", enableSql = true)"#,
            r#"compatibilityFlags = ["service_binding_extra_handlers"]"#,
            r#"(name = "GSV", service = "gsv")"#,
        ] {
            assert!(workers.contains(part), "{part} is not in\n{workers}");
        }
        // One setting for both runtimes.
        let deployed = include_str!("../../../gateway/wrangler.jsonc");
        for name in ["domain-events", "domain-events-dead-letter"] {
            assert!(workers.contains(&format!(r#"\"{name}\":{{"#)), "{name}");
            assert!(deployed.contains(&format!(r#""queue": "{name}""#)), "{name}");
        }
    }

    #[test]
    fn jb9_the_index_of_jobs_is_a_service_of_workerd_with_data_where_it_always_was() {
        let services = services(&[("kv", "\"/h/kv\"".to_owned())]);
        assert!(services.contains(r#"(name = "kv-disk", disk = (path = "/h/kv", writable = true)),"#));
        assert!(bindings().contains(
            r#"(name = "JOBS_INDEX", kvNamespace = (name = "kv", props = (json = "{\"namespace\":\"jobs-index\"}")))"#
        ));
        let workers = workers();
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
