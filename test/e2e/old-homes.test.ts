/**
 * Homes that the gateways of earlier commits have written (`test/fixtures/old-homes`): each opens with the current program, keeps its
 * conversations and keys, and answers; also when its first start is killed at some instant. A usual run opens a part of them, a run with
 * `GSV_E2E_LONG` all.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { KEY_OF } from "../fixtures/old-homes/content.ts";
import { seeded } from "../seeded.ts";
import { type FakeModel, isAlive, Machine, ROOT, startFakeModel, until } from "./support.ts";

const FOLDER = join(ROOT, "test", "fixtures", "old-homes", "homes");
const homes = readdirSync(FOLDER).map((name) => name.replace(/\.tar\.xz$/, ""));
const MAIN = "agent:main:cli:dm:main";
const LONG = process.env["GSV_E2E_LONG"] !== undefined;
/** Kills of each first start. */
const KILLS = LONG ? 10 : 2;
/** What a usual run opens: the oldest home, two between, and the newest one. Who adds a home puts it in the place of the last one here. */
const USUAL = ["b9dea78", "587b302", "35a3f0e", "c5658c7"];
const commits = LONG ? homes : USUAL;

function oldMachine(commit: string): Machine {
  const machine = new Machine();
  execFileSync("tar", ["-xJf", join(FOLDER, `${commit}.tar.xz`), "-C", machine.folder]);
  return machine;
}

/** Starts the gateway and kills its processes, and perhaps `gsv up`, once the log of this start has so many lines more. */
async function killedStart(machine: Machine, random: () => number): Promise<void> {
  const state = join(machine.home, "gateway", "state.json");
  const at = machine.gatewayLog().length;
  const run = machine.gsv(["up"]);
  let ended = false;
  void run.then(() => {
    ended = true;
  });
  const pids = await until("workerd runs", () => {
    if (ended) return [];
    try {
      const { supervisorPid, workerdPid } = JSON.parse(readFileSync(state, "utf8")) as { supervisorPid?: number; workerdPid?: number };
      return supervisorPid === undefined || workerdPid === undefined ? undefined : [supervisorPid, workerdPid];
    } catch {
      return undefined;
    }
  });
  // The instant: right now, when the process has said something, or when the gateway is ready.
  const instant = Math.floor(random() * 3);
  if (instant === 1) await until("it says something", () => ended || machine.gatewayLog().length > at);
  if (instant === 2) await until("it is ready", () => ended || machine.gatewayLog().slice(at).includes("ready on"));
  // The supervisor first: it would start another one.
  for (const pid of pids)
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  await run;
  // Until then the lock is held, and the next `gsv up` would find a gateway that runs.
  await until("the killed processes are gone", () => pids.every((pid) => !isAlive(pid)));
}

describe("[P22] homes of earlier commits", () => {
  let fake: FakeModel;
  before(async () => {
    fake = await startFakeModel();
  });
  after(() => fake.close());

  it("are at least twenty", () => assert.ok(homes.length >= 20, String(homes.length)));

  for (const commit of commits)
    it(`[UP1] [UP4] ${commit}: opens after kills of its first start, with all that it had, and answers`, async () => {
      const machine = oldMachine(commit);
      const random = seeded(homes.indexOf(commit) + 1);
      try {
        await machine.usePort();
        for (let kill = 0; kill < KILLS; kill++) await killedStart(machine, random);
        await machine.up();
        const { archives } = JSON.parse(await machine.ok("session", "history", MAIN, "--json")) as { archives: { path: string }[] };
        assert.match(await machine.ok("session", "show", archives[0]?.path ?? ""), new RegExp(`first of ${commit}`));
        assert.match(await machine.ok("session", "show", MAIN), new RegExp(`second of ${commit}`));
        assert.match(await machine.ok("session", "show", "agent:main:cli:dm:other"), new RegExp(`other of ${commit}`));
        assert.equal((await machine.ok("config", "get", "userTimezone")).trim(), "Europe/Stockholm");
        assert.match(await machine.ok("chat", "say after the upgrade"), /^after the upgrade/);
        // The stored key is the one that a provider gets.
        const asked = fake.requests.length;
        const client = await machine.client();
        await client.call("config.set", { path: "model", value: { provider: "openai", id: "fake-1", baseUrl: `${fake.url}/v1` } });
        client.close();
        await machine.ok("chat", "-s", "agent:main:cli:dm:other", "hello");
        assert.equal(fake.requests[asked]?.headers["authorization"], `Bearer ${KEY_OF(commit)}`);
        await machine.ok("down");
        await machine.up();
        await until("the copy is gone", () => !existsSync(join(machine.home, "gateway", "before-upgrade")));
        assert.match(await machine.ok("session", "show", MAIN), /after the upgrade/);
      } finally {
        await machine.end();
      }
    });
});
