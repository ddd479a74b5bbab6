/** Invitations over real HTTP, with the real gateway. */
import { abortAllDurableObjects, reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { client, eventually, fakeSessions, fetchWorker, gateway, node, type Peer, seed, token } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

type Invited = ResultOf<"invite.create">;
let peer: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  peer = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const NONCE = "a1".repeat(32);
const OTHER_NONCE = "b2".repeat(32);
const invite = (kind: "node" | "client", name?: string): Promise<Invited> =>
  peer.ok<Invited>("invite.create", { kind, ...(name === undefined ? {} : { name }) });
const post = (body: unknown, init: RequestInit<IncomingRequestCfProperties> = {}): Promise<Response> =>
  fetchWorker("http://gsv.test/join", { method: "POST", body: JSON.stringify(body), ...init });
const asked = (secret: string, more: object = {}) => ({ secret, nonce: NONCE, kind: "node", nodeId: "laptop", ...more });
interface Joined {
  readonly status: number;
  readonly reason?: string;
  readonly token?: string;
  readonly nodeId?: string;
}
async function join(secret: string, more: object = {}): Promise<Joined> {
  const response = await post(asked(secret, more));
  return { ...(await response.json<Joined>()), status: response.status };
}
const tokens = async (): Promise<ResultOf<"tokens.list">["tokens"]> => (await peer.ok<ResultOf<"tokens.list">>("tokens.list")).tokens;

describe("[RM7] an invitation", () => {
  test("is exchanged for a token that is bound to the machine, works, and is in the audit without a secret", async () => {
    const { secret, inviteId } = await invite("node");
    const joined = await join(secret, { label: "gsv on laptop" });
    expect(joined).toMatchObject({ status: 200, kind: "node", nodeId: "laptop" });
    await node("laptop", joined.token);
    await expect(node("other", joined.token)).rejects.toThrow();
    expect(await tokens()).toContainEqual(expect.objectContaining({ kind: "node", nodeId: "laptop", label: "gsv on laptop" }));
    const { entries } = await peer.ok<ResultOf<"audit.list">>("audit.list", { action: "invite.join" });
    expect(entries).toMatchObject([{ actor: `invite:${inviteId}`, decision: "allowed", target: "laptop" }]);
    const all = JSON.stringify(await peer.ok("audit.list", {}));
    expect(all).toContain("invite.create");
    expect(all).not.toContain(secret);
    expect(all).not.toContain(joined.token);
  });

  test("for a client gives a client's rights and no more", async () => {
    const { secret } = await invite("client", "desk");
    const { token: made = "", nodeId } = await join(secret, { kind: "client" });
    expect(nodeId).toBeUndefined();
    const program = await client(made);
    await program.ok("sessions.list", {});
    expect((await program.refused("tokens.list")).reason).toBe("auth.forbidden");
    expect(await tokens()).toContainEqual(expect.objectContaining({ kind: "client", label: "desk" }));
  });

  test("is made with an admin token only, and a name is checked", async () => {
    const { token: plain } = await token("client");
    expect((await (await client(plain)).refused("invite.create", { kind: "node" })).reason).toBe("auth.forbidden");
    for (const name of ["gsv", "GSV", "-x", "a b", "a__b"])
      expect(await peer.refused("invite.create", { kind: "node", name })).toMatchObject({
        reason: "protocol.invalid_params",
        hint: "Choose another name, such as `laptop`.",
      });
    // The note of a client names no machine.
    for (const note of ["gsv", "Ada's desk, upstairs"]) {
      const joined = await join((await invite("client", note)).secret, { kind: "client" });
      expect(joined, note).toMatchObject({ status: 200, kind: "client" });
      expect(await tokens()).toContainEqual(expect.objectContaining({ kind: "client", label: note }));
    }
  });

  test("with a name binds the machine to that name, whatever it calls itself", async () => {
    const { secret } = await invite("node", "desk");
    expect(await join(secret)).toMatchObject({ status: 200, nodeId: "desk" });
  });

  test("without a name takes no name of another machine, and one by name takes its own again", async () => {
    await token("node", { nodeId: "laptop" });
    const { secret } = await invite("node");
    expect(await join(secret)).toMatchObject({ status: 409, reason: "invite.name_taken" });
    expect(await join(secret, { nodeId: "laptop-2" })).toMatchObject({ status: 200, nodeId: "laptop-2" });
    expect(await join((await invite("node", "laptop")).secret)).toMatchObject({ status: 200, nodeId: "laptop" });
  });

  test("for a machine that is connected now is made, with a warning that names the other way", async () => {
    expect(await invite("node", "laptop")).not.toHaveProperty("warning");
    const { token: made } = await token("node", { nodeId: "laptop" });
    const laptop = await node("laptop", made);
    const { warning, secret } = await invite("node", "laptop");
    expect(warning).toBe(
      "A machine called `laptop` is connected. If this is another machine, choose another name: `gsv invite node --name OTHER`.",
    );
    expect(await join(secret)).toMatchObject({ status: 200, nodeId: "laptop" });
    for (const [kind, name] of [
      ["client", "laptop"],
      ["node", "desk"],
      ["node", undefined],
    ] as const)
      expect(await invite(kind, name)).not.toHaveProperty("warning");
    laptop.socket.close(1000);
    await eventually(async () => expect(await invite("node", "laptop")).not.toHaveProperty("warning"));
  });

  test("takes no name that differs from another machine's only in case", async () => {
    await token("node", { nodeId: "laptop" });
    const { secret } = await invite("node");
    expect(await join(secret, { nodeId: "Laptop" })).toMatchObject({ status: 409, reason: "invite.name_taken" });
    for (const nodeId of ["GSV", "a__b"])
      expect(await join(secret, { nodeId })).toMatchObject({ status: 400, reason: "protocol.invalid_params" });
    const early = await invite("node", "Desk");
    for (const [method, params] of [
      ["invite.create", { kind: "node", name: "LAPTOP" }],
      ["tokens.create", { kind: "node", nodeId: "Laptop" }],
    ] as const)
      expect(await peer.refused(method, params)).toMatchObject({
        reason: "protocol.invalid_params",
        message: expect.stringContaining("already called `laptop`"),
      });
    await token("node", { nodeId: "desk" });
    expect(await join(early.secret)).toMatchObject({ status: 400, reason: "protocol.invalid_params" });
    expect(await join((await invite("client", "Laptop")).secret, { kind: "client" })).toMatchObject({ status: 200 });
  });

  test("without any name is refused and can still be used", async () => {
    const { secret } = await invite("node");
    expect(await join(secret, { nodeId: undefined })).toMatchObject({ status: 400, reason: "protocol.invalid_params" });
    expect(await join(secret)).toMatchObject({ status: 200 });
  });

  test("is one of a bounded number", async () => {
    for (let count = 1; count < LIMITS.invites; count++) await invite("node");
    const { secret } = await invite("client");
    expect((await peer.refused("invite.create", { kind: "node" })).reason).toBe("invite.limit");
    expect(await join(secret, { kind: "client" })).toMatchObject({ status: 200 });
    await invite("node");
  });
});

describe("[RM8] an invitation is valid once, for 10 minutes and for its kind", () => {
  test("used, late, wrong and of another kind have codes of their own and make no token", async () => {
    const before = (await tokens()).length;
    const used = await invite("node");
    const late = await invite("node");
    expect(await join("a".repeat(32))).toMatchObject({ status: 403, reason: "invite.wrong" });
    expect(await join(late.secret, { kind: "client" })).toMatchObject({ status: 403, reason: "invite.wrong" });
    expect(await join(used.secret)).toMatchObject({ status: 200 });
    expect(await join(used.secret, { nonce: OTHER_NONCE })).toMatchObject({ status: 409, reason: "invite.used" });
    vi.spyOn(Date, "now").mockReturnValue(late.expiresAt);
    expect(await join(late.secret)).toMatchObject({ status: 410, reason: "invite.expired" });
    expect(await join(used.secret)).toMatchObject({ status: 409, reason: "invite.used" });
    vi.restoreAllMocks();
    expect(await tokens()).toHaveLength(before + 1);
  });

  test("only one of two machines that use it at once gets a token", async () => {
    const { secret } = await invite("node");
    const both = await Promise.all([join(secret), join(secret, { nonce: OTHER_NONCE, nodeId: "desk" })]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await tokens()).filter(({ kind }) => kind === "node")).toHaveLength(1);
  });

  test("a flood of wrong secrets is slowed down, and keeps no right one out", async () => {
    const { secret } = await invite("node");
    const seen: (string | undefined)[] = [];
    for (let at = 0; at < LIMITS.joinFailuresPerMinute + 2; at++) seen.push((await join("b".repeat(32))).reason);
    expect(seen.slice(0, LIMITS.joinFailuresPerMinute)).toEqual(Array(LIMITS.joinFailuresPerMinute).fill("invite.wrong"));
    expect(seen.at(-1)).toBe("limit.rate");
    expect(await join(secret)).toMatchObject({ status: 200 });
  });

  test("requests that are none are refused without a look at invitations", async () => {
    const { secret } = await invite("node");
    expect((await fetchWorker("http://gsv.test/join")).status).toBe(405);
    expect((await post(asked(secret), { headers: { Origin: "https://evil.example" } })).status).toBe(403);
    expect((await post({ ...asked(secret), label: "x".repeat(LIMITS.joinBytes) })).status).toBe(413);
    for (const bad of [{}, [], { secret }, asked(secret, { nonce: "short" }), asked(secret, { kind: "admin" })])
      expect((await post(bad)).status).toBe(400);
    expect(await join(secret)).toMatchObject({ status: 200 });
  });
});

