/**
 * The cost of a channel: the example channel and the gateway, each in its own process, with a fake platform in the benchmark's process.
 * The lower bound for accepting a message is a Durable Object that writes one row for each request.
 */
import { ChannelStack } from "../e2e/channel-stack.ts";
import type { BenchModel } from "./model.ts";
import { median, quantile, usageOf } from "./process.ts";

export interface ChannelCost {
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  readonly drained: number;
  readonly drainMs: number;
  readonly roundTripMs: number;
  readonly accountMb: number;
}
/** The gateway's limit for one sender in a minute. */
const PER_SENDER = 20;
const ACCOUNTS = 50;
const WAIT_MS = 120_000;

async function until(holds: () => boolean, what: string): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what}: not within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
/** Times of `count` calls, one after the other. */
export async function timesOf(count: number, call: (n: number) => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const from = performance.now();
    await call(n);
    times.push(performance.now() - from);
  }
  return times;
}

export async function channels(model: BenchModel, senders: number): Promise<ChannelCost> {
  const stack = await ChannelStack.start({ allowFrom: ["*"], reaction: "" });
  try {
    const bench = { provider: "bench", id: "bench", baseUrl: model.url, wire: "openai-completions", contextWindow: 10_000_000 };
    await stack.call("config.set", { path: "model", value: bench });
    await stack.call("config.set", { path: "apiKeys", value: { bench: "none" } });
    const post = async (from: string, id: string): Promise<void> => {
      const status = await stack.post({ id, from, text: "[text 4] hello there, how are you today?" });
      if (status !== 200) throw new Error(`a webhook was answered with ${status}`);
    };

    // One after the other. The first message of each person creates a conversation and does not count.
    const trips: number[] = [];
    for (let n = 0; n < 60; n++) {
      const answered = model.next();
      const shown = stack.program.shown.length;
      const from = performance.now();
      await post(`trip-${n % 6}`, `trip-${n}`);
      const mark = await answered;
      await until(() => stack.program.shown.length > shown, "an answer");
      if (n >= 6) trips.push(performance.now() - from - (mark.endAt - mark.requestAt));
    }
    await stack.quiet();

    const before = usageOf(stack.pids.channel).rssMb;
    const { secret } = stack.program;
    for (let n = 0; n < ACCOUNTS; n++)
      await stack.call("channel.start", { channel: "example", accountId: `account-${n}`, config: { secret } });
    const accountMb = (usageOf(stack.pids.channel).rssMb - before) / ACCOUNTS;

    await stack.killGateway();
    const drained = senders * PER_SENDER;
    const accepts = await timesOf(drained, (n) => post(`queue-${n % senders}`, `queue-${n}`));
    await stack.killChannel();
    const shown = stack.program.shown.length;
    const from = performance.now();
    await Promise.all([stack.bootGateway(), stack.bootChannel()]);
    await until(() => stack.program.shown.length >= shown + drained, "the answers to what was queued");
    const drainMs = performance.now() - from;
    return { acceptP50Ms: median(accepts), acceptP99Ms: quantile(accepts, 0.99), drained, drainMs, roundTripMs: median(trips), accountMb };
  } finally {
    await stack.end();
  }
}
