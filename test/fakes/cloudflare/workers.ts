/** Workers at the fake: their list, their settings, their assets and what is removed with them. */
import type { Account } from "./account.ts";
import { type Answer, jwt, missing, Refusal, type Row } from "./api.ts";
import { answerScript } from "./scripts.ts";

export function answerWorkers(
  account: Account,
  method: string,
  kind: string,
  name: string | undefined,
  rest: readonly string[],
  query: URLSearchParams,
  json: Row,
  form?: FormData,
): Answer {
  const [what] = rest;
  if (kind === "subdomain")
    return account.subdomain === undefined
      ? missing(10007, "workers.api.error.no_subdomain")
      : { result: { subdomain: account.subdomain } };
  if (kind === "account-settings") return { result: { default_usage_model: "standard" } };
  if (kind === "assets") {
    for (const hash of form?.keys() ?? []) account.assets.add(hash);
    return { result: { jwt: jwt() } };
  }
  if (kind === "tails") return { result: [] };
  if (kind === "durable_objects") return { result: [] };
  if (kind === "scripts" && name === undefined) return { result: [...account.scripts.keys()].map((script) => ({ id: script })) };
  if (name === undefined) return missing(7003);
  if (kind === "scripts" && what === undefined && method === "DELETE") {
    account.script(name);
    if (query.get("force") !== "true") throw new Refusal(400, 10064, "Worker has Durable Objects, which would be deleted.");
    account.scripts.delete(name);
    for (const { consumers } of account.queues) consumers.splice(0, consumers.length, ...consumers.filter(({ script }) => script !== name));
    return { result: null };
  }
  if (kind === "services") {
    account.script(name);
    if (what === "environments") return { result: rest.length > 2 ? [] : { script: { last_deployed_from: "wrangler" }, bindings: [] } };
    return { result: { id: name, default_environment: { environment: "production", script: { last_deployed_from: "wrangler" } } } };
  }
  if (kind === "workers") {
    const { subdomain } = account.script(name);
    return {
      result: {
        id: name,
        name,
        subdomain,
        tags: [],
        observability: { enabled: false },
        logpush: false,
        tail_consumers: [],
        references: {},
      },
    };
  }
  return kind === "scripts" ? answerScript(account, method, name, rest, json, form) : missing(7003);
}
