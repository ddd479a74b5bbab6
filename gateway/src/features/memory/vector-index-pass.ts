/**
 * Lets the vector index follow the memories, a bounded step each time (rules LM21 to LM23): removes vectors of what is gone, sends new ones,
 * and looks for what was sent. What waits is in the rows, so that a step can be cut anywhere. Must not decide what recall finds.
 */
import type { VectorIndexBehind } from "../../../../protocol/gen/types.ts";
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type EmbeddingModel, modelKey } from "../../ports/embeddings.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import { type VectorIndex, type VectorIndexRows, type VectorRow, VECTORS_AT_ONCE, VECTORS_FOUND } from "../../ports/vector-index.ts";
import type { VectorIndexStateStore } from "./vector-index-state-store.ts";

export interface VectorIndexPassPorts extends Pick<KernelPorts, "log" | "now"> {
  readonly rows: VectorIndexRows;
  readonly index: VectorIndex;
  readonly state: VectorIndexStateStore;
  /** As it is at this moment. Undefined: no service makes vectors. */
  readonly model: () => EmbeddingModel | undefined;
}
/** A vector that was under way when its removal was accepted has arrived after this time, and is removed then. */
export const REMOVE_AGAIN_MS = 600_000;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 3_600_000;
/** Batches that one step looks for. */
const BATCHES = 4;
/** About five minutes: much longer than the index takes to find what it accepted. */
const SLOW_TRIES = 6;
/** After so many looks a batch counts as lost, and is sent again. */
const LOST_TRIES = 12;
/** A score of vectors that do not differ, as an inexact index gives it. */
const EQUAL = 0.9999;
const NOT_FOUND =
  "The vector index accepts vectors and does not find them. Look whether it has the metadata indexes `agent` and `model`; they must be made before the first vector.";

/** `work`: more can be done at once. `looking`: something was sent and is not found yet. */
type Step = { readonly work: boolean; readonly looking: boolean; readonly removalAt: number | undefined };

export class VectorIndexPass {
  readonly #ports: VectorIndexPassPorts;

  constructor(ports: VectorIndexPassPorts) {
    this.#ports = ports;
  }

  /** One step, when it is due. */
  async run(): Promise<void> {
    const { state, now, log, rows } = this.#ports;
    const seen = state.read();
    if (seen.dueAt > now()) return;
    const step = await this.#step();
    const tries = seen.tries + 1;
    const pauseUntil = now() + backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    if (!step.ok) {
      log.warn("vector_index_behind", { tries, problem: step.error.message });
      return state.ended(pauseUntil, tries, step.error.message, seen.serial);
    }
    const { work, looking, removalAt = Number.POSITIVE_INFINITY } = step.value;
    if (work) return state.ended(now(), looking ? seen.tries : 0, undefined, seen.serial);
    // The index is looked at once a day: it may have been made new.
    if (!looking) return state.ended(Math.min(now() + DAY_MS, removalAt), 0, undefined, seen.serial);
    const resent = tries % LOST_TRIES === 0 ? await rows.resend(TENANT_ID, "not found") : succeed(undefined);
    // The same look again, which sends them then.
    if (!resent.ok) return state.ended(Math.min(pauseUntil, removalAt), seen.tries, resent.error.message, seen.serial);
    const problem = tries >= SLOW_TRIES ? NOT_FOUND : undefined;
    if (problem !== undefined) log.warn("vector_index_behind", { tries, problem });
    return state.ended(Math.min(pauseUntil, removalAt), tries, problem, seen.serial);
  }

  /** What the owner should know. Undefined: it follows. */
  async behind(): Promise<VectorIndexBehind | undefined> {
    const { problem, dueAt: nextAt } = this.#ports.state.read();
    const of = this.#ports.model();
    if (problem === undefined || of === undefined) return undefined;
    const counted = await this.#ports.rows.behind(TENANT_ID, of);
    return counted.ok ? { waiting: counted.value, problem, nextAt } : undefined;
  }

