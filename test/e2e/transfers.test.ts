/** Transfers, from outside: the built program, a real gateway and real nodes. Each side is cut off and killed in the middle. `GSV_E2E_LONG`: 4 GiB. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import { LinkProxy } from "./kill-node.ts";
import { type Client, type Json, Machine, type NodeProcess, until } from "./support.ts";

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;

async function sum(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
/** The most memory that a process has had, in bytes. */
const peak = (pid: number): number => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

describe("gsv cp", () => {
  const machine = new Machine();
  let laptop: NodeProcess;
  let desk: NodeProcess;
  let proxy: LinkProxy;
  let owner: Client | undefined;
  let content: string;
  before(async () => {
    await machine.up();
    proxy = await LinkProxy.start(machine);
    laptop = await machine.node("laptop");
    desk = await machine.node("desk", undefined, { GSV_URL: proxy.url });
    for (const node of [laptop, desk]) writeFileSync(node.file("big.bin"), randomBytes(SIZE));
    content = await sum(laptop.file("big.bin"));
  });
  after(async () => {
    await machine.end();
    await proxy.close();
  });

  const stored = (path: string): string => join(machine.home, "workspace", "agents", "main", path);
  const workspaceFile = (path: string): string => {
    const found = [stored(path), join(machine.home, "gateway", "workspace", "agents", "main", path)].find(existsSync);
    assert(found !== undefined, `${path} is not in the workspace`);
    return found;
  };
  const client = (): Client => {
    assert(owner !== undefined);
    return owner;
  };
  const shown = async (id: string): Promise<Json> => (await client().call("transfer.get", { id }))["transfer"] as Json;
  const begin = async (source: string, destination: string): Promise<string> => {
    const id = randomBytes(16).toString("hex");
    await client().call("transfer.create", { id, source, destination });
    return id;
  };
  const moving = (id: string, least = 4 * MIB): Promise<unknown> =>
    until("some bytes have arrived", async () => Number((await shown(id))["doneBytes"]) >= least, undefined, 5);
  const ending = (id: string): Promise<Json> =>
    until(
      "the transfer has ended",
      async () => {
        const seen = await shown(id);
        return seen["endedAt"] === undefined ? undefined : seen;
      },
      undefined,
      20,
    );
  const reconnect = async (): Promise<void> => {
    owner?.close();
    owner = await until("the gateway answers", () => machine.client().catch(() => undefined));
  };
  // The limit of requests is that of a connection.
  beforeEach(() => reconnect());
  const leftovers = (node: NodeProcess): string[] => readdirSync(node.workspace).filter((name) => name.startsWith(".gsv-"));

  it("[P18] [TF3] copies a file there, back and to another machine, byte for byte", async () => {
    const ran = await machine.gsv(["cp", "laptop:big.bin", "gsv:in/big.bin"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /^laptop:big.bin copied to gsv:in\/big.bin, 64 MiB in /);
    assert.equal(await sum(workspaceFile("in/big.bin")), content);
    const told = JSON.parse(await machine.ok("cp", "gsv:in/big.bin", "desk:back/", "--json")) as Json;
    assert.deepEqual([told["state"], told["sha256"], told["sizeBytes"]], ["done", content, SIZE]);
    assert.equal(await sum(desk.file("back/big.bin")), content);
    await machine.ok("cp", "laptop:big.bin", "desk:relayed.bin");
    assert.equal(await sum(desk.file("relayed.bin")), content);
    assert.deepEqual([...leftovers(laptop), ...leftovers(desk)], []);
  });

  it("[TF7] [X14] refuses what exists, what is protected and what is outside, with words that help", async () => {
    writeFileSync(laptop.file("evil.md"), "evil");
    for (const [source, destination, code, words] of [
      ["laptop:big.bin", "gsv:in/big.bin", 1, /exists already.*--force/s],
      ["laptop:evil.md", "gsv:skills/evil/SKILL.md", 3, /gsv skills install/],
      ["laptop:evil.md", "gsv:SOUL.md", 3, /gsv workspace put/],
      ["laptop:/etc/passwd", "gsv:in/passwd", 1, /outside the workspace/],
      ["gsv:in/big.bin", "laptop:../out.bin", 1, /outside the workspace/],
      ["gsv:in/none", "laptop:none", 1, /There is no file/],
      ["laptop:none", "gsv:in/none", 1, /there is no "none"/i],
      ["evil.md", "gsv:in/evil.md", 2, /NODE:PATH/],
      ["nowhere:a", "gsv:in/a", 1, /There is no machine/],
    ] as const) {
      const ran = await machine.gsv(["cp", source, destination]);
      assert.match(ran.stderr, words, `${source} ${destination}`);
      assert.equal(ran.code, code, ran.stderr);
    }
    await machine.ok("cp", "laptop:evil.md", "gsv:in/big.txt");
    await machine.ok("cp", "laptop:evil.md", "gsv:in/big.txt", "--force");
  });

  it("[TF4] [K29] [P18] a source that is killed in the middle goes on when it is back", async () => {
    const id = await begin("laptop:big.bin", "gsv:killed/source.bin");
    await moving(id);
    await laptop.kill();
    laptop = await machine.node("laptop");
    assert.equal((await ending(id))["sha256"], content);
    assert.equal(await sum(workspaceFile("killed/source.bin")), content);
  });

  it("[TF4] [K29] [P18] a destination that is killed in the middle goes on where its temporary file is", async () => {
    const id = await begin("gsv:in/big.bin", "laptop:killed.bin");
    await moving(id);
    await laptop.kill();
    assert.equal(existsSync(laptop.file("killed.bin")), false);
    const [part] = leftovers(laptop);
    assert(part !== undefined && statSync(laptop.file(part)).size >= 4 * MIB);
    laptop = await machine.node("laptop");
    assert.equal((await ending(id))["sha256"], content);
    assert.equal(await sum(laptop.file("killed.bin")), content);
    assert.deepEqual(leftovers(laptop), []);
  });

  for (const [what, source, destination, file] of [
    ["receives", "laptop:big.bin", "gsv:killed/gateway.bin", () => workspaceFile("killed/gateway.bin")],
    ["sends", "gsv:in/big.bin", "laptop:gateway.bin", () => laptop.file("gateway.bin")],
    ["relays", "laptop:big.bin", "desk:gateway.bin", () => desk.file("gateway.bin")],
  ] as const)
    it(`[TF5] [W11] [K29] a gateway that is killed while it ${what} goes on after its restart`, async () => {
      const id = await begin(source, destination);
      await moving(id);
      await machine.killWorkerd();
      await reconnect();
      assert.equal((await ending(id))["sha256"], content);
      assert.equal(await sum(file()), content);
    });

  it("[TF5] [K30] a gateway that is killed while the file is stored ends with the whole file", async () => {
    const id = await begin("laptop:big.bin", "gsv:killed/end.bin");
    await until("it is being stored", async () => ["storing", "done"].includes(String((await shown(id))["state"])), undefined, 5);
    await machine.killWorkerd();
    await reconnect();
    assert.equal((await ending(id))["sha256"], content);
    assert.equal(await sum(workspaceFile("killed/end.bin")), content);
  });

  it("[TF4] [W12] a connection that is cut several times loses nothing", async () => {
    for (const [source, destination] of [
      ["desk:big.bin", "gsv:cut.bin"],
      ["gsv:in/big.bin", "desk:cut.bin"],
    ] as const) {
      await machine.online("desk");
      const id = await begin(source, destination);
      for (const least of [4 * MIB, 12 * MIB]) {
        await moving(id, least);
        proxy.cut();
        proxy.restore();
      }
      const ended = await ending(id);
      assert.equal(ended["state"], "done", JSON.stringify(ended));
    }
    assert.equal(await sum(workspaceFile("cut.bin")), await sum(desk.file("big.bin")));
    assert.equal(await sum(desk.file("cut.bin")), content);
  });

  it("[TF8] a transfer that is cancelled leaves nothing", async () => {
    await machine.online("laptop");
    const id = await begin("gsv:in/big.bin", "laptop:cancelled.bin");
    await moving(id);
    await client().call("transfer.cancel", { id });
    assert.equal((await ending(id))["reason"], "transfer.cancelled");
    await until("the temporary file is gone", () => leftovers(laptop).length === 0);
    assert.equal(existsSync(laptop.file("cancelled.bin")), false);
  });

  it("[P18] [TF2] 4 GiB take no more memory than a window needs", { skip: process.env["GSV_E2E_LONG"] === undefined }, async () => {
    const bytes = 4096 * MIB;
    mkdirSync(laptop.file("huge"));
    const piece = randomBytes(64 * MIB);
    for (let at = 0; at < bytes; at += piece.length) writeFileSync(laptop.file("huge/a"), piece, { flag: "a" });
    const pid = machine.state().workerdPid ?? 0;
    const before = peak(pid);
    const id = await begin("laptop:huge/a", "desk:huge.bin");
    const ended = await until(
      "4 GiB have arrived",
      async () => {
        const seen = await shown(id);
        return seen["endedAt"] === undefined ? undefined : seen;
      },
      1_800_000,
      500,
    );
    assert.equal(ended["state"], "done", JSON.stringify(ended));
    assert.equal(await sum(desk.file("huge.bin")), await sum(laptop.file("huge/a")));
    assert(peak(pid) - before < 64 * MIB, `${(peak(pid) - before) / MIB} MiB`);
  });
});
