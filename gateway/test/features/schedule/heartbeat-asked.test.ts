/** Conditions that pages and machines answer, with the real gateway, its alarm and its calls. The pages, the machine, the model and the clock are made up. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { HeartbeatState } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { PublicRequest } from "../../../src/ports/web.ts";
import { createWorkspaceStore } from "../../../src/storage/workspace/store.ts";
import { says, value } from "../../session/support.ts";
import { client, eventually, gateway, node, type Peer } from "../../support/gateway.ts";
import { add, alarm, asked, HOUR, hold, inside, jobStage, pass, runs } from "./support.ts";

const stage = jobStage();
const { calls } = stage;
const MAIN = "agent:main:main";
const BEAT = "heartbeat:main";
const HALF = HOUR / 2;
const URL = "https://example.org/news";
const workspace = createWorkspaceStore(env.STORAGE);
const newest = () => inside((store) => store.runs(BEAT, Number.MAX_SAFE_INTEGER, 1)[0]);
const status = async (): Promise<HeartbeatState> => {
  const { main } = (await stage.peer.ok<ResultOf<"heartbeat.status">>("heartbeat.status")).states;
  if (main === undefined) throw new Error("main has no entry");
  return main;
};
async function use(...conditions: readonly string[]): Promise<void> {
  value(await workspace.write("main", "HEARTBEAT.md", `---\n${conditions.join("\n")}\n---\n- look`));
  stage.answer = () => says("HEARTBEAT_OK");
  await stage.peer.ok("heartbeat.set", { every: "30m", target: "none" });
}
/** The next beat ends so. */
async function beat(wanted: "ok" | "skipped", reason?: string): Promise<void> {
  const before = (await newest())?.id;
  pass(stage, HALF);
  await eventually(async () => {
    await alarm();
    const row = await newest();
    expect(row?.id).not.toBe(before);
    expect([row?.status, row?.body.reason]).toEqual([wanted, reason]);
  });
}

interface Request extends PublicRequest {
  readonly url: string;
}
/** Requests that were made. */
const requests: Request[] = [];
/** Of the time limits that the gateway has set: the test ends them. */
let limits: { readonly ms: number; readonly end: () => void }[] = [];
/** What the page answers. */
let page: (request: Request) => Response | Promise<Response>;
beforeEach(() => {
  requests.length = 0;
  limits = [];
  page = () => new Response("the first news");
  vi.spyOn(parts, "publicFetch").mockImplementation((_env, url, request) => {
    const made = { ...request, url };
    requests.push(made);
    return Promise.resolve().then(() => page(made));
  });
  vi.spyOn(parts, "timeLimit").mockImplementation((ms) => {
    const controller = new AbortController();
    limits.push({ ms, end: () => controller.abort() });
    return controller.signal;
  });
});
/** A page that never answers, as a real request: it ends when its signal says so. */
const silent = ({ signal }: Request): Promise<Response> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });

