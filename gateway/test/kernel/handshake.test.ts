import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { checkConnectResult } from "../../../protocol/gen/validators/checks.js";
import { Tokens } from "../../src/kernel/token-store.ts";
import {
  ADMIN,
  client,
  connectParams,
  fakeSessions,
  gateway,
  node,
  open,
  type Peer,
  seed,
  TOOLS,
  token,
  until,
  upgrade,
} from "../support/gateway.ts";

beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Refused {
  readonly reason: string | undefined;
  readonly code: number | undefined;
  readonly hint: string | undefined;
  readonly closed: number;
}
const refusedConnect = async (params: unknown): Promise<Refused> => {
  const peer = await open();
  const { reason, code, hint } = await peer.refused("connect", params);
  return { reason, code, hint, closed: (await peer.ended()).code };
};

describe("before a socket", () => {
  test("[H2][S1] without any token the upgrade is answered 503, and says how to set one", async () => {
    await reset();
    const response = await upgrade();
    expect(response.status).toBe(503);
    expect(response.headers.get("Content-Type")).toBe("application/problem+json");
    expect(await response.json()).toMatchObject({ reason: "auth.not_configured", code: 503, hint: expect.stringContaining("gsv up") });
  });

  test("[H7][S2][X5] a browser's origin that is not allowed is refused with 403", async () => {
    for (const origin of ["https://evil.example", "null", "http://localhost", "https://good.example.evil.example", "garbage"]) {
      const response = await upgrade({ Origin: origin });
      expect(response.status, origin).toBe(403);
      expect(await response.json()).toMatchObject({ reason: "auth.origin" });
    }
  });

  test("[H7] an origin that the configuration allows can connect", async () => {
    const admin = await client();
    await admin.ok("config.set", { path: "auth.allowedOrigins", value: ["https://good.example"] });
    expect((await upgrade({ Origin: "https://good.example" })).status).toBe(101);
    expect((await upgrade({ Origin: "https://good.example:8443" })).status).toBe(403);
  });

  test("[X6] [F13] sockets without hello are capped for each address: the oldest makes way for a newer one", async () => {
    const at = { "CF-Connecting-IP": "192.0.2.1" };
    const other = await open({ "CF-Connecting-IP": "192.0.2.2" });
    const peers: Peer[] = [];
    for (let count = 0; count < LIMITS.unauthSocketsPerAddress; count++) peers.push(await open(at));
    const newest = await open(at);
    expect((await peers[0]?.ended())?.code).toBe(1013);
    await newest.ok("connect", connectParams("client", "newest", ADMIN));
    for (const peer of [other, ...peers.slice(1)]) expect(peer.closed).toBeUndefined();
  });

  test("[X6] [F13] addresses of one IPv6 /64 count as one", async () => {
    const first = await open({ "CF-Connecting-IP": "2001:db8:1:2::1" });
    for (let at = 0; at < LIMITS.unauthSocketsPerAddress; at++) await open({ "CF-Connecting-IP": `2001:db8:1:2:${at}::9` });
    expect((await first.ended()).code).toBe(1013);
  });

  test("[X6] the total number of sockets is bounded: the oldest makes way", async () => {
    const peers: Peer[] = [];
    for (let at = 0; at < LIMITS.unauthSockets; at++) peers.push(await open({ "CF-Connecting-IP": `192.0.2.${at}` }));
    expect(peers.every((peer) => peer.closed === undefined)).toBe(true);
    await open({ "CF-Connecting-IP": "198.51.100.1" });
    expect((await peers[0]?.ended())?.code).toBe(1013);
    expect(peers.slice(1).every((peer) => peer.closed === undefined)).toBe(true);
  });

  test("[X6] [F13] [H9] 64 idle sockets and 192 fat ones: the owner is admitted", async () => {
    for (let at = 0; at < 64; at++) await open({ "CF-Connecting-IP": `192.0.2.${at}` });
    const fat = JSON.stringify({ type: "req", id: "1", method: "connect", params: { padding: "x".repeat(3 * 1024 * 1024) } });
    for (let at = 0; at < 192; at++) {
      const { webSocket } = await upgrade({ "CF-Connecting-IP": `198.51.100.${at}` });
      webSocket?.accept();
      webSocket?.send(fat);
    }
    const owner = await open({ Authorization: `Bearer ${ADMIN}`, "CF-Connecting-IP": "198.51.100.1" });
    await owner.ok("connect", connectParams("client", "owner", ADMIN));
  });

  test("[F13] a socket that was closed frees its place when its peer has answered", async () => {
    const at = { "CF-Connecting-IP": "192.0.2.1" };
    for (let round = 0; round < 3 * LIMITS.unauthSocketsPerAddress; round++) {
      const peer = await open(at);
      peer.send("{");
      await peer.ended();
      peer.socket.close(1000);
      await until("the close to arrive", () => peer.socket.readyState === WebSocket.CLOSED);
    }
  });

  test("[H9] [S1] a token at the upgrade admits the socket and nothing else: `connect` still decides", async () => {
    const peer = await open({ Authorization: `Bearer ${ADMIN}` });
    expect((await peer.refused("sessions.list")).reason).toBe("protocol.not_connected");
    const wrong = await open({ Authorization: "Bearer wrong-token-of-a-stranger" });
    expect((await wrong.refused("connect", connectParams("client", "a", undefined))).reason).toBe("auth.required");
    const other = await open({ Authorization: `Bearer ${ADMIN}` });
    expect((await other.refused("connect", connectParams("client", "a", "wrong-token-of-a-stranger"))).reason).toBe("auth.required");
  });
});

