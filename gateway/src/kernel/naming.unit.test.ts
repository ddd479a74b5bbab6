import assert from "node:assert/strict";
import { test } from "node:test";
import { existingSession, keyedSession, namedSession, unknownAgent } from "./naming.ts";

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

test("[P10] the main conversation that does not exist: the hint names the command line's conversation of that name, if there is one", () => {
  const hint = (raw: string, ...keys: string[]): string => {
    const record = { ref: "r", createdAt: 0, lastActiveAt: 0, owned: true };
    const found = existingSession(config, { find: (key) => (keys.includes(key) ? { key, ...record } : undefined) }, raw);
    return found.ok ? "found" : `${found.error.reason}: ${found.error.hint}`;
  };
  const usual = "session.not_found: A conversation begins with its first message. List the conversations: `gsv session list`.";
  assert.equal(hint("main", "agent:main:cli:dm:main"), "session.not_found: Did you mean `cli:dm:main`?");
  assert.equal(hint("agent:work:main", "agent:work:cli:dm:main"), "session.not_found: Did you mean `agent:work:cli:dm:main`?");
  assert.equal(hint("main", "agent:main:main", "agent:main:cli:dm:main"), "found");
  assert.equal(hint("main"), usual);
  assert.equal(hint("notes", "agent:main:cli:dm:main"), usual);
  assert.equal(hint("agent:main:%41%3A", "agent:main:cli:dm:main"), "session.bad_key: undefined");
});

test("[P10] an agent that does not exist: the hint has its id, a name like it, or how to create it", () => {
  const agents = ["main", "agent-triage"].map((id) => ({ id }) as never);
  const hint = (name: string, offPack?: string): string => {
    const refused = unknownAgent({ agents: () => agents }, name, offPack);
    return refused.ok ? "known" : (refused.error.hint ?? "");
  };
  assert.equal(hint("triage"), "Use its id: agent-triage.");
  assert.equal(hint("mian"), "Did you mean main? Create it with `gsv agent new mian`.");
  assert.equal(hint("other"), "Agents: main, agent-triage. Create it with `gsv agent new other`.");
  assert.equal(hint("other", "The pack is off."), "The pack is off.");
  for (const name of ["x; touch /tmp/pwned #", "`id`", "\ud800", "__proto__", "-x", "", "x\n", "Other", "x".repeat(65)])
    assert.equal(hint(name), "Agents: main, agent-triage.", JSON.stringify(name));
});
