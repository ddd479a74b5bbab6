/** A stored secret in the text of an error does not reach the log, whichever component writes the line. */
import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { parts } from "../../src/app/compose.ts";
import { composeNativeTools } from "../../src/app/native-tools.ts";
import { wiring } from "../../src/app/session-wiring.ts";
import type { NativeTools } from "../../src/ports/native-tools.ts";
import { tool } from "../../src/tools/tool.ts";
import { ADMIN, client, fetchWorker, gateway, type Peer, seed, eventually } from "../support/gateway.ts";
import { evict } from "../support/evict.ts";

/** It has no shape by which a secret is recognised. */
const SECRET = "correct horse battery staple";
const fails = (): never => {
  throw new Error(`refused: ${SECRET}, and more`);
};
const FEATURES = [
  {
    name: "broken",
    migrations: [],
    tools: [tool({ name: "gsv__Broken", description: "Fails.", policyClass: "read_private", properties: {} }, {}, async () => fails())],
  },
];
const broken = { features: FEATURES };
let admin: Peer;
let lines: string[];

beforeEach(async () => {
  await reset();
  await seed();
  admin = await client();
  await admin.ok("config.set", { path: "apiKeys.openai", value: SECRET });
  lines = [];
  for (const level of ["warn", "error"] as const) vi.spyOn(console, level).mockImplementation((line: string) => void lines.push(line));
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The line with this event, which masks the secret and keeps the rest of the text. */
async function hides(component: string, event: string): Promise<void> {
  const line = await eventually(() => {
    const found = lines.find((text) => text.includes(`"${event}"`));
    if (found === undefined) throw new Error(`no line ${event}: ${lines.join("\n")}`);
    return found;
  });
  expect(JSON.parse(line)).toMatchObject({ component, event });
  expect(line).toContain("refused: [redacted], and more");
  expect(lines.join("\n")).not.toContain(SECRET);
}

describe("[S17] the log hides stored secrets in the error texts of", () => {
  test("the Worker", async () => {
    const STORAGE = { get: async () => fails() } as unknown as R2Bucket;
    const response = await fetchWorker(
      "http://gsv.test/media/agent:main:main/x.png",
      { headers: { Authorization: `Bearer ${ADMIN}` } },
      { STORAGE },
    );
    expect(response.status).toBe(500);
    await hides("worker", "request_failed");
  });

  test("a session", async () => {
    await runInDurableObject(env.SESSION.getByName("agent:main:main"), async (session, state) => {
      vi.spyOn(state.storage, "setAlarm").mockImplementation(async () => fails());
      await session.reset();
    });
    await admin.ok("chat.send", { sessionKey: "main", message: "hi" });
    await hides("session", "session_alarm_not_set");
  });

  test("a native tool that a session runs", async () => {
    const compose = wiring.createSessionParts;
    let native: NativeTools | undefined;
    vi.spyOn(wiring, "createSessionParts").mockImplementation((bucket, port, around) => {
      native = composeNativeTools(bucket, { ...broken, log: around.log });
      return { ...compose(bucket, port, around), native };
    });
    await runInDurableObject(env.SESSION.getByName("agent:main:main"), async (session) => {
      // Its parts are made with the first call.
      await session.stats();
      const context = { identity: { isOwnersSession: true } } as Parameters<NativeTools["run"]>[2];
      expect(await native?.run("gsv__Broken", {}, context)).toMatchObject({ ok: false });
    });
    await hides("session", "native_tool_failed");
  });

  test("a native tool that a client runs", async () => {
    vi.spyOn(parts, "nativeTools").mockImplementation((bucket, _env, log) => composeNativeTools(bucket, { ...broken, log }));
    await evict(gateway());
    expect((await (await client()).refused("tool.invoke", { tool: "gsv__Broken", args: {} })).reason).toBe("internal");
    await hides("gateway", "native_tool_failed");
  });

  test("a search index", async () => {
    await admin.ok("workspace.write", { path: "notes/boat.md", content: "The boat leaks." });
    await runInDurableObject(env.SEARCH.getByName("main"), async (index, state) => {
      vi.spyOn(state.storage, "setAlarm").mockImplementation(async () => fails());
      // The time of a pass is over before it has begun, so the index wants to be woken.
      let clock = Date.now();
      vi.spyOn(Date, "now").mockImplementation(() => (clock += 3_600_000));
      await index.query({ agentId: "main", match: { words: ["boat"] }, sources: ["workspace"], limit: 1, offset: 0 });
    });
    await hides("search", "search_alarm_not_set");
  });
});
