/**
 * Archive: stores the transcript in the bucket and verifies it. The content follows from the intent in the state and from rows that never
 * change, so a repetition writes the same object. Removes nothing.
 */
import type { ArchiveStore } from "../../ports/archives.ts";
import type { Message } from "../../ports/messages.ts";
import type { GsvError, Result } from "../../ports/result.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { MessageRow } from "../machine/log.ts";
import { archiveEffectId } from "../machine/ids.ts";
import type { State } from "../machine/state.ts";
import { summaryMessage } from "../view.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";

export interface ArchivePorts {
  readonly state: () => State | undefined;
  /** The conversation's messages in order. */
  readonly messages: () => Iterable<MessageRow>;
  readonly archives: ArchiveStore;
  readonly after: After;
}
const TIMEOUT_MS = 60_000;

/** Undefined: the archive is not wanted any more. */
export async function archive(effect: EffectOf<"Archive">, ports: ArchivePorts): Promise<EventBody | undefined> {
  const state = ports.state();
  const run = state?.run;
  if (!state || run?.phase !== "archiving" || run.stage !== "archive" || archiveEffectId(run) !== effect.id) return undefined;
  const messages: Message[] = [...ports.messages()].filter((row) => row.seq >= run.from && row.seq <= run.upto).map((row) => row.message);
  // No other transcript has the summary, so this one begins with it.
  const before = run.kind === "reset" && state.summary ? [summaryMessage(state.summary)] : [];
  const { identity, sessionId, usage } = state;
  const failed = (error: GsvError): Result<never> => ({ ok: false, error });
  const writing = ports.archives
    .put({
      agentId: identity.agentId,
      sessionKey: identity.key,
      sessionId,
      ...(run.kind === "compact" ? { part: run.archivedAt } : {}),
      archivedAt: run.archivedAt,
      messages: [...before, ...messages],
      tokens: { input: usage.input, output: usage.output, total: usage.total },
    })
    .catch(() => failed({ reason: "storage.failed", message: "The bucket did not answer correctly." }));
  const put = await within(ports.after, TIMEOUT_MS, writing, () =>
    failed({ reason: "storage.failed", message: `The bucket did not answer within ${TIMEOUT_MS / 1000} s.` }),
  );
  if (!put.ok) return { type: "ArchiveFailed", effectId: effect.id, error: put.error };
  return { type: "Archived", effectId: effect.id, key: put.value.key, count: put.value.count - before.length };
}
