/** Jobs of agents whose pack is off. */
import { beforeEach, expect, test, vi } from "vitest";
import { asAgentId } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { type PackDefinition, packList } from "../../../src/packs/pack.ts";
import { client, gateway } from "../../support/gateway.ts";
import { add, alarm, becomes, HOUR, jobStage, pass, runs, task } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const FARMER = asAgentId("farmer");
const FARM: PackDefinition = {
  name: "farm",
  doc: "Fields.",
  settings: {},
  secrets: {},
  load: async () => ({
    agents: [
      {
        id: "farmer",
        name: "farmer",
        subAgents: [],
        text: "metadata: { id: farmer, name: farmer }\ncore_context: { system_prompt: You are a farmer. }\n",
        files: {},
      },
    ],
    tools: [],
    topics: [],
  }),
};
const turn = (...enabled: string[]) => stage.peer.ok("config.set", { path: "packs.enabled", value: enabled });
const WHY = "The agent farmer is not there. The pack farm is off. Turn it on: `gsv config set packs.enabled '[\"farm\"]'`.";

beforeEach(async () => {
  vi.spyOn(parts, "packs").mockReturnValue(packList([FARM]));
  await evict(gateway());
  stage.peer = await client();
  await turn("farm");
});

test("[SC17] the times of a job are skipped while the pack of its agent is off, count as no failures, and the job goes on with the pack", async () => {
  await add(stage, task({ agentId: FARMER }));
  expect(await turn()).toMatchObject({ warnings: [expect.stringMatching(/^1 job has no agent now: report \(farmer\)\./)] });
  for (let hour = 1; hour <= 6; hour++) {
    pass(stage, HOUR);
    expect(await becomes(stage, "skipped")).toMatchObject({ error: WHY });
    expect(await runs(stage)).toHaveLength(hour);
  }
  const { jobs } = await stage.peer.ok<{ jobs: { enabled: boolean; state: object }[] }>("cron.list", {});
  expect(jobs).toMatchObject([{ enabled: true, state: { lastStatus: "skipped", lastError: WHY } }]);
  expect(jobs[0]?.state).not.toHaveProperty("failures");
  expect(stage.calls).toEqual([]);
  await turn("farm");
  pass(stage, HOUR);
  expect(await becomes(stage, "ok")).toMatchObject({ summary: "the report" });
});

test("[SC17] a change of the packs names no job whose agent was not there before it", async () => {
  await stage.peer.ok("config.set", { path: "agents.list", value: [{ id: "seller" }] });
  await add(stage, task({ id: "sale", agentId: asAgentId("seller") }));
  await add(stage, task({ agentId: FARMER }));
  expect(await stage.peer.ok("config.unset", { path: "agents.list" })).not.toHaveProperty("warnings");
  expect(await turn()).toMatchObject({ warnings: [expect.stringMatching(/^1 job has no agent now: report \(farmer\)\./)] });
  expect(await turn("farm")).not.toHaveProperty("warnings");
  expect(await stage.peer.ok("config.unset", { path: "packs.enabled" })).toMatchObject({
    warnings: [expect.stringMatching(/^1 job has no agent now: report/)],
  });
});

test("[SC17] a job with one time waits for the pack, says so, and runs when the pack is on again", async () => {
  await add(
    stage,
    task({ agentId: FARMER, deleteAfterRun: false, schedule: { kind: "at", at: new Date(stage.now + HOUR).toISOString() } }),
  );
  await turn();
  pass(stage, HOUR);
  const waiting = await becomes(stage, "waiting");
  expect(waiting).toMatchObject({ error: WHY });
  expect(waiting).not.toHaveProperty("waits");
  pass(stage, 24 * HOUR);
  await alarm();
  expect(await runs(stage)).toMatchObject([{ status: "waiting", error: WHY }]);
  await turn("farm");
  pass(stage, 300_000);
  const done = await becomes(stage, "ok");
  expect(done).toMatchObject({ summary: "the report" });
  expect(done).not.toHaveProperty("error");
});

test("[SC17] a job of an agent that no pack has is an error, as before", async () => {
  await add(stage, task({ agentId: FARMER }));
  vi.mocked(parts.packs).mockReturnValue(packList([]));
  await evict(gateway());
  stage.peer = await client();
  pass(stage, HOUR);
  expect(await becomes(stage, "error")).toMatchObject({ error: "There is no agent farmer." });
});
