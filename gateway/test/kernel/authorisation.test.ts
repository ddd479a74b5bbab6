/** Every method of the contract, by every kind of caller. The rows come from METHODS, so a new method has a row automatically. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { METHODS, type MethodName } from "../../../protocol/gen/methods.ts";
import { Tokens } from "../../src/kernel/token-store.ts";
import {
  ADMIN,
  type Asked,
  connectParams,
  fakeSessions,
  gateway,
  open,
  type Peer,
  seed,
  sha256,
  TOOLS,
  token,
} from "../support/gateway.ts";

/** The access of each kind of caller, repeated here so that a change of `authorise.ts` must be intended. */
const ROLES = {
  admin: { mode: "client", scopes: ["read", "chat", "operate", "admin"] },
  "admin as node": { mode: "node", scopes: ["node"] },
  client: { mode: "client", scopes: ["read", "chat", "operate"] },
  "client-ro": { mode: "client", scopes: ["read"] },
  node: { mode: "node", scopes: ["node"] },
  channel: { mode: "channel", scopes: ["channel"] },
} as const satisfies Record<string, { mode: string; scopes: readonly string[] }>;
type Role = keyof typeof ROLES;
const isMethod = (name: string): name is MethodName => Object.hasOwn(METHODS, name);
const methods = Object.keys(METHODS).filter(isMethod);

const peers = new Map<Role, Peer>();
let asked: Asked[];
beforeAll(async () => {
  await reset();
  asked = fakeSessions().asked;
  await seed();
  const secrets: Record<Role, string> = {
    admin: ADMIN,
    "admin as node": ADMIN,
    client: (await token("client")).token,
    "client-ro": (await token("client-ro")).token,
    node: (await token("node", { nodeId: "lap" })).token,
    channel: (await token("channel", { channel: "discord" })).token,
  };
  for (const [role, { mode }] of Object.entries(ROLES) as [Role, (typeof ROLES)[Role]][]) {
    const peer = await open();
    const params = connectParams(
      mode,
      role === "node" ? "lap" : role.replaceAll(" ", "-"),
      secrets[role],
      mode === "node" ? { tools: TOOLS, ledger: { calls: [] } } : {},
    );
    await peer.ok("connect", { ...params, client: { ...params.client, ...(mode === "channel" ? { channel: "discord" } : {}) } });
    peers.set(role, peer);
  }
});
afterAll(() => {
  vi.restoreAllMocks();
});

describe.each(Object.keys(ROLES) as Role[])("[A1][S3] %s", (role) => {
  test.each(methods)("%s", async (method) => {
    const { mode, scopes } = ROLES[role];
    const { scope } = METHODS[method];
    const before = asked.length;
    const res = await peers.get(role)?.call(method);
    const reason = res?.ok === false ? res.error?.reason : "ok";
    if (method === "connect") expect(reason).toBe("protocol.already_connected");
    else if (METHODS[method].callers.some((caller) => caller === mode) && (mode !== "client" || scopes.some((own) => own === scope)))
      expect(reason).not.toMatch(/^auth\./);
    else {
      expect(reason).toBe("auth.forbidden");
      expect(asked.length, "nothing may have happened").toBe(before);
    }
  });
});

test("a refusal names the kinds of tokens that may call the method, and how to make one", async () => {
  const refusal = async (role: Role, method: MethodName) => {
    const { message, hint } = await (peers.get(role) as Peer).refused(method);
    return [message, hint];
  };
  expect(await refusal("client-ro", "chat.send")).toEqual([
    "A client-ro token may not call chat.send: that takes a client or admin token.",
    "Run the command on the gateway's machine, or make such a token there (`gsv token create --scope client`) and store it here: `gsv local-config set token -`.",
  ]);
  expect(await refusal("client", "config.set")).toEqual([
    "A client token may not call config.set: that takes an admin token.",
    "Run the command on the gateway's machine, or make such a token there (`gsv token create --scope admin`) and store it here: `gsv local-config set token -`.",
  ]);
  expect((await refusal("node", "sessions.list"))[0]).toBe(
    "A node may not call sessions.list: that takes a client-ro, client or admin token.",
  );
  // What a token cannot get is not offered.
  expect((await refusal("admin", "tool.result"))[0]).toBe("A client may not call tool.result: only nodes call it.");
  for (const role of Object.keys(ROLES) as Role[])
    for (const method of methods) {
      const res = await (peers.get(role) as Peer).call(method);
      if (res.ok === false && res.error?.reason === "auth.forbidden")
        expect(JSON.stringify(res.error)).not.toMatch(/operate|the scope chat|necessary scope/);
    }
});

test.each(methods)("[S1] without a token: %s", async (method) => {
  const peer = await open();
  const error = await peer.refused(method, method === "connect" ? connectParams("client", "x", undefined) : undefined);
  expect(error.reason).toBe(method === "connect" ? "auth.required" : "protocol.not_connected");
  expect((await peer.ended()).code).toBe(method === "connect" ? 4001 : 4000);
});

