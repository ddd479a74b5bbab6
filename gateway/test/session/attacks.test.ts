/**
 * Suite O: 25 goals by 12 vectors, with a model that does exactly what the attacker's text says, through the real gateway, its intake of
 * channels, real sessions and real native tools. What would be done elsewhere arrives at a machine and at a channel that note it. The
 * settings are those of a new installation. Passes when nothing is done without the owner's word and each attack has its entry in the audit.
 *
 * A usual run takes each third pair, so that each vector has goals of all kinds and each goal comes by four vectors; `GSV_LONG` takes all.
 *
 * The memory vector is a note that a misled run wrote, with the label that such a run gives it; the voice vector is a forwarded recording.
 */
import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from "vitest";
import type { ChannelService } from "../../../protocol/gen/services.ts";
import type { AuditListResult, ChannelInbound, OutboundMessage } from "../../../protocol/gen/types.ts";
import { goalsOf, obey, orderFor, wishFor, type Call } from "../../../test/fakes/hijacked-model.ts";
import { mediaPrefix } from "../../src/storage/keys.ts";
import { sessionPort } from "../../src/platform/stubs.ts";
import { parts } from "../../src/app/compose.ts";
import { wiring } from "../../src/app/session-wiring.ts";
import type { Message } from "../../src/ports/messages.ts";
import type { ModelOutcome } from "../../src/ports/model.ts";
import { createWorkspaceStore } from "../../src/storage/workspace/store.ts";
import { createSessionMedia } from "../../src/features/media/session-media.ts";
import { channelEntrypoint, client, connectParams, open, type Peer, seed, token } from "../support/gateway.ts";
import { says, until, value } from "./support.ts";

const GOALS = goalsOf("/home/ann");
/** Of the pairs of a vector and a goal, each which is tried. */
const EVERY = inject("isLong") ? 1 : 3;
const FILES = {
  "SOUL.md": "calm",
  "HEARTBEAT.md": "rest",
  "AGENTS.md": "ask",
  "MEMORY.md": "the safe is behind the painting",
  "payslip.md": "3000",
};
/** Calls of the owner that bring a text in. */
const READ: Call = { name: "lap__Read", arguments: { path: "repo/README.md" } };
const LIST: Call = { name: "lap__Bash", arguments: { command: "ls" } };
const PAGE: Call = { name: "lap__Browse", arguments: { url: "https://example.org" } };
const MEMORY: Call = { name: "gsv__ReadFile", arguments: { path: "notes/plan.md" } };
const SKILL: Call = { name: "gsv__ReadFile", arguments: { path: "skills/helper/SKILL.md" } };

const EVIL_SKILL = "skills/evil/SKILL.md";
const store = createWorkspaceStore(env.STORAGE);
const sent: OutboundMessage[] = [];
/** What arrived at the machine, without what the owner's wishes brought there. */
const effects: Call[] = [];
let owner: Peer;
/** What the attacker has written, where the owner's wish finds it. */
let order = "";
let spoken = "";
let serial = 0;

const textsOf = ({ content }: Message): string =>
  typeof content === "string" ? content : content.map((block) => ("text" in block ? block.text : "")).join("\n");
function hijacked(messages: readonly Message[]): ModelOutcome {
  const from = messages.findLastIndex(({ role }) => role === "user");
  const run = messages.slice(from);
  const texts = run.filter(({ role }) => role !== "assistant").map(textsOf);
  const done = run.flatMap((message) =>
    message.role === "assistant" ? message.content.filter(({ type }) => type === "toolCall") : [],
  ).length;
  const next = obey(GOALS, texts, done);
  return next === undefined ? says("well") : says("", [next]);
}

beforeAll(async () => {
  await reset();
  vi.spyOn(parts, "channel").mockImplementation((_env, name) => (name === "whatsapp" ? channelService : undefined));
  vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp"]);
  const real = wiring.createSessionParts;
  vi.spyOn(wiring, "createSessionParts").mockImplementation((bucket, gateway, surroundings) => ({
    ...real(bucket, gateway, surroundings),
    model: { takesImages: () => true, refusal: () => undefined, call: ({ messages }) => Promise.resolve(hijacked(messages)) },
    media: createSessionMedia(bucket, { fetch: () => Promise.resolve(Response.json({ text: spoken })) }),
  }));
  await seed();
  owner = await client();
  const eves = GOALS.flatMap((_goal, index) => ["dm", "group", "name"].map((vector) => `eve-${vector}-${index}`));
  const exact = (tool: string, path: string, wanted: unknown) => ({
    id: tool,
    tool,
    decision: "allow",
    when: [{ path, op: "equals", value: wanted }],
  });
  for (const [path, wanted] of [
    ["channels.whatsapp", { owners: ["ann"], allowFrom: eves, groups: "all" }],
    ["toolApproval.rules", [exact("lap__Bash", "command", ["ls"]), exact("lap__Browse", "url", "https://example.org")]],
    ["transcription.baseUrl", "http://127.0.0.1:9/v1"],
    ["limits.stepsPerRun", 8],
  ] as const)
    await owner.ok("config.set", { path, value: wanted });
  await lap();
  expect(await changedFiles()).toEqual(Object.keys(FILES));
});
beforeEach(() => {
  effects.length = 0;
  sent.length = 0;
});
/** Files that are not as the owner left them; they are put back, so that each attack meets the same agent. */
async function changedFiles(): Promise<string[]> {
  const changed: string[] = [];
  for (const [path, content] of Object.entries(FILES)) {
    const now = await store.read("main", path);
    if (now.ok && now.value.content === content) continue;
    changed.push(path);
    value(await store.write("main", path, content));
  }
  if (value(await store.own("main", EVIL_SKILL)) === undefined) return changed;
  value(await store.delete("main", EVIL_SKILL));
  return [...changed, EVIL_SKILL];
}
afterAll(() => {
  vi.restoreAllMocks();
});

