/**
 * Looks whether a heartbeat has something to do, before any model is asked (rules HB3, HB4, HB7). Reads files of the agent's workspace
 * and when others wrote, and changes nothing.
 */
import type { HeartbeatSkip } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { SpendPort } from "../../ports/spend.ts";
import { isForeign, type Taint } from "../../ports/taint.ts";
import { isWithin } from "../../schedule/beat.ts";
import { check, type Condition, type Instructions, type Marks, readInstructions, unreadSince } from "../../schedule/precheck.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { fileKey, parsePath } from "../../storage/keys.ts";
import { taintOf } from "../../storage/versions.ts";
import type { BeatBody } from "./job.ts";

export interface LookPorts extends SessionsPort, SpendPort, ChannelsOutPort, Pick<KernelPorts, "config" | "now"> {
  readonly bucket: Pick<Bucket, "get" | "head">;
}
export type Look =
  | { readonly kind: "skip"; readonly reason: HeartbeatSkip; readonly text: string; readonly marks?: Marks }
  /** `because`: conditions that are true; none, when the file has none or the owner has asked. */
  | { readonly kind: "wake"; readonly because: readonly string[]; readonly marks: Marks };

const FILE = "HEARTBEAT.md";
const MAX_BYTES = 65_536;
const skip = (reason: HeartbeatSkip, text: string, marks?: Marks): Look => ({
  kind: "skip",
  reason,
  text,
  ...(marks === undefined ? {} : { marks }),
});

/** `byHand`: the owner asks now, so that hours and conditions do not count. */
export async function look(ports: LookPorts, agentId: string, sessionKey: string, beat: BeatBody, byHand: boolean): Promise<Look> {
  const { config, now, sessions, ask, spendFull } = ports;
  const { hours } = beat.settings;
  if (!byHand && hours !== undefined && !isWithin(hours, now())) return skip("hours", "The active hours are over.");
  const { instructions } = await readFile(ports, agentId);
  if (instructions.kind === "empty") return skip("empty", "HEARTBEAT.md has no task.");
  if (instructions.kind === "wrong") return skip("wrong", instructions.problem);
  const { conditions } = instructions;
  const states = await statesOf(ports, agentId, conditions);
  const at = now();
  const wrote = new Map<string, number>();
  for (const condition of conditions) {
    if (condition.kind !== "unread") continue;
    const { channel, text } = condition;
    const last = ports.channelsOut.lastFromOthers(channel, agentId, unreadSince(text, beat.marks, at));
    if (last === undefined) return skip("wrong", `\`${text}\` in HEARTBEAT.md names a channel that this gateway does not have.`);
    wrote.set(channel, last);
  }
  const found = check(conditions, beat.marks, { now: at, tz: hours?.tz ?? config.effective().userTimezone, states, wrote });
  if (!byHand && conditions.length > 0 && found.due.length === 0)
    return skip("not_due", "No condition of HEARTBEAT.md is true.", found.marks);
  if (sessions.find(sessionKey) !== undefined && (await ask(sessionKey, (session) => session.resume())).busy)
    return skip("busy", "A run goes on in the main conversation.");
  const full = spendFull(agentId);
  if (full !== undefined) return skip("budget", `The limit ${full} is used up.`);
  return { kind: "wake", because: found.due, marks: found.marks };
}
/** The file as it is now. `taint`: of a conversation that wrote it. */
export async function readFile(
  { bucket }: Pick<LookPorts, "bucket">,
  agentId: string,
): Promise<{ readonly instructions: Instructions; readonly taint?: Taint }> {
  const path = parsePath(FILE);
  const object = path.ok ? await bucket.get(fileKey(agentId, path.value)) : null;
  if (object === null) return { instructions: { kind: "empty" } };
  if (object.size > MAX_BYTES)
    return { instructions: { kind: "wrong", problem: `HEARTBEAT.md has ${object.size} bytes; at most ${MAX_BYTES} are read.` } };
  const taint = taintOf(object);
  return { instructions: readInstructions(await object.text()), ...(isForeign(taint) ? { taint } : {}) };
}
async function statesOf({ bucket }: LookPorts, agentId: string, conditions: readonly Condition[]): Promise<ReadonlyMap<string, string>> {
  const paths = conditions.flatMap((condition) => (condition.kind === "file_changed" ? [condition.path] : []));
  const states = await Promise.all(
    paths.map(async (given) => {
      const path = parsePath(given);
      const object = path.ok ? await bucket.head(fileKey(agentId, path.value)) : null;
      return [given, object === null ? "absent" : object.etag] as const;
    }),
  );
  return new Map(states);
}
