/** Transfers, from outside: the built program, a real gateway and real nodes. Each side is cut off and killed in the middle. `GSV_E2E_LONG`: 4 GiB. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
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
      ["laptop:none", "gsv:in/none", 1, /laptop:none does not exist\./],
      ["evil.md", "gsv:in/evil.md", 1, /can't be read/],
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

  const GIB = 1024 * MIB;
  /** Long tests are asked for, and need room on the disk. */
  const long = (needed: number): { skip: string | false } => {
    if (process.env["GSV_E2E_LONG"] === undefined) return { skip: "GSV_E2E_LONG is not set" };
    const { bavail, bsize } = statfsSync(tmpdir());
    const free = Math.floor((bavail * bsize) / GIB);
    return { skip: free < needed && `needs ${needed} GiB of disk, and ${tmpdir()} has ${free} GiB free` };
  };
  const speed = (bytes: number, ms: number): string => `${Math.round(bytes / 1e6 / (ms / 1000))} MB/s`;
  /** `cp`, and the same with the wait until the disk has it. */
  const plainCopy = (file: string): string => {
    const [bytes, copy, from] = [statSync(file).size, `${file}.plain`, performance.now()];
    copyFileSync(file, copy);
    const copied = performance.now() - from;
    const fd = openSync(copy, "r");
    fsyncSync(fd);
    closeSync(fd);
    const synced = performance.now() - from;
    rmSync(copy);
    return `cp ${speed(bytes, copied)}, with sync ${speed(bytes, synced)}`;
  };
  const huge = (file: string, bytes: number): void => {
    const piece = randomBytes(64 * MIB);
    for (let at = 0; at < bytes; at += piece.length) writeFileSync(file, piece, { flag: at === 0 ? "w" : "a" });
  };
  const longEnd = async (id: string): Promise<Json> =>
    until(
      "the copy has ended",
      async () => {
        const seen = await shown(id).catch(() => undefined);
        if (seen === undefined) await reconnect();
        return seen?.["endedAt"] === undefined ? undefined : seen;
      },
      1_800_000,
      250,
    );

  it("[P18] [TF2] [TF4] [TF5] [TF15] 4 GiB over 10 cuts and 3 kills of each side, in bounded memory", long(13), async (t) => {
    const bytes = 4 * GIB;
    mkdirSync(laptop.file("huge"));
    huge(laptop.file("huge/a"), bytes);
    await machine.online("desk");
    /** The most that a process has had beyond what it had at its start, by its part. */
    const grown: Record<string, number> = {};
    const watched = new Map<string, { readonly pid: number; readonly before: number }>();
    const watch = (part: string, pid: number): void => void watched.set(part, { pid, before: peak(pid) });
    const look = (part: string): void => {
      const { pid, before } = watched.get(part) ?? { pid: 0, before: 0 };
      grown[part] = Math.max(grown[part] ?? 0, peak(pid) - before);
    };
    const gatewayPid = (): number => machine.state().workerdPid ?? 0;
    const watchAll = (): void => {
      watch("source", laptop.pid);
      watch("destination", desk.pid);
      watch("gateway", gatewayPid());
    };
    watchAll();
    const cut = (): void => {
      proxy.cut();
      proxy.restore();
    };
    const killSource = async (): Promise<void> => {
      look("source");
      await laptop.kill();
      laptop = await machine.node("laptop");
      watch("source", laptop.pid);
    };
    const killDestination = async (): Promise<void> => {
      look("destination");
      await desk.kill();
      desk = await machine.node("desk", undefined, { GSV_URL: proxy.url });
      watch("destination", desk.pid);
    };
    const killGateway = async (): Promise<void> => {
      look("gateway");
      await machine.killWorkerd();
      await reconnect();
      watch("gateway", gatewayPid());
    };
    const round = [cut, killSource, cut, killDestination, cut, killGateway];
    const faults = [...round, ...round, ...round, cut];
    assert.equal(faults.filter((fault) => fault === cut).length, 10);
    const began = performance.now();
    const id = await begin("laptop:huge/a", "desk:huge.bin");
    for (const [nth, fault] of faults.entries()) {
      const least = Math.floor((bytes / (faults.length + 1)) * (nth + 1));
      await until("the next place of a fault", async () => Number((await shown(id))["doneBytes"]) >= least, 600_000, 150);
      await fault();
    }
    const ended = await longEnd(id);
    assert.equal(ended["state"], "done", JSON.stringify(ended));
    const seconds = (performance.now() - began) / 1000;
    const [copied, content] = [await sum(desk.file("huge.bin")), await sum(laptop.file("huge/a"))];
    assert.equal(copied, content);
    for (const part of watched.keys()) look(part);
    const told = Object.entries(grown).map(([part, more]) => `${part} ${Math.round(more / MIB)} MiB`);
    t.diagnostic(
      `4 GiB over ${faults.length} faults in ${seconds.toFixed(0)} s, sha256 ${copied}; most memory beyond the start: ${told.join(", ")}`,
    );
    for (const part of ["source", "destination", "gateway"]) assert((grown[part] ?? 0) <= 64 * MIB, told.join(", "));
    rmSync(desk.file("huge.bin"));
    const from = performance.now();
    const whole = await longEnd(await begin("laptop:huge/a", "desk:huge.bin"));
    assert.equal(whole["sha256"], content);
    const took = performance.now() - from;
    rmSync(desk.file("huge.bin"));
    t.diagnostic(`4 GiB between two machines without a fault: ${speed(bytes, took)}; ${plainCopy(laptop.file("huge/a"))}`);
    rmSync(laptop.file("huge"), { recursive: true });
  });

  it(
    "[P18] [TF3] [TF8] [TF10] [TF15] 4 GiB become a file of the workspace over a kill in the middle of the join, and the gateway answers meanwhile",
    long(22),
    async (t) => {
      const bytes = 4 * GIB;
      huge(laptop.file("huge.bin"), bytes);
      await machine.online("laptop");
      const folder = join(machine.home, "workspace");
      const unfinished = (): string[] =>
        readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.huge\.bin\.\d+\.\d+\.tmp$/.test(name));
      let before = peak(machine.state().workerdPid ?? 0);
      let more = 0;
      const look = (): void => {
        more = Math.max(more, peak(machine.state().workerdPid ?? 0) - before);
      };
      const began = performance.now();
      const id = await begin("laptop:huge.bin", "gsv:huge.bin");
      let slowest = 0;
      const asked = async (): Promise<Json> => {
        const from = performance.now();
        const seen = await shown(id);
        slowest = Math.max(slowest, performance.now() - from);
        return seen;
      };
      const state = (wanted: string): Promise<Json> =>
        until(
          `the copy is ${wanted}`,
          async () => {
            const seen = await asked();
            assert.notEqual(seen["state"], "failed", JSON.stringify(seen));
            return seen["state"] === wanted ? seen : undefined;
          },
          1_800_000,
          150,
        );
      await state("storing");
      const received = performance.now() - began;
      await until(
        "a quarter is joined",
        async () =>
          (await asked()) && unfinished().some((name) => Number(statSync(join(folder, name), { throwIfNoEntry: false })?.size) > bytes / 4),
        600_000,
        150,
      );
      look();
      await machine.killWorkerd();
      await reconnect();
      before = peak(machine.state().workerdPid ?? 0);
      await state("storing");
      const joining = performance.now();
      const ended = await state("done");
      look();
      const joined = performance.now() - joining;
      const content = await sum(laptop.file("huge.bin"));
      assert.equal(ended["sha256"], content);
      assert.equal(await sum(workspaceFile("huge.bin")), content);
      const told = [
        `sha256 ${content}`,
        `received at ${speed(bytes, received)}, joined at ${speed(bytes, joined)}`,
        plainCopy(laptop.file("huge.bin")),
        `gateway +${Math.round(more / MIB)} MiB, slowest answer ${Math.round(slowest)} ms`,
      ].join("; ");
      t.diagnostic(`4 GiB into the workspace: ${told}`);
      assert(more <= 64 * MIB, told);
      await until("what the killed gateway was writing is removed", () => unfinished().length === 0);
      rmSync(laptop.file("huge.bin"));
      rmSync(workspaceFile("huge.bin"));
    },
  );
});