describe("the first frame", () => {
  test("[H5] hello-ok fits the contract and lists what this caller may call", async () => {
    const peer = await open();
    const hello = await peer.ok("connect", connectParams("client", "one", ADMIN));
    expect(checkConnectResult(hello)).toBe(true);
    expect(hello).toMatchObject({
      type: "hello-ok",
      protocol: 1,
      pingIntervalMs: LIMITS.pingIntervalMs,
      scopes: ["read", "chat", "operate", "admin"],
    });
    const { features } = hello as { features: { methods: string[]; events: string[] } };
    for (const served of ["chat.send", "channel.start", "channel.status", "pair.approve", "pair.list"])
      expect(features.methods).toContain(served);
    for (const unserved of ["channel.inbound", "tool.result", "connect"]) expect(features.methods).not.toContain(unserved);
    const ends = ["transfer.ack", "transfer.end", "transfer.receive", "transfer.send", "transfer.start"];
    expect(features.events).toEqual(["approval", "chat", "presence", "session", "tool.progress", ...ends]);
  });

  test("[F51] hello-ok names the owner's time zone to clients, once it is set", async () => {
    const zoneOf = async (id: string): Promise<unknown> =>
      (await (await open()).ok<{ server: { timeZone?: string } }>("connect", connectParams("client", id, ADMIN))).server.timeZone;
    expect(await zoneOf("one")).toBeUndefined();
    const peer = await open();
    await peer.ok("connect", connectParams("client", "two", ADMIN));
    await peer.ok("config.set", { path: "userTimezone", value: "America/New_York" });
    expect(await zoneOf("three")).toBe("America/New_York");
    await peer.ok("config.unset", { path: "userTimezone" });
    expect(await zoneOf("four")).toBeUndefined();
  });
  test("[F2] hello-ok lists the methods of heartbeats and schedules; settings of schedules that nothing reads are refused", async () => {
    const peer = await open();
    const { features } = await peer.ok<{ features: { methods: string[] } }>("connect", connectParams("client", "one", ADMIN));
    expect(features.methods).toEqual(expect.arrayContaining(["cron.add", "heartbeat.start", "heartbeat.status", "heartbeat.trigger"]));
    for (const [path, value] of [
      ["cron.enabled", true],
      ["cron.maxJobs", 3],
    ] as const)
      expect((await peer.refused("config.set", { path, value })).reason, path).toBe("config.not_served");
  });

  test("[H1][S1] any other first request is an error and closes the socket", async () => {
    for (const first of [
      { type: "req", id: "a", method: "sessions.list" },
      { type: "evt", event: "chat" },
      { type: "res", id: "a", ok: true },
      "{",
      "[]",
      '{"type":"req","id":"7","method":"connect"',
    ]) {
      const peer = await open();
      peer.send(first);
      expect((await peer.ended()).code).toBe(4000);
      expect(peer.frames).toHaveLength(1);
      expect(peer.frames[0]).toMatchObject({ type: "res", ok: false });
    }
  });

  test("[H1] a socket without hello in time is closed with 4008", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const [idle, busy] = [await open(), await open()];
      await busy.ok("connect", connectParams("client", "busy", ADMIN));
      const later = (ms: number): Promise<unknown> => runInDurableObject(gateway(), () => vi.advanceTimersByTime(ms));
      // The object's clock advances meanwhile, so its remaining wait is shorter.
      await later(LIMITS.connectTimeoutMs / 2);
      await busy.ok("sessions.list");
      expect(idle.closed).toBeUndefined();
      await later(LIMITS.connectTimeoutMs / 2);
      expect((await idle.ended()).code).toBe(4008);
      await busy.ok("sessions.list");
    } finally {
      vi.useRealTimers();
    }
  });

  test("[H1] requests sent before hello-ok are answered after it", async () => {
    const peer = await open();
    const hello = peer.ask("connect", connectParams("client", "a", ADMIN));
    const next = peer.ask("sessions.list");
    expect((await peer.answer(next)).ok).toBe(true);
    expect(peer.frames.map((frame) => (frame.type === "res" ? frame.id : ""))).toEqual([hello, next]);
  });

  test("[H8] size before hello: 4 KiB for a client, 256 KiB for a node", async () => {
    const pad = (bytes: number) => ({ padding: "x".repeat(bytes) });
    expect(await refusedConnect(connectParams("client", "a", ADMIN, pad(LIMITS.unauthFrameBytes)))).toMatchObject({
      reason: "protocol.too_large",
      closed: 4000,
    });
    expect(await refusedConnect(connectParams("node", "a", ADMIN, pad(LIMITS.unauthNodeFrameBytes)))).toMatchObject({
      reason: "protocol.too_large",
      closed: 4000,
    });
    await node("big", ADMIN, pad(LIMITS.unauthFrameBytes * 8));
  });

  test("[H8][X1] a binary frame before hello closes the socket", async () => {
    const peer = await open();
    peer.socket.send(new Uint8Array([1, 0, 0, 0, 42]));
    expect((await peer.ended()).code).toBe(4000);
    expect(peer.frames).toEqual([]);
  });

  test("[H6] versions must overlap", async () => {
    expect(await refusedConnect({ ...connectParams("client", "a", ADMIN), minProtocol: 2, maxProtocol: 3 })).toEqual({
      reason: "protocol.version",
      code: 102,
      hint: ERRORS["protocol.version"].hint,
      closed: 4002,
    });
    expect(await refusedConnect({ ...connectParams("client", "a", ADMIN), minProtocol: 0, maxProtocol: 0 })).toMatchObject({
      reason: "protocol.version",
    });
    const peer = await open();
    await peer.ok("connect", { ...connectParams("client", "a", ADMIN), minProtocol: 0, maxProtocol: 9 });
  });

  test("[FR3] bad params of connect are explained without their values", async () => {
    const peer = await open();
    const error = await peer.refused("connect", { ...connectParams("client", "a", ADMIN), maxProtocol: "hunter2" });
    expect(error).toMatchObject({ reason: "protocol.bad_connect", code: 103 });
    expect(error.message).toContain("maxProtocol");
    expect(JSON.stringify(error)).not.toContain("hunter2");
  });

  test("[H1] connect is allowed once", async () => {
    const peer = await client();
    expect(await peer.refused("connect", connectParams("client", "b", ADMIN))).toMatchObject({ reason: "protocol.already_connected" });
    await peer.ok("sessions.list");
  });
});

