/** `gsv setup` by options: from nothing to services with a tested model, and the agent answers and remembers after everything was killed. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { type FakeModel, startFakeModel } from "../fakes/fake-model.ts";
import { startUnit, withServices } from "./services.ts";
import { BIN, freePort, Machine } from "./support.ts";
import { until } from "./waiting.ts";

const KEY = "sk-lab-0123456789abcdef";
const machine = new Machine();
const env = withServices(machine);
const started: ChildProcess[] = [];
let fake: FakeModel;

before(async () => {
  fake = await startFakeModel();
});
after(async () => {
  for (const child of started) {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  for (const noun of ["node", "service"]) await machine.gsv([noun, "uninstall"], { env });
  await machine.end();
  await fake.close();
});

const run = (args: readonly string[], input = "") => machine.gsv(args, { env, input });
const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, `gsv ${args.join(" ")}: ${stdout}\n${stderr}`);
  return stdout;
};
const settings = async (path: string): Promise<unknown> => JSON.parse(await ok("config", "get", path, "--json"));
it("[SU1] [SU2] a key that the provider refuses, and a model that does not answer, change nothing", async () => {
  await machine.usePort();
  await ok("setup", "--yes", "--no-services", "--no-path", "--no-message");
  assert.match(await ok("chat", "say hello"), /hello/);
  await ok("config", "set", "providers.lab", JSON.stringify({ baseUrl: `${fake.url}/v1`, wire: "openai-completions" }));
  const model = await settings("model");
  fake.enqueue({ status: 401 });
  const refused = await run(["setup", "--provider", "lab", "--model", "fake-1", "--key-stdin", "--yes"], `${KEY}\n`);
  assert.notEqual(refused.code, 0, refused.stderr);
  assert.doesNotMatch(refused.stdout + refused.stderr, new RegExp(KEY));
  assert.deepEqual([await settings("model"), await settings("apiKeys")], [model, {}]);
  assert.match((await run(["setup", "--provider", "nolab", "--yes"])).stderr, /no provider nolab/);
});

it("[SU1] [SU3] [SU4] setup by options, then a restart of everything: the agent answers with the model and remembers", async () => {
  const words = ["setup", "--provider", "lab", "--model", "fake-1", "--key-stdin", "--name", "Sam", "--timezone", "Europe/Berlin"];
  const { code, stdout, stderr } = await run([...words, "--services", "--yes", "--message", "say the first word"], `${KEY}\n`);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^the first word/m);
  assert.doesNotMatch(stdout + stderr, new RegExp(KEY));
  assert.deepEqual(
    fake.requests.slice(-2).map(({ headers }) => headers["authorization"]),
    [`Bearer ${KEY}`, `Bearer ${KEY}`],
    "the test and the message",
  );
  assert.equal(await settings("userTimezone"), "Europe/Berlin");
  assert.match(await ok("workspace", "cat", "USER.md"), /^- Name: Sam$/m);
  assert.equal(realpathSync(join(machine.folder, ".local", "bin", "gsv")), realpathSync(BIN));

  const pids = (["service", "node"] as const).map(async (noun) => (JSON.parse(await ok(noun, "status", "--json")) as { pid: number }).pid);
  const { workerdPid } = machine.state();
  assert(workerdPid !== undefined);
  for (const pid of [...(await Promise.all(pids)), workerdPid]) process.kill(pid, "SIGKILL");
  await until("the gateway is gone", async () => (await run(["status"])).code !== 0);
  const folder = join(machine.folder, ".config", "systemd", "user");
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".service"))) started.push(startUnit(machine, join(folder, name)));
  await until("the gateway is back", async () => (await run(["status"])).code === 0);
  assert.match(await ok("chat", "say the second word"), /the second word/);
  assert.match(await ok("session", "show"), /the first word/);
});

it("[SU1] run again, it asks for no key and keeps what no option says", async () => {
  const before = await settings("model");
  const { code, stderr } = await run(["setup", "--yes", "--no-services", "--no-message"]);
  assert.equal(code, 0, stderr);
  assert.deepEqual([await settings("model"), await settings("userTimezone")], [before, "Europe/Berlin"]);
  assert.match(await ok("workspace", "cat", "USER.md"), /^- Name: Sam$/m);
});

it("[SU1] the gateway that it starts has the port that was asked for", async () => {
  const other = new Machine();
  try {
    const port = await freePort();
    const args = ["setup", "--port", String(port), "--yes", "--no-services", "--no-path", "--no-message"];
    const { code, stdout, stderr } = await other.gsv(args, { env: withServices(other) });
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
  } finally {
    await other.end();
  }
});
