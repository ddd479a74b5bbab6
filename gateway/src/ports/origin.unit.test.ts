import assert from "node:assert/strict";
import { test } from "node:test";
import { causeText, isPlainlyOwner, type Origin, originText } from "./origin.ts";

test("[TA1] the owner plainly asks at a client, or in a direct message of their own", () => {
  const channel = (role: "owner" | "guest", kind?: "dm" | "group"): Origin => ({
    kind: "channel",
    channel: "discord",
    accountId: "default",
    role,
    ...(kind === undefined ? {} : { peer: { kind, id: "x" } }),
  });
  const rows: readonly (readonly [Origin, boolean, string])[] = [
    [{ kind: "client", clientId: "c" }, true, "client"],
    [channel("owner", "dm"), true, "channel discord owner"],
    [channel("owner", "group"), false, "channel discord owner"],
    [channel("owner"), false, "channel discord owner"],
    [channel("guest", "dm"), false, "channel discord guest"],
    [{ kind: "session", sessionKey: "agent:main:main", hops: 1 }, false, "session agent:main:main"],
    [{ kind: "node_event", nodeId: "lap" }, false, "node lap"],
    [{ kind: "gateway" }, false, "gateway"],
  ];
  for (const [origin, isOwner, text] of rows) assert.deepEqual([isPlainlyOwner(origin), originText(origin)], [isOwner, text], text);
});

test("[AU7] the cause of a run names the token of a client, which its name can not imitate", () => {
  assert.equal(causeText({ kind: "client", clientId: "web token:t2", tokenId: "t1" }), "client:web_token:t2 token:t1");
  assert.equal(causeText({ kind: "client", clientId: "web" }), "client");
  assert.equal(causeText({ kind: "node_event", nodeId: "lap" }), "node lap");
});
