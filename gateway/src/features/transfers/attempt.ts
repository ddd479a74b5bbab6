/**
 * One attempt to copy a file: what happens at its two ends, and what follows (rules TF1 to TF6). PURE. It knows neither sockets nor buckets, and
 * keeps nothing over an interruption: the next attempt begins with the facts, and with what the destination has.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";

export type Attempt =
  | { readonly status: "asking" }
  | { readonly status: "offering" }
  /** `from`: what the destination had when the attempt began. */
  | { readonly status: "flowing"; readonly from: number; readonly received: number; readonly acked: number }
  | { readonly status: "finishing"; readonly from: number; readonly sha256: string }
  | { readonly status: "ended" };

/** What is known of the source, and whether the copy has begun again. Stored. */
export interface Facts {
  readonly sizeBytes?: number;
  /** Another text after each change of the source. */
  readonly version?: string;
  readonly sha256?: string;
  /** The copy has begun again, because what an earlier attempt had left was not the beginning of the file. */
  readonly again?: true;
}

export type AttemptEvent =
  /** The source has opened the file. */
  | { readonly kind: "found"; readonly sizeBytes: number; readonly version: string; readonly sha256?: string }
  /** The destination takes it, and has these bytes already. */
  | { readonly kind: "accepted"; readonly offset: number }
  | { readonly kind: "chunk"; readonly bytes: number }
  /** The destination has taken the file up to `offset`. After an interruption it goes on from `kept`; absent: from there, too. */
  | { readonly kind: "acked"; readonly offset: number; readonly kept?: number }
  /** The source has sent all. */
  | { readonly kind: "completed"; readonly sha256: string }
  /** The destination has checked and stored all. */
  | { readonly kind: "stored"; readonly sha256: string }
  | { readonly kind: "failed"; readonly reason: string; readonly message: string };

export type Effect =
  | { readonly kind: "offer"; readonly sizeBytes: number; readonly sha256?: string }
  | { readonly kind: "start"; readonly offset: number }
  | { readonly kind: "forward" }
  | { readonly kind: "acknowledge"; readonly offset: number }
  | { readonly kind: "progress"; readonly offset: number }
  | { readonly kind: "finish"; readonly sha256: string }
  | { readonly kind: "succeed"; readonly sha256: string }
  /** What the destination had is no beginning of this file, and it has removed all: another attempt copies the whole file. */
  | { readonly kind: "again" }
  | { readonly kind: "fail"; readonly reason: string; readonly message: string };

export interface Step {
  readonly attempt: Attempt;
  readonly facts: Facts;
  readonly effects: readonly Effect[];
}

const CHECKSUM = "transfer.checksum";

export const FIRST: Attempt = { status: "asking" };

const ended = (facts: Facts, reason: string, message: string): Step => ({
  attempt: { status: "ended" },
  facts,
  effects: [{ kind: "fail", reason, message }],
});
const misuse = (facts: Facts, what: string): Step => ended(facts, "transfer.failed", `An end of the copy broke the rules: ${what}.`);
/** A wrong checksum. Once, what the destination had before the attempt may be the cause. */
const differs = (attempt: Attempt, facts: Facts, message: string): Step =>
  attempt.status === "finishing" && attempt.from > 0 && facts.again === undefined
    ? { attempt: { status: "ended" }, facts: { ...facts, again: true }, effects: [{ kind: "again" }] }
    : ended(facts, CHECKSUM, message);
const changed = (facts: Facts): Step =>
  ended(facts, "transfer.source_changed", "The source file changed while it was copied, so nothing was stored.");

/** `maxBytes` is the largest file that both ends take. */
export function step(attempt: Attempt, facts: Facts, event: AttemptEvent, maxBytes: number): Step {
  if (attempt.status === "ended") return { attempt, facts, effects: [] };
  switch (event.kind) {
    case "failed":
      if (event.reason === CHECKSUM) return differs(attempt, facts, event.message);
      return ended(facts, event.reason, event.message);
    case "found": {
      if (attempt.status !== "asking") return misuse(facts, "the file was announced twice");
      const { sizeBytes, version, sha256 = facts.sha256 } = event;
      if (sizeBytes > maxBytes)
        return ended(facts, "file.too_large", `The file has ${sizeBytes} bytes; at most ${maxBytes} can be copied.`);
      if (facts.version !== undefined && (facts.version !== version || facts.sizeBytes !== sizeBytes)) return changed(facts);
      const known = sha256 === undefined ? {} : { sha256 };
      return {
        attempt: { status: "offering" },
        facts: { ...facts, sizeBytes, version, ...known },
        effects: [{ kind: "offer", sizeBytes, ...known }],
      };
    }
    case "accepted": {
      const { offset } = event;
      if (attempt.status !== "offering") return misuse(facts, "the file was accepted twice");
      if (offset > (facts.sizeBytes ?? 0)) return misuse(facts, "the destination has more than the file");
      return {
        attempt: { status: "flowing", from: offset, received: offset, acked: offset },
        facts,
        effects: [
          { kind: "progress", offset },
          { kind: "start", offset },
        ],
      };
    }
    case "chunk": {
      const { bytes } = event;
      if (attempt.status !== "flowing") return misuse(facts, "a chunk came before or after the file");
      const received = attempt.received + bytes;
      const size = facts.sizeBytes ?? 0;
      const isSmall = bytes < LIMITS.transferChunkLeastBytes && received !== size;
      if (bytes === 0 || isSmall || bytes > LIMITS.transferChunkBytes || received > size) return misuse(facts, "a chunk does not fit");
      if (received - attempt.acked > LIMITS.transferWindowBytes) return misuse(facts, "too much is on the way");
      return { attempt: { ...attempt, received }, facts, effects: [{ kind: "forward" }] };
    }
    case "acked": {
      const { offset, kept } = event;
      const progress: Effect = { kind: "progress", offset: kept ?? offset };
      if (attempt.status === "finishing") return { attempt, facts, effects: [progress] };
      if (attempt.status !== "flowing" || offset > attempt.received) return misuse(facts, "something was acknowledged that was not sent");
      if (offset <= attempt.acked) return { attempt, facts, effects: kept === undefined ? [] : [progress] };
      return { attempt: { ...attempt, acked: offset }, facts, effects: [progress, { kind: "acknowledge", offset }] };
    }
    case "completed": {
      const { sha256 } = event;
      if (attempt.status !== "flowing" || attempt.received !== facts.sizeBytes) return misuse(facts, "the file ended before its end");
      if (facts.sha256 !== undefined && facts.sha256 !== sha256) return changed(facts);
      return {
        attempt: { status: "finishing", from: attempt.from, sha256 },
        facts: { ...facts, sha256 },
        effects: [{ kind: "finish", sha256 }],
      };
    }
    case "stored":
      if (attempt.status !== "finishing") return misuse(facts, "the file was stored before its end");
      if (event.sha256 !== attempt.sha256) return differs(attempt, facts, "The copy differs from the source, so it does not count.");
      return { attempt: { status: "ended" }, facts, effects: [{ kind: "succeed", sha256: attempt.sha256 }] };
  }
}
