/** The runner of native tools: errors inside a tool end in an answer and a log line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentFiles } from "../ports/agent-files.ts";
import type { NativeToolContext } from "../ports/native-tools.ts";
import { createNativeTools } from "./native-tools.ts";
import { NativeToolList } from "./registry.ts";
import { tool } from "./tool.ts";

test("[P8] an exception inside a native tool is an `internal` error for the model and reaches the log", async () => {
  const broken = tool({ name: "gsv__Broken", description: "Fails.", policyClass: "read_private", properties: {} }, {}, () => {
    throw new Error("the bucket is gone");
  });
  const failures: string[] = [];
  const tools = createNativeTools(new NativeToolList().add("test", [broken]).close(), {} as AgentFiles, (name, error) =>
    failures.push(`${name}: ${String(error)}`),
  );
  const context = { identity: { isOwnersSession: true } } as NativeToolContext;
  const answer = await tools.run("gsv__Broken", {}, context);
  assert.equal(answer.ok ? "" : answer.error.reason, "internal");
  assert.deepEqual(failures, ["gsv__Broken: Error: the bucket is gone"]);
});
