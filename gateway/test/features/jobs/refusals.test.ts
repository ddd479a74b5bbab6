/**
 * Requests for jobs that are refused, by their sender, form, agent or data, store nothing. The gateway, the jobs and the sessions are
 * real; the model and the clock are made up.
 */
import { describe, expect, test, vi } from "vitest";
import { ADMIN, fetchWorker, token } from "../../support/gateway.ts";
import { jobStage } from "../schedule/support.ts";
import { inQueue, list, refused, send, submit, TASK } from "./support.ts";

jobStage();

describe("[JB1] a request that is refused stores nothing", () => {
  test("for its sender, its form, its agent, its data", async () => {
    const reader = await token("client-ro");
    const node = await token("node", { nodeId: "lap" });
    const post = (body: unknown, more: { readonly key?: string; readonly auth?: string } = {}) =>
      send("POST", "/jobs", { body, ...more }).then(refused);
    expect([
      await post(TASK, { auth: "wrong" }),
      await post(TASK, { auth: reader.token }),
      await post(TASK, { auth: node.token }),
      await post("{"),
      await post({ ...TASK, instructions: "" }),
      await post(TASK, { key: "a b" }),
      await post({ ...TASK, payload: "x".repeat(262_144) }),
      await post({ ...TASK, agent_name: "none" }),
      await post({ ...TASK, payload: { system_prompt: "x" } }),
      await refused(await send("PUT", "/jobs")),
      await refused(await send("POST", "/jobs/abc")),
      await refused(await send("GET", "/jobs/none")),
      await refused(await send("DELETE", "/jobs/none")),
      await refused(await send("GET", "/jobs/a%2Fb")),
      await refused(await send("GET", "/jobs?status=done")),
      await refused(await send("GET", "/jobs?limit=0")),
      await refused(await send("GET", "/jobs?limit=many")),
      await refused(await send("GET", "/jobs?state=queued")),
      await post({ ...TASK, instruction: "x" }),
    ]).toEqual([
      [401, "auth.required"],
      [403, "auth.forbidden"],
      [403, "auth.forbidden"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [413, "protocol.too_large"],
      [404, "agent.unknown"],
      [400, "context.override"],
      [405, "protocol.unsupported"],
      [405, "protocol.unsupported"],
      [404, "job.not_found"],
      [404, "job.not_found"],
      [404, "job.not_found"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
    ]);
    expect((await fetchWorker("http://gsv.test/jobs", { method: "POST", body: JSON.stringify(TASK) })).status).toBe(401);
    expect(await inQueue((queue) => queue.waiting())).toBe(0);
    expect((await list()).jobs).toEqual([]);
  });
  test("[JB3] who may only read sees jobs and cancels none", async () => {
    const reader = await token("client-ro");
    const id = await submit();
    expect((await send("GET", `/jobs/${id}`, { auth: reader.token })).status).toBe(200);
    expect((await send("GET", "/jobs", { auth: reader.token })).status).toBe(200);
    expect(await refused(await send("DELETE", `/jobs/${id}`, { auth: reader.token }))).toEqual([403, "auth.forbidden"]);
  });
  test("the body of a caller without the right is not read", async () => {
    const read = vi.fn(() => new Promise<void>(() => undefined));
    const body = new ReadableStream({ pull: read }, { highWaterMark: 0 });
    const response = await fetchWorker("http://gsv.test/jobs", { method: "POST", body, headers: { Authorization: "Bearer wrong" } });
    expect(response.status).toBe(401);
    expect(read).not.toHaveBeenCalled();
  });
});

test("[JB1] an admin's Authorization is needed for the list too", async () => {
  expect((await fetchWorker("http://gsv.test/jobs")).status).toBe(401);
  expect((await fetchWorker("http://gsv.test/jobs", { headers: { Authorization: `Bearer ${ADMIN}` } })).status).toBe(200);
});
