/** Checks messages that came during a run, once the world is at rest (gateway/spec/steering.md). */
import type { LogRow, UserRow } from "../../src/session/machine/log.ts";
import type { Acceptance, Owner } from "./acceptance.ts";
import type { Sent } from "./sent.ts";
import type { World } from "./world.ts";

const senderOf = ({ guest }: Sent): Owner => (guest === true ? "guest" : "owner");

export function checkSteering(world: World, sent: readonly Sent[], rows: readonly LogRow[]): void {
  const users = rows.filter((row): row is UserRow => row.kind === "user");
  for (const row of users) {
    const message = sent.find(({ messageId }) => messageId === row.messageId);
    if (row.steered && message?.wish !== "steer") world.problem(`${row.messageId} was shown to a run, but its sender did not ask to steer`);
  }
  for (const message of sent) {
    const accepted = world.disk.acceptances.get(`m:${message.messageId}`);
    const row = users.find(({ messageId }) => messageId === message.messageId);
    if (accepted === undefined || message.wish === undefined) continue;
    if (message.wish === "steer") checkShown(world, message, accepted, row, rows, sent);
    // [WB4] [WB5] A message interrupts only a run of its own sender; the owner's message interrupts every run.
    const interrupts =
      message.wish === "interrupt" && accepted.run !== undefined && (message.guest !== true || accepted.run.of === "guest");
    if (interrupts && !accepted.entered) world.problem(`${message.messageId} did not interrupt ${accepted.run?.runId}`);
    if (!interrupts && accepted.run !== undefined && accepted.entered)
      world.problem(`${message.messageId} entered the log while ${accepted.run.runId} was under way`);
  }
}

/** [WB2] [WB3] [WB5] At the next step of its run, or else next in the queue. */
function checkShown(
  world: World,
  message: Sent,
  { run }: Acceptance,
  row: UserRow | undefined,
  rows: readonly LogRow[],
  sent: readonly Sent[],
): void {
  const bad = (what: string): void => world.problem(`${message.messageId} ${what}`);
  const isForeign = run !== undefined && senderOf(message) !== run.of;
  if (row?.steered) {
    if (run === undefined || isForeign) return bad(`was shown to ${row.runId}, which it may not steer`);
    if (row.runId !== run.runId || row.steered.runId !== message.runId) bad(`was for ${run.runId} and was shown to ${row.runId}`);
    if (row.steered.step !== run.step + 1) bad(`came in step ${run.step} and was shown at step ${row.steered.step}`);
    const later = rows.find((other) => other.kind === "assistant" && other.runId === row.runId && other.seq > row.seq);
    if (later?.kind === "assistant" && later.step !== row.steered.step)
      bad(`was said to be shown at ${row.steered.step}, not ${later.step}`);
    return;
  }
  if (run === undefined || isForeign || row === undefined) return;
  const steps = rows.flatMap((other) => (other.kind === "assistant" && other.runId === run.runId ? [other.step] : []));
  if (steps.some((step) => step > run.step)) bad(`was not shown to ${run.runId} at step ${run.step + 1}`);
  // Nothing that waited for its turn went before it.
  const end = rows.findLast((other) => other.runId === run.runId && other.kind !== "user" && other.seq < row.seq)?.seq ?? 0;
  const before = rows.filter((other): other is UserRow => other.kind === "user" && other.seq > end && other.seq < row.seq);
  const waited = before.find(({ messageId }) => {
    const other = sent.find((one) => one.messageId === messageId);
    return other?.wish === undefined && other?.quiet !== true;
  });
  if (waited !== undefined) bad(`waited behind ${waited.messageId}`);
}
