/** `node.toml` and the sandbox of commands, for a node of a program (rule NJ14). */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Node, NodeOptions } from "@gsv/node";
import { BIN } from "../../../test/e2e/support.ts";
import { refused, withGateway } from "./support.ts";

describe("the policy of this machine", () => {
  const scene = withGateway();
  const config = join(scene.machine.folder, "policy");
  const file = join(config, "node.toml");
  before(() => {
    mkdirSync(config, { mode: 0o700 });
    process.env["GSV_CONFIG_DIR"] = config;
  });
  const policy = (text: string): void => {
    rmSync(file, { force: true });
    if (text !== "") writeFileSync(file, text, { mode: 0o600 });
  };
  const commands = { rust: ["Bash"] } as const;
  const node = async (id: string, more: Partial<NodeOptions> = {}): Promise<Node> => scene.open(await scene.options(id, more));
  const lamp = (node: Node): Node => node.tool({ name: "Lamp", description: "A lamp.", inputSchema: { type: "object" }, run: () => "on" });
  const sandboxOf = async (id: string): Promise<Record<string, unknown> | undefined> => {
    const { nodes } = (await scene.admin.call("nodes.list")) as { nodes: { nodeId: string; sandbox?: Record<string, unknown> }[] };
    return nodes.find(({ nodeId }) => nodeId === id)?.sandbox;
  };

  it("[NJ14] a policy that is not valid, or that others can read, stops every node", async () => {
    for (const [text, mode, words] of [
      ["sandbax = 1\n", 0o600, /line 1: `sandbax`/],
      ["", 0o644, /open to other users/],
    ] as const) {
      policy("# policy\n");
      writeFileSync(file, text);
      chmodSync(file, mode);
      const error = await refused(lamp(await node("invalid")).connect());
      assert.equal(error.reason, "node.cannot_start");
      assert.match(error.message, words);
    }
    policy("");
    symlinkSync("dotfiles/node.toml", file);
    const error = await refused(lamp(await node("invalid")).connect());
    assert.match(error.message, /is a link to dotfiles\/node\.toml, which does not exist/);
    policy("");
  });

  it("[NJ14] where the agent may ask for nothing outside the sandbox, a node with functions does not start", async () => {
    policy("escalation = false\n");
    const error = await refused(lamp(await node("kept")).connect());
    assert.equal(error.reason, "node.cannot_start");
    assert.match(error.message, /escalation = false/);
    await (await node("plain", { tools: { rust: ["Read"] } })).connect();
    policy("");
  });

  it("[NJ14] without `program`, a sandbox or limits that the policy names stop a node with commands, and only such a node", async () => {
    for (const text of ['sandbox = "workspace"\n', "[limits]\nprocesses = 100\n"]) {
      policy(text);
      const error = await refused((await node("unkept", { tools: commands })).connect());
      assert.equal(error.reason, "node.bad_options");
      assert.match(error.message, /option `program`/);
    }
    await lamp(await node("reads", { tools: { rust: ["Read"] } })).connect();
    policy('sandbox = "off"\n');
    await (await node("off", { tools: commands })).connect();
    assert.equal((await sandboxOf("off"))?.["profile"], "off");
    policy("");
    await (await node("bare", { tools: commands })).connect();
    assert.equal((await sandboxOf("bare"))?.["profile"], "off");
  });

  it("[NJ14] `program` must be gsv of this version", async () => {
    const other = join(scene.machine.folder, "other");
    writeFileSync(other, "#!/bin/sh\necho gsv 0.0.1\n", { mode: 0o700 });
    assert.match((await refused((await node("old", { tools: commands, program: other })).connect())).message, /"gsv 0\.0\.1"/);
    assert.match((await refused((await node("gone", { tools: commands, program: `${other}-gone` })).connect())).message, /can't be run/);
  });

  it("[NJ14] with `program`, commands have the supervisor and limits of the policy", async () => {
    policy('sandbox = "off"\n[limits]\nprocesses = 16\n');
    await (await node("limited", { tools: commands, program: BIN })).connect();
    await scene.admin.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    const command = "for i in $(seq 40); do sleep 60 & done; wait";
    const result = JSON.stringify(await scene.call("limited__Bash", { command }));
    assert.match(result, /limit\.processes/);
    policy("");
  });

  it("[NJ14] with `program`, the node reports the sandbox that it has tested, or why there is none", async () => {
    await (await node("boxed", { tools: commands, program: BIN })).connect();
    const { profile, tier, missing } = (await sandboxOf("boxed")) ?? {};
    if (profile === "workspace") {
      assert.match(String(tier), /bubblewrap|landlock|seatbelt/);
      await scene.admin.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
      const outside = join(scene.machine.folder, "outside");
      const result = JSON.stringify(await scene.call("boxed__Bash", { command: `echo x > '${outside}'; echo ended $?` }));
      // Bubblewrap gives the command a /tmp of its own, in which it may write.
      assert.match(result, /ended \d/);
      assert(!existsSync(outside), result);
    } else assert(typeof missing === "string" && missing !== "", String(missing));
  });

  it("[NJ14] a program inside a command of the agent gets no node", async () => {
    const script = `import { Node } from "@gsv/node";
      try { await new Node(JSON.parse(process.argv[1])).connect(); } catch ({ reason }) { console.log(reason); }`;
    const options = JSON.stringify(await scene.options("inside"));
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script, options], {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      encoding: "utf8",
      env: { ...process.env, GSV_COMMAND: "1" },
    });
    assert.equal(stdout.trim(), "auth.agent_command");
  });
});
