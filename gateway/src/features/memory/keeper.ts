/**
 * Long-term memory as the gateway serves it (gateway/spec/memory.md): writes, recalls and forgets rows of one agent. The index is derived
 * from the rows and asked to follow them. Must not decide who may ask; the callers do.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Memory } from "../../../../protocol/gen/types.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type {
  LongTermMemory,
  MemoryPage,
  MemoryScope,
  NewMemory,
  Recalled,
  RecallHit,
  RecallInput,
  Remembered,
  Remembering,
  StoredMemory,
} from "../../ports/long-term-memory.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import { type Result, succeed, sentence } from "../../ports/result.ts";
import type { Vector } from "../../ports/embeddings.ts";
import type { VectorIndex } from "../../ports/vector-index.ts";
import type { MemoryNear, MemorySearchPort, SearchPort } from "../../ports/search.ts";
import { OWNER } from "../../ports/taint.ts";
import { isSameMemory, wellFormed } from "./same-memory.ts";
import { readUlid, ULID_BYTES, ulid } from "./ulid.ts";

export interface KeeperPorts extends MemorySearchPort, AgentDefinitionsPort, Pick<KernelPorts, "ids" | "log" | "now" | "scrub"> {
  readonly rows: LongTermMemory;
  readonly vectors: VectorWork;
  /** An agent's search index. */
  readonly searchIndex: (agentId: string) => SearchPort;
}
/** Vectors of an embedding service, when one is chosen. */
export interface VectorWork {
  /** Absent: none is bound, and every vector is compared. */
  readonly index?: Pick<VectorIndex, "nearest" | "takes">;
  /** Memories are about to leave recall, or did: the vector index follows after this time (epoch ms). */
  readonly announceToIndex: (dueAt: number) => void;
  /** Rows will wait for vectors. */
  readonly isChosen: () => boolean;
  /** Rows are about to be written: the gateway looks for them after this time (epoch ms), whatever happens to the caller. */
  readonly announce: (dueAt: number) => void;
  readonly question: (
    agentId: string,
    text: string,
    signal: AbortSignal,
  ) => Promise<Result<{ readonly model: string; readonly vector: Vector } | undefined>>;
}
export interface Adding {
  readonly agentId: string;
  readonly text: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly supersedes?: string;
  /** The token of the client. Its request ids are its own. */
  readonly tokenId: string;
  readonly requestId: string;
}
const DEFAULT_RECALLED = 10;
/** Longer than writing a row takes. */
const WRITE_MS = 30_000;
/** A longer memory is shown by the part that matches. */
const WHOLE_CHARS = 2_000;
/** Pages that a recall looks through when hits are left out. */
const SCANS = 3;
/** As the contract has them. */
const MAX_NOTES = 32;
const NOTE_CHARS = 400;
const scopeOf = (agentId: string): MemoryScope => ({ tenantId: TENANT_ID, agentId });
const unknown = (id: string) => fail("memory.unknown", `There is no memory ${JSON.stringify(id.slice(0, 32))}.`);

