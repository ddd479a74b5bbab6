import assert from "node:assert/strict";
import { test } from "node:test";
import { EVENTS, type EventName, METHODS, type MethodName, type Scope } from "../../../protocol/gen/methods.ts";
import type { ClientInfo, Mode, TokenKind } from "../../../protocol/gen/types.ts";
import { actorOf, admit, featuresFor, may, mayReplace, type Principal, refusalOf } from "./authorise.ts";

const outcome = (kind: TokenKind, grant: object, client: Partial<ClientInfo>): string => {
  const admission = admit({ tokenId: "t1", kind, ...grant }, {
    id: "x",
    version: "1.0.0",
    platform: "linux",
    mode: "client",
    ...client,
  } as ClientInfo);
  return admission.ok ? `${admission.principal.mode}:${admission.principal.id}` : admission.error.reason;
};

test("[H3] [S3] [F72] a channel's token connects only as its own channel and account", () => {
  const grant = { channel: "discord", accountId: "bot" };
  const own = { channel: "discord", accountId: "bot" };
  assert.equal(outcome("channel", grant, { mode: "channel", ...own }), "channel:discord:bot");
  assert.equal(outcome("channel", grant, { mode: "channel", channel: "discord" }), "auth.bound");
  assert.equal(outcome("channel", grant, { mode: "channel", channel: "whatsapp", accountId: "bot" }), "auth.bound");
  assert.equal(outcome("channel", { channel: "discord" }, { mode: "channel", channel: "discord" }), "channel:discord:default");
  // Also when the frame names that channel: it would be a client with the channel's token.
  for (const mode of ["client", "node"] as const) assert.equal(outcome("channel", grant, { mode, ...own }), "auth.forbidden");
});
test("[H3] [S3] a node's token connects only as its own node, a client's only as a client", () => {
  assert.equal(outcome("node", { nodeId: "lap" }, { mode: "node", id: "lap" }), "node:lap");
  assert.equal(outcome("node", { nodeId: "lap" }, { mode: "node" }), "auth.bound");
  assert.equal(outcome("node", { nodeId: "lap" }, { mode: "client", id: "lap" }), "auth.forbidden");
  for (const kind of ["client", "client-ro"] as const) {
    assert.equal(outcome(kind, {}, {}), "client:x");
    for (const mode of ["node", "channel"] as const) assert.equal(outcome(kind, {}, { mode }), "auth.forbidden");
  }
  assert.deepEqual(
    (["client", "node", "channel"] as const).map((mode) => outcome("admin", {}, { mode })),
    ["client:x", "node:x", "auth.forbidden"],
  );
});
test("[H3] a principal has its token's end", () => {
  const client: ClientInfo = { id: "x", version: "1.0.0", platform: "linux", mode: "client" };
  const endOf = (grant: object): unknown => {
    const admission = admit({ tokenId: "t1", kind: "client", ...grant }, client);
    return admission.ok && ["expiresAt" in admission.principal, admission.principal.expiresAt];
  };
  assert.deepEqual(endOf({ expiresAt: 5 }), [true, 5]);
  assert.deepEqual(endOf({}), [false, undefined]);
});

const KINDS = ["admin", "client", "client-ro", "node", "channel"] as const satisfies readonly TokenKind[];
const MODES = ["client", "node", "channel"] as const satisfies readonly Mode[];
/** The access of each kind in each mode, repeated here so that a change of `authorise.ts` must be intended. */
const ACCESS: Readonly<Record<string, readonly Scope[]>> = {
  "admin client": ["read", "chat", "operate", "admin"],
  "admin node": ["node"],
  "client client": ["read", "chat", "operate"],
  "client-ro client": ["read"],
  "node node": ["node"],
  "channel channel": ["channel"],
};
const methods = Object.keys(METHODS) as MethodName[];

test("[A1] [S3] a method is denied unless the contract names the caller and the token's kind has its scope", () => {
  for (const kind of KINDS)
    for (const mode of MODES) {
      const scopes = kind !== mode && kind !== "admin" && mode !== "client" ? [] : (ACCESS[`${kind} ${mode}`] ?? []);
      for (const method of methods) {
        const { callers, scope } = METHODS[method];
        const named = callers.filter((caller) => caller === mode).length === 1;
        const expected = method !== "connect" && named && (mode === "client" ? scopes.includes(scope) : scopes.length === 1);
        assert.equal(may({ kind, mode }, method), expected, `${kind} ${mode} ${method}`);
      }
    }
});

