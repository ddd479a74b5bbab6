import assert from "node:assert/strict";
import { test } from "node:test";
import { keyedSession, namedSession } from "./naming.ts";

const config = { mainKey: () => "main", defaultAgentId: () => "main" };

test("[S7] a client may leave out the agent of a key, which is then the default agent's", () => {
  const named = (raw: string): unknown => {
    const found = namedSession(config, raw);
    return found.ok ? found.value.key : found.error.reason;
  };
  for (const [raw, key] of [
    // As the chat shows it.
    ["cli:dm:main", "agent:main:cli:dm:main"],
    ["dm:+316", "agent:main:dm:+316"],
    ["cron:1", "agent:main:cron:1"],
    ["discord:work:dm:7", "agent:main:discord:work:dm:7"],
    ["notes", "agent:main:cli:dm:notes"],
    ["main", "agent:main:main"],
    ["agent:work:cli:dm:main", "agent:work:cli:dm:main"],
  ])
    assert.equal(named(raw ?? ""), key);
  for (const bad of ["agent:cli:dm:main:x:y", "agent:", "agent:dm", "cli:people:x", "x:y", ":", "a:b:c:d:e"])
    assert.equal(named(bad), "session.bad_key", bad);
  assert.equal(keyedSession(config, "cli:dm:main").ok, false, "only for what a client names");
});
