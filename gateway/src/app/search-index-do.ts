/**
 * The Durable Object of one agent's search index: a shell around the service. Costs nothing between searches. Its data is
 * derived, so it may be lost at any time. The constructor reads nothing; the service is loaded with the first call.
 */
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../platform/env.ts";
import { once } from "../../../protocol/runtime/once.ts";
import { systemClock } from "../platform/clock.ts";
import { gatewayPort, sessionPort } from "../platform/stubs.ts";
import type { LongTermMemory } from "../ports/long-term-memory.ts";
import { TENANT_ID } from "../ports/tenant.ts";
import type { SearchFound, SearchPort, SearchRequest } from "../ports/search.ts";
import type { CatchUpPorts } from "../features/search/pass.ts";
import type { Embedder } from "../features/search/static-embeddings.ts";
import type { SearchService } from "../features/search/service.ts";
import { askingLog } from "./asking-log.ts";

/** The rows of long-term memory. What reads them is loaded with the first search. */
function memoriesOf({ DB }: Env, agentId: () => string, failed: (what: string, error: unknown) => void): Pick<CatchUpPorts, "memories"> {
  if (DB === undefined) return {};
  let rows: LongTermMemory | undefined;
  return {
    memories: async (afterSeq, limit) => {
      rows ??= new (await import("../features/memory/memory.lazy.ts")).D1Memory(DB, systemClock.now, failed);
      return rows.changes({ tenantId: TENANT_ID, agentId: agentId() }, afterSeq, limit);
    },
  };
}

/** Beside the gateway's modules on the owner's machine; in the bucket of a deployment. */
const TABLE = "embeddings.bin";
const TABLE_KEY = `gsv/${TABLE}`;
/** The table of word vectors, which is loaded with the first question and is in memory only as long as this object. */
function embedderOf({ MODULES, STORAGE }: Env, failed: (error: unknown) => void): () => Promise<Embedder | undefined> {
  const load = once(async (): Promise<Embedder | undefined> => {
    const response = await MODULES?.fetch(`http://modules/${TABLE}`);
    const file = response?.ok === true ? await response.arrayBuffer() : await (await STORAGE.get(TABLE_KEY))?.arrayBuffer();
    return file === undefined ? undefined : (await import("../features/search/embeddings.lazy.ts")).readTable(file);
  });
  // A failure costs the meaning of this question; its words are still searched.
  return () =>
    load().catch((error: unknown) => {
      failed(error);
      return undefined;
    });
}

export class SearchIndex extends DurableObject<Env> implements SearchPort {
  readonly #service = once(() => this.#load());

  async #load(): Promise<SearchService> {
    const { ctx, env } = this;
    const { indexStore, SearchService } = await import("../features/search/search.lazy.ts");
    const log = askingLog("search", env, ctx);
    const store = indexStore(ctx.storage);
    const gateway = gatewayPort(env);
    return new SearchService({
      store,
      bucket: env.STORAGE,
      sessions: (afterKey) => gateway.searchableSessions(store.agent() ?? "", afterKey),
      rows: (key, afterSeq, limit) => sessionPort(env, key).searchRows(afterSeq, limit),
      ...memoriesOf(
        env,
        () => store.agent() ?? "",
        (what, error) => log.error("memory_rows_failed", { what, error }),
      ),
      now: systemClock.now,
      wakeIn: (ms) => {
        ctx.storage.setAlarm(systemClock.now() + ms).catch((error: unknown) => log.error("search_alarm_not_set", { error }));
      },
      after: afterTimeout,
      embedder: embedderOf(env, (error) => log.warn("embeddings_not_loaded", { error })),
    });
  }

  override async alarm(): Promise<void> {
    await (await this.#service()).alarm();
  }
  async forget(sessionKey: string, sessionIds: readonly string[]): Promise<void> {
    await (await this.#service()).forget(sessionKey, sessionIds);
  }
  async memoriesWillChange(): Promise<void> {
    await (await this.#service()).memoriesWillChange();
  }
  async memoriesChanged(): Promise<void> {
    await (await this.#service()).memoriesChanged();
  }
  async query(request: SearchRequest): Promise<SearchFound> {
    return (await this.#service()).query(request);
  }
}
