/** Shared by the search tests: an index over a bucket that can fail and fake sessions. */
import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import type { Message } from "../../../src/ports/messages.ts";
import type { SearchableSession, SearchFound, SearchRequest, SearchRows } from "../../../src/ports/search.ts";
import type { CatchUpPorts } from "../../../src/features/search/pass.ts";
import type { IndexStore } from "../../../src/features/search/index-store.ts";
import { indexStore } from "../../../src/features/search/search.lazy.ts";
import { parseQuery } from "../../../src/features/search/query.ts";
import { SearchService } from "../../../src/features/search/service.ts";
import { withoutMarks } from "../../../src/features/search/text.ts";
import { createArchives } from "../../../src/storage/archives.ts";
import { newAgent, value, watched } from "../../support/workspace.ts";

export const said = (text: string, at = 1, role: "user" | "toolResult" = "user"): Message =>
  role === "user"
    ? { role, content: text, timestamp: at }
    : { role, toolCallId: "c", toolName: "Bash", content: [{ type: "text", text }], isError: false, timestamp: at };

/** A fake session for the index. */
export class FakeSession {
  sessionId = "s1";
  contextFrom = 1;
  nextSeq = 1;
  busy = false;
  lastActiveAt = 1;
  quietSince = 1;
  asked = 0;
  rows: { seq: number; role: string; at: number; text: string }[] = [];
  say(text: string, role = "user"): this {
    this.rows.push({ seq: this.nextSeq++, role, at: this.nextSeq, text });
    this.lastActiveAt = Date.now();
    this.quietSince = Date.now() + 1_000_000;
    return this;
  }
  page(afterSeq: number, limit: number): SearchRows {
    this.asked++;
    const open = this.rows.filter(({ seq }) => seq >= this.contextFrom && seq > afterSeq);
    const rows = open.slice(0, limit);
    const more = rows.length < open.length;
    const { sessionId, contextFrom, nextSeq, busy } = this;
    return { sessionId, contextFrom, nextSeq, busy, rows, more, upTo: more ? (rows.at(-1)?.seq ?? 0) : nextSeq - 1 };
  }
}

export class Index {
  readonly agent = newAgent();
  readonly watched = watched();
  readonly sessions = new Map<string, FakeSession>();
  sessionsFail = false;
  /** Sessions stop answering, and every wait times out immediately. */
  sessionsHang = false;
  /** Milliseconds that the clock runs ahead; each read of the clock adds `tick`. */
  tick = 0;
  #ahead = 0;
  readonly wakes: number[] = [];
  readonly #services = new WeakMap<object, SearchService>();

  get stub() {
    return env.SEARCH.getByName(this.agent);
  }
  session(name: string): FakeSession {
    const key = `agent:${this.agent}:${name}`;
    const known = this.sessions.get(key) ?? new FakeSession();
    this.sessions.set(key, known);
    return known;
  }
  /** In the object itself; a new instance has a new service. */
  inside<T>(work: (service: SearchService, store: IndexStore, sql: SqlStorage) => Promise<T> | T): Promise<T> {
    return runInDurableObject(this.stub, async (instance, ctx) => {
      const store = indexStore(ctx.storage);
      const service = this.#services.get(instance) ?? new SearchService({ ...this.#ports(store), ...this.#platform() });
      this.#services.set(instance, service);
      return work(service, store, ctx.storage.sql);
    });
  }
  #ports(store: IndexStore): CatchUpPorts {
    const reach = <T>(give: () => T): Promise<T> =>
      this.sessionsHang
        ? new Promise<T>(() => {})
        : this.sessionsFail
          ? Promise.reject(new Error("the gateway is away"))
          : Promise.resolve(give());
    return {
      store,
      bucket: this.watched.bucket,
      sessions: (after) =>
        reach(() => {
          const rest = [...this.sessions]
            .filter(([key]) => key > after)
            .map(([key, { lastActiveAt, quietSince }]): SearchableSession => ({ key, lastActiveAt, quietSince }))
            .sort((left, right) => (left.key < right.key ? -1 : 1));
          return { sessions: rest.slice(0, 3), more: rest.length > 3 };
        }),
      rows: (key, after, limit) =>
        reach(() => {
          const session = this.sessions.get(key);
          return session
            ? { ok: true, value: session.page(after, limit) }
            : { ok: false, error: { reason: "session.not_found", message: "none" } };
        }),
      now: () => {
        this.#ahead += this.tick;
        return Date.now() + this.#ahead;
      },
    };
  }
  #platform() {
    return {
      wakeIn: (ms: number) => void this.wakes.push(ms),
      after: (ms: number, work: () => void) => {
        const timer = setTimeout(work, this.sessionsHang ? 200 : ms);
        return () => clearTimeout(timer);
      },
    };
  }
  find(query: string, more: Partial<SearchRequest> = {}): Promise<SearchFound> {
    const request = {
      agentId: this.agent,
      match: value(parseQuery(query)),
      sources: ["workspace", "sessions", "archives"] as const,
      limit: 20,
      offset: 0,
      ...more,
    };
    return this.inside((service) => service.query(request));
  }
  /** Where it was found, as `kind name:position`, sorted. */
  async places(query: string, more: Partial<SearchRequest> = {}): Promise<string[]> {
    const { hits } = await this.find(query, more);
    return hits.map(({ kind, name, position }) => `${kind} ${name.replace(`agent:${this.agent}:`, "")}:${position}`).sort();
  }
  async texts(query: string): Promise<string[]> {
    return (await this.find(query)).hits.map(({ marked }) => withoutMarks(marked).replaceAll("\u200b", ""));
  }
  file(path: string, text: string | Uint8Array): Promise<unknown> {
    return env.STORAGE.put(`agents/${this.agent}/${path}`, text);
  }
  async archive(sessionName: string, sessionId: string, messages: readonly Message[], part?: number): Promise<string> {
    const put = await createArchives(env.STORAGE).put({
      agentId: this.agent,
      sessionKey: `agent:${this.agent}:${sessionName}`,
      sessionId,
      ...(part === undefined ? {} : { part }),
      archivedAt: 7,
      messages,
      tokens: { input: 0, output: 0, total: 0 },
    });
    return value(put).key;
  }
}
