import assert from "node:assert/strict";
import { test } from "node:test";
import type { Asked } from "../../schedule/precheck.ts";
import { type AnswerPorts, answersOf } from "./answers.lazy.ts";

test("[HB10] [HB11] an error of the gateway is a failure that names the log, which has it; the other conditions are answered", async () => {
  const logged: unknown[] = [];
  const exec = (nodeId: string): Asked => ({ kind: "exec", nodeId, command: "true", text: `exec: ${nodeId} true` });
  const ports = {
    nodeLooks: {
      look: ({ nodeId }: { nodeId: string }) =>
        nodeId === "a" ? Promise.reject(new Error("lost")) : Promise.resolve({ kind: "ended", isTrue: true }),
    },
    web: { fetch: () => undefined, limit: () => new AbortController().signal },
    log: { error: (event: string, details: unknown) => logged.push([event, details]) },
    sha256: (text: string) => Promise.resolve(text),
  } as unknown as AnswerPorts;
  const answers = await answersOf(ports, { agentId: "main", asked: [exec("a"), exec("b")] });
  assert.deepEqual(answers.get("exec: a true"), { kind: "failed", why: "An error of the gateway, whose log has the details." });
  assert.deepEqual(answers.get("exec: b true"), { kind: "ended", isTrue: true });
  assert.deepEqual(logged, [["condition_failed", { condition: "exec: a true", error: new Error("lost") }]]);
});
