/** What a sandbox costs a command: the same command on three nodes of this machine, which take turns. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { median, run, start, stop } from "./process.ts";
import { gsv, type Gsv } from "./system.ts";

export interface SandboxCost {
  /** Of a call without a sandbox. */
  readonly offMs: number;
  /** Undefined: this machine does not have the tier. */
  readonly bubblewrapMs: number | undefined;
  readonly landlockMs: number | undefined;
  /** What bubblewrap itself takes, without GSV: the least that its tier can cost on this machine. */
  readonly bubblewrapAloneMs: number | undefined;
}
interface Node {
  readonly id: string;
  /** What its commands must run in. */
  readonly tier: string | undefined;
  readonly policy: string;
  readonly env: Readonly<Record<string, string>>;
}
const NODES: readonly Node[] = [
  { id: "cost-off", tier: undefined, policy: 'sandbox = "off"\n', env: {} },
  { id: "cost-bubblewrap", tier: "bubblewrap", policy: "", env: {} },
  // Without bubblewrap in its PATH a node has Landlock.
  { id: "cost-landlock", tier: "landlock", policy: "", env: { PATH: "/nonexistent" } },
];
interface Listed {
  readonly nodeId: string;
  readonly online: boolean;
  readonly sandbox?: { readonly tier?: string };
}

/** What the user's login shell does at its start would be a part of each sample, so the shell is `sh`, with a home without a profile. */
export async function sandboxCost(system: Gsv, samples: number): Promise<SandboxCost> {
  const client = await system.open("bench-sandbox");
  const policy = join(system.env["GSV_CONFIG_DIR"] ?? "", "node.toml");
  // Not among temporary files, which bubblewrap covers.
  const home = mkdtempSync(join(homedir(), ".gsv-bench-"));
  const stops: (() => Promise<void>)[] = [];
  const times = new Map<string, number[]>();
  try {
    for (const node of NODES) {
      const workspace = join(system.home, node.id);
      mkdirSync(workspace);
      writeFileSync(policy, node.policy, { mode: 0o600 });
      const env = { ...system.env, HOME: home, SHELL: "/bin/sh", ...node.env };
      const child = start(gsv, ["node", "--id", node.id, "--workspace", workspace], env);
      stops.push(() => stop(child));
      const found = await online(client, node.id);
      if (found.sandbox?.tier === node.tier) times.set(node.id, []);
    }
    for (let count = -3; count < samples; count++)
      for (const [id, found] of times) {
        const from = performance.now();
        const { error } = await client.call("tool.invoke", { tool: `${id}__Bash`, args: { command: "true" }, timeoutMs: 60_000 });
        if (error !== undefined) throw new Error(`${id}: ${JSON.stringify(error)}`);
        if (count >= 0) found.push(performance.now() - from);
      }
  } finally {
    for (const end of stops) await end();
    rmSync(policy, { force: true });
    rmSync(home, { recursive: true, force: true });
    client.close();
  }
  const cost = (id: string): number | undefined => {
    const found = times.get(id);
    return found && median(found);
  };
  const offMs = cost("cost-off");
  if (offMs === undefined) throw new Error("the node without a sandbox has one");
  const bubblewrapMs = cost("cost-bubblewrap");
  return {
    offMs,
    bubblewrapMs,
    landlockMs: cost("cost-landlock"),
    bubblewrapAloneMs: bubblewrapMs === undefined ? undefined : await bubblewrapAlone(samples),
  };
}

/** A command in a sandbox with the namespaces and file systems of any sandbox, over the same command without one. */
async function bubblewrapAlone(samples: number): Promise<number> {
  const sandbox = "--ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --unshare-all --die-with-parent true".split(" ");
  const found: number[] = [];
  for (let count = -3; count < samples; count++) {
    const plain = (await run("true", [])).ms;
    const confined = (await run("bwrap", sandbox)).ms;
    if (count >= 0) found.push(confined - plain);
  }
  return median(found);
}

async function online(client: Awaited<ReturnType<Gsv["open"]>>, id: string): Promise<Listed> {
  for (const until = performance.now() + 20_000; ; ) {
    const { payload } = await client.call("nodes.list", {});
    const found = ((payload?.["nodes"] ?? []) as Listed[]).find((node) => node.nodeId === id && node.online);
    if (found !== undefined) return found;
    if (performance.now() > until) throw new Error(`${id} did not come online`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