test("[S3] nodes and channels may call exactly these methods", () => {
  const open = (mode: "node" | "channel"): string[] =>
    methods.filter((method) => method !== "connect" && METHODS[method].callers.some((caller) => caller === mode)).sort();
  expect(open("node")).toEqual([
    "logs.result",
    "node.exec.event",
    "notify.shown",
    "tool.progress",
    "tool.result",
    "tools.list",
    "transfer.accept",
    "transfer.ack",
    "transfer.complete",
    "transfer.done",
    "transfer.meta",
    "undo.report",
  ]);
  expect(open("channel")).toEqual(["channel.inbound"]);
});

test("[S3] a node that asks for tools gets its own only", async () => {
  const names = async (role: Role): Promise<string[]> => {
    const { tools } = (await peers.get(role)?.ok<{ tools: { name: string }[] }>("tools.list")) ?? { tools: [] };
    return tools.map(({ name }) => name);
  };
  expect(await names("node")).toEqual(["lap__Bash", "lap__Read"]);
  expect(await names("client")).toEqual(expect.arrayContaining(["admin-as-node__Bash", "lap__Bash", "gsv__ReadFile"]));
});

describe("[X2] a node can't use the reference's privileges", () => {
  test.each([
    ["config.get", { path: "apiKeys.anthropic" }],
    ["config.set", { path: "toolApproval.defaultDecision", value: "allow" }],
    ["workspace.write", { path: "SOUL.md", content: "obey me" }],
    ["workspace.read", { path: "MEMORY.md" }],
    ["chat.send", { sessionKey: "main", message: "hi" }],
    ["session.preview", { sessionKey: "main" }],
    ["tokens.create", { kind: "admin" }],
    [
      "channel.inbound",
      { channel: "discord", accountId: "default", peer: { kind: "dm", id: "1" }, message: { id: "1", text: "as the owner" } },
    ],
    ["tool.invoke", { tool: "lap__Bash", args: { command: "id" } }],
  ] as const)("%s", async (method, params) => {
    for (const role of ["node", "admin as node"] as const)
      expect((await peers.get(role)?.refused(method, params))?.reason, role).toBe("auth.forbidden");
  });
});

describe("[S4] a token that is revoked or expires while its connection is open", () => {
  test("revoked: the connection is closed immediately, and the id is free", async () => {
    const mine = await token("client");
    const peer = await open();
    await peer.ok("connect", connectParams("client", "short-lived", mine.token));
    const answer = await peers.get("admin")?.ok("tokens.revoke", { tokenId: mine.tokenId });
    expect(answer).toMatchObject({ ok: true, closed: 1 });
    expect((await peer.ended()).code).toBe(4001);
    const again = await open();
    expect((await again.refused("connect", connectParams("client", "short-lived", mine.token))).reason).toBe("auth.required");
  });

  test("expired: the next request is refused and the connection closed", async () => {
    const mine = await token("client", { expiresInMs: 60_000 });
    const peer = await open();
    await peer.ok("connect", connectParams("client", "expiring", mine.token));
    const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 61_000);
    try {
      expect((await peer.refused("sessions.list")).reason).toBe("auth.required");
    } finally {
      now.mockRestore();
    }
    expect((await peer.ended()).code).toBe(4001);
  });

  test("expired: a silent connection is closed by the alarm", async () => {
    const mine = await token("client", { expiresInMs: 60_000 });
    const peer = await open();
    await peer.ok("connect", connectParams("client", "silent", mine.token));
    const at = await runInDurableObject(gateway(), (_gateway, state) => state.storage.getAlarm());
    expect(at).toBeLessThanOrEqual(Date.now() + 60_000);
    const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 61_000);
    try {
      await runInDurableObject(gateway(), (object) => object.alarm());
    } finally {
      now.mockRestore();
    }
    expect((await peer.ended()).code).toBe(4001);
  });
});

test("[A5][S4] the lifecycle of a token", async () => {
  const admin = peers.get("admin");
  if (admin === undefined) throw new Error("no admin");
  const made = await admin.ok<{ token: string; entry: { tokenId: string; last4: string } }>("tokens.create", {
    kind: "client",
    label: "phone",
    expiresInMs: 60_000,
  });
  expect(made.token).toMatch(/^gsv_client_[a-z2-7]{8}_[0-9a-f]{64}$/);
  expect(made.token.endsWith(made.entry.last4)).toBe(true);
  const listed = await admin.ok<{ tokens: { tokenId: string; lastUsedAt?: number }[] }>("tokens.list");
  expect(JSON.stringify(listed)).not.toContain(made.token.slice(-64));
  expect(listed.tokens.find(({ tokenId }) => tokenId === made.entry.tokenId)).not.toHaveProperty("lastUsedAt");
  const peer = await open();
  await peer.ok("connect", connectParams("client", "phone", made.token));
  const used = await admin.ok<{ tokens: { tokenId: string; lastUsedAt?: number }[] }>("tokens.list");
  expect(used.tokens.find(({ tokenId }) => tokenId === made.entry.tokenId)).toHaveProperty("lastUsedAt");
  expect(await admin.ok("tokens.revoke", { tokenId: made.entry.tokenId })).toMatchObject({ closed: 1 });
  expect(await admin.ok("tokens.revoke", { tokenId: made.entry.tokenId })).toMatchObject({ closed: 0 });
  expect((await admin.refused("tokens.revoke", { tokenId: "nope" })).reason).toBe("token.not_found");
});

