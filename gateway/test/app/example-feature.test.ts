/**
 * The example of features/README.md: a capability is one definition, and one line adds it to a gateway. It has its own table, a
 * method, an alarm, a part of the version of run contexts, and a native tool, and uses a port of an earlier feature. Each method of the
 * contract is served already, so the example serves `invite.create` in the place of the feature `invites`.
 */
import { succeed } from "../../src/ports/result.ts";
import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { composeGateway } from "../../src/app/compose.ts";
import { FEATURES } from "../../src/app/features.ts";
import { composeNativeTools } from "../../src/app/native-tools.ts";
import { invitesFeature } from "../../src/features/invites/index.ts";
import { type FeatureDefinition, FeatureList } from "../../src/kernel/feature.ts";
import type { KernelPorts } from "../../src/kernel/ports.ts";
import { all, one, run } from "../../src/platform/sql.ts";
import type { NotifyPort } from "../../src/ports/notify.ts";
import { tool } from "../../src/tools/tool.ts";
import { ADMIN, connectParams, gateway, Peer, seed, silent } from "../support/gateway.ts";

interface GuestListPort {
  readonly guestList: { nextEnd(): number | undefined };
}
type Needs = NotifyPort & Pick<KernelPorts, "arm" | "database" | "ids">;

/** The export of a folder `features/guest-list/`: invitations, and a notification when one has expired. */
const guestListFeature: FeatureDefinition<Needs, GuestListPort> = {
  name: "guest-list",
  migrations: [
    {
      name: "guests",
      up: (sql) => {
        sql.exec("CREATE TABLE guests(id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0) STRICT");
      },
    },
  ],
  tools: [
    tool(
      { name: "gsv__GuestList", description: "Answers what the guest list is.", policyClass: "read_private", properties: {} },
      {},
      async (_args, { callId }) => ({ ok: true, result: { callId } }),
    ),
  ],
  create({ database: { sql }, arm, ids, notify }) {
    const nextEnd = (): number | undefined =>
      one<{ at: number | null }>(sql, "SELECT min(expires_at) AS at FROM guests WHERE ended = 0")?.at ?? undefined;
    const end = (now: number): void => {
      for (const { id } of all<{ id: string }>(sql, "UPDATE guests SET ended = 1 WHERE ended = 0 AND expires_at <= ? RETURNING id", now))
        notify.tell({ kind: "machine", key: `guest/${id}`, cause: "guest-list", text: "An invitation has expired." });
    };
    return {
      offers: { guestList: { nextEnd } },
      methods: {
        "invite.create": ({ now }) => {
          const [inviteId, secret, expiresAt] = [ids.name(16), ids.name(32), now + LIMITS.inviteMs];
          run(sql, "INSERT INTO guests(id, expires_at) VALUES(?, ?)", inviteId, expiresAt);
          arm();
          return succeed({ inviteId, secret, expiresAt });
        },
      },
      alarms: [{ name: "guest_list", next: nextEnd, run: end }],
      contextVersion: () => String(nextEnd() ?? 0),
    };
  },
};

/** The line that adds it. */
const WITH_GUEST_LIST = FEATURES.add(guestListFeature);

beforeEach(async () => {
  // Two features never serve the same method, so the other one serves none.
  const none = (): never => {
    throw new Error("not asked for");
  };
  vi.spyOn(invitesFeature, "create").mockReturnValue({ offers: { joinRpc: { join: none } } });
  await reset();
  await seed();
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("one definition and one line add a capability: table, method, alarm, tool, port", async () => {
  const tool = composeNativeTools(env.STORAGE, { features: WITH_GUEST_LIST.definitions, log: silent }).entries.find(
    ({ feature }) => feature === "guest-list",
  );
  expect(tool).toMatchObject({ definition: { name: "gsv__GuestList" }, target: { kind: "native" }, guests: "none" });
  await runInDurableObject(gateway(), async (instance, state) => {
    const { kernel, ports } = composeGateway(state, env, instance, WITH_GUEST_LIST);
    const { 0: near, 1: far } = new WebSocketPair();
    kernel.server.accept(far, { address: "", vouched: false });
    const peer = new Peer(near);
    const ask = async (id: string, method: string, params: unknown) => {
      await kernel.server.message(far, JSON.stringify({ type: "req", id, method, params }));
      return peer.answer(id);
    };
    const hello = await ask("hello", "connect", connectParams("client", "example", ADMIN));
    expect(hello).toMatchObject({ ok: true, payload: { features: { methods: expect.arrayContaining(["invite.create"]) } } });
    const before = kernel.ports.contextVersion();
    const invited = await ask("invite", "invite.create", { kind: "node" });
    expect(invited).toMatchObject({ ok: true, payload: { inviteId: expect.any(String), expiresAt: ports.guestList.nextEnd() } });
    expect(kernel.ports.contextVersion()).not.toBe(before);
    expect(ports.guestList.nextEnd()).toBeTypeOf("number");
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + LIMITS.inviteMs);
    await kernel.alarm();
    expect(all(state.storage.sql, "SELECT ended FROM guests")).toEqual([{ ended: 1 }]);
    expect(ports.guestList.nextEnd()).toBeUndefined();
    expect(ports.notifyRows.list(10, Number.MAX_SAFE_INTEGER, "machine")).toMatchObject([{ text: "An invitation has expired." }]);
    expect(all(state.storage.sql, "SELECT * FROM schema_version ORDER BY owner")).toEqual(
      expect.arrayContaining([
        { owner: "gateway", version: 9 },
        { owner: "guest-list", version: 1 },
      ]),
    );
  });
});

test("two features that offer the same port throw", () => {
  const first = { name: "one", create: () => ({ offers: { door: 1 } }) };
  const list = FeatureList.over<object>()
    .add(first)
    .add({ ...first, name: "two" });
  expect(() => list.create({})).toThrow("two features offer the port door");
});

test("two features with the same method throw", async () => {
  await runInDurableObject(gateway(), async (instance, state) => {
    const twice = WITH_GUEST_LIST.add({
      name: "again",
      create: () => ({
        offers: {},
        methods: { "invite.create": () => succeed({ inviteId: "again", secret: "again", expiresAt: 1 }) },
      }),
    });
    expect(() => composeGateway(state, env, instance, twice)).toThrow("invite.create");
  });
});