describe("[RM12] an invitation can be taken back", () => {
  test("one or all, with an admin token; what is revoked makes no token", async () => {
    const [one, named, used] = [await invite("node"), await invite("client", "desk"), await invite("node")];
    expect(await join(used.secret)).toMatchObject({ status: 200 });
    const { token: plain } = await token("client");
    for (const method of ["invite.list", "invite.revoke"] as const)
      expect((await (await client(plain)).refused(method, {})).reason).toBe("auth.forbidden");
    const listed = await peer.ok<ResultOf<"invite.list">>("invite.list", {});
    expect(listed.count).toBe(2);
    expect(listed.invites).toContainEqual({ inviteId: named.inviteId, kind: "client", name: "desk", expiresAt: named.expiresAt });
    for (const secret of [one.secret, named.secret]) expect(JSON.stringify(listed)).not.toContain(secret);

    expect(await peer.ok("invite.revoke", { inviteId: one.inviteId })).toEqual({ ok: true, revoked: [one.inviteId] });
    expect(await join(one.secret, { nodeId: "other" })).toMatchObject({ status: 410, reason: "invite.expired" });
    expect((await peer.refused("invite.revoke", { inviteId: one.inviteId })).reason).toBe("invite.not_found");
    expect(await peer.refused("invite.revoke", { inviteId: used.inviteId })).toMatchObject({
      reason: "invite.used",
      hint: expect.stringMatching(/gsv token revoke \w+/),
    });
    expect(await peer.ok("invite.revoke", {})).toEqual({ ok: true, revoked: [named.inviteId] });
    expect(await peer.ok("invite.revoke", {})).toEqual({ ok: true, revoked: [] });
    expect(await join(named.secret, { kind: "client" })).toMatchObject({ status: 410 });
    expect(await peer.ok<ResultOf<"invite.list">>("invite.list", {})).toEqual({ invites: [], count: 0 });
    const { entries } = await peer.ok<ResultOf<"audit.list">>("audit.list", { action: "invite.revoke" });
    expect(entries.map(({ target }) => target)).toContain(one.inviteId);
  });
});

describe("[RM9] a lost answer", () => {
  test("is repeated with the same token, also after the gateway was killed", async () => {
    const { secret } = await invite("node");
    const first = await join(secret);
    expect(await join(secret)).toEqual(first);
    await evict(gateway());
    expect(await join(secret)).toEqual(first);
    await abortAllDurableObjects();
    expect(await join(secret)).toEqual(first);
    peer = await client();
    expect((await tokens()).filter(({ kind }) => kind === "node")).toHaveLength(1);
  });

  test("is not repeated once the token is revoked", async () => {
    const { secret } = await invite("node");
    await join(secret);
    const [made] = (await tokens()).filter(({ kind }) => kind === "node");
    await peer.ok("tokens.revoke", { tokenId: made?.tokenId });
    expect(await join(secret)).toMatchObject({ status: 409, reason: "invite.used" });
  });
});
