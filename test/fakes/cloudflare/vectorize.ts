/** Indexes of Vectorize at the fake. */
import { randomUUID } from "node:crypto";
import type { Index } from "./account.ts";
import { type Answer, missing, Refusal, type Row } from "./api.ts";

export function answerVectorize(indexes: Index[], method: string, [name, part, act]: readonly string[], json: Row): Answer {
  if (name === undefined && method === "POST") {
    const index = String(json["name"]);
    if (indexes.some((known) => known.name === index)) throw new Refusal(409, 3002, "An index with this name already exists");
    indexes.push({ name: index, config: (json["config"] ?? {}) as Row, metadata: [] });
    return { result: indexes.at(-1) };
  }
  if (name === undefined) return { result: indexes };
  const at = indexes.findIndex((index) => index.name === name);
  const index = indexes[at] ?? missing(3000, "vectorize.index.not_found");
  if (part === "metadata_index") {
    if (act === "create") index.metadata.push(String(json["propertyName"]));
    return {
      result:
        act === "list"
          ? { metadataIndexes: index.metadata.map((propertyName) => ({ propertyName, indexType: "String" })) }
          : { mutationId: randomUUID() },
    };
  }
  if (method === "DELETE") indexes.splice(at, 1);
  return { result: index };
}