export class MemoryKeeper {
  readonly #ports: KeeperPorts;

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
  }

  async remember({ agentId, text, supersedes, taint, sessionKey, callId, now }: Remembering): Promise<Result<Remembered>> {
    const stored = await this.#store(agentId, supersedes, {
      content: text,
      metadata: {},
      author: "agent",
      taint,
      sessionKey,
      callId,
      createdAt: now,
    });
    if (!stored.ok) return stored;
    const { memory, isNew, superseded } = stored.value;
    return succeed({ id: memory.id, isNew, superseded });
  }
  async add({
    agentId,
    text,
    metadata,
    supersedes,
    tokenId,
    requestId,
  }: Adding): Promise<Result<{ readonly memory: Memory; readonly added: boolean }>> {
    const stored = await this.#store(agentId, supersedes, {
      content: text,
      metadata,
      author: "owner",
      taint: OWNER,
      sessionKey: "",
      callId: `${tokenId}/${requestId}`,
      // With a slash it could be the whole id of another token's request.
      ...(requestId.includes("/") ? {} : { earlierCallId: requestId }),
      createdAt: this.#ports.now(),
    });
    if (!stored.ok) return stored;
    const { memory, isNew } = stored.value;
    const asked = supersedes === undefined ? {} : { supersedes: readUlid(supersedes) ?? supersedes };
    if (!isNew && !isSameMemory(memory, { content: text, metadata, ...asked }))
      return fail("task.key_reused", "The same requestId was sent before with another memory.", "Send a new requestId with a new memory.");
    return succeed({ memory: this.shown(memory), added: isNew });
  }
  #store(agentId: string, given: string | undefined, memory: Omit<NewMemory, "id" | "supersedes">) {
    const { ids, rows } = this.#ports;
    const supersedes = given === undefined ? undefined : readUlid(given);
    if (given !== undefined && supersedes === undefined) return Promise.resolve(unknown(given));
    const id = ulid(memory.createdAt, ids.bytes(ULID_BYTES));
    const store = () =>
      this.#announced((awaitsVector) =>
        rows.store(
          scopeOf(agentId),
          { ...memory, ...wellFormed(memory), id, ...(supersedes === undefined ? {} : { supersedes }) },
          awaitsVector,
        ),
      );
    return supersedes === undefined ? store() : this.#unindexed(store);
  }
  /** The gateway is told before the row is written, so that its vector is made also when this call is cut after the row. */
  async #announced<T>(write: (awaitsVector: boolean) => Promise<T>): Promise<T> {
    const { vectors, now } = this.#ports;
    if (!vectors.isChosen()) return write(false);
    vectors.announce(now() + WRITE_MS);
    try {
      return await write(true);
    } finally {
      vectors.announce(now());
    }
  }
  /** The same for the vector index, from which vectors are removed. */
  async #unindexed<T>(write: () => Promise<T>): Promise<T> {
    const { vectors, now } = this.#ports;
    vectors.announceToIndex(now() + WRITE_MS);
    try {
      return await write();
    } finally {
      vectors.announceToIndex(now());
    }
  }

  /**
   * What the agent remembers about a question: rows, memory files and transcripts of its owner. A row is given as the database has it,
   * and only while the database has it.
   */
  async recall({ agentId, query, limit, snippetChars }: RecallInput): Promise<Result<Recalled>> {
    const config = this.#ports.definitionOf(agentId)?.memory_config;
    const most = config?.top_k;
    const wanted = Math.min(limit ?? most ?? DEFAULT_RECALLED, most ?? Number.MAX_SAFE_INTEGER);
    return this.#search({ agentId, query, wanted, snippetChars, rowsOnly: false, minScore: config?.min_score ?? 0 });
  }
  async search(agentId: string, query: string, limit: number): Promise<Result<Recalled>> {
    return this.#search({ agentId, query, wanted: limit, snippetChars: WHOLE_CHARS, rowsOnly: true, minScore: 0 });
  }
  async #search(asked: {
    readonly agentId: string;
    readonly query: string;
    readonly wanted: number;
    readonly snippetChars: number;
    readonly rowsOnly: boolean;
    readonly minScore: number;
  }): Promise<Result<Recalled>> {
    const { agentId, query, wanted, snippetChars, rowsOnly, minScore } = asked;
    const hits: RecallHit[] = [];
    const own: string[] = [];
    let notes: readonly string[] = [];
    let asking: Promise<MemoryNear | undefined> | undefined;
    const near = (): Promise<MemoryNear | undefined> => (asking ??= this.#near(agentId, query, own));
    for (let scan = 0, offset = 0; scan < SCANS && hits.length < wanted; scan++, offset += wanted) {
      const found = await this.#ports.memorySearch.find({
        agentId,
        query,
        limit: wanted,
        offset,
        snippetChars,
        rowsOnly,
        near,
        rowsState: () => this.#ports.rows.state(),
      });
      if (!found.ok) return found;
      if (scan === 0) notes = found.value.notes;
      const ids = found.value.hits.flatMap((hit) => (hit.kind === "memory" ? [hit.id] : []));
      const rows = await this.#ports.rows.get(scopeOf(agentId), ids);
      if (!rows.ok) return rows;
      for (const hit of found.value.hits) {
        if (scoreOf(hit) < minScore) continue;
        if (hit.kind === "text") hits.push(hit);
        else {
          const row = rows.value.get(hit.id);
          if (row !== undefined && row.supersededBy === undefined) hits.push(this.#whole(hit, row));
        }
      }
      if (!found.value.more) break;
    }
    return succeed({ hits: hits.slice(0, wanted), notes: [...own, ...notes].slice(0, MAX_NOTES) });
  }
  /** The question as a vector of the embedding service. A failure costs the meaning of this question: its words are still searched. */
  async #near(agentId: string, query: string, notes: string[]): Promise<MemoryNear | undefined> {
    const { vectors, log } = this.#ports;
    if (!vectors.isChosen()) return undefined;
    const asked = await vectors.question(agentId, query, AbortSignal.timeout(LIMITS.embeddingQuestionMs));
    if (asked.ok) return asked.value && this.#narrowed(agentId, asked.value, notes);
    log.warn("question_not_embedded", { agent: agentId, reason: asked.error.reason });
    notes.push(`${this.#ports.scrub(sentence(asked.error)).slice(0, NOTE_CHARS)} Memories were found without it.`);
    return undefined;
  }
  /** What the vector index finds, so that not every vector is compared. */
  async #narrowed(agentId: string, near: MemoryNear, notes: string[]): Promise<MemoryNear> {
    const { vectors, log } = this.#ports;
    if (vectors.index?.takes(near.vector.bytes.length) !== true) return near;
    const found = await vectors.index.nearest(scopeOf(agentId), near);
    // An index that finds nothing of the agent has none of its vectors.
    if (found.ok) return found.value.length === 0 ? near : { ...near, found: found.value.map(({ id }) => id) };
    log.warn("vector_index_not_asked", { agent: agentId, problem: found.error.message });
    notes.push("The vector index did not answer. Every memory was compared instead, which takes longer.");
    return near;
  }
  #whole(hit: Extract<RecallHit, { kind: "memory" }>, row: StoredMemory): RecallHit {
    const text = row.content.length <= WHOLE_CHARS ? this.#ports.scrub(row.content) : hit.text;
    return { ...hit, text, at: row.createdAt, taint: row.taint };
  }
  /** The rows of hits, as the contract has them. */
  async rowsOf(agentId: string, ids: readonly string[]): Promise<Result<ReadonlyMap<string, Memory>>> {
    const rows = await this.#ports.rows.get(scopeOf(agentId), ids);
    return rows.ok ? succeed(new Map([...rows.value].map(([id, row]) => [id, this.shown(row)]))) : rows;
  }

  list(
    agentId: string,
    asked: { readonly before?: string; readonly superseded: boolean; readonly limit: number },
  ): Promise<Result<MemoryPage>> {
    return this.#ports.rows.list(scopeOf(agentId), asked);
  }
  /**
   * Removes rows, then everything that was made of them. The index is told first: it looks at the rows again also when this call is cut
   * between the two.
   */
  async forget(agentId: string, given: readonly string[]): Promise<Result<number>> {
    const ids = given.flatMap((id) => readUlid(id) ?? []);
    if (ids.length === 0) return succeed(0);
    const { log } = this.#ports;
    const index = this.#ports.searchIndex(agentId);
    try {
      await index.memoriesWillChange();
      const removed = await this.#unindexed(() => this.#ports.rows.remove(scopeOf(agentId), ids));
      if (!removed.ok) return removed;
      await index.memoriesChanged();
      return removed;
    } catch (error) {
      log.error("memories_not_forgotten", { agent: agentId, error });
      return fail(
        "storage.failed",
        "The memories were only partly removed: the search index did not answer.",
        "Run the same `gsv memory forget` again.",
      );
    }
  }

  /** Secrets are masked, and a memory never has more than the contract allows. */
  shown({
    id,
    content,
    metadata,
    author,
    taint,
    sessionKey,
    callId,
    supersedes,
    supersededBy,
    createdAt,
    embedding,
  }: StoredMemory): Memory {
    const { scrub } = this.#ports;
    return {
      id,
      text: scrub(content).slice(0, LIMITS.memoryBytes),
      ...(Object.keys(metadata).length === 0
        ? {}
        : { metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, scrub(value).slice(0, 1024)])) }),
      author,
      label: taint.label,
      labelSource: scrub(taint.source),
      ...(sessionKey === "" ? {} : { sessionKey: asSessionKey(sessionKey), callId: callId.slice(0, 256) }),
      ...(embedding === undefined || !this.#ports.vectors.isChosen() ? {} : { embedding: embedding.state }),
      ...(supersedes === undefined ? {} : { supersedes }),
      ...(supersededBy === undefined ? {} : { supersededBy }),
      at: createdAt,
    };
  }
}
const scoreOf = (hit: RecallHit): number => (hit.kind === "text" ? hit.hit.score : hit.score);
