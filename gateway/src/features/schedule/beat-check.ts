/**
 * A dry run of the conditions of HEARTBEAT.md (rule HB12): each one is evaluated now, whatever the hours and the day's limit say. Changes
 * no mark, counts no failure and asks no model. Commands follow the policy and are audited as in a real look.
 */
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { asAgentId, type HeartbeatChecked } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { isWithin } from "../../schedule/beat.ts";
import { type Answers, failingAfter } from "../../schedule/failing.ts";
import { isAsked, standing } from "../../schedule/precheck.ts";
import type { AnswerPorts, Asking } from "./answers.lazy.ts";
import { blocked, factsOf, type LookPorts, readFile } from "./beat-look.ts";
import { type BeatBody, beatId } from "./job.ts";
import type { JobStore } from "./job-store.ts";

export interface CheckPorts extends LookPorts, Omit<AnswerPorts, "sha256">, Pick<KernelPorts, "ids"> {
  readonly store: Pick<JobStore, "find">;
}
type Checked = ResultOf<"heartbeat.check">;

/** The contract's limit. */
const MAX_CHECKED = 1_000;

export async function checkBeat(ports: CheckPorts, agentId: string, sessionKey: string): Promise<Checked> {
  const beat = ports.store.find(beatId(agentId))?.body.beat;
  const { instructions, taint } = await readFile(ports, agentId);
  const said = (wakes: boolean, message: string, conditions: readonly HeartbeatChecked[] = []): Checked => ({
    agentId: asAgentId(agentId),
    wakes,
    message,
    conditions: conditions.slice(0, MAX_CHECKED),
  });
  if (instructions.kind === "empty") return said(false, "HEARTBEAT.md has no task, so a heartbeat asks no model.");
  const editIt = (what: string): string => `Edit ${what}: \`gsv workspace edit HEARTBEAT.md --agent ${agentId}\`.`;
  const lines = instructions.kind === "wrong" ? instructions.lines : [];
  if (instructions.kind === "wrong" && lines.length === 0)
    return said(false, `The heartbeat is paused until HEARTBEAT.md is fixed: ${instructions.problem} ${editIt("it")}`);
  const { conditions } = instructions;
  const asked = conditions.filter(isAsked);
  const answers = await answersTo(ports, { agentId, asked, ...(taint === undefined ? {} : { taint }) });
  const { facts, wrong } = await factsOf(ports, agentId, conditions, beat ?? { marks: {} }, answers);
  const checked = [
    ...lines.map(({ number, text, why }): HeartbeatChecked => ({ condition: text, state: "wrong", why: `Line ${number}: it ${why}.` })),
    ...conditions.map((condition): HeartbeatChecked => {
      const { text } = condition;
      const unfit = wrong.get(text);
      if (unfit !== undefined) return { condition: text, state: "wrong", why: `It ${unfit}.` };
      const answer = facts.answers.get(text);
      if (answer?.kind === "failed") return { condition: text, state: "failed", why: answer.why };
      const { isTrue, why } = standing(condition, beat?.marks ?? {}, facts);
      return { condition: text, state: isTrue ? "true" : "false", why };
    }),
  ];
  if (checked.some(({ state }) => state === "wrong"))
    return said(false, `The heartbeat is paused until the wrong lines are fixed. ${editIt("them")}`, checked);
  const reason = wakeReason(checked, failingAfter(beat?.failing ?? {}, facts.answers, facts.now).tell.length > 0);
  if (reason === undefined) return said(false, "No condition is true, so a heartbeat asks no model.", checked);
  const not = await notNow(ports, agentId, sessionKey, beat);
  return said(not === undefined, not === undefined ? reason : `${reason} ${not}`, checked);
}
function wakeReason(checked: readonly HeartbeatChecked[], tells: boolean): string | undefined {
  if (checked.length === 0) return "HEARTBEAT.md has no condition, so each heartbeat asks the model.";
  if (checked.some(({ state }) => state === "true")) return "A condition is true, so a heartbeat asks the model.";
  return tells ? "A condition fails, so a heartbeat asks the model, once a day." : undefined;
}
/** Why no model is asked now although there is a reason. */
async function notNow(ports: CheckPorts, agentId: string, sessionKey: string, beat: BeatBody | undefined): Promise<string | undefined> {
  if (beat === undefined) return `But ${agentId} has no heartbeat: \`gsv heartbeat on --agent ${agentId}\`.`;
  const { hours } = beat.settings;
  if (hours !== undefined && !isWithin(hours, ports.now())) return "But not now: the active hours are over.";
  const not = await blocked(ports, agentId, sessionKey);
  return not?.kind === "skip" ? `But not now: ${not.text}` : undefined;
}
async function answersTo(ports: CheckPorts, asking: Asking): Promise<Answers> {
  if (asking.asked.length === 0) return new Map();
  const { answersOf } = await import("./answers.lazy.ts");
  return answersOf({ ...ports, sha256: ports.ids.sha256 }, asking);
}
