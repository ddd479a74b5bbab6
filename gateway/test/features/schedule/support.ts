/** A gateway with jobs: its alarm and its sessions are real; only the model and the clock are made up. */
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { CronAddParams, CronRun, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { wiring } from "../../../src/app/session-wiring.ts";
import { JobStore } from "../../../src/features/schedule/job-store.ts";
import type { ModelOutcome, ModelRequest } from "../../../src/ports/model.ts";
import { says } from "../../session/support.ts";
import { channelEntrypoint, client, eventually, FAR, gateway, type Peer, seed } from "../../support/gateway.ts";

export const HOUR = 3_600_000;
export interface JobStage {
  /** What the model was asked. */
  readonly calls: ModelRequest[];
  answer: (request: ModelRequest) => ModelOutcome | Promise<ModelOutcome>;
  peer: Peer;
  now: number;
}
/** Call at the top of a test file: each test has a fresh gateway. */
export function jobStage(): JobStage {
  const stage: JobStage = { calls: [], answer: () => says("the report"), peer: undefined as unknown as Peer, now: FAR };
  beforeEach(async () => {
    stage.calls.length = 0;
    stage.answer = () => says("the report");
    const real = wiring.createSessionParts;
    vi.spyOn(wiring, "createSessionParts").mockImplementation((...given) => ({
      ...real(...given),
      model: {
        takesImages: () => false,
        refusal: () => undefined,
        call: async (request) => {
          stage.calls.push(request);
          return stage.answer(request);
        },
      },
    }));
    stage.now = FAR;
    vi.useFakeTimers({ now: FAR, toFake: ["Date"] });
    await seed();
    stage.peer = await client();
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    await reset();
  });
  return stage;
}
export function pass(stage: JobStage, ms: number): void {
  stage.now += ms;
  vi.setSystemTime(stage.now);
}
export const alarm = () => runDurableObjectAlarm(gateway());
export const task = (more: Partial<CronAddParams> = {}): CronAddParams => ({
  name: "Report",
  id: "report",
  schedule: { kind: "every", everyMs: HOUR },
  spec: { mode: "task", message: "Write the report." },
  ...more,
});
export const add = ({ peer }: JobStage, params = task()) => peer.ok<ResultOf<"cron.add">>("cron.add", params);
export const runs = async ({ peer }: JobStage, jobId = "report"): Promise<readonly CronRun[]> =>
  (await peer.ok<ResultOf<"cron.runs">>("cron.runs", { jobId })).runs;
/** Fires the alarm until the newest run of the job has this status. */
export async function becomes(stage: JobStage, status: CronRun["status"], jobId = "report"): Promise<CronRun> {
  let last: CronRun | undefined;
  await eventually(async () => {
    await alarm();
    [last] = await runs(stage, jobId);
    expect(last?.status).toBe(status);
  });
  if (last === undefined) throw new Error("no run");
  return last;
}
export const inside = <T>(work: (store: JobStore) => T): Promise<T> =>
  runInDurableObject(gateway(), (_gateway, state) => work(new JobStore(state.storage)));
/** Texts that a conversation has shown. */
export async function shownIn({ peer }: JobStage, sessionKey = "agent:main:main"): Promise<readonly string[]> {
  const { events } = await peer.ok<{ events: { payload: { text?: string } }[] }>("session.subscribe", { sessionKey, afterSeq: 0 });
  return events.flatMap(({ payload }) => (payload.text === undefined ? [] : [payload.text]));
}
export const asked = (request: ModelRequest | undefined): string => JSON.stringify(request?.messages.at(-1) ?? "");

/** A channel that notes what it is to send. */
const channelService = (sent: OutboundMessage[]): ChannelService => ({
  describe: async () => ({
    peerKinds: ["dm", "group"],
    media: true,
    reactions: false,
    typing: false,
    replies: true,
    edits: false,
    buttons: true,
    login: false,
    maxTextChars: 4_000,
  }),
  start: async () => ({ accountId: "default", connected: true, authenticated: true }),
  stop: async () => ({ accountId: "default", connected: false, authenticated: true }),
  status: async () => [{ accountId: "default", connected: true, authenticated: true }],
  send: async ({ message: outbound }: { message: OutboundMessage }) => {
    sent.push(outbound);
    return { status: "queued" as const };
  },
  live: async () => ({ ok: true }),
  typing: async () => ({ ok: true }),
  login: async () => ({ state: "connected" as const, message: "" }),
  recheck: async () => ({ ok: true }),
  logout: async () => ({ accountId: "default", connected: false, authenticated: false }),
});
/** The channel `whatsapp`. Its messages go to `sent`. */
export function useWhatsapp(): OutboundMessage[] {
  const sent: OutboundMessage[] = [];
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "whatsapp" ? channelService(sent) : undefined));
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp"]);
  return sent;
}
/** Ann, the owner, writes, and then Bob, a guest. Both are answered. */
export async function annAndBobWrite(stage: JobStage, sent: OutboundMessage[]): Promise<void> {
  await stage.peer.ok("config.set", { path: "channels.whatsapp", value: { owners: ["ann"], allowFrom: ["bob"] } });
  for (const id of ["ann", "bob"]) {
    pass(stage, 1_000);
    await channelEntrypoint("whatsapp").inbound({
      account: { channel: "whatsapp", accountId: "default" },
      inbound: {
        peer: { kind: "dm", id },
        sender: { id },
        message: { id: `m-${id}`, text: "hello", timestamp: stage.now },
        receivedAt: stage.now,
      },
    });
  }
  await eventually(() => expect(sent).toHaveLength(2));
  sent.length = 0;
}
/** The model answers when the returned function is called. */
export function hold(stage: JobStage, text: string): () => void {
  let isHeld = true;
  stage.answer = async () => {
    while (isHeld) await scheduler.wait(2);
    return says(text);
  };
  return () => {
    isHeld = false;
  };
}
