/** Queues and their consumers at the fake. */
import { randomUUID } from "node:crypto";
import type { Queue } from "./account.ts";
import { type Answer, missing, Refusal, type Row } from "./api.ts";

export function answerQueues(
  queues: Queue[],
  method: string,
  [id, part, consumer]: readonly (string | undefined)[],
  query: URLSearchParams,
  json: Row,
): Answer {
  if (id === undefined && method === "POST") {
    const name = String(json["queue_name"]);
    if (queues.some(({ queue_name: known }) => known === name)) throw new Refusal(409, 11009, `Queue name '${name}' is already taken.`);
    queues.push({ queue_id: randomUUID().replaceAll("-", ""), queue_name: name, consumers: [] });
    return { result: shownQueue(queues.at(-1)) };
  }
  if (id === undefined) {
    const names = query.getAll("name");
    const found = queues.filter(({ queue_name: name }) => names.length === 0 || names.includes(name));
    return { result: found.map(shownQueue), info: { page: 1, total_pages: 1, count: found.length } };
  }
  const queue = queues.find(({ queue_id: known }) => known === id) ?? missing(11000, "Queue not found");
  if (part === "consumers") {
    if (method === "GET") return { result: queue.consumers };
    if (method === "DELETE") {
      queue.consumers.splice(0, queue.consumers.length, ...queue.consumers.filter(({ consumer_id: known }) => known !== consumer));
      return { result: null };
    }
    const settings = {
      script: String(json["script_name"]),
      type: "worker",
      settings: json["settings"],
      dead_letter_queue: json["dead_letter_queue"],
    };
    const at = queue.consumers.findIndex(({ consumer_id: known, script }) => known === consumer || script === settings.script);
    if (method === "POST" && at >= 0) throw new Refusal(409, 11004, "Queue already has a consumer.");
    const row = { ...settings, consumer_id: queue.consumers[at]?.consumer_id ?? randomUUID().replaceAll("-", "") };
    queue.consumers.splice(at < 0 ? queue.consumers.length : at, 1, row);
    return { result: row };
  }
  if (method === "DELETE") queues.splice(queues.indexOf(queue), 1);
  return { result: shownQueue(queue) };
}

const shownQueue = (queue?: Queue): unknown => ({
  ...queue,
  producers: [],
  producers_total_count: 0,
  consumers_total_count: queue?.consumers.length ?? 0,
});
