/** Namespaces of KV at the fake. */
import { randomUUID } from "node:crypto";
import type { Namespace } from "./account.ts";
import { type Answer, missing, Refusal, type Row } from "./api.ts";

export function answerKv(namespaces: Namespace[], method: string, id: string | undefined, json: Row): Answer {
  if (id === undefined && method === "POST") {
    const title = String(json["title"]);
    if (namespaces.some((namespace) => namespace.title === title))
      throw new Refusal(400, 10014, "a namespace with this account ID and title already exists");
    namespaces.push({ id: randomUUID().replaceAll("-", ""), title });
    return { result: namespaces.at(-1) };
  }
  if (id === undefined)
    return {
      result: namespaces,
      info: { page: 1, per_page: 100, count: namespaces.length, total_count: namespaces.length },
    };
  const at = namespaces.findIndex((namespace) => namespace.id === id);
  if (at < 0) return missing(10013, "namespace not found");
  const namespace = namespaces[at];
  if (method === "DELETE") namespaces.splice(at, 1);
  return { result: namespace };
}