  async #step(): Promise<Result<Step>> {
    const removals = await this.#remove();
    if (!removals.ok) return removals;
    const of = this.#ports.model();
    if (of === undefined || !this.#ports.index.takes(of.dimensions)) return succeed({ ...removals.value, looking: false });
    const sent = await this.#send(of);
    if (!sent.ok) return sent;
    const looked = await this.#look(of);
    if (!looked.ok) return looked;
    const looking = looked.value.missing > 0;
    const work = removals.value.work || sent.value || looked.value.progress;
    if (work || looking) return succeed({ work, looking, removalAt: removals.value.removalAt });
    const isNew = await this.#isNew(of);
    return isNew.ok ? succeed({ ...removals.value, work: isNew.value, looking: false }) : isNew;
  }
  async #remove(): Promise<Result<Omit<Step, "looking">>> {
    const { rows, index, now } = this.#ports;
    const waiting = await rows.removals(TENANT_ID, VECTORS_AT_ONCE);
    if (!waiting.ok) return waiting;
    // A clock that was set back must not keep them.
    const due = waiting.value.filter(({ dueAt }) => dueAt <= now() || dueAt > now() + REMOVE_AGAIN_MS);
    const [next] = waiting.value;
    if (due.length === 0) return succeed({ work: false, removalAt: next?.dueAt });
    const removed = await index.remove(due.map(({ id }) => id));
    if (!removed.ok) return removed;
    const noted = await rows.removed(TENANT_ID, due, now() + REMOVE_AGAIN_MS);
    return noted.ok ? succeed({ work: true, removalAt: undefined }) : noted;
  }
  /** True: something was sent. */
  async #send(of: EmbeddingModel): Promise<Result<boolean>> {
    const { rows, index } = this.#ports;
    const unsent = await rows.unsent(TENANT_ID, of, VECTORS_AT_ONCE);
    if (!unsent.ok || unsent.value.length === 0) return unsent.ok ? succeed(false) : unsent;
    // From here on a removal of the row removes the vector, too.
    const claimed = await rows.sending(
      TENANT_ID,
      unsent.value.map(({ id }) => id),
    );
    if (!claimed.ok) return claimed;
    const ids = new Set(claimed.value);
    const batch = unsent.value.filter(({ id }) => ids.has(id));
    if (batch.length === 0) return succeed(true);
    const put = await index.put(TENANT_ID, of, batch);
    if (!put.ok) return put;
    const sent = await rows.sent(
      TENANT_ID,
      of,
      batch.map(({ id }) => id),
    );
    return sent.ok ? succeed(true) : sent;
  }
  /** `missing`: batches that are not found yet. `progress`: others may be. */
  async #look(of: EmbeddingModel): Promise<Result<{ readonly missing: number; readonly progress: boolean }>> {
    const { rows } = this.#ports;
    const batches = await rows.batches(TENANT_ID, of, BATCHES);
    if (!batches.ok) return batches;
    let missing = 0;
    for (const { id, probe } of batches.value) {
      const found = probe === undefined ? succeed(false) : await this.#finds(of, probe);
      if (!found.ok) return found;
      if (probe !== undefined && !found.value) missing++;
      else {
        const noted = await (probe === undefined ? rows.resend(TENANT_ID, { batch: id }) : rows.found(TENANT_ID, id));
        if (!noted.ok) return noted;
      }
    }
    return succeed({ missing, progress: missing < batches.value.length });
  }
  /** By its own vector, as a question would find it. */
  async #finds(of: EmbeddingModel, { id, agentId, vector }: VectorRow): Promise<Result<boolean>> {
    const found = await this.#ports.index.nearest({ tenantId: TENANT_ID, agentId }, { model: modelKey(of), vector });
    if (!found.ok) return found;
    // When more vectors are equal than an answer can have, it may name any of them.
    const isFull = found.value.length === VECTORS_FOUND && found.value.every(({ score }) => score > EQUAL);
    return succeed(isFull || found.value.some((near) => near.id === id));
  }
  /** True: it finds nothing of what it found before, so everything is sent again. */
  async #isNew(of: EmbeddingModel): Promise<Result<boolean>> {
    const { rows } = this.#ports;
    const samples = await rows.samples(TENANT_ID, of);
    if (!samples.ok || samples.value.length === 0) return samples.ok ? succeed(false) : samples;
    for (const sample of samples.value) {
      const found = await this.#finds(of, sample);
      if (!found.ok || found.value) return found.ok ? succeed(false) : found;
    }
    const again = await rows.resend(TENANT_ID, "all");
    return again.ok ? succeed(true) : again;
  }
}
