/** Long-term memory: facts that an agent keeps between conversations (gateway/spec/memory.md). */
import type { EmbeddingsConfig } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type { MemoryPort } from "../../ports/long-term-memory.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { MemorySearchPort, SearchPort } from "../../ports/search.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { SpendPort } from "../../ports/spend.ts";
import type { VectorBinding } from "../../ports/vector-index.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import type { EmbeddingAi } from "../../ports/embeddings.ts";
import { type ChosenEmbeddings, chosenEmbeddings, targetOf } from "../../embeddings/choose.ts";
import { beginsAgain, EMBEDDING_MIGRATIONS, EmbeddingStateStore } from "./embedding-state-store.ts";
import { VECTOR_INDEX_MIGRATION, VectorIndexStateStore } from "./vector-index-state-store.ts";
import { memoryMethods, type MemoryParts } from "./methods.ts";
import { mostMemories } from "./most-memories.ts";
import { MEMORY_TOOLS } from "./tools.ts";

export interface LongTermMemoryPorts
  extends MemorySearchPort,
    AgentDefinitionsPort,
    SpendPort,
    StopPort,
    Pick<KernelPorts, "armFor" | "audit" | "background" | "config" | "database" | "ids" | "log" | "now" | "scrub"> {
  readonly searchIndex: (agentId: string) => SearchPort;
  readonly embedding: EmbeddingConnections;
  /** Undefined: the deployment has none. */
  readonly rowDatabase: RowDatabase | undefined;
  readonly vectorIndex: VectorBinding | undefined;
}
/** To services. */
export interface EmbeddingConnections {
  /** Undefined: this deployment has no Workers AI. */
  readonly ai: EmbeddingAi | undefined;
  readonly fetch: (input: string, init: RequestInit) => Promise<Response>;
}
/** The key of every OpenAI-compatible service is stored under this name. */
const KEY_OWNER = "openai";
/** Long ago: the platform refuses an alarm at 0. */
const AT_ONCE = 1;
/** More than one step takes. If the gateway is stopped during a step, its alarm runs the next one after this. */
const STEP_LEASE_MS = 600_000;
const NO_DATABASE = fail(
  "storage.failed",
  "This deployment has no database for long-term memory.",
  "Bind a D1 database as DB in the deployment's configuration.",
);

export const longTermMemoryFeature: FeatureDefinition<LongTermMemoryPorts, { readonly memoryRpc: MemoryPort }> = {
  name: "memory",
  migrations: [...EMBEDDING_MIGRATIONS, VECTOR_INDEX_MIGRATION],
  tools: MEMORY_TOOLS,
  create(ports) {
    const { rowDatabase, vectorIndex, now, log, config, embedding } = ports;
    const failed = (what: string, error: unknown): void => log.error("memory_rows_failed", { what, error });
    const state = new EmbeddingStateStore(ports.database);
    const settings = (): EmbeddingsConfig | undefined => config.effective().memory?.embeddings;
    const announce = (dueAt: number): void => {
      state.announce(dueAt);
      ports.armFor(due());
    };
    const indexState = new VectorIndexStateStore(ports.database);
    const indexDue = (): number | undefined =>
      rowDatabase === undefined || vectorIndex === undefined || ports.stopped() !== undefined ? undefined : indexState.read().dueAt;
    const announceToIndex = (dueAt: number): void => {
      if (vectorIndex === undefined) return;
      indexState.announce(dueAt);
      ports.armFor(indexDue());
    };
    const due = (): number | undefined => {
      if (rowDatabase === undefined || ports.stopped() !== undefined) return undefined;
      const seen = state.read();
      return beginsAgain(seen, targetOf(settings()), config.version()) ? AT_ONCE : seen.dueAt;
    };
    /** A step is running: none begins before this time. After a failure it stays as a pause. */
    let leasedUntil: number | undefined;
    const step = async (): Promise<void> => {
      const memory = await load();
      if (memory.ok) {
        // Sends the new vectors to the index, also when the gateway is stopped in between.
        announceToIndex(now() + STEP_LEASE_MS);
        await memory.value.pass.run();
        announceToIndex(now());
      }
      leasedUntil = undefined;
      ports.armFor(due());
    };
    let indexLeasedUntil: number | undefined;
    const indexStep = async (): Promise<void> => {
      const memory = await load();
      if (memory.ok) await memory.value.indexPass?.run();
      indexLeasedUntil = undefined;
      ports.armFor(indexDue());
    };
    const load = once(async (): Promise<Result<MemoryParts>> => {
      if (rowDatabase === undefined) return NO_DATABASE;
      const { D1Memory, EmbeddingPass, embeddingService, MemoryKeeper, VectorIndexPass, Vectorize } = await import("./memory.lazy.ts");
      // The gateway is one object, and the only one that writes; after a restart it has another name.
      const index = vectorIndex && new Vectorize(vectorIndex, (text) => ports.ids.sha256(text));
      const model = () => {
        const choice = chosenEmbeddings(settings());
        return choice.ok ? choice.chosen?.of : undefined;
      };
      const rows = new D1Memory(rowDatabase, now, failed, ports.ids.name(16), () => mostMemories(model(), index));
      const key = (): string | undefined => config.access([KEY_OWNER]).apiKeys[KEY_OWNER]?.trim() || undefined;
      const service = (chosen: ChosenEmbeddings) => embeddingService(chosen, { ...embedding, key });
      const pass = new EmbeddingPass({ ...ports, rows, state, settings, settingsVersion: () => config.version(), service });
      const indexPass = index && new VectorIndexPass({ ...ports, rows: rows.vectorIndex, index, state: indexState, model });
      const vectors = {
        ...(index === undefined ? {} : { index }),
        announceToIndex,
        isChosen: () => targetOf(settings()) !== "",
        announce,
        question: (agentId: string, text: string, signal: AbortSignal) => pass.question(agentId, text, signal),
      };
      return succeed({ keeper: new MemoryKeeper({ ...ports, rows, vectors }), pass, indexPass });
    });
    return {
      offers: {
        memoryRpc: {
          remember: async (input) => {
            const memory = await load();
            return memory.ok ? memory.value.keeper.remember(input) : memory;
          },
          recall: async (input) => {
            const memory = await load();
            return memory.ok ? memory.value.keeper.recall(input) : memory;
          },
        },
      },
      methods: memoryMethods(ports, load),
      alarms: [
        {
          name: "memory_embedding",
          next: () => {
            const dueAt = due();
            return dueAt === undefined ? undefined : Math.max(dueAt, leasedUntil ?? 0);
          },
          // A slow service holds up no other alarm.
          run: (at) => {
            leasedUntil = at + STEP_LEASE_MS;
            ports.background("embed_memories", step());
          },
        },
        {
          name: "memory_vector_index",
          next: () => {
            const dueAt = indexDue();
            return dueAt === undefined ? undefined : Math.max(dueAt, indexLeasedUntil ?? 0);
          },
          run: (at) => {
            indexLeasedUntil = at + STEP_LEASE_MS;
            ports.background("index_vectors", indexStep());
          },
        },
      ],
    };
  },
};