describe("connecting with tokens", () => {
  test("[H2][S4] wrong, missing, revoked and expired tokens look the same and close with 4001", async () => {
    const revoked = await token("client");
    const expired = await token("client", { expiresInMs: 1000 });
    await runInDurableObject(gateway(), (_gateway, state) => {
      new Tokens(state.storage).revoke(revoked.tokenId, Date.now());
      state.storage.sql.exec("UPDATE tokens SET expires_at = ? WHERE id = ?", Date.now() - 1, expired.tokenId);
    });
    for (const auth of [
      undefined,
      "",
      "wrong",
      `${ADMIN}x`,
      ADMIN.slice(0, -1),
      revoked.token,
      expired.token,
      "gsv_admin_aaaaaaaa_".padEnd(64, "0"),
    ]) {
      const { reason, code, closed } = await refusedConnect(connectParams("client", "a", auth));
      expect({ reason, code, closed }, String(auth).slice(0, 12)).toEqual({ reason: "auth.required", code: 401, closed: 4001 });
    }
  });

  test("[X20] a multibyte token of the same length is refused like any other", async () => {
    expect(await refusedConnect(connectParams("client", "a", "ü".repeat(ADMIN.length)))).toMatchObject({
      reason: "auth.required",
      closed: 4001,
    });
    expect(await refusedConnect(connectParams("client", "a", "\ud800".repeat(ADMIN.length)))).toMatchObject({ closed: expect.any(Number) });
  });

  test("[S4] more than ten failures per minute from one address are answered 429; a valid token still connects", async () => {
    const seen: (string | undefined)[] = [];
    for (let at = 0; at <= LIMITS.authFailuresPerMinute; at++) {
      const peer = await open({ "CF-Connecting-IP": "203.0.113.9" });
      seen.push((await peer.refused("connect", connectParams("client", "a", "wrong"))).reason);
      await peer.ended();
      peer.socket.close(1000);
    }
    expect(seen.slice(0, LIMITS.authFailuresPerMinute)).toEqual(
      Array.from({ length: LIMITS.authFailuresPerMinute }, () => "auth.required"),
    );
    expect(seen.at(-1)).toBe("limit.rate");
    const good = await open({ "CF-Connecting-IP": "203.0.113.9" });
    await good.ok("connect", connectParams("client", "a", ADMIN));
  });

  test("[F72] [H3] [S3] a channel's token works for its own channel and account only", async () => {
    const bot = (await token("channel", { channel: "discord", accountId: "bot" })).token;
    const usual = (await token("channel", { channel: "discord" })).token;
    const as = (auth: string, more: Record<string, string>) => {
      const params = connectParams("channel", "x", auth);
      return { ...params, client: { ...params.client, ...more } };
    };
    for (const [auth, more] of [
      [bot, { channel: "discord", accountId: "other" }],
      [bot, { channel: "discord" }],
      [bot, { channel: "whatsapp", accountId: "bot" }],
      [bot, { accountId: "bot" }],
      [usual, { channel: "discord", accountId: "bot" }],
    ] as const)
      expect(await refusedConnect(as(auth, more)), JSON.stringify(more)).toMatchObject({ reason: "auth.bound", closed: 4003 });
    for (const [auth, more] of [
      [bot, { channel: "discord", accountId: "bot" }],
      [usual, { channel: "discord" }],
      [usual, { channel: "discord", accountId: "default" }],
    ] as const)
      await (await open()).ok("connect", as(auth, more));
  });

  test("[H3][S3] the caller's role comes from the token record, not from the frame", async () => {
    const ids = {
      client: (await token("client")).token,
      ro: (await token("client-ro")).token,
      node: (await token("node", { nodeId: "lap" })).token,
      channel: (await token("channel", { channel: "discord", accountId: "bot" })).token,
    };
    const refused: readonly (readonly [string, string, string, Record<string, unknown>?])[] = [
      [ids.client, "node", "auth.forbidden"],
      [ids.client, "channel", "auth.forbidden"],
      [ids.ro, "node", "auth.forbidden"],
      [ids.node, "client", "auth.forbidden"],
      [ids.node, "node", "auth.bound"],
      [ids.node, "channel", "auth.forbidden"],
      [ids.channel, "client", "auth.forbidden"],
      [ids.channel, "channel", "auth.bound"],
      [ADMIN, "channel", "auth.forbidden"],
    ];
    for (const [auth, mode, reason] of refused) {
      const { reason: got, closed } = await refusedConnect(connectParams(mode, "other", auth));
      expect({ got, closed }, `${auth.slice(0, 12)} as ${mode}`).toEqual({ got: reason, closed: 4003 });
    }
    await node("lap", ids.node);
    const channel = await open();
    const params = connectParams("channel", "x", ids.channel);
    await channel.ok("connect", { ...params, client: { ...params.client, channel: "discord", accountId: "bot" } });
    expect((await (await open()).ok("connect", connectParams("client", "ro", ids.ro)))["scopes"]).toEqual(["read"]);
  });

  test("[H3] an admin token as a node is audited", async () => {
    await node("box");
    const admin = await client();
    const { entries } = await admin.ok<{ entries: { action: string; target?: string; decision: string }[] }>("audit.list");
    expect(entries).toContainEqual(expect.objectContaining({ action: "connect", target: "node:box", decision: "allowed" }));
  });
});

