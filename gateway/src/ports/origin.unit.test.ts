import assert from "node:assert/strict";
import { test } from "node:test";
import { isPlainlyOwner, type Origin, originText } from "./origin.ts";

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
