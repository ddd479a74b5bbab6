/** The measurements. Each takes a running system and gives numbers; main.ts turns them into rows. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { BenchClient, Frame } from "./client.ts";
import type { BenchModel } from "./model.ts";
import { median, quantile, usageOf } from "./process.ts";
import type { Gsv, System } from "./system.ts";

const WAIT_MS = 60_000;

function within<T>(promise: Promise<T>, what: string, waitMs = WAIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${waitMs} ms`)), waitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
export function ended(client: BenchClient, session: string, waitMs = WAIT_MS): Promise<{ at: number; frame: Frame }> {
  return within(
    new Promise((resolve, reject) => {
      const off = client.on((frame) => {
        const payload = frame.payload;
        if (frame.event !== "chat" || payload?.sessionKey !== session) return;
        if (payload.state === "final") {
          off();
          resolve({ at: performance.now(), frame });
        } else if (payload.state === "error" || payload.state === "aborted") {
          off();
          reject(new Error(`run ended: ${JSON.stringify(payload)}`));
        }
      });
    }),
    `an answer in ${session}`,
    waitMs,
  );
}
function firstDelta(client: BenchClient, session: string): Promise<number> {
  return new Promise((resolve) => {
    const off = client.on((frame) => {
      if (frame.event === "chat" && frame.payload?.sessionKey === session && frame.payload.state === "delta") {
        off();
        resolve(performance.now());
      }
    });
  });
}

export interface MessageCost {
  overheadMs: number;
  overheadP99Ms: number;
  firstDeltaMs: number;
  cpuMs: number;
  writtenBytes: number;
}
/** One message after another in one session. Overhead = client send -> model request + model end -> client final. */
export async function messages(system: System, model: BenchModel, session: string, count: number): Promise<MessageCost> {
  const client = await system.open(`bench-${session}`);
  const one = async (): Promise<{ overhead: number; delta: number }> => {
    const mark = model.next();
    const final = ended(client, session);
    const delta = firstDelta(client, session);
    const sentAt = performance.now();
    await system.say(client, session, "[text 4] hello there, how are you today?");
    const [seen, end, deltaAt] = await Promise.all([mark, final, delta]);
    return { overhead: seen.requestAt - sentAt + (end.at - seen.endAt), delta: deltaAt - seen.firstByteAt };
  };
  for (let i = 0; i < Math.min(20, count); i++) await one();
  const before = usageOf(system.pid);
  const samples = [];
  for (let i = 0; i < count; i++) samples.push(await one());
  const after = usageOf(system.pid);
  client.close();
  return {
    overheadMs: median(samples.map((s) => s.overhead)),
    overheadP99Ms: quantile(
      samples.map((s) => s.overhead),
      0.99,
    ),
    firstDeltaMs: median(samples.map((s) => s.delta)),
    cpuMs: (after.cpuMs - before.cpuMs) / count,
    writtenBytes: (after.writtenBytes - before.writtenBytes) / count,
  };
}

const FOLLOWED = 16;

/** Sends the first message of one conversation after the other, each with the overhead of a turn whose conversation has to be made. */
export class FirstMessages {
  readonly #system: System;
  readonly #model: BenchModel;
  #client: Awaited<ReturnType<System["open"]>> | undefined;
  #sent = 0;

  constructor(system: System, model: BenchModel) {
    this.#system = system;
    this.#model = model;
  }
  async next(): Promise<number> {
    const index = this.#sent++;
    // A connection follows a limited number of conversations.
    if (index % FOLLOWED === 0) {
      this.close();
      this.#client = await this.#system.open(`bench-first-${index}`);
    }
    const client = this.#client;
    if (client === undefined) throw new Error("there is no connection");
    const session = `agent:main:cli:dm:first${index}`;
    const mark = this.#model.next();
    const final = ended(client, session);
    const sentAt = performance.now();
    await this.#system.say(client, session, "[text 4] hello there, how are you today?");
    const [seen, end] = await Promise.all([mark, final]);
    return seen.requestAt - sentAt + (end.at - seen.endAt);
  }
  close(): void {
    this.#client?.close();
  }
}
/** The median of `count` conversations. */
export async function firstMessages(system: System, model: BenchModel, count: number): Promise<number> {
  const firsts = new FirstMessages(system, model);
  const overheads: number[] = [];
  for (let i = 0; i < count; i++) overheads.push(await firsts.next());
  firsts.close();
  return median(overheads);
}

