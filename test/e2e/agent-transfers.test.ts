/** The agent copies files with gsv__Transfer: the built program, a real gateway and a real node, with a question to the owner. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { type FakeModel, Machine, type NodeProcess, textOf, until, withModel } from "./support.ts";

const MIB = 1024 * 1024;
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

interface Listed {
  readonly approvals: readonly { readonly code: string; readonly text: string; readonly why: string }[];
}

describe("gsv__Transfer", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let laptop: NodeProcess;
  const content = randomBytes(8 * MIB);
  withModel(machine, (model) => {
    fake = model;
  });
  before(async () => {
    laptop = await machine.node("laptop");
    writeFileSync(laptop.file("big.bin"), content);
    await machine.ok("config", "unset", "toolApproval.defaultDecision");
  });
  const stored = (path: string): string => join(machine.home, "workspace", "agents", "main", path);
  const asks = (source: string, destination: string): void =>
    fake.enqueue({ toolCalls: [{ name: "gsv__Transfer", arguments: { source, destination } }] }, { text: "It is there." });
  const question = async (): Promise<Listed["approvals"][number]> =>
    until("a question", async () => (JSON.parse(await machine.ok("approval", "list", "--json")) as Listed).approvals[0]);

  it("[TF11] [P18] asks with both ends, copies the file after the owner's word, and tells the model its sum", async () => {
    asks("laptop:big.bin", "gsv:in/big.bin");
    const client = await machine.client();
    const { runId } = await client.call("chat.send", { sessionKey: "agent:main:cli:dm:main", message: "fetch it" });
    const { code, text, why } = await question();
    assert.match(why, /copies "laptop:big\.bin" to "gsv:in\/big\.bin"/);
    assert.match(text, /destination: gsv:in\/big\.bin/);
    assert.equal(existsSync(stored("in/big.bin")), false);
    await machine.ok("approval", "allow", code);
    assert.match(textOf(await client.ending(String(runId))), /It is there/);
    assert.equal(sha256(readFileSync(stored("in/big.bin"))), sha256(content));
    assert(JSON.stringify(fake.requests.at(-1)?.body).includes(sha256(content)), "the model is told the sha256");
    client.close();
  });

  it("[TF11] a denied copy moves nothing", async () => {
    asks("gsv:in/big.bin", "laptop:copy.bin");
    const client = await machine.client();
    const { runId } = await client.call("chat.send", { sessionKey: "agent:main:cli:dm:main", message: "and back" });
    const { code } = await question();
    await machine.ok("approval", "deny", code);
    await client.ending(String(runId));
    assert.equal(existsSync(laptop.file("copy.bin")), false);
    client.close();
  });
});
