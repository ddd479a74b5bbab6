/** `/jobs` with the built program and a real gateway: each job runs once, also when the gateway is killed again and again. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Rig, tag } from "./kill-support.ts";
import { until } from "./support.ts";

interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly session_key?: string;
  readonly report?: { readonly status: string; readonly summary: string };
}
interface Page {
  readonly jobs: readonly Job[];
  readonly cursor?: string;
}
const ENDS = ["succeeded", "failed", "cancelled", "budget_exceeded"];

describe("jobs", () => {
  let rig: Rig;
  let token = "";
  const send = (method: string, path: string, body?: unknown, key?: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${rig.machine.port}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { Authorization: `Bearer ${token}`, ...(key === undefined ? {} : { "Idempotency-Key": key }) },
    });
  async function answer<T>(response: Response, status = 200): Promise<T> {
    const text = await response.text();
    assert.equal(response.status, status, text);
    return JSON.parse(text) as T;
  }
  const task = (cell: string): object => ({ agent_name: "main", instructions: `Do ${tag(cell)}.` });
  const submit = async (cell: string, key?: string): Promise<string> =>
    (await answer<Job>(await send("POST", "/jobs", task(cell), key), 202)).job_id;
  const show = async (id: string): Promise<Job> => answer(await send("GET", `/jobs/${id}`));
  const ended = (id: string): Promise<Job> =>
    until(`job ${id} has ended`, async () => {
      const job = await show(id).catch(() => undefined);
      return job !== undefined && ENDS.includes(job.status) ? job : undefined;
    });
  const all = async (query = ""): Promise<readonly Job[]> => (await answer<Page>(await send("GET", `/jobs?limit=200${query}`))).jobs;

  before(async () => {
    rig = await Rig.start();
    token = rig.machine.token;
  });
  after(() => rig.end());

  it("[JB1] [JB3] [JB9] [JB10] a job is taken at once, has its report later, and is in the list", async () => {
    rig.model.serve("one", { answer: () => ({ text: "One is done." }) });
    const id = await submit("one");
    const job = await ended(id);
    assert.deepEqual([job.status, job.report?.summary, job.session_key], ["succeeded", "One is done.", `agent:main:task:${id}`]);
    const listed = await until("the index has it", async () =>
      (await all()).find((each) => each.job_id === id && each.status === "succeeded"),
    );
    assert.equal(listed.status, "succeeded");
    assert.deepEqual(await all("&status=failed"), []);
  });

  it("[JB4] the gateway is killed in the middle of twelve jobs, and each of them runs once", async () => {
    const node = rig.realNode("laptop");
    await rig.isOnline("laptop");
    const cells = Array.from({ length: 12 }, (_, number) => `job-${number}`);
    for (const cell of cells)
      rig.model.serve(cell, {
        answer: ({ results }) =>
          results.length === 0
            ? { toolCalls: [{ name: "laptop__Bash", arguments: { command: `echo ${cell} >> done.txt` } }] }
            : { text: `${cell} is done.` },
      });
    const turns = (): number => cells.reduce((sum, cell) => sum + rig.model.turns(cell).length, 0);
    const ids = new Map<string, string>();
    for (const cell of cells) ids.set(cell, await submit(cell, cell));
    // The kills come at different numbers of model calls, so between different steps of different jobs.
    for (const asked of [3, 11]) {
      await until(`the model was asked ${asked} times`, () => turns() >= asked || undefined);
      await rig.machine.killWorkerd();
    }
    for (const cell of cells) {
      const id = ids.get(cell) ?? "";
      const job = await ended(id);
      assert.equal(job.status, "succeeded", `${cell}: ${JSON.stringify(job)}`);
      assert.match(job.report?.summary ?? "", new RegExp(`^${cell} is done`));
      assert.equal(await submit(cell, cell), id, "the same key is the same job");
    }
    const lines = node.lines("done.txt");
    assert.equal(new Set(lines).size, lines.length, `a command ran twice: ${lines.join(" ")}`);
    const client = await rig.machine.client();
    const { sessions } = (await client.call("sessions.list", { limit: 200 })) as { sessions: { sessionKey: string }[] };
    client.close();
    for (const id of ids.values()) assert.equal(sessions.filter(({ sessionKey }) => sessionKey.endsWith(id)).length, 1);
    await until("the index has all of them", async () => {
      const done = (await all()).filter(({ status, job_id }) => status === "succeeded" && [...ids.values()].includes(job_id));
      return done.length === cells.length || undefined;
    });
  });

  it("[JB8] [JB11] while GSV is stopped a job waits and can be cancelled, also over a kill; the other begins after the resume", async () => {
    for (const cell of ["waits", "never"]) rig.model.serve(cell, { answer: () => ({ text: "Done." }) });
    await rig.machine.ok("stop", "--all");
    const [waits, never] = [await submit("waits"), await submit("never")];
    await rig.machine.killWorkerd();
    assert.equal((await answer<Job>(await send("DELETE", `/jobs/${never}`))).status, "cancelled");
    assert.equal((await show(waits)).status, "queued");
    await rig.machine.ok("resume");
    assert.equal((await ended(waits)).status, "succeeded");
    assert.equal((await show(never)).status, "cancelled");
    assert.equal(rig.model.turns("never").length, 0);
  });

  it("[JB13] the command line submits a job, waits for it, lists it and shows it", async () => {
    rig.model.serve("cli", { answer: () => ({ text: "Done from the command line." }) });
    const { machine } = rig;
    const done = await machine.gsv(["job", "submit", "main", `Do ${tag("cli")}.`, "--data", "-", "--wait"], { input: '{"order": 1042}' });
    assert.deepEqual([done.code, done.stdout], [0, "Done from the command line.\n"], done.stderr);
    const id = /^Job ([a-z0-9]+)$/m.exec(done.stderr)?.[1] ?? "";
    assert.match(await machine.ok("job", "show", id), /succeeded/);
    await until("the index has it", async () => (await machine.ok("job", "list", "--status", "succeeded")).includes(id) || undefined);
    const again = await machine.gsv(["job", "watch", id]);
    assert.deepEqual([again.code, again.stdout], [0, done.stdout]);
    const other = await machine.gsv(["job", "cancel", id]);
    assert.match(other.stderr, /has ended already: succeeded/);
    const absent = await machine.gsv(["job", "show", "a".repeat(id.length)]);
    assert.deepEqual([absent.code, /no such job/.test(absent.stderr)], [1, true], absent.stderr);
    const short = await machine.gsv(["job", "show", id.slice(0, 8)]);
    assert.deepEqual([short.code, /the id of a job has 26 characters/.test(short.stderr)], [1, true], short.stderr);
  });

  it("[JB5] as many run at once as the setting says", async () => {
    await rig.machine.ok("config", "set", "jobs.maxConcurrent", "2");
    const gate = Promise.withResolvers<void>();
    let open = 0;
    let most = 0;
    const cells = Array.from({ length: 8 }, (_, number) => `wide-${number}`);
    for (const cell of cells)
      rig.model.serve(cell, {
        arrived: async () => {
          most = Math.max(most, ++open);
          if (open === 2) gate.resolve();
          await gate.promise;
        },
        answer: () => ({ text: "Done." }),
        ended: () => void open--,
      });
    const ids = await Promise.all(cells.map((cell) => submit(cell)));
    for (const id of ids) assert.equal((await ended(id)).status, "succeeded");
    assert.equal(most, 2);
  });
});
