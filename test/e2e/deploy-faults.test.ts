/**
 * [DE5] A first deployment that fails at any of its requests is completed by the next one, and nothing is there twice. Some requests in a
 * usual run; each one of the golden sequence with `GSV_E2E_LONG` (the lane e2e-long), which takes minutes.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import type { FaultKind } from "../fakes/fake-cloudflare.ts";
import { Deployer } from "./deploy-support.ts";

const LONG = process.env["GSV_E2E_LONG"] === "1";
/** Those at which most is at stake: what is made without an answer, and the upload with its secrets. */
const SAMPLE = [/^POST .*\/queues /, /^PUT .*\/scripts\/gsv\?/];

interface Planned {
  readonly at: number;
  readonly request: string;
  readonly kind: FaultKind;
}
/** A change that was made without an answer is the worst; a read is refused in both ways in turn. */
const faultOf = (request: string, at: number): Planned => ({
  at,
  request: request.split("\n")[0] ?? "",
  kind: request.startsWith("GET ") ? (at % 2 === 0 ? "500" : "429") : "cut",
});

describe("gsv deploy up, after a failure", () => {
  let requests: readonly string[] = [];
  let wanted: unknown;
  let token = "";
  before(async () => {
    const deployer = await Deployer.start();
    await deployer.ok(deployer.up());
    requests = [...deployer.fake.requests];
    wanted = deployer.fake.inventory();
    await deployer.end();
  });

  const planned = (): readonly Planned[] => {
    const all = requests.map(faultOf);
    if (LONG) return all;
    return SAMPLE.map((pattern) => all.find(({ request }) => pattern.test(request)) ?? assert.fail(`no request like ${pattern}`));
  };

  it("[DE5] the next run completes the deployment, and nothing is there twice", {
    timeout: LONG ? 3_600_000 : 300_000,
  }, async (context) => {
    for (const { at, request, kind } of planned()) {
      await context.test(`${kind} at ${at}: ${request}`, async () => {
        const deployer = await Deployer.start();
        const { fake } = deployer;
        try {
          fake.fault = { at, kind, stays: true };
          const failed = await deployer.up();
          assert(fake.requests.length > at, "the request was made again");
          fake.forgetRequests();
          if (failed.code !== 0) {
            assert.match(failed.stderr, /^error: [\s\S]* next: /m);
            // The first token is in the local config, although the deployment is not complete.
            assert(!failed.stdout.includes("gsv_admin_"), failed.stdout);
          }
          await deployer.ok(deployer.up());
          assert.deepEqual(fake.inventory(), wanted);
          const stored = /token = "(gsv_admin_[^"]+)"/.exec(deployer.config())?.[1] ?? assert.fail("no token");
          const hash = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(stored))).toString("hex");
          assert.equal(
            fake.script("gsv").secrets.get("BOOTSTRAP_TOKEN_HASH"),
            hash,
            "the token of the local config is that of the gateway",
          );
          assert.notEqual(stored, token);
          token = stored;
        } finally {
          await deployer.end();
        }
      });
    }
  });

  it("[DE5] [DE13] what a run was told and has not done is done by the next one", async () => {
    const deployer = await Deployer.start();
    const { fake } = deployer;
    try {
      await deployer.ok(deployer.up());
      fake.forgetRequests();
      fake.breaksAt = /^PUT .*gsv-channel-example/;
      assert.equal((await deployer.up(["--channels", "example", "--vectorize", "768"])).code, 1);
      fake.forgetRequests();
      const { stderr } = await deployer.ok(deployer.up());
      assert.match(stderr, /as gsv, with example$/m);
      assert.deepEqual(fake.inventory()["indexes"], ["gsv-memories: agent model"]);
      assert(fake.active("gsv")?.bindings.some(({ service }) => service === "gsv-channel-example"));
      assert(!readFileSync(join(deployer.machine.configFolder, "deploy.json"), "utf8").includes("unfinished"));
    } finally {
      await deployer.end();
    }
  });

  it("[DE5] [DE10] a purge that fails halfway is completed by the next one", async () => {
    const deployer = await Deployer.start();
    try {
      await deployer.ok(deployer.up());
      deployer.fake.forgetRequests();
      await deployer.run(["down", "--purge", "gsv"]);
      const at = deployer.fake.requests.length + 1;
      deployer.fake.forgetRequests();
      deployer.fake.fault = { at, kind: "cut", stays: true };
      const failed = await deployer.run(["down", "--purge", "gsv", "--yes"]);
      assert.equal(failed.code, 4, failed.stderr);
      deployer.fake.forgetRequests();
      await deployer.ok(deployer.run(["down", "--purge", "gsv", "--yes"]));
      const rows = Object.values(deployer.fake.inventory()) as readonly unknown[][];
      assert.deepEqual(rows.flat(), []);
    } finally {
      await deployer.end();
    }
  });
});
