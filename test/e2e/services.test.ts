/** Gateway and node as services: after everything was killed, the commands of the units alone bring the agent back. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, it } from "node:test";
import { startUnit, withServices } from "./services.ts";
import { Machine } from "./support.ts";
import { until } from "./waiting.ts";

const machine = new Machine();
const env = withServices(machine);
const started: ChildProcess[] = [];

after(async () => {
  for (const child of started) {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  for (const noun of ["node", "service"]) await machine.gsv([noun, "uninstall"], { env });
  await machine.end();
});

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await machine.gsv(args, { env });
  assert.equal(code, 0, `gsv ${args.join(" ")}: ${stdout}\n${stderr}`);
  return stdout;
};

it("[SV3] after everything was killed, the commands of the units bring back an agent that answers, remembers and has its machine", async () => {
  await machine.usePort();
  await ok("service", "install");
  await ok("config", "set", "toolApproval.defaultDecision", "allow");
  await ok("node", "install", "--id", "laptop");
  assert.match(await ok("chat", "say the first word"), /the first word/);
  const pids = (["service", "node"] as const).map(async (noun) => {
    const { pid, old } = JSON.parse(await ok(noun, "status", "--json")) as { pid: number; old: readonly string[] };
    assert.deepEqual(old, []);
    return pid;
  });
  const { workerdPid } = machine.state();
  assert(workerdPid !== undefined);
  for (const pid of [...(await Promise.all(pids)), workerdPid]) process.kill(pid, "SIGKILL");
  await until("the gateway is gone", async () => (await machine.gsv(["status"], { env })).code !== 0);

  const folder = join(machine.folder, ".config", "systemd", "user");
  for (const name of readdirSync(folder)) started.push(startUnit(machine, join(folder, name)));
  await until("the gateway is back", async () => (await machine.gsv(["status"], { env })).code === 0);
  await machine.online("laptop");
  assert.match(await ok("session", "show"), /the first word/);
  assert.match(await ok("chat", "run: echo from-$((20+22))"), /from-42/);
});