describe("[H4] the same id again", () => {
  test("a newer connection with the same token replaces the older one", async () => {
    const first = await client(ADMIN, {}, "same");
    const second = await client(ADMIN, {}, "same");
    expect(await first.ended()).toEqual({ code: 1000, reason: expect.stringContaining("replaced") });
    await second.ok("sessions.list");
  });

  test("[F21] a node's id has no separator, so that no machine's tool has the name of another machine's", async () => {
    const thief = await token("node", { nodeId: "a-b" });
    // As an earlier version made it.
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE tokens SET node_id = 'a__b' WHERE node_id = 'a-b'");
    });
    expect(await refusedConnect(connectParams("node", "a__b", thief.token, { tools: TOOLS }))).toMatchObject({
      reason: "protocol.bad_connect",
    });
  });

  test("[X5][TH8] another token can't take over a node", async () => {
    const mine = await token("node", { nodeId: "lap" });
    const thief = await token("node", { nodeId: "lap" });
    const lap = await node("lap", mine.token);
    expect(await refusedConnect(connectParams("node", "lap", thief.token, { tools: TOOLS }))).toMatchObject({
      reason: "auth.forbidden",
      hint: "Close that connection first, or use its token, or give this machine another name: `gsv invite node --name OTHER`.",
      closed: 4003,
    });
    expect(lap.closed).toBeUndefined();
    await node("lap", ADMIN);
    expect((await lap.ended()).code).toBe(1000);
  });

  test("a client and a node may have the same id", async () => {
    const lap = await node("lap");
    await client(ADMIN, {}, "lap");
    await lap.ok("tool.progress", { callId: "a/b/c/d", phase: "started" });
  });
});

