/**
 * The example of features/README.md: a capability is one definition, and one line adds it to a gateway. It has its own table, a
 * method, an alarm, a part of the version of run contexts, and a native tool.
 */
import { succeed } from "../../src/ports/result.ts";
import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { composeGateway } from "../../src/app/compose.ts";
import { FEATURES } from "../../src/app/features.ts";
import { composeNativeTools } from "../../src/app/native-tools.ts";
import { transfersFeature } from "../../src/features/transfers/index.ts";
import type { FeatureDefinition } from "../../src/kernel/feature.ts";
import type { KernelPorts } from "../../src/kernel/ports.ts";
import { all, one, run } from "../../src/platform/sql.ts";
import type { SessionsPort } from "../../src/ports/sessions.ts";
import { tool } from "../../src/tools/tool.ts";
import { ADMIN, connectParams, gateway, Peer, seed, silent, TOOLS } from "../support/gateway.ts";

interface RemindersPort {
  readonly reminders: { due(): number | undefined };
}

/** The export of a folder `features/reminders/`. */
const remindersFeature: FeatureDefinition<SessionsPort & Pick<KernelPorts, "arm" | "database" | "now">, RemindersPort> = {
  name: "reminders",
  migrations: [
    {
      name: "reminders",
      up: (sql) => {
        sql.exec("CREATE TABLE reminders(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, rung INTEGER NOT NULL DEFAULT 0) STRICT");
      },
    },
  ],
  tools: [
    tool(
      { name: "gsv__Reminder", description: "Answers what a reminder is.", policyClass: "read_private", properties: {} },
      {},
      async (_args, { callId }) => ({ ok: true, result: { callId } }),
    ),
  ],
  create({ database: { sql }, arm, now, sessions }) {
    const due = (): number | undefined =>
      one<{ at: number | null }>(sql, "SELECT min(at) AS at FROM reminders WHERE rung = 0")?.at ?? undefined;
    return {
      offers: { reminders: { due } },
      methods: {
        "transfer.meta": () => {
          run(sql, "INSERT INTO reminders(at) VALUES(?)", now() + sessions.byAgent().size);
          arm();
          return succeed({ ok: true });
        },
      },
      alarms: [{ name: "reminders", next: due, run: (at) => run(sql, "UPDATE reminders SET rung = 1 WHERE at <= ?", at) }],
      contextVersion: () => String(due() ?? 0),
    };
  },
};

/** The line that adds it. */
const WITH_REMINDERS = FEATURES.add(remindersFeature);

beforeEach(async () => {
  // Every method of the contract is served, so the example takes the place of the feature that has its method.
  const none = (): never => {
    throw new Error("not asked for");
  };
  vi.spyOn(transfersFeature, "create").mockReturnValue({ offers: { transfersRpc: { transfer: none } } });
  await reset();
  await seed();
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("one definition and one line add a capability: table, method, alarm, tool, port", async () => {
  const tool = composeNativeTools(env.STORAGE, { features: WITH_REMINDERS.definitions, log: silent }).entries.find(
    ({ feature }) => feature === "reminders",
  );
  expect(tool).toMatchObject({ definition: { name: "gsv__Reminder" }, target: { kind: "native" }, guests: "none" });
  await runInDurableObject(gateway(), async (instance, state) => {
    const { kernel, ports } = composeGateway(state, env, instance, WITH_REMINDERS);
    const { 0: near, 1: far } = new WebSocketPair();
    kernel.server.accept(far, { address: "", vouched: false });
    const peer = new Peer(near);
    const ask = async (id: string, method: string, params: unknown) => {
      await kernel.server.message(far, JSON.stringify({ type: "req", id, method, params }));
      return peer.answer(id);
    };
    const hello = await ask("hello", "connect", connectParams("node", "example", ADMIN, { tools: TOOLS, ledger: { calls: [] } }));
    expect(hello).toMatchObject({ ok: true, payload: { features: { methods: expect.arrayContaining(["transfer.meta"]) } } });
    const before = kernel.ports.contextVersion();
    expect(await ask("start", "transfer.meta", { transferId: 1, size: 1 })).toMatchObject({ ok: true, payload: { ok: true } });
    expect(kernel.ports.contextVersion()).not.toBe(before);
    expect(ports.reminders.due()).toBeTypeOf("number");
    await kernel.alarm();
    expect(all(state.storage.sql, "SELECT rung FROM reminders")).toEqual([{ rung: 1 }]);
    expect(ports.reminders.due()).toBeUndefined();
    expect(all(state.storage.sql, "SELECT * FROM schema_version ORDER BY owner")).toEqual(
      expect.arrayContaining([
        { owner: "gateway", version: 9 },
        { owner: "reminders", version: 1 },
      ]),
    );
  });
});

test("two features with the same method throw", async () => {
  await runInDurableObject(gateway(), async (instance, state) => {
    const twice = WITH_REMINDERS.add({
      name: "again",
      create: () => ({ offers: {}, methods: { "transfer.meta": () => succeed({ ok: true as const }) } }),
    });
    expect(() => composeGateway(state, env, instance, twice)).toThrow("transfer.meta");
  });
});