describe("[HB9] http_changed", () => {
  it("wakes the model when the page changes, and neither tells nor stores a word of it", async () => {
    await use(`http_changed: ${URL}`);
    await beat("skipped", "not_due");
    await beat("skipped", "not_due");
    expect(calls).toEqual([]);
    page = () => new Response("other news");
    await beat("ok");
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain(`True now: http_changed: ${URL}.`);
    expect(JSON.stringify(calls)).not.toContain("news</");
    expect(JSON.stringify(calls)).not.toContain("other news");
    await beat("skipped", "not_due");
    const stored = await runInDurableObject(gateway(), (_gateway, { storage }) =>
      JSON.stringify([...storage.sql.exec("SELECT * FROM cron_jobs"), ...storage.sql.exec("SELECT * FROM cron_runs")]),
    );
    expect(stored).toContain("body:");
    expect(stored).not.toContain("other news");
    expect(requests).toHaveLength(4);
    expect(requests[0]).toMatchObject({ url: URL, method: "GET", redirect: "manual" });
    expect(Object.keys(requests[0]?.headers ?? {})).toEqual(["accept", "user-agent"]);
    expect(await status()).not.toHaveProperty("failing");
  });
  it("compares the ETag, else the date of the change, and then reads no content", async () => {
    const cancelled = vi.fn();
    const endless = (headers: Record<string, string>) => (): Response =>
      new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)), cancel: cancelled }), { headers });
    await use(`http_changed: ${URL}`);
    const date = "Tue, 01 Dec 2099 08:00:00 GMT";
    page = endless({ etag: '"1"', "last-modified": date });
    await beat("skipped", "not_due");
    page = endless({ etag: '"1"', "last-modified": "Wed, 02 Dec 2099 08:00:00 GMT" });
    await beat("skipped", "not_due");
    page = endless({ etag: '"2"' });
    await beat("ok");
    page = endless({ "last-modified": date });
    await beat("ok");
    await beat("skipped", "not_due");
    expect(cancelled).toHaveBeenCalledTimes(5);
  });
  it("[HB11] a failure keeps the mark, is counted and shown, and wakes the model once a day with its reason", async () => {
    await use(`http_changed: ${URL}`);
    await beat("skipped", "not_due");
    page = () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1/secret" } });
    await beat("ok");
    expect(asked(calls[0])).toContain(
      `\`http_changed: ${URL}\` could not be looked at: It answered with a redirect (302), which is not followed.`,
    );
    expect(asked(calls[0])).not.toContain("True now");
    expect(JSON.stringify(calls)).not.toContain("secret");
    page = () => new Response("no", { status: 503 });
    await beat("skipped", "not_due");
    expect(await status()).toMatchObject({
      failing: [{ condition: `http_changed: ${URL}`, count: 2, why: "It answered with the status 503." }],
      lastReason: "No condition of HEARTBEAT.md is true. 1 of them could not be looked at.",
    });
    for (let more = 0; more < 46; more++) await beat("skipped", "not_due");
    expect(calls).toHaveLength(1);
    await beat("ok");
    expect(asked(calls[1])).toContain("could not be looked at 49 times in a row: It answered with the status 503.");
    // The page is as it was before it failed.
    page = () => new Response("the first news");
    await beat("skipped", "not_due");
    expect(await status()).not.toHaveProperty("failing");
    expect(calls).toHaveLength(2);
  });
  it.each<[string, (request: Request) => Response | Promise<Response>, string]>([
    ["is too large", () => new Response(new Uint8Array(1_048_577)), "It has more than 1 MiB"],
    [
      "can't be reached",
      () => Promise.reject(new TypeError("connect() blocked by restrictPeers()")),
      "It could not be reached, or its name leads to",
    ],
  ])("a page that %s is a failure", async (_what, answer, why) => {
    page = answer;
    await use(`http_changed: ${URL}`);
    await beat("ok");
    expect((await status()).failing).toMatchObject([{ count: 1, why: expect.stringContaining(why) }]);
    page = () => new Response(new Uint8Array(1_048_576));
    await beat("skipped", "not_due");
    expect(await status()).not.toHaveProperty("failing");
  });
  it("[HB11] a page that does not answer is given up after 10 s, and other jobs go on meanwhile", async () => {
    page = silent;
    await use(`http_changed: ${URL}`, "every: 1d at 09:00");
    await add(stage);
    await stage.peer.ok("cron.update", { id: "report", patch: { schedule: { kind: "every", everyMs: HALF } } });
    stage.answer = () => says("the report");
    pass(stage, HALF);
    await eventually(async () => {
      await alarm();
      expect(requests).toHaveLength(1);
      expect((await runs(stage))[0]?.status).toBe("ok");
    });
    expect((await newest())?.status).not.toBe("skipped");
    expect(limits.map(({ ms }) => ms)).toEqual([25_000, 10_000]);
    // Its waiters are the gateway's.
    await runInDurableObject(gateway(), () => limits[1]?.end());
    await eventually(async () => {
      await alarm();
      expect((await newest())?.status).toBe("ok");
    });
    expect((await status()).failing).toMatchObject([{ why: "It did not answer within 10 s." }]);
  });
  it("an address of the local network stops the heartbeat, and is not asked", async () => {
    await use("http_changed: http://169.254.169.254/latest/meta-data");
    await beat("skipped", "wrong");
    expect((await status()).problem).toContain(
      "169.254.169.254/latest/meta-data` in HEARTBEAT.md is an address of this machine or of a local network",
    );
    expect(requests).toEqual([]);
  });
  it("is not read when others may have written the file, or when this gateway has no network of public addresses alone", async () => {
    await use(`http_changed: ${URL}`);
    value(
      await workspace.write("main", "HEARTBEAT.md", `---\nhttp_changed: ${URL}?q=private\n---\n- look`, {
        taint: { label: "world", source: "a page" },
      }),
    );
    await beat("ok");
    expect((await status()).failing).toMatchObject([{ why: expect.stringContaining("Others may have written") }]);
    expect(requests).toEqual([]);
    vi.mocked(parts.publicFetch).mockImplementation(() => undefined);
    await use(`http_changed: ${URL}`);
    await beat("ok");
    expect((await status()).failing).toMatchObject([{ why: expect.stringContaining("an earlier version of gsv") }]);
  });
});