describe("connecting nodes", () => {
  const asNode = (id: string, more: Record<string, unknown> = {}) => refusedConnect(connectParams("node", id, ADMIN, more));
  test("names differ in more than case, except those of an earlier version", async () => {
    await node("lap");
    expect(await asNode("Lap")).toMatchObject({ reason: "protocol.bad_connect", closed: 4000 });
    for (const id of ["GSV", "a__b"])
      expect(await asNode(id)).toMatchObject({ reason: "protocol.bad_connect", hint: "Choose another name, such as `laptop`." });
    await runInDurableObject(gateway(), (_gateway, state) => {
      for (const id of ["Lap", "GSV"])
        state.storage.sql.exec(
          `INSERT INTO nodes(id, first_seen_at, last_seen_at, ledger, tools, host_capabilities, tool_capabilities, waiting) VALUES(?, 1, 1, 0, '[]', '[]', '{}', '[]')`,
          id,
        );
    });
    for (const id of ["lap", "Lap", "GSV"]) await node(id);
    expect(await asNode("LAP")).toMatchObject({ reason: "protocol.bad_connect" });
  });
  test("ids, tools and capabilities must fit together", async () => {
    expect(await asNode("gsv")).toMatchObject({ reason: "protocol.bad_connect", closed: 4000 });
    expect(await asNode("a b")).toMatchObject({ reason: "protocol.bad_connect" });
    expect(await asNode("../x")).toMatchObject({ reason: "protocol.bad_connect" });
    expect(await asNode("lap", { tools: [...TOOLS, TOOLS[0]] })).toMatchObject({ reason: "protocol.bad_connect" });
    expect(
      await asNode("lap", { tools: TOOLS, nodeRuntime: { hostCapabilities: [], toolCapabilities: { Read: ["filesystem.read"] } } }),
    ).toMatchObject({ reason: "protocol.bad_connect" });
    expect(
      await asNode("lap", {
        tools: TOOLS,
        nodeRuntime: { hostCapabilities: ["filesystem.read"], toolCapabilities: { Nope: ["filesystem.read"] } },
      }),
    ).toMatchObject({ reason: "protocol.bad_connect" });
    await node("lap", ADMIN, { nodeRuntime: { hostCapabilities: ["filesystem.read"], toolCapabilities: { Read: ["filesystem.read"] } } });
  });
});

test("[H5] the cap on authenticated sockets answers, it does not crash", async () => {
  const peers: Peer[] = [];
  for (let at = 0; at < LIMITS.authSockets; at++) peers.push(await client(ADMIN, {}, `c${at}`));
  const response = await upgrade();
  expect(response.status).toBe(503);
  peers[0]?.socket.close(1000);
  await until("the close to arrive", () => peers[0]?.closed);
  expect((await upgrade()).status).toBe(101);
});
