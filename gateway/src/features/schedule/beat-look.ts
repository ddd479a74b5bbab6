/**
 * Looks whether a heartbeat has something to do, before any model is asked (rules HB3, HB4, HB7). Reads files of the agent's workspace
 * and when others wrote, and changes nothing. What pages and machines have to answer is asked by the caller, between two looks.
 */
import type { HeartbeatSkip } from "../../../../protocol/gen/types.ts";
import { unknownMachine } from "../../kernel/machine-name.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { SpendPort } from "../../ports/spend.ts";
import { isForeign, type Taint } from "../../ports/taint.ts";
import { isWithin } from "../../schedule/beat.ts";
import { type Answers, failingAfter, failingSentence, toldOf } from "../../schedule/failing.ts";
import {
  type Asked,
  check,
  type Condition,
  type Facts,
  type Instructions,
  isAsked,
  problemOf,
  readInstructions,
  unreadSince,
  wrong,
} from "../../schedule/precheck.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { fileKey, parsePath } from "../../storage/keys.ts";
import { taintOf } from "../../storage/versions.ts";
import type { BeatBody } from "./job.ts";

export interface LookPorts extends SessionsPort, SpendPort, ChannelsOutPort, NodesPort, Pick<KernelPorts, "config" | "now"> {
  readonly bucket: Pick<Bucket, "get" | "head">;
}
/** What a look has found, for the next one. */
export type Found = Pick<BeatBody, "marks" | "failing">;
export type Look =
  /** `condition`: one that is wrong and that only a look can judge, as the file has it. */
  | {
      readonly kind: "skip";
      readonly reason: HeartbeatSkip;
      readonly text: string;
      readonly condition?: string;
      readonly found?: Found;
    }
  /** `because`: conditions that are true; none, when the file has none or the owner has asked. `failing`: a sentence for each that the model is told of. */
  | { readonly kind: "wake"; readonly because: readonly string[]; readonly failing: readonly string[]; readonly found: Found }
  /** Look again with their answers. */
  | { readonly kind: "ask"; readonly asked: readonly Asked[]; readonly taint?: Taint };

const FILE = "HEARTBEAT.md";
const MAX_BYTES = 65_536;
const skip = (reason: HeartbeatSkip, text: string, found?: Found): Look => ({
  kind: "skip",
  reason,
  text,
  ...(found === undefined ? {} : { found }),
});
export interface LookedAt {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly beat: BeatBody;
  /** The owner asks now, so that hours and conditions do not count. */
  readonly byHand: boolean;
}