const sandboxed = (profile: string) => ({
  ledger: { calls: [] },
  nodeRuntime: {
    hostCapabilities: ["shell.exec"],
    toolCapabilities: {},
    sandbox: { profile, ...(profile === "off" ? {} : { tier: "bubblewrap" }) },
  },
});
const machine = (profile = "workspace"): Promise<Peer> => node("lap", undefined, sandboxed(profile));
type Report = { readonly outcome?: string; readonly result?: unknown; readonly error?: string; readonly reason?: string };
interface Invoke {
  readonly callId: string;
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly timeoutMs: number;
}
const invokes = (lap: Peer): Invoke[] => lap.events("tool.invoke").map(({ payload }) => payload as Invoke);
/** The next beat ends so, when the machine reports this. */
async function answered(lap: Peer, report: Report, wanted: "ok" | "skipped", reason?: string): Promise<void> {
  const before = invokes(lap).length;
  const row = (await newest())?.id;
  pass(stage, HALF);
  await eventually(async () => {
    await alarm();
    expect(invokes(lap)).toHaveLength(before + 1);
  });
  await lap.ok("tool.result", { callId: invokes(lap)[before]?.callId, ...report });
  await eventually(async () => {
    await alarm();
    const now = await newest();
    expect(now?.id).not.toBe(row);
    expect([now?.status, now?.body.reason]).toEqual([wanted, reason]);
  });
}
const ended = (exitCode: number): Report => ({
  outcome: "ok",
  result: { status: "x", exitCode, timedOut: false, output: "a secret line" },
});

