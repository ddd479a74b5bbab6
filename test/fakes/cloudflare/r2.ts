/** Buckets of R2 at the fake. */
import { type Answer, missing, Refusal, type Row } from "./api.ts";

export function answerR2(
  buckets: Map<string, Set<string>>,
  method: string,
  name: string | undefined,
  rest: readonly string[],
  json: Row,
): Answer {
  if (name === undefined && method === "POST") {
    const bucket = String(json["name"]);
    if (buckets.has(bucket)) throw new Refusal(409, 10004, "The bucket you tried to create already exists, and you own it.");
    buckets.set(bucket, new Set());
    return { result: { name: bucket, creation_date: "2026-11-01T00:00:00Z", location: "WEUR", storage_class: "Standard" } };
  }
  if (name === undefined)
    return { result: { buckets: [...buckets.keys()].map((bucket) => ({ name: bucket, creation_date: "2026-11-01T00:00:00Z" })) } };
  const objects = buckets.get(name) ?? missing(10006, "The specified bucket does not exist.");
  if (rest[0] === "objects" && method === "DELETE") {
    objects.delete(rest.slice(1).join("/"));
    return { result: null };
  }
  if (rest[0] === "objects" && method === "PUT") {
    objects.add(rest.slice(1).join("/"));
    return { result: { key: rest.slice(1).join("/") } };
  }
  if (rest[0] === "objects") {
    const page = [...objects].sort().slice(0, 2);
    return {
      result: page.map((key) => ({ key })),
      info: { is_truncated: objects.size > page.length, cursor: objects.size > page.length ? "more" : "" },
    };
  }
  if (method === "DELETE") {
    if (objects.size > 0) throw new Refusal(409, 10008, "The bucket you tried to delete is not empty.");
    buckets.delete(name);
    return { result: {} };
  }
  return { result: { name, creation_date: "2026-11-01T00:00:00Z" } };
}