test("[A1] [TF13] a client may be an end of its own transfers, unless it only reads", () => {
  const ends = ["transfer.meta", "transfer.accept", "transfer.ack", "transfer.complete", "transfer.done"] as const;
  for (const method of ends)
    assert.deepEqual(
      (["client", "client-ro", "node"] as const).map((kind) => may({ kind, mode: kind === "node" ? "node" : "client" }, method)),
      [true, false, true],
    );
});

test("[A1] a refusal says which token would do, or who else calls the method", () => {
  const told = (kind: TokenKind, mode: Mode, method: MethodName): readonly string[] => {
    const { message, hint = "" } = refusalOf({ kind, mode }, method);
    return [message, hint];
  };
  const hint = (kind: string): string =>
    `Run the command on the gateway's machine, or make such a token there (\`gsv token create --scope ${kind}\`) and store it here: \`gsv local-config set token -\`.`;
  assert.deepEqual(told("client", "client", "config.set"), [
    "A client token may not call config.set: that takes an admin token.",
    hint("admin"),
  ]);
  assert.deepEqual(told("client-ro", "client", "chat.send"), [
    "A client-ro token may not call chat.send: that takes a client or admin token.",
    hint("client"),
  ]);
  assert.deepEqual(told("node", "node", "config.set"), ["A node may not call config.set: that takes an admin token.", hint("admin")]);
  assert.deepEqual(told("admin", "client", "tool.result"), ["A client may not call tool.result: only nodes call it.", ""]);
  assert.deepEqual(told("channel", "channel", "tool.result"), ["A channel may not call tool.result: only nodes call it.", ""]);
});

test("[H4] a connection gives way to one with the same token, or with an admin token", () => {
  const of = (tokenId: string, kind: TokenKind): Principal => ({ tokenId, kind, mode: "client", id: "x" });
  assert.ok(mayReplace(of("t1", "client"), of("t1", "client")));
  assert.ok(mayReplace(of("t1", "client"), of("t2", "admin")));
  assert.ok(!mayReplace(of("t1", "client"), of("t2", "client")));
  assert.ok(!mayReplace(of("t1", "admin"), of("t2", "client")));
});

test("[A1] a caller is told the methods that it may call, and the events for it that are served", () => {
  const principal = (kind: TokenKind, mode: Mode): Principal => ({ tokenId: "t1", kind, mode, id: "x" });
  const served: MethodName[] = ["sessions.list", "config.set", "connect", "tool.result", "chat.send"];
  assert.deepEqual(featuresFor(principal("client", "client"), served, []).methods, ["chat.send", "sessions.list"]);
  assert.deepEqual(featuresFor(principal("node", "node"), served, []).methods, ["tool.result"]);
  const events = (mode: Mode, unserved: EventName[]): readonly string[] => featuresFor(principal("admin", mode), [], unserved).events;
  const ends = ["transfer.ack", "transfer.end", "transfer.receive", "transfer.send", "transfer.start"];
  assert.deepEqual(events("client", ["presence"]), ["approval", "chat", "session", "tool.progress", ...ends]);
  assert.ok(events("client", []).includes("presence"));
  assert.ok(events("node", []).includes("tool.invoke") && !events("node", []).includes("chat"));
  assert.deepEqual(events("channel", Object.keys(EVENTS) as EventName[]), []);
});
test("[AU1] nothing unseen in a client's name splits it or makes it look like another", () => {
  const named = (id: string): string => actorOf({ mode: "client", id, tokenId: "t1" });
  for (const char of ["\n", " ", "\u00a0", "\u2003", "\u200b", "\u202e", "\u2800", "\u3164", "\u115f", "\u034f", "\ufe0f"])
    assert.equal(named(`web${char}token:t2`), "client:web_token:t2 token:t1", JSON.stringify(char));
  assert.equal(named("Büro-1"), "client:Büro-1 token:t1");
  assert.equal(named("x".repeat(200)), `client:${"x".repeat(128)} token:t1`);
});