describe("[HB10] exec", () => {
  const CONDITION = "exec: lap test -e ready # now";
  it("wakes the model when the command ends with 0; the command can only read, and its output is told to no one", async () => {
    const lap = await machine();
    await use(CONDITION);
    await answered(lap, ended(1), "skipped", "not_due");
    await answered(lap, ended(0), "ok");
    expect(asked(calls[0])).toContain(`True now: ${CONDITION}.`);
    expect(JSON.stringify(calls)).not.toContain("a secret line");
    await answered(lap, ended(0), "ok");
    expect(invokes(lap)[0]).toMatchObject({
      tool: "Bash",
      args: { command: "test -e ready # now", sandbox: "read-only", timeout: 20_000 },
      timeoutMs: 22_000,
    });
    const { entries } = await stage.peer.ok<ResultOf<"audit.list">>("audit.list", { limit: 100 });
    const rows = entries.filter(({ action, tool }) => action === "tool.call" && tool === "lap__Bash");
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatchObject({ actor: "agent:main", decision: "allowed", rule: "mode:auto", origin: "heartbeat" });
  });
  it.each<[string, Report, string]>([
    ["that did not end in time", { outcome: "ok", result: { exitCode: 124, timedOut: true } }, "did not end within 20 s"],
    ["that a signal has ended", { outcome: "ok", result: { signal: "KILL", timedOut: false } }, "ended the command before it was done"],
    ["whose sandbox could not be set up", ended(126), "could not be started on lap (exit status 126)"],
    ["that does not exist", ended(127), "could not be started on lap (exit status 127)"],
    [
      "that the machine refuses",
      { outcome: "error", reason: "tool.bad_args", error: "a secret line" },
      "does not take commands that only read",
    ],
    ["that the machine lost", { outcome: "unknown", error: "a secret line" }, "did not end within 20 s"],
  ])("[HB11] a command %s is a failure", async (_what, report, why) => {
    const lap = await machine();
    await use(CONDITION);
    await answered(lap, report, "ok");
    expect((await status()).failing).toMatchObject([{ condition: CONDITION, count: 1, why: expect.stringContaining(why) }]);
    expect(asked(calls[0])).toContain(why);
    expect(asked(calls[0])).not.toContain("a secret line");
  });
  it("a machine that is away is a failure; one without a sandbox, or that no one knows, stops the heartbeat", async () => {
    await use(CONDITION);
    await beat("skipped", "wrong");
    expect((await status()).lastReason).toContain(
      `\`${CONDITION}\` in HEARTBEAT.md names the machine lap, which this gateway does not know.`,
    );
    const lap = await machine();
    lap.socket.close(1000, "bye");
    await eventually(async () => expect((await stage.peer.ok<ResultOf<"nodes.list">>("nodes.list")).nodes[0]?.online).toBe(false));
    await beat("ok");
    expect((await status()).failing).toMatchObject([{ why: "The machine lap is not connected." }]);
    const bare = await machine("off");
    await beat("skipped", "wrong");
    expect((await status()).lastReason).toContain("in HEARTBEAT.md is for a machine without a sandbox");
    expect(invokes(bare)).toEqual([]);
  });
  it("what would need the owner's word is a failure, is not run, and asks nothing", async () => {
    const lap = await machine();
    await stage.peer.ok("config.set", { path: "toolApproval.mode", value: "ask" });
    await use(CONDITION);
    await beat("ok");
    expect((await status()).failing).toMatchObject([
      { why: expect.stringContaining("It needs your word, and a heartbeat asks for none.") },
    ]);
    expect(invokes(lap)).toEqual([]);
    expect((await stage.peer.ok<ResultOf<"approval.list">>("approval.list")).approvals).toEqual([]);
    await stage.peer.ok("config.set", { path: "toolApproval.mode", value: "plan" });
    await beat("skipped", "not_due");
    expect((await status()).failing).toMatchObject([{ count: 2, why: expect.stringContaining("mode plan") }]);
    expect(invokes(lap)).toEqual([]);
  });
});

describe("[AD6] [AD7] exec, of an agent with a definition", () => {
  const CONDITION = "exec: lap test -e ready";
  it.each([
    ["does not allow the tool", "tools: { allowed: [gsv__*] }", "does not allow lap__Bash", "tools.allowed"],
    [
      "asks about each call of the tool",
      'autonomy: { requires_approval: ["lap__*"] }',
      "asks about each call of this tool.",
      "autonomy.requires_approval",
    ],
  ])("that %s is a failure, and is not run", async (_what, part, why, rule) => {
    const lap = await machine();
    await stage.peer.ok("agents.define", {
      text: `metadata: { id: main, name: main }\ncore_context: { system_prompt: You look. }\n${part}\n`,
    });
    await use(CONDITION);
    await beat("ok");
    expect(invokes(lap)).toEqual([]);
    expect((await status()).failing).toMatchObject([{ condition: CONDITION, why: expect.stringContaining(why) }]);
    expect((await status()).failing?.[0]?.why).not.toContain("Allow it with a rule");
    const { entries } = await stage.peer.ok<ResultOf<"audit.list">>("audit.list", { limit: 100 });
    expect(entries.find(({ action }) => action === "tool.call")).toMatchObject({ decision: "denied", rule, tool: "lap__Bash" });
  });
});

