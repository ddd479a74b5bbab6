/** How long `gsv undo` takes for the files of one run on a node. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ended } from "./measure.ts";
import type { BenchModel, QueuedCall } from "./model.ts";
import type { Gsv } from "./system.ts";

const CALLS_PER_STEP = 32;
const FOLDER = "bench-undo";
/** The run that changes the files is not measured. */
const RUN_MS = 300_000;

/** `node`: the machine, with this workspace. The time is that of the whole command. */
export async function undoOfRun(system: Gsv, model: BenchModel, node: { id: string; workspace: string }, files: number): Promise<number> {
  const session = "agent:main:cli:dm:undo";
  const names = Array.from({ length: files }, (_, index) => `${FOLDER}/${index}`);
  mkdirSync(join(node.workspace, FOLDER), { recursive: true });
  for (const name of names) writeFileSync(join(node.workspace, name), `first ${name}`.repeat(100));
  const calls: QueuedCall[] = names.map((path) => ({ name: `${node.id}__Write`, args: { path, content: `second ${path}` } }));
  for (let at = 0; at < calls.length; at += CALLS_PER_STEP) model.queued.push(calls.slice(at, at + CALLS_PER_STEP));
  const client = await system.open("bench-undo");
  const final = ended(client, session, RUN_MS);
  await system.say(client, session, "[text 1] change the files");
  await final;
  client.close();
  const from = performance.now();
  await system.cli("undo", "--session", session, "--yes");
  const took = performance.now() - from;
  const left = names.filter((name) => !readFileSync(join(node.workspace, name), "utf8").startsWith("first"));
  if (left.length > 0) throw new Error(`${left.length} files were not restored`);
  return took;
}