export interface Throughput {
  perSecond: number;
  cpuMs: number;
  strayFrames: number;
}
/** `sessions` conversations at once, each sending its next message when the last is answered. */
export async function concurrent(system: System, sessions: number, each: number): Promise<Throughput> {
  const clients = await Promise.all(
    Array.from({ length: sessions }, async (_, i) => ({ session: `agent:main:cli:dm:c${i}`, client: await system.open(`bench-c${i}`) })),
  );
  let stray = 0;
  for (const { client, session } of clients)
    client.on((frame) => void (frame.event === "chat" && frame.payload?.sessionKey !== session && stray++));
  const round = async (count: number): Promise<void> => {
    await Promise.all(
      clients.map(async ({ client, session }) => {
        for (let i = 0; i < count; i++) {
          const final = ended(client, session);
          await system.say(client, session, "[text 4] hello");
          await final;
        }
      }),
    );
  };
  await round(1);
  const before = usageOf(system.pid);
  const started = performance.now();
  await round(each);
  const seconds = (performance.now() - started) / 1000;
  const after = usageOf(system.pid);
  for (const { client } of clients) client.close();
  return { perSecond: (sessions * each) / seconds, cpuMs: (after.cpuMs - before.cpuMs) / (sessions * each), strayFrames: stray };
}

/** Bytes on the client's socket for a long answer that comes in pieces, over the bytes of its text. */
export async function streamBytes(system: System, model: BenchModel, session: string): Promise<number> {
  const client = await system.open("bench-stream");
  const chunks = 128;
  model.gapMs = 4;
  const final = ended(client, session);
  const before = client.bytesIn;
  await system.say(client, session, `[text ${chunks}] tell me a story`);
  await final;
  model.gapMs = 0;
  client.close();
  return (client.bytesIn - before) / (chunks * 32);
}

/** From the end of the model's answer with the call to the arrival of the next request with its result. */
export async function toolRoundTrip(system: System, model: BenchModel, session: string, call: string, count: number): Promise<number> {
  const client = await system.open("bench-tool");
  const samples: number[] = [];
  for (let i = 0; i < count + 5; i++) {
    const final = ended(client, session);
    // Both waits start before the message: a fast tool causes the second request early.
    const asked = model.next();
    const withResult = model.next();
    await system.say(client, session, `[tool ${call}] please`);
    const [first, second] = await within(Promise.all([asked, withResult]), "the requests before and after the tool call");
    await final;
    if (i >= 5) samples.push(second.requestAt - first.endAt);
  }
  client.close();
  return median(samples);
}

/**
 * Disk operations for one message, counted by strace: fsyncs and reads of workspace objects. Undefined where strace is missing or not
 * permitted.
 */