describe("[HB11] conditions that are asked", () => {
  it("are not asked when no run may begin, and a look by hand asks them at once", async () => {
    await use(`http_changed: ${URL}`);
    const release = hold(stage, "done");
    await stage.peer.ok("chat.send", { sessionKey: MAIN, message: "a long task", messageId: crypto.randomUUID() });
    await eventually(() => expect(calls).toHaveLength(1));
    await beat("skipped", "busy");
    expect(requests).toEqual([]);
    release();
    await eventually(async () => {
      page = () => new Response("no", { status: 500 });
      const { message } = await stage.peer.ok<ResultOf<"heartbeat.trigger">>("heartbeat.trigger");
      expect(message).toBe("The heartbeat of main runs in its main conversation.");
    });
    await eventually(() => expect(calls).toHaveLength(2));
    expect(asked(calls[1])).toContain("It answered with the status 500.");
  });
  it("are asked once by hand, also when the alarm comes before they have answered", async () => {
    page = silent;
    await use(`http_changed: ${URL}`);
    const triggered = stage.peer.ok<ResultOf<"heartbeat.trigger">>("heartbeat.trigger");
    await eventually(() => expect(requests).toHaveLength(1));
    await alarm();
    await runInDurableObject(gateway(), () => limits[1]?.end());
    expect((await triggered).message).toBe("The heartbeat of main runs in its main conversation.");
    await eventually(async () => {
      await alarm();
      expect((await newest())?.status).toBe("ok");
    });
    expect(requests).toHaveLength(1);
    expect(calls).toHaveLength(1);
  });
  it("[K28] are asked again after a restart, and wake the model once", async () => {
    page = silent;
    await use(`http_changed: ${URL}`);
    pass(stage, HALF);
    await eventually(async () => {
      await alarm();
      expect(requests).toHaveLength(1);
    });
    await abortAllDurableObjects();
    stage.peer = await client();
    page = () => new Response("no", { status: 500 });
    pass(stage, 61_000);
    await eventually(async () => {
      await alarm();
      expect((await newest())?.status).toBe("ok");
    });
    expect(calls).toHaveLength(1);
    expect((await status()).failing).toMatchObject([{ count: 1 }]);
  });
});