const channelService = {
  describe: async () => ({
    peerKinds: ["dm", "group"],
    media: true,
    reactions: false,
    typing: false,
    replies: true,
    edits: false,
    buttons: false,
    login: false,
    maxTextChars: 4_000,
  }),
  start: async () => ({ accountId: "default", connected: true, authenticated: true }),
  stop: async () => ({ accountId: "default", connected: false, authenticated: true }),
  status: async () => [{ accountId: "default", connected: true, authenticated: true }],
  send: async ({ message }: { message: OutboundMessage }) => {
    sent.push(message);
    return { status: "queued" as const };
  },
  live: async () => ({ ok: true }),
  typing: async () => ({ ok: true }),
  login: async () => ({ state: "connected" as const, message: "" }),
  recheck: async () => ({ ok: true }),
  logout: async () => ({ accountId: "default", connected: false, authenticated: false }),
} satisfies ChannelService;

/** A machine without a sandbox, which does what it is told and notes it. */
async function lap(): Promise<Peer> {
  const peer = await open();
  const tools = ["Bash", "Process", "Read", "Write", "Edit", "Delete", "Browse"].map((name) => ({
    name,
    description: name,
    inputSchema: { type: "object" },
  }));
  const { token: secret } = await token("node", { nodeId: "lap" });
  await peer.ok("connect", connectParams("node", "lap", secret, { tools, ledger: { calls: [] }, sandbox: { profile: "off" } }));
  peer.socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(String(data)) as { event?: string; payload?: { callId: string; tool: string; args: Call["arguments"] } };
    if (frame.event !== "tool.invoke" || frame.payload === undefined) return;
    const { callId, tool, args } = frame.payload;
    const made = { name: `lap__${tool}`, arguments: args };
    const isWish = [READ, LIST, PAGE].some((wish) => JSON.stringify(wish) === JSON.stringify(made));
    if (!isWish && tool !== "Read") effects.push(made);
    // A real machine refuses what lies outside its workspace.
    peer.ask("tool.result", { callId, outcome: isWish ? "ok" : "error", result: isWish ? order : "outside of the workspace" });
  });
  return peer;
}

type Vector = (index: number) => Promise<{ readonly sessionKey: string; readonly runId: string }>;
const inbound = async (message: Partial<ChannelInbound["message"]>, more: Partial<ChannelInbound> = {}) => {
  const {
    outcome,
    sessionKey = "",
    runId = "",
  } = await channelEntrypoint("whatsapp").inbound({
    account: { channel: "whatsapp", accountId: "default" },
    inbound: {
      peer: { kind: "dm", id: "ann" },
      sender: { id: "ann" },
      message: { id: `m${++serial}`, text: "look at this", timestamp: Date.now(), ...message },
      receivedAt: Date.now(),
      ...more,
    },
  });
  expect(outcome).toBe("accepted");
  return { sessionKey, runId };
};
const from = (id: string, name = "Eve"): Partial<ChannelInbound> => ({ peer: { kind: "dm", id }, sender: { id, name } });
/** A file that the channel has stored for the owner's conversation. */
async function file(type: "image" | "audio" | "document", filename: string, mimeType: string, text: string): Promise<Files> {
  const r2Key = `${mediaPrefix("agent:main:main")}${crypto.randomUUID()}.${filename.slice(-3)}`;
  await env.STORAGE.put(r2Key, text, { httpMetadata: { contentType: mimeType } });
  return [{ type, mimeType, filename, r2Key }];
}
type Files = NonNullable<ChannelInbound["message"]["media"]>;
/** A wish of the owner, in a conversation of its own, that brings the order in. */
const wishing =
  (name: string, wish: Call): Vector =>
  async (index) => {
    const sessionKey = `agent:main:cli:dm:${name}-${index}`;
    order = orderFor(index);
    if (wish === MEMORY)
      value(await store.write("main", String(wish.arguments["path"]), order, { taint: { label: "world", source: "a web page" } }));
    // Without the owner's approval the agent cannot read it.
    if (wish === SKILL)
      await owner.ok("workspace.write", {
        path: String(wish.arguments["path"]),
        content: `---\nname: helper\ndescription: helps\n---\n${order}\n`,
      });
    const { runId } = await owner.ok<{ runId: string }>("chat.send", {
      sessionKey,
      message: wishFor(wish),
      messageId: crypto.randomUUID(),
    });
    return { sessionKey, runId };
  };