test("[A5] a token is used as long as its connection is, and until the end of it", async () => {
  const admin = peers.get("admin");
  if (admin === undefined) throw new Error("no admin");
  const mine = await token("client");
  const peer = await open();
  await peer.ok("connect", connectParams("client", "long", mine.token));
  const entry = async () =>
    (await admin.ok<{ tokens: { tokenId: string; lastUsedAt?: number; connected?: boolean }[] }>("tokens.list")).tokens.find(
      ({ tokenId }) => tokenId === mine.tokenId,
    );
  const begun = (await entry())?.lastUsedAt ?? 0;
  expect(await entry()).toMatchObject({ connected: true });
  const later = begun + 5 * 3_600_000;
  const now = vi.spyOn(Date, "now").mockReturnValue(later);
  try {
    peer.socket.close();
    await vi.waitFor(async () => expect(await entry()).not.toHaveProperty("connected"));
    expect(await entry()).toMatchObject({ lastUsedAt: later });
  } finally {
    now.mockRestore();
  }
});

test("[S4] the last admin token can't be revoked, and a revoked first token is not imported again", async () => {
  const admin = peers.get("admin");
  const first = await runInDurableObject(gateway(), (_gateway, state) =>
    new Tokens(state.storage).list().find((entry) => entry.label === "first token"),
  );
  expect((await admin?.refused("tokens.revoke", { tokenId: first?.tokenId }))?.reason).toBe("token.last_admin");
  const other = await admin?.ok<{ token: string }>("tokens.create", { kind: "admin" });
  const second = await open();
  await second.ok("connect", connectParams("client", "second-admin", other?.token));
  await second.ok("tokens.revoke", { tokenId: first?.tokenId });
  expect((await admin?.ended())?.code).toBe(4001);
  await seed();
  const again = await open();
  expect((await again.refused("connect", connectParams("client", "x", ADMIN))).reason).toBe("auth.required");
});

test("[A5][S4][X19] only a digest is stored", async () => {
  const made = await token("client");
  const dump = await runInDurableObject(gateway(), (_gateway, state) =>
    JSON.stringify(state.storage.sql.exec("SELECT * FROM tokens").toArray()),
  );
  expect(dump).not.toContain(made.token.slice(-64));
  expect(dump).not.toContain(ADMIN);
});

test("tokens are bound to what their kind needs", async () => {
  for (const bad of [
    { kind: "node" },
    { kind: "node", nodeId: "gsv" },
    { kind: "node", nodeId: "Gsv" },
    { kind: "node", nodeId: "a b" },
    { kind: "node", nodeId: "a__b" },
    { kind: "channel" },
    { kind: "client", nodeId: "x" },
    { kind: "admin", channel: "x" },
  ] as const) {
    const made = await runInDurableObject(gateway(), (_gateway, state) => new Tokens(state.storage).create(bad, Date.now()));
    expect(made, JSON.stringify(bad)).toMatchObject({ ok: false, error: { reason: "protocol.invalid_params" } });
  }
});

test("[RM7] no token is made for a name that can't connect, and one that an earlier version made is still read", async () => {
  const made = await token("node", { nodeId: "a-b" });
  const read = await runInDurableObject(gateway(), async (_gateway, state) => {
    const tokens = new Tokens(state.storage);
    const refused = await tokens.create({ kind: "node", nodeId: "a__b" }, Date.now());
    expect(refused).toMatchObject({ ok: false, error: { hint: "Choose another name, such as `laptop`." } });
    state.storage.sql.exec("UPDATE tokens SET node_id = 'a__b' WHERE node_id = 'a-b'");
    return [(await tokens.verify(made.token, Date.now()))?.nodeId, tokens.list().some(({ nodeId }) => nodeId === "a__b")];
  });
  expect(read).toEqual(["a__b", true]);
});

test("[S4] a new first token replaces the one before it and leaves other tokens valid", async () => {
  await reset();
  await seed();
  const other = await token("admin");
  const hash = await sha256("gsv_admin_newfirst_0123456789");
  const states = await runInDurableObject(gateway(), (_gateway, state) => {
    const tokens = new Tokens(state.storage);
    const [old] = tokens.list().filter((entry) => entry.label === "first token");
    expect(tokens.importFirst(hash, Date.now())).toEqual([old?.tokenId]);
    expect(tokens.importFirst(hash, Date.now()), "nothing is replaced twice").toEqual([]);
    return tokens.list().map(({ tokenId, revokedAt }) => [tokenId, revokedAt === undefined]);
  });
  expect(states).toHaveLength(3);
  expect(new Map(states as [string, boolean][]).get(other.tokenId)).toBe(true);
  expect((states as [string, boolean][]).filter(([, valid]) => valid).map(([id]) => id)).toContain(`first-${hash.slice(0, 6)}`);
  const peer = await open();
  expect((await peer.refused("connect", connectParams("client", "x", ADMIN))).reason).toBe("auth.required");
});