export async function diskCalls(
  system: System,
  model: BenchModel,
  session: string,
  count: number,
): Promise<{ readonly fsyncs: number; readonly objectReads: number } | undefined> {
  await messages(system, model, session, 5);
  const folder = mkdtempSync(join(tmpdir(), "gsv-strace-"));
  const file = join(folder, "calls");
  const tracer = spawn("strace", ["-f", "-o", file, "-e", "trace=fsync,fdatasync,openat,openat2", "-p", String(system.pid)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const attached = await new Promise<boolean>((resolve) => {
    tracer.once("error", () => resolve(false));
    tracer.once("exit", () => resolve(false));
    tracer.stderr.on("data", (text) => String(text).includes("attached") && resolve(true));
  });
  try {
    if (!attached) return undefined;
    const client = await system.open("bench-disk");
    for (let i = 0; i < count; i++) {
      const final = ended(client, session);
      await system.say(client, session, "[text 1] hello");
      await final;
    }
    client.close();
    const tracerEnded = new Promise((resolve) => tracer.once("exit", resolve));
    tracer.kill("SIGINT");
    await tracerEnded;
    const lines = readFileSync(file, "utf8").split("\n");
    return {
      fsyncs: lines.filter((line) => /\bf(?:data)?sync\(/.test(line)).length / count,
      objectReads: lines.filter((line) => /\bopenat2?\(.*"(?:agents|skills|media)[/"]/.test(line)).length / count,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fills a session with at least `count` messages, quickly. */
export async function fill(system: System, session: string, count: number): Promise<void> {
  // A connection may send only so many requests a minute (limits.clientFramesPerMinute).
  const perClient = 250;
  for (let done = 0; done < count / 2; done += perClient) {
    const client = await system.open(`bench-fill-${done}`);
    for (let i = done; i < Math.min(done + perClient, count / 2); i++) {
      const final = ended(client, session);
      await system.say(client, session, "[text 1] filling");
      await final;
    }
    client.close();
  }
}

/** Messages per second that a compaction removes from a conversation, without the time of the model's calls. */
export async function compaction(system: System, model: BenchModel, session: string): Promise<{ perSecond: number; messages: number }> {
  const client = await system.open("bench-compact");
  const marks = model.marks.length;
  const started = performance.now();
  const answer = await client.call("session.compact", { sessionKey: session });
  const took = performance.now() - started;
  client.close();
  const messages = Number(answer.payload?.["trimmedMessages"]);
  if (!(messages > 0)) throw new Error(`nothing was compacted: ${JSON.stringify(answer)}`);
  const inModel = model.marks.slice(marks).reduce((sum, mark) => sum + mark.endAt - mark.requestAt, 0);
  return { perSecond: messages / ((took - inModel) / 1000), messages };
}

export interface TextSearchCost {
  /** Of a search for a few messages, when the index is up to date. */
  readonly queryMs: number;
  readonly commonMs: number;
  readonly perSecond: number;
}
const WORDS =
  "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua".split(" ");
/** Puts `count` messages into transcripts of the agent, indexes them by a search, and then searches for single messages. */
export async function textSearch(system: Gsv, count: number): Promise<TextSearchCost> {
  const perTranscript = 500;
  const folder = join(system.env["GSV_HOME"] ?? "", "workspace/agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  for (let from = 0; from < count; from += perTranscript) {
    const lines = Array.from({ length: Math.min(perTranscript, count - from) }, (_, i) => {
      const words = Array.from({ length: 60 }, (_word, at) => WORDS[(from + i * 7 + at * at) % WORDS.length]).join(" ");
      return JSON.stringify({
        role: i % 2 === 0 ? "user" : "assistant",
        content: [{ type: "text", text: `every marker${from + i} ${words}` }],
        timestamp: i,
      });
    });
    writeFileSync(join(folder, `bench-${from}.jsonl.gz`), gzipSync(`${lines.join("\n")}\n`));
  }
  const client = await system.open("bench-text-search");
  const ask = async (query: string): Promise<{ hits: unknown[]; notes: string[] }> => {
    const { payload, error } = await client.call("search.query", { query });
    if (payload === undefined) throw new Error(`search.query: ${JSON.stringify(error)}`);
    return { hits: (payload["hits"] ?? []) as unknown[], notes: (payload["notes"] ?? []) as string[] };
  };
  const from = performance.now();
  while ((await ask("every")).notes.length > 0) if (performance.now() - from > WAIT_MS) throw new Error("the index is not done");
  const seconds = (performance.now() - from) / 1000;
  const times = async (queries: readonly string[]): Promise<number> => {
    const samples: number[] = [];
    for (const query of queries) {
      const asked = performance.now();
      const { hits } = await ask(query);
      samples.push(performance.now() - asked);
      if (hits.length === 0) throw new Error(`nothing was found for ${query}`);
    }
    return median(samples);
  };
  const some = Array.from({ length: 40 }, (_, i) => `marker${(i * 97) % count}`);
  const queryMs = await times(some);
  const commonMs = await times(some.map(() => "every"));
  client.close();
  return { queryMs, commonMs, perSecond: count / seconds };
}

async function until(holds: () => boolean, otherwise: string): Promise<void> {
  const from = performance.now();
  while (!holds()) {
    if (performance.now() - from > WAIT_MS) throw new Error(otherwise);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** kill -9 in the middle of a model call: the supervisor restarts workerd, and the run goes on by itself. Ms from one to the other. */
export async function killedRunGoesOn(system: Gsv, model: BenchModel, session: string): Promise<number> {
  const client = await system.open("bench-kill");
  model.gapMs = 500;
  const before = model.requests;
  await system.say(client, session, "[text 40] slow");
  await until(() => model.requests > before, "the model was not asked");
  const requestsBefore = model.requests;
  process.kill(system.pid, "SIGKILL");
  const killedAt = performance.now();
  await until(() => model.requests > requestsBefore, "the run did not go on after kill -9");
  model.gapMs = 0;
  return performance.now() - killedAt;
}