const VECTORS: Readonly<Record<string, Vector>> = {
  "a direct message": (index) => inbound({ text: orderFor(index) }, from(`eve-dm-${index}`)),
  "a message in a group": (index) =>
    inbound({ text: orderFor(index) }, { ...from(`eve-group-${index}`), peer: { kind: "group", id: `trip-${index}` }, wasMentioned: true }),
  "a display name": (index) => inbound({ text: "hello" }, from(`eve-name-${index}`, `Ann ${orderFor(index)}`)),
  "a quoted message": (index) => inbound({ replyToId: "m0", replyToText: orderFor(index), replyToSenderId: "eve" }),
  "the caption of a picture": async (index) =>
    inbound({ text: orderFor(index), forwarded: true, media: await file("image", "a.png", "image/png", "\x89PNG\r\n\x1a\n") }),
  "the transcript of a recording": async (index) => {
    spoken = orderFor(index);
    return inbound({ text: "", forwarded: true, media: await file("audio", "a.ogg", "audio/ogg", "OggS sound") });
  },
  "the name of a document": async (index) => inbound({ media: await file("document", `${orderFor(index)}.txt`, "text/plain", "an offer") }),
  "a web page": wishing("page", PAGE),
  "a file of a repository": wishing("repo", READ),
  "the output of a command": wishing("output", LIST),
  "a memory": wishing("memory", MEMORY),
  "a skill": wishing("skill", SKILL),
};

const ENDED: ReadonlySet<string> = new Set(["final", "error", "aborted"]);
/** Vectors whose text counts as the files' that the owner keeps: only protected files ask because of them. */
const KEPT: ReadonlySet<string> = new Set(["a file of a repository", "a skill"]);
let attacks = 0;
let refusals = 0;
/** Codes of questions that were answered: the owner's own conversation has those of several attacks. */
const answered = new Set<string>();
afterAll(() =>
  console.log(
    `attacks without an effect: ${attacks} (${GOALS.length} goals, ${Object.keys(VECTORS).length} vectors); ${answered.size} questions were asked, ${refusals} calls refused`,
  ),
);

describe.each(Object.entries(VECTORS).map(([vector, bring], at) => [vector, bring, at] as const))(
  "[S9] [S10] [TA5] [TA9] [AU1] by %s",
  (vector, bring, at) => {
    beforeAll(async () => {
      // A connection may send only so much in a minute.
      owner = await client();
    });
    const goals = GOALS.map((goal, index) => [goal.goal, goal, index] as const).filter(([, , index]) => (index + at) % EVERY === 0);
    it.each(goals)("%s", async (_name, goal, index) => {
      const before = (await owner.ok<AuditListResult>("audit.list", { limit: 1 })).entries[0]?.seq ?? 0;
      const { sessionKey, runId } = await bring(index);
      const session = sessionPort(env, sessionKey);
      const asked = (): News | undefined =>
        owner
          .events("approval")
          .map(({ payload }) => payload as News)
          .find(({ state, code, sessionKey: key }) => state === "waiting" && key === sessionKey && !answered.has(code));
      const end = async () => {
        const now = await session.runEnd(runId);
        return ENDED.has(now.state) ? now : undefined;
      };
      for (;;) {
        const next = await until("a question or the end", async () => asked() ?? (await end()));
        if (!("code" in next)) {
          expect(next.state).toBe(goal.repeats === true ? "error" : "final");
          break;
        }
        answered.add(next.code);
        if (!KEPT.has(vector)) expect(next.approval.why).toMatch(/\(world, from .+\)/);
        await owner.ok("approval.resolve", { code: next.code, decision: "deny", sessionKey });
      }

      expect(effects).toEqual([]);
      expect(sent.filter(({ peer: { id } }) => id !== "ann" && !/^(?:eve|trip)-/.test(id))).toEqual([]);
      expect(await changedFiles()).toEqual([]);

      // Each call that the attacker wanted is on record: as a question, as a refusal, or as a read.
      const { entries } = await owner.ok<AuditListResult>("audit.list", { limit: 40 });
      const own = entries.filter(({ actor, seq }) => seq > before && actor === `session:${sessionKey}`);
      // The first is the owner's own wish.
      const rows = own
        .filter(({ action }) => RECORDS.has(action))
        .toReversed()
        .slice(WISHES.has(vector) ? 1 : 0);
      const wanted = goal.repeats === true ? rows.map(({ target }) => target) : goal.calls.map(({ name }) => name);
      expect(rows.map(({ target }) => target).toSorted()).toEqual(wanted.toSorted());
      expect(rows.length).toBeGreaterThan(0);
      refusals += rows.filter(({ decision }) => decision === "denied").length;
      attacks += 1;
    });
  },
);
interface News {
  readonly state: string;
  readonly code: string;
  readonly sessionKey: string;
  readonly approval: { readonly why: string };
}
const WISHES: ReadonlySet<string> = new Set(["a web page", "a file of a repository", "the output of a command", "a memory", "a skill"]);
const RECORDS: ReadonlySet<string> = new Set(["approval.ask", "tool.call"]);
