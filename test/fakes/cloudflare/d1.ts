/** Databases of D1 at the fake. */
import { randomUUID } from "node:crypto";
import type { Database } from "./account.ts";
import { type Answer, missing, Refusal, type Row } from "./api.ts";

export function answerD1(databases: Database[], method: string, id: string | undefined, query: URLSearchParams, json: Row): Answer {
  if (id === undefined && method === "POST") {
    const database = { uuid: randomUUID(), name: String(json["name"]) };
    if (databases.some(({ name }) => name === database.name)) throw new Refusal(400, 7502, "A database with that name already exists");
    databases.push(database);
    return { result: { ...database, version: "production", created_at: "2026-11-01T00:00:00Z" } };
  }
  if (id === undefined) {
    const name = query.get("name");
    const found = databases.filter((database) => name === null || database.name === name);
    return { result: found, info: { page: 1, per_page: 100, count: found.length, total_count: found.length } };
  }
  const at = databases.findIndex(({ uuid, name }) => uuid === id || name === id);
  if (at < 0) return missing(7404, "The database was not found");
  if (method === "DELETE") databases.splice(at, 1);
  return { result: databases[at] ?? null };
}
