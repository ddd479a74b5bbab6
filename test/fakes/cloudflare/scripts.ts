/** One Worker at the fake: its upload, its versions, its deployments and its secrets. */
import { randomUUID } from "node:crypto";
import type { Account, Binding, Script, Version } from "./account.ts";
import { type Answer, jwt, missing, Refusal, type Row } from "./api.ts";

export function answerScript(
  account: Account,
  method: string,
  name: string,
  [what, id]: readonly string[],
  json: Row,
  form?: FormData,
): Answer {
  if (what === undefined && method === "PUT") return { result: upload(account, name, json, form) };
  if (what === "assets-upload-session") {
    const hashes = Object.values((json["manifest"] ?? {}) as Readonly<Record<string, { hash: string }>>).map(({ hash }) => hash);
    const wanted = hashes.filter((hash) => !account.assets.has(hash));
    return { result: { jwt: jwt(), buckets: wanted.length === 0 ? [] : [wanted] } };
  }
  const script = account.script(name);
  if (what === "subdomain") {
    if (method === "POST") Object.assign(script.subdomain, json);
    return { result: script.subdomain };
  }
  if (what === "secrets") return { result: [...script.secrets.keys()].map((secret) => ({ name: secret, type: "secret_text" })) };
  if (what === "settings" || what === "script-settings")
    return { result: { bindings: account.active(name)?.bindings ?? [], tags: [], logpush: false, observability: null } };
  if (what === "schedules") return { result: { schedules: [] } };
  if (what === "versions") return versions(script, id);
  if (what === "deployments") return deployments(method, script, json);
  if (what === "tails" && method === "POST")
    return {
      result: {
        id: randomUUID().replaceAll("-", ""),
        url: `ws://127.0.0.1:${account.port}/tail/${name}`,
        expires_at: "2099-01-01T00:00:00Z",
      },
    };
  if (what === "tails") return { result: null };
  return missing(7003);
}

function versions(script: Script, id: string | undefined): Answer {
  const shown = ({ id: version, number, message, bindings }: Version): Row => ({
    id: version,
    number,
    metadata: {
      created_on: new Date(1_790_000_000_000 + number * 60_000).toISOString(),
      author_email: "ada@example.org",
      source: "wrangler",
    },
    annotations: { "workers/message": message, "workers/triggered_by": "upload" },
    resources: { bindings, script: { etag: version, handlers: ["fetch"] }, script_runtime: { compatibility_date: "2026-11-01" } },
  });
  if (id !== undefined)
    return { result: shown(script.versions.find((version) => version.id === id) ?? missing(10073, "version not found")) };
  return { result: { items: [...script.versions].reverse().slice(0, 10).map(shown) } };
}

function deployments(method: string, script: Script, json: Row): Answer {
  if (method === "POST") {
    const [{ version_id: version } = { version_id: "" }] = json["versions"] as readonly { version_id: string }[];
    if (!script.versions.some((known) => known.id === version)) throw new Refusal(400, 10073, "version not found");
    const message = ((json["annotations"] ?? {}) as Readonly<Record<string, string>>)["workers/message"] ?? "";
    script.deployments.push({ version, message });
    return { result: { id: randomUUID() } };
  }
  return {
    result: {
      deployments: [...script.deployments]
        .reverse()
        .slice(0, 10)
        .map(({ version, message }, index) => ({
          id: randomUUID(),
          source: "wrangler",
          strategy: "percentage",
          author_email: "ada@example.org",
          created_on: new Date(1_790_000_000_000 + (script.deployments.length - index) * 60_000).toISOString(),
          annotations: { "workers/message": message },
          versions: [{ version_id: version, percentage: 100 }],
        })),
    },
  };
}

function upload(account: Account, name: string, metadata: Row, form?: FormData): Row {
  const bindings = (metadata["bindings"] ?? []) as readonly Binding[];
  const entrypoints = bindings.filter(({ type }) => type === "service");
  for (const { service } of entrypoints)
    if (!account.scripts.has(String(service)))
      throw new Refusal(400, 10143, `Service binding refers to service '${String(service)}' which was not found.`);
  for (const { type, ...binding } of bindings) {
    const known =
      (type !== "kv_namespace" || account.namespaces.some(({ id }) => id === binding["namespace_id"])) &&
      (type !== "d1" || account.databases.some(({ uuid }) => uuid === (binding["database_id"] ?? binding["id"]))) &&
      (type !== "r2_bucket" || account.buckets.has(String(binding["bucket_name"]))) &&
      (type !== "queue" || account.queues.some(({ queue_name: queue }) => queue === binding["queue_name"])) &&
      (type !== "vectorize" || account.indexes.some((index) => index.name === binding["index_name"]));
    if (!known) throw new Refusal(400, 10021, `Binding ${binding.name} refers to something that does not exist.`);
  }
  const before = account.active(name)?.bindings ?? [];
  const script = account.scripts.get(name) ?? {
    versions: [],
    deployments: [],
    secrets: new Map<string, string>(),
    subdomain: { enabled: false, previews_enabled: false },
    namespaces: new Set<string>(),
  };
  const kept = (metadata["keep_bindings"] ?? []) as readonly string[];
  if (!kept.includes("secret_text")) script.secrets.clear();
  for (const { type, name: secret, text } of bindings) if (type === "secret_text") script.secrets.set(secret, String(text));
  const classes = Object.keys((metadata["exports"] ?? {}) as object);
  for (const known of script.namespaces)
    if (!classes.includes(known)) throw new Refusal(400, 10064, `The class ${known} has data and is not among the exports.`);
  for (const known of classes) script.namespaces.add(known);
  const id = randomUUID();
  const annotations = (metadata["annotations"] ?? {}) as Readonly<Record<string, string>>;
  script.versions.push({
    id,
    number: script.versions.length + 1,
    message: annotations["workers/message"] ?? "",
    bindings: bindings
      .filter(({ type }) => type !== "secret_text")
      .map((binding) => (binding.type === "inherit" ? (before.find((known) => known.name === binding.name) ?? binding) : binding)),
    exports: classes,
    modules: [...(form?.keys() ?? [])].filter((part) => part !== "metadata"),
    source: String(metadata["source"]),
  });
  script.deployments.push({ version: id, message: annotations["workers/message"] ?? "" });
  account.scripts.set(name, script);
  return {
    id: name,
    tag: "t",
    etag: "e",
    deployment_id: id.replaceAll("-", ""),
    startup_time_ms: 7,
    available_on_subdomain: true,
    entry_point: String(metadata["main_module"]),
    has_modules: true,
  };
}