/** `answers`: of the conditions that the look before has asked for. */
export async function look(ports: LookPorts, { agentId, sessionKey, beat, byHand }: LookedAt, answers?: Answers): Promise<Look> {
  const { hours } = beat.settings;
  if (!byHand && hours !== undefined && !isWithin(hours, ports.now())) return skip("hours", "The active hours are over.");
  const { instructions, taint } = await readFile(ports, agentId);
  if (instructions.kind === "empty") return skip("empty", "HEARTBEAT.md has no task.");
  if (instructions.kind === "wrong") return skip("wrong", (await beatProblem(ports, agentId, instructions)) ?? instructions.problem);
  const { conditions } = instructions;
  const asked = conditions.filter(isAsked);
  if (asked.length > 0 && answers === undefined) {
    // Nothing is asked for a heartbeat that may not run.
    return (await blocked(ports, agentId, sessionKey)) ?? { kind: "ask", asked, ...(taint === undefined ? {} : { taint }) };
  }
  const { facts, wrong } = await factsOf(ports, agentId, conditions, beat, answers);
  // Of several, the first that only a look can judge says how long the reason holds.
  const condition = asked.find(({ text }) => wrong.has(text))?.text;
  if (wrong.size > 0) return { ...skip("wrong", problemOf([], wrong)), ...(condition === undefined ? {} : { condition }) };
  const at = facts.now;
  const { due, marks } = check(conditions, beat.marks, facts);
  const { failing, tell } = failingAfter(beat.failing ?? {}, facts.answers, at);
  if (!byHand && conditions.length > 0 && due.length === 0 && tell.length === 0) {
    const count = Object.values(failing).filter((one) => one.count > 0).length;
    const also = count === 0 ? "" : ` ${count} of them could not be looked at.`;
    return skip("not_due", `No condition of HEARTBEAT.md is true.${also}`, { marks, failing });
  }
  // A condition that was true stays so until a heartbeat has run; a failure is counted in any case.
  const isBlocked = await blocked(ports, agentId, sessionKey, { marks: beat.marks, failing });
  if (isBlocked !== undefined) return isBlocked;
  const sentences = tell.flatMap((text) => (failing[text] === undefined ? [] : [failingSentence(text, failing[text])]));
  return { kind: "wake", because: due, failing: sentences, found: { marks, failing: toldOf(failing, tell, at) } };
}
/** What stops the heartbeat, as far as file, channels and the list of machines show it: pages and machines are asked by a look only. */
export async function beatProblem(ports: FactPorts, agentId: string, instructions: Instructions): Promise<string | undefined> {
  if (instructions.kind === "empty") return undefined;
  const lines = instructions.kind === "wrong" ? instructions.lines : [];
  if (instructions.kind === "wrong" && lines.length === 0) return instructions.problem;
  const { wrong } = await factsOf(ports, agentId, instructions.conditions, { marks: {} });
  return lines.length === 0 && wrong.size === 0 ? undefined : problemOf(lines, wrong);
}
type FactPorts = Pick<LookPorts, "bucket" | "channelsOut" | "config" | "nodes" | "now">;
/** `wrong`: conditions that cannot be followed, each with the end of a sentence that begins with it. */
export async function factsOf(
  ports: FactPorts,
  agentId: string,
  conditions: readonly Condition[],
  { marks, settings }: Pick<BeatBody, "marks"> & { readonly settings?: Pick<BeatBody["settings"], "hours"> },
  asked: Answers = new Map(),
): Promise<{ readonly facts: Facts & { readonly answers: Answers }; readonly wrong: ReadonlyMap<string, string> }> {
  const { channelsOut, config } = ports;
  const states = await statesOf(ports, agentId, conditions);
  const now = ports.now();
  const answers = new Map(asked);
  const wrote = new Map<string, number>();
  const wrong = new Map<string, string>();
  for (const condition of conditions) {
    const { text } = condition;
    const answer = asked.get(text);
    if (answer?.kind === "wrong") wrong.set(text, answer.why);
    else if (condition.kind === "exec" && !ports.nodes.list().some(({ nodeId }) => nodeId === condition.nodeId))
      wrong.set(text, unknownMachine(condition.nodeId));
    if (condition.kind !== "unread") continue;
    const { channel } = condition;
    const last = channelsOut.lastFromOthers(channel, agentId, unreadSince(text, marks, now));
    if (last === undefined) wrong.set(text, "names a channel that this gateway does not have");
    else if (!channelsOut.wasStarted(channel))
      answers.set(text, { kind: "failed", why: `The channel ${channel} was never started: \`gsv channel start ${channel}\`.` });
    else wrote.set(channel, last);
  }
  return { facts: { now, tz: settings?.hours?.tz ?? config.effective().userTimezone, states, wrote, answers }, wrong };
}
/** Why no run may begin now. */
export async function blocked(
  { sessions, ask, spendFull }: LookPorts,
  agentId: string,
  sessionKey: string,
  found?: Found,
): Promise<Look | undefined> {
  if (sessions.find(sessionKey) !== undefined && (await ask(sessionKey, (session) => session.resume())).busy)
    return skip("busy", "A run goes on in the main conversation.", found);
  const full = spendFull(agentId);
  return full === undefined ? undefined : skip("budget", `The limit ${full} is used up.`, found);
}
/** The file as it is now. `taint`: of a conversation that wrote it. */
export async function readFile(
  { bucket }: Pick<LookPorts, "bucket">,
  agentId: string,
): Promise<{ readonly instructions: Instructions; readonly taint?: Taint }> {
  const path = parsePath(FILE);
  const object = path.ok ? await bucket.get(fileKey(agentId, path.value)) : null;
  if (object === null) return { instructions: { kind: "empty" } };
  if (object.size > MAX_BYTES) return { instructions: wrong(`HEARTBEAT.md has ${object.size} bytes; at most ${MAX_BYTES} are read.`) };
  const taint = taintOf(object);
  return { instructions: readInstructions(await object.text()), ...(isForeign(taint) ? { taint } : {}) };
}
async function statesOf(
  { bucket }: Pick<LookPorts, "bucket">,
  agentId: string,
  conditions: readonly Condition[],
): Promise<ReadonlyMap<string, string>> {
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