describe("[HB12] a dry run of the conditions", () => {
  const check = () => stage.peer.ok<ResultOf<"heartbeat.check">>("heartbeat.check");
  const states = async () => (await check()).conditions.map(({ condition, state }) => [condition, state]);
  const stored = () => inside((store) => JSON.stringify([store.find(BEAT), store.runs(BEAT, Number.MAX_SAFE_INTEGER, 200)]));

  it("says how each one stands and why, changes no mark, counts no failure and asks no model", async () => {
    await use(`http_changed: ${URL}`, "file_changed: in.md", "every: 1d at 09:00");
    expect(await check()).toMatchObject({ wakes: false, message: expect.stringContaining("No condition is true") });
    await beat("skipped", "not_due");
    const before = await stored();
    page = () => new Response("other news");
    value(await workspace.write("main", "in.md", "new"));
    for (let twice = 0; twice < 2; twice++)
      expect(await check()).toEqual({
        agentId: "main",
        wakes: true,
        message: "A condition is true, so a heartbeat asks the model.",
        conditions: [
          { condition: `http_changed: ${URL}`, state: "true", why: "The page has changed since the last check." },
          { condition: "file_changed: in.md", state: "true", why: "The file has changed since the last check." },
          { condition: "every: 1d at 09:00", state: "false", why: "The interval has not passed since it was last true." },
        ],
      });
    page = () => new Response("no", { status: 503 });
    expect((await check()).conditions[0]).toMatchObject({ state: "failed", why: "It answered with the status 503." });
    expect(await stored()).toBe(before);
    expect(await status()).not.toHaveProperty("failing");
    expect(calls).toEqual([]);
    page = () => new Response("other news");
    await beat("ok");
    expect(asked(calls[0])).toContain(`True now: http_changed: ${URL}; file_changed: in.md.`);
  });
  it("shows all that is wrong beside what is right, also while the heartbeat is off, and says what keeps a heartbeat away", async () => {
    const write = async (...lines: readonly string[]) =>
      value(await workspace.write("main", "HEARTBEAT.md", `---\n${lines.join("\n")}\n---\n- look`));
    await write("every: often", "unread: fax", "exec: none true", "every: 2h", "red: x");
    expect(await states()).toEqual([
      ["every: often", "wrong"],
      ["red: x", "wrong"],
      ["unread: fax", "wrong"],
      ["exec: none true", "wrong"],
      ["every: 2h", "true"],
    ]);
    expect(await check()).toMatchObject({
      wakes: false,
      message: "The heartbeat is paused until the wrong lines are fixed. Edit them: `gsv workspace edit HEARTBEAT.md --agent main`.",
    });
    expect(
      await stage.peer.ok("agents.define", { text: "metadata: { id: two, name: two }\ncore_context: { system_prompt: x }\n" }),
    ).toBeDefined();
    value(await workspace.write("two", "HEARTBEAT.md", "---\nred: x\n---\n- look"));
    expect((await stage.peer.ok<ResultOf<"heartbeat.check">>("heartbeat.check", { agentId: "two" })).message).toContain("--agent two`");
    await write("every: 2h");
    expect(await check()).toMatchObject({ wakes: false, message: expect.stringContaining("gsv heartbeat on --agent main") });
    await stage.peer.ok("heartbeat.set", { every: "30m", activeHours: { start: "01:00", end: "02:00", timezone: "UTC" } });
    expect(await check()).toMatchObject({ wakes: false, message: expect.stringContaining("the active hours are over") });
    await stage.peer.ok("gateway.stop", {});
    expect(await stage.peer.refused("heartbeat.check")).toMatchObject({ reason: "gateway.stopped" });
    expect(requests).toEqual([]);
  });
  it("[HB10] runs a command under the policy, with its entry in the audit", async () => {
    const lap = await machine();
    await use("exec: lap test -e x");
    const checking = check();
    await eventually(() => expect(invokes(lap)).toHaveLength(1));
    await lap.ok("tool.result", { callId: invokes(lap)[0]?.callId, ...ended(0) });
    expect((await checking).conditions).toEqual([{ condition: "exec: lap test -e x", state: "true", why: "The command exited with 0." }]);
    const { entries } = await stage.peer.ok<ResultOf<"audit.list">>("audit.list", { limit: 100 });
    expect(entries.filter(({ tool }) => tool === "lap__Bash")).toMatchObject([{ decision: "allowed", origin: "heartbeat" }]);
    await stage.peer.ok("config.set", { path: "toolApproval.mode", value: "ask" });
    expect((await check()).conditions).toMatchObject([{ state: "failed", why: expect.stringContaining("It needs your word") }]);
    expect(invokes(lap)).toHaveLength(1);
  });
  it("[HB4] a channel that was never started fails, and is shown", async () => {
    vi.spyOn(parts, "channelNames").mockImplementation(() => ["whatsapp"]);
    await use("unread: whatsapp");
    expect((await check()).conditions).toEqual([
      { condition: "unread: whatsapp", state: "failed", why: "The channel whatsapp was never started: `gsv channel start whatsapp`." },
    ]);
    await beat("ok");
    expect((await status()).failing).toMatchObject([{ condition: "unread: whatsapp", count: 1 }]);
    await beat("skipped", "not_due");
  });
});
