/** Open calls of clients that an older version wrote: they are converted, and end as any other call. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test, vi } from "vitest";
import { CallStore } from "../../../src/features/nodes/call-store.ts";
import { NODE_HISTORY, NODE_MIGRATIONS } from "../../../src/features/nodes/migrations.ts";
import { client, gateway, node, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

beforeEach(async () => {
  await reset();
  await seed();
});

const OLD = "INSERT INTO pending_calls VALUES(?, ?, ?, ?, 'tok', 'lap', ?, ?, ?, ?, 1000, ?, ?)";

test("[G7] rows of pending_calls become records of calls", async () => {
  const admin = await client();
  await node("lap");
  const far = Date.now() + 3_600_000;
  const converted = await runInDurableObject(gateway(), (_gateway, state) => {
    const { sql } = state.storage;
    const [conn] = state.getWebSockets().flatMap((socket) => {
      const kept = socket.deserializeAttachment() as { conn: string; principal?: { mode: string } };
      return kept.principal?.mode === "client" ? [kept.conn] : [];
    });
    sql.exec("DROP TABLE client_calls");
    sql.exec("DROP TABLE node_processes");
    sql.exec("DROP TABLE node_waits");
    sql.exec("DROP TABLE client_commands");
    for (const column of ["sandbox", "desktop", "silent_at", "workspace", "file_roots"])
      sql.exec(`ALTER TABLE nodes DROP COLUMN ${column}`);
    sql.exec("ALTER TABLE nodes RENAME TO kept_nodes");
    for (const { up } of NODE_HISTORY) up(sql);
    sql.exec("DROP TABLE nodes");
    sql.exec("ALTER TABLE kept_nodes RENAME TO nodes");
    sql.exec(OLD, "gw/tok/one", "tool", conn, "q-one", "Bash", "one", 0, "sent", far, null);
    sql.exec(OLD, "gw/tok/two", "tool", conn, "q-two", "Bash", null, 0, "waiting", far, far - 1);
    sql.exec(OLD, "gw/tok/three", "request", conn, "q-three", "Read", "three", 1, "sent", far, null);
    sql.exec(OLD, "gw/tok/four", "logs", conn, "q-four", "logs", null, 1, "sent", far, null);
    sql.exec(OLD, "gw/session/five", "logs", "inside", "q-five", "logs", null, 1, "sent", far, null);
    for (const { up } of NODE_MIGRATIONS) up(sql);
    const store = new CallStore(state.storage);
    return ["gw/tok/one", "gw/tok/two", "gw/tok/three", "gw/tok/four", "gw/session/five"].map((callId) => store.get(callId));
  });
  const target = { kind: "node", nodeId: "lap" };
  expect(converted).toMatchObject([
    {
      call: { status: "dispatched", name: "lap__Bash", target, ledger: true, idempotent: false, startedAt: 1000, deadline: far },
      kind: "tool",
      ownName: "one",
      origin: { kind: "client", tokenId: "tok" },
      waiter: { kind: "client", request: "q-one" },
    },
    { call: { status: "in_grace", graceUntil: far - 1 }, waiter: { kind: "client", request: "q-two" } },
    { call: { name: "lap__Read", idempotent: true }, kind: "tool", waiter: { kind: "none" } },
    { call: { name: "logs.get" }, kind: "logs", waiter: { kind: "client", request: "q-four" } },
    { kind: "logs", origin: { kind: "gateway" }, waiter: { kind: "inside" } },
  ]);

  await evict(gateway(), { webSockets: "hibernate" });
  const lap = await node("lap", undefined, { ledger: { calls: [{ callId: "gw/tok/one", state: "started" }] } });
  expect((await admin.answer("q-two")).error).toMatchObject({ reason: "node.offline", message: expect.stringContaining("did not reach") });
  await lap.ok("tool.result", { callId: "gw/tok/one", result: "done" });
  expect((await admin.answer("q-one")).payload).toEqual({ result: "done", callId: "one" });
  const now = vi.spyOn(Date, "now").mockReturnValue(far + 1);
  await runInDurableObject(gateway(), (object) => object.alarm()).finally(() => now.mockRestore());
  expect((await admin.answer("q-four")).error?.reason, "its link was replaced").toBe("node.offline");
  expect(await runInDurableObject(gateway(), (_gateway, state) => new CallStore(state.storage).nextDeadline())).toBeUndefined();
});
