import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientInfo, TokenKind } from "../../../protocol/gen/types.ts";
import { admit } from "./authorise.ts";

const outcome = (kind: TokenKind, grant: object, client: Partial<ClientInfo>): string => {
  const admission = admit({ tokenId: "t1", kind, ...grant }, {
    id: "x",
    version: "1.0.0",
    platform: "linux",
    mode: "client",
    ...client,
  } as ClientInfo);
  return admission.ok ? `${admission.principal.mode}:${admission.principal.id}` : admission.reason;
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
