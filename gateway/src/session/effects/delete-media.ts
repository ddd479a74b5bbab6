/** DeleteMedia: after a reset deletes the old conversation's files (product rule P3.2), except those that a later message refers to. */
import type { SessionMedia } from "../../ports/media.ts";
import { type ContentBlock, isMediaBlock, type Message } from "../../ports/messages.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import type { IncomingMessage, State } from "../machine/state.ts";
import type { Flight, FlightEnd } from "../pump.ts";
import { retryLater } from "./append-memory.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";

export interface DeleteMediaPorts {
  readonly state: () => State | undefined;
  /** Rows with seq >= from, in order, at most `limit`. */
  readonly rows: (from: number, limit: number) => readonly LogRow[];
  readonly queued: () => readonly IncomingMessage[];
  readonly media: Pick<SessionMedia, "delete">;
  readonly after: After;
  readonly commit: (event: EventBody) => void;
  readonly deleted: (effectId: string, count: number) => void;
  /** Short names of files that are no longer stored are free again. */
  readonly dropNumbers: (keep: ReadonlySet<string>) => void;
}
const ROWS_AT_ONCE = 200;
/** Messages with files wait during a deletion. */
const TIMEOUT_MS = 20_000;
const AWAY = { ok: false, error: { reason: "storage.failed", message: "The bucket did not answer." } } as const;

export async function deleteMedia(effect: EffectOf<"DeleteMedia">, flight: Flight, ports: DeleteMediaPorts): Promise<FlightEnd> {
  const key = ports.state()?.identity.key;
  if (key !== undefined) {
    const kept = keep(effect, ports);
    const deletion = ports.media.delete(key, effect.before, kept).catch(() => AWAY);
    const gone = await within(ports.after, TIMEOUT_MS, deletion, () => AWAY);
    if (!gone.ok)
      return retryLater(
        effect,
        flight,
        ports.commit,
        `Files of the old conversation could not be deleted yet: ${gone.error.message} It is tried again.`,
      );
    ports.deleted(effect.id, gone.value);
    ports.dropNumbers(kept);
  }
  ports.commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
function keep({ from }: EffectOf<"DeleteMedia">, { rows, queued }: DeleteMediaPorts): ReadonlySet<string> {
  const keys = new Set<string>();
  const take = ({ role, content }: Message): void => {
    if (role === "assistant" || typeof content === "string") return;
    for (const block of content satisfies readonly ContentBlock[]) if (isMediaBlock(block)) keys.add(block.r2Key);
  };
  for (const { message } of queued()) take(message);
  for (let at = from; ; ) {
    const page = rows(at, ROWS_AT_ONCE);
    for (const row of page) {
      if (row.kind !== "notice") take(row.message);
      if (row.kind === "assistant") for (const { r2Key } of row.files ?? []) keys.add(r2Key);
    }
    const last = page.at(-1);
    if (!last || page.length < ROWS_AT_ONCE) return keys;
    at = last.seq + 1;
  }
}
