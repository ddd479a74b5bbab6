/** The agent platform: recalls among many texts, tasks over HTTP, and events. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seeded } from "../seeded.ts";
import { FirstMessages } from "./measure.ts";
import type { BenchModel } from "./model.ts";
import { median, quantile } from "./process.ts";
import type { Gsv } from "./system.ts";

const PATIENCE_MS = 120_000;
const LOOK_MS = 4;
const LINES_PER_FILE = 500;
/** Texts that one search embeds at most. */
const EMBEDDED_AT_ONCE = 10_000;
/** Tasks, and recalls, until the runtime has compiled what they run. */
const UNMEASURED = 10;
const UNMEASURED_RECALLS = 100;

const WHO = ["Anna", "Tomas", "Mira", "my neighbour", "the plumber", "our teacher", "the landlord", "Jonas"];
const DID = ["bought", "repaired", "forgot", "painted", "ordered", "returned", "measured", "promised", "cleaned", "sold"];
const WHAT = "car bicycle kitchen towel boiler invoice garden window ticket lamp violin tent recipe passport table camera roof piano".split(
  " ",
);
const WHERE = [
  "in the cellar",
  "near the station",
  "at the workshop",
  "before the holiday",
  "for the party",
  "in the attic",
  "after the storm",
];

/** A line as a person would write it. Numbers make each one different. */
function lineOf(random: () => number, index: number): string {
  const pick = (words: readonly string[]): string => words[Math.floor(random() * words.length)] ?? "";
  return `- ${pick(WHO)} ${pick(DID)} the ${pick(WHAT)} ${pick(WHERE)}, and the ${pick(WHAT)} number ${index} as well.`;
}
export interface RecallCost {
  readonly p50Ms: number;
  readonly p95Ms: number;
}
/** Daily files with texts from number `from` on: the index reads them as it reads what an agent has written. */
export function writeMemories(system: Gsv, from: number, to: number): void {
  const folder = join(system.env["GSV_HOME"] ?? "", "workspace/agents/main/memory");
  mkdirSync(folder, { recursive: true });
  const random = seeded(from + 1);
  for (let first = from; first < to; first += LINES_PER_FILE) {
    const day = new Date(Date.UTC(2020, 0, 1 + first / LINES_PER_FILE)).toISOString().slice(0, 10);
    const lines = Array.from({ length: Math.min(LINES_PER_FILE, to - first) }, (_, index) => lineOf(random, first + index));
    writeFileSync(join(folder, `${day}.md`), `${lines.join("\n")}\n`);
  }
}
/** `recall_memory` among `texts` texts, when the index has them. */
export async function recallCost(system: Gsv, texts: number, samples: number): Promise<RecallCost> {
  const client = await system.open(`bench-recall-${texts}`);
  const random = seeded(7);
  const pick = (words: readonly string[]): string => words[Math.floor(random() * words.length)] ?? "";
  const recall = async (query: string): Promise<{ memories: unknown[]; notes?: string[] }> => {
    const { payload } = await client.call("tool.invoke", { tool: "recall_memory", args: { query }, timeoutMs: PATIENCE_MS });
    return payload?.["result"] as { memories: unknown[]; notes?: string[] };
  };
  const question = (): string => `What did ${pick(WHO)} do with the ${pick(WHAT)} ${pick(WHERE)}?`;
  const begun = performance.now();
  // A search lists the files each time; recalls that follow each other list them once.
  const search = async (): Promise<unknown[]> =>
    ((await client.call("search.query", { query: "number", limit: 1 })).payload?.["notes"] ?? []) as unknown[];
  while ((await search()).length > 0) if (performance.now() - begun > PATIENCE_MS) throw new Error("the memories are not indexed");
  for (let done = 0; done < texts; done += EMBEDDED_AT_ONCE) await recall(question());
  const times: number[] = [];
  for (let index = -UNMEASURED_RECALLS; index < samples; index++) {
    const asked = performance.now();
    const { memories } = await recall(question());
    if (index >= 0) times.push(performance.now() - asked);
    if (memories.length === 0) throw new Error("nothing was recalled");
  }
  client.close();
  return { p50Ms: median(times), p95Ms: quantile(times, 0.95) };
}

/** Medians of the same turns, without the model's time. */
export interface TaskOverhead {
  /** `POST /run` with one turn of the model. */
  readonly taskMs: number;
  /** The first message of a conversation. */
  readonly messageMs: number;
}
/** The two in turn: how fast a machine is may change from one minute to the next. */
export async function taskOverhead(system: Gsv, model: BenchModel, count: number): Promise<TaskOverhead> {
  const firsts = new FirstMessages(system, model);
  const [tasks, messages]: [number[], number[]] = [[], []];
  for (let index = -UNMEASURED; index < count; index++) {
    const message = await firsts.next();
    const task = await taskMs(system, model);
    if (index < 0) continue;
    messages.push(message);
    tasks.push(task);
  }
  firsts.close();
  return { taskMs: median(tasks), messageMs: median(messages) };
}
async function taskMs(system: Gsv, model: BenchModel): Promise<number> {
  const mark = model.next();
  const from = performance.now();
  const response = await fetch(`${system.url}/run`, {
    method: "POST",
    headers: { Authorization: `Bearer ${system.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ agent_name: "main", instructions: "[text 4] hello there, how are you today?" }),
  });
  const report = (await response.json()) as { status?: string };
  const took = performance.now() - from;
  if (report.status !== "completed") throw new Error(`POST /run: ${response.status} ${JSON.stringify(report)}`);
  const { requestAt, endAt } = await mark;
  return took - (endAt - requestAt);
}

/** From the moment at which an agent's tool emits an event to the moment at which its handler has had it. */
export async function eventDelay(system: Gsv, count: number): Promise<number> {
  const owner = await system.open("bench-events");
  await owner.call("agents.define", {
    text: "metadata: { id: emitter, name: emitter }\ncore_context: { system_prompt: You emit. }\nevents: { emit: [human_review] }\n",
  });
  const times: number[] = [];
  let known = "";
  for (let index = 0; index < count; index++) {
    // Requests of one connection are limited.
    const client = await system.open(`bench-events-${index}`);
    const args = JSON.stringify({ topic: "human_review", payload: { question: `Shall I do number ${index}?` } });
    const task = fetch(`${system.url}/run`, {
      method: "POST",
      headers: { Authorization: `Bearer ${system.token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ agent_name: "emitter", instructions: `[tool emit_event ${args}]` }),
    });
    for (const begun = performance.now(); ; ) {
      const { payload } = await client.call("events.list", { limit: 1, status: "waiting_approval" });
      const [last] = (payload?.["events"] ?? []) as { id: string; emittedAt: number }[];
      if (last !== undefined && last.id !== known) {
        times.push(Date.now() - last.emittedAt);
        known = last.id;
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      if (performance.now() - begun > PATIENCE_MS) throw new Error("no handler had the event");
    }
    await (await task).text();
    client.close();
  }
  owner.close();
  return median(times);
}
